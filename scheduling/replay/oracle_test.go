package replay_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay"
)

// shared is where public traces and the schedules that others computed for them
// lie; it is no part of the repository.
const shared = "../../../shared"

// public are the traces, by the prefix of their schedules.
var public = map[string]struct {
	file  string
	procs int64
	quick bool // enough for the race detector
}{
	"kth":       {file: "KTH-SP2-1996-2.1-cln.swf.gz", procs: 100},
	"sdsc5k":    {file: "pyss-5K_sample.swf.gz", procs: 128, quick: true},
	"theta3k":   {file: "cqgym-train.swf.gz", procs: 4360, quick: true},
	"nasa":      {file: "NASA-iPSC-1993-3.1-cln.swf.gz", procs: 128, quick: true},
	"lublin256": {file: "lublin_256.swf.gz", procs: 256},
}

func TestPublicTracesAreScheduledAsOthersDo(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared, "oracles", "*.txt.gz"))
	if err != nil || len(files) == 0 {
		t.Skip("there is no folder shared/oracles beside the repository")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt.gz")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix, kind, _ := strings.Cut(name, "-")
			trace, known := public[prefix]
			if !known {
				t.Fatalf("no trace is known for %s", name)
			}
			if racing && !trace.quick {
				t.Skip("too long under the race detector")
			}
			jobs := publicTrace(t, prefix)
			order, mode := orderAndMode(t, kind)
			rows := replay.Run(jobs, replay.OneHost(trace.procs), scheduling.Policy{Order: order}, mode)
			checkRows(t, printed(t, rows), unzip(t, file))
		})
	}
}

// orderAndMode reads the end of a schedule's name. Conservative ones are
// sequential: each completion moves the reservations by itself.
func orderAndMode(t *testing.T, kind string) (scheduling.Order, replay.Mode) {
	t.Helper()
	switch kind {
	case "fcfs-batch":
		return scheduling.FCFS, replay.Batch
	case "fcfs-seq", "fcfs-pyss":
		return scheduling.FCFS, replay.Sequential
	case "easy-batch":
		return scheduling.EASY, replay.Batch
	case "easy-seq", "easy-pyss":
		return scheduling.EASY, replay.Sequential
	case "cons", "cons-pyss":
		return scheduling.Conservative, replay.Sequential
	}
	t.Fatalf("no policy and mode are known for %s", kind)
	return "", ""
}

func publicTrace(t testing.TB, prefix string) replay.Trace {
	t.Helper()
	data := unzip(t, filepath.Join(shared, "traces", public[prefix].file))
	return readSWF(t, data, public[prefix].procs)
}

func unzip(t testing.TB, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
