package scheduling

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"xce.internal/elastic/cluster"
)

// forever is later than every instant of a cluster's life: when a job without a
// time limit is counted to end. A time limit may reach beyond it.
const forever cluster.Time = 1 << 60

// noLimit is the time limit of a job that has none.
const noLimit = cluster.Duration(2 * forever)

// class is all jobs with the same needs: where one of them finds no place, no
// later one does.
type class struct {
	// What comes first is looked at whenever a job comes or starts.
	*footprint
	*fitted
	alone     bool // see promises
	listed    bool // in Engine.lineup, at stands
	touched   bool // among session.touched
	forgotten bool // it is not in Engine.classIndex any more
	head      int
	queue     []entry // the waiting ones from head on, in session order
	// waiting is how many of its jobs (elements of arrays one by one) wait.
	waiting int64
	stands  queued
	readied uint64 // the pass that it is ready for
	limit   cluster.Duration
	pass    classPass
	// promises are the reservations of its first jobs. Under the conservative order
	// they stand from one session to the next, and a job that has one is alone.
	promises []promise
	judged   uint64 // the pass after which it was judged what it lacks
	// hadPlace is one more than the changes of the engine after which a job of the
	// class was last found to have a place once hosts are empty.
	hadPlace uint64
	single   [1]entry // what the queue begins with, since many classes have one job

	key        classKey
	constraint string
	// thresholds are the scopes in each of which one must be met; see Threshold.
	thresholds []scope
}

// fitted is what hosts and templates the jobs of a class may use.
type fitted struct {
	world uint64 // as it was worked out for; see Engine.worldNow
	// kinds and templates are those that the constraint allows and that are large
	// enough; wide has also templates that only have too little of what is needed.
	kinds           []int32
	templates, wide *templateSet
	// never, where it has a code, is why the jobs can never run.
	never verdict
	words string // what one of them needs of hosts
	size  int64  // see Engine.sizeOf
}

// classPass is what one session has found out about a class.
type classPass struct {
	cursor cursor
	// noHost tells that real hosts do not take it now, noToken that the tokens
	// that are free do not do.
	noHost, noToken bool
	witness         int32 // a host that took a job of it
	// tried is where the search for a host goes on: what did not take one of its
	// jobs takes no later one.
	tried spot
	// quiet classes raise no demand: their threshold is not met. hopeless ones get
	// no host, whatever others get.
	quiet, hopeless bool
	// skipped are its first jobs, whose reservations come before new supply;
	// admitted are those after them that get what is coming or asked for, and
	// onReal the first of these, which lack tokens only.
	skipped, admitted, onReal int64
	tokens                    []tokenSpan // how the admitted ones have their tokens
	cut                       verdict     // why those after them get nothing
	cutAt                     cursor      // the first of those
	item                      int32       // in supply.items, or noItem
	kept                      []keptHost  // hosts that are here, for which of the admitted ones
	spans                     []span
}

// spot is a bin on the shelf of a class's kind.
type spot struct{ kind, bin int }

// entry is a waiting job in the queue of its class.
type entry struct {
	id, priority int64
	submitted    cluster.Time
	count        int64 // elements that wait; 1 for a plain job
	begun        int64 // elements that have begun
	array        bool
}

// before tells whether a is taken before b.
func (a entry) before(b entry) bool { return compareEntries(a, b) < 0 }

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
}

// use is how long a job of the class is counted to use what it gets.
func (c *class) use() cluster.Duration {
	if c.limit == noLimit {
		return usualUse
	}
	return c.limit
}

// cursor is a place in the queue of a class.
type cursor struct {
	entry   int
	element int64 // how many of the entry's waiting elements lie before
}

func (c *class) at(p cursor) entry { return c.queue[p.entry] }

func (c *class) atEnd(p cursor) bool { return p.entry >= len(c.queue) }

// after answers the place one job further.
func (c *class) after(p cursor) cursor {
	if p.element++; p.element >= c.queue[p.entry].count {
		return cursor{entry: p.entry + 1}
	}
	return p
}

