package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// overtime is when a job that is past its time limit is counted to end: any
// moment, but not now.
const overtime = cluster.Second

// timeline is what is free over the time, of one host or one pool: from at[i]
// on, until at[i+1], free[i*dims:] is. The first step is now, the last has no end.
type timeline struct {
	dims int
	at   []cluster.Time
	free []int64
}

func newTimeline(now cluster.Time, free []int64) timeline {
	return timeline{dims: len(free), at: []cluster.Time{now}, free: slices.Clone(free)}
}

func (l *timeline) step(i int) []int64 { return l.free[i*l.dims : (i+1)*l.dims] }

// give adds to what is free from `from` on; it is called in the order of time.
func (l *timeline) give(from cluster.Time, units []int64) {
	last := len(l.at) - 1
	if l.at[last] < from {
		l.at = append(l.at, from)
		l.free = append(l.free, l.step(last)...)
		last++
	}
	for d, n := range units {
		l.free[last*l.dims+d] += n
	}
}

// split makes a step begin at t, and answers which.
func (l *timeline) split(t cluster.Time) int {
	i, found := slices.BinarySearch(l.at, t)
	if found {
		return i
	}
	l.at = slices.Insert(l.at, i, t)
	l.free = slices.Insert(l.free, i*l.dims, l.step(i-1)...)
	return i
}

// take takes the need away in [from, until), or gives it back where by is -1.
func (l *timeline) take(need []int64, from, until cluster.Time, by int64) {
	first := l.split(from)
	end := l.split(until)
	for i := first; i < end; i++ {
		for d, n := range need {
			l.free[i*l.dims+d] -= by * n
		}
	}
}

// least answers the smallest value of the first dimension.
func (l *timeline) least() int64 {
	least := l.free[0]
	for i := range l.at {
		least = min(least, l.free[i*l.dims])
	}
	return least
}

// holds tells whether the need is free from now on for the length of time.
func (l *timeline) holds(need []int64, length cluster.Duration) bool {
	until := l.at[0].Add(length)
	for i, t := range l.at {
		if i > 0 && t >= until {
			return true
		}
		if !covers(l.step(i), need) {
			return false
		}
	}
	return true
}

// window is a span of instants at which something may start.
type window struct{ from, to cluster.Time }

// windows calls found with every window in which the need stays free for the
// length of time, in order, until it answers false.
func (l *timeline) windows(need []int64, length cluster.Duration, found func(window) bool) {
	for i := 0; i < len(l.at); {
		if !covers(l.step(i), need) {
			i++
			continue
		}
		from := l.at[i]
		for i++; i < len(l.at) && covers(l.step(i), need); i++ {
		}
		w := window{from: from, to: noEnd}
		if i < len(l.at) {
			w.to = l.at[i].Add(-length)
		}
		if w.to >= w.from && !found(w) {
			return
		}
	}
}

// noEnd is later than everything that is counted with.
const noEnd cluster.Time = 1<<63 - 1

// timelines are those of all hosts that take jobs and all pools. They are made
// when the first job must wait under a policy that makes reservations.
type timelines struct {
	made  bool
	hosts []timeline
	pools []timeline
	marks []mark
}

// release is what a running job gives back, and when.
type release struct {
	line int32
	at   cluster.Time
	need []int64
}

func (s *session) makeTimelines() {
	if s.lines.made {
		return
	}
	e, l := s.e, &s.lines
	l.made, l.hosts, l.pools = true, l.hosts[:0], l.pools[:0]
	for i := range e.hosts {
		l.hosts = append(l.hosts, newTimeline(s.now, e.hosts[i].free))
	}
	for _, p := range s.pools {
		l.pools = append(l.pools, newTimeline(s.now, []int64{p.free}))
	}
	var hosts, pools []release
	for i := range e.runs {
		r := &e.runs[i]
		ends := s.counted(r.ends)
		for _, h := range r.hosts {
			hosts = append(hosts, release{h, ends, r.need})
		}
		if int(r.choice) < len(r.choices) {
			for _, n := range r.choices[r.choice] {
				pools = append(pools, release{n.pool, ends, []int64{n.units}})
			}
		}
	}
	for i, p := range s.pools {
		for _, c := range p.arrivals {
			pools = append(pools, release{int32(i), s.counted(c.at), []int64{c.units}})
		}
	}
	giveAll(l.hosts, hosts)
	giveAll(l.pools, pools)
}

// counted answers a time as reservations count with it: what is overdue may
// come any moment.
func (s *session) counted(t cluster.Time) cluster.Time {
	if t <= s.now {
		return s.now.Add(overtime)
	}
	return min(t, forever)
}

