package simulation_test

import (
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
)

// simulateDrawn simulates a drawn farm.
func simulateDrawn(t *rapid.T, tl tale, options simulation.Options) *simulation.Result {
	t.Helper()
	r, err := simulation.Run(t.Context(), tl.farm(), tl.trace(), options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStoriesThatSleepMissNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tl := randomTales.Draw(t, "farm")
		if rapid.Bool().Draw(t, "slow controller") { // more is under way where somebody wakes
			tl.Simulation.Steps.Controller = 900
		}
		asleep, awake := simulateDrawn(t, tl, simulation.Options{}), simulateDrawn(t, tl, simulation.Options{Awake: true})
		sameAccounts(t, "changes", sorted(changeLines(asleep.Changes)), sorted(changeLines(awake.Changes)))
		sameAccounts(t, "jobs", outcomeLines(asleep.Outcomes), outcomeLines(awake.Outcomes))
		sameAccounts(t, "loans", loanLines(asleep), loanLines(awake))
		if asleep.Ended == awake.Ended { // which is when something happens after too long a wait
			sameAccounts(t, "hosts", machineLines(asleep), machineLines(awake))
		}
	})
}

// sorted has lines of one instant in one order: of surveys of several providers that are under way at once, the one of
// which the simulator is woken first may go on first.
func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

func sameAccounts(t *rapid.T, what string, asleep, awake []string) {
	t.Helper()
	for i := range max(len(asleep), len(awake)) {
		if i >= len(asleep) || i >= len(awake) || asleep[i] != awake[i] {
			t.Fatalf("%s part at %d:\nasleep %q\nawake %q", what, i, asleep[i:min(i+3, len(asleep))], awake[i:min(i+3, len(awake))])
		}
	}
}

func TestASimulationDoesNotDependOnTheNumberOfProcessors(t *testing.T) {
	t.Parallel()
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	rapid.Check(t, func(t *rapid.T) {
		tl := randomTales.Draw(t, "farm")
		runtime.GOMAXPROCS(1)
		one := simulateDrawn(t, tl, simulation.Options{Label: "a"})
		runtime.GOMAXPROCS(2)
		if two := simulateDrawn(t, tl, simulation.Options{Label: "a"}); !reflect.DeepEqual(one, two) {
			t.Fatal("two runs of one farm came to different results")
		}
	})
}

func TestEverySimulationKeepsItsBooks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tl := randomTales.Draw(t, "farm")
		r := simulateDrawn(t, tl, simulation.Options{})
		checkChain(t, tl, r)
		checkUse(t, r)
		checkEnds(t, tl, r)
		checkJobs(t, r)
		checkSums(t, r)
	})
}

// checkChain checks that every change begins where the last one of its kind ended.
func checkChain(t *rapid.T, tl tale, r *simulation.Result) {
	last := map[string]string{}
	for _, res := range tl.Resources {
		last[res.Name] = strconv.FormatInt(res.Owned, 10)
	}
	at := r.Began
	for _, c := range r.Changes {
		if before, known := last[c.Subject]; known && before != c.Before || !known && c.Before != "none" || c.At < at || c.Before == c.After {
			t.Fatalf("%+v follows %q at %s", c, before, at)
		}
		last[c.Subject], at = c.After, c.At
	}
	for _, res := range r.Resources {
		end := res.Series.Point(res.Series.Len() - 1).Values
		if total := strconv.FormatInt(end[0]+end[1]-end[2], 10); total != last[res.Name] {
			t.Fatalf("the total of %s is %s at the end, and %s by its changes", res.Name, total, last[res.Name])
		}
	}
}

// checkUse checks that jobs start within totals only: use grows beyond no total that there was in the instant.
func checkUse(t *rapid.T, r *simulation.Result) {
	most := map[string]map[cluster.Time]int64{}
	for _, c := range r.Changes {
		if total, err := strconv.ParseInt(c.After, 10, 64); err == nil {
			if most[c.Subject] == nil {
				most[c.Subject] = map[cluster.Time]int64{}
			}
			most[c.Subject][c.At] = max(most[c.Subject][c.At], total)
		}
	}
	for _, res := range r.Resources {
		var before []int64
		for i := range res.Series.Len() {
			p := res.Series.Point(i)
			total := p.Values[0] + p.Values[1] - p.Values[2]
			if before != nil && p.Values[3] > before[3] {
				had := max(total, before[0]+before[1]-before[2], most[res.Name][p.At])
				if p.Values[3] > had {
					t.Fatalf("%s: %d are in use of %d at %s", res.Name, p.Values[3], had, p.At)
				}
			}
			before = p.Values
		}
	}
}

