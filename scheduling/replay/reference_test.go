package replay_test

import (
	"cmp"
	"slices"

	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay"
)

// reference is a scheduler for one host that is as simple as can be: it goes
// from second to second and works out everything anew, with plain loops. What it
// says is what the engine must say.
type reference struct {
	order      scheduling.Order
	sequential bool
	// capacity is what there is of each dimension; the last `tokens` of them are
	// shared resources, the others are the host's.
	capacity []int64
	tokens   int
	jobs     []*refJob // by arrival

	now     int64
	waiting []*refJob
	running []*refJob // by start
	// freed tells that a job has ended since the last session.
	freed bool
}

// refJob is a job, in seconds.
type refJob struct {
	submit, run, limit int64
	priority           int64
	need               []int64
	start              int64
	promise            int64 // when it will start, under conservative; -1 is never said
	over               bool  // it gave its capacity back
}

// play fills in the starts.
func (s *reference) play() {
	queued, ended := 0, 0
	for ; ended < len(s.jobs); s.now++ {
		var arriving, ending []*refJob
		for ; queued < len(s.jobs) && s.jobs[queued].submit == s.now; queued++ {
			arriving = append(arriving, s.jobs[queued])
		}
		for _, j := range s.running {
			if j.start+j.run == s.now {
				ending = append(ending, j)
			}
		}
		ended += len(ending)
		if s.sequential {
			s.oneByOne(arriving, ending)
		} else {
			s.allAtOnce(arriving, ending)
		}
		s.running = slices.DeleteFunc(s.running, func(j *refJob) bool { return slices.Contains(ending, j) })
		if queued == len(s.jobs) && len(s.running) == 0 && !s.promised() {
			return // what waits now can never run
		}
	}
}

func (s *reference) allAtOnce(arriving, ending []*refJob) {
	for _, j := range ending {
		s.end(j)
	}
	s.waiting = append(s.waiting, arriving...)
	s.session()
}

func (s *reference) oneByOne(arriving, ending []*refJob) {
	for _, j := range s.running {
		if j.start+j.limit == s.now {
			s.end(j)
		}
	}
	for _, j := range arriving {
		s.waiting = append(s.waiting, j)
		s.session()
	}
	for _, j := range ending {
		s.end(j)
		s.session()
	}
	s.session() // a reservation may come when nothing else does
}

func (s *reference) end(j *refJob) {
	s.freed = s.freed || !j.over
	j.over = true
}

func (s *reference) promised() bool {
	return slices.ContainsFunc(s.waiting, func(j *refJob) bool { return j.promise > s.now })
}

func (s *reference) session() {
	slices.SortStableFunc(s.waiting, func(a, b *refJob) int { return cmp.Compare(b.priority, a.priority) })
	switch s.order {
	case scheduling.EASY:
		s.easy()
	case scheduling.Conservative:
		s.conservative()
	default:
		s.fcfs()
	}
	s.freed = false
	s.waiting = slices.DeleteFunc(s.waiting, func(j *refJob) bool { return j.start >= 0 })
}

// fcfs lets no job pass one that waits for the host. One that waits for tokens
// only keeps them from the jobs after it.
func (s *reference) fcfs() {
	free := s.free(s.now)
	host := len(s.capacity) - s.tokens
	for _, j := range s.waiting {
		switch {
		case !fits(j.need, s.capacity):
			continue
		case !fits(j.need[:host], free[:host]):
			return
		case fits(j.need[host:], free[host:]):
			s.begin(j)
			subtract(free, j.need)
		default:
			subtract(free[host:], j.need[host:])
		}
	}
}

// easy starts jobs while they fit. The first that does not gets a reservation
// for the earliest time at which it will; those after it start if they fit and
// either end by then or need no more than the first will leave.
func (s *reference) easy() {
	var first *refJob
	var shadow int64
	var extra []int64
	for _, j := range s.waiting {
		fitsNow := fits(j.need, s.free(s.now))
		switch {
		case !fits(j.need, s.capacity):
			continue
		case first == nil && fitsNow:
			s.begin(j)
		case first == nil:
			first = j
			for shadow = s.now; !fits(first.need, s.free(shadow)); {
				shadow = s.nextEnd(shadow)
			}
			extra = s.free(shadow)
			subtract(extra, first.need)
		case fitsNow && s.now+j.limit <= shadow:
			s.begin(j)
		case fitsNow && fits(j.need, extra):
			s.begin(j)
			subtract(extra, j.need)
		}
	}
}

