package judge

import (
	"slices"

	"xce.internal/elastic/cluster"
)

const (
	// MostDemandJobs is how many jobs a row of demand names: each intent reads and writes the row, which must not
	// grow with the queue.
	MostDemandJobs = 200
	// MostNamedJobs is how many jobs a host is said to be for: all that wait would be named in each row.
	MostNamedJobs = 20
)

// Offer answers what is kept of an offer that a lender publishes now, and whether it is another than the one before
// (nil where there is none) in more than its age.
func Offer(o cluster.Offer, lender string, before *cluster.Offer, now cluster.Time) (kept cluster.Offer, news bool) {
	o.Provider, o.Published = lender, now
	if before == nil {
		return o, true
	}
	o = o.After(*before)
	previous := *before
	previous.Published = now
	return o, previous != o
}

// Template answers what is kept of a template that a provider publishes now, and whether it is another than the one
// before (nil where there is none) in more than its age.
func Template(t cluster.Template, provider string, before *cluster.Template, now cluster.Time) (kept cluster.Template, news bool) {
	t.Provider, t.Published, t.Quotas = provider, now, slices.Clone(t.Quotas)
	for i := range t.Quotas {
		t.Quotas[i] = quotaName(provider, t.Quotas[i])
	}
	if before == nil {
		return t, true
	}
	t = t.After(*before)
	previous := *before
	previous.Published = now
	return t, !previous.Same(t)
}

// Quotas answers what is kept of the quotas that a provider publishes now.
func Quotas(said []cluster.Quota, provider string, now cluster.Time) []cluster.Quota {
	kept := slices.Clone(said)
	for i := range kept {
		kept[i].Name, kept[i].Published = quotaName(provider, kept[i].Name), now
	}
	return kept
}

// quotaName tells the quotas of one provider from those of others.
func quotaName(provider, quota string) string { return provider + "." + quota }
