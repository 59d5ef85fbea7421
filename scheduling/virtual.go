package scheduling

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// placeVirtual tries the jobs that could not start on what is not there yet:
// tokens and hosts that are coming, then what lenders could lend and providers
// could make. Nothing of it starts; it says what to ask for.
//
// Tokens are given in the order of the jobs, and then all jobs that have theirs
// are packed onto hosts together. Where every job finds a place the order does
// not matter. Where not, the jobs take tokens and the chosen hosts once more,
// strictly in order, so that what is asked for lets those run that come first.
func (s *session) placeVirtual() {
	classes := s.candidates()
	for _, p := range s.pools {
		p.keep()
	}
	if len(s.starts) > 0 {
		s.shelve() // as the next session will find the hosts
	}
	s.supply.reset(s)
	classes = s.withoutHopeless(classes)
	s.takePromised(classes, func(c *class) int64 { return c.pass.skipped })
	s.inOrder(classes, nil)
	s.placeOnReal(classes)
	s.makeItems(classes)
	if s.supply.pack(s.supply.packOrder()) && !s.someoneBlocks(classes) {
		s.finishSupply()
		return
	}
	s.resetTokens(classes)
	s.supply.cheapestFirst()
	s.supply.clearHosts(s)
	s.takePromised(classes, func(c *class) int64 { return c.pass.skipped })
	chooser := s.itemsByClass(classes)
	s.inOrder(classes, chooser)
	s.finishSupply()
}

// withoutHopeless cuts the classes for which there is no host at all, whatever
// others get, and answers the rest. Those that let no other pass stay, to do so
// in their turn.
func (s *session) withoutHopeless(classes []*class) []*class {
	return slices.DeleteFunc(slices.Clone(classes), func(c *class) bool {
		if s.blocks(c) || s.supply.hasHope(c, s.shelves) {
			return false
		}
		c.pass.cut = s.lacksHosts(c)
		return true
	})
}

// hasHope tells whether all the supply there is would do for a job of the class.
func (sp *supply) hasHope(c *class, real []realShelf) bool {
	missing := c.nodes
	for _, k := range c.kinds {
		for i := real[k].bins.first(c.need, 0); i >= 0 && missing > 0; i = real[k].bins.first(c.need, i+1) {
			missing--
		}
		missing -= sp.coming[k].room(c.need, max(missing, 0))
	}
	if !c.pass.quiet {
		for _, t := range c.templates.list {
			missing -= min(sp.available(t), max(missing, 0))
		}
	}
	return missing <= 0
}

// someoneBlocks tells whether a job that gets no tokens may lack a host too, so
// that under fcfs nothing starts after it.
func (s *session) someoneBlocks(classes []*class) bool {
	return slices.ContainsFunc(classes, func(c *class) bool {
		return c.pass.cut.code != "" && s.blocks(c) && !s.supply.hasRoom(c)
	})
}

// candidates answers the classes of which jobs wait that could ever run, and
// decides which of their jobs need nothing new and which may ask for nothing.
func (s *session) candidates() []*class {
	met := s.metScopes()
	for _, c := range s.e.classes {
		if c.waiting == 0 {
			continue
		}
		if c.never.code == "" {
			c.never = s.noPlaceEver(c)
		}
		if c.never.code != "" {
			s.tell(c, c.waiting, c.never)
			continue
		}
		c.pass.quiet = !met(c)
		c.pass.skipped = s.soonEnough(c)
		s.classes = append(s.classes, c)
	}
	slices.SortFunc(s.classes, byFirst)
	return s.classes
}

// soonEnough answers how many of the class's reservations come before anything
// new could: for those nothing is asked for.
func (s *session) soonEnough(c *class) (n int64) {
	if len(c.promises) == 0 {
		return 0
	}
	latency, known := s.shortestLatency(c)
	for _, p := range c.promises {
		if p.at >= forever || known && p.at > s.now.Add(latency) {
			break
		}
		n++
	}
	return n
}

// shortestLatency answers the least time in which what a job of the class lacks
// could be there; not known means never.
func (s *session) shortestLatency(c *class) (latency cluster.Duration, known bool) {
	add := func(l cluster.Duration) {
		if !known || l < latency {
			latency, known = l, true
		}
	}
	for _, t := range c.templates.list {
		add(s.e.templates[t].Latency)
	}
	for i := range s.e.expected {
		add(max(s.e.expected[i].Expected.Sub(s.now), 0))
	}
	for _, tokens := range c.choices {
		for _, n := range tokens {
			for _, src := range s.pools[n.pool].sources {
				add(src.offer.Latency)
			}
			for _, a := range s.pools[n.pool].arrivals {
				add(max(a.at.Sub(s.now), 0))
			}
		}
	}
	return latency, known
}