// nextEnd is the next time after t at which a running job must have ended.
func (s *reference) nextEnd(t int64) int64 {
	next := int64(1) << 60
	for _, j := range s.running {
		if e := j.start + j.limit; e > t {
			next = min(next, e)
		}
	}
	return next
}

// conservative gives each job a reservation when it comes, behind all that
// stand. Where a job has ended since the last session, each is moved forward as
// far as the others let it, in order.
func (s *reference) conservative() {
	for _, j := range s.waiting {
		if s.freed && j.promise > s.now {
			j.promise = -1
			j.promise = s.earliest(j)
		}
	}
	for _, j := range s.waiting {
		if j.promise == s.now {
			s.begin(j)
		}
	}
	for _, j := range s.waiting {
		if j.promise >= 0 || !fits(j.need, s.capacity) {
			continue
		}
		if j.promise = s.earliest(j); j.promise == s.now {
			s.begin(j)
		}
	}
}

// earliest finds the first instant from which the job fits for all its time.
// It can only be now, or where something ends.
func (s *reference) earliest(j *refJob) int64 {
	ends := []int64{s.now}
	for _, other := range s.jobs {
		if from, limit := other.takes(); from >= 0 && from+limit > s.now {
			ends = append(ends, from+limit)
		}
	}
	slices.Sort(ends)
	for _, t := range ends {
		if s.fitsThroughout(j, t) {
			return t
		}
	}
	panic("it fits when all others are gone")
}

// fitsThroughout tells whether the job fits from t on. What is free shrinks
// only where another job begins.
func (s *reference) fitsThroughout(j *refJob, t int64) bool {
	if !fits(j.need, s.free(t)) {
		return false
	}
	for _, other := range s.jobs {
		from, _ := other.takes()
		if from > t && from < t+j.limit && !fits(j.need, s.free(from)) {
			return false
		}
	}
	return true
}

// takes answers from when the job runs or will run, or -1.
func (j *refJob) takes() (from, limit int64) {
	switch {
	case j.over:
		return -1, 0
	case j.start >= 0:
		return j.start, j.limit
	}
	return j.promise, j.limit
}

// free answers what is free at t, as far as is known now.
func (s *reference) free(t int64) []int64 {
	free := slices.Clone(s.capacity)
	for _, j := range s.jobs {
		if from, limit := j.takes(); from >= 0 && from <= t && t < from+limit {
			subtract(free, j.need)
		}
	}
	return free
}

func (s *reference) begin(j *refJob) {
	j.start = s.now
	s.running = append(s.running, j)
}

// fits does not ask for what is not needed: of that, less than nothing may be free.
func fits(need, free []int64) bool {
	for i := range need {
		if need[i] > 0 && need[i] > free[i] {
			return false
		}
	}
	return true
}

func subtract(free, need []int64) {
	for i := range need {
		free[i] -= need[i]
	}
}

// expected is the schedule that the reference makes, in the order of the trace.
// A job takes its processors as cpus, and of the rest what its spec says.
func expected(trace replay.Trace, machine replay.Machine, order scheduling.Order, mode replay.Mode) []replay.Row {
	host := machine.Hosts[0]
	s := &reference{order: order, sequential: mode == replay.Sequential, tokens: len(machine.Resources)}
	s.capacity = []int64{host.CPUs, host.MemoryMB, host.Countables["gpus"]}
	for _, r := range machine.Resources {
		s.capacity = append(s.capacity, r.Total)
	}
	for _, j := range trace.Jobs {
		s.jobs = append(s.jobs, asReference(j, machine))
	}
	inTrace := slices.Clone(s.jobs)
	slices.SortStableFunc(s.jobs, func(a, b *refJob) int { return cmp.Compare(a.submit, b.submit) })
	s.play()
	var rows []replay.Row
	for i, j := range trace.Jobs {
		if inTrace[i].start >= 0 {
			row := replay.Row{ID: j.ID, Submit: j.Submit, Run: j.Run, Procs: j.Procs, Estimate: j.Estimate}
			row.Start = seconds(inTrace[i].start)
			rows = append(rows, row)
		}
	}
	return rows
}