// checkEnds checks that all is given back where all jobs have ended.
func checkEnds(t *rapid.T, tl tale, r *simulation.Result) {
	if slices.ContainsFunc(r.Outcomes, func(o simulation.Outcome) bool { return o.End == 0 && o.State != simulation.Impossible }) {
		return
	}
	if r.Ended.Sub(lastEnd(r)) > tl.Simulation.Patience {
		return // what a provider does not take back is not waited for
	}
	for _, l := range r.Loans {
		if l.Closed == 0 {
			t.Fatalf("a loan is open: %+v", l)
		}
	}
	for _, h := range r.Machines {
		if h.Closed == 0 {
			t.Fatalf("a host is open: %+v", h)
		}
	}
	for _, c := range r.Resources {
		if end := c.Series.Point(c.Series.Len() - 1).Values; end[1] != 0 || end[3] != 0 || end[4] != 0 {
			t.Fatalf("%s ends with %v", c.Name, end)
		}
	}
	if end := r.Hosts.Point(r.Hosts.Len() - 1).Values; end[0] != 0 || slices.Max(end[2:]) != 0 {
		t.Fatalf("hosts end with %v", end)
	}
}

func lastEnd(r *simulation.Result) (last cluster.Time) {
	for _, o := range r.Outcomes {
		last = max(last, o.End)
	}
	return last
}

// checkJobs checks that each job ran once to its end, or to its limit.
func checkJobs(t *rapid.T, r *simulation.Result) {
	for i, o := range r.Outcomes {
		job := &r.Trace.Jobs[i]
		runs, state := job.Run, simulation.Done
		if job.Limit > 0 && job.Limit < job.Run {
			runs, state = job.Limit, simulation.TimedOut
		}
		if o.End > 0 && (o.State != state || o.Start < job.Submit || o.End.Sub(o.Start) != runs) {
			t.Fatalf("job %d of %+v came to %+v", i, job, o)
		}
	}
}

// checkSums checks, where every job ran once, that what series sum up to is what jobs sum up to: what was used and
// waited for, and by Little's law how many jobs there were. What was held is more than what counted in totals, since units
// on their way back are held.
func checkSums(t *rapid.T, r *simulation.Result) {
	var waited, ran int64
	used, wanted := map[string]int64{}, map[string]int64{}
	for i, o := range r.Outcomes {
		job := &r.Trace.Jobs[i]
		if o.End == 0 || o.Requeues > 0 || len(job.Shape.Alternatives) > 0 {
			return
		}
		waits, runs := int64(o.Start.Sub(job.Submit)), int64(o.End.Sub(o.Start))
		waited, ran = waited+waits, ran+runs
		for name, units := range job.Shape.Tokens {
			used[name] += units * runs
			wanted[name] += units * waits
		}
	}
	equal(t, "jobs waiting", integral(r.Jobs, 0), waited)
	equal(t, "jobs running", integral(r.Jobs, 1), ran)
	held := map[string]int64{}
	for _, l := range r.Loans {
		held[l.Resource] += l.Held
	}
	for _, res := range r.Resources {
		equal(t, res.Name+" in use", integral(res.Series, 3), used[res.Name])
		equal(t, res.Name+" waited for", integral(res.Series, 4), wanted[res.Name])
		equal(t, res.Name+" bought", res.Bought, integral(res.Series, 1))
		if res.Used > res.Bought || res.Bought > held[res.Name] {
			t.Fatalf("of %s %d were used, %d bought, %d held", res.Name, res.Used, res.Bought, held[res.Name])
		}
	}
}

func integral(s *series.Series, column int) int64 { return s.Integral[column] }

func equal(t *rapid.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %d by the series, %d by the jobs", what, got, want)
	}
}
