package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// host is a host that has joined.
type host struct {
	name, template string
	closed         string
	capacity       cluster.Capacity
	gone, moved    bool
	rank           int32 // by name
	kind           int32
	leaf           int32 // where on the shelf of its kind it stands
	jobs           int32
	size, free     []int64
	ends           endings // of its running jobs
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

// takeDimensions counts who has countables, and makes the dimensions of them.
func (e *Engine) takeDimensions(in *Input) {
	for i := range in.Hosts {
		e.carry(in.Hosts[i].Countables, 1)
	}
	for i := range in.Expected {
		e.carry(in.Expected[i].Countables, 1)
	}
	for i := range in.Templates {
		e.carry(in.Templates[i].Countables, 1)
	}
	e.dims, e.kinds = newDimensions(e.carriers), kinds{index: map[string]int32{}}
}

func (e *Engine) takeHosts(hosts []Host) {
	e.hosts, e.order = make([]host, len(hosts)), make([]int32, len(hosts))
	for i := range hosts {
		h := &hosts[i]
		e.hosts[i] = host{name: h.Name, template: h.Template, closed: h.Closed, idleSince: h.IdleSince, capacity: h.Capacity}
	}
	slices.SortFunc(e.hosts, func(a, b host) int { return cmp.Compare(a.name, b.name) })
	for i := range e.hosts {
		e.hostIndex[e.hosts[i].name], e.order[i] = int32(i), int32(i)
	}
	e.rank(0)
	e.measureHosts()
}

// measureHosts works out all hosts in the dimensions as they are.
func (e *Engine) measureHosts() {
	e.kindsMixed = true
	e.shelves, e.sizes, e.none = nil, nil, e.newVector()
	for _, i := range e.order {
		e.measureHost(i)
		e.shelveHost(i)
	}
}

// measureHost works out what a host has and what is free on it, before any job.
func (e *Engine) measureHost(i int32) {
	h := &e.hosts[i]
	h.size, h.free, h.none = e.newVector(), e.newVector(), e.none
	h.moved = false
	e.dims.size(h.size, h.capacity)
	copy(h.free, h.size)
	h.kind = e.kindOf(h.size, h.capacity)
}

// kindOf answers the kind of one more host, by number. Each kind has a shelf.
func (e *Engine) kindOf(size []int64, c cluster.Capacity) int32 {
	k := e.kinds.of(size, c)
	for len(e.shelves) < len(e.kinds.all) {
		e.shelves = append(e.shelves, realShelf{changed: true})
	}
	return k
}

// shelveHost lets a host take jobs, unless it is closed.
func (e *Engine) shelveHost(i int32) {
	h := &e.hosts[i]
	if h.closed != "" {
		return
	}
	shelf := &e.shelves[h.kind]
	shelf.hosts, shelf.changed = append(shelf.hosts, i), true
	if at := e.modelOf(h); at >= 0 {
		e.sizes[at].count++
		return
	}
	e.sizes = append(e.sizes, model{kind: h.kind, size: h.size, count: 1})
}

// unshelveHost takes a host from those that take jobs, if it is one.
func (e *Engine) unshelveHost(i int32) {
	h := &e.hosts[i]
	if h.closed != "" {
		return
	}
	shelf := &e.shelves[h.kind]
	at := slices.Index(shelf.hosts, i)
	shelf.hosts, shelf.changed = slices.Delete(shelf.hosts, at, at+1), true
	at = e.modelOf(h)
	if e.sizes[at].count--; e.sizes[at].count == 0 {
		e.sizes = slices.Delete(e.sizes, at, at+1)
	}
}

// modelOf answers the place of a host's model, or -1.
func (e *Engine) modelOf(h *host) int {
	return slices.IndexFunc(e.sizes, func(m model) bool { return m.kind == h.kind && slices.Equal(m.size, h.size) })
}

// measure works out everything anew that is counted in dimensions, after these have
// changed.
func (e *Engine) measure() {
	e.dims = newDimensions(e.carriers)
	e.kinds = kinds{index: map[string]int32{}, version: e.kinds.version + 1}
	e.vectors = nil
	e.measureHosts()
	templates, quotas := e.catalog()
	clear(e.templateIndex) // with all that was measured
	e.takeCatalog(templates, quotas)
	e.takeExpected(e.expectedHosts())
	e.forgetTemplates()
	e.refill()
	for i := range e.hosts {
		e.hosts[i].jobs = 0
	}
	for i := range e.running.all {
		for _, h := range e.running.all[i].hosts {
			e.occupy(h, e.running.all[i].need, 1)
		}
	}
	e.listEndings()
}

// kindsByHost answers the kinds that have hosts, in the order of their first hosts'
// names.
func (e *Engine) kindsByHost() []int32 {
	if !e.kindsMixed {
		return e.kindOrder
	}
	e.kindsMixed, e.kindOrder = false, e.kindOrder[:0]
	seen := make([]bool, len(e.kinds.all))
	for _, i := range e.order {
		if k := e.hosts[i].kind; !seen[k] {
			seen[k] = true
			e.kindOrder = append(e.kindOrder, k)
		}
	}
	return e.kindOrder
}
