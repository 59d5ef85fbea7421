package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
)

// pool is the supply of one resource during a session.
type pool struct {
	resource *Resource
	// free is what the next job may take: waiting jobs before it have taken
	// theirs. It is negative where they need more than there is, or where more
	// is in use or kept back.
	free int64
	// unreserved is what is free for the jobs that are tried on virtual supply;
	// those before have taken only what there was.
	unreserved int64
	// realUnreserved and allComing are unreserved and coming as the real pass
	// left them.
	realUnreserved, allComing int64
	// keeper is the first job under fcfs that waits for tokens and keeps free ones.
	keeper int64
	// reserved tells whether those before have taken any of it.
	reserved bool
	// coming is what requested loans will bring and no job counts on yet.
	coming   int64
	arrivals []arrival
	// room is what the limit allows to borrow now.
	room int64
	// waiter is the first job that must wait for running jobs to give tokens
	// back; those behind it raise no demand.
	waiter  int64
	sources []*source
	spare   []*source // reused
	lenders []lender
	line    [1]int64 // reused
}

// arrival is what a requested loan will bring.
type arrival struct {
	at    cluster.Time
	units [1]int64
}

// source is the headroom of one lender's offer.
type source struct {
	offer    *cluster.Offer
	cost     int64 // of one unit; see cost
	headroom int64
	taken    int64
	jobs     []int64
}

// ceiling is the most units of a resource that a job can ever have.
func (e *Engine) ceiling(i int32) int64 {
	r := &e.resources[i]
	return max(r.Ceiling(), r.Total+requested(r)-r.KeepBack)
}

// requested is what the open requests of a resource will bring.
func requested(r *Resource) (units int64) {
	for _, l := range r.Loans {
		if l.State == cluster.LoanRequested {
			units += l.Units
		}
	}
	return units
}

// begin makes the pool that of a session.
func (p *pool) begin(r *Resource, lenders []lender, offers []cluster.Offer, now cluster.Time) {
	free := r.Total - r.InUse - r.KeepBack
	*p = pool{
		resource: r, lenders: lenders, free: free, unreserved: free,
		arrivals: p.arrivals[:0], sources: p.sources[:0], spare: p.spare,
	}
	var borrowed int64
	for i := range r.Loans {
		l := &r.Loans[i]
		borrowed += l.Borrowed
		if l.State == cluster.LoanRequested {
			p.coming += l.Units
			offer, _ := cluster.FindOffer(offers, l.Provider, r.Name)
			p.arrivals = append(p.arrivals, arrival{at: l.Intended.Add(offer.Latency), units: [1]int64{l.Units}})
		}
	}
	if r.Elastic == nil {
		return
	}
	p.room = max(r.Elastic.MaxBorrowed-p.coming-borrowed, 0)
}

// find finds what lenders could give now.
func (p *pool) find(now cluster.Time) {
	p.sources = p.sources[:0] // of the same pass, where its words are asked for
	for i := range p.lenders {
		if headroom := p.lenders[i].headroom(p.resource.Loans, now); headroom > 0 {
			p.addSource(p.lenders[i].offer, headroom)
		}
	}
	if len(p.sources) > 1 {
		slices.SortStableFunc(p.sources, func(a, b *source) int { return cmp.Compare(a.cost, b.cost) })
	}
	p.limit()
}

// addSource adds what a lender could give. Sources are used again.
func (p *pool) addSource(o *cluster.Offer, headroom int64) {
	n := len(p.sources)
	if n == len(p.spare) {
		p.spare = append(p.spare, &source{})
	}
	src := p.spare[n]
	hold := max(o.MinimumHold, p.resource.MinimumHold())
	*src = source{offer: o, headroom: headroom, cost: cost(o.Price, hold, o.BillingStep, usualUse)}
	p.sources = append(p.sources, src)
}

// lender is a provider that may lend a resource, and what it offers of it; nil where
// that is nothing.
type lender struct {
	name  string
	offer *cluster.Offer
}

// takeOffers finds what each lender of each resource offers.
func (e *Engine) takeOffers(offers []cluster.Offer) {
	e.offers = append(e.offers[:0], offers...)
	for len(e.lenders) < len(e.resources) {
		e.lenders = append(e.lenders, nil)
	}
	for i := range e.resources {
		e.lenders[i] = e.lenders[i][:0]
		r := &e.resources[i]
		var names []string
		if r.Elastic != nil {
			names = r.Elastic.Lenders
		}
		for _, name := range names {
			l := lender{name: name}
			if k := slices.IndexFunc(offers, func(o cluster.Offer) bool { return o.Provider == name && o.Resource == r.Name }); k >= 0 {
				l.offer = &e.offers[k]
			}
			e.lenders[i] = append(e.lenders[i], l)
		}
	}
}

// frees answers what is free, as timelines count.
func (p *pool) frees() []int64 {
	p.line[0] = p.free
	return p.line[:]
}

// limit cuts the headroom of the sources, the last ones first, to the room.
func (p *pool) limit() {
	room := p.room
	for i, src := range p.sources {
		src.headroom = min(src.headroom, room)
		if room -= src.headroom; src.headroom == 0 {
			p.sources = p.sources[:i]
			return
		}
	}
}

// keepFor keeps units for a job that has a reservation: of what is free, which it
// answers, then of what is coming.
func (p *pool) keepFor(units int64) (free int64) {
	free = min(units, max(p.unreserved, 0))
	p.unreserved -= free
	p.coming -= min(units-free, p.coming)
	p.reserved = true
	return free
}

