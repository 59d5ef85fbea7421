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
	s.realWaiter = s.hostWaiter
	if s.e.lineup.count > 0 { // else nobody asks for it
		for _, p := range s.pools {
			p.find(s.now)
		}
	}
	classes := s.candidates()
	for _, p := range s.pools {
		p.keep()
	}
	if !s.words && len(classes) == 0 {
		s.supply.leaveHosts(s)
		return
	}
	s.supply.reset(s)
	if s.words {
		s.supply.clearHosts(s) // the words tell what is left of them
	}
	classes = s.withoutHopeless(classes)
	switch {
	case !s.words && len(classes) == 0:
		s.supply.leaveHosts(s)
		s.takePromised()
		return
	case !s.words:
		s.supply.clearHosts(s)
	}
	s.takePromised()
	s.giveTokens(classes)
	s.placeOnReal(classes)
	s.makeItems(classes)
	if s.supply.pack(s.supply.packOrder()) && !s.someoneBlocks(classes) {
		s.finishSupply()
		return
	}
	s.resetTokens(classes)
	s.supply.plan()
	s.supply.clearHosts(s)
	s.takePromised()
	s.giveBoth(classes)
	s.finishSupply()
}

// withoutHopeless cuts the classes for which there is no host at all, whatever
// others get, and answers the rest. Those that let no other pass stay, to do so
// in their turn.
func (s *session) withoutHopeless(classes []*class) []*class {
	s.hopeful = s.hopeful[:0]
	for _, c := range classes {
		if s.blocks(c) || s.hasHope(c) {
			s.hopeful = append(s.hopeful, c)
			continue
		}
		c.pass.cut, c.pass.hopeless = s.lacksHosts(c), true
	}
	return s.hopeful
}

// hasHope tells whether all the supply there is would do for a job of the class.
func (s *session) hasHope(c *class) bool {
	missing := c.nodes - s.expectedThatTake(c)
	for _, k := range c.kinds {
		bins := &s.e.shelves[k].bins
		for i := bins.first(c.need, 0); i >= 0 && missing > 0; i = bins.first(c.need, i+1) {
			missing--
		}
	}
	if !c.pass.quiet {
		for _, t := range c.templates.list {
			missing -= min(s.supply.available(t), max(missing, 0))
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
	for c := range s.e.lineup.all() {
		c.judge()
		c.judged = s.pass
		never := c.never
		if never.code == "" {
			never = s.noPlaceEver(c)
		}
		if never.code != "" {
			s.tell(c, c.waiting, never)
			continue
		}
		c.pass.quiet = !met(c)
		c.pass.skipped = s.soonEnough(c)
		s.classes = append(s.classes, c)
	}
	return s.classes
}

// keepPromises keeps what the class's other reservations are for, once its jobs
// must rely on them.
func (s *session) keepPromises(c *class) {
	for i := c.pass.skipped + c.pass.admitted; i < int64(len(c.promises)); i++ {
		if c.promises[i].at < forever {
			s.keepHosts(c, c.promises[i])
		}
	}
}

// soonEnough answers how many of the class's reservations come before anything
// new could: for those nothing is asked for.
func (s *session) soonEnough(c *class) (n int64) {
	for _, p := range c.promises {
		latency, possible := s.latencyFor(c, p)
		if p.at >= forever || possible && p.at > s.now.Add(latency) {
			break
		}
		n++
	}
	return n
}

// latencyFor answers how soon what a job with a reservation lacks now could be
// there otherwise; not possible means never.
func (s *session) latencyFor(c *class, p promise) (latency cluster.Duration, possible bool) {
	possible = true
	if !s.fitsNow(c) {
		latency, possible = s.hostLatency(c)
	}
	for _, n := range c.choices[p.choice] {
		if pool := s.pools[n.pool]; pool.free < n.units {
			l, known := pool.latency(s.now)
			latency, possible = max(latency, l), possible && known
		}
	}
	return latency, possible
}

// hostLatency answers how soon a host for the class could be there that is not
// there yet.
func (s *session) hostLatency(c *class) (latency cluster.Duration, possible bool) {
	var first soonest
	for _, t := range c.templates.list {
		if tmpl := &s.e.templates[t]; tmpl.Headroom > 0 && s.now >= tmpl.BackoffUntil {
			first.or(tmpl.Latency)
		}
	}
	for i := range s.e.expected {
		if x := &s.e.expected[i]; c.takes(x.kind, x.size) {
			first.or(max(x.Expected.Sub(s.now), 0))
		}
	}
	return first.latency, first.possible
}

// takePromised keeps the hosts and tokens that jobs have early reservations for
// out of what others may count on, and the hosts of those who have nothing else.
func (s *session) takePromised() {
	if s.words {
		s.halves.reset()
	}
	for _, c := range s.classes {
		for i, p := range c.promises[:c.pass.skipped] {
			s.keepHosts(c, p)
			var held []heldUnits
			for _, n := range c.choices[p.choice] {
				if free := s.pools[n.pool].keepFor(n.units); free > 0 && s.words {
					held = append(held, heldUnits{int64(n.pool), free})
				}
			}
			if s.words {
				s.keepPromised(c, int64(i), held)
			}
		}
		if c.pass.hopeless {
			s.keepPromises(c)
		}
	}
}

// keepHosts takes what a job of the class is promised from what is left of hosts.
func (s *session) keepHosts(c *class, p promise) {
	if s.supply.left {
		return
	}
	hosts, coming := s.hereAndComing(p.hosts)
	for _, h := range hosts {
		shelf, leaf := &s.supply.real[s.e.hosts[h].kind], int(s.e.hosts[h].leaf)
		shelf.bins.take(leaf, c.need, 1)
	}
	for _, x := range coming {
		shelf := &s.supply.coming[s.e.expected[x].kind]
		shelf.bins.take(slices.Index(shelf.hosts, x), c.need, 1)
	}
}

// finishSupply makes the hosts as small as they can be, and counts for every
// item where its jobs have their places.
func (s *session) finishSupply() {
	sp := &s.supply
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
	if s.words {
		s.findKept()
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
