package worker

import (
	"fmt"
	"slices"
	"strings"
)

// Pools say what work a provisioner takes.
type Pools struct {
	// Workflows and Controller are what needs no lease: the stories themselves, and
	// what asks the controller and starts workflows.
	Workflows, Controller bool
	// Providers are those for which it may act.
	Providers []string
}

const (
	poolWorkflows  = "workflows"
	poolController = "controller"
	poolProvider   = "provider:"
)

// AllPools are the lines of a provisioner that takes all work.
var AllPools = []string{poolWorkflows, poolController, poolProvider + "*"}

// ReadPools reads lines such as workflows, controller, provider:NAME and
// provider:* for all that there are.
func ReadPools(lines, providers []string) (Pools, error) {
	var p Pools
	for _, line := range lines {
		name, ofProvider := strings.CutPrefix(line, poolProvider)
		switch {
		case line == poolWorkflows:
			p.Workflows = true
		case line == poolController:
			p.Controller = true
		case ofProvider && name == "*":
			p.Providers = append(p.Providers, providers...)
		case ofProvider && slices.Contains(providers, name):
			p.Providers = append(p.Providers, name)
		case ofProvider:
			return Pools{}, fmt.Errorf("pool %q: %q is not a provider; the configuration has %s", line, name, strings.Join(providers, ", "))
		default:
			return Pools{}, fmt.Errorf("pool %q: write %s, %s, %sNAME or %[4]s*", line, poolWorkflows, poolController, poolProvider)
		}
	}
	slices.Sort(p.Providers)
	p.Providers = slices.Compact(p.Providers)
	if !p.Workflows && !p.Controller && len(p.Providers) == 0 {
		return Pools{}, fmt.Errorf("there is no pool: name some of %s", strings.Join(AllPools, ", "))
	}
	return p, nil
}
