package config

import (
	"strings"

	"xce.internal/elastic/cluster"
)

// Capacity answers what the machine has for jobs, and the faults of what is
// said of it; their paths begin with "agent.".
func (a Agent) Capacity() (cluster.Capacity, cluster.Problems) {
	return cluster.ReadCapacity("agent.", a.CPUs, a.MemoryMB, a.Countables, a.Features)
}

// Override takes countables and features of the command line in place of the
// file's, each list where it has any.
func (a *Agent) Override(countables, features []string) error {
	if len(countables) > 0 {
		a.Countables = countables
	}
	if len(features) > 0 {
		a.Features = features
	}
	_, ps := a.Capacity()
	for i := range ps {
		ps[i].Path = strings.NewReplacer("agent.countables", "--countable", "agent.features", "--feature").Replace(ps[i].Path)
	}
	return ps.Err()
}
