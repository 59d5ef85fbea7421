package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
)

// tokenSpan is jobs of a class that have their tokens alike.
type tokenSpan struct {
	count   int64
	outcome int32 // in session.outcomes
}

// span is jobs of a class, one after the other, that wait for the same.
type span struct {
	count   int64
	verdict int32 // in session.verdicts
}

// finish puts the result together.
func (s *session) finish() Result {
	r := Result{Starts: s.started()}
	s.findIdle()
	rows := s.tellAll()
	r.Reservations = s.reservations()
	r.Demand = s.demand(rows)
	if s.words {
		r.Clocks, r.Idle = s.tellIdle()
		r.Halves, r.Unplaced = s.tellHalves(), s.unplaced()
	}
	return r
}

// started answers what the session has started.
func (s *session) started() []Start {
	if len(s.starts) == 0 {
		return nil
	}
	return s.starts[:len(s.starts):len(s.starts)]
}

// forget drops what is kept for a job until one without a time limit has ended, or
// for longer than times can be written: that is no promise, and is worked out anew
// each time. Elements of an array are
// alike, so that the first gets the earliest promise.
func (s *session) forget() {
	for _, c := range s.promised() {
		if !slices.IsSortedFunc(c.promises, earlier) {
			slices.SortStableFunc(c.promises, earlier)
		}
		for n := len(c.promises); n > 0 && c.promises[n-1].at > lastPromise; n-- {
			c.promises = c.promises[:n-1]
		}
	}
}

// promised answers the classes that may have reservations.
func (s *session) promised() []*class {
	if s.e.policy.Order != Conservative {
		return s.promisers
	}
	s.order = s.order[:0]
	for c := range s.e.lineup.all() {
		if len(c.promises) > 0 {
			s.order = append(s.order, c)
		}
	}
	return s.order
}

// reservations answers all promises that stand.
func (s *session) reservations() []Reservation {
	rows := s.rows[:0]
	for _, c := range s.promised() {
		at := cursor{entry: c.head}
		promises := c.promises
		if !slices.IsSortedFunc(promises, earlier) {
			promises = slices.Clone(promises)
			slices.SortStableFunc(promises, earlier)
		}
		for _, p := range promises {
			if p.at > lastPromise {
				break
			}
			e := c.at(at)
			r := Reservation{Job: e.id, At: p.at}
			if e.array {
				r.Element = e.begun + at.element + 1
			}
			if len(c.spec.Alternatives) > 0 {
				r.Alternative = int64(p.choice) + 1
			}
			s.names = slab(s.names, len(p.hosts))
			first := len(s.names)
			for _, h := range p.hosts {
				s.names = append(s.names, s.promisedName(h))
			}
			r.Hosts = s.names[first:len(s.names):len(s.names)]
			rows = append(rows, reservationRow{e, r})
			at = c.after(at)
		}
	}
	s.rows = rows
	slices.SortStableFunc(rows, func(a, b reservationRow) int { return compareEntries(a.of, b.of) })
	reservations := s.reserves[:0]
	if s.words {
		reservations = make([]Reservation, 0, len(rows))
	}
	for i := range rows {
		reservations = append(reservations, rows[i].r)
	}
	if !s.words {
		s.reserves = reservations
	}
	return reservations
}

// reservationRow is a reservation and whose it is.
type reservationRow struct {
	of entry
	r  Reservation
}

// tell says of the class's next jobs, after those of which it was said already,
// why they wait.
func (s *session) tell(c *class, count int64, v verdict) {
	if count == 0 {
		return
	}
	if last := len(c.pass.spans) - 1; last >= 0 && s.verdicts[c.pass.spans[last].verdict] == v {
		c.pass.spans[last].count += count
		return
	}
	s.verdicts = append(s.verdicts, v)
	c.pass.spans = append(c.pass.spans, span{count, int32(len(s.verdicts) - 1)})
}

// hostRow is the demand for hosts of one template, as it is put together.
type hostRow struct {
	units int64
	ids   []int64
}

