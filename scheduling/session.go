package scheduling

import (
	"maps"
	"slices"

	"xce.internal/elastic/cluster"
)

// session is the working state of one pass. Its memory is used again by the
// next one of the same engine.
type session struct {
	e      *Engine
	number uint64 // counts the engine's sessions
	now    cluster.Time
	pools  []*pool // as the engine's resources
	queue  classHeap
	// pass counts the passes of all sessions over the classes in their order, at is how
	// far the one under way has come; see next.
	pass     uint64
	at       walk
	onlyFits bool
	// Where nobody asks for reservations, the one of easy is owed until another class
	// could start; owedAt is how far the pass had come. See pay.
	lazy      bool
	owed      *class
	owedAt    walk
	touched   []*class
	order     []*class // those with reservations that stand
	promisers []*class // those that were promised something in this session
	// sleepers are classes that wait for tokens under fcfs, by a host that would
	// take their next job.
	sleepers [][]*class
	waited   []int64 // by threshold, how many jobs have waited long enough
	lines    timelines

	words     bool     // reasons are told
	hostLists []int32  // of jobs and promises, in memory that is handed out likewise
	starts    []Start  // in memory that is handed out piece by piece
	names     []string // the hosts of the starts, likewise
	kept      bool     // who has got these may keep them
	promises  int64    // how many there are
	// hostWaiter is the first job that waits for a host under fcfs: nothing
	// starts after it. 0 while there is none.
	hostWaiter int64
	realWaiter int64   // as the real pass left it
	found      []int32 // hosts for the job at hand

	shares   [][]share // by choice, for the job at hand
	numbers  []int64
	outcomes []tokenOutcome
	supply   supply
	parts    []part // of the items
	hosts    []madeHosts
	classes  []*class // those with waiting jobs that could ever run
	verdicts []verdict
	hopeful  []*class
	needed   []bool // by host
	rows     []reservationRow
	// What Decide answers is in memory that is used again.
	reserves []Reservation
	heldBack []heldJob
	halves   halves
}

// begin makes ready for a session.
func (e *Engine) begin(now cluster.Time) *session {
	s := &e.scratch
	s.e, s.now = e, now
	s.number++
	for len(s.pools) < len(e.resources) {
		s.pools = append(s.pools, &pool{})
	}
	for i := range e.resources {
		s.pools[i].begin(&e.resources[i], e.lenders[i], e.offers, now)
	}
	if s.kept {
		s.starts, s.names = s.starts[len(s.starts):], s.names[len(s.names):]
	} else {
		s.starts, s.names = s.starts[:0], s.names[:0]
	}
	s.hostLists = s.hostLists[len(s.hostLists):]
	s.promises, s.hostWaiter = 0, 0
	s.hosts, s.classes = nil, s.classes[:0]
	s.lines.hosts = slices.Grow(s.lines.hosts[:0], len(e.hosts)+len(e.expected))[:len(e.hosts)+len(e.expected)]
	s.lines.pools = slices.Grow(s.lines.pools[:0], len(e.resources))[:len(e.resources)]
	s.outcomes, s.verdicts, s.heldBack, s.parts = s.outcomes[:0], s.verdicts[:0], s.heldBack[:0], s.parts[:0]
	s.forget()
	for _, c := range s.promisers {
		if !c.alone {
			c.promises = c.promises[:0]
		}
	}
	s.promisers = s.promisers[:0]
	e.shelve()
	e.forgetClasses()
	return s
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
	if s.holdBack(); len(s.heldBack) < len(e.held) {
		kept := e.held[:0]
		for i := range e.held {
			if s.isHeld(&e.held[i]) {
				kept = append(kept, e.held[i])
			} else {
				e.waiting -= max(e.held[i].Array-e.held[i].Begun, 1) // it is counted anew
				e.enqueue(&e.held[i])
			}
		}
		clear(e.held[len(kept):])
		e.held = kept
	}
	e.promised = nil
}

// holdBack finds the jobs that may not start yet, and why.
func (s *session) holdBack() {
	e := s.e
	if s.heldBack = s.heldBack[:0]; len(e.held) == 0 {
		return
	}
	awaited, rings := e.alive(), e.rings()
	for i := range e.held {
		job := &e.held[i]
		var why verdict
		switch left := among(job.After, awaited); {
		case len(left) > 0 && rings[job.ID]:
			why = waitsInRing(among(job.After, rings))
		case len(left) > 0 && !s.words:
			why = codeOnly(WaitJobs)
		case len(left) > 0:
			why = waitsForJobs(left)
		case s.now < job.NotBefore && !s.words:
			why = codeOnly(WaitStart)
		case s.now < job.NotBefore:
			why = waitsForStart(job.NotBefore)
		default:
			continue
		}
		s.heldBack = append(s.heldBack, heldJob{entryOf(job), why})
	}
	slices.SortFunc(s.heldBack, func(a, b heldJob) int { return compareEntries(a.first, b.first) })
}

// isHeld tells whether a job is held back.
func (s *session) isHeld(job *cluster.Job) bool {
	_, held := slices.BinarySearchFunc(s.heldBack, entryOf(job), func(h heldJob, e entry) int { return compareEntries(h.first, e) })
	return held
}

// rejoin puts jobs whose reservations are void back among their like.
func (s *session) rejoin() {
	e := s.e
	if e.policy.Order != Conservative {
		return
	}
	for c := range e.lineup.all() {
		if !c.alone || len(c.promises) > 0 {
			continue
		}
		like, known := e.classIndex[c.key]
		if !known {
			c.alone = false
			e.classIndex[c.key] = c
			continue
		}
		if like.world != e.worldNow() {
			e.fit(like)
		}
		for _, waiting := range c.queue[c.head:] {
			like.add(waiting)
		}
		c.queue, c.head, c.waiting = nil, 0, 0
		s.touch(c)
		s.touch(like)
	}
	s.settle()
}

// forgetClasses drops those of jobs that are gone, once they are many.
func (e *Engine) forgetClasses() {
	const many = 10_000
	if len(e.classIndex) > many+2*e.lineup.count {
		maps.DeleteFunc(e.classIndex, func(_ classKey, c *class) bool {
			c.forgotten = !c.listed
			return c.forgotten
		})
	}
	if len(e.footprints) < many+2*(len(e.classIndex)+e.lineup.count+len(e.running.all)) {
		return
	}
	used := make(map[*footprint]bool, len(e.classIndex)+e.lineup.count+len(e.running.all))
	for c := range e.lineup.all() {
		used[c.footprint] = true
	}
	for _, c := range e.classIndex {
		used[c.footprint] = true
	}
	for i := range e.running.all {
		used[e.running.all[i].footprint] = true
	}
	maps.DeleteFunc(e.footprints, func(_ string, f *footprint) bool {
		f.forgotten = !used[f]
		return f.forgotten
	})
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
	for i := range e.running.all {
		see(e.running.all[i].key.job)
	}
	for c := range e.lineup.all() {
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
