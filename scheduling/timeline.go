package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// lastPromise is the last instant of the year 9999.
const lastPromise cluster.Time = 253_402_300_799_999

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
	l.unite(end)
	l.unite(first)
}

// unite makes one step of i and the one before it where they are alike.
func (l *timeline) unite(i int) {
	if i > 0 && slices.Equal(l.step(i-1), l.step(i)) {
		l.at = slices.Delete(l.at, i, i+1)
		l.free = slices.Delete(l.free, i*l.dims, (i+1)*l.dims)
	}
}

// least answers the smallest value of the first dimension, but for what is kept until
// jobs without a time limit have ended: nobody knows when, and till then it costs.
func (l *timeline) least() int64 {
	least := l.free[0]
	for i, t := range l.at {
		if t < forever {
			least = min(least, l.free[i*l.dims])
		}
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
// when the first job must wait under a policy that makes reservations. Their
// memory is used again.
type timelines struct {
	made         bool
	hosts, pools []timeline
	atHosts      releases
	atPools      releases
	units        []int64
	marks        []mark
}

// release is what a running job gives back, and when.
type release struct {
	line int32
	at   cluster.Time
	need []int64
}

// releases are those of all lines of one sort, and the memory of the lines.
type releases struct {
	all, sorted []release
	ends        []int // by line, where its releases end among the sorted ones
	at          []cluster.Time
	free        []int64
}

func (s *session) makeTimelines() {
	if s.lines.made {
		return
	}
	l := &s.lines
	l.made = true
	s.findReleases()
	e := s.e
	none := make([]int64, e.dims.count())
	l.hosts = l.atHosts.lines(l.hosts, s.now, len(e.hosts)+len(e.expected), e.dims.count(), func(h int) []int64 {
		if h >= len(e.hosts) {
			return none
		}
		return e.hosts[h].free
	})
	l.pools = l.atPools.lines(l.pools, s.now, len(s.pools), 1, func(p int) []int64 { return l.units[p : p+1] })
}

// findReleases lists what running jobs will give back, and what will arrive.
func (s *session) findReleases() {
	l := &s.lines
	l.atHosts.all, l.atPools.all, l.units = l.atHosts.all[:0], l.atPools.all[:0], l.units[:0]
	for _, p := range s.pools {
		l.units = append(l.units, p.free)
	}
	give := func(pool int32, at cluster.Time, units int64) {
		l.units = append(l.units, units)
		l.atPools.all = append(l.atPools.all, release{pool, at, l.units[len(l.units)-1:]})
	}
	for i := range s.e.runs {
		r := &s.e.runs[i]
		ends := s.counted(r.ends)
		for _, h := range r.hosts {
			l.atHosts.all = append(l.atHosts.all, release{h, ends, r.need})
		}
		if int(r.choice) < len(r.choices) {
			for _, n := range r.choices[r.choice] {
				give(n.pool, ends, n.units)
			}
		}
	}
	for i := range s.e.expected {
		x := &s.e.expected[i]
		l.atHosts.all = append(l.atHosts.all, release{int32(len(s.e.hosts) + i), s.counted(x.Expected), x.size})
	}
	for i, p := range s.pools {
		for _, a := range p.arrivals {
			give(int32(i), s.counted(a.at), a.units)
		}
	}
}

// lines makes n timelines of what is free now and of the releases.
func (rs *releases) lines(lines []timeline, now cluster.Time, n, dims int, free func(int) []int64) []timeline {
	rs.sort(n)
	steps := n + len(rs.sorted)
	rs.at = slices.Grow(rs.at[:0], steps)[:steps]
	rs.free = slices.Grow(rs.free[:0], steps*dims)[:steps*dims]
	lines = slices.Grow(lines[:0], n)[:n]
	begin := 0
	for i := range lines {
		from, to := begin+i, rs.ends[i]+i+1 // each line has one step more than releases
		lines[i] = timeline{dims: dims, at: rs.at[from : from+1 : to], free: rs.free[from*dims : (from+1)*dims : to*dims]}
		lines[i].at[0] = now
		copy(lines[i].free, free(i))
		for _, r := range rs.sorted[begin:rs.ends[i]] {
			lines[i].give(r.at, r.need)
		}
		begin = rs.ends[i]
	}
	return lines
}

// sort orders the releases by line, and those of each line by time.
func (rs *releases) sort(lines int) {
	rs.ends = slices.Grow(rs.ends[:0], lines)[:lines]
	clear(rs.ends)
	for _, r := range rs.all {
		rs.ends[r.line]++
	}
	sum := 0
	for i, n := range rs.ends { // for now, where they begin
		rs.ends[i] = sum
		sum += n
	}
	rs.sorted = slices.Grow(rs.sorted[:0], len(rs.all))[:len(rs.all)]
	for _, r := range rs.all {
		rs.sorted[rs.ends[r.line]] = r
		rs.ends[r.line]++
	}
	begin := 0
	for _, end := range rs.ends {
		slices.SortFunc(rs.sorted[begin:end], func(a, b release) int { return cmp.Compare(a.at, b.at) })
		begin = end
	}
}

// counted answers a time as reservations count with it: what is overdue may
// come any moment.
func (s *session) counted(t cluster.Time) cluster.Time {
	if t <= s.now {
		return s.now.Add(overtime)
	}
	return min(t, forever)
}

// promise is a reservation: when, on which hosts, with which tokens.
type promise struct {
	at     cluster.Time
	hosts  []int32
	choice int32
}

// earlier orders promises by time.
func earlier(a, b promise) int { return cmp.Compare(a.at, b.at) }

// earliest finds the earliest start for a job of the class; not ok means that
// real capacity never allows it, or only after a job without a time limit that
// has not started itself.
func (s *session) earliest(c *class) (p promise, ok bool) {
	p.at = noEnd
	for choice := range c.choices {
		if !c.possible[choice] {
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
// in the order in which its jobs try them, until it answers false. Jobs on several
// hosts count on expected ones too, under easy: while those come one by one, later
// jobs would take them, again and again.
func (s *session) eachHost(c *class, visit func(h int32) bool) {
	for _, k := range c.kinds {
		for _, h := range s.e.shelves[k].hosts {
			if covers(s.e.hosts[h].size, c.need) && !visit(h) {
				return
			}
		}
	}
	if c.nodes == 1 || s.e.policy.Order != EASY {
		return
	}
	for i := range s.e.expected {
		if x := &s.e.expected[i]; c.takes(x.kind, x.size) && !visit(int32(len(s.e.hosts)+i)) {
			return
		}
	}
}

// hereAndComing splits the hosts of a promise into those that have joined and those that are
// expected.
func (s *session) hereAndComing(hosts []int32) (joined, coming []int32) {
	for _, h := range hosts {
		if n := int32(len(s.e.hosts)); h >= n {
			coming = append(coming, h-n)
		} else {
			joined = append(joined, h)
		}
	}
	return joined, coming
}

// promisedName is what a host of a promise is called: an expected one by its id.
func (s *session) promisedName(h int32) string {
	if n := int32(len(s.e.hosts)); h >= n {
		return s.e.expected[h-n].ID
	}
	return s.e.hosts[h].name
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
