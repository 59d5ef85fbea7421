package replay_test

import (
	"testing"

	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay"
	"xce.internal/elastic/scheduling/replay/oracle"
)

// shared is where public traces and the schedules that others computed for them
// lie; it is no part of the repository.
const shared = "../../../shared"

func TestPublicTracesAreScheduledAsOthersDo(t *testing.T) {
	oracle.Each(t, shared, func(t *testing.T, s oracle.Schedule) {
		t.Parallel()
		if racing && !s.Trace.Quick {
			t.Skip("too long under the race detector")
		}
		mode := replay.Batch
		if s.OneByOne {
			mode = replay.Sequential
		}
		rows := replay.Run(read(t, s.Trace), replay.OneHost(s.Trace.Procs), scheduling.Policy{Order: s.Order}, mode)
		checkRows(t, printed(t, rows), s.Lines(t))
	})
}

func read(tb testing.TB, trace oracle.Trace) replay.Trace {
	tb.Helper()
	return readSWF(tb, oracle.Unpack(tb, trace.File), trace.Procs)
}
