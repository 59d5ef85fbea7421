package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// What follows changes the state that an engine keeps, between sessions: the next one
// answers what Run would on the changed state. As in a controller, every change but
// the submission of a job counts as one by which something may have become free. Of
// what a call is given the engine keeps a copy; what that refers to must stay as it is.

// Join adds a host without jobs, and tells whether there was none of its name.
func (e *Engine) Join(h Host) bool {
	if _, known := e.hostIndex[h.Name]; known {
		return false
	}
	e.change()
	i := e.slot(h.Name)
	e.hosts[i] = host{name: h.Name, template: h.Template, closed: h.Closed, idleSince: h.IdleSince, capacity: h.Capacity}
	e.hostIndex[h.Name] = i
	at, _ := e.findHost(h.Name)
	e.order = slices.Insert(e.order, at, i)
	e.rank(at)
	if e.carry(h.Countables, 1) {
		e.measure()
		return true
	}
	e.measureHost(i)
	e.shelveHost(i)
	return true
}

// Leave takes a host without jobs away, and tells whether there was such a one.
func (e *Engine) Leave(name string) bool {
	i, known := e.hostIndex[name]
	if !known || e.hosts[i].jobs > 0 {
		return false
	}
	e.change()
	h := &e.hosts[i]
	if h.template != "" && h.idleSince > 0 {
		e.idleChanges++
	}
	e.unshelveHost(i)
	delete(e.hostIndex, name)
	at, _ := e.findHost(name)
	e.order = slices.Delete(e.order, at, at+1)
	e.rank(at)
	e.gone = append(e.gone, i)
	h.gone = true
	e.hostsChanged = true
	e.kinds.drop(h.kind, h.size)
	if e.carry(h.capacity.Countables, -1) {
		e.measure()
	}
	return true
}

// Close keeps new jobs from a host, and says why; "" opens it again. It tells whether
// there is such a host.
func (e *Engine) Close(name, why string) bool {
	i, known := e.hostIndex[name]
	if !known {
		return false
	}
	e.change()
	e.hostsChanged = true
	h := &e.hosts[i]
	was := h.closed
	switch {
	case was == "" && why != "":
		e.unshelveHost(i)
		h.closed = why
	case was != "" && why == "":
		h.closed = ""
		e.shelveHost(i)
	default:
		h.closed = why
	}
	return true
}

// SetExpected says which hosts were asked for and have not joined.
func (e *Engine) SetExpected(hosts []cluster.ExpectedHost) {
	e.change()
	changed := false
	for i := range hosts {
		changed = e.carry(hosts[i].Countables, 1) || changed
	}
	for i := range e.expected {
		changed = e.carry(e.expected[i].Countables, -1) || changed
	}
	old := e.expected
	e.takeExpected(hosts)
	e.dropExpected(old)
	if changed {
		e.measure()
	}
}

// SetCatalog says what providers can make and lend now.
func (e *Engine) SetCatalog(templates []cluster.Template, quotas []cluster.Quota, offers []cluster.Offer) {
	e.change()
	e.takeOffers(offers)
	changed := false
	for i := range templates {
		changed = e.carry(templates[i].Countables, 1) || changed
	}
	for i := range e.templates {
		changed = e.carry(e.templates[i].Countables, -1) || changed
	}
	old := e.templates
	e.takeCatalog(templates, quotas)
	switch {
	case changed:
		e.measure()
	case !slices.EqualFunc(old, e.templates, sameHosts):
		e.forgetTemplates()
		expected := e.expected
		e.takeExpected(e.expectedHosts())
		e.dropExpected(expected)
	}
}

// sameHosts tells whether the hosts of two templates are alike to jobs.
func sameHosts(a, b template) bool {
	return a.Name == b.Name && slices.Equal(a.size, b.size) && slices.Equal(a.said, b.said) && slices.Equal(a.features, b.features)
}

// forgetTemplates drops what was worked out from templates that are no more.
func (e *Engine) forgetTemplates() {
	clear(e.wides)
	clear(e.templateSets)
	e.world++
}

// SetResource says how many units there are of a resource, which loans are open and
// how long units have been idle. It tells whether the resource is one of the cluster's.
// How many are in use the engine knows itself.
func (e *Engine) SetResource(name string, total int64, loans []cluster.Loan, idle cluster.IdleClock) bool {
	i, known := e.resourceIndex[name]
	if !known {
		return false
	}
	e.change()
	r, most := &e.resources[i], e.ceiling(i)
	r.Total, r.Loans, r.Idle = total, append(r.Loans[:0], loans...), slices.Clone(idle)
	if e.ceiling(i) != most {
		e.refill()
	}
	return true
}