// skip answers the place n jobs further.
func (c *class) skip(p cursor, n int64) cursor {
	if c.waiting == int64(len(c.queue)-c.head) { // no entry has more than one
		return cursor{entry: min(p.entry+int(n), len(c.queue))}
	}
	for n > 0 && p.entry < len(c.queue) {
		step := min(n, c.queue[p.entry].count-p.element)
		n -= step
		if p.element += step; p.element == c.queue[p.entry].count {
			p = cursor{entry: p.entry + 1}
		}
	}
	return p
}

// begin takes the first waiting job of the class out of the queue.
func (c *class) begin() {
	e := &c.queue[c.head]
	e.count--
	e.begun++
	if e.count == 0 {
		c.head++
	}
	c.waiting--
	c.pass.cursor = cursor{entry: c.head}
}

// split answers a class with the same needs and no jobs, for one that is alone.
func (c *class) split() *class {
	alone := *c
	alone.queue, alone.head, alone.waiting, alone.promises = nil, 0, 0, nil
	alone.alone, alone.listed, alone.touched, alone.forgotten = true, false, false, false
	alone.readied, alone.judged, alone.pass = 0, 0, classPass{}
	return &alone
}

// takes tells whether a host of a kind and size would take a job of the class if it
// were empty, or one node of it.
func (c *class) takes(kind int32, size []int64) bool {
	return covers(size, c.need) && slices.Contains(c.kinds, kind)
}

// empty tells whether no job of the class waits.
func (c *class) empty() bool { return c.head == len(c.queue) }

// add queues a job, and tells whether it is the first now.
func (c *class) add(e entry) (first bool) {
	if c.empty() {
		c.queue, c.head = c.queue[:0], 0
	}
	if c.queue == nil {
		c.queue = c.single[:0]
	}
	if c.head > 64 && c.head > len(c.queue)/2 { // most of it is over
		c.queue, c.head = c.queue[:copy(c.queue, c.queue[c.head:])], 0
	}
	c.waiting += e.count
	if n := len(c.queue); n == c.head || c.queue[n-1].before(e) {
		c.queue = append(c.queue, e)
		return n == c.head
	}
	i, _ := slices.BinarySearchFunc(c.queue[c.head:], e, compareEntries)
	c.queue = slices.Insert(c.queue, c.head+i, e)
	return i == 0
}

// reset makes the class ready for a pass on real capacity.
func (c *class) reset() {
	c.pass.cursor, c.pass.tried = cursor{entry: c.head}, spot{}
	c.pass.noHost, c.pass.noToken = false, false
}

// judge makes the class ready for a pass on what is not there yet.
func (c *class) judge() {
	c.pass = classPass{
		cursor: cursor{entry: c.head}, spans: c.pass.spans[:0], tokens: c.pass.tokens[:0], kept: c.pass.kept[:0],
	}
}

// tokenNeed is what one job needs of one pool.
type tokenNeed struct {
	pool  int32
	units int64
	one   []int64 // the units, as timelines count
}

// footprint is what one job takes: jobs that differ only in where and how long
// they may run have the same.
type footprint struct {
	need  []int64 // on each host, by dimension
	nodes int64
	// choices are the tokens that one job takes: one entry, or one for each
	// alternative; possible tells which of them can be had at all.
	choices  [][]tokenNeed
	possible []bool
	// impossible, where it has a code, is why nothing could ever be taken so.
	impossible verdict
	spec       cluster.JobSpec // of one of the jobs
	anywhere   *fitted         // what jobs without a constraint may use; nil until there is one
	forgotten  bool            // it is not in Engine.footprints any more
}

// footprintOf answers the footprint of a job, and makes it where there is none.
func (e *Engine) footprintOf(job *cluster.Job) *footprint {
	e.key = e.appendFootprint(e.key[:0], job)
	if f, known := e.footprints[string(e.key)]; known {
		return f
	}
	f := e.newFootprint(job)
	e.footprints[string(e.key)] = f
	return f
}

