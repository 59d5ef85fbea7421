package judge

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/policy"
)

// Limits is all that the cluster's own limits on hosts are judged on.
type Limits struct {
	Rules cluster.HostRules `json:"rules"`
	// Open and Begun count hosts by template, as policy.HostCounts does; Here and Unhealthy count those that joined.
	Open      map[string]int64   `json:"open,omitempty"`
	Begun     map[string]int64   `json:"begun,omitempty"`
	Here      int64              `json:"here,omitempty"`
	Unhealthy int64              `json:"unhealthy,omitempty"`
	Templates []cluster.Template `json:"templates,omitempty"`
	// Said are the limits that providers have, in their order.
	Said []cluster.Quota `json:"said,omitempty"`
}

// Limited is what sessions are given to keep to.
type Limited struct {
	Templates []cluster.Template `json:"templates,omitempty"`
	Quotas    []cluster.Quota    `json:"quotas,omitempty"`
	// Halt is why no more hosts are asked for, where that is so.
	Halt string `json:"halt,omitempty"`
}

// Judge answers templates with the cluster's own limits, and all quotas.
func (l Limits) Judge(now cluster.Time) (of Limited) {
	counts := policy.HostCounts{Open: l.Open, Begun: l.Begun, Here: l.Here, Unhealthy: l.Unhealthy}
	of.Templates, of.Quotas, of.Halt = policy.Limits(l.Rules, counts, l.Templates, now)
	of.Quotas = append(of.Quotas, l.Said...)
	return of
}