// tellAll says of every job why it waits, and answers for every template which
// jobs count on it.
func (s *session) tellAll() map[int32]*hostRow {
	var rows map[int32]*hostRow
	if len(s.hosts) > 0 {
		rows = map[int32]*hostRow{}
	}
	s.verdicts = slices.Grow(s.verdicts, len(s.classes))
	for _, h := range s.hosts {
		if rows[h.template] == nil {
			rows[h.template] = &hostRow{}
		}
		rows[h.template].units += h.count
	}
	for _, c := range s.classes {
		s.tellReal(c)
	}
	for i := range s.supply.items {
		item := &s.supply.items[i]
		slices.SortFunc(item.tally, func(a, b tally) int {
			return cmp.Or(cmp.Compare(a.where, b.where), cmp.Compare(a.template, b.template))
		})
		places := item.tally
		for _, p := range item.parts {
			places = s.tellPart(p.class, places, item.jobs, rows)
		}
	}
	for _, c := range s.classes {
		s.tellRest(c)
	}
	return rows
}

// tellReal tells of the class's first jobs, which have early reservations, and
// of those that have a place on a host that is there.
func (s *session) tellReal(c *class) {
	for _, p := range c.promises[:c.pass.skipped] {
		s.tell(c, 1, s.reserved(c, p, verdict{}))
	}
	tokens := tokenSpans{spans: c.pass.tokens}
	for told := int64(0); told < c.pass.onReal; {
		o, n := tokens.next(s, c.pass.onReal-told)
		s.tell(c, n, s.served(c, o, nil))
		if s.words {
			s.keepHalves(c, told, n, o, nil)
		}
		told += n
	}
}

// tellPart tells of the other admitted jobs of a class, which have the next of
// the places, and answers the places that are left.
func (s *session) tellPart(c *class, places []tally, jobs [][]tally, rows map[int32]*hostRow) []tally {
	at := c.skip(cursor{entry: c.head}, c.pass.skipped+c.pass.onReal)
	tokens := tokenSpans{spans: c.pass.tokens}
	tokens.skip(c.pass.onReal)
	count := c.pass.admitted - c.pass.onReal
	for told := int64(0); told < count; {
		n, on := count-told, []tally(nil)
		if c.nodes > 1 {
			n, on = 1, jobs[told]
		} else {
			for places[0].n == 0 {
				places = places[1:]
			}
			n, on = min(n, places[0].n), places[:1]
		}
		o, n := tokens.next(s, n)
		s.tell(c, n, s.served(c, o, on))
		if s.words {
			s.keepHalves(c, c.pass.onReal+told, n, o, on)
		}
		at = c.name(at, n, on, rows)
		if c.nodes == 1 {
			places[0].n -= n
		}
		told += n
	}
	return places
}

// name writes the ids of the next n jobs into the rows of the templates on which
// they have places, and answers the place after them.
func (c *class) name(at cursor, n int64, on []tally, rows map[int32]*hostRow) cursor {
	end := c.skip(at, n)
	for _, t := range on {
		if t.where == onMade {
			row := rows[t.template]
			row.ids = c.ids(row.ids, at, end)
		}
	}
	return end
}

// ids appends the ids of the jobs in [from, to).
func (c *class) ids(ids []int64, from, to cursor) []int64 {
	for i := from.entry; i < to.entry || i == to.entry && to.element > 0; i++ {
		ids = append(ids, c.queue[i].id)
	}
	return ids
}

// tokenSpans reads how jobs have their tokens, one after the other.
type tokenSpans struct {
	spans []tokenSpan
	used  int64
}

// next answers how the next job has its tokens, and how many of the next n have
// them so.
func (t *tokenSpans) next(s *session, n int64) (tokenOutcome, int64) {
	if len(t.spans) == 0 {
		return tokenOutcome{}, n
	}
	n = min(n, t.spans[0].count-t.used)
	o := s.outcomes[t.spans[0].outcome]
	if t.used += n; t.used == t.spans[0].count {
		t.spans, t.used = t.spans[1:], 0
	}
	return o, n
}

