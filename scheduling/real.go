package scheduling

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// placeReal takes the waiting jobs in order, and starts what real capacity and
// the reservations of earlier jobs allow.
func (s *session) placeReal() {
	for i := range s.sleepers {
		s.sleepers[i] = s.sleepers[i][:0]
	}
	s.rewind()
	for s.next() {
		c := s.queue[0].class
		if c.never.code != "" {
			s.queue.pop()
			continue
		}
		if at := c.pass.cursor; s.startNow(c) {
			s.queue.fix()
			if len(s.sleepers) > 0 {
				s.wake(c.at(at))
			}
			continue
		}
		more := s.mustWait(c)
		if s.hostWaiter != 0 {
			return
		}
		if c.pass.cursor = c.after(c.pass.cursor); more {
			s.queue.fix()
			continue
		}
		if s.queue.pop(); !c.pass.noHost && s.e.policy.reserves() == 0 {
			s.sleep(c)
		}
	}
}

// sleep lays a class aside that waits for tokens, until the host that would take
// its next job gets another.
func (s *session) sleep(c *class) {
	for len(s.sleepers) < len(s.e.hosts) {
		s.sleepers = append(s.sleepers, nil)
	}
	s.sleepers[c.pass.witness] = append(s.sleepers[c.pass.witness], c)
}

// wake looks after the start of a job for classes that lacked tokens only, and
// now lack a host too: the next of their jobs, in order, lets no other pass.
func (s *session) wake(started entry) {
	for _, h := range s.e.running.all[len(s.e.running.all)-1].hosts {
		if int(h) >= len(s.sleepers) {
			continue
		}
		sleepers := s.sleepers[h]
		s.sleepers[h] = nil
		for _, c := range sleepers {
			if s.stillFits(c) {
				s.sleep(c)
				continue
			}
			for !c.atEnd(c.pass.cursor) && c.at(c.pass.cursor).before(started) {
				c.pass.cursor = cursor{entry: c.pass.cursor.entry + 1}
			}
			if !c.atEnd(c.pass.cursor) {
				s.queue.push(c)
			}
		}
	}
}

// stillFits tells whether hosts that took a job of the class still do.
func (s *session) stillFits(c *class) bool {
	if c.nodes == 1 && covers(s.e.hosts[c.pass.witness].free, c.need) {
		return true
	}
	return s.findHosts(c)
}

// startNow starts the next job of the class if it can.
func (s *session) startNow(c *class) bool {
	if c.pass.noHost {
		return false
	}
	if c.pass.noToken { // nor has it now, but may lack a host too
		c.pass.noHost = s.e.policy.reserves() == 0 && !s.stillFits(c)
		return false
	}
	choice := s.freeTokens(c)
	c.pass.noToken = choice < 0
	c.pass.noHost = !s.findHosts(c)
	if c.pass.noHost || c.pass.noToken {
		return false
	}
	s.start(c, int32(choice))
	return true
}

// findHosts finds the hosts for a job of the class.
func (s *session) findHosts(c *class) bool {
	s.found = s.found[:0]
	for at := c.pass.tried; at.kind < len(c.kinds); at = (spot{kind: at.kind + 1}) {
		shelf := &s.e.shelves[c.kinds[at.kind]]
		for i := shelf.bins.first(c.need, at.bin); i >= 0; i = shelf.bins.first(c.need, i+1) {
			h := shelf.hosts[i]
			if l := &s.lines.hosts[h]; l.session == s.number && !l.holds(c.need, s.now, c.limit) {
				continue
			}
			if len(s.found) == 0 {
				c.pass.tried, c.pass.witness = spot{at.kind, i}, h
			}
			if s.found = append(s.found, h); int64(len(s.found)) == c.nodes {
				return true
			}
		}
	}
	return false
}

// freeTokens answers the first choice of tokens that is free, or -1.
func (s *session) freeTokens(c *class) int {
	for i, tokens := range c.choices {
		if c.possible[i] && s.tokensFree(tokens, c.limit) {
			return i
		}
	}
	return -1
}

func (s *session) tokensFree(tokens []tokenNeed, limit cluster.Duration) bool {
	for _, n := range tokens {
		if s.pools[n.pool].free < n.units {
			return false
		}
		if l := &s.lines.pools[n.pool]; l.session == s.number && !l.holds(n.one, s.now, limit) {
			return false
		}
	}
	return true
}

