package simulation_test

import (
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/simulation/trace"
)

// cloudFarm has nothing but a cloud whose hosts behave as t says.
func cloudFarm(t model.Template) simulation.Farm {
	t.Template, t.CPUs, t.Capacity = "c4", 4, 3
	return simulation.Farm{
		Name: "east", SessionInterval: 5 * cluster.Second, Rules: cluster.DefaultHostRules(),
		Providers: []simulation.Provider{{Name: "cloud", SurveyEvery: cluster.Minute, OrphanGrace: 10 * cluster.Minute}},
		Settings:  simulation.Settings{Providers: []model.Provider{{Name: "cloud", Answer: model.Delay{Fixed: 500}, Templates: []model.Template{t}}}},
	}
}

func TestAJobThatOutlivesItsHostsIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	farm := cloudFarm(model.Template{Boot: model.Delay{Fixed: 60_000}, Supply: model.Supply{Price: 100}, Reclaimed: 6 * cluster.Hour, Grace: 2 * cluster.Minute})
	jobs := &trace.Trace{Jobs: []trace.Job{{ID: 1, Submit: monday, Run: 400 * cluster.Hour, Shape: &trace.Shape{JobSpec: cluster.JobSpec{CPUs: 1}}}}}
	r, err := simulation.Run(t.Context(), farm, jobs, simulation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.Outcomes[0]; o.End != 0 || o.Requeues < 20 || r.Ended.Sub(r.Began) > 60*24*cluster.Hour {
		t.Errorf("it is %+v after %s", o, r.Ended.Sub(r.Began))
	}
}

func TestRequestsAreCountedOnceAndByWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	farm := cloudFarm(model.Template{Boot: model.Delay{Fixed: 60_000}, NeverJoins: 10})
	farm.Settings.Providers[0].Unknown, farm.Settings.Providers[0].Refused = 30, 20
	farm.Settings.Providers[0].Decide = model.Delay{Fixed: 90_000}
	jobs := &trace.Trace{}
	for i := range 60 {
		jobs.Jobs = append(jobs.Jobs, trace.Job{
			ID: int64(i + 1), Submit: monday.Add(cluster.Duration(i) * 40 * cluster.Minute), Run: 20 * cluster.Minute, Shape: &trace.Shape{JobSpec: cluster.JobSpec{CPUs: 4}},
		})
	}
	r, err := simulation.Run(t.Context(), farm, jobs, simulation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made := int64(0)
	for _, m := range r.Machines {
		if m.Expected > 0 {
			made++
		}
	}
	p := r.Providers[0]
	if p.Granted != made || p.Requests != p.Granted+p.Partial+p.Refused || p.Unknown == 0 || p.Unknown > p.Requests || made == 0 || p.Refused == 0 {
		t.Errorf("%+v; %d hosts were made", p, made)
	}
	var reasons int64
	for _, c := range p.Refusals {
		reasons += c.N
	}
	if reasons != p.Refused {
		t.Errorf("%d refusals have reasons %+v", p.Refused, p.Refusals)
	}
}

func TestSessionsThatWaitForALateHostAreCountedWhetherTheyAreHeldOrNot(t *testing.T) {
	farm := cloudFarm(model.Template{Latency: cluster.Minute, Boot: model.Delay{Fixed: 11 * cluster.Minute}})
	farm.Policy.Order = scheduling.EASY
	jobs := &trace.Trace{Jobs: []trace.Job{{ID: 1, Submit: monday, Run: cluster.Minute, Shape: &trace.Shape{JobSpec: cluster.JobSpec{CPUs: 4}}}}}
	var sessions [2]int64
	for i, awake := range []bool{false, true} {
		r, err := simulation.Run(t.Context(), farm, jobs, simulation.Options{Awake: awake})
		if err != nil {
			t.Fatal(err)
		}
		sessions[i] = r.Sessions
	}
	if late := int64(10 * cluster.Minute / farm.SessionInterval); sessions[0] != sessions[1] || sessions[0] < late {
		t.Errorf("there are %d sessions, and %d of one that stays awake; the host is late for %d", sessions[0], sessions[1], late)
	}
}