// takePromised keeps the hosts and tokens that the first jobs of each class
// have a reservation for out of what others may count on.
func (s *session) takePromised(classes []*class, jobs func(*class) int64) {
	for _, c := range classes {
		for _, p := range c.promises[:jobs(c)] {
			s.keepHosts(p)
			for _, n := range c.choices[p.choice] {
				pool := s.pools[n.pool]
				pool.unreserved -= min(n.units, max(pool.unreserved, 0))
				pool.reserved = true
			}
		}
	}
}

func (s *session) keepHosts(p promise) {
	for _, h := range p.hosts {
		shelf := &s.supply.real[s.e.hosts[h].kind]
		free := shelf.bins.free(int(s.leaf[h]))
		for d := range free {
			free[d] = -1
		}
		shelf.bins.changed(int(s.leaf[h]))
	}
}

// resetTokens puts the pools back as the real pass left them.
func (s *session) resetTokens(classes []*class) {
	for i := range s.pools {
		s.pools[i].putBack()
	}
	for _, c := range classes {
		c.pass.admitted, c.pass.onReal, c.pass.cut = 0, 0, verdict{}
		c.pass.tokens = c.pass.tokens[:0]
	}
	s.outcomes = s.outcomes[:0]
}

// inOrder takes the waiting jobs in order, and gives each its tokens. With a
// chooser it gives them a place on a host too: both or neither. Jobs without
// tokens are all admitted where there is no chooser.
func (s *session) inOrder(classes []*class, items []int32) {
	s.queue = s.queue[:0]
	for i, c := range classes {
		c.pass.cursor = c.skip(cursor{entry: c.head}, c.pass.skipped)
		c.pass.item = -1
		if items != nil {
			c.pass.item = items[i]
		} else if !c.hasTokens() {
			c.pass.admitted = c.waiting - c.pass.skipped
			continue
		}
		if !c.atEnd(c.pass.cursor) {
			s.queue.append(c)
		}
	}
	s.queue.build()
	for len(s.queue) > 0 {
		c := s.queue[0].class
		more, stop := s.admitNext(c)
		if stop {
			return
		}
		if c.pass.cursor = c.after(c.pass.cursor); more {
			s.queue.fix()
		} else {
			s.queue.pop()
		}
	}
}

// admitNext gives the next job of the class what it needs, or cuts the class
// there. It tells whether to go on with the class, and whether to stop at all.
func (s *session) admitNext(c *class) (more, stop bool) {
	id := c.at(c.pass.cursor).id
	choice, ok := s.offerTokens(c)
	shares := s.shares[choice]
	if c.pass.cut.code != "" || !ok {
		if c.pass.cut.code == "" {
			c.pass.cut = s.lacksTokens(c, choice)
			if c.pass.item >= 0 {
				s.keepPromises(c)
				stop = s.blocks(c) && !s.supply.hasRoom(c)
			}
		}
		for i := range shares {
			shares[i].reserve(id)
			more = more || !shares[i].pool.drained()
		}
		if stop {
			s.hostWaiter = id
		}
		return more, stop
	}
	if c.pass.item >= 0 && !s.supply.place(c.pass.item) {
		c.pass.cut = s.lacksHosts(c)
		s.keepPromises(c)
		if s.blocks(c) {
			s.hostWaiter = id
			return false, true
		}
		return false, false
	}
	for i := range shares {
		shares[i].take(id)
	}
	c.pass.admitted++
	s.noteTokens(c, choice)
	return true, false
}

// blocks tells whether a job of the class that lacks a host lets no other pass.
func (s *session) blocks(c *class) bool { return s.e.policy.reserves() == 0 && s.couldEver(c) }

// keepPromises keeps what the class's other reservations are for, once its jobs
// must rely on them.
func (s *session) keepPromises(c *class) {
	for i := c.pass.skipped + c.pass.admitted; i < int64(len(c.promises)); i++ {
		if c.promises[i].at < forever {
			s.keepHosts(c.promises[i])
		}
	}
}

