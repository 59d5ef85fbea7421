package policy

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func demandOf(template string, hosts int64) cluster.Demand {
	return cluster.Demand{Template: template, Provider: "cloud", Units: hosts, Jobs: []int64{1, 2}, Reason: "jobs 1, 2 wait"}
}

func TestProvision(t *testing.T) {
	template := func(change func(*cluster.Template)) []cluster.Template {
		t := cluster.Template{Name: "c16", Provider: "cloud", Headroom: 9}
		change(&t)
		return []cluster.Template{t}
	}
	plain := template(func(*cluster.Template) {})
	tests := []struct {
		name      string
		demand    cluster.Demand
		templates []cluster.Template
		want      int64 // hosts of the one plan; 0 means no plan
	}{
		{"all that is demanded", demandOf("c16", 5), plain, 5},
		{"the demand is used up", demandOf("c16", 0), plain, 0},
		{"more is on its way than is demanded", demandOf("c16", -2), plain, 0},
		{"the template is made no more", demandOf("c32", 5), plain, 0},
		{"demand for tokens", demandFor("vcs", 5), plain, 0},
		{"demand for tokens, and a template without a name", demandFor("vcs", 5), template(func(t *cluster.Template) { t.Name = "" }), 0},
		{"the headroom has become less", demandOf("c16", 5), template(func(t *cluster.Template) { t.Headroom = 3 }), 3},
		{"there is no headroom", demandOf("c16", 5), template(func(t *cluster.Template) { t.Headroom = 0 }), 0},
		{"there is less than none", demandOf("c16", 5), template(func(t *cluster.Template) { t.Headroom = -1 }), 0},
		{"very many", demandOf("c16", 500), template(func(t *cluster.Template) { t.Headroom = 1000 }), 100},
		{"it is to be left alone", demandOf("c16", 5), template(func(t *cluster.Template) { t.BackoffUntil = start + 1 }), 0},
		{"no longer", demandOf("c16", 5), template(func(t *cluster.Template) { t.Refusals, t.BackoffUntil = 3, start }), 5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plans := Provision(HostView{Demand: []cluster.Demand{test.demand}, Templates: test.templates}, start)
			switch {
			case test.want == 0 && len(plans) > 0, test.want > 0 && len(plans) != 1:
				t.Fatalf("got %+v", plans)
			case test.want > 0 && (plans[0].Hosts != test.want || !reflect.DeepEqual(plans[0].Demand, test.demand) || !reflect.DeepEqual(plans[0].Template, test.templates[0])):
				t.Errorf("got %+v, want %d hosts", plans[0], test.want)
			}
		})
	}
}

func TestATemplateThatIsLeftAloneStopsNoOther(t *testing.T) {
	view := HostView{}
	for _, name := range []string{"c", "b", "a"} {
		view.Demand = append(view.Demand, demandOf(name, 60))
		view.Templates = append(view.Templates, cluster.Template{Name: name, Headroom: 60})
	}
	view.Templates[1].BackoffUntil = start + 1
	var got []string
	for _, p := range Provision(view, start) {
		got = append(got, fmt.Sprint(p.Template.Name, p.Hosts))
	}
	if want := []string{"a60", "c40"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if view.Demand[0].Template != "c" {
		t.Error("the demand itself was put in order")
	}
}

func drawHostView(t *rapid.T) (view HostView) {
	for i := range rapid.IntRange(0, 4).Draw(t, "templates") {
		name := fmt.Sprintf("c%d", i)
		view.Templates = append(view.Templates, cluster.Template{
			Name: name, Provider: "cloud", Headroom: rapid.Int64Range(0, 300).Draw(t, "headroom"),
			BackoffUntil: start + rapid.SampledFrom([]cluster.Time{-mins, 0, mins}).Draw(t, "back-off"),
		})
		if rapid.IntRange(0, 3).Draw(t, "demanded") > 0 {
			view.Demand = append(view.Demand, demandOf(name, rapid.Int64Range(-1, 300).Draw(t, "demand")))
		}
	}
	return view
}

// wanted is what may be asked for of a template.
func (v HostView) wanted(name string) (hosts int64) {
	for _, d := range v.Demand {
		for _, tmpl := range v.Templates {
			if d.Template == name && tmpl.Name == name && start >= tmpl.BackoffUntil {
				hosts = max(min(d.Units, tmpl.Headroom), 0)
			}
		}
	}
	return hosts
}

func TestPlansOfHostsStayWithinDemandAndHeadroom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view, total := drawHostView(t), int64(0)
		plans := Provision(view, start)
		for _, p := range plans {
			if total += p.Hosts; p.Hosts < 1 || p.Hosts > view.wanted(p.Template.Name) {
				t.Fatalf("%d hosts of %+v", p.Hosts, p.Template)
			}
		}
		if total > mostHostsAtOnce {
			t.Fatalf("%d hosts in one step", total)
		}
		shuffled := HostView{Demand: rapid.Permutation(view.Demand).Draw(t, "demand"), Templates: rapid.Permutation(view.Templates).Draw(t, "order")}
		if again := Provision(shuffled, start); !reflect.DeepEqual(plans, again) {
			t.Fatalf("another order gives %+v instead of %+v", again, plans)
		}
	})
}

