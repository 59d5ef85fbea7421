package scheduling

import (
	"iter"
	"slices"

	"xce.internal/elastic/cluster"
)

// lineup is the classes with waiting jobs, in the order of their first jobs. They stand
// in blocks, each of which knows the least that any of them needs, so that a session
// passes over a whole block where there is room for none of it.
type lineup struct {
	blocks []*block
	spare  []*block // empty ones, used again
	count  int
}

// mostInBlock is when a block is divided.
const mostInBlock = 16

// block is some classes, one after the other.
type block struct {
	classes []queued
	// need and limit are the least of what they need on a host and of their time
	// limits, unless they must be worked out anew.
	need  []int64
	limit cluster.Duration
	stale bool
}

// place answers the block in which a class is, or would be, and where in it.
func (l *lineup) place(q queued) (at, i int) {
	lo, hi := 0, len(l.blocks)
	for lo < hi { // the last block that does not begin after it
		if m := (lo + hi) / 2; q.before(&l.blocks[m].classes[0]) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	at = max(lo-1, 0)
	if at == len(l.blocks) {
		return at, 0
	}
	classes := l.blocks[at].classes
	lo, hi = 0, len(classes)
	for lo < hi { // the first class that does not stand before it
		if m := (lo + hi) / 2; classes[m].before(&q) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return at, lo
}

// add puts a class in its place.
func (l *lineup) add(c *class) {
	c.listed, c.stands = true, queuedFirst(c)
	l.count++
	at, i := l.place(c.stands)
	if at == len(l.blocks) {
		l.blocks = append(l.blocks, l.newBlock())
	}
	b := l.blocks[at]
	b.classes, b.stale = slices.Insert(b.classes, i, c.stands), true
	if len(b.classes) > mostInBlock {
		half := l.newBlock()
		half.classes, half.stale = append(half.classes, b.classes[mostInBlock/2:]...), true
		b.classes = slices.Delete(b.classes, mostInBlock/2, len(b.classes))
		l.blocks = slices.Insert(l.blocks, at+1, half)
	}
}

// newBlock answers a block without classes.
func (l *lineup) newBlock() *block {
	last := len(l.spare) - 1
	if last < 0 {
		return &block{classes: make([]queued, 0, mostInBlock+1)}
	}
	b := l.spare[last]
	l.spare = l.spare[:last]
	return b
}

// remove takes a class out.
func (l *lineup) remove(c *class) {
	at, i := l.place(c.stands)
	b := l.blocks[at]
	b.classes, b.stale = slices.Delete(b.classes, i, i+1), true
	if len(b.classes) == 0 {
		l.blocks = slices.Delete(l.blocks, at, at+1)
		l.spare = append(l.spare, b)
	}
	c.listed = false
	l.count--
}

// all answers the classes in order.
func (l *lineup) all() iter.Seq[*class] {
	return func(see func(*class) bool) {
		for _, b := range l.blocks {
			for i := range b.classes {
				if !see(b.classes[i].class) {
					return
				}
			}
		}
	}
}

// least makes need and limit right.
func (b *block) least() {
	if !b.stale {
		return
	}
	b.stale = false
	b.need, b.limit = append(b.need[:0], b.classes[0].class.need...), b.classes[0].class.limit
	for i := range b.classes[1:] {
		c := b.classes[i+1].class
		b.limit = min(b.limit, c.limit)
		for d, n := range c.need {
			b.need[d] = min(b.need[d], n)
		}
	}
}

// walk is how far a session has come with the classes in order.
type walk struct{ block, class int }

// next takes the next class of the lineup into the queue, if it comes before what is
// in there. Where onlyFits is set, it passes over those for which no host has room.
func (s *session) next() bool {
	for s.find() {
		if s.owed == nil {
			return true
		}
		s.pay()
	}
	return false
}

// find is next, before a reservation that is owed is made.
func (s *session) find() bool {
	l, most := &s.e.lineup, int64(1<<62)
	if s.onlyFits {
		most = s.mostCPUs()
	}
	for s.at.block < len(l.blocks) {
		b := l.blocks[s.at.block]
		if s.at.class == 0 && s.onlyFits {
			if b.least(); !s.roomFor(b.need, b.limit) {
				s.at.block++
				continue
			}
		}
		if s.at.class == len(b.classes) {
			s.at = walk{block: s.at.block + 1}
			continue
		}
		q := &b.classes[s.at.class]
		if q.cpus > most {
			s.at.class++
			continue
		}
		if q.class.alone && int64(len(q.class.promises)) == q.class.waiting {
			s.at.class++ // all its jobs have reservations
			continue
		}
		if len(s.queue) > 0 && s.queue[0].before(q) {
			return true
		}
		s.at.class++
		if s.onlyFits && !s.roomFor(q.class.need, q.class.limit) {
			continue
		}
		if s.owed != nil {
			s.at.class-- // to look at it once more
			return true
		}
		s.ready(q.class)
		s.queue.push(q.class)
		return true
	}
	return len(s.queue) > 0
}

// mostCPUs answers how many cpus are free on one host at most.
func (s *session) mostCPUs() (most int64) {
	for k := range s.e.shelves {
		bins := &s.e.shelves[k].bins
		most = max(most, bins.most[bins.dims+dimCPUs])
	}
	return most
}

// roomFor tells whether there is a host that may take so much for so long now.
func (s *session) roomFor(need []int64, limit cluster.Duration) bool {
	for k := range s.e.shelves {
		shelf := &s.e.shelves[k]
		for i := shelf.bins.first(need, 0); i >= 0; i = shelf.bins.first(need, i+1) {
			if l := &s.lines.hosts[shelf.hosts[i]]; l.session != s.number || l.holds(need, s.now, limit) {
				return true
			}
		}
	}
	return false
}

// pay makes the reservation that is owed, now that a class may start which comes after
// it. Where there can be no reservation, those that have been passed over may get one.
func (s *session) pay() {
	c := s.owed
	s.owed, s.lazy = nil, false
	p, ok := s.earliest(c)
	if !ok {
		s.at, s.onlyFits = s.owedAt, false
		return
	}
	s.promise(c, p)
}

// rewind begins to take the classes in order anew.
func (s *session) rewind() {
	s.pass++
	s.at, s.queue, s.onlyFits = walk{}, s.queue[:0], false
}

// ready makes a class ready for a pass of the session.
func (s *session) ready(c *class) {
	if c.readied != s.pass {
		c.readied = s.pass
		c.reset()
	}
}

// touch remembers that the first job of a class is another one now.
func (s *session) touch(c *class) {
	if !c.touched {
		c.touched = true
		s.touched = append(s.touched, c)
	}
}

// settle puts the classes where they belong of which the first jobs are others now.
func (s *session) settle() {
	for _, c := range s.touched {
		if c.touched = false; c.listed {
			s.e.lineup.remove(c)
		}
	}
	for _, c := range s.touched {
		if !c.empty() {
			s.e.lineup.add(c)
		}
	}
	clear(s.touched)
	s.touched = s.touched[:0]
}
