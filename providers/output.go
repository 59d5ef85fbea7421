package providers

import (
	"bytes"
	"log/slog"
	"strings"

	"xce.internal/elastic/cluster/plain"
)

const (
	logLimit  = 64 << 10 // bytes of stderr kept of one call
	lineLimit = 1 << 10  // bytes of one log line
)

// limitedOutput keeps stdout up to a limit, and says when there is more.
type limitedOutput struct {
	text       bytes.Buffer
	limit      int64
	full       func()
	overflowed bool
}

func (o *limitedOutput) Write(p []byte) (int, error) {
	room := o.limit - int64(o.text.Len())
	if int64(len(p)) <= room {
		return o.text.Write(p)
	}
	o.text.Write(p[:room])
	o.overflowed = true
	o.full()
	return int(room), errOutputLimit
}

// logLines turns stderr into log lines. What exceeds the limits is read and dropped, so that a chatty
// script never blocks.
type logLines struct {
	log   *slog.Logger
	scrub func(string) string
	line  []byte
	kept  int
}

func (l *logLines) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			l.flush()
		} else if len(l.line) < lineLimit {
			l.line = append(l.line, b)
		}
	}
	return len(p), nil
}

// flush logs the line so far, with no character that could steer a terminal.
func (l *logLines) flush() {
	line := strings.TrimSpace(plain.Line(strings.ReplaceAll(string(l.line), "\t", " ")))
	if l.scrub != nil {
		line = l.scrub(line)
	}
	l.line = l.line[:0]
	if line == "" || l.kept > logLimit {
		return
	}
	l.kept += len(line)
	if l.kept > logLimit {
		line = "the script writes more to stderr than is kept of one call"
	}
	l.log.Info("provider script", "stderr", line)
}
