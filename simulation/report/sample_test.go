package report

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

// epoch is when made results begin: 2026-01-05T00:00:00Z, a Monday.
const epoch cluster.Time = 1_767_571_200_000

// sample makes a result of so many jobs that adds up: every job waits for a while, some for hosts and
// some for tokens, and the series say the same as the jobs do. The same seed makes the same.
func sample(jobs int, seed uint64) *simulation.Result {
	m := &maker{draw: rand.New(rand.NewPCG(seed, 7)), r: &simulation.Result{
		Cluster: "farm", Seed: seed, Began: epoch, Ended: epoch,
		Trace:  &trace.Trace{Source: "farm.swf"},
		Causes: []string{"nothing", "hosts", "tokens of vcs", "tokens of spice", "priority", "provisioning"},
	}}
	m.jobs(jobs)
	m.jobSeries()
	m.supply()
	m.tell()
	return m.r
}

type maker struct {
	draw *rand.Rand
	r    *simulation.Result
}

func (m *maker) shapes() []*trace.Shape {
	var shapes []*trace.Shape
	for i, queue := range []string{"regress", "verify", "long", ""} {
		s := &trace.Shape{User: fmt.Sprintf("user%d", i), Application: "sim"}
		s.Queue, s.Nodes, s.CPUs = queue, int64(i%2), int64(1+i)
		if i < 2 {
			s.Tokens = map[string]int64{"vcs": 1 + int64(i)}
		}
		shapes = append(shapes, s)
	}
	return shapes
}

func (m *maker) jobs(n int) {
	shapes, at := m.shapes(), epoch
	for i := range n {
		j := trace.Job{ID: int64(i + 1), Submit: at, Run: cluster.Duration(m.draw.Int64N(20 + m.draw.Int64N(40_000_000))), Waited: -1, Shape: shapes[m.draw.IntN(len(shapes))]}
		o := simulation.Outcome{State: simulation.Done}
		if m.draw.IntN(3) > 0 {
			o.Cause = uint16(1 + m.draw.IntN(len(m.r.Causes)-1))
			o.Start = at.Add(cluster.Duration(1 + m.draw.Int64N(1+m.draw.Int64N(int64(o.Cause)*20_000_000))))
		} else {
			o.Start = at
		}
		o.End = o.Start.Add(j.Run)
		if m.draw.IntN(40) == 0 {
			o.State = simulation.TimedOut
		}
		m.r.Trace.Jobs, m.r.Outcomes = append(m.r.Trace.Jobs, j), append(m.r.Outcomes, o)
		m.r.Ended = max(m.r.Ended, o.End)
		at = at.Add(cluster.Duration(m.draw.Int64N(600_000)))
	}
}

