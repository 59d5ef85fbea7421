package scheduling

import (
	"cmp"
	"maps"
	"slices"

	"xce.internal/elastic/cluster"
)

// session is the working state of one pass. Its memory is used again by the
// next one of the same engine.
type session struct {
	e     *Engine
	now   cluster.Time
	pools []*pool // as the engine's resources
	queue classHeap
	// sleepers are classes that wait for tokens under fcfs, by a host that would
	// take their next job.
	sleepers [][]*class
	waited   []int64 // by threshold, how many jobs have waited long enough
	lines    timelines

	starts   []Start
	names    []string // the hosts of the starts
	promises int64    // how many there are
	// hostWaiter is the first job that waits for a host under fcfs: nothing
	// starts after it. 0 while there is none.
	hostWaiter int64
	found      []int32 // hosts for the job at hand

	shares   [][]share // by choice, for the job at hand
	numbers  []int64
	outcomes []tokenOutcome
	supply   supply
	parts    []part // of the items
	hosts    []madeHosts
	classes  []*class // those with waiting jobs that could ever run
	verdicts []verdict
	heldBack []heldJob
	halves   halves
}

// realShelf is the hosts of one kind that take jobs, the fullest first.
type realShelf struct {
	bins    bins
	hosts   []int32 // by leaf
	changed bool    // since they were put in order
}

// begin makes ready for a session.
func (e *Engine) begin(now cluster.Time) *session {
	s := &e.scratch
	s.e, s.now = e, now
	s.pools = s.pools[:0]
	for i := range e.resources {
		s.pools = append(s.pools, newPool(&e.resources[i], e.offers, now))
	}
	s.starts, s.names, s.promises, s.hostWaiter = nil, nil, 0, 0
	s.hosts, s.classes = nil, s.classes[:0]
	s.lines.made = false
	s.outcomes, s.verdicts, s.heldBack, s.parts = s.outcomes[:0], s.verdicts[:0], s.heldBack[:0], s.parts[:0]
	e.shelve()
	return s
}

// shelve orders the hosts of each kind as jobs try them: those that the cluster
// owns first, then the fullest, so that elastic ones fall idle. Kinds of which
// nothing has changed are as they were.
func (e *Engine) shelve() {
	for k := range e.shelves {
		shelf := &e.shelves[k]
		if !shelf.changed {
			continue
		}
		shelf.changed = false
		slices.SortFunc(shelf.hosts, func(a, b int32) int {
			x, y := &e.hosts[a], &e.hosts[b]
			return cmp.Or(boolCompare(x.template == "", y.template == ""), slices.Compare(x.free, y.free), cmp.Compare(a, b))
		})
		shelf.bins.reset(e.dims.count(), len(shelf.hosts))
		for i, h := range shelf.hosts {
			e.hosts[h].leaf = int32(i)
			shelf.bins.push(e.hosts[h].left())
		}
		shelf.bins.build()
	}
}

// heldJob is a waiting job that may not start yet, and why.
type heldJob struct {
	first entry
	why   verdict
}

// letGo queues the jobs whose earliest start has come and whose predecessors
// have ended.
func (s *session) letGo() {
	e := s.e
	awaited, rings := e.alive(), e.rings()
	kept := e.held[:0]
	for i := range e.held {
		job := e.held[i]
		switch left := among(job.After, awaited); {
		case len(left) > 0 && rings[job.ID]:
			s.heldBack = append(s.heldBack, heldJob{entryOf(&job), waitsInRing(among(job.After, rings))})
			kept = append(kept, job)
		case len(left) > 0:
			s.heldBack = append(s.heldBack, heldJob{entryOf(&job), waitsForJobs(left)})
			kept = append(kept, job)
		case s.now < job.NotBefore:
			s.heldBack = append(s.heldBack, heldJob{entryOf(&job), waitsForStart(job.NotBefore)})
			kept = append(kept, job)
		default:
			e.enqueue(&job)
		}
	}
	slices.SortFunc(s.heldBack, func(a, b heldJob) int { return compareEntries(a.first, b.first) })
	clear(e.held[len(kept):])
	e.held = kept
	s.makeQueue()
}

