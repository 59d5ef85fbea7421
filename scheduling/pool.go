package scheduling

import (
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// pool is the supply of one resource during a session.
type pool struct {
	resource Resource
	// ceiling is the most units that a job can ever have.
	ceiling int64
	// free is what the next job may take: waiting jobs before it have taken
	// theirs. It is negative where they need more than there is, or where more
	// is in use or kept back.
	free int64
	// unreserved is what is free for the jobs that are tried on virtual supply;
	// those before have taken only what there was.
	unreserved int64
	// reserved is what those before have taken of it.
	reserved int64
	// coming is what requested loans will bring and no job counts on yet.
	coming int64
	// room is what the limit leaves when all the headroom is borrowed.
	room int64
	// waiter is the first job that must wait for running jobs to give tokens
	// back; those behind it raise no demand.
	waiter  int64
	sources []*source
	// noMore says for each lender why it lends no more.
	noMore []string
}

// source is the headroom of one lender's offer.
type source struct {
	provider string
	headroom int64
	taken    int64
	jobs     []int64
}

func newPool(r Resource, offers []cluster.Offer, now cluster.Time) *pool {
	free := r.Total - r.InUse - r.KeepBack
	p := &pool{resource: r, free: free, unreserved: free}
	var borrowed int64
	for _, l := range r.Loans {
		borrowed += l.Borrowed
		if l.State == cluster.LoanRequested {
			p.coming += l.Units
		}
	}
	p.ceiling = max(r.Ceiling(), r.Total+p.coming-r.KeepBack)
	if r.Elastic == nil {
		return p
	}
	p.room = max(r.Elastic.MaxBorrowed-p.coming-borrowed, 0)
	for _, lender := range r.Elastic.Lenders {
		headroom, why := headroomOf(lender, r, offers, now)
		p.noMore = append(p.noMore, why)
		if headroom = min(headroom, p.room); headroom > 0 {
			p.sources = append(p.sources, &source{provider: lender, headroom: headroom})
			p.room -= headroom
		}
	}
	return p
}

// headroomOf answers what a lender could give now, and why not more.
func headroomOf(lender string, r Resource, offers []cluster.Offer, now cluster.Time) (int64, string) {
	offer, found := cluster.FindOffer(offers, lender, r.Name)
	switch {
	case !found:
		return 0, lender + " has offered nothing"
	case now < offer.BackoffUntil:
		return 0, fmt.Sprintf("%s refused and is left alone until %s", lender, offer.BackoffUntil.Stamp())
	}
	return headroomNow(offer, r.Loans), lender + " has no more headroom now"
}

// headroomNow is what an offer still allows: our own requests since it was
// published have taken of it.
func headroomNow(o cluster.Offer, loans []cluster.Loan) int64 {
	headroom := o.Headroom
	for _, l := range loans {
		if l.Provider == o.Provider && l.Intended > o.Published {
			headroom -= l.Units
		}
	}
	return max(headroom, 0)
}

// share says how one job's need could be met. Where more is in use or kept back
// than there is, what is free is negative, and made up for first.
type share struct {
	pool                  *pool
	need, free, coming    int64
	reserved              int64   // for earlier jobs
	fromSources           []int64 // by the pool's sources
	lacking, fromHeadroom int64
}

// offer works out how `units` could be met, and takes nothing.
func (p *pool) offer(units int64) share {
	sh := share{pool: p, need: units, reserved: p.reserved, fromSources: make([]int64, len(p.sources))}
	sh.free = min(units, p.unreserved)
	sh.coming = min(units-sh.free, p.coming)
	sh.lacking = units - sh.free - sh.coming
	for i, src := range p.sources {
		n := min(sh.lacking, src.headroom-src.taken)
		sh.fromSources[i] = n
		sh.lacking -= n
		sh.fromHeadroom += n
	}
	return sh
}

// take takes the share for a job, and tells whether anything of it is to be borrowed.
func (sh share) take(job int64) bool {
	sh.takeFree()
	sh.pool.coming -= sh.coming
	for i, n := range sh.fromSources {
		if n > 0 {
			src := sh.pool.sources[i]
			src.taken += n
			src.jobs = append(src.jobs, job)
		}
	}
	return sh.fromHeadroom > 0
}

// reserve keeps what is free and coming for a job that must wait. Where it waits
// for more, no later job may borrow before it.
func (sh share) reserve(job int64) {
	sh.takeFree()
	sh.pool.coming -= sh.coming
	if sh.free+sh.coming < sh.need && sh.pool.waiter == 0 {
		sh.pool.waiter = job
	}
}

func (sh share) takeFree() {
	sh.pool.unreserved -= sh.free
	sh.pool.reserved += max(sh.free, 0)
}

// demand answers what was taken of each source.
func (p *pool) demand() []cluster.Demand {
	var rows []cluster.Demand
	for _, src := range p.sources {
		if src.taken == 0 {
			continue
		}
		rows = append(rows, cluster.Demand{
			Resource: p.resource.Name, Provider: src.provider, Units: src.taken, Jobs: src.jobs,
			Reason: fmt.Sprintf("%s %s for nothing but tokens: %d more %s", jobList(src.jobs), waits(src.jobs), src.taken, p.resource.Name),
		})
	}
	return rows
}

func waits(jobs []int64) string {
	if len(jobs) == 1 {
		return "waits"
	}
	return "wait"
}

// jobList names the first jobs of a list in words.
func jobList(jobs []int64) string {
	const most = 5
	names := make([]string, 0, most)
	for _, id := range jobs[:min(len(jobs), most)] {
		names = append(names, fmt.Sprintf("%d", id))
	}
	switch {
	case len(jobs) == 1:
		return "job " + names[0]
	case len(jobs) > most:
		return fmt.Sprintf("jobs %s and %d more", strings.Join(names, ", "), len(jobs)-most)
	}
	return "jobs " + strings.Join(names, ", ")
}
