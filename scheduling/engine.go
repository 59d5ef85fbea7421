package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// Run is one session on a state read at one moment.
func Run(in Input) Result { return New(in).Session(in.Now) }

// Engine is the state of a cluster, kept in the form that sessions need from
// one to the next: a session costs what changed and how many kinds of jobs
// there are, not how many jobs wait. It answers what Run would on the same state,
// where Input.Settled says whether anything has ended since the last session. An
// Engine serves one caller at a time.
type Engine struct {
	policy Policy
	dims   dimensions
	kinds  kinds

	hosts      []host  // in places that they keep; some are spare
	order      []int32 // the places of those that are there, by name
	spare      []int32
	gone       []int32 // left since the last session
	kindOrder  []int32 // unless kindsMixed, the answer of kindsByHost
	kindsMixed bool
	hostIndex  map[string]int32
	shelves    []realShelf // the hosts that take jobs, by kind
	sizes      []model

	resources      []Resource
	resourceIndex  map[string]int32
	uses           []endings // by resource, of the running jobs that have some of it
	expected       []expected
	templates      []template
	spareTemplates []template // where the next ones are put together
	templateIndex  map[string]int32
	quotas         []quota
	offers         []cluster.Offer
	lenders        [][]lender // by resource

	thresholds      []Threshold
	thresholdQueues map[string]bool

	lineup     lineup
	classIndex map[classKey]*class
	footprints map[string]*footprint
	texts      map[string]int32 // constraints and queues, numbered
	carriers   map[string]int   // by countable, how many hosts, expected hosts and templates have it
	// world numbers the changes of what classes are worked out from, beside kinds;
	// checked is which of them reservations were held against, hostsChanged that
	// hosts have left, closed or opened since then.
	world, checked uint64
	// changes counts those of all but jobs.
	changes      uint64
	hostsChanged bool
	idleChanges  uint64                  // see IdleChanges
	waiting      int64                   // jobs that wait
	wides        map[string]*templateSet // by constraint and what is needed at all
	templateSets map[string]*templateSet
	held         []cluster.Job      // waiting jobs that may not start yet
	freed        bool               // something has become free since the last session
	promised     map[runKey]promise // of the input, for jobs that are not queued yet
	running      running
	key          []byte   // reused
	vectors      []int64  // for new ones; see newVector
	none         []int64  // nothing of anything
	words        []byte   // reused
	setKey       []byte   // reused
	largest      []int64  // reused
	setBits      []uint64 // reused
	names        []string // reused
	scratch      session  // reused
}

// New takes over a state. It reads what in refers to as long as it lives.
func New(in Input) *Engine {
	e := &Engine{
		policy: in.Policy, carriers: map[string]int{}, texts: map[string]int32{},
		hostIndex: map[string]int32{}, resourceIndex: map[string]int32{}, templateIndex: map[string]int32{},
		thresholds: in.Thresholds, thresholdQueues: map[string]bool{},
		classIndex: map[classKey]*class{}, footprints: map[string]*footprint{}, wides: map[string]*templateSet{}, templateSets: map[string]*templateSet{},
	}
	for _, t := range in.Thresholds {
		if t.Queue != "" {
			e.thresholdQueues[t.Queue] = true
		}
	}
	e.takeDimensions(&in)
	e.takeHosts(in.Hosts)
	e.takeCatalog(in.Templates, in.Quotas)
	e.takeExpected(in.Expected)
	e.resources = slices.Clone(in.Resources)
	slices.SortFunc(e.resources, func(a, b Resource) int { return cmp.Compare(a.Name, b.Name) })
	for i, r := range e.resources {
		e.resourceIndex[r.Name] = int32(i)
		e.resources[i].Loans, e.resources[i].Idle = slices.Clone(r.Loans), slices.Clone(r.Idle)
	}
	e.takeOffers(in.Offers)
	for i := range in.Running {
		e.takeRunning(&in.Running[i])
	}
	e.listEndings()
	e.takeReservations(in.Reservations)
	for _, i := range inOrder(in.Jobs) {
		e.submit(&in.Jobs[i])
	}
	e.freed = !in.Settled
	return e
}

// takeReservations takes over reservations that stand; those on hosts that are
// not there any more, or take no jobs, are void.
func (e *Engine) takeReservations(standing []Reservation) {
	e.promised = map[runKey]promise{}
	if e.policy.Order != Conservative {
		return
	}
	for _, r := range standing {
		p := promise{at: r.At, choice: int32(max(r.Alternative-1, 0))}
		for _, name := range r.Hosts {
			if h, known := e.hostIndex[name]; known && e.hosts[h].closed == "" {
				p.hosts = append(p.hosts, h)
			}
		}
		if len(p.hosts) == len(r.Hosts) {
			e.promised[runKey{r.Job, r.Element}] = p
		}
	}
}

// takeRunning takes over a running job. What a job takes of a host that the
// state does not know, or of a resource, is not counted: tokens in use are
// given with their resource.
func (e *Engine) takeRunning(job *cluster.Job) {
	r := run{
		key: runKey{job.ID, job.Element}, footprint: e.footprintOf(job), choice: int32(max(job.Alternative-1, 0)),
		ends: forever,
	}
	if job.TimeLimit > 0 {
		r.ends = job.Started.Add(job.TimeLimit)
	}
	names := job.Hosts
	if len(names) == 0 {
		names = []string{job.Host}
	}
	for _, name := range names {
		if h, known := e.hostIndex[name]; known {
			r.hosts = append(r.hosts, h)
			e.occupy(h, r.need, 1)
		}
	}
	e.running.add(r)
}

