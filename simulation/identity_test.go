package simulation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
)

func TestSimulatedAndLiveTotalsAreIdentical(t *testing.T) {
	t.Parallel()
	names, all := tales(t)
	rows := make([]string, len(names))
	t.Cleanup(func() {
		t.Logf("\n%-44s %7s %5s %8s  %s\n%s", "scenario", "changes", "jobs", "lasts", "shows", strings.Join(rows, "\n"))
	})
	for i, name := range names {
		tl := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := simulate(t, tl)
			checkExpected(t, tl, r)
			what := tl.Shows
			if tl.Apart == "" {
				checkIdentical(t, tl, r)
			} else {
				what += " (simulator alone: " + tl.Apart + ")"
			}
			rows[i] = fmt.Sprintf("%-44s %7d %5d %8s  %s", name, len(r.Changes), len(r.Outcomes), r.Ended.Sub(r.Began).Std().Round(time.Second), what)
		})
	}
}

func simulate(t *testing.T, tl tale) *simulation.Result {
	t.Helper()
	r, err := simulation.Run(t.Context(), tl.farm(), tl.trace(), simulation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkExpected checks that what the scenario is for has come.
func checkExpected(t *testing.T, tl tale, r *simulation.Result) {
	t.Helper()
	if lines := shortLines(r.Began, r.Changes); len(tl.Expect) == 0 || !slices.Equal(lines, tl.Expect) {
		t.Errorf("the changes are not those that the scenario expects:\n- \"%s\"", strings.Join(lines, "\"\n- \""))
	}
	waiting := 0
	for _, o := range r.Outcomes {
		if o.State != simulation.Done && o.State != simulation.TimedOut {
			waiting++
		}
	}
	if waiting != tl.Waiting {
		t.Errorf("%d jobs have not ended, want %d", waiting, tl.Waiting)
	}
}

// afterwards is for how long the twin is played on, to see that nothing follows.
const afterwards = 2 * cluster.Hour

// checkIdentical plays the same farm with the real workflows and the real controller, and compares all that can be.
func checkIdentical(t *testing.T, tl tale, r *simulation.Result) {
	t.Helper()
	until := r.Ended.Add(1)
	if tl.Waiting == 0 {
		until = until.Add(afterwards)
	}
	farm := tl.farm()
	farm.Operator = slices.DeleteFunc(slices.Clone(farm.Operator), func(o simulation.Order) bool {
		return r.Began.Add(o.After) > r.Ended // the simulator does not go on for the sake of orders
	})
	w := playTwin(t, farm, tl.trace(), tl.Restarts, until)
	sameLines(t, "changes", changeLines(r.Changes), changeLines(w.changes))
	sameLines(t, "jobs", outcomeLines(r.Outcomes), outcomeLines(w.outcomes))
	sameLines(t, "loans", loanLines(r), w.loanLines())
	sameLines(t, "hosts", machineLines(r), w.machineLines(r.Ended))
	var orders []string
	for _, o := range r.Orders {
		if o.Became == simulation.NotGiven {
			continue // nobody gives orders when all is over; the world goes on
		}
		orders = append(orders, orderLine(o.At, o.Do, o.Subject, o.Became != "done"))
	}
	sameLines(t, "orders", orders, w.orders)
}

func outcomeLines(all []simulation.Outcome) (lines []string) {
	for i, o := range all {
		lines = append(lines, fmt.Sprintf("job %d: %d, start %d, end %d, %d requeues", i+1, o.State, o.Start, o.End, o.Requeues))
	}
	return lines
}

func loanLine(id string, units, granted int64, at ...cluster.Time) string {
	return fmt.Sprintf("%s: %d, granted %d, %v", id, units, granted, at)
}

func loanLines(r *simulation.Result) (lines []string) {
	for _, l := range r.Loans {
		lines = append(lines, loanLine(l.ID, l.Units, l.Granted, l.Requested, l.Committed, l.Closed))
	}
	slices.Sort(lines)
	return lines
}

func (w *twin) loanLines() (lines []string) {
	for _, l := range w.loans {
		lines = append(lines, loanLine(l.ID, l.Units, l.Granted(), l.Intended, l.Committed, l.Closed))
	}
	slices.Sort(lines)
	return lines
}

func machineLine(id, name string, busy int64, cost cluster.Price, at ...cluster.Time) string {
	return fmt.Sprintf("%s %s: %v, busy %d, cost %d", id, name, at, busy, cost)
}

func machineLines(r *simulation.Result) (lines []string) {
	for _, h := range r.Machines {
		lines = append(lines, machineLine(h.ID, h.Name, h.Busy, h.Cost, h.Requested, h.Expected, h.Joined, h.Left, h.Closed))
	}
	slices.Sort(lines)
	return lines
}

func (w *twin) machineLines(now cluster.Time) (lines []string) {
	for _, h := range w.hosts {
		lines = append(lines, machineLine(h.ID, h.Name, int64(h.Used(now)), h.Cost(now), h.Intended, h.Made, h.Joined, h.Fenced, h.Closed))
	}
	slices.Sort(lines)
	return lines
}

// sameLines complains where two accounts of the same part.
func sameLines(t *testing.T, what string, simulated, live []string) {
	t.Helper()
	if parted := parting(simulated, live); parted != "" {
		t.Errorf("%s part at %s", what, parted)
	}
}

// parting tells where two accounts of the same part; nothing where they do not.
func parting(simulated, live []string) string {
	line := func(of []string, i int) string {
		if i >= len(of) {
			return "(nothing)"
		}
		return of[i]
	}
	for i := range max(len(simulated), len(live)) {
		if a, b := line(simulated, i), line(live, i); a != b {
			before := simulated[min(max(i-5, 0), len(simulated)):min(i, len(simulated))]
			return fmt.Sprintf("%d of %d and %d; before:\n  %s\nsimulated:\n  %s\nlive:\n  %s", i, len(simulated), len(live), strings.Join(before, "\n  "), a, b)
		}
	}
	return ""
}

func TestAnElasticFarmIsOverOneByOneToo(t *testing.T) {
	t.Parallel()
	_, all := tales(t)
	for _, name := range []string{"both-halves-of-a-job", "hosts-that-die", "easy"} {
		tl := all[name]
		r, err := simulation.Run(t.Context(), tl.farm(), tl.trace(), simulation.Options{OneByOne: true})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(r.Outcomes, func(o simulation.Outcome) bool { return o.State != simulation.Done && o.State != simulation.TimedOut }) {
			t.Errorf("%s: not all jobs have ended: %+v", name, r.Outcomes)
		}
	}
}

func TestTheComparisonSeesAMillisecondAndADroppedSession(t *testing.T) {
	t.Parallel()
	_, all := tales(t)
	tl := all["both-halves-of-a-job"]
	r := simulate(t, tl)
	late := tl.farm()
	late.Steps.Controller++
	other := all["hosts-that-die"]
	died := simulate(t, other)
	rare := other.farm()
	rare.SessionInterval = 7 * cluster.Minute
	for name, parted := range map[string]string{
		"a write takes a millisecond longer": parting(changeLines(r.Changes), changeLines(playTwin(t, late, tl.trace(), nil, r.Ended.Add(1)).changes)),
		"sessions are rarer":                 parting(changeLines(died.Changes), changeLines(playTwin(t, rare, other.trace(), nil, died.Ended.Add(1)).changes)),
	} {
		if parted == "" {
			t.Errorf("%s, and nothing is seen of it", name)
		}
	}
}
