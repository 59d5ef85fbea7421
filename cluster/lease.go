package cluster

import "slices"

// Lease is a provisioner's right to act for one provider. It lasts as long as the provisioner is heard of.
type Lease struct {
	Provider string `json:"provider"`
	// Holder is the provisioner that has it; empty where no one has.
	Holder string `json:"holder,omitempty"`
	// Instance tells processes under one name apart.
	Instance string `json:"instance,omitempty"`
	// Epoch rises by one with every new holder, and never falls.
	Epoch int64 `json:"epoch"`
	// Since is when the holder got it, or since when no one has it.
	Since Time `json:"since"`
	// MoveTo is who is to have it next: the holder ends what it does, and gives it up.
	MoveTo string `json:"move_to,omitempty"`
	// Left is who gave it up last, while it is free: others are asked first.
	Left string `json:"left,omitempty"`
	// Pinned tells that an operator chose who has it, or is to have it.
	Pinned bool `json:"pinned,omitempty"`
}

// Provisioner is an instance of the provisioner as the controller knows it.
type Provisioner struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	// Since is when it came; its leases end at Until if it is not heard of before.
	Since Time `json:"since"`
	Until Time `json:"until"`
	// Owns are the providers for which it may act, and Prefers those it should rather have than others.
	Owns    []string `json:"owns"`
	Prefers []string `json:"prefers,omitempty"`
	// Leaving tells that it ends what it does and is to get no more.
	Leaving bool `json:"leaving,omitempty"`
}

// MayOwn tells whether it may act for the provider.
func (p Provisioner) MayOwn(provider string) bool { return slices.Contains(p.Owns, provider) }

// Favours tells whether it should rather have the provider than others.
func (p Provisioner) Favours(provider string) bool { return slices.Contains(p.Prefers, provider) }

// LeaseRules say for how long leases last.
type LeaseRules struct {
	// TimeToLive is how long after it was last heard of a provisioner's leases end.
	TimeToLive Duration `json:"time_to_live"`
	// Settle is how long a provisioner must have been there before a lease is moved to it from one that works.
	Settle Duration `json:"settle"`
}

// DefaultLeaseRules are those where nothing else is configured.
func DefaultLeaseRules() LeaseRules { return LeaseRules{TimeToLive: 15 * Second, Settle: Minute} }

// shortestLease is what a loaded machine and a network can keep up with.
const shortestLease = Second

// Validate answers what is wrong with the rules.
func (r LeaseRules) Validate(at string) (ps Problems) {
	if r.TimeToLive < shortestLease || r.TimeToLive > 10*Minute {
		ps = append(ps, Problem{Path: at + ".time_to_live", What: r.TimeToLive.String() + " is out of range", Remedy: "write between 1s and 10m"})
	}
	if r.Settle < 0 {
		ps = append(ps, Problem{Path: at + ".settle", What: r.Settle.String() + " is negative", Remedy: "write a length of time such as 1m"})
	}
	return ps
}
