package simulation_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/model"
)

// randomTales are small farms of all kinds to which all kinds of things happen.
var randomTales = rapid.Custom(func(t *rapid.T) tale {
	d := draws{t}
	tl := tale{
		Begins:          rapid.SampledFrom([]cluster.Time{usually, at(2028, 2, 28), at(2026, 3, 28), at(2026, 10, 24)}).Draw(t, "begins"),
		SessionInterval: d.of("interval", 30*cluster.Second, cluster.Minute, 3*cluster.Minute),
		Policy:          scheduling.Policy{Order: rapid.SampledFrom([]scheduling.Order{"", scheduling.EASY, scheduling.Conservative}).Draw(t, "order")},
		Rules:           d.rules(),
	}
	tl.Simulation = simulation.Settings{
		Seed: d.number("seed", 0, 1<<40), Zone: rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York"}).Draw(t, "zone"),
		Hosts: []simulation.OwnedHosts{{Name: "node", Count: d.number("nodes", 1, 2), CPUs: 8}}, Patience: 3 * cluster.Hour,
		Steps: simulation.Steps{Controller: d.of("controller", 3, 17, 23, 51), News: d.of("news", 11, 53, 101), Stop: d.of("stop", 100, cluster.Second)},
	}
	d.providers(&tl)
	d.resources(&tl)
	d.jobs(&tl)
	d.orders(&tl)
	if d.is("thresholds", 4) {
		tl.Thresholds = []scheduling.Threshold{{Queue: "night", Jobs: d.number("jobs wait", 1, 3), Wait: d.of("wait", 0, 5*cluster.Minute)}}
	}
	tl.complete()
	return tl
})

func at(year, month, day int) cluster.Time {
	return cluster.TimeOf(time.Date(year, time.Month(month), day, 21, 0, 0, 0, time.UTC))
}

// draws draws the parts of a tale.
type draws struct{ *rapid.T }

func (d draws) number(label string, from, to int64) int64 {
	return rapid.Int64Range(from, to).Draw(d.T, label)
}

func (d draws) of(label string, all ...cluster.Duration) cluster.Duration {
	return rapid.SampledFrom(all).Draw(d.T, label)
}

// is is true in one of so many cases.
func (d draws) is(label string, of int64) bool { return d.number(label, 1, of) == of }

// percent is most often 0.
func (d draws) percent(label string) int64 {
	return rapid.SampledFrom([]int64{0, 0, 0, 20, 60}).Draw(d.T, label)
}

// moment is a time of the first hours: on the minute, or at any millisecond.
func (d draws) moment(label string, minutes int64) cluster.Duration {
	m := cluster.Duration(d.number(label, 2, minutes)) * cluster.Minute
	if d.is(label+" odd", 2) {
		m += cluster.Duration(d.number(label+" ms", 0, 59_999))
	}
	return m
}

func (d draws) delay(label string, typical cluster.Duration) model.Delay {
	switch d.number(label+" kind", 0, 2) {
	case 0:
		return model.Delay{Fixed: typical}
	case 1:
		return model.Delay{Min: typical / 2, Max: typical * 2}
	}
	return model.Delay{Median: typical, P95: 3 * typical, Max: 10 * typical}
}

func (d draws) rules() taleRules {
	r := cluster.DefaultHostRules()
	r.IdleTime = d.of("idle time", 5*cluster.Minute, 12*cluster.Minute)
	r.ReturnLost = d.is("return lost", 2)
	switch d.number("rules", 0, 4) {
	case 0:
		r.Max = 3
	case 1:
		r.Step = cluster.HostStep{Hosts: 2, Within: 5 * cluster.Minute}
	case 2:
		r.MaxLifetime = 40 * cluster.Minute
	case 3:
		r.Halt = cluster.HostHalt{Hosts: 1, Percent: 20}
	}
	return taleRules(r)
}

