package simulation

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

// Result is what came of a simulation. The same cluster, jobs and seed give the
// same result to the last bit.
type Result struct {
	// Cluster is the cluster's name, and Label tells a run from others of the same
	// cluster: what was varied, or a baseline's name; empty for a plain run.
	Cluster, Label string
	Seed           uint64
	// Began is the first arrival, Ended when the last thing happened.
	Began, Ended cluster.Time
	// Stopped tells that the run was broken off before its end.
	Stopped bool

	Trace *trace.Trace
	// Outcomes says what became of each job, by its place in the trace.
	Outcomes []Outcome
	// Causes are the texts behind Outcome.Cause; the first is "nothing".
	Causes []string
	// Worst are the jobs that waited longest, the longest first.
	Worst []Story

	// Jobs has the columns of JobColumns.
	Jobs *series.Series
	// Resources has one entry per shared resource, ordered by name.
	Resources []ResourceResult
	// Hosts has the columns of HostColumns, over all elastic hosts and those that
	// the cluster owns.
	Hosts *series.Series
	// Loans and Machines are all that were asked for, in the order of their requests.
	Loans     []LoanResult
	Machines  []HostResult
	Providers []ProviderResult
	// Changes are all changes of totals and of hosts, in their order.
	Changes []Change
	// Orders are what became of an operator's orders.
	Orders []Ordered
	// Sessions counts the scheduling sessions.
	Sessions int64
}

// NotGiven is what became of an order that was to come when all was over.
const NotGiven = "not given: the simulation was over"

// Ordered is what became of an operator's order.
type Ordered struct {
	At                  cluster.Time
	Do, Subject, Became string
}

// Outcome is what became of a job.
type Outcome struct {
	// Start is that of the last run; 0 if it never started. End is 0 if it has not ended.
	Start, End cluster.Time
	// Cause is what the job waited for longest: an index of Result.Causes.
	Cause uint16
	State State
	// Requeues is how often it had to start again.
	Requeues uint16
}

// State is where a job was when the simulation ended.
type State uint8

// States. Absent jobs had not arrived when the simulation was broken off; impossible
// ones can never run in this cluster, and did not take part.
const (
	Absent State = iota
	Impossible
	Waiting
	Running
	Done
	TimedOut
)

// JobColumns are the columns of Result.Jobs.
var JobColumns = []string{"waiting", "running"}

// ResourceColumns are the columns of a resource's series, in units. Total is owned +
// borrowed - lent; waiting is what waiting jobs ask for.
var ResourceColumns = []string{"owned", "borrowed", "lent", "in use", "waiting"}

// HostColumns are the columns of Result.Hosts, in hosts: those of the cluster's own
// first, then elastic ones by state.
var HostColumns = []string{"owned, busy", "owned, idle", "requested", "expected", "busy", "idle", "draining", "leaving"}

// ResourceResult is one shared resource over the time.
type ResourceResult struct {
	Name   string
	Series *series.Series
	// Bought is how long borrowed units were held, Used how long jobs used units
	// beyond what the cluster owns; in unit-milliseconds.
	Bought, Used int64
	Cost         cluster.Price
}

// LoanResult is one loan. Times that did not come are 0.
type LoanResult struct {
	ID, Provider, Resource string
	Units                  int64 // asked for
	Granted                int64
	// Requested is when it was asked for, Committed when it was in the total, Closed
	// when all of it was back or it was refused.
	Requested, Committed, Closed cluster.Time
	// Held is in unit-milliseconds.
	Held int64
	Cost cluster.Price
	Why  string
}

// HostResult is one elastic host. Times that did not come are 0.
type HostResult struct {
	ID, Template, Provider, Name              string
	Requested, Expected, Joined, Left, Closed cluster.Time
	// Busy is how long jobs were on it, in milliseconds.
	Busy int64
	// Cost is that of its time from the provider's answer until it was back.
	Cost cluster.Price
	Why  string
}

// ProviderResult counts how one provider's calls went.
type ProviderResult struct {
	Name string
	// Requests were put to it; of these so many were granted whole, in part, refused,
	// and so many had an unknown outcome at first.
	Requests, Granted, Partial, Refused, Unknown int64
	// Refusals counts by reason, in the order of the reasons' names.
	Refusals []Count
	// Flaps are requests soon after the like was given back.
	Flaps int64
}

// Count is a name and a number.
type Count struct {
	Name string
	N    int64
}

// Change is one change of a resource's total, or of a host's state.
type Change struct {
	At cluster.Time
	// Subject is a resource's name, or a host's id.
	Subject string
	// Before and After are totals, or states.
	Before, After string
	Cause         string
}

// Story is how one job waited.
type Story struct {
	// Job is its place in the trace.
	Job    int
	Waited cluster.Duration
	Lines  []StoryLine
}

// StoryLine is what a job waited for from a time on.
type StoryLine struct {
	At  cluster.Time
	Why string
}