// jobSeries counts the jobs over the time, as they are.
func (m *maker) jobSeries() {
	type step struct {
		at               cluster.Time
		waiting, running int64
	}
	var steps []step
	for i, o := range m.r.Outcomes {
		if !tookPart(o.State) {
			continue
		}
		steps = append(steps, step{m.r.Trace.Jobs[i].Submit, 1, 0})
		if started(o.State) {
			steps = append(steps, step{o.Start, -1, 1})
		}
		if ended(o.State) {
			steps = append(steps, step{o.End, 0, -1})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	m.r.Jobs = series.New(simulation.JobColumns)
	m.r.Jobs.Note(m.r.Began, 0, 0)
	var waiting, running int64
	for _, s := range steps {
		waiting, running = waiting+s.waiting, running+s.running
		m.r.Jobs.Note(s.at, waiting, running)
	}
	m.r.Jobs.Note(m.r.Ended, waiting, running)
}

// supply makes hosts, loans and providers that need not fit the jobs.
func (m *maker) supply() {
	points := len(m.r.Outcomes)
	if points == 0 {
		return
	}
	m.r.Hosts = series.New(simulation.HostColumns)
	vcs, spice := series.New(simulation.ResourceColumns), series.New(simulation.ResourceColumns)
	whole := m.r.Ended.Sub(m.r.Began)
	walk := []int64{30, 20, 0, 2, 8, 3, 0, 0}
	borrowed, wait := int64(0), int64(0)
	for i := range points {
		at := m.r.Began.Add(whole / cluster.Duration(points) * cluster.Duration(i))
		for c := range walk {
			walk[c] = max(0, walk[c]+m.draw.Int64N(3)-1)
		}
		walk[1] = max(0, 50-walk[0])
		borrowed, wait = min(30, max(0, borrowed+m.draw.Int64N(3)-1)), min(60, max(0, wait+m.draw.Int64N(5)-2))
		m.r.Hosts.Note(at, walk...)
		vcs.Note(at, 20, borrowed, 0, min(20+borrowed, 12+wait), wait)
		spice.Note(at, 8, 0, min(borrowed, 3), min(5, wait), 0)
	}
	m.r.Hosts.Note(m.r.Ended, walk...)
	vcs.Note(m.r.Ended, 20, borrowed, 0, 10, 0)
	spice.Note(m.r.Ended, 8, 0, 0, 0, 0)
	hour := int64(cluster.Hour)
	m.r.Resources = []simulation.ResourceResult{{Name: "spice", Series: spice}, {Name: "vcs", Series: vcs, Bought: 400 * hour, Used: 310 * hour}}
	m.loans(whole)
	m.machines(whole)
	m.r.Providers = []simulation.ProviderResult{
		{Name: "cloud", Requests: 61, Granted: 57, Partial: 0, Refused: 4, Unknown: 1, Refusals: []simulation.Count{{Name: "capacity", N: 3}, {Name: "quota", N: 1}}, Flaps: 2},
		{Name: "pool-a", Requests: 40, Granted: 33, Partial: 5, Refused: 2, Refusals: []simulation.Count{{Name: "capacity", N: 2}}},
	}
	m.r.Sessions = int64(3 * points)
}

func (m *maker) loans(whole cluster.Duration) {
	for i := range 40 {
		at := m.r.Began.Add(whole / 50 * cluster.Duration(i))
		l := simulation.LoanResult{ID: fmt.Sprintf("loan/vcs/pool-a-%d", i+1), Provider: "pool-a", Resource: "vcs", Units: 4, Requested: at, Closed: at.Add(30 * cluster.Minute), Why: "refused: capacity"}
		if i%8 > 0 {
			l.Granted, l.Committed, l.Closed, l.Why = 4, at.Add(20*cluster.Second), at.Add(cluster.Duration(3+i%5)*cluster.Hour), "returned: idle for 15m"
			l.Held = 4 * int64(l.Closed.Sub(l.Committed))
			l.Cost = cluster.Price(ratio(l.Held, 1_500_000, int64(cluster.Hour)))
		}
		m.r.Resources[1].Cost += l.Cost
		m.r.Loans = append(m.r.Loans, l)
		m.r.Changes = append(m.r.Changes, simulation.Change{At: at, Subject: "vcs", Before: "20", After: "24", Cause: l.ID})
	}
}

func (m *maker) machines(whole cluster.Duration) {
	for i := range 61 {
		at := m.r.Began.Add(whole / 70 * cluster.Duration(i))
		h := simulation.HostResult{ID: fmt.Sprintf("host/small-%d", i+1), Template: []string{"small", "large"}[i%2], Provider: "cloud", Name: fmt.Sprintf("node%d", i+1), Requested: at, Why: "idle for 10m"}
		h.Expected, h.Joined = at.Add(5*cluster.Second), at.Add(3*cluster.Minute)
		h.Left, h.Closed = h.Joined.Add(cluster.Duration(1+i%9)*cluster.Hour), h.Joined.Add(cluster.Duration(1+i%9)*cluster.Hour+cluster.Minute)
		h.Busy = int64(h.Left.Sub(h.Joined)) * int64(5+i%5) / 10
		h.Cost = cluster.Price(ratio(int64(h.Closed.Sub(h.Expected)), 480_000, int64(cluster.Hour)))
		m.r.Machines = append(m.r.Machines, h)
	}
}

// tell makes the stories of the worst waits, and repairs.
func (m *maker) tell() {
	var order []int
	for i := range m.r.Outcomes {
		order = append(order, i)
	}
	wait := func(i int) cluster.Duration { return m.r.Outcomes[i].Start.Sub(m.r.Trace.Jobs[i].Submit) }
	slices.SortStableFunc(order, func(a, b int) int { return int(wait(b) - wait(a)) })
	for _, i := range order[:min(len(order), 10)] {
		at := m.r.Trace.Jobs[i].Submit
		m.r.Worst = append(m.r.Worst, simulation.Story{Job: i, Waited: wait(i), Lines: []simulation.StoryLine{
			{At: at, Why: "2 of vcs are needed and 0 are free; 20 are owned"},
			{At: at.Add(cluster.Minute), Why: "loan/vcs/pool-a-3 was asked for 4"},
			{At: at.Add(wait(i) / 2), Why: "pool-a refused: capacity; the next request is after 10m"},
		}})
	}
	m.r.Orders = []simulation.Ordered{{At: epoch, Do: "return", Subject: "loan/vcs/pool-a-1", Became: "4 units are on their way back"}}
	m.r.Trace.Repairs = []trace.Repair{{Rule: "no-estimate", What: "The job has no estimate; its run time was taken.", Count: 17, Places: []string{"farm.swf:12 field 9 \"-1\"", "farm.swf:40 field 9 \"-1\""}}}
}
