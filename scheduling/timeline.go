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

// timeline is what is free over the time, of one host or one pool, in one session:
// from at[i] on, until at[i+1], free[i*dims:] is. The first step is now. Steps are made
// as they are looked at: what is given back later than reach is in no step yet.
type timeline struct {
	session uint64 // the session that it is of
	dims    int
	at      []cluster.Time
	free    []int64
	reach   cluster.Time
	// ends are of running jobs: those until reach, which next is behind, are in the steps,
	// but for those until now where these are overdue.
	ends    *endings
	next    place
	overdue bool
	// later is what reservations give back, and what arrives, beyond reach.
	later endings
	due   cluster.Time // when the next is given back that is in no step yet; see plan
	// Between firstDip and lastDip something may become less; outside, never.
	firstDip, lastDip cluster.Time
}

// open makes the timeline that of a session.
func (l *timeline) open(session uint64, now cluster.Time, free []int64, ends *endings) {
	l.session, l.dims = session, len(free)
	l.at, l.free = append(l.at[:0], now), append(l.free[:0], free...)
	l.reach, l.firstDip, l.lastDip = now, noEnd, now
	l.later.clear()
	l.ends, l.next = ends, ends.from(now+1)
	l.overdue = l.next != ends.begin()
	l.plan()
}

func (l *timeline) step(i int) []int64 { return l.free[i*l.dims : (i+1)*l.dims] }

// plan works out what is due.
func (l *timeline) plan() {
	l.due = noEnd
	if l.ends.has(l.next) {
		l.due = min(l.ends.at(l.next), forever)
	}
	if l.overdue {
		l.due = min(l.due, l.at[0].Add(overtime))
	}
	if first := l.later.begin(); l.later.has(first) {
		l.due = min(l.due, l.later.at(first))
	}
}

// extend makes one more step, and tells whether there is one.
func (l *timeline) extend() bool {
	l.reach = l.due
	if l.reach == noEnd {
		return false
	}
	last := len(l.at) - 1
	l.at = append(l.at, l.reach)
	l.free = append(l.free, l.step(last)...)
	free := l.step(last + 1)
	for ; l.ends.has(l.next) && min(l.ends.at(l.next), forever) == l.reach; l.next = l.ends.next(l.next) {
		add(free, l.ends.units(l.next), 1)
	}
	if l.overdue && l.at[0].Add(overtime) == l.reach {
		for p := l.ends.begin(); l.ends.has(p) && l.ends.at(p) <= l.at[0]; p = l.ends.next(p) {
			add(free, l.ends.units(p), 1)
		}
		l.overdue = false
	}
	for first := l.later.begin(); l.later.has(first) && l.later.at(first) == l.reach; first = l.later.begin() {
		add(free, l.later.units(first), 1)
		l.later.delete(first)
	}
	l.plan()
	return true
}

// add adds units to what is free, or takes them where by is -1.
func add(free, units []int64, by int64) {
	free = free[:len(units)]
	for d, n := range units {
		free[d] += by * n
	}
}

// from answers the first step at or after t.
func (l *timeline) from(t cluster.Time) int {
	i, _ := slices.BinarySearch(l.at, t)
	return i
}

// split makes a step begin at t, and answers which.
func (l *timeline) split(t cluster.Time) int {
	for l.due <= t {
		l.extend()
	}
	l.reach = max(l.reach, t)
	i := l.from(t)
	if i < len(l.at) && l.at[i] == t {
		return i
	}
	l.at = slices.Insert(l.at, i, t)
	l.free = slices.Insert(l.free, i*l.dims, l.step(i-1)...)
	return i
}

// take takes the need away in [from, until), or gives back what was taken so where by
// is -1.
func (l *timeline) take(need []int64, from, until cluster.Time, by int64) {
	first := l.split(from)
	if by > 0 && from > l.at[0] {
		l.firstDip, l.lastDip = min(l.firstDip, from), max(l.lastDip, from)
	}
	end := len(l.at)
	switch {
	case by > 0 && until > l.reach:
		l.later.add(until, need)
	case by < 0 && l.later.remove(until, need):
	default:
		end = l.split(until)
	}
	l.plan()
	for i := first; i < end; i++ {
		add(l.step(i), need, -by)
	}
	l.unite(end)
	l.unite(first)
}

// begin takes the need away for a job that begins now and is among the ends.
func (l *timeline) begin(need []int64, until cluster.Time) {
	if l.reach < forever {
		l.next = l.ends.from(l.reach + 1)
	} else { // what ends later counts as ending then
		l.next = l.ends.end()
	}
	l.plan()
	end := len(l.at)
	if until <= l.reach {
		end = l.split(until)
	}
	for i := range end {
		add(l.step(i), need, -1)
	}
}