// skip passes over n jobs.
func (t *tokenSpans) skip(n int64) {
	for n > 0 && len(t.spans) > 0 {
		step := min(n, t.spans[0].count-t.used)
		n -= step
		if t.used += step; t.used == t.spans[0].count {
			t.spans, t.used = t.spans[1:], 0
		}
	}
}

// tellRest tells of the jobs that nothing could be found for.
func (s *session) tellRest(c *class) {
	told := c.pass.skipped + c.pass.admitted
	if told == c.waiting {
		return
	}
	why := s.whyCut(c)
	for told < min(c.waiting, int64(len(c.promises))) {
		s.tell(c, 1, s.reserved(c, c.promises[told], why))
		told++
	}
	s.tell(c, c.waiting-told, why)
}

// whyCut answers why the class's jobs after the admitted ones get nothing. Those
// that were not looked at, because one before them lets no other pass, may lack
// tokens too, which is told rather.
func (s *session) whyCut(c *class) verdict {
	if c.pass.cut.code != "" {
		return c.pass.cut
	}
	if choice, ok := s.offerTokens(c); !ok && slices.ContainsFunc(s.shares[choice], func(sh share) bool { return sh.lacking > 0 }) {
		return s.lacksTokens(c, choice)
	}
	return s.couldStart(c)
}

// unplaced answers the rows of all spans, in the order of their first jobs.
func (s *session) unplaced() []Unplaced {
	type row struct {
		first entry
		u     Unplaced
	}
	rows := make([]row, 0, len(s.heldBack)+len(s.verdicts))
	known := map[verdict]int{}
	for _, h := range s.heldBack {
		i, seen := known[h.why]
		if !seen {
			i = len(rows)
			known[h.why] = i
			rows = append(rows, row{h.first, Unplaced{Code: h.why.code, Why: h.why.why, Change: h.why.change}})
		}
		rows[i].u.Jobs = append(rows[i].u.Jobs, h.first.id)
		rows[i].u.Count += h.first.count
	}
	ids := make([]int64, 0, s.entries())
	for c := range s.e.lineup.all() {
		at := cursor{entry: c.head}
		for _, sp := range c.pass.spans {
			v := &s.verdicts[sp.verdict]
			end := c.skip(at, sp.count)
			begin := len(ids)
			ids = c.ids(ids, at, end)
			rows = append(rows, row{c.at(at), Unplaced{Code: v.code, Why: v.why, Change: v.change, Jobs: ids[begin:len(ids):len(ids)], Count: sp.count}})
			at = end
		}
	}
	order := make([]int32, len(rows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(compareEntries(rows[a].first, rows[b].first), cmp.Compare(a, b))
	})
	unplaced := make([]Unplaced, len(rows))
	for i, k := range order {
		unplaced[i] = rows[k].u
	}
	return unplaced
}

// entries answers how many jobs wait, arrays counted once.
func (s *session) entries() (n int) {
	for c := range s.e.lineup.all() {
		n += len(c.queue) - c.head
	}
	return n
}

// demand answers all rows in order.
func (s *session) demand(hosts map[int32]*hostRow) []cluster.Demand {
	var rows []cluster.Demand
	for _, p := range s.pools {
		rows = append(rows, p.demand()...)
	}
	for t, row := range hosts {
		tmpl := &s.e.templates[t]
		if !slices.IsSorted(row.ids) {
			slices.Sort(row.ids)
		}
		row.ids = slices.Compact(row.ids)
		d := cluster.Demand{
			Template: tmpl.Name, Provider: tmpl.Provider, Units: row.units, Jobs: row.ids, Price: tmpl.Price * cluster.Price(row.units),
		}
		d.Reason = moreOf(d)
		rows = append(rows, d)
	}
	slices.SortFunc(rows, cluster.CompareDemand)
	return rows
}

// moreOf says for whom demand is.
func moreOf(d cluster.Demand) string {
	return fmt.Sprintf("%s %s for %d more %s", jobList(d.Jobs), waits(d.Jobs), d.Units, d.What())
}