func (d draws) providers(tl *tale) {
	for i, name := range []string{"pool-a", "pool-b", "cloud", "cloud-b"}[:d.number("providers", 1, 4)] {
		// Odd lengths have little meet in one millisecond: which of two surveys that are under way is first there, one
		// that was slept through cannot know.
		odd := cluster.Duration(7 * i)
		tl.Providers = append(tl.Providers, taleProvider{
			Name: name, SurveyEvery: d.of(name+" survey", cluster.Minute, 5*cluster.Minute, 17*cluster.Minute) + odd, OrphanGrace: 5 * cluster.Minute,
		})
		p := model.Provider{
			Name: name, Answer: d.delay(name+" answer", d.of(name+" answer", 103, 709, 3001)+odd), PollInterval: d.of(name+" poll", 0, cluster.Minute),
			RetryAfter: d.of(name+" retry", 0, 0, 3*cluster.Minute), Partial: d.percent(name + " partial"), Refused: d.percent(name + " refused"),
			Unknown: d.percent(name + " unknown"), WholeReturn: d.is(name+" whole", 3),
		}
		if d.is(name+" decides", 3) {
			p.Decide = d.delay(name+" decide", 2*cluster.Minute)
		}
		if d.is(name+" outages", 4) {
			p.Outage = model.Spell{Times: []model.Period{{After: d.moment(name+" outage", 90), Lasts: d.of(name+" outage lasts", cluster.Minute, 20*cluster.Minute)}}}
		}
		if d.is(name+" stock", 4) {
			p.StockOut = model.Spell{Times: []model.Period{{After: d.moment(name+" stock out", 90), Lasts: 20 * cluster.Minute}}}
		}
		if name[0] == 'c' {
			d.templates(&p)
		} else {
			d.offers(&p)
		}
		tl.Simulation.Providers = append(tl.Simulation.Providers, p)
	}
}

func (d draws) templates(p *model.Provider) {
	if d.is(p.Name+" returning", 3) {
		p.Returning = d.delay(p.Name+" returning", cluster.Minute)
	}
	for i := range d.number(p.Name+" templates", 1, 2) {
		label := fmt.Sprintf("%s-t%d", p.Name, i)
		t := model.Template{
			Template: label, CPUs: 16 << i, MemoryMB: 65536, Boot: d.delay(label+" boot", 90*cluster.Second), NeverJoins: d.percent(label + " never"),
			Supply: model.Supply{Capacity: d.number(label+" capacity", 1, 5), Price: d.number(label+" price", 1, 3) * 100_000},
		}
		t.MinimumHold, t.BillingStep = d.of(label+" hold", 0, 0, 20*cluster.Minute), d.of(label+" step", 0, 0, 15*cluster.Minute)
		t.Dies, t.Reclaimed = d.of(label+" dies", 0, 0, 2*cluster.Hour), d.of(label+" reclaimed", 0, 0, cluster.Hour)
		t.Grace = d.of(label+" grace", 0, 2*cluster.Minute)
		p.Templates = append(p.Templates, t)
	}
}

func (d draws) offers(p *model.Provider) {
	for _, name := range []string{"vcs", "spice"} {
		label := p.Name + " " + name
		o := model.Offer{
			Resource: name, Supply: model.Supply{Capacity: d.number(label+" capacity", 1, 9), Price: d.number(label+" price", 1, 3) * 100_000},
			MaxRequest: d.number(label+" most", 0, 3), MaxOpen: d.number(label+" open", 0, 2), Recalled: d.of(label+" recalled", 0, 0, cluster.Hour),
		}
		o.MinimumHold, o.BillingStep = d.of(label+" hold", 0, 0, 20*cluster.Minute), d.of(label+" step", 0, 0, 15*cluster.Minute)
		if d.is(label+" changes", 4) {
			more := d.number(label+" more", 0, 9)
			o.Steps = []model.Step{{After: d.moment(label+" then", 60), Capacity: &more}}
			o.Windows = []model.Window{{From: "23:00", To: "03:30", Price: &more}}
		}
		p.Offers = append(p.Offers, o)
	}
}

func (d draws) resources(tl *tale) {
	var lenders []string
	for _, p := range tl.Providers {
		if p.Name[0] == 'p' {
			lenders = append(lenders, p.Name)
		}
	}
	for _, name := range []string{"vcs", "spice"} {
		r := cluster.SharedResource{Name: name, Owned: d.number(name+" owned", 1, 4), UnitWeight: 1, Elastic: &cluster.Elastic{
			Lenders: lenders, MaxBorrowed: d.number(name+" most", 1, 8), IdleTime: d.of(name+" idle", 3*cluster.Minute, 15*cluster.Minute),
			MinimumHold: d.of(name+" hold", 0, 10*cluster.Minute),
		}}
		if d.is(name+" kept back", 5) {
			r.KeepBack = 1
		}
		tl.Resources = append(tl.Resources, r)
	}
}

