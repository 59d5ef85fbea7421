package policy

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// View is what borrowing from one provider is decided upon, read at one moment.
type View struct {
	Provider string           `json:"provider"`
	Demand   []cluster.Demand `json:"demand"` // rows addressed to the provider
	Offers   []cluster.Offer  `json:"offers"` // the provider's
	// Open are the provider's loans that are not closed.
	Open []cluster.Loan `json:"open"`
	// Room is how much of each resource may still be borrowed, from anyone.
	Room map[string]int64 `json:"room"`
	// Loans counts the loans that the provider ever had in the books, by resource.
	Loans map[string]int64 `json:"loans"`
	// Weights are the unit weights of the resources.
	Weights map[string]int64 `json:"weights"`
}

// Plan is one loan to take; its id is given by who carries the plan out.
type Plan struct {
	Demand cluster.Demand
	Units  int64
	Terms  cluster.Terms
}

// Borrow decides which loans to take now; demand for hosts is not its matter.
// One request carries all that its offer allows; what exceeds the offer's open
// requests, its headroom or the room under the resource's limit waits for a
// later session.
func Borrow(view View, now cluster.Time) []Plan {
	demand := slices.Clone(view.Demand)
	slices.SortFunc(demand, cluster.CompareDemand)
	var plans []Plan
	for _, d := range demand {
		i := slices.IndexFunc(view.Offers, func(o cluster.Offer) bool { return o.Resource == d.Resource })
		if d.Resource == "" || i < 0 || now < view.Offers[i].BackoffUntil {
			continue
		}
		offer := view.Offers[i]
		units := min(d.Units, offer.Headroom, view.Room[d.Resource])
		if units < 1 || openRequests(view.Open, d.Resource) >= max(offer.MaxOpen, 1) {
			continue
		}
		if offer.MaxRequest > 0 {
			units = min(units, offer.MaxRequest)
		}
		plans = append(plans, Plan{Demand: d, Units: units, Terms: cluster.Terms{
			Price: offer.Price, MinimumHold: offer.MinimumHold,
			BillingStep: offer.BillingStep, PartialReturn: offer.PartialReturn,
			PollInterval: offer.PollInterval, UnitWeight: max(view.Weights[d.Resource], 1),
		}})
	}
	return plans
}

func openRequests(open []cluster.Loan, resource string) int64 {
	var n int64
	for _, l := range open {
		if l.Resource == resource && l.State == cluster.LoanRequested {
			n++
		}
	}
	return n
}

// RefusedOffer answers an offer after its lender refused a request; it is left alone
// for a while. Of many refusals that come at once only the first counts.
func RefusedOffer(o cluster.Offer, retryAfter cluster.Duration, now cluster.Time) cluster.Offer {
	if now >= o.BackoffUntil {
		o.Refusals++
		o.BackoffUntil = now.Add(Backoff(o.Refusals, retryAfter))
	}
	return o
}

// RefusedTemplate answers a template after no host was made of it; it is let be for
// a while. Of many refusals that come at once only the first counts.
func RefusedTemplate(t cluster.Template, retryAfter cluster.Duration, now cluster.Time) cluster.Template {
	if now >= t.BackoffUntil {
		t.Refusals++
		t.BackoffUntil = now.Add(Backoff(t.Refusals, retryAfter))
	}
	return t
}

// Limits of the back-off after refusals in a row.
const (
	firstBackoff = 30 * cluster.Second
	maxBackoff   = 30 * cluster.Minute
)

// Backoff answers how long to leave an offer alone after its n-th refusal in a
// row (n from 1): what the lender asked for, or else twice as long each time
// from 30 seconds up to 30 minutes.
func Backoff(n int64, retryAfter cluster.Duration) cluster.Duration {
	if retryAfter > 0 {
		return retryAfter
	}
	wait := firstBackoff
	for i := int64(1); i < n && wait < maxBackoff; i++ {
		wait *= 2
	}
	return min(wait, maxBackoff)
}