// makeQueue makes all classes ready, and forgets those of which no job waits.
func (s *session) makeQueue() {
	e := s.e
	e.rejoin()
	s.queue = slices.Grow(s.queue[:0], len(e.classes))
	waiting := e.classes[:0]
	for _, c := range e.classes {
		if c.empty() {
			c.listed = false
			if !c.alone {
				delete(e.classIndex, c.key)
			}
			continue
		}
		c.reset()
		if !c.alone {
			c.promises = c.promises[:0]
		}
		waiting = append(waiting, c)
		s.queue.append(c)
	}
	clear(e.classes[len(waiting):])
	e.classes = waiting
	e.forgetFootprints()
	s.queue.build()
}

// rejoin puts jobs whose reservations are void back among their like.
func (e *Engine) rejoin() {
	for _, c := range e.classes {
		if !c.alone || len(c.promises) > 0 || c.empty() {
			continue
		}
		like, known := e.classIndex[c.key]
		if !known {
			c.alone = false
			e.classIndex[c.key] = c
			continue
		}
		e.list(like)
		for _, waiting := range c.queue[c.head:] {
			like.add(waiting)
		}
		c.queue, c.head, c.waiting = nil, 0, 0
	}
}

// forgetFootprints drops those of jobs that are gone, once they are many.
func (e *Engine) forgetFootprints() {
	if len(e.footprints) < 1000+2*(len(e.classes)+len(e.runs)) {
		return
	}
	used := make(map[*footprint]bool, len(e.classes)+len(e.runs))
	for _, c := range e.classes {
		used[c.footprint] = true
	}
	for i := range e.runs {
		used[e.runs[i].footprint] = true
	}
	maps.DeleteFunc(e.footprints, func(_ string, f *footprint) bool { return !used[f] })
}

// alive answers which of the jobs that others wait for wait or run.
func (e *Engine) alive() map[int64]bool {
	awaited := map[int64]bool{}
	for i := range e.held {
		for _, id := range e.held[i].After {
			awaited[id] = false
		}
	}
	if len(awaited) == 0 {
		return nil
	}
	see := func(id int64) {
		if _, asked := awaited[id]; asked {
			awaited[id] = true
		}
	}
	for i := range e.held {
		see(e.held[i].ID)
	}
	for i := range e.runs {
		see(e.runs[i].key.job)
	}
	for _, c := range e.classes {
		for _, entry := range c.queue[c.head:] {
			see(entry.id)
		}
	}
	return awaited
}

// rings answers the held jobs that wait for themselves over others, or for such
// ones: those that are left when all that could start have started, again and again.
func (e *Engine) rings() map[int64]bool {
	left := map[int64]bool{}
	for i := range e.held {
		if len(e.held[i].After) > 0 {
			left[e.held[i].ID] = true
		}
	}
	if len(left) == 0 {
		return nil
	}
	waiting, free := map[int64][]int64{}, []int64{}
	missing := map[int64]int{}
	for i := range e.held {
		job := &e.held[i]
		for _, id := range job.After {
			if left[id] {
				missing[job.ID]++
				waiting[id] = append(waiting[id], job.ID)
			}
		}
		if left[job.ID] && missing[job.ID] == 0 {
			free = append(free, job.ID)
		}
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		delete(left, id)
		for _, next := range waiting[id] {
			if missing[next]--; missing[next] == 0 {
				free = append(free, next)
			}
		}
	}
	return left
}

// among answers those of the jobs that are in a set.
func among(jobs []int64, set map[int64]bool) (in []int64) {
	for _, id := range jobs {
		if set[id] {
			in = append(in, id)
		}
	}
	return in
}