// classKey is what jobs of one class have in common; the queue counts only where
// it has thresholds.
type classKey struct {
	footprint         *footprint
	limit             cluster.Duration
	constraint, queue int32 // numbers of Engine.texts
}

// classOf answers the class of a job, and makes it where there is none.
func (e *Engine) classOf(job *cluster.Job) *class { return e.classBy(e.keyOf(job), job) }

// keyOf answers what a job has in common with others of its class.
func (e *Engine) keyOf(job *cluster.Job) classKey {
	key := classKey{footprint: e.footprintOf(job), limit: job.TimeLimit, constraint: e.number(job.Constraint)}
	if job.Queue != "" && e.thresholdQueues[job.Queue] {
		key.queue = e.number(job.Queue)
	}
	return key
}

// classBy is classOf for a job of which the key is known.
func (e *Engine) classBy(key classKey, job *cluster.Job) *class {
	if c, known := e.classIndex[key]; known {
		if c.world != e.worldNow() {
			e.fit(c)
		}
		return c
	}
	c := e.newClass(job, key)
	e.classIndex[key] = c
	return c
}

// number answers the number of a text; 0 is that of none.
func (e *Engine) number(text string) int32 {
	if text == "" {
		return 0
	}
	n, known := e.texts[text]
	if !known {
		n = int32(len(e.texts) + 1)
		e.texts[text] = n
	}
	return n
}

// appendFootprint appends what tells footprints apart.
func (e *Engine) appendFootprint(key []byte, job *cluster.Job) []byte {
	key = binary.AppendVarint(key, max(job.Nodes, 1))
	key = binary.AppendVarint(key, job.CPUs)
	key = binary.AppendVarint(key, job.MemoryMB)
	if job.Exclusive {
		key = append(key, 'x')
	}
	key = e.appendCounts(key, job.Countables)
	key = e.appendCounts(key, job.Tokens)
	key = binary.AppendUvarint(key, uint64(len(job.Alternatives)))
	for _, alternative := range job.Alternatives {
		key = e.appendCounts(key, alternative)
	}
	return key
}

// appendCounts appends a map's entries in the order of their names.
func (e *Engine) appendCounts(key []byte, counts map[string]int64) []byte {
	key = binary.AppendUvarint(key, uint64(len(counts)))
	for _, name := range e.sorted(counts) {
		key = append(append(key, name...), 0)
		key = binary.AppendVarint(key, counts[name])
	}
	return key
}

// sorted answers the names in a map, in order, in memory that is used again.
func (e *Engine) sorted(counts map[string]int64) []string {
	e.names = e.names[:0]
	for name := range counts {
		e.names = append(e.names, name)
	}
	if len(e.names) > 1 {
		slices.Sort(e.names)
	}
	return e.names
}

// newVector answers a vector of zeros. They are made many at a time.
func (e *Engine) newVector() []int64 {
	dims := e.dims.count()
	if len(e.vectors) < dims {
		e.vectors = make([]int64, 64*dims)
	}
	v := e.vectors[:dims:dims]
	e.vectors = e.vectors[dims:]
	return v
}

func (e *Engine) newFootprint(job *cluster.Job) *footprint {
	f := &footprint{nodes: max(job.Nodes, 1), spec: job.JobSpec}
	e.fill(f)
	return f
}

// refill works out all footprints anew, and with them the classes.
func (e *Engine) refill() {
	for _, f := range e.footprints {
		e.fill(f)
	}
	e.listEndings()
	e.world++
}