// findIdle finds what lies idle, and keeps it in the engine for the next session.
func (s *session) findIdle() {
	for i, p := range s.pools {
		units := min(p.free, p.unreserved)
		if l := &s.lines.pools[i]; l.session == s.number {
			units = min(units, l.least())
		}
		p.resource.follow(units, s.now)
	}
	needed := s.neededHosts()
	for _, i := range s.e.order {
		s.e.noteIdle(&s.e.hosts[i], needed[i], s.now)
	}
}

// rest finds what lies idle where nobody waits.
func (e *Engine) rest(now cluster.Time) {
	for i := range e.resources {
		r := &e.resources[i]
		r.follow(r.Total-r.InUse-r.KeepBack, now)
	}
	for _, i := range e.order {
		e.noteIdle(&e.hosts[i], false, now)
	}
}

// tellIdle answers the idle clocks and the idle supply, as they were found.
func (s *session) tellIdle() (clocks map[string]cluster.IdleClock, idle []cluster.IdleSupply) {
	clocks = map[string]cluster.IdleClock{}
	for i := range s.e.resources {
		r := &s.e.resources[i]
		clocks[r.Name] = slices.Clone(r.Idle)
		if r.Idle.Units() > 0 {
			idle = append(idle, cluster.IdleSupply{Resource: r.Name, Units: r.Idle.Units(), Since: r.Idle.Since()})
		}
	}
	for _, i := range s.e.order {
		if h := &s.e.hosts[i]; h.isIdle(s.needed[i]) {
			idle = append(idle, cluster.IdleSupply{Host: h.name, Template: h.template, Units: 1, Since: h.idleSince})
		}
	}
	return clocks, idle
}

// follow keeps the resource's idle clock after units were found idle.
func (r *Resource) follow(units int64, now cluster.Time) {
	r.Idle.Keep(units, now)
}

// isIdle tells whether a host lies idle, which it does not where waiting jobs need it.
func (h *host) isIdle(needed bool) bool { return h.closed == "" && h.jobs == 0 && !needed }

// noteIdle notes since when a host lies idle.
func (e *Engine) noteIdle(h *host, needed bool, now cluster.Time) {
	before := h.idleSince
	switch {
	case !h.isIdle(needed):
		h.idleSince = 0
	case before == 0:
		h.idleSince = now
	}
	if h.idleSince != before && h.template != "" {
		e.idleChanges++
	}
}

// Rest is a session where nobody waits: all that there is to find out is what lies idle.
func (e *Engine) Rest(now cluster.Time) {
	e.refresh()
	e.promised, e.freed = nil, false
	e.rest(now)
}

// IdleClock answers since when units of a resource lie idle, as the last session found. The answer holds until the
// next one only.
func (e *Engine) IdleClock(resource string) cluster.IdleClock {
	i, known := e.resourceIndex[resource]
	if !known {
		return nil
	}
	return e.resources[i].Idle
}

// IdleSince answers since when a host lies idle, as the last session found; 0 where it does not.
func (e *Engine) IdleSince(name string) cluster.Time {
	i, known := e.hostIndex[name]
	if !known {
		return 0
	}
	return e.hosts[i].idleSince
}

// IdleChanges numbers the changes of which hosts lie idle that may go back.
func (e *Engine) IdleChanges() uint64 { return e.idleChanges }

// neededHosts answers which hosts waiting jobs have a place on or a reservation for.
func (s *session) neededHosts() []bool {
	needed := slices.Grow(s.needed[:0], len(s.e.hosts))[:len(s.e.hosts)]
	clear(needed)
	s.needed = needed
	for k := range s.supply.real {
		for i, g := range s.supply.real[k].groups {
			if g.load != noLoad || g.taken {
				needed[s.supply.real[k].hosts[i]] = true
			}
		}
	}
	for _, c := range s.classes {
		for _, p := range c.promises {
			if p.at >= forever {
				continue // nobody knows when, and till then it costs
			}
			hosts, _ := s.hereAndComing(p.hosts)
			for _, h := range hosts {
				needed[h] = true
			}
		}
	}
	return needed
}