// latency answers how soon more units could be there; not possible means that
// none are coming and no one lends any.
func (p *pool) latency(now cluster.Time) (latency cluster.Duration, possible bool) {
	var first soonest
	for _, src := range p.sources {
		first.or(src.offer.Latency)
	}
	for _, a := range p.arrivals {
		first.or(max(a.at.Sub(now), 0))
	}
	return first.latency, first.possible
}

// soonest is the least of several latencies; not possible where there is none.
type soonest struct {
	latency  cluster.Duration
	possible bool
}

func (s *soonest) or(l cluster.Duration) {
	if !s.possible || l < s.latency {
		s.latency, s.possible = l, true
	}
}

// limited tells whether it is the limit that keeps the pool from borrowing more.
func (p *pool) limited() bool {
	room := p.room
	for _, src := range p.sources {
		room -= src.headroom
	}
	return room <= 0
}

// keep remembers the pool as the real pass leaves it; putBack makes it so again.
func (p *pool) keep() { p.realUnreserved, p.allComing = p.unreserved, p.coming }

func (p *pool) putBack() {
	p.unreserved, p.coming = p.realUnreserved, p.allComing
	p.reserved, p.waiter = false, 0
	for _, src := range p.sources {
		src.taken, src.jobs = 0, nil
	}
}

// headroom answers what the lender could give now.
func (l *lender) headroom(loans []cluster.Loan, now cluster.Time) int64 {
	if l.offer == nil || now < l.offer.BackoffUntil {
		return 0
	}
	return headroomNow(l.offer, loans)
}

// noMore says why the lender lends no more.
func (l *lender) noMore(now cluster.Time) string {
	switch {
	case l.offer == nil:
		return l.name + " has offered nothing"
	case now < l.offer.BackoffUntil:
		return fmt.Sprintf("%s refused and is left alone until %s", l.name, l.offer.BackoffUntil.Stamp())
	}
	return l.name + " has no more headroom than that"
}

// headroomNow is what an offer still allows: our own requests since it was
// published have taken of it.
func headroomNow(o *cluster.Offer, loans []cluster.Loan) int64 {
	headroom := o.Headroom
	for i := range loans {
		if l := &loans[i]; l.Provider == o.Provider && l.Intended > o.Published {
			headroom -= l.Units
		}
	}
	return max(headroom, 0)
}

// share says how one job's need of a pool could be met. Where more is in use or
// kept back than there is, what is free is negative, and made up for first.
type share struct {
	pool               *pool
	need, free, coming int64
	reserved           bool    // of what is free, for earlier jobs
	borrowed           []int64 // by the pool's sources
	fromHeadroom       int64
	lacking            int64
	cost               int64
}

// offer works out how `units` could be met, and takes nothing. Quiet jobs may
// not borrow. It uses the old value's memory.
func (sh *share) offer(p *pool, units int64, quiet bool) {
	*sh = share{pool: p, need: units, reserved: p.reserved, borrowed: sh.borrowed[:0]}
	sh.free = min(units, p.unreserved)
	sh.coming = min(units-sh.free, p.coming)
	sh.lacking = units - sh.free - sh.coming
	for _, src := range p.sources {
		n := min(sh.lacking, src.headroom-src.taken)
		if quiet {
			n = 0
		}
		sh.borrowed = append(sh.borrowed, n)
		sh.lacking -= n
		sh.fromHeadroom += n
		sh.cost += n * src.cost
	}
}

// take takes the share for a job.
func (sh *share) take(job int64) {
	sh.takeFree()
	sh.pool.coming -= sh.coming
	for i, n := range sh.borrowed {
		if n > 0 {
			src := sh.pool.sources[i]
			src.taken += n
			if last := len(src.jobs) - 1; last < 0 || src.jobs[last] != job {
				src.jobs = append(src.jobs, job)
			}
		}
	}
}

// reserve keeps what is free and coming for a job that must wait. Where it waits
// for more, no later job may borrow before it.
func (sh *share) reserve(job int64) {
	sh.takeFree()
	sh.pool.coming -= sh.coming
	if sh.free+sh.coming < sh.need && sh.pool.waiter == 0 {
		sh.pool.waiter = job
	}
}

func (sh *share) takeFree() {
	sh.pool.unreserved -= sh.free
	if sh.free > 0 {
		sh.pool.reserved = true
	}
}

// closed tells whether a job that waits can keep nothing more of the pool, and
// those after it get nothing anyway.
func (p *pool) closed() bool { return p.unreserved <= 0 && p.coming <= 0 && p.waiter != 0 }

// demand answers what was taken of each source.
func (p *pool) demand() []cluster.Demand {
	var rows []cluster.Demand
	for _, src := range p.sources {
		if src.taken == 0 {
			continue
		}
		d := cluster.Demand{
			Resource: p.resource.Name, Provider: src.offer.Provider, Units: src.taken, Jobs: src.jobs, Price: src.offer.Price * cluster.Price(src.taken),
		}
		d.Reason = moreOf(d)
		rows = append(rows, d)
	}
	return rows
}

// usualUse is how long a host or a token is counted to be used where the jobs
// at hand have no time limit.
const usualUse = cluster.Hour

// cost is what one unit costs for the jobs at hand, in millionths: it is paid
// for until its minimum hold is over, and for whole billing steps.
func cost(price cluster.Price, hold, step, use cluster.Duration) int64 {
	paid := max(hold, use)
	if step > 0 {
		paid = (paid + step - 1) / step * step
	}
	return int64(price) * int64(paid/cluster.Second) / int64(cluster.Hour/cluster.Second)
}
