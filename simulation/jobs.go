package simulation

import (
	"maps"
	"math"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation/trace"
)

// running is a job that runs.
type running struct {
	job         int // its place in the trace
	shape       *shape
	run         uint16
	hosts       []*host
	places      []int // among the jobs of each
	alternative int64
	// limit is when its time limit is over; 0 where it has none.
	limit cluster.Time
	// released tells that the engine knows it no more, and over that it has ended or waits again; the
	// tokens are given back before that where it does not keep them to its end.
	released, over, tokensBack bool
	// known tells that something beside its end on the agenda may come back to it.
	known bool
	// dead tells that a host of it is no more, which nobody knows yet.
	dead bool
}

// shape is what is known of jobs that are alike.
type shape struct {
	tokens []tokens
	// impossible tells that they can never run in this cluster.
	impossible bool
	// like is what the engine knows of them.
	like *scheduling.Like
	// cause is what one of them was told last that it waits for.
	cause uint16
}

type tokens struct {
	*resource
	units int64
}

func (s *simulator) shapeOf(job *trace.Job) *shape {
	if known := s.shapes[job.Shape]; known != nil {
		return known
	}
	made := &shape{impossible: s.impossible(job.Shape.JobSpec), like: s.engine.Like(&job.Shape.JobSpec)}
	s.shapes[job.Shape] = made
	for _, r := range s.resources {
		if units, needs := job.Shape.Tokens[r.Name]; needs {
			made.tokens = append(made.tokens, tokens{r, units})
		}
	}
	return made
}

// impossible tells whether nothing that is configured could ever run a job.
func (s *simulator) impossible(spec cluster.JobSpec) bool {
	s.shared = s.shared[:0]
	for _, r := range s.resources {
		s.shared = append(s.shared, r.SharedResource)
	}
	return len(spec.ValidateFit(s.shared, s.kinds)) > 0
}

// kinds answers a host of each kind that the farm owns or that can ever be made.
func (f *Farm) kinds() (hosts []cluster.Host) {
	for _, owned := range f.Hosts {
		hosts = append(hosts, cluster.Host{Name: owned.Name, Capacity: owned.capacity()})
	}
	for _, p := range f.Settings.Providers {
		for _, t := range p.Templates {
			if t.Most() > 0 {
				hosts = append(hosts, cluster.Host{Name: t.Template, Capacity: t.Has()})
			}
		}
	}
	return hosts
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
	s.engine.SubmitLike(sh.like, int64(i)+1, job.Submit, job.Limit)
	for _, t := range sh.tokens {
		t.await(t.units)
	}
	s.result.Outcomes[i].State = Waiting
	s.wanted = true
}

// start starts a job where the session placed it.
func (s *simulator) start(st *scheduling.Start) {
	i := int(st.Job) - 1
	job, out := &s.jobs[i], &s.result.Outcomes[i]
	r := s.takeRunning()
	r.job, r.shape, r.run, r.alternative = i, s.shapes[job.Shape], out.Requeues, st.Alternative
	for _, name := range st.Hosts {
		h := s.hosts[name]
		r.hosts, r.places = append(r.hosts, h), append(r.places, len(h.jobs))
		if h.elastic != nil && h.elastic.silent > 0 {
			s.strand(r)
		}
		h.jobs = append(h.jobs, r)
		s.loaded(h)
	}
	s.takeTokens(r, 1)
	for _, t := range r.shape.tokens {
		t.await(-t.units)
	}
	s.waited(i, r.shape)
	out.Start, out.State = s.now, Running
	s.alive++
	if out.Requeues == 0 {
		s.progress = s.now
	}
	if out.Requeues >= manyRequeues {
		s.hopeless++
		s.wakeAll()
	}
	runs := job.Run
	if job.Limit > 0 {
		r.limit = s.now.Add(job.Limit)
		runs = min(runs, job.Limit)
	}
	s.agenda.add(event{at: s.now.Add(runs), rank: ending, job: r})
	if job.TokensFor > 0 && job.TokensFor < runs {
		r.known = true
		s.at(s.now.Add(job.TokensFor), func() { s.giveTokens(r) })
	}
}

// manyRequeues is after how many a job is not believed to come to its end any more: its hosts do not live as long as
// it runs.
const manyRequeues = 20

// takeRunning answers a place for a job that begins: one that is free, or a new one.
func (s *simulator) takeRunning() *running {
	last := len(s.spare) - 1
	if last < 0 {
		return &running{}
	}
	r := s.spare[last]
	s.spare = s.spare[:last]
	*r = running{hosts: r.hosts[:0], places: r.places[:0]}
	return r
}

// forget lets the place of a job that has ended be used again, unless something else knows it.
func (s *simulator) forget(r *running) {
	if !r.known {
		s.spare = append(s.spare, r)
	}
}

// takeTokens counts what a job takes of shared resources (by is 1), or gives back (by is -1).
func (s *simulator) takeTokens(r *running, by int64) {
	if r.alternative == 0 {
		for _, t := range r.shape.tokens {
			t.use(by * t.units)
		}
		return
	}
	taken := s.jobs[r.job].Shape.TokensTaken(r.alternative)
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		s.resourceIndex[name].use(by * taken[name])
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
	s.wanted, s.unsettled = true, true
}

// release has the engine forget a running job.
func (s *simulator) release(r *running) {
	if !r.released {
		r.released = true
		s.engine.End(int64(r.job)+1, 0)
	}
}

// strand has a job run no more that nobody knows to have ended: a host of it is no more.
func (s *simulator) strand(r *running) {
	if !r.dead {
		r.dead = true
		s.stranded++
		s.wakeAll()
	}
}

// off takes a job off its hosts, and its tokens with it.
func (s *simulator) off(r *running) {
	s.release(r)
	r.over = true
	if !r.tokensBack {
		s.takeTokens(r, -1)
	}
	for i, h := range r.hosts {
		h.drop(r.places[i])
		s.loaded(h)
	}
	s.alive--
	if r.dead {
		s.stranded--
	}
	if s.result.Outcomes[r.job].Requeues >= manyRequeues {
		s.hopeless--
	}
	s.wanted, s.unsettled = true, true
}

// drop takes the job at a place off the host. The last one takes its place.
func (h *host) drop(at int) {
	last := len(h.jobs) - 1
	moved := h.jobs[last]
	moved.places[slices.Index(moved.hosts, h)] = at
	h.jobs[at], h.jobs[last] = moved, nil
	h.jobs = h.jobs[:last]
}

// end ends a job, unless its host is no more, or it was stopped before.
func (s *simulator) end(r *running) {
	if r.over || r.dead {
		return
	}
	s.off(r)
	defer s.forget(r)
	out, job := &s.result.Outcomes[r.job], &s.jobs[r.job]
	out.End, out.State = s.now, Done
	s.progress = s.now
	if job.Limit > 0 && job.Run > job.Limit {
		out.State = TimedOut
	}
	s.ended++
}

// requeue has a job wait again.
func (s *simulator) requeue(r *running) {
	s.off(r)
	out := &s.result.Outcomes[r.job]
	out.Requeues = min(out.Requeues, math.MaxUint16-1) + 1
	out.Start = 0
	s.newWait(r.job, notAskedCause, s.now)
	s.queue(r.job, r.shape)
}
