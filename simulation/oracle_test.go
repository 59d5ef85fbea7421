package simulation_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// shared is where public traces and the schedules that others computed for them lie; it is no part of the
// repository.
const shared = "../../shared"

// public are the traces, by the prefix of their schedules.
var public = map[string]struct {
	file  string
	procs int64
}{
	"kth":       {"KTH-SP2-1996-2.1-cln.swf.gz", 100},
	"sdsc5k":    {"pyss-5K_sample.swf.gz", 128},
	"theta3k":   {"cqgym-train.swf.gz", 4360},
	"nasa":      {"NASA-iPSC-1993-3.1-cln.swf.gz", 128},
	"lublin256": {"lublin_256.swf.gz", 256},
}

// monday is where traces begin that have no calendar.
const monday = cluster.Time(1_767_571_200_000)

func TestPublicTracesAreScheduledAsOthersDo(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared, "oracles", "*.txt.gz"))
	if err != nil || len(files) == 0 {
		t.Skip("there is no folder shared/oracles beside the repository")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt.gz")
		t.Run(name, func(t *testing.T) {
			prefix, kind, _ := strings.Cut(name, "-")
			order, oneByOne := orderOf(t, kind)
			p := public[prefix]
			jobs, err := trace.Read([]string{filepath.Join(shared, "traces", p.file)}, trace.Options{Procs: p.procs})
			if err != nil {
				t.Fatal(err)
			}
			jobs.Anchor(monday)
			r, err := simulation.Run(t.Context(), oneHost(p.procs, order), jobs, simulation.Options{OneByOne: oneByOne})
			if err != nil {
				t.Fatal(err)
			}
			checkStarts(t, r, unzip(t, file))
		})
	}
}

// orderOf reads the end of a schedule's name. Conservative ones are sequential: each completion moves the
// reservations by itself.
func orderOf(t *testing.T, kind string) (order scheduling.Order, oneByOne bool) {
	t.Helper()
	name, how, _ := strings.Cut(kind, "-")
	order, known := map[string]scheduling.Order{"fcfs": scheduling.FCFS, "easy": scheduling.EASY, "cons": scheduling.Conservative}[name]
	if !known {
		t.Fatalf("no order is known for %s", kind)
	}
	return order, how != "batch"
}

func oneHost(procs int64, order scheduling.Order) simulation.Farm {
	return simulation.Farm{
		Name: "east", SessionInterval: 5 * cluster.Second, Policy: scheduling.Policy{Order: order},
		Settings: simulation.Settings{Hosts: []simulation.OwnedHosts{{Name: "host", CPUs: procs}}},
	}
}

func unzip(t *testing.T, file string) []byte {
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

// checkStarts compares the jobs with lines of id, submit, start, run, procs and estimate, sorted by id.
func checkStarts(t *testing.T, r *simulation.Result, want []byte) {
	t.Helper()
	lines := make([]string, 0, len(r.Outcomes))
	places := make([]int, len(r.Outcomes))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return int(r.Trace.Jobs[a].ID - r.Trace.Jobs[b].ID) })
	seconds := func(n int64) int64 { return n / int64(cluster.Second) }
	for _, i := range places {
		j := &r.Trace.Jobs[i]
		lines = append(lines, fmt.Sprintf("%d %d %d %d %d %d", j.ID, seconds(int64(j.Submit-monday)), seconds(int64(r.Outcomes[i].Start-monday)),
			seconds(int64(j.Run)), j.Shape.CPUs, seconds(int64(j.Limit))))
	}
	got := strings.Join(lines, "\n") + "\n"
	if got == string(want) {
		return
	}
	wanted := bytes.Split(want, []byte("\n"))
	for i, line := range lines {
		if i >= len(wanted) || line != string(wanted[i]) {
			t.Fatalf("%d of %d lines; line %d is %q, want %q", len(lines), len(wanted)-1, i+1, line, wanted[min(i, len(wanted)-1)])
		}
	}
	t.Fatalf("%d lines, want %d", len(lines), len(wanted)-1)
}
