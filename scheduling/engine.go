package scheduling

import (
	"cmp"
	"encoding/binary"
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

	hosts     []host
	hostIndex map[string]int32
	shelves   []realShelf // the hosts that take jobs, by kind
	sizes     []model

	resources     []Resource
	resourceIndex map[string]int32
	expected      []expected
	templates     []template
	templateIndex map[string]int32
	quotas        []quota
	offers        []cluster.Offer

	thresholds      []Threshold
	thresholdQueues map[string]bool

	classes      []*class
	classIndex   map[classKey]*class
	footprints   map[string]*footprint
	wides        map[string]*templateSet // by constraint and what is needed at all
	templateSets map[string]*templateSet
	held         []cluster.Job      // waiting jobs that may not start yet
	freed        bool               // something has become free since the last session
	promised     map[runKey]promise // of the input, for jobs that are not queued yet
	runs         []run
	runIndex     map[runKey]int32 // nil until it is needed
	key          []byte           // reused
	vectors      []int64          // for new footprints
	words        []byte           // reused
	setKey       []byte           // reused
	setBits      []uint64         // reused
	names        []string         // reused
	scratch      session          // reused
}

// host is a host that has joined.
type host struct {
	name, template string
	closed         string
	kind           int32
	leaf           int32 // where on the shelf of its kind it stands
	jobs           int32
	size, free     []int64
	none           []int64 // as much as is free on a host that a job has alone
	idleSince      cluster.Time
}

// left is what other jobs can have of the host: nothing where one has it alone.
func (h *host) left() []int64 {
	if h.free[len(h.free)-1] > 0 {
		return h.free
	}
	return h.none
}

// model is hosts of one kind and size that take jobs.
type model struct {
	kind  int32
	size  []int64
	count int64
}

// run is a running job, or element of an array.
type run struct {
	key runKey
	*footprint
	choice int32
	hosts  []int32
	ends   cluster.Time
}

type runKey struct{ job, element int64 }

