package policy

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// HostView is what a provider's hosts are decided upon, read at one moment.
type HostView struct {
	// Demand has the rows addressed to the provider's templates.
	Demand    []cluster.Demand   `json:"demand"`
	Templates []cluster.Template `json:"templates"` // the provider's
	// Made counts the hosts that the books ever had of each template.
	Made map[string]int64 `json:"made"`
}

// HostPlan is hosts to ask for, alike; their ids are given by who carries the
// plan out.
type HostPlan struct {
	Demand   cluster.Demand
	Template cluster.Template
	Hosts    int64
}

// mostHostsAtOnce is how many hosts are asked for in one step.
const mostHostsAtOnce = 100

// Provision decides which hosts to ask for now. The session that demanded them
// has kept to headroom, quotas and limits already; what it wants beyond one step
// waits for the next.
func Provision(view HostView, now cluster.Time) []HostPlan {
	demand := slices.Clone(view.Demand)
	slices.SortFunc(demand, cluster.CompareDemand)
	var plans []HostPlan
	left := int64(mostHostsAtOnce)
	for _, d := range demand {
		i := slices.IndexFunc(view.Templates, func(t cluster.Template) bool { return t.Name == d.Template })
		if d.Template == "" || i < 0 || now < view.Templates[i].BackoffUntil {
			continue
		}
		if hosts := min(d.Units, view.Templates[i].Headroom, left); hosts > 0 {
			plans = append(plans, HostPlan{Demand: d, Template: view.Templates[i], Hosts: hosts})
			left -= hosts
		}
	}
	return plans
}

// Without answers the view once the plans are carried out: they have used up demand
// and headroom.
func (v HostView) Without(plans []HostPlan) HostView {
	v.Demand, v.Templates = slices.Clone(v.Demand), slices.Clone(v.Templates)
	for _, p := range plans {
		for i := range v.Demand {
			if v.Demand[i].Template == p.Template.Name {
				v.Demand[i].Units -= p.Hosts
			}
		}
		for i := range v.Templates {
			if v.Templates[i].Name == p.Template.Name {
				v.Templates[i].Headroom -= p.Hosts
			}
		}
	}
	return v
}

// ReturnHost tells whether an idle host goes back now, and if not, when to ask
// again. IdleSince is 0 for one that is not idle.
func ReturnHost(row cluster.ElasticHost, idleSince, now cluster.Time) (idle bool, again cluster.Time) {
	ripe := now.Add(max(row.IdleTime, cluster.Second))
	if idleSince > 0 {
		ripe = idleSince.Add(row.IdleTime)
	}
	at := Paid{Since: row.Made, HoldUntil: row.HoldUntil, Step: row.BillingStep}.Returnable(max(now, ripe))
	return idleSince > 0 && at <= now, at
}

// FirstReturn answers when a host that has just joined is worth asking about.
func FirstReturn(row cluster.ElasticHost, joined cluster.Time) cluster.Time {
	_, at := ReturnHost(row, joined, joined)
	return at
}