// fill works out a footprint from its jobs' words, and the state of the cluster.
func (e *Engine) fill(f *footprint) {
	job := &f.spec
	f.need, f.impossible = e.newVector(), verdict{}
	f.need[dimCPUs], f.need[dimMemory] = job.CPUs, job.MemoryMB
	f.need[len(f.need)-1] = 1
	if job.Exclusive {
		f.need[len(f.need)-1] = wholeHost
	}
	for _, name := range e.sorted(job.Countables) {
		d, known := e.dims.index[name]
		switch {
		case known:
			f.need[d] = job.Countables[name]
		case job.Countables[name] > 0:
			f.setImpossible(unknownCountable(name, job.Countables[name]))
		}
	}
	e.tokenChoices(f, job)
}

func (f *footprint) setImpossible(v verdict) {
	if f.impossible.code == "" {
		f.impossible = v
	}
}

func (e *Engine) newClass(job *cluster.Job, key classKey) *class {
	c := &class{footprint: key.footprint, fitted: key.footprint.fittedFor(job.Constraint), key: key, constraint: job.Constraint, limit: job.TimeLimit}
	if c.limit <= 0 {
		c.limit = noLimit
	}
	c.thresholds = e.scopesOf(job)
	if c.templates == nil || c.world != e.worldNow() {
		e.fit(c)
	}
	return c
}

// fittedFor answers where it stands what jobs may use: classes without a constraint that
// differ only in how long their jobs may run share it.
func (f *footprint) fittedFor(constraint string) *fitted {
	if constraint != "" {
		return &fitted{}
	}
	if f.anywhere == nil {
		f.anywhere = &fitted{}
	}
	return f.anywhere
}

// fit works out what hosts and templates the jobs of a class may use, as they are now.
func (e *Engine) fit(c *class) {
	constraint, err := cluster.ParseConstraint(c.constraint)
	if c.never = c.impossible; err != nil && c.never.code == "" {
		c.never = badConstraint(err)
	}
	c.kinds = e.kinds.open(constraint, c.need, c.kinds)
	c.wide = e.wideFor(c.constraint, constraint, c.need)
	c.templates = e.largeEnough(c.wide, c.need)
	c.size = e.sizeOf(c)
	c.words, c.world = "", e.worldNow()
}

// What a job takes that needs no tokens; shared, since most jobs are such.
var (
	noTokens         = [][]tokenNeed{nil}
	noTokensPossible = []bool{true}
)

// tokenChoices works out what one job may take, and what of it can never be had.
func (e *Engine) tokenChoices(f *footprint, job *cluster.JobSpec) {
	f.choices, f.possible = nil, nil
	alternatives := job.Alternatives
	switch {
	case len(alternatives) == 0 && len(job.Tokens) == 0:
		f.choices, f.possible = noTokens, noTokensPossible
		return
	case len(alternatives) == 0:
		alternatives = []map[string]int64{nil}
	}
	var first verdict
	possible := false
	for _, alternative := range alternatives {
		both := job.Tokens
		if len(alternative) > 0 {
			both = map[string]int64{}
			maps.Copy(both, job.Tokens)
			for name, units := range alternative {
				both[name] += units
			}
		}
		choice, never := e.tokenNeeds(both)
		if first.code == "" {
			first = never
		}
		possible = possible || never.code == ""
		f.choices, f.possible = append(f.choices, choice), append(f.possible, never.code == "")
	}
	if !possible {
		f.setImpossible(first)
	}
}

// tokenNeeds answers tokens as needs of pools, and why they can never be had. A
// running job may have more than could be had today.
func (e *Engine) tokenNeeds(tokens map[string]int64) (needs []tokenNeed, never verdict) {
	for _, name := range e.sorted(tokens) {
		units := tokens[name]
		if units == 0 {
			continue
		}
		i, found := e.resourceIndex[name]
		if !found {
			never = unknownResource(name)
			continue
		}
		if most := e.ceiling(i); units > most && never.code == "" {
			never = overCeiling(&e.resources[i], units, most)
		}
		needs = append(needs, tokenNeed{pool: i, units: units, one: []int64{units}})
	}
	return needs, never
}

// hasTokens tells whether the class needs any.
func (c *class) hasTokens() bool { return len(c.choices) > 1 || len(c.choices[0]) > 0 }