// occupy gives a host to a job (by is 1), or takes it back (by is -1).
func (e *Engine) occupy(h int32, need []int64, by int64) {
	host := &e.hosts[h]
	e.shelves[host.kind].note(h, host)
	host.jobs += int32(by)
	for d, n := range need {
		host.free[d] -= by * n
	}
}

// Submit queues a job.
func (e *Engine) Submit(job cluster.Job) { e.submit(&job) }

// submit queues a job, which may have to be held back.
func (e *Engine) submit(job *cluster.Job) {
	if mayNotStart(job) {
		e.held = append(e.held, *job)
		e.waiting += max(job.Array-job.Begun, 1)
		return
	}
	e.enqueue(job)
}

// mayNotStart tells whether a job has an earliest start, or others that must end before it.
func mayNotStart(job *cluster.Job) bool { return len(job.After) > 0 || job.NotBefore > 0 }

// enqueue puts a job into the queue of its class. One that has a reservation is a class
// of its own.
func (e *Engine) enqueue(job *cluster.Job) {
	c := e.classOf(job)
	if promises := e.standing(job, c); len(promises) > 0 {
		c = c.split()
		c.promises = promises
	}
	e.join(c, entryOf(job))
}

// join lets a job wait in a class.
func (e *Engine) join(c *class, entry entry) {
	e.waiting += entry.count
	if c.add(entry) {
		e.list(c)
	}
}

// standing answers the reservations of the input for a job, as far as its hosts
// would still take it. Elements of an array are alike, so what one of them was
// promised serves another.
func (e *Engine) standing(job *cluster.Job, c *class) (promises []promise) {
	if len(e.promised) == 0 {
		return nil
	}
	key := runKey{job: job.ID}
	for i := job.Begun; i < max(job.Array, 1); i++ {
		if job.Array > 0 {
			key.element = i + 1
		}
		if p, standing := e.promised[key]; standing && e.holdsFor(p, c) {
			promises = append(promises, p)
		}
	}
	slices.SortStableFunc(promises, earlier)
	return promises
}

// holdsFor tells whether what was promised would do for a job of the class.
func (e *Engine) holdsFor(p promise, c *class) bool {
	if int(p.choice) >= len(c.choices) || !c.possible[p.choice] || int64(len(p.hosts)) != c.nodes {
		return false
	}
	return !slices.ContainsFunc(p.hosts, func(h int32) bool {
		return !c.takes(e.hosts[h].kind, e.hosts[h].size)
	})
}

// list puts a class whose first job is another one now where it belongs among those with
// waiting jobs.
func (e *Engine) list(c *class) {
	if c.listed {
		e.lineup.remove(c)
	}
	e.lineup.add(c)
}

// inOrder answers the places of jobs in the order in which they are taken.
func inOrder(jobs []cluster.Job) []int32 {
	order := make([]int32, len(jobs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(jobs[b].Priority, jobs[a].Priority), cmp.Compare(jobs[a].ID, jobs[b].ID), cmp.Compare(a, b))
	})
	return order
}

func entryOf(job *cluster.Job) entry {
	return entry{
		id: job.ID, priority: job.Priority, submitted: job.Submitted,
		count: max(job.Array-job.Begun, 1), begun: job.Begun, array: job.Array > 0,
	}
}

// End ends a running job (element is 0 for one that is no array's), and tells
// whether there was such a one.
func (e *Engine) End(job, element int64) bool {
	key := runKey{job, element}
	r := e.running.find(key)
	if r == nil {
		return false
	}
	e.freed = true
	for _, h := range r.hosts {
		e.occupy(h, r.need, -1)
		e.hosts[h].ends.remove(r.ends, r.need)
	}
	e.giveBack(r)
	e.running.remove(key)
	return true
}

// giveBack takes back the tokens of a running job.
func (e *Engine) giveBack(r *run) {
	for _, n := range r.tokens() {
		e.resources[n.pool].InUse -= n.units
		e.uses[n.pool].remove(r.ends, n.one)
	}
}

// Session is one session at `now`. What it starts runs in the engine from then on.
func (e *Engine) Session(now cluster.Time) Result { return e.session(now, true) }

// Decide is Session without words: it leaves out why jobs wait, what is kept for them and
// what lies idle, for callers that hold many sessions and ask for that seldom. See Causes
// and Explain, IdleClock and IdleSince. Beside its demand, the answer holds until the next
// session only.
func (e *Engine) Decide(now cluster.Time) Result { return e.session(now, false) }

func (e *Engine) session(now cluster.Time, words bool) Result {
	s := e.place(now, words)
	s.kept = words
	if e.waiting == 0 && !words {
		e.rest(now)
		return Result{Starts: s.started()}
	}
	s.placeVirtual()
	return s.finish()
}

// Place is the first half of a session, on real capacity only: for callers that
// need neither demand nor reasons. The answer holds until the next session only.
func (e *Engine) Place(now cluster.Time) []Start {
	s := &e.scratch
	s.lazy = e.policy.Order == EASY
	e.place(now, false)
	s.lazy, s.owed, s.kept = false, nil, false
	return s.started()
}

func (e *Engine) place(now cluster.Time, words bool) *session {
	s := e.begin(now)
	s.words = words
	s.letGo()
	e.refresh()
	s.rejoin()
	if e.policy.Order == Conservative {
		s.placeReserved()
	} else {
		s.placeReal()
	}
	s.settle()
	e.freed = false
	return s
}
