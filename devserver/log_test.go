package main

import (
	"log/slog"
	"strings"
	"testing"

	temporallog "go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

func TestTemporalLogsThroughSlog(t *testing.T) {
	var out strings.Builder
	l := temporallog.With(logger{slog: newLogs(&out, slog.LevelWarn).Logger}, tag.NewStringTag("shard", "one"))

	l.Info("hidden")
	l.Warn("shown", tag.NewInt("count", 2))
	temporallog.NewSlogLogger(l).Error("by slog", "key", "value")

	if strings.Contains(out.String(), "hidden") {
		t.Errorf("a record below the level is written:\n%s", out.String())
	}
	wantAll(t, out.String(), "level=WARN msg=shown shard=one count=2", `level=ERROR msg="by slog" shard=one key=value`)
}

func TestCutCallsAreErrorsOnlyForWhoAskedForMore(t *testing.T) {
	for level, want := range map[slog.Level]bool{slog.LevelError: false, slog.LevelWarn: true} {
		var out strings.Builder
		logs := newLogs(&out, level)
		logs.expectCutCalls()
		logs.Error("a call was cut off")
		if got := out.Len() > 0; got != want {
			t.Errorf("at %s: written %t, want %t", level, got, want)
		}
	}
}
