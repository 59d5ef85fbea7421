package sweep

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/simulation/trace"
)

const monday = cluster.Time(1_767_571_200_000)

// smallFarm has a host, tokens that can be borrowed, hosts that can be made, and terms of every kind.
func smallFarm() simulation.Farm {
	none, some := int64(0), int64(5)
	return simulation.Farm{
		Name: "east", SessionInterval: 5 * cluster.Second, Rules: cluster.DefaultHostRules(),
		Resources: []cluster.SharedResource{
			{Name: "vcs", Owned: 1, Elastic: &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: 4, IdleTime: 10 * cluster.Minute}},
			{Name: "pt", Owned: 50},
		},
		Providers: []simulation.Provider{{Name: "pool", SurveyEvery: cluster.Minute}, {Name: "cloud", SurveyEvery: cluster.Minute}},
		Settings: simulation.Settings{
			Hosts: []simulation.OwnedHosts{{Name: "node", CPUs: 2}},
			Providers: []model.Provider{
				{Name: "pool", Answer: model.Delay{Fixed: 300}, Offers: []model.Offer{{Resource: "vcs", Supply: model.Supply{
					Capacity: 2, Price: 100, Steps: []model.Step{{After: cluster.Hour, Capacity: &some}},
					Windows: []model.Window{{From: "08:00", To: "18:00", Capacity: &none}},
				}}}},
				{Name: "cloud", Templates: []model.Template{{Template: "c4", CPUs: 4, Boot: model.Delay{Fixed: 60_000}, Supply: model.Supply{
					Capacity: 3, Price: 200, Steps: []model.Step{{After: cluster.Hour, Capacity: &none}},
				}}}},
			},
		},
	}
}

func smallTrace(jobs int) *trace.Trace {
	t := &trace.Trace{}
	shape := &trace.Shape{JobSpec: cluster.JobSpec{CPUs: 1, Tokens: map[string]int64{"vcs": 1}}}
	for i := range jobs {
		t.Jobs = append(t.Jobs, trace.Job{ID: int64(i + 1), Submit: monday.Add(cluster.Duration(i) * cluster.Minute), Run: 15 * cluster.Minute, Shape: shape})
	}
	return t
}

func TestVariantsAndBaselinesLeaveTheFarmAsItIs(t *testing.T) {
	farm := smallFarm()
	if _, err := Variants(farm, []Axis{{"vcs.max_borrowed", []string{"0", "9"}}, {"c4.capacity", []string{"7"}}, {"host_idle_time", []string{"1h"}}}); err != nil {
		t.Fatal(err)
	}
	Baselines(farm)
	if !reflect.DeepEqual(farm, smallFarm()) {
		t.Errorf("the farm is now %+v", farm)
	}
}

func TestBaselinesAreTheTwoEndsAndHaveNoWaitAtBest(t *testing.T) {
	means := map[string]cluster.Duration{}
	variants := append([]Variant{{Name: "plain", Farm: smallFarm()}}, Baselines(smallFarm())...)
	err := Run(t.Context(), variants, smallTrace(40), 2, nil, func(v Variant, r *simulation.Result) error {
		var sum cluster.Duration
		for i, o := range r.Outcomes {
			if o.State != simulation.Done {
				t.Errorf("%s: job %d is %d", v.Name, i+1, o.State)
			}
			sum += o.Start.Sub(r.Trace.Jobs[i].Submit)
		}
		means[v.Name] = sum / 40
		if v.Name == Nothing && len(r.Loans)+len(r.Machines) > 0 {
			t.Errorf("%d loans and %d hosts where nothing is elastic", len(r.Loans), len(r.Machines))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if means[Oracle] != 0 || means[Unlimited] >= means["plain"] || means["plain"] >= means[Nothing] {
		t.Errorf("mean waits are %v", means)
	}
}

func TestResultsComeInTheOrderOfTheVariants(t *testing.T) {
	variants, err := Variants(smallFarm(), []Axis{{"seed", []string{"1", "2", "3", "4", "5", "6", "7"}}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	done := 0
	err = Run(t.Context(), variants, smallTrace(5), 3, func(n int) { done = n }, func(v Variant, r *simulation.Result) error {
		names = append(names, v.Name)
		if r.Label != v.Name {
			t.Errorf("the result of %s is that of %s", v.Name, r.Label)
		}
		return nil
	})
	if err != nil || done != 7 || !slices.Equal(names, []string{"seed=1", "seed=2", "seed=3", "seed=4", "seed=5", "seed=6", "seed=7"}) {
		t.Errorf("%v, %d done: %v", names, done, err)
	}
}

func TestWhatIsBrokenOffIsNotHandedOver(t *testing.T) {
	variants, err := Variants(smallFarm(), []Axis{{"seed", []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	taken := 0
	err = Run(ctx, variants, smallTrace(50), 1, nil, func(_ Variant, r *simulation.Result) error {
		if r.Stopped {
			t.Error("half a result is handed over")
		}
		taken++
		stop()
		return nil
	})
	if !errors.Is(err, ErrStopped) || taken == 0 || taken == len(variants) {
		t.Errorf("%d of %d were taken: %v", taken, len(variants), err)
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"colour=1":                     `nothing called "colour"`,
		"dc.max_borrowed=1":            `nothing called "dc" has that`,
		"pt.max_borrowed=1":            "resource pt is not elastic",
		"max_borrowed=-1":              "not a whole number of 0 or more",
		"idle_time=soon":               "not a number with a unit",
		"order=random":                 "no order",
		"price=9000000000000000000":    "too much to add up",
		"capacity=9000000000000000000": "too many",
	} {
		axis, err := ParseAxis(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Variants(smallFarm(), []Axis{axis}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := Variants(smallFarm(), []Axis{{"seed", []string{"1"}}, {"seed", []string{"2"}}}); err == nil || !strings.Contains(err.Error(), "varied twice") {
		t.Errorf("a setting that is varied twice: %v", err)
	}
	for _, text := range []string{"idle_time", "=1", "seed=", "seed=1,1"} {
		if _, err := ParseAxis(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
