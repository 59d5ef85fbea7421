package simulation

import (
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation/trace"
)

// running is a job that runs.
type running struct {
	job         int // its place in the trace
	run         uint8
	hosts       []*host
	alternative int64
	// limit is when its time limit is over; 0 where it has none.
	limit cluster.Time
	// released tells that the engine knows it no more, and over that it has ended or waits again; the
	// tokens are given back before that where it does not keep them to its end.
	released, over, tokensBack bool
	// dead tells that its host is no more.
	dead bool
}

// shape is what is known of jobs that are alike.
type shape struct {
	tokens []tokens
	// impossible tells that they can never run in this cluster.
	impossible bool
}

type tokens struct {
	*resource
	units int64
}

func (s *simulator) shapeOf(job *trace.Job) *shape {
	if known := s.shapes[job.Shape]; known != nil {
		return known
	}
	made := &shape{impossible: s.impossible(job.Shape.JobSpec)}
	s.shapes[job.Shape] = made
	if made.impossible {
		return made
	}
	for _, name := range job.Shape.TokenNames() {
		made.tokens = append(made.tokens, tokens{s.resourceIndex[name], job.Shape.Tokens[name]})
	}
	return made
}

// impossible tells whether nothing that is configured could ever run a job.
func (s *simulator) impossible(spec cluster.JobSpec) bool {
	var hosts []cluster.Host
	for _, owned := range s.farm.Hosts {
		hosts = append(hosts, cluster.Host{Name: owned.Name, Capacity: owned.capacity()})
	}
	for _, p := range s.farm.Settings.Providers {
		for _, t := range p.Templates {
			hosts = append(hosts, cluster.Host{Name: t.Template, Capacity: t.Has()})
		}
	}
	return len(spec.ValidateFit(s.farm.Resources, hosts)) > 0
}

// arrive submits the jobs that arrive now.
func (s *simulator) arrive() {
	for s.arrived < len(s.jobs) && s.jobs[s.arrived].Submit <= s.now {
		s.submit()
	}
}

// submit submits the next job. One that can never run takes no part.
func (s *simulator) submit() {
	i := s.arrived
	s.arrived++
	sh := s.shapeOf(&s.jobs[i])
	if sh.impossible {
		s.result.Outcomes[i].State = Impossible
		return
	}
	s.queue(i, sh)
}

// queue has a job wait, for the first time or again.
func (s *simulator) queue(i int, sh *shape) {
	job := &s.jobs[i]
	s.engine.Submit(cluster.Job{ID: int64(i) + 1, JobSpec: withLimit(job), State: cluster.JobWaiting, Submitted: job.Submit})
	for _, t := range sh.tokens {
		t.waiting += t.units
	}
	s.result.Outcomes[i].State = Waiting
	s.wanted = true
}

func withLimit(job *trace.Job) cluster.JobSpec {
	spec := job.Shape.JobSpec
	spec.TimeLimit = job.Limit
	return spec
}

// start starts a job where the session placed it.
func (s *simulator) start(st *scheduling.Start) {
	i := int(st.Job) - 1
	job, out := &s.jobs[i], &s.result.Outcomes[i]
	r := &running{job: i, run: out.Requeues, alternative: st.Alternative, hosts: make([]*host, len(st.Hosts))}
	for n, name := range st.Hosts {
		h := s.hosts[name]
		r.hosts[n] = h
		h.jobs = append(h.jobs, r)
		s.loaded(h)
	}
	s.takeTokens(r, 1)
	for _, t := range s.shapes[job.Shape].tokens {
		t.waiting -= t.units
	}
	s.waited(i)
	out.Start, out.State = s.now, Running
	s.alive++
	s.progress = s.now
	runs := job.Run
	if job.Limit > 0 {
		r.limit = s.now.Add(job.Limit)
		runs = min(runs, job.Limit)
	}
	s.agenda.add(event{at: s.now.Add(runs), rank: ending, job: r})
	if job.TokensFor > 0 && job.TokensFor < runs {
		s.at(s.now.Add(job.TokensFor), func() { s.giveTokens(r) })
	}
}

// takeTokens counts what a job takes of shared resources (by is 1), or gives back (by is -1).
func (s *simulator) takeTokens(r *running, by int64) {
	sh := s.jobs[r.job].Shape
	if r.alternative == 0 {
		for _, t := range s.shapes[sh].tokens {
			t.account.InUse += by * t.units
			s.resourceUsed(t.resource)
		}
		return
	}
	taken := sh.TokensTaken(r.alternative)
	for _, name := range slices.Sorted(maps(taken)) {
		res := s.resourceIndex[name]
		res.account.InUse += by * taken[name]
		s.resourceUsed(res)
	}
}

// giveTokens gives the tokens of a job back that does not keep them to its end.
func (s *simulator) giveTokens(r *running) {
	if r.over || r.dead || r.tokensBack {
		return
	}
	r.tokensBack = true
	s.engine.Release(int64(r.job)+1, 0)
	s.takeTokens(r, -1)
	s.wanted = true
}

// release has the engine forget a running job.
func (s *simulator) release(r *running) {
	if !r.released {
		r.released = true
		s.engine.End(int64(r.job)+1, 0)
	}
}

// off takes a job off its hosts, and its tokens with it.
func (s *simulator) off(r *running) {
	s.release(r)
	r.over = true
	if !r.tokensBack {
		s.takeTokens(r, -1)
	}
	for _, h := range r.hosts {
		last := len(h.jobs) - 1
		at := slices.Index(h.jobs, r)
		h.jobs[at] = h.jobs[last]
		h.jobs[last] = nil
		h.jobs = h.jobs[:last]
		s.loaded(h)
	}
	s.alive--
	s.progress = s.now
	s.wanted = true
}

// end ends a job, unless its host is no more, or it was stopped before.
func (s *simulator) end(r *running) {
	if r.over || r.dead {
		return
	}
	s.off(r)
	out, job := &s.result.Outcomes[r.job], &s.jobs[r.job]
	out.End, out.State = s.now, Done
	if job.Limit > 0 && job.Run > job.Limit {
		out.State = TimedOut
	}
	s.ended++
}

// requeue has a job wait again.
func (s *simulator) requeue(r *running) {
	s.off(r)
	out := &s.result.Outcomes[r.job]
	out.Requeues = min(out.Requeues, 254) + 1
	out.Start = 0
	s.queue(r.job, s.shapes[s.jobs[r.job].Shape])
}
