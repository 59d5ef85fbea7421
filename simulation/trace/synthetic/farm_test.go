package synthetic

import (
	"math"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// fourWeeks of the built-in farm.
func fourWeeks(t *testing.T) (*trace.Trace, map[string]*Need) {
	t.Helper()
	needs := map[string]*Need{}
	p := builtIn()
	for i := range p.Needs {
		needs[p.Needs[i].Name] = &p.Needs[i]
	}
	return generate(t, Options{Kind: EDA, Seed: 9, Span: 28 * dayLength}), needs
}

func TestAFarmHasTheSharesOfItsProfile(t *testing.T) {
	made, needs := fourWeeks(t)
	var sum float64
	for _, n := range needs {
		sum += float64(n.Weight)
	}
	s := Summarize(made, defaultStart, 0)
	if len(s.Kinds) != len(needs) {
		t.Fatalf("there are kinds %+v", s.Kinds)
	}
	for _, k := range s.Kinds {
		n := needs[k.Name]
		want := float64(n.Weight) / sum * float64(s.Jobs)
		// Jobs come by submissions; of few there are more or less by chance.
		if bound := deviations * math.Sqrt(want*float64(n.Together)*2); math.Abs(float64(k.Jobs)-want) > bound {
			t.Errorf("there are %d jobs of %s, and %.0f±%.0f are expected", k.Jobs, k.Name, want, bound)
		}
		if k.Users > n.Users || k.Users < n.Users/2 {
			t.Errorf("%d of %d users have jobs of %s", k.Users, n.Users, k.Name)
		}
	}
}

func TestRunTimesOfAFarmAreThoseOfItsProfile(t *testing.T) {
	made, needs := fourWeeks(t)
	logs := map[string]sample{}
	for _, j := range made.Jobs {
		n := needs[j.Shape.Application]
		if j.Run < n.Run.Shortest || j.Run > n.Run.Longest {
			t.Fatalf("a job of %s runs %s", n.Name, j.Run)
		}
		logs[n.Name] = append(logs[n.Name], math.Log(float64(j.Run)/float64(n.Run.Median)))
	}
	for name, log := range logs {
		log.hasMean(t, name, 0, 0)
		if got, most := math.Sqrt(log.variance()), math.Log(needs[name].Run.Spread); got > most*1.02 || got < most*0.9 {
			t.Errorf("%s: the spread is %.2f, and %.2f is expected", name, math.Exp(got), math.Exp(most))
		}
	}
}

func TestRegressionsRunAtNightAndCheckInsInWorkingHours(t *testing.T) {
	made, _ := fourWeeks(t)
	jobs, night, office, weekend := map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, j := range made.Jobs {
		at, name := j.Submit.Std(), j.Shape.Application
		jobs[name]++
		if at.Hour() >= 20 || at.Hour() < 2 {
			night[name]++
		}
		if at.Hour() >= 8 && at.Hour() < 19 {
			office[name]++
		}
		if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			weekend[name]++
		}
	}
	if got := night["nightly-regression"] / jobs["nightly-regression"]; got < 0.98 {
		t.Errorf("%.2f of the regressions come at night", got)
	}
	if got := office["check-in"] / jobs["check-in"]; got < 0.8 {
		t.Errorf("%.2f of the check-ins come in working hours", got)
	}
	if got, want := weekend["check-in"]/jobs["check-in"], 0.2/5.2; math.Abs(got-want) > 0.015 {
		t.Errorf("%.3f of the check-ins come at weekends, and %.3f is expected", got, want)
	}
}

func TestAUserWithAHabitSubmitsAtTheSameTimeEveryNight(t *testing.T) {
	made, _ := fourWeeks(t)
	var last *trace.Job
	minutes := map[string]sample{}
	for i := range made.Jobs {
		j := &made.Jobs[i]
		if j.Shape.Application != "nightly-regression" {
			continue
		}
		if last == nil || j.Shape != last.Shape {
			at := j.Submit.Std()
			minutes[j.Shape.User] = append(minutes[j.Shape.User], float64(at.Hour()*60+at.Minute()))
		}
		last = j
	}
	spreads, means := sample{}, sample{}
	for _, s := range minutes {
		if len(s) > 5 {
			spreads, means = append(spreads, math.Sqrt(s.variance())), append(means, s.mean())
		}
	}
	if len(means) < 3 || spreads.mean() > 30 || math.Sqrt(means.variance()) < 30 {
		t.Errorf("%d users submit at minutes %.0f of the day, give or take %.0f", len(means), means, spreads)
	}
}

func TestJobsOfAFarmAskForWhatTheProfileSays(t *testing.T) {
	made, needs := fourWeeks(t)
	limitless := map[string]int{}
	jobs := map[string]int{}
	for _, j := range made.Jobs {
		n, s := needs[j.Shape.Application], j.Shape
		if s.Queue != n.Queue || s.Group != n.Team || s.Priority != n.Priority || s.Name != n.Name || !asked(n, s) {
			t.Fatalf("a job of %s is %+v", n.Name, s)
		}
		jobs[n.Name]++
		if j.Limit == 0 {
			limitless[n.Name]++
		} else if j.Limit != usualLimit(j.Limit) || j.Limit > usualLimit(cluster.Duration(float64(j.Run)*n.LimitFactor)) {
			t.Fatalf("a job of %s runs %s and has a limit of %s", n.Name, j.Run, j.Limit)
		}
	}
	for name, n := range needs {
		got := float64(limitless[name]) / float64(jobs[name])
		if want := float64(n.NoLimitPercent) / 100; math.Abs(got-want) > 0.1 || want == 0 && got != 0 {
			t.Errorf("%.2f of the jobs of %s have no limit, and %.2f is expected", got, name, want)
		}
	}
}

func asked(n *Need, s *trace.Shape) bool {
	for _, a := range n.Asks {
		if a.CPUs == s.CPUs && a.MemoryMB == s.MemoryMB && len(a.Tokens) == len(s.Tokens) && len(a.Alternatives) == len(s.Alternatives) {
			return true
		}
	}
	return false
}