func giveAll(lines []timeline, releases []release) {
	slices.SortFunc(releases, func(a, b release) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.at, b.at))
	})
	for _, r := range releases {
		lines[r.line].give(r.at, r.need)
	}
}

// promise is a reservation: when, on which hosts, with which tokens.
type promise struct {
	at     cluster.Time
	hosts  []int32
	choice int32
}

// earliest finds the earliest start for a job of the class; not ok means that
// real capacity never allows it, or only after a job without a time limit that
// has not started itself.
func (s *session) earliest(c *class) (p promise, ok bool) {
	p.at = noEnd
	for choice := range c.choices {
		if c.choices[choice] == nil {
			continue // it can never be had
		}
		at, found := s.earliestWith(c, c.choices[choice])
		if found && at < p.at && at <= forever {
			p.at, p.choice, ok = at, int32(choice), true
		}
	}
	if ok {
		p.hosts = s.hostsAt(c, p.at)
	}
	return p, ok
}

func (s *session) earliestWith(c *class, tokens []tokenNeed) (cluster.Time, bool) {
	if c.nodes == 1 && len(tokens) == 0 {
		return s.firstWindow(c)
	}
	return s.sweep(c, tokens)
}

// firstWindow is the earliest start on one host.
func (s *session) firstWindow(c *class) (cluster.Time, bool) {
	at := noEnd
	s.eachHost(c, func(h int32) bool {
		s.lines.hosts[h].windows(c.need, c.limit, func(w window) bool {
			at = min(at, w.from)
			return false
		})
		return at > s.now
	})
	return at, at < noEnd
}

// eachHost calls visit with every host that the class may use once it is free,
// in the order in which its jobs try them, until it answers false.
func (s *session) eachHost(c *class, visit func(h int32) bool) {
	for _, k := range c.kinds {
		for _, h := range s.shelves[k].hosts {
			if covers(s.e.hosts[h].size, c.need) && !visit(h) {
				return
			}
		}
	}
}

// mark is where a window begins or ends (by is 1 or -1), of a host or a pool.
type mark struct {
	at   cluster.Time
	by   int32
	pool bool
}

// sweep finds the earliest instant at which enough hosts and all tokens have a
// window.
func (s *session) sweep(c *class, tokens []tokenNeed) (cluster.Time, bool) {
	marks := s.lines.marks[:0]
	add := func(w window, pool bool) {
		marks = append(marks, mark{w.from, 1, pool})
		if w.to < noEnd {
			marks = append(marks, mark{w.to + 1, -1, pool})
		}
	}
	s.eachHost(c, func(h int32) bool {
		s.lines.hosts[h].windows(c.need, c.limit, func(w window) bool { add(w, false); return true })
		return true
	})
	for _, n := range tokens {
		s.lines.pools[n.pool].windows([]int64{n.units}, c.limit, func(w window) bool { add(w, true); return true })
	}
	s.lines.marks = marks
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	var hosts, pools int32
	for i, m := range marks {
		if m.pool {
			pools += m.by
		} else {
			hosts += m.by
		}
		last := i+1 == len(marks) || marks[i+1].at > m.at
		if last && int64(hosts) >= c.nodes && int(pools) == len(tokens) {
			return m.at, true
		}
	}
	return 0, false
}

// hostsAt answers the hosts that a job of the class gets at a time.
func (s *session) hostsAt(c *class, at cluster.Time) (hosts []int32) {
	s.eachHost(c, func(h int32) bool {
		s.lines.hosts[h].windows(c.need, c.limit, func(w window) bool {
			if w.from <= at && at <= w.to {
				hosts = append(hosts, h)
			}
			return w.to < at
		})
		return int64(len(hosts)) < c.nodes
	})
	return hosts
}

// end is until when a job of the class that starts at a time is counted to run.
func (c *class) end(start cluster.Time) cluster.Time {
	if c.limit == noLimit && start < forever {
		return forever
	}
	return start.Add(c.limit)
}

// occupyLines takes hosts and tokens from the timelines for a job of the class
// (by is 1), or gives them back (by is -1).
func (s *session) occupyLines(c *class, from, until cluster.Time, hosts []int32, choice int32, by int64) {
	for _, h := range hosts {
		s.lines.hosts[h].take(c.need, from, until, by)
	}
	for _, n := range c.choices[choice] {
		s.lines.pools[n.pool].take([]int64{n.units}, from, until, by)
	}
}
