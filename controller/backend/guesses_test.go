package backend

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

const grace = 15 * cluster.Second

// said is a session at a moment, in which job 1 starts and job 2 waits for tokens, beside job 9 which runs.
func said(g *Guesses, at cluster.Time) {
	g.Guess(scheduling.Input{
		Now: at, Jobs: []cluster.Job{{ID: 1, Submitted: 5}, {ID: 2, Submitted: 6}}, Running: []cluster.Job{{ID: 9}},
		Hosts: make([]scheduling.Host, 1), Resources: []scheduling.Resource{{SharedResource: cluster.SharedResource{Name: "vcs"}, Total: 2}},
	}, scheduling.Result{
		Starts: []scheduling.Start{{Job: 1, Hosts: []string{"n1"}}}, Unplaced: []scheduling.Unplaced{{Code: "tokens", Jobs: []int64{2}}},
	})
}

// seen is what the scheduler then has: the same, with a change.
func seen(at cluster.Time, change func(*View)) View {
	v := View{
		At: at, Hosts: []Host{{Name: "n1", State: HostReady}}, Resources: map[string]Resource{"vcs": {Ceiling: 12, Withheld: 10}},
		Jobs: []cluster.Job{
			{ID: 1, Submitted: 5, State: cluster.JobWaiting, Told: &cluster.Told{Reason: "Priority"}},
			{ID: 2, Submitted: 6, State: cluster.JobWaiting, Told: &cluster.Told{Reason: "Licenses"}},
			{ID: 9, State: cluster.JobRunning},
		},
	}
	change(&v)
	return v
}

func run(v *View, i int) { v.Jobs[i].State = cluster.JobRunning }

func TestHowGuessesComeOut(t *testing.T) {
	const late = cluster.Time(grace)
	waited := Count{Outcome{WaitedAsGuessed, ""}, 1}
	for name, c := range map[string]struct {
		at     cluster.Time
		change func(*View)
		want   []Count
	}{
		"it starts":                  {1, func(v *View) { run(v, 0) }, []Count{{Outcome{StartedAsGuessed, ""}, 1}, waited}},
		"it began and has ended":     {1, func(v *View) { v.Jobs = v.Jobs[1:] }, []Count{{Outcome{StartedAsGuessed, ""}, 1}, waited}},
		"it has time to start":       {late - 1, func(*View) {}, []Count{waited}},
		"it does not start":          {late, func(*View) {}, []Count{waited, {Outcome{NotStarted, "Priority"}, 1}}},
		"nobody says why":            {late, func(v *View) { v.Jobs[0].Told = nil }, []Count{waited, {Outcome{NotStarted, ""}, 1}}},
		"one started that was not":   {1, func(v *View) { run(v, 1) }, []Count{{Outcome{Started, "tokens"}, 1}}},
		"one that was to wait ended": {1, func(v *View) { v.Jobs = slices.Delete(v.Jobs, 1, 2) }, nil},

		"a job ended before it started": {1, func(v *View) { run(v, 1); v.Jobs = v.Jobs[:2] }, nil},
		"tokens came before it started": {1, func(v *View) { run(v, 1); v.Resources["vcs"] = Resource{Ceiling: 12, Withheld: 4} }, nil},
		"a host came before it started": {1, func(v *View) { run(v, 1); v.Hosts = append(v.Hosts, Host{Name: "n2", State: HostReady}) }, nil},
		"a host that is not here yet frees nothing": {
			1, func(v *View) { run(v, 1); v.Hosts = append(v.Hosts, Host{Name: "n2", State: HostAwaited}) }, []Count{{Outcome{Started, "tokens"}, 1}},
		},
		"a resource that no session knew frees nothing": {
			1, func(v *View) { run(v, 1); v.Resources["sim"] = Resource{Ceiling: 1} }, []Count{{Outcome{Started, "tokens"}, 1}},
		},

		"its id is another job's now":     {late, func(v *View) { v.Jobs[0].Submitted++ }, []Count{{Outcome{StartedAsGuessed, ""}, 1}, waited}},
		"the other's id is another job's": {1, func(v *View) { v.Jobs[1].Submitted++; run(v, 1) }, nil},
		"a job of which nothing was said": {1, func(v *View) { v.Jobs = append(v.Jobs, cluster.Job{ID: 3}) }, []Count{waited}},
	} {
		var g Guesses
		g.Check(seen(0, func(*View) {}), grace) // nothing was said yet
		said(&g, 0)
		g.Check(seen(c.at, c.change), grace)
		if got := g.Tally(); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// One that does not start counts once, however often it is said that it will, and its time runs from the first.
func TestOneThatDoesNotStartCountsOnce(t *testing.T) {
	var g Guesses
	for at := cluster.Time(0); at < 4*cluster.Time(grace); at += cluster.Time(grace) / 3 {
		g.Check(seen(at, func(*View) {}), grace)
		said(&g, at)
	}
	var times int64
	for _, c := range g.Tally() {
		if c.What == NotStarted {
			times += c.Times
		}
	}
	if times != 1 {
		t.Errorf("%+v, want one that did not start", g.Tally())
	}
}

// Whatever becomes free between a guess and the look at it, no job that was to wait counts as
// started against that; and no look counts a job twice.
func TestNothingCountsWhenMoreCanBeHad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Guesses
		said(&g, 0)
		v := seen(cluster.Time(rapid.Int64Range(0, 2*int64(grace)).Draw(t, "later")), func(v *View) {
			for i := range 2 {
				if rapid.Bool().Draw(t, fmt.Sprintf("job %d runs", i+1)) {
					run(v, i)
				}
			}
			withheld := rapid.Int64Range(0, 12).Draw(t, "withheld")
			v.Resources["vcs"] = Resource{Ceiling: 12, Withheld: withheld}
			if rapid.Bool().Draw(t, "a job ends") {
				v.Jobs = v.Jobs[:2]
			}
			for i := range rapid.IntRange(0, 2).Draw(t, "hosts come") {
				v.Hosts = append(v.Hosts, Host{Name: fmt.Sprintf("m%d", i), State: HostReady})
			}
		})
		g.Check(v, grace)
		more := v.Resources["vcs"].Withheld != 10 || len(v.Jobs) < 3 || len(v.Hosts) > 1
		var counted int64
		for _, c := range g.Tally() {
			counted += c.Times
			if c.What == Started && more {
				t.Fatalf("%+v, though more could be had", g.Tally())
			}
		}
		if counted > 2 {
			t.Fatalf("%d outcomes of two jobs", counted)
		}
	})
}