// New takes over a state. It reads what in refers to as long as it lives.
func New(in Input) *Engine {
	e := &Engine{
		policy: in.Policy, dims: newDimensions(&in), kinds: kinds{index: map[string]int32{}},
		hostIndex: map[string]int32{}, resourceIndex: map[string]int32{}, templateIndex: map[string]int32{},
		offers: in.Offers, thresholds: in.Thresholds, thresholdQueues: map[string]bool{},
		classIndex: map[classKey]*class{}, footprints: map[string]*footprint{}, wides: map[string]*templateSet{}, templateSets: map[string]*templateSet{},
	}
	for _, t := range in.Thresholds {
		if t.Queue != "" {
			e.thresholdQueues[t.Queue] = true
		}
	}
	e.takeHosts(in.Hosts)
	e.takeCatalog(in)
	e.takeExpected(in.Expected)
	e.addShelves()
	e.resources = slices.Clone(in.Resources)
	slices.SortFunc(e.resources, func(a, b Resource) int { return cmp.Compare(a.Name, b.Name) })
	for i, r := range e.resources {
		e.resourceIndex[r.Name] = int32(i)
	}
	for i := range in.Running {
		e.takeRunning(&in.Running[i])
	}
	e.takeReservations(in.Reservations)
	for i := range in.Jobs {
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

func (e *Engine) takeHosts(hosts []Host) {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	d := e.dims.count()
	flat, none := make([]int64, 2*d*len(hosts)), make([]int64, d)
	for i := range hosts {
		h := &hosts[i]
		taken := host{name: h.Name, template: h.Template, closed: h.Closed, idleSince: h.IdleSince, none: none}
		taken.size, flat = flat[:d:d], flat[d:]
		taken.free, flat = flat[:d:d], flat[d:]
		e.dims.size(taken.size, h.Capacity)
		copy(taken.free, taken.size)
		taken.kind = e.kinds.of(taken.size, h.Capacity)
		e.hosts = append(e.hosts, taken)
	}
	e.addShelves()
	known := map[string]int{}
	for i := range e.hosts {
		h := &e.hosts[i]
		e.hostIndex[h.name] = int32(i)
		if h.closed != "" {
			continue
		}
		e.shelves[h.kind].hosts = append(e.shelves[h.kind].hosts, int32(i))
		e.key = appendSize(e.key[:0], h.kind, h.size)
		at, seen := known[string(e.key)]
		if !seen {
			at = len(e.sizes)
			known[string(e.key)] = at
			e.sizes = append(e.sizes, model{kind: h.kind, size: h.size})
		}
		e.sizes[at].count++
	}
}

// addShelves makes a shelf for each kind that has none.
func (e *Engine) addShelves() {
	for len(e.shelves) < len(e.kinds.all) {
		e.shelves = append(e.shelves, realShelf{changed: true})
	}
}

// appendSize appends what tells models of hosts apart.
func appendSize(key []byte, kind int32, size []int64) []byte {
	key = binary.AppendVarint(key, int64(kind))
	for _, n := range size {
		key = binary.AppendVarint(key, n)
	}
	return key
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
	e.runs = append(e.runs, r)
}

// occupy gives a host to a job (by is 1), or takes it back (by is -1).
func (e *Engine) occupy(h int32, need []int64, by int64) {
	host := &e.hosts[h]
	e.shelves[host.kind].changed = true
	host.jobs += int32(by)
	for d, n := range need {
		host.free[d] -= by * n
	}
}

// Submit queues a job.
func (e *Engine) Submit(job cluster.Job) { e.submit(&job) }

func (e *Engine) submit(job *cluster.Job) {
	if len(job.After) > 0 || job.NotBefore > 0 {
		e.held = append(e.held, *job)
		return
	}
	e.enqueue(job)
}

// enqueue puts a job into the queue of its class. One that has a reservation is a
// class of its own.
func (e *Engine) enqueue(job *cluster.Job) {
	c := e.classOf(job)
	if promises := e.standing(job, c); len(promises) > 0 {
		c = c.split()
		c.promises = promises
	}
	e.list(c)
	c.add(entryOf(job))
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

// list puts a class among those with waiting jobs.
func (e *Engine) list(c *class) {
	if !c.listed {
		c.listed = true
		e.classes = append(e.classes, c)
	}
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
	if e.runIndex == nil {
		e.runIndex = make(map[runKey]int32, len(e.runs))
		for i := range e.runs {
			e.runIndex[e.runs[i].key] = int32(i)
		}
	}
	key := runKey{job, element}
	i, known := e.runIndex[key]
	if !known {
		return false
	}
	e.freed = true
	r := &e.runs[i]
	for _, h := range r.hosts {
		e.occupy(h, r.need, -1)
	}
	if int(r.choice) < len(r.choices) {
		for _, n := range r.choices[r.choice] {
			e.resources[n.pool].InUse -= n.units
		}
	}
	last := len(e.runs) - 1
	e.runs[i] = e.runs[last]
	e.runIndex[e.runs[i].key] = i
	e.runs[last] = run{}
	e.runs = e.runs[:last]
	delete(e.runIndex, key)
	return true
}

// Session is one session at `now`. What it starts runs in the engine from then on.
func (e *Engine) Session(now cluster.Time) Result {
	s := e.place(now)
	s.placeVirtual()
	return s.finish()
}

// Place is the first half of a session, on real capacity only: for callers that
// need neither demand nor reasons.
func (e *Engine) Place(now cluster.Time) []Start {
	s := e.place(now)
	s.forget()
	return s.starts
}

func (e *Engine) place(now cluster.Time) *session {
	s := e.begin(now)
	s.letGo()
	if e.policy.Order == Conservative {
		s.placeReserved()
	} else {
		s.placeReal()
	}
	e.freed = false
	return s
}
