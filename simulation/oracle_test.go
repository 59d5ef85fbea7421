package simulation_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay/oracle"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// shared is where public traces and the schedules that others computed for them lie; it is no part of the
// repository.
const shared = "../../shared"

// monday is where traces begin that have no calendar.
const monday = cluster.Time(1_767_571_200_000)

func TestPublicTracesAreScheduledAsOthersDo(t *testing.T) {
	t.Parallel()
	oracle.Each(t, shared, func(t *testing.T, s oracle.Schedule) {
		jobs, err := trace.Read([]string{s.Trace.File}, trace.Options{Procs: s.Trace.Procs})
		if err != nil {
			t.Fatal(err)
		}
		jobs.Anchor(monday)
		r, err := simulation.Run(t.Context(), oneHost(s.Trace.Procs, s.Order), jobs, simulation.Options{OneByOne: s.OneByOne})
		if err != nil {
			t.Fatal(err)
		}
		checkStarts(t, r, s.Lines(t))
	})
}

func oneHost(procs int64, order scheduling.Order) simulation.Farm {
	return simulation.Farm{
		Name: "east", SessionInterval: 5 * cluster.Second, Policy: scheduling.Policy{Order: order},
		Settings: simulation.Settings{Hosts: []simulation.OwnedHosts{{Name: "host", CPUs: procs}}},
	}
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
