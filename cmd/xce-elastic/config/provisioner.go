package config

import (
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/worker"
)

// Provisioner is what one instance of the provisioner does.
type Provisioner struct {
	// Pools are the work that it takes: workflows, controller, provider:NAME, or
	// provider:* for all; those of providers say for which it may act.
	Pools []string `json:"pools"`
	// Prefers are the providers for which it should rather act than others.
	Prefers []string `json:"prefers"`
	// Health is the address and port at which it answers health checks; empty for none.
	Health string `json:"health"`
}

func (p Provisioner) validate(providers []string) (ps cluster.Problems) {
	pools, err := worker.ReadPools(p.Pools, providers)
	if err != nil {
		ps = append(ps, cluster.Problem{Path: "provisioner.pools", What: err.Error(), Remedy: "mend the list"})
	}
	for i, name := range p.Prefers {
		if err == nil && !slices.Contains(pools.Providers, name) {
			ps = append(ps, cluster.Problem{
				Path: fmt.Sprintf("provisioner.prefers[%d]", i), What: fmt.Sprintf("%q is no provider for which the pools let it act", name),
				Remedy: "name one of " + strings.Join(pools.Providers, ", "),
			})
		}
	}
	return ps
}

// Override takes what the command line says in place of the file's lists.
func (p *Provisioner) Override(pools, prefers, providers []string) error {
	if len(pools) > 0 {
		p.Pools = pools
	}
	if len(prefers) > 0 {
		p.Prefers = prefers
	}
	if faults := p.validate(providers); len(faults) > 0 {
		return fmt.Errorf("--pools %s --prefers %s: %w", strings.Join(p.Pools, ","), strings.Join(p.Prefers, ","), faults)
	}
	return nil
}