// offerTokens works out how the tokens of a job could be had, and answers the
// choice: what needs no borrowing, then the cheapest. Not ok means that none can
// be had; then the answer is the first.
func (s *session) offerTokens(c *class) (choice int, ok bool) {
	for len(s.shares) < len(c.choices) {
		s.shares = append(s.shares, nil)
	}
	best := int64(-1)
	choice = c.firstChoice()
	for i, tokens := range c.choices {
		if tokens == nil {
			continue
		}
		total, served := s.offerChoice(i, tokens, c.pass.quiet)
		if served && (best < 0 || total < best) {
			choice, best, ok = i, total, true
		}
	}
	return choice, ok
}

// offerChoice works out one choice, and answers what it would cost.
func (s *session) offerChoice(i int, tokens []tokenNeed, quiet bool) (cost int64, served bool) {
	shares := s.shares[i]
	for len(shares) < len(tokens) {
		shares = append(shares, share{})
	}
	shares = shares[:len(tokens)]
	s.shares[i] = shares
	served = true
	for j, n := range tokens {
		p := s.pools[n.pool]
		shares[j].offer(p, n.units, quiet)
		if p.waiter != 0 || shares[j].lacking > 0 {
			served = false
		}
		cost += shares[j].cost + shares[j].fromHeadroom // what costs nothing is borrowed last too
	}
	return cost, served
}

// makeItems merges the admitted jobs of all classes by what they need of hosts.
func (s *session) makeItems(classes []*class) {
	s.supply.items = slices.Grow(s.supply.items, len(classes))
	s.parts = slices.Grow(s.parts, len(classes))
	for _, c := range classes {
		if rest := c.pass.admitted - c.pass.onReal; rest > 0 {
			s.addItem(c, rest, c.nodes > 1)
		}
	}
	s.supply.merge()
}

// placeOnReal gives the admitted jobs the hosts that are free, in the order and
// way in which they will get them once their tokens are there. Hosts that are
// promised to a job that gets nothing are kept from those after it.
func (s *session) placeOnReal(classes []*class) {
	s.queue = s.queue[:0]
	for _, c := range classes {
		c.pass.tried = place{}
		c.pass.cursor = c.skip(cursor{entry: c.head}, c.pass.skipped)
		c.pass.cutAt = c.skip(c.pass.cursor, c.pass.admitted)
		if !s.fitsNow(c) {
			c.pass.cursor = c.pass.cutAt
		}
		if !c.atEnd(c.pass.cursor) {
			s.queue.append(c)
		}
	}
	s.queue.build()
	for len(s.queue) > 0 {
		c := s.queue[0].class
		switch {
		case c.pass.cursor == c.pass.cutAt:
			s.keepPromises(c)
			s.queue.pop()
			continue
		case s.supply.takeReal(c):
			c.pass.onReal++
			c.pass.cursor = c.after(c.pass.cursor)
		default:
			c.pass.cursor = c.pass.cutAt
		}
		s.queue.fix()
	}
}

// takeReal takes free hosts for one job of the class: all that it needs or none.
func (sp *supply) takeReal(c *class) bool {
	if c.nodes == 1 {
		for at := &c.pass.tried; at.kind < len(c.kinds); *at = (place{kind: at.kind + 1}) {
			sh := &sp.real[c.kinds[at.kind]]
			if at.bin = sh.bins.first(c.need, at.bin); at.bin >= 0 {
				sh.take(at.bin, c.need)
				return true
			}
		}
		return false
	}
	missing := c.nodes
	for _, k := range c.kinds {
		missing -= sp.real[k].room(c.need, missing)
	}
	if missing > 0 {
		return false
	}
	missing = c.nodes
	for _, k := range c.kinds {
		sh := &sp.real[k]
		for i := sh.bins.first(c.need, 0); i >= 0 && missing > 0; i = sh.bins.first(c.need, i+1) {
			sh.take(i, c.need)
			missing--
		}
	}
	return true
}

// take takes the need from the one host in a bin.
func (sh *shelf) take(i int, need []int64) {
	free := sh.bins.free(i)
	for d, n := range need {
		free[d] -= n
	}
	sh.bins.changed(i)
	sh.groups[i].taken = true
}

// itemsByClass makes one item for each class, without jobs yet: they come in order.
func (s *session) itemsByClass(classes []*class) []int32 {
	s.supply.items = s.supply.items[:0]
	var items []int32
	for _, c := range classes {
		items = append(items, int32(len(s.supply.items)))
		s.addItem(c, 0, true)
	}
	return items
}

