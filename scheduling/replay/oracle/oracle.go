// Package oracle finds public traces, and the schedules that others computed for
// them, for tests of whatever schedules. They are no part of the repository: where
// they are not at hand beside it, such a test is skipped.
package oracle

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/scheduling"
)

// Trace is a public trace, as a file packed by gzip.
type Trace struct {
	File  string
	Procs int64
	Quick bool // enough for the race detector
}

// traces are in the folder traces, by the prefix of their schedules.
var traces = map[string]Trace{
	"kth":       {File: "KTH-SP2-1996-2.1-cln.swf.gz", Procs: 100},
	"sdsc5k":    {File: "pyss-5K_sample.swf.gz", Procs: 128, Quick: true},
	"theta3k":   {File: "cqgym-train.swf.gz", Procs: 4360, Quick: true},
	"nasa":      {File: "NASA-iPSC-1993-3.1-cln.swf.gz", Procs: 128, Quick: true},
	"lublin256": {File: "lublin_256.swf.gz", Procs: 256},
}

// Public answers a trace by its name; shared is the folder in which folders of
// traces and schedules are.
func Public(tb testing.TB, shared, name string) Trace {
	tb.Helper()
	t, known := traces[name]
	if !known {
		tb.Fatalf("no trace is known for %s", name)
	}
	t.File = filepath.Join(shared, "traces", t.File)
	if _, err := os.Stat(t.File); err != nil {
		tb.Skip("there is no folder shared/traces beside the repository")
	}
	return t
}

// kinds are how the schedules were computed, by the end of their names.
// Conservative ones go event by event: each completion moves the reservations by itself.
var kinds = map[string]struct {
	order    scheduling.Order
	oneByOne bool
}{
	"fcfs-batch": {scheduling.FCFS, false}, "fcfs-seq": {scheduling.FCFS, true}, "fcfs-pyss": {scheduling.FCFS, true},
	"easy-batch": {scheduling.EASY, false}, "easy-seq": {scheduling.EASY, true}, "easy-pyss": {scheduling.EASY, true},
	"cons": {scheduling.Conservative, true}, "cons-pyss": {scheduling.Conservative, true},
}

// Schedule is what others computed for a trace.
type Schedule struct {
	Trace    Trace
	Order    scheduling.Order
	OneByOne bool // a session after each single event
	file     string
}

// Each runs a test for each schedule.
func Each(t *testing.T, shared string, test func(*testing.T, Schedule)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shared, "oracles", "*.txt.gz"))
	if err != nil || len(files) == 0 {
		t.Skip("there is no folder shared/oracles beside the repository")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt.gz")
		t.Run(name, func(t *testing.T) {
			prefix, end, _ := strings.Cut(name, "-")
			kind, known := kinds[end]
			if !known {
				t.Fatalf("no order is known for %s", name)
			}
			test(t, Schedule{Public(t, shared, prefix), kind.order, kind.oneByOne, file})
		})
	}
}

// Lines are those of the schedule: id, submit, start, run, procs and estimate, sorted by id.
func (s Schedule) Lines(tb testing.TB) []byte { return Unpack(tb, s.file) }

// Unpack answers what is in a file packed by gzip.
func Unpack(tb testing.TB, file string) []byte {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
