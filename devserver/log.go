package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"

	temporallog "go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// levelFatal is above what any --log-level hides.
const levelFatal = slog.LevelError + 4

// logs is where all records of the program go, and from which level on.
type logs struct {
	*slog.Logger
	level *slog.LevelVar
}

func newLogs(to io.Writer, level slog.Level) *logs {
	threshold := &slog.LevelVar{}
	threshold.Set(level)
	handler := slog.NewTextHandler(to, &slog.HandlerOptions{Level: threshold})
	return &logs{Logger: slog.New(handler), level: threshold}
}

// expectCutCalls is called when a stop begins. The services then report calls
// that were cut off as errors; that is what a stop does, so whoever asked for
// errors only does not see them. A stop that fails returns its error.
func (l *logs) expectCutCalls() {
	if l.level.Level() == slog.LevelError {
		l.level.Set(slog.LevelError + 1)
	}
}

// logger lets Temporal log through slog. Tags are converted only when a
// record is really written.
type logger struct {
	slog *slog.Logger
	tags []tag.Tag
}

var (
	_ temporallog.Logger      = logger{}
	_ temporallog.WithLogger  = logger{}
	_ temporallog.SLogWrapper = logger{}
)

func (l logger) Debug(msg string, tags ...tag.Tag) { l.write(slog.LevelDebug, msg, tags) }
func (l logger) Info(msg string, tags ...tag.Tag)  { l.write(slog.LevelInfo, msg, tags) }
func (l logger) Warn(msg string, tags ...tag.Tag)  { l.write(slog.LevelWarn, msg, tags) }
func (l logger) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// DPanic only logs: it panics in Temporal's own development builds.
func (l logger) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// Panic logs and panics, as Temporal expects.
func (l logger) Panic(msg string, tags ...tag.Tag) {
	l.write(levelFatal, msg, tags)
	panic(msg)
}

// Fatal logs and ends the process, as Temporal expects. The state is safe:
// the database survives a kill.
func (l logger) Fatal(msg string, tags ...tag.Tag) {
	l.write(levelFatal, msg, tags)
	os.Exit(exitFailed)
}

// With returns a logger that adds the tags to every record.
func (l logger) With(tags ...tag.Tag) temporallog.Logger {
	return logger{slog: l.slog, tags: slices.Concat(l.tags, tags)}
}

// SLog returns the slog logger below, for libraries that want one.
func (l logger) SLog() *slog.Logger {
	return slog.New(l.slog.Handler().WithAttrs(attrs(l.tags)))
}

func (l logger) write(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background()
	if l.slog.Enabled(ctx, level) {
		l.slog.LogAttrs(ctx, level, msg, attrs(slices.Concat(l.tags, tags))...)
	}
}

func attrs(tags []tag.Tag) []slog.Attr {
	out := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		out = append(out, slog.Any(t.Key(), t.Value()))
	}
	return out
}