// unite makes one step of i and the one before it where they are alike.
func (l *timeline) unite(i int) {
	if i > 0 && i < len(l.at) && slices.Equal(l.step(i-1), l.step(i)) {
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

// holds tells whether the need is free from an instant on for the length of time.
func (l *timeline) holds(need []int64, from cluster.Time, length cluster.Duration) bool {
	for l.due <= from {
		l.extend()
	}
	i := l.from(from+1) - 1
	if !covers(l.step(i), need) {
		return false
	}
	until := from.Add(length)
	if l.firstDip >= until || from >= l.lastDip {
		return true
	}
	for i = max(i+1, l.from(l.firstDip)); i < len(l.at) && l.at[i] < until; i++ {
		if !covers(l.step(i), need) {
			return false
		}
		if l.at[i] >= l.lastDip {
			break
		}
	}
	return true
}

// window is a span of instants at which something may start.
type window struct{ from, to cluster.Time }

// windows calls found with every window that begins before a time in which the need
// stays free for the length of time, in order, until it answers false.
func (l *timeline) windows(need []int64, length cluster.Duration, before cluster.Time, found func(window) bool) {
	for i := 0; i < len(l.at) || l.extend(); {
		if l.at[i] >= before {
			return
		}
		if !covers(l.step(i), need) {
			i++
			continue
		}
		w := window{from: l.at[i], to: noEnd}
		for i++; i < len(l.at) && l.at[i-1] < l.lastDip; i++ {
			if !covers(l.step(i), need) {
				w.to = l.at[i].Add(-length)
				break
			}
		}
		if w.to >= w.from && !found(w) || w.to == noEnd {
			return
		}
	}
}

// noEnd is later than everything that is counted with.
const noEnd cluster.Time = 1<<63 - 1

// timelines are those of all hosts that take jobs, of the expected ones after them, and
// of all pools, as far as a session has looked at them. Their memory is used again.
type timelines struct {
	hosts, pools []timeline
	marks        []mark
}

// hostLine answers the timeline of a host, or of an expected one.
func (s *session) hostLine(h int32) *timeline {
	l := &s.lines.hosts[h]
	if l.session == s.number {
		return l
	}
	if n := int32(len(s.e.hosts)); h >= n {
		l.open(s.number, s.now, s.e.none, &s.e.expected[h-n].ends)
	} else {
		l.open(s.number, s.now, s.e.hosts[h].free, &s.e.hosts[h].ends)
	}
	return l
}

// poolLine answers the timeline of a pool.
func (s *session) poolLine(p int32) *timeline {
	l := &s.lines.pools[p]
	if l.session == s.number {
		return l
	}
	l.open(s.number, s.now, s.pools[p].frees(), &s.e.uses[p])
	for i := range s.pools[p].arrivals {
		a := &s.pools[p].arrivals[i]
		l.later.add(s.counted(a.at), a.units[:])
	}
	l.plan()
	return l
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
		at, found := s.earliestWith(c, c.choices[choice], &p)
		if found && at < p.at && at <= forever {
			p.at, p.choice, ok = at, int32(choice), true
		}
	}
	if ok && len(p.hosts) == 0 {
		p.hosts = s.hostsAt(c, p.at)
	}
	return p, ok
}

// earliestWith finds the earliest start with tokens, and the host too where it is one
// and needs no others.
func (s *session) earliestWith(c *class, tokens []tokenNeed, p *promise) (cluster.Time, bool) {
	if c.nodes > 1 || len(tokens) > 0 || len(c.choices) > 1 {
		return s.sweep(c, tokens)
	}
	at, host := s.firstWindow(c)
	if at == noEnd {
		return at, false
	}
	p.hosts = s.listed([]int32{host})
	return at, true
}

// firstWindow is the earliest start on one host.
func (s *session) firstWindow(c *class) (at cluster.Time, host int32) {
	at = noEnd
	s.eachHost(c, func(h int32) bool {
		s.hostLine(h).windows(c.need, c.limit, at, func(w window) bool {
			at, host = w.from, h
			return false
		})
		return at > s.now
	})
	return at, host
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
		s.hostLine(h).windows(c.need, c.limit, noEnd, func(w window) bool { add(w, false); return true })
		return true
	})
	for _, n := range tokens {
		s.poolLine(n.pool).windows(n.one, c.limit, noEnd, func(w window) bool { add(w, true); return true })
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
		if s.hostLine(h).holds(c.need, at, c.limit) {
			hosts = append(hosts, h)
		}
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
		s.hostLine(h).take(c.need, from, until, by)
	}
	for _, n := range c.choices[choice] {
		s.poolLine(n.pool).take(n.one, from, until, by)
	}
}