// SetOwned says how many units of a resource the cluster has for good, and tells whether the
// resource is one of the cluster's. The total is said by SetResource.
func (e *Engine) SetOwned(name string, owned int64) bool {
	i, known := e.resourceIndex[name]
	if !known {
		return false
	}
	e.change()
	most := e.ceiling(i)
	if e.resources[i].Owned = owned; e.ceiling(i) != most {
		e.refill()
	}
	return true
}

// Release gives the tokens of a running job back before it ends (element is 0 for
// one that is no array's), and tells whether there is such a job.
func (e *Engine) Release(job, element int64) bool {
	r := e.running.find(runKey{job, element})
	if r == nil {
		return false
	}
	e.change()
	e.giveBack(r)
	r.choice = noChoice
	return true
}

// noChoice is that of a job which has given its tokens back.
const noChoice = 1<<31 - 1

// Settle says whether something may have become free since the last session, in place of what the
// engine has noticed itself: as who keeps the books knows it.
func (e *Engine) Settle(settled bool) { e.freed = !settled }

// Running answers how many jobs run, elements of arrays counted one by one.
func (e *Engine) Running() int { return len(e.running.all) }

// Waiting answers how many jobs wait, elements of arrays counted one by one.
func (e *Engine) Waiting() int64 { return e.waiting }

// WaitsForSeveral tells whether a job waits that needs several hosts.
func (e *Engine) WaitsForSeveral() bool {
	for c := range e.lineup.all() {
		if c.nodes > 1 {
			return true
		}
	}
	return false
}

// change notes that something has changed beside what jobs there are.
func (e *Engine) change() {
	e.freed = true
	e.changes++
}

// slot answers where a host that joins is kept: where one of its name was until just
// now, whose reservations hold for it, else where nothing is.
func (e *Engine) slot(name string) int32 {
	for k, i := range e.gone {
		if e.hosts[i].name == name {
			e.gone = slices.Delete(e.gone, k, k+1)
			return i
		}
	}
	if last := len(e.spare) - 1; last >= 0 {
		i := e.spare[last]
		e.spare = e.spare[:last]
		return i
	}
	e.hosts = append(e.hosts, host{})
	return int32(len(e.hosts) - 1)
}

// findHost answers where in the order of names a host is, or would be.
func (e *Engine) findHost(name string) (at int, found bool) {
	return slices.BinarySearchFunc(e.order, name, func(i int32, name string) int { return cmp.Compare(e.hosts[i].name, name) })
}

// rank numbers the hosts by name, from a place on.
func (e *Engine) rank(from int) {
	e.kindsMixed = true
	for at := from; at < len(e.order); at++ {
		e.hosts[e.order[at]].rank = int32(at)
	}
}

// carry counts who has countables, and tells whether there are others now.
func (e *Engine) carry(countables map[string]int64, by int) (changed bool) {
	for name := range countables {
		before := e.carriers[name]
		e.carriers[name] = before + by
		switch {
		case before+by == 0:
			delete(e.carriers, name)
			changed = true
		case before == 0:
			changed = true
		}
	}
	return changed
}

// worldNow numbers the changes of what classes are worked out from.
func (e *Engine) worldNow() uint64 { return e.world + e.kinds.version }

// refresh makes good at the begin of a session what changes have made wrong.
func (e *Engine) refresh() {
	if !e.hostsChanged && e.checked == e.worldNow() {
		return
	}
	for _, b := range e.lineup.blocks {
		b.stale = true
	}
	for c := range e.lineup.all() {
		if c.world != e.worldNow() {
			e.fit(c)
		}
		if c.alone {
			c.promises = slices.DeleteFunc(c.promises, func(p promise) bool { return !e.stands(p, c) })
		}
	}
	e.spare = append(e.spare, e.gone...)
	e.gone, e.hostsChanged, e.checked = e.gone[:0], false, e.worldNow()
}

// stands tells whether what was promised to a job of the class is still there.
func (e *Engine) stands(p promise, c *class) bool {
	void := func(h int32) bool { return e.hosts[h].gone || e.hosts[h].closed != "" }
	return !slices.ContainsFunc(p.hosts, void) && e.holdsFor(p, c)
}
