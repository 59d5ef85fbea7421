package cluster

import "strings"

// HostState says where an elastic host is in its life.
type HostState string

// States of an elastic host, in the order in which it goes through them.
const (
	HostRequested HostState = "requested" // intended; the provider has not settled it
	HostExpected  HostState = "expected"  // the provider has made it; it has not joined yet
	HostJoined    HostState = "joined"    // takes jobs
	HostDraining  HostState = "draining"  // takes no new jobs; those on it run on
	HostLeaving   HostState = "leaving"   // empty and fenced, on its way back to the provider
	HostReturned  HostState = "returned"  // the provider confirmed it gone
	HostRefused   HostState = "refused"   // none was made
)

// Open tells whether a host in state s still stands for something.
func (s HostState) Open() bool { return s != HostReturned && s != HostRefused }

// Here tells whether a host in state s is in the cluster and may have jobs.
func (s HostState) Here() bool { return s == HostJoined || s == HostDraining }

// Made tells whether the provider has a machine for a host in state s.
func (s HostState) Made() bool { return s == HostExpected || s == HostLeaving || s.Here() }

// Health says how a host that is in the cluster answers.
type Health string

// Healths of a host.
const (
	Well    Health = ""
	Suspect Health = "suspect" // silent for too long to get new jobs
	Lost    Health = "lost"    // silent for so long that someone must find out what became of it
)

// DrainAction says what becomes of the jobs that still run at a drain's deadline.
type DrainAction string

// Actions at a drain's deadline.
const (
	DrainWait    DrainAction = "wait"    // they run on, and the host waits for them
	DrainRequeue DrainAction = "requeue" // they are stopped, and wait again
)

// HostTerms are the conditions of a host: the provider's, from the template, and
// the cluster's own.
type HostTerms struct {
	Price       Price    `json:"price"`
	MinimumHold Duration `json:"minimum_hold"`
	BillingStep Duration `json:"billing_step,omitempty"`
	// PollInterval is how often the provider may be asked about one request.
	PollInterval Duration `json:"poll_interval"`
	// Latency is how long a host should take until it has joined.
	Latency Duration `json:"latency,omitempty"`
	// JoinWithin is how long the host may take to join once it is made.
	JoinWithin Duration `json:"join_within"`
	// IdleTime is how long it lies idle before it is given back.
	IdleTime Duration `json:"idle_time"`
	// MaxLifetime is how long after its joining it is drained; 0 means never.
	MaxLifetime Duration `json:"max_lifetime,omitempty"`
	// ReturnLost tells that a lost host with jobs is given back too, and not only
	// one without.
	ReturnLost bool `json:"return_lost,omitempty"`
}

// HostRequest is what a host is intended with.
type HostRequest struct {
	ID       string  `json:"id"`
	Provider string  `json:"provider"`
	Template string  `json:"template"`
	Jobs     []int64 `json:"jobs"`
	Reason   string  `json:"reason"`
	// PollInterval is how often the provider may be asked about one request.
	PollInterval Duration `json:"poll_interval"`
}

// Drain is why a host takes no new jobs, and until when they may run.
type Drain struct {
	By    string `json:"by"`
	Why   string `json:"why"`
	Since Time   `json:"since"`
	// Deadline is when Action is taken; 0 means that there is none.
	Deadline Time        `json:"deadline,omitempty"`
	Action   DrainAction `json:"action"`
	// Forced tells that it cannot be undone: the provider takes the host.
	Forced bool `json:"forced,omitempty"`
	// Requeued is when the jobs were told to stop.
	Requeued Time `json:"requeued,omitempty"`
}

// Keep is an operator's wish that a host stays, idle or not.
type Keep struct {
	By    string `json:"by"`
	Why   string `json:"why"`
	Since Time   `json:"since"`
}

// ElasticHost is the ledger's row of one host that a provider makes: from its
// intent until the provider has confirmed it gone.
type ElasticHost struct {
	ID       string    `json:"id"`
	Provider string    `json:"provider"`
	Template string    `json:"template"`
	Jobs     []int64   `json:"jobs,omitempty"`
	Reason   string    `json:"reason"`
	State    HostState `json:"state"`
	Health   Health    `json:"health,omitempty"`
	// What the template promised, and then what the host has.
	Capacity
	HostTerms
	// Instance is the provider's id of the machine, which is what it goes by;
	// Name is that of the host in the cluster.
	Instance string `json:"instance,omitempty"`
	Name     string `json:"name,omitempty"`
	// Address is where the machine is reached, as its provider says; empty where its name says so.
	Address string `json:"address,omitempty"`
	Drain   *Drain `json:"drain,omitempty"`
	Keep    *Keep  `json:"keep,omitempty"`
	// Step numbers the last write of the host's workflow, so that a repeated
	// write is known as such.
	Step     int64 `json:"step"`
	Intended Time  `json:"intended"`
	// Made is when the provider said that it has made the machine, and JoinBy
	// until when it may join.
	Made   Time `json:"made,omitempty"`
	JoinBy Time `json:"join_by,omitempty"`
	Joined Time `json:"joined,omitempty"`
	// HoldUntil is when the minimum hold is over, and AskAgain when the host's
	// workflow will ask for a fence next.
	HoldUntil Time `json:"hold_until,omitempty"`
	AskAgain  Time `json:"ask_again,omitempty"`
	Fenced    Time `json:"fenced,omitempty"`
	Closed    Time `json:"closed,omitempty"`
	// BusySince is since when it has jobs, and Busy for how long it had some before.
	BusySince Time     `json:"busy_since,omitempty"`
	Busy      Duration `json:"busy,omitempty"`
	// Why says in one sentence why the host is in its state.
	Why string `json:"why,omitempty"`
}

// DefaultName is the name of a host to which its provider gives none: the id
// without its kind, which never repeats.
func (h ElasticHost) DefaultName() string { return h.ID[strings.LastIndex(h.ID, "/")+1:] }

// Paid answers for how long the machine has been paid for until now.
func (h ElasticHost) Paid(now Time) Duration {
	if h.Made == 0 {
		return 0
	}
	return max(h.until(now).Sub(h.Made), 0)
}

// Cost answers what the machine has cost until now. A billing step that has begun
// counts whole.
func (h ElasticHost) Cost(now Time) Price { return h.Price.For(h.Paid(now), h.BillingStep) }

// Used answers for how long of that it has had jobs.
func (h ElasticHost) Used(now Time) Duration {
	if h.BusySince == 0 {
		return h.Busy
	}
	return h.Busy + max(h.until(now).Sub(h.BusySince), 0)
}

// until answers now, or when the host was closed.
func (h ElasticHost) until(now Time) Time {
	if h.Closed > 0 {
		return h.Closed
	}
	return now
}

// LifeEnd answers when the host has lived long enough; 0 is never.
func (h ElasticHost) LifeEnd() Time {
	if h.MaxLifetime == 0 {
		return 0
	}
	return h.Joined.Add(h.MaxLifetime)
}

// Expected answers the host as sessions see it before it has joined. Where its
// provider does not say how long that takes, it is expected until it may join no more.
func (h ElasticHost) Expected() ExpectedHost {
	x := ExpectedHost{ID: h.ID, Template: h.Template, Capacity: h.Capacity, Requested: h.Intended, Expected: h.Intended.Add(h.Latency)}
	if h.Latency == 0 {
		x.Expected = max(h.JoinBy, h.Intended.Add(h.JoinWithin))
	}
	return x
}
