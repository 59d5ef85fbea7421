package activities

import (
	"context"
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// mostNamed is how many ids of hosts that differ are told at a time, so that an
// answer stays small whatever a list says.
const mostNamed = 100

// books reads what the list of a provider of hosts is compared with. It is read
// before the list: what is made in between is asked for in the books already.
func (d *Dealer) books(ctx context.Context, provider string, described providers.Description) ([]api.HostMachine, error) {
	if !slices.Contains(described.Kinds, providers.KindHosts) {
		return nil, nil
	}
	machines, err := d.Hosts.Machines(ctx, provider)
	if err != nil {
		return nil, fmt.Errorf("read the hosts of %s: %w", provider, err)
	}
	return machines, nil
}

// Compare answers how a list of hosts differs from the books.
func Compare(books []api.HostMachine, list []providers.Grant) Inventory {
	var inv Inventory
	listed := make(map[string]providers.Grant, len(list))
	for _, g := range list {
		if g.Template != "" {
			listed[g.RequestID] = g
		}
	}
	open := make(map[string]bool, len(books))
	for _, h := range books {
		open[h.ID] = true
		g, there := listed[h.ID]
		if there {
			inv.Listed++
		}
		if !h.State.Made() || h.State == cluster.HostLeaving {
			continue
		}
		inv.Held++
		switch {
		case !there:
			inv.Missing++
			inv.MissingHosts = named(inv.MissingHosts, h.ID)
		case !slices.ContainsFunc(g.Instances, func(i providers.Instance) bool { return i.ID == h.Instance }):
			inv.Missing++ // as far as belief goes
			inv.Listed--
			inv.Swapped = named(inv.Swapped, h.ID)
		case len(g.Instances) > 1:
			inv.Swapped = named(inv.Swapped, h.ID)
		}
	}
	for _, g := range list {
		if g.Template == "" || open[g.RequestID] {
			continue
		}
		if inv.Orphans++; len(inv.OrphanHosts) < mostNamed {
			inv.OrphanHosts = append(inv.OrphanHosts, Orphan{Request: g.RequestID, Template: g.Template, Instances: g.Instances})
		}
	}
	return inv
}

func named(ids []string, id string) []string {
	if len(ids) == mostNamed {
		return ids
	}
	return append(ids, id)
}

// reclaims answers which of our hosts the provider takes by itself.
func reclaims(books []api.HostMachine, recalls []providers.Recall) (taken []Reclaim) {
	for _, r := range recalls {
		if slices.ContainsFunc(books, func(h api.HostMachine) bool { return h.ID == r.RequestID }) {
			taken = append(taken, Reclaim{Host: r.RequestID, Grace: cluster.Duration(r.Grace) * cluster.Second})
		}
	}
	return taken
}

// templates answers what hosts a provider can make, in the cluster's terms.
func templates(provider string, d providers.Description) (ts []cluster.Template, quotas []cluster.Quota) {
	ts = slices.Grow(ts, len(d.Templates))
	for _, t := range d.Templates {
		ts = append(ts, cluster.Template{
			Name: t.Template, Provider: provider,
			Capacity: cluster.Capacity{CPUs: t.CPUs, MemoryMB: t.MemoryMB, Countables: t.Countables, Features: t.Features, Attributes: t.Attributes},
			Headroom: t.Headroom, Quotas: t.Quotas, Price: cluster.Price(t.Price),
			MinimumHold: cluster.Duration(t.MinimumHold) * cluster.Second, BillingStep: cluster.Duration(t.BillingStep) * cluster.Second,
			Latency: cluster.Duration(t.Latency) * cluster.Second, Preference: t.Preference,
			PollInterval: cluster.Duration(d.PollInterval) * cluster.Second,
		})
	}
	for _, q := range d.Quotas {
		quotas = append(quotas, cluster.Quota{Name: q.Name, Counts: q.Counts, Limit: q.Limit, Used: q.Used})
	}
	return ts, quotas
}