func (s *session) addItem(c *class, count int64, onReal bool) {
	set, wide := c.templates, c.wide
	if c.pass.quiet {
		set = s.e.setOf(make([]uint64, len(set.bits)))
		wide = set
	}
	s.parts = append(s.parts, part{c, count})
	last := len(s.parts)
	s.supply.items = append(s.supply.items, item{
		need: c.need, nodes: c.nodes, limit: c.limit, kinds: c.kinds, set: set, wide: wide, onReal: onReal && s.fitsNow(c),
		size: c.size, count: count, left: count, parts: s.parts[last-1 : last : last],
	})
}

// fitsNow tells whether any real host has free what a job of the class needs of
// it, whatever is promised to others: those may get something better.
func (s *session) fitsNow(c *class) bool {
	return slices.ContainsFunc(c.kinds, func(k int32) bool { return s.shelves[k].bins.first(c.need, 0) >= 0 })
}

// merge makes one item of those with the same needs.
func (sp *supply) merge() {
	order := sp.packOrder()
	merged := make([]item, 0, len(order))
	for _, i := range order {
		x := &sp.items[i]
		if n := len(merged) - 1; n >= 0 && merged[n].like(x) {
			merged[n].count += x.count
			merged[n].left += x.left
			if merged[n].limit == noLimit || x.limit < noLimit {
				merged[n].limit = max(merged[n].limit%noLimit, x.limit%noLimit)
			}
			merged[n].parts = append(merged[n].parts, x.parts...)
			continue
		}
		merged = append(merged, *x)
	}
	sp.items = merged
}

func (x *item) like(y *item) bool {
	return x.set == y.set && x.nodes == 1 && y.nodes == 1 && x.onReal == y.onReal &&
		slices.Equal(x.need, y.need) && slices.Equal(x.kinds, y.kinds)
}

// place places one more job of an item, on hosts that are there already, coming
// or chosen, else on new ones of the template that costs least.
func (sp *supply) place(it int32) bool {
	item := &sp.items[it]
	item.count++
	item.left++
	item.parts[0].count++
	if sp.placeOne(it) {
		return true
	}
	item.count--
	item.left--
	item.parts[0].count--
	return false
}

func (sp *supply) placeOne(it int32) bool {
	item := &sp.items[it]
	if item.nodes == 1 {
		sp.open(it, func(sh *shelf) bool {
			item.left -= sp.fill(sh, it, 1)
			return item.left > 0
		})
		if item.left == 0 {
			return true
		}
	} else if sp.placeJob(it, nil) {
		return true
	}
	sp.countFor(usualUse)
	for _, t := range sp.byCost {
		if !item.set.has(t) || sp.available(t) == 0 {
			continue
		}
		if item.nodes > 1 {
			return sp.placeJob(it, sp.firstAmong(t, item.set))
		}
		item.left -= sp.fillNew(sp.shelfOf(t), it, 1, 1, func(n int64) { sp.charge(t, n) })
		return true
	}
	return false
}

// finishSupply makes the hosts as small as they can be, and counts for every
// item where its jobs have their places.
func (s *session) finishSupply() {
	sp := &s.supply
	if sp.use == 0 {
		sp.countFor(usualUse)
	}
	s.hosts = sp.shrink()
	for _, h := range s.hosts {
		sp.count(h.load, onMade, h.template, h.count, 0)
	}
	for k := range sp.real {
		for _, g := range sp.real[k].groups {
			sp.count(g.load, onReal, 0, 1, 0)
		}
	}
	for k := range sp.coming {
		for i, g := range sp.coming[k].groups {
			sp.count(g.load, onComing, 0, 1, s.e.expected[sp.coming[k].hosts[i]].Expected)
		}
	}
}

// count adds a group of hosts to the tallies of what is on them.
func (sp *supply) count(l int32, w where, t int32, hosts int64, by cluster.Time) {
	for ; l != noLoad; l = sp.loads[l].prev {
		load := sp.loads[l]
		item := &sp.items[load.item]
		if load.job == noJob {
			item.tally = addTally(item.tally, tally{w, t, load.per * hosts, by})
			continue
		}
		for int(load.job) >= len(item.jobs) {
			item.jobs = append(item.jobs, nil)
		}
		item.jobs[load.job] = addTally(item.jobs[load.job], tally{w, t, hosts, by})
	}
}

func addTally(all []tally, t tally) []tally {
	for i := range all {
		if all[i].where == t.where && all[i].template == t.template {
			all[i].n += t.n
			all[i].by = max(all[i].by, t.by)
			return all
		}
	}
	return append(all, t)
}
