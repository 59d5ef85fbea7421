package replay

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// Mode is what happens at equal times; the package's doc says it.
type Mode string

// Modes.
const (
	Batch      Mode = "batch"
	Sequential Mode = "sequential"
)

// Run replays a trace, and answers its jobs in the order of their starts. A job
// that never starts has no row.
func Run(trace Trace, machine Machine, policy scheduling.Policy, mode Mode) []Row {
	return newPlayer(trace, machine, policy).play(mode)
}

// Watch is Run, and calls see after every session. In what see gets, job n is
// the trace's n-th by arrival, from 1.
func Watch(trace Trace, machine Machine, policy scheduling.Policy, mode Mode, see func(now cluster.Time, r scheduling.Result)) []Row {
	p := newPlayer(trace, machine, policy)
	p.see = see
	return p.play(mode)
}

// player is a replay under way.
type player struct {
	jobs    []Job // by arrival; the engine's id is one more than the place
	arrived int
	machine Machine
	engine  *scheduling.Engine
	// see is nil where nobody asks for more than the starts.
	see func(cluster.Time, scheduling.Result)

	now     cluster.Time
	running completions
	starts  int64
	rows    []Row
}

func newPlayer(trace Trace, machine Machine, policy scheduling.Policy) *player {
	p := &player{jobs: trace.Jobs, machine: machine, rows: make([]Row, 0, len(trace.Jobs))}
	if byArrival := func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) }; !slices.IsSortedFunc(p.jobs, byArrival) {
		p.jobs = slices.Clone(p.jobs)
		slices.SortStableFunc(p.jobs, byArrival)
	}
	p.engine = scheduling.New(scheduling.Input{Policy: policy, Hosts: machine.Hosts, Resources: machine.Resources})
	return p
}

func (p *player) play(mode Mode) []Row {
	instant := p.batch
	if mode == Sequential {
		instant = p.oneByOne
	}
	for {
		now, more := p.next()
		if !more {
			return p.rows
		}
		p.now = now
		instant()
	}
}

// next answers the next instant at which something happens, and whether there is
// one. A reservation needs no instant of its own: it comes where a job must have
// ended, and so one ends then or before.
func (p *player) next() (at cluster.Time, more bool) {
	if p.arrived < len(p.jobs) {
		at, more = p.jobs[p.arrived].Submit, true
	}
	if len(p.running) > 0 && (!more || p.running[0].at < at) {
		at, more = p.running[0].at, true
	}
	return at, more
}

// batch handles all that happens now, then runs one session.
func (p *player) batch() {
	for p.completes() {
		c := p.running.pop()
		p.engine.End(c.job, c.element)
	}
	for p.arrives() {
		p.submit()
	}
	p.session()
}

// oneByOne handles what happens now one by one, with a session after each.
func (p *player) oneByOne() {
	for i := range p.running {
		if c := &p.running[i]; c.limit != 0 && c.limit <= p.now && !c.ended {
			c.ended = p.engine.End(c.job, c.element)
		}
	}
	for p.arrives() {
		p.submit()
		p.session()
	}
	for p.completes() {
		if c := p.running.pop(); !c.ended {
			p.engine.End(c.job, c.element)
		}
		p.session()
	}
}

func (p *player) arrives() bool {
	return p.arrived < len(p.jobs) && p.jobs[p.arrived].Submit <= p.now
}

func (p *player) completes() bool { return len(p.running) > 0 && p.running[0].at <= p.now }

func (p *player) submit() {
	j := &p.jobs[p.arrived]
	p.arrived++
	p.engine.Submit(p.machine.job(int64(p.arrived), j))
}

// session runs a session and follows what it starts.
func (p *player) session() {
	if p.see == nil {
		p.follow(p.engine.Place(p.now))
		return
	}
	r := p.engine.Session(p.now)
	p.follow(r.Starts)
	p.see(p.now, r)
}

func (p *player) follow(starts []scheduling.Start) {
	for _, s := range starts {
		j := &p.jobs[s.Job-1]
		p.rows = append(p.rows, Row{ID: j.ID, Submit: j.Submit, Start: p.now, Run: j.Run, Procs: j.Procs, Estimate: j.Estimate})
		p.starts++
		c := completion{at: p.now.Add(j.Run), start: p.starts, job: s.Job, element: s.Element}
		if j.Estimate > 0 {
			c.limit = p.now.Add(j.Estimate)
		}
		p.running.push(c)
	}
}