func (d draws) jobs(tl *tale) {
	most := int64(8)
	for _, p := range tl.Simulation.Providers {
		for _, t := range p.Templates {
			most = max(most, t.CPUs)
		}
	}
	tl.Jobs = []taleJob{{JobSpec: cluster.JobSpec{CPUs: 1}, Run: cluster.Minute}}
	for i := range d.number("jobs", 1, 9) {
		label := fmt.Sprintf("job %d", i)
		j := taleJob{At: d.moment(label, 90), Count: d.number(label+" count", 1, 4), Run: d.moment(label+" run", 40)}
		j.CPUs, j.Priority = d.number(label+" cpus", 1, most), d.number(label+" priority", 0, 1)
		j.Queue = rapid.SampledFrom([]string{"", "night"}).Draw(d.T, label+" queue")
		for _, r := range tl.Resources {
			if d.is(label+" "+r.Name, 2) {
				if j.Tokens == nil {
					j.Tokens = map[string]int64{}
				}
				j.Tokens[r.Name] = d.number(label+" "+r.Name+" units", 1, max(min(r.Ceiling(), 5), 1))
			}
		}
		if d.is(label+" limit", 2) {
			j.TimeLimit = d.moment(label+" limit", 50)
		}
		if d.is(label+" alternatives", 6) {
			j.Tokens, j.Alternatives = nil, []map[string]int64{{"vcs": 1}, {"spice": 1}}
		}
		tl.Jobs = append(tl.Jobs, j)
	}
}

func (d draws) orders(tl *tale) {
	var last cluster.Duration
	for i := range d.number("orders", 0, 3) {
		label := fmt.Sprintf("order %d", i)
		last += d.moment(label, 30)
		o := simulation.Order{After: last, Why: "a check"}
		switch o.Do = rapid.SampledFrom([]string{"return", "drain", "undrain", "hold", "release", "gone", "believe", "own", "lend"}).Draw(d.T, label+" do"); o.Do {
		case "return":
			o.Subject, o.Units = rapid.SampledFrom([]string{"loan/vcs/pool-a-1", "loan/vcs/pool-a-2", "loan/spice/pool-b-1"}).Draw(d.T, label+" of"), d.number(label+" units", 0, 3)
		case "believe":
			o.Subject = "cloud"
		case "own", "lend":
			o.Subject, o.Units = "vcs", d.number(label+" units", 0, 4)
		default:
			o.Subject = rapid.SampledFrom([]string{"host/cloud-t0-1", "host/cloud-t0-2", "host/cloud-t1-1"}).Draw(d.T, label+" of")
			o.Within, o.Requeue = d.of(label+" within", 0, 3*cluster.Minute), o.Do == "drain"
		}
		tl.Simulation.Operator = append(tl.Simulation.Operator, o)
	}
	// A controller that starts anew takes everything for free, which moves promises.
	if d.is("restarts", 3) && tl.Policy.Order != scheduling.Conservative {
		tl.Restarts = []cluster.Duration{d.moment("restart", 60), d.moment("another restart", 120)}
	}
}

// mostRandom is how many random scenarios are played twice.
const mostRandom = 30

func TestWhateverHappensSimulatedAndLiveTotalsAreIdentical(t *testing.T) {
	t.Parallel()
	if racing {
		t.Skip("the race detector sees nothing here, and takes long")
	}
	var changes atomic.Int64
	t.Cleanup(func() { t.Logf("%d scenarios with %d changes", mostRandom, changes.Load()) })
	for seed := range mostRandom {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			tl := randomTales.Example(seed)
			r := simulate(t, tl)
			for _, o := range r.Outcomes {
				if o.End == 0 {
					tl.Waiting++
				}
			}
			checkIdentical(t, tl, r)
			changes.Add(int64(len(r.Changes)))
		})
	}
}
