package scheduling

// giveTokens gives the waiting jobs their tokens, in order. Jobs that need none
// are all admitted.
func (s *session) giveTokens(classes []*class) {
	s.queue = s.queue[:0]
	for _, c := range classes {
		c.pass.item = noItem
		if c.pass.cursor = c.skip(cursor{entry: c.head}, c.pass.skipped); !c.hasTokens() {
			c.pass.admitted = c.waiting - c.pass.skipped
		} else if !c.atEnd(c.pass.cursor) {
			s.queue.append(c)
		}
	}
	s.admit()
}

// giveBoth gives the waiting jobs tokens and places on hosts, in order: both or
// neither.
func (s *session) giveBoth(classes []*class) {
	s.queue, s.supply.items = s.queue[:0], s.supply.items[:0]
	for _, c := range classes {
		c.pass.item = int32(len(s.supply.items))
		s.addItem(c, 0, true)
		if c.pass.cursor = c.skip(cursor{entry: c.head}, c.pass.skipped); !c.atEnd(c.pass.cursor) {
			s.queue.append(c)
		}
	}
	s.admit()
}

// noItem is that of a class whose jobs get tokens only.
const noItem = -1

// admit takes the jobs in the queue in order, until one lets no other pass.
func (s *session) admit() {
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
			if c.pass.item != noItem {
				s.keepPromises(c)
				stop = s.blocks(c) && !s.supply.hasRoom(c)
			}
		}
		for i := range shares {
			shares[i].reserve(id)
			more = more || !shares[i].pool.closed()
		}
		if stop {
			s.hostWaiter = id
		}
		return more, stop
	}
	if c.pass.item != noItem && !s.supply.place(c.pass.item) {
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
		if !c.possible[i] {
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

// placeOnReal gives the admitted jobs the hosts that are free, in the order and
// way in which they will get them once their tokens are there. Hosts that are
// promised to a job that gets nothing are kept from those after it.
func (s *session) placeOnReal(classes []*class) {
	s.queue = s.queue[:0]
	for _, c := range classes {
		c.pass.tried = spot{}
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
		for at := &c.pass.tried; at.kind < len(c.kinds); *at = (spot{kind: at.kind + 1}) {
			sh := &sp.real[c.kinds[at.kind]]
			if at.bin = sh.bins.first(c.need, at.bin); at.bin >= 0 {
				sp.takeHost(c, sh, at.bin)
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
			sp.takeHost(c, sh, i)
			missing--
		}
	}
	return true
}

// takeHost takes what the next job of the class needs from the one host in a bin.
func (sp *supply) takeHost(c *class, sh *shelf, i int) {
	sh.bins.take(i, c.need, 1)
	sh.groups[i].taken = true
	if c.hasTokens() {
		c.pass.kept = append(c.pass.kept, keptHost{c.pass.onReal, sh.hosts[i]})
	}
}

// resetTokens puts the pools back as the real pass left them.
func (s *session) resetTokens(classes []*class) {
	for i := range s.pools {
		s.pools[i].putBack()
	}
	for _, c := range classes {
		c.pass.admitted, c.pass.onReal, c.pass.cut = 0, 0, verdict{}
		c.pass.tokens, c.pass.kept = c.pass.tokens[:0], c.pass.kept[:0]
	}
	s.outcomes = s.outcomes[:0]
}
