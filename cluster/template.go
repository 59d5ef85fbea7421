package cluster

import "slices"

// Template is a kind of host that a provider can make, and what the provider
// says of it now.
type Template struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	// What one host has for jobs; what its system keeps for itself is left out.
	Capacity
	// Headroom is how many more hosts the provider could make now.
	Headroom int64 `json:"headroom"`
	// Quotas name the limits that the template shares with others.
	Quotas []string `json:"quotas,omitempty"`
	// Price is that of one host.
	Price Price `json:"price"`
	// MinimumHold is how long a host must be kept.
	MinimumHold Duration `json:"minimum_hold"`
	// BillingStep is the length of time that is paid for once begun; 0 means none.
	BillingStep Duration `json:"billing_step,omitempty"`
	// Latency is how long a host takes from the request until it has joined.
	Latency Duration `json:"latency,omitempty"`
	// Preference decides between templates that cost and waste the same; the
	// lowest first.
	Preference int64 `json:"preference,omitempty"`
	// PollInterval is how often the provider may be asked about one request.
	PollInterval Duration `json:"poll_interval,omitempty"`
	// Published is when the provider said so.
	Published Time `json:"published"`
	// Refusals in a row, hosts that never joined among them, and until when they
	// keep us from asking again.
	Refusals     int64 `json:"refusals,omitempty"`
	BackoffUntil Time  `json:"backoff_until,omitempty"`
	// Delivered is what the hosts had of what the template says that joined with
	// less, the most of each thing, and Misses how many of them came in a row.
	Delivered *Capacity `json:"delivered,omitempty"`
	Misses    int64     `json:"misses,omitempty"`
}

// believedMisses is how many hosts must have joined with less than their template says
// before they are believed: one may be broken.
const believedMisses = 2

// Believed answers what one host will have for jobs: what the template says, or
// less where that is what its hosts had.
func (t Template) Believed() Capacity {
	if t.Misses < believedMisses || t.Delivered == nil {
		return t.Capacity
	}
	return t.Capacity.Least(*t.Delivered)
}

// Learn answers the template after a host of it joined: its refusals are forgotten. One that lacks a feature
// lets it down like one that is too small: jobs that ask for it would wait for such
// hosts for ever.
func (t Template) Learn(joined Capacity) Template {
	t.Refusals, t.BackoffUntil = 0, 0
	if joined.Covers(t.Capacity) && joined.hasAll(t.Capacity) {
		t.Delivered, t.Misses = nil, 0
		return t
	}
	delivered := t.Capacity.Least(joined)
	if t.Delivered != nil {
		delivered = delivered.most(*t.Delivered)
	}
	t.Delivered, t.Misses = &delivered, t.Misses+1
	return t
}

// After answers what is known of a template now that its provider has said it anew:
// what came of it is kept, unless it promises something else now.
func (t Template) After(old Template) Template {
	t.Refusals, t.BackoffUntil = old.Refusals, old.BackoffUntil
	if old.Capacity.same(t.Capacity) {
		t.Delivered, t.Misses = old.Delivered, old.Misses
	}
	return t
}

// SameHosts tells whether the hosts of two templates are believed to have the same.
func (t Template) SameHosts(other Template) bool {
	return t.Capacity.equal(other.Capacity) && t.Misses == other.Misses && (t.Delivered == nil) == (other.Delivered == nil) &&
		(t.Delivered == nil || t.Delivered.equal(*other.Delivered))
}

// Same tells whether two templates are alike in everything.
func (t Template) Same(other Template) bool {
	return t.Name == other.Name && t.Provider == other.Provider && t.SameHosts(other) &&
		t.Headroom == other.Headroom && slices.Equal(t.Quotas, other.Quotas) &&
		t.Price == other.Price && t.MinimumHold == other.MinimumHold && t.BillingStep == other.BillingStep &&
		t.Latency == other.Latency && t.Preference == other.Preference && t.PollInterval == other.PollInterval &&
		t.Published == other.Published && t.Refusals == other.Refusals && t.BackoffUntil == other.BackoffUntil
}

// Quota is a provider's limit on what several templates have together.
type Quota struct {
	Name string `json:"name"`
	// Counts is what is limited: "hosts", "cpus", "memory_mb" or a countable.
	Counts string `json:"counts"`
	Limit  int64  `json:"limit"`
	// Used is what hosts that exist already take of it.
	Used int64 `json:"used"`
	// Why says why the limit is what it is, where that is no number of choice.
	Why string `json:"why,omitempty"`
	// Published is when the provider said so; what was asked for later is not in Used.
	Published Time `json:"published"`
}

// ExpectedHost is a host that was asked for and has not joined yet.
type ExpectedHost struct {
	ID       string `json:"id"`
	Template string `json:"template"`
	// What the host will have; it is charged to headroom and quotas as this.
	Capacity
	// Requested is when it was asked for, Expected when it should join.
	Requested Time `json:"requested"`
	Expected  Time `json:"expected"`
}
