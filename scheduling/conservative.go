package scheduling

import "slices"

// placeReserved is the real pass of the conservative order. What was promised
// stands, whatever has arrived since. When something has become free, every
// waiting job is moved to an earlier place, one after the other, if it has one
// among the reservations of all others; then those start whose time has come,
// and jobs without a reservation get one behind all others.
func (s *session) placeReserved() {
	s.rewind()
	order := s.order[:0]
	for c := range s.e.lineup.all() {
		if len(c.promises) > 0 {
			s.ready(c)
			order = append(order, c)
		}
	}
	s.order = order
	s.stand(order)
	if s.e.freed {
		s.compress(order)
	}
	for _, c := range order {
		s.startPromised(c)
	}
	s.settle()
	s.rewind()
	for s.next() {
		s.promiseNext(s.queue[0].class)
	}
}

// stand takes the promises that stand into the timelines.
func (s *session) stand(order []*class) {
	for _, c := range order {
		for i := range c.promises {
			p := &c.promises[i]
			p.at = max(p.at, s.now) // one that could not be kept is due
			s.occupyLines(c, p.at, c.end(p.at), p.hosts, p.choice, 1)
		}
		s.promises += int64(len(c.promises))
	}
}

// compress moves promises to earlier times where that is possible.
func (s *session) compress(order []*class) {
	for _, c := range order {
		for i := range c.promises {
			if c.promises[i].at > s.now {
				s.replace(c, i)
			}
		}
		slices.SortStableFunc(c.promises, earlier)
	}
}

// replace finds a new place for a promise among all others.
func (s *session) replace(c *class, i int) {
	p := &c.promises[i]
	s.occupyLines(c, p.at, c.end(p.at), p.hosts, p.choice, -1)
	if better, ok := s.earliest(c); ok {
		*p = better
	}
	s.occupyLines(c, p.at, c.end(p.at), p.hosts, p.choice, 1)
}

// startPromised starts the jobs of the class that were promised to start now. A
// promise that cannot be kept, because another job runs on beyond its limit, is
// made anew.
func (s *session) startPromised(c *class) {
	for i := 0; i < len(c.promises) && c.promises[i].at <= s.now; {
		if !s.canKeep(c, c.promises[i]) {
			s.replace(c, i)
			if c.promises[i].at > s.now || !s.canKeep(c, c.promises[i]) {
				i++
				continue
			}
		}
		p := c.promises[i]
		s.occupyLines(c, p.at, c.end(p.at), p.hosts, p.choice, -1)
		c.promises = slices.Delete(c.promises, i, i+1)
		s.promises--
		s.found = append(s.found[:0], p.hosts...)
		s.start(c, p.choice)
	}
}

// canKeep tells whether what was promised is free now.
func (s *session) canKeep(c *class, p promise) bool {
	for _, h := range p.hosts {
		if !covers(s.e.hosts[h].free, c.need) {
			return false
		}
	}
	for _, n := range c.choices[p.choice] {
		if s.pools[n.pool].free < n.units {
			return false
		}
	}
	return true
}

// promiseNext starts the first job in the queue, or gives it a reservation as far
// as the policy allows.
func (s *session) promiseNext(c *class) {
	c.pass.cursor = c.skip(c.pass.cursor, int64(len(c.promises)))
	switch {
	case c.never.code != "" || c.atEnd(c.pass.cursor):
		s.queue.pop()
		return
	case len(c.promises) == 0 && s.startNow(c):
		s.queue.fix()
		return
	}
	p, ok := promise{}, false
	if s.promises < s.e.policy.reserves() {
		p, ok = s.earliest(c)
	}
	if !ok {
		s.queue.pop()
		return
	}
	if !c.alone {
		alone := s.takeOut(c)
		s.queue.fix()
		s.promise(alone, p)
		s.queue.push(alone)
		return
	}
	s.promise(c, p)
	c.pass.cursor = cursor{entry: c.head}
}

// takeOut makes the first job of a class, or array of jobs, a class of its own.
func (s *session) takeOut(c *class) *class {
	alone := c.split()
	first := c.queue[c.head]
	c.head++
	c.waiting -= first.count
	c.pass.cursor = cursor{entry: c.head}
	alone.add(first)
	s.ready(alone)
	s.touch(c)
	s.touch(alone)
	return alone
}