func TestStepByStepExactlyWhatIsWantedIsAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view := drawHostView(t)
		before := fmt.Sprint(view)
		asked := map[string]int64{}
		left := view
		for plans := Provision(left, start); len(plans) > 0; plans = Provision(left, start) {
			for _, p := range plans {
				asked[p.Template.Name] += p.Hosts
			}
			left = left.Without(plans)
		}
		for _, tmpl := range view.Templates {
			if got, want := asked[tmpl.Name], view.wanted(tmpl.Name); got != want {
				t.Fatalf("%d hosts of %s, want %d: %+v", got, tmpl.Name, want, view)
			}
		}
		if fmt.Sprint(view) != before {
			t.Fatalf("the view itself was changed to %+v", view)
		}
	})
}

func TestReturnHost(t *testing.T) {
	const idleTime = 10 * cluster.Minute
	tests := []struct {
		name       string
		hold, step cluster.Duration
		idle, now  cluster.Time // since the host was made; an idle of -1 is none
		want       bool
		again      cluster.Time
	}{
		{name: "idle for long enough", idle: 5 * mins, now: 15 * mins, want: true, again: 15 * mins},
		{name: "for longer", idle: 5 * mins, now: 25 * mins, want: true, again: 25 * mins},
		{name: "not yet", idle: 5 * mins, now: 15*mins - 1, again: 15 * mins},
		{name: "with jobs", idle: -1, now: 15 * mins, again: 25 * mins},
		{name: "held", hold: cluster.Hour, idle: 5 * mins, now: 15 * mins, again: 60 * mins},
		{name: "held no longer", hold: cluster.Hour, idle: 5 * mins, now: 60 * mins, want: true, again: 60 * mins},
		{name: "held, and with jobs", hold: cluster.Hour, idle: -1, now: 15 * mins, again: 60 * mins},
		{name: "held, and idle for too short a time", hold: cluster.Hour, idle: 55 * mins, now: 60 * mins, again: 65 * mins},
		{name: "in a step that is paid for", step: cluster.Hour, idle: 5 * mins, now: 15 * mins, again: 55 * mins},
		{name: "at the end of the step", step: cluster.Hour, idle: 5 * mins, now: 55 * mins, want: true, again: 55 * mins},
		{name: "ripe shortly after a step began", step: cluster.Hour, idle: 52 * mins, now: 55 * mins, again: 115 * mins},
		{name: "with jobs near the end of a step", step: cluster.Hour, idle: -1, now: 50 * mins, again: 115 * mins},
		{name: "idle since what is the future by a clock set back", idle: 20 * mins, now: 15 * mins, again: 30 * mins},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			row := cluster.ElasticHost{Made: start, HoldUntil: start.Add(test.hold), HostTerms: cluster.HostTerms{BillingStep: test.step, IdleTime: idleTime}}
			since := start + test.idle
			if test.idle < 0 {
				since = 0
			}
			got, again := ReturnHost(row, since, start+test.now)
			if got != test.want || again != start+test.again {
				t.Errorf("goes back: %t, asks again after %s; want %t after %s", got, again.Sub(start), test.want, cluster.Duration(test.again))
			}
		})
	}
}

func drawHostRow(t *rapid.T) cluster.ElasticHost {
	row := cluster.ElasticHost{Made: start + drawMinutes(t, 60, "made")}
	row.HoldUntil = row.Made + drawMinutes(t, 60, "hold")
	row.BillingStep = cluster.Duration(drawMinutes(t, 60, "billing step"))
	row.IdleTime = cluster.Duration(drawMinutes(t, 20, "idle time"))
	return row
}

func TestAHostGoesBackOnlyWhenAllAllowsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := drawHostRow(t)
		now := row.Made + drawMinutes(t, 200, "now") + cluster.Time(rapid.Int64Range(0, 60_000).Draw(t, "and more"))
		since := cluster.Time(0)
		if rapid.Bool().Draw(t, "idle") {
			since = max(now-drawMinutes(t, 60, "idle for"), row.Made)
		}
		back, again := ReturnHost(row, since, now)
		switch {
		case back && (since == 0 || since.Add(row.IdleTime) > now || now < row.HoldUntil):
			t.Fatalf("%+v, idle since %s, goes back at %s", row, since.Clock(), now.Clock())
		case back && row.BillingStep > 0 && now != row.HoldUntil:
			if left := row.BillingStep - now.Sub(row.Made)%row.BillingStep; left > returnLead(row.BillingStep) {
				t.Fatalf("%+v goes back %s before the next step", row, left)
			}
		case !back && again <= now:
			t.Fatalf("%+v asks again at %s, and it is %s", row, again.Clock(), now.Clock())
		}
		if since == 0 || back {
			return
		}
		if then, _ := ReturnHost(row, since, again); !then {
			t.Fatalf("%+v, idle since %s, is asked in vain at %s", row, since.Clock(), again.Clock())
		}
		for at := now; at < again; at += cluster.Time(30 * cluster.Second) {
			if missed, _ := ReturnHost(row, since, at); missed {
				t.Fatalf("asked at %s, again at %s; could go at %s", now.Clock(), again.Clock(), at.Clock())
			}
		}
	})
}

// A host that lies idle from its joining on is asked about the first time when it can go.
func TestTheFirstQuestionComesAsSoonAsAHostCouldGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := drawHostRow(t)
		joined := row.Made + drawMinutes(t, 20, "joined")
		first := FirstReturn(row, joined)
		if back, _ := ReturnHost(row, joined, first); !back {
			t.Fatalf("%+v, joined at %s, cannot go at %s", row, joined.Clock(), first.Clock())
		}
		for at := joined; at < first; at += cluster.Time(30 * cluster.Second) {
			if back, _ := ReturnHost(row, joined, at); back {
				t.Fatalf("%+v, joined at %s, is asked at %s and could go at %s", row, joined.Clock(), first.Clock(), at.Clock())
			}
		}
	})
}
