package cluster

import "fmt"

// SharedResource is a cluster-wide countable thing, such as the tokens of one
// licence feature, as it is configured.
type SharedResource struct {
	Name string `json:"name"`
	// Owned is how many units the cluster has for good.
	Owned int64 `json:"owned"`
	// KeepBack is how many units the session never hands to jobs: they are left
	// for users outside the cluster, who draw on the same licence server.
	KeepBack int64 `json:"keep_back"`
	// UnitWeight is how many units of the lender one unit of ours is worth
	// (licence managers that count in thousandths); 0 means 1.
	UnitWeight int64 `json:"unit_weight"`
	// Elastic says how the total may grow by borrowing; nil means it may not.
	Elastic *Elastic `json:"elastic,omitempty"`
}

// Elastic is the part of a shared resource's configuration that lets it grow.
type Elastic struct {
	// Lenders names providers in order of preference.
	Lenders []string `json:"lenders"`
	// MaxBorrowed limits the units requested and borrowed at any moment.
	MaxBorrowed int64 `json:"max_borrowed"`
	// IdleTime is how long a unit lies unused before it is given back.
	IdleTime Duration `json:"idle_time"`
	// MinimumHold overrides the lender's minimum hold where it is longer.
	MinimumHold Duration `json:"minimum_hold"`
}

// Ceiling is the most units of r that jobs can ever use at once.
func (r SharedResource) Ceiling() int64 {
	ceiling := r.Owned - r.KeepBack
	if r.Elastic != nil {
		ceiling += r.Elastic.MaxBorrowed
	}
	return max(ceiling, 0)
}

// IdleTime is how long a unit lies unused before it is given back; 0 where the
// resource is not elastic.
func (r SharedResource) IdleTime() Duration {
	if r.Elastic == nil {
		return 0
	}
	return r.Elastic.IdleTime
}

// MinimumHold is the resource's own minimum hold of loans.
func (r SharedResource) MinimumHold() Duration {
	if r.Elastic == nil {
		return 0
	}
	return r.Elastic.MinimumHold
}

// Weight answers UnitWeight with its default.
func (r SharedResource) Weight() int64 { return max(r.UnitWeight, 1) }

// ValidateResources checks the resources of one cluster against each other,
// against the known providers and against the session interval.
// Paths begin with "resources[i]".
func ValidateResources(resources []SharedResource, providers []string, sessionInterval Duration) Problems {
	var ps Problems
	known := map[string]bool{}
	for _, p := range providers {
		known[p] = true
	}
	first := map[string]int{}
	for i, r := range resources {
		at := fmt.Sprintf("resources[%d]", i)
		ps.name(at+".name", r.Name)
		if j, twice := first[r.Name]; twice {
			ps.add(at+".name", fmt.Sprintf("resource %q is already defined as resources[%d]", r.Name, j),
				"give each resource one entry")
		} else {
			first[r.Name] = i
		}
		ps.count(at+".owned", r.Owned, mostUnits)
		ps.count(at+".keep_back", r.KeepBack, mostUnits)
		ps.count(at+".unit_weight", r.UnitWeight, mostWeight)
		if r.Elastic != nil {
			ps.elastic(at+".elastic", *r.Elastic, known, sessionInterval)
		}
	}
	return ps
}

func (ps *Problems) elastic(at string, e Elastic, known map[string]bool, sessionInterval Duration) {
	if len(e.Lenders) == 0 {
		ps.add(at+".lenders", "there is no lender", "name at least one provider, or remove the elastic section")
	}
	seen := map[string]bool{}
	for i, lender := range e.Lenders {
		path := fmt.Sprintf("%s.lenders[%d]", at, i)
		switch {
		case !known[lender]:
			ps.add(path, fmt.Sprintf("lender %q is not a provider", lender), "add it under providers, or name one that is there")
		case seen[lender]:
			ps.add(path, fmt.Sprintf("lender %q is named twice", lender), "name each lender once, the preferred first")
		}
		seen[lender] = true
	}
	if e.MaxBorrowed <= 0 {
		ps.add(at+".max_borrowed", fmt.Sprintf("%d lets nothing be borrowed", e.MaxBorrowed), "write a positive whole number, or remove the elastic section")
	} else {
		ps.count(at+".max_borrowed", e.MaxBorrowed, mostUnits)
	}
	if e.IdleTime < sessionInterval {
		ps.add(at+".idle_time", fmt.Sprintf("%s is shorter than the session interval %s, so no session could see the units used again", e.IdleTime, sessionInterval),
			fmt.Sprintf("write at least %s", sessionInterval))
	}
	ps.notNegative(at+".minimum_hold", int64(e.MinimumHold))
}
