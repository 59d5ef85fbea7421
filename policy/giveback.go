package policy

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// HoldUntil answers when the minimum hold of a loan granted at `granted` is over.
// The longer of the lender's and the resource's own counts.
func HoldUntil(terms cluster.Terms, own cluster.Duration, granted cluster.Time) cluster.Time {
	return granted.Add(max(terms.MinimumHold, own))
}

// Paid is for what time something that was got from a provider is paid for.
type Paid struct {
	// Since is when it was got, and HoldUntil when its minimum hold is over.
	Since, HoldUntil cluster.Time
	// Step is the length of time that is paid for once begun; 0 means none.
	Step cluster.Duration
}

// Returnable answers the first instant from `now` on at which it makes sense to
// give it back: not before its minimum hold is over, and, where the provider
// bills by steps, only shortly before the next step begins, since the step that
// has begun is paid for anyway.
func (p Paid) Returnable(now cluster.Time) cluster.Time {
	at := max(now, p.HoldUntil)
	if p.Step <= 0 {
		return at
	}
	lead := returnLead(p.Step)
	left := p.Step - at.Sub(p.Since)%p.Step
	if left <= lead {
		return at
	}
	return at.Add(left - lead)
}

// Returnable answers the first instant from `now` on at which it makes sense
// to give units of the loan back.
func Returnable(loan cluster.Loan, now cluster.Time) cluster.Time {
	return Paid{Since: loan.Committed, HoldUntil: loan.HoldUntil, Step: loan.BillingStep}.Returnable(now)
}

// returnLead is how long before a billing step's end a return is begun, so
// that it is through in time: a tenth of the step, at most five minutes.
func returnLead(step cluster.Duration) cluster.Duration { return min(step/10, 5*cluster.Minute) }

// Share answers how many units of the loan `id` should be fenced now, and when
// to ask again: when units are ripe and the loan may go back. The units that
// have been idle for `idleTime` are dealt to the loans that may go back, the
// dearest first, then the oldest; a loan whose lender takes no part of it back
// gets all its units or none.
func Share(loans []cluster.Loan, idle cluster.IdleClock, idleTime cluster.Duration, id string, now cluster.Time) (int64, cluster.Time) {
	var units int64
	var own cluster.Loan
	ripe := idle.Ripe(idleTime, now)
	for _, loan := range ReturnOrder(loans) {
		if loan.ID == id {
			own = *loan
		}
		if Returnable(*loan, now) > now {
			continue
		}
		give := min(ripe, loan.Borrowed)
		if !loan.PartialReturn && give < loan.Borrowed {
			give = 0
		}
		ripe -= give
		if loan.ID == id {
			units = give
		}
	}
	again := idle.NextRipe(idleTime, now)
	if may := Returnable(own, now); may > now && idle.Ripe(idleTime, now) > 0 {
		again = may
	}
	return units, Returnable(own, again)
}

// ReturnUnits answers how many units of a loan should be fenced now, and when to ask
// again: its share of what is idle, and what its lender wants back.
func ReturnUnits(loans []cluster.Loan, idle cluster.IdleClock, idleTime cluster.Duration, row cluster.Loan, now cluster.Time) (int64, cluster.Time) {
	units, again := Share(loans, idle, idleTime, row.ID, now)
	if row.Recalled > 0 {
		return units + row.Recalled, min(again, now.Add(recallRetry))
	}
	return units, again
}

// recallRetry is how often a loan asks whether recalled units, which may go
// back at any moment, have become unused.
const recallRetry = 15 * cluster.Second

// ReturnOrder answers the loans with borrowed units, those to give back first
// at the front: the dearest, then the oldest.
func ReturnOrder(loans []cluster.Loan) []*cluster.Loan {
	held := make([]*cluster.Loan, 0, len(loans))
	for i := range loans {
		if loans[i].Borrowed > 0 {
			held = append(held, &loans[i])
		}
	}
	slices.SortFunc(held, func(a, b *cluster.Loan) int {
		return cmp.Or(cmp.Compare(b.Price, a.Price), cmp.Compare(a.Committed, b.Committed), cmp.Compare(a.ID, b.ID))
	})
	return held
}