// start starts the next job of the class on the hosts that were found.
func (s *session) start(c *class, choice int32) {
	e, entry := s.e, &c.queue[c.pass.cursor.entry]
	r := run{footprint: c.footprint, choice: choice, hosts: s.listed(s.found), ends: c.end(s.now), key: runKey{job: entry.id}}
	started := Start{Job: entry.id}
	if entry.array {
		r.key.element = entry.begun + 1
		started.Element = r.key.element
	}
	if len(c.spec.Alternatives) > 0 {
		started.Alternative = int64(choice) + 1
	}
	s.names = slab(s.names, len(r.hosts))
	first := len(s.names)
	for _, h := range r.hosts {
		e.occupy(h, c.need, 1)
		e.hosts[h].ends.add(r.ends, c.need)
		if l := &s.lines.hosts[h]; l.session == s.number {
			l.begin(c.need, r.ends)
		}
		shelf := &s.e.shelves[e.hosts[h].kind]
		copy(shelf.bins.free(int(s.e.hosts[h].leaf)), e.hosts[h].left())
		shelf.bins.changed(int(s.e.hosts[h].leaf))
		s.names = append(s.names, e.hosts[h].name)
	}
	for _, n := range c.choices[choice] {
		p := s.pools[n.pool]
		p.free -= n.units
		p.unreserved -= n.units
		p.resource.InUse += n.units
		e.uses[n.pool].add(r.ends, n.one)
		if l := &s.lines.pools[n.pool]; l.session == s.number {
			l.begin(n.one, r.ends)
		}
	}
	e.running.add(r)
	started.Hosts = s.names[first:len(s.names):len(s.names)]
	s.starts = append(slab(s.starts, 1), started)
	e.waiting--
	c.begin()
	s.touch(c)
}

// listed answers a list of hosts to keep.
func (s *session) listed(hosts []int32) []int32 {
	s.hostLists = append(slab(s.hostLists, len(hosts)), hosts...)
	n := len(s.hostLists)
	return s.hostLists[n-len(hosts) : n : n]
}

// slab answers s with room for n more. What is handed out of it is never written again.
func slab[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	const enough = 64
	return append(make([]T, 0, max(enough, 2*(len(s)+n))), s...)
}

// mustWait keeps what the policy keeps for the next job of the class, which
// cannot start, and tells whether it keeps anything for the jobs of the class
// after it.
func (s *session) mustWait(c *class) (more bool) {
	if s.e.policy.reserves() == 0 {
		return s.waitInLine(c)
	}
	if s.promises >= s.e.policy.reserves() {
		s.onlyFits = true
		return false
	}
	if s.lazy {
		s.owed, s.owedAt, s.onlyFits = c, s.at, true
		return false
	}
	p, ok := s.earliest(c)
	if !ok {
		return false
	}
	s.promise(c, p)
	return true
}

// promise keeps what a job of the class is promised.
func (s *session) promise(c *class, p promise) {
	s.occupyLines(c, p.at, c.end(p.at), p.hosts, p.choice, 1)
	if len(c.promises) == 0 {
		s.promisers = append(s.promisers, c)
	}
	c.promises = append(c.promises, p)
	slices.SortStableFunc(c.promises, earlier)
	s.promises++
}

// reserves is how many reservations the policy makes.
func (p Policy) reserves() int64 {
	switch {
	case p.Order == EASY:
		return 1
	case p.Order == Conservative && p.Depth > 0:
		return p.Depth
	case p.Order == Conservative:
		return 1 << 62
	}
	return 0
}

// waitInLine is fcfs: a job that waits for a host lets no other pass; one that
// waits for tokens keeps the free units of those to itself.
func (s *session) waitInLine(c *class) (more bool) {
	if c.pass.noHost {
		if s.couldEver(c) {
			s.hostWaiter = c.at(c.pass.cursor).id
		}
		return false
	}
	for _, n := range c.choices[c.firstChoice()] {
		pool := s.pools[n.pool]
		if pool.keeper == 0 {
			pool.keeper = c.at(c.pass.cursor).id
		}
		pool.free -= n.units
		more = more || pool.free > 0
	}
	return more
}

// firstChoice answers the first choice of tokens that can be had at all.
func (c *class) firstChoice() int {
	for i, possible := range c.possible {
		if possible {
			return i
		}
	}
	return 0
}

// couldEver tells whether the hosts could take a job of the class once they are
// empty; one that needs several, together with those that are coming or could be
// made now.
func (s *session) couldEver(c *class) bool {
	hosts := s.hostsThatTake(c)
	if c.nodes > 1 && hosts > 0 && hosts < c.nodes {
		hosts += s.expectedThatTake(c)
		for _, t := range c.templates.list {
			if tmpl := &s.e.templates[t]; s.now >= tmpl.BackoffUntil {
				hosts += min(tmpl.Headroom, c.nodes)
			}
		}
	}
	return hosts >= c.nodes
}

// expectedThatTake answers how many expected hosts could take one node of a job
// of the class.
func (s *session) expectedThatTake(c *class) (hosts int64) {
	for i := range s.e.expected {
		if x := &s.e.expected[i]; c.takes(x.kind, x.size) {
			hosts++
		}
	}
	return hosts
}

// hostsThatTake answers how many hosts could take one node of a job of the class.
func (s *session) hostsThatTake(c *class) (hosts int64) {
	for i := range s.e.sizes {
		if m := &s.e.sizes[i]; c.takes(m.kind, m.size) {
			hosts += m.count
		}
	}
	return hosts
}
