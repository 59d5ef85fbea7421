// Package api is the controller's HTTP API as Go types: what is asked and
// answered, which role may call what, and a typed client. The server's OpenAPI
// description is made from these types.
package api

import (
	"encoding/json"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/scheduling"
)

// LedgerWrite is the part that every write to a loan's row has.
type LedgerWrite struct {
	Loan     string `json:"loan" doc:"id of the loan, loan/<resource>/<provider>-<n>"`
	Resource string `json:"resource"`
	// Step numbers the writes of one loan, from 1: the same step again changes nothing.
	Step int64 `json:"step" minimum:"1"`
}

// IntendLoan opens a loan's row before the lender is asked.
type IntendLoan struct {
	LedgerWrite
	Request cluster.LoanRequest `json:"request"`
}

// CommitLoan tells what the lender granted, and raises the total.
type CommitLoan struct {
	LedgerWrite
	Granted int64 `json:"granted" minimum:"1"`
}

// RefuseLoan closes a loan that the lender did not grant.
type RefuseLoan struct {
	LedgerWrite
	Why string `json:"why"`
	// RetryAfter is when the lender wants to be asked again; 0 leaves it to us.
	RetryAfter cluster.Duration `json:"retry_after"`
}

// FenceLoan takes units of a loan out of the total, as far as they are unused.
type FenceLoan struct {
	LedgerWrite
	// Units, where not 0, are fenced all or none whether idle or not, as an
	// operator wishes; 0 fences what has been idle long enough.
	Units int64  `json:"units" minimum:"0"`
	Why   string `json:"why"`
}

// RecallLoan takes units that the lender wants back out of the total at once.
type RecallLoan struct {
	LedgerWrite
	Units int64  `json:"units" minimum:"0"`
	Why   string `json:"why"`
}

// ConfirmLoan tells that the lender has fenced units back.
type ConfirmLoan struct {
	LedgerWrite
	Units int64 `json:"units" minimum:"0"`
}

// Written answers a write to a loan's row: the row after it, or why the rules
// of the ledger did not allow it. A refusal is an answer, not a failure.
type Written struct {
	Loan    cluster.Loan `json:"loan"`
	Refusal *Refusal     `json:"refusal,omitempty"`
}

// Refusal is a change that the rules did not allow; Code is one of the ledger's.
type Refusal struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Catalog is what one provider says of itself.
type Catalog struct {
	Offers       []cluster.Offer       `json:"offers"`
	Templates    []cluster.Template    `json:"templates,omitempty"`
	Quotas       []cluster.Quota       `json:"quotas,omitempty"`
	Observations []cluster.Observation `json:"observations"`
}

// ProviderView is what borrowing from a provider is decided upon, and what its
// books are compared with.
type ProviderView struct {
	policy.View
	Hosts policy.HostView `json:"hosts"`
	// Closed are the ids of the provider's loans and hosts that are closed, of
	// those asked for.
	Closed []string `json:"closed"`
}

// Stray is something a provider lists under a request id of ours for which no
// open loan stands.
type Stray struct {
	Provider string `json:"provider"`
	Request  string `json:"request"`
	Resource string `json:"resource"`
	Units    int64  `json:"units"`
	What     string `json:"what" doc:"what was done about it"`
}

// Owned is a new number of owned units.
type Owned struct {
	Owned int64  `json:"owned" minimum:"0" maximum:"1000000000000"`
	Why   string `json:"why" minLength:"1"`
}

// LendUnits opens, resizes or (with 0 units) closes a lending.
type LendUnits struct {
	Resource string `json:"resource"`
	Units    int64  `json:"units" minimum:"0" maximum:"1000000000000"`
	To       string `json:"to" minLength:"1"`
}

// ResourceStatus is a shared resource as it is now.
type ResourceStatus struct {
	cluster.SharedResource
	Total     int64 `json:"total"`
	Borrowed  int64 `json:"borrowed"`
	Lent      int64 `json:"lent"`
	Requested int64 `json:"requested"`
	Returning int64 `json:"returning"`
	InUse     int64 `json:"in_use"`
	Overdraft int64 `json:"overdraft"`
	// Idle units, and since when the oldest of them is idle.
	Idle      int64            `json:"idle"`
	IdleSince cluster.Time     `json:"idle_since,omitempty"`
	Observed  []ObservedStatus `json:"observed,omitempty"`
}

// ObservedStatus is what a licence server counted, and how long ago.
type ObservedStatus struct {
	cluster.Observation
	Age cluster.Duration `json:"age"`
}

// Status is the cluster as it is now.
type Status struct {
	Cluster   string           `json:"cluster"`
	Now       cluster.Time     `json:"now"`
	Revision  int64            `json:"revision"`
	Resources []ResourceStatus `json:"resources"`
	Hosts     []HostStatus     `json:"hosts"`
	Offers    []cluster.Offer  `json:"offers"`
	Demand    []cluster.Demand `json:"demand"`
	Jobs      JobCounts        `json:"jobs"`
	// Halt is why no more hosts are asked for, where that is so.
	Halt string `json:"halt,omitempty"`
	// Controllers are those that are there, where several can share the state.
	Controllers []ControllerStatus `json:"controllers,omitempty"`
	// Backend is how the backend stands, where another schedules the jobs than the controller.
	Backend *BackendStatus `json:"backend,omitempty"`
}

// BackendStatus is how a backend stands.
type BackendStatus struct {
	Name string `json:"name"`
	// Read is when it was read last; 0 is never.
	Read cluster.Time `json:"read,omitempty"`
	// Trouble is why it is not read, or must not be acted upon, and since when.
	Trouble *Trouble `json:"trouble,omitempty"`
	// Unsettled is what it was asked to change and did not, and since when; it is tried again.
	Unsettled *Trouble `json:"unsettled,omitempty"`
	// Warnings say what someone should look at.
	Warnings []string `json:"warnings,omitempty"`
	// Guesses are how often it did what our sessions had foreseen, and what else.
	Guesses []backend.Count `json:"guesses,omitempty"`
}

// Trouble is something that does not work, and since when.
type Trouble struct {
	Since cluster.Time `json:"since"`
	Why   string       `json:"why"`
}

// ControllerStatus is one of the controllers that share a state.
type ControllerStatus struct {
	Name    string       `json:"name"`
	Release string       `json:"release"`
	Since   cluster.Time `json:"since"`
	Seen    cluster.Time `json:"seen"`
	// Leads tells that it runs the sessions.
	Leads bool `json:"leads"`
}

// HostStatus is a host and what is free on it.
type HostStatus struct {
	cluster.Host
	FreeCPUs       int64            `json:"free_cpus"`
	FreeMemoryMB   int64            `json:"free_memory_mb"`
	FreeCountables map[string]int64 `json:"free_countables,omitempty"`
	Jobs           int64            `json:"jobs"`
	// IdleSince is since when the last session found it idle.
	IdleSince cluster.Time `json:"idle_since,omitempty"`
	// Elastic is the ledger's row of a host that a provider made.
	Elastic *cluster.ElasticHost `json:"elastic,omitempty"`
}

// JobCounts counts jobs by state.
type JobCounts struct {
	Waiting int64 `json:"waiting"`
	Running int64 `json:"running"`
	Done    int64 `json:"done"`
	Failed  int64 `json:"failed"`
}

// Change is one audit record, and one event that clients can await.
type Change struct {
	Revision int64        `json:"revision"`
	At       cluster.Time `json:"at"`
	// Actor is role/name of who did it.
	Actor   string `json:"actor"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Why     string `json:"why"`
	// Resource and the totals are set where a shared resource was concerned.
	Resource    string          `json:"resource,omitempty"`
	TotalBefore int64           `json:"total_before"`
	TotalAfter  int64           `json:"total_after"`
	Before      json.RawMessage `json:"before,omitempty"`
	After       json.RawMessage `json:"after,omitempty"`
}

// Changes answers a (long) poll: what came after the revision asked for.
type Changes struct {
	Revision int64    `json:"revision"`
	Changes  []Change `json:"changes"`
}

// Kinds of changes. Those of the ledger are "loan-" or "host-" and the kind of
// the write, or of what the cluster saw of the host.
const (
	KindResource  = "resource"
	KindLending   = "lending"
	KindCatalog   = "catalog"
	KindDemand    = "demand"
	KindStray     = "stray"
	KindHost      = "host"
	KindJob       = "job"
	KindLoanWrite = "loan-"
	KindHostWrite = "host-"
	KindRefused   = "join-refused"
	KindTemplate  = "template"
	KindRenewed   = "certificate"

	// KindJoined and the next are what the workflow of a host is told of.
	KindJoined  = KindHostWrite + "joined"
	KindEmptied = KindHostWrite + "emptied"
	KindSuspect = KindHostWrite + "suspect"
	KindLost    = KindHostWrite + "lost"
	KindWell    = KindHostWrite + "well"
)

// JoinHost is what a host says of itself when it joins.
type JoinHost struct {
	CPUs     int64 `json:"cpus" minimum:"1"`
	MemoryMB int64 `json:"memory_mb" minimum:"0"`
	// Countables, Features and Attributes are as those of cluster.Host.
	Countables map[string]int64  `json:"countables,omitempty"`
	Features   []string          `json:"features,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	// Instance tells agents under one name apart: it is the same as long as the
	// agent knows its jobs.
	Instance string `json:"instance,omitempty"`
}

// Capacity is what the host has for jobs.
func (j JoinHost) Capacity() cluster.Capacity {
	return cluster.Capacity{CPUs: j.CPUs, MemoryMB: j.MemoryMB, Countables: j.Countables, Features: j.Features, Attributes: j.Attributes}
}

// Assignments are the jobs that a host should be running, and the revision to
// ask after for the next ones.
type Assignments struct {
	Revision int64         `json:"revision"`
	Jobs     []cluster.Job `json:"jobs"`
}

// JobEnd is how a job ended on its host.
type JobEnd struct {
	// State waiting tells of a job that was stopped so that it can wait again.
	State    cluster.JobState `json:"state" enum:"done,failed,timeout,waiting"`
	ExitCode int64            `json:"exit_code"`
	Why      string           `json:"why"`
}

// Explanation answers "why", in plain sentences.
type Explanation struct {
	Subject   string   `json:"subject"`
	Sentences []string `json:"sentences"`
}

// Session is what a session decided and found. One of a live cluster has the
// demand that is left of it: what was asked for since is not in it.
type Session struct {
	Cluster string `json:"cluster"`
	// At is when it ran; zero where none has run since the controller started.
	At     cluster.Time         `json:"at"`
	Policy scheduling.Policy    `json:"policy"`
	Starts []scheduling.Start   `json:"starts"`
	Demand []cluster.Demand     `json:"demand"`
	Idle   []cluster.IdleSupply `json:"idle"`
	// Reservations say when waiting jobs start at the latest.
	Reservations []scheduling.Reservation `json:"reservations"`
	Unplaced     []scheduling.Unplaced    `json:"unplaced"`
	// Halves are what is kept for jobs that wait for the rest of what they need.
	Halves []cluster.Half `json:"halves"`
}

// NewSession answers what a session on a state came to.
func NewSession(name string, in scheduling.Input, r scheduling.Result) Session {
	return Session{
		Cluster: name, At: in.Now, Policy: in.Policy, Starts: listed(r.Starts), Demand: listed(r.Demand), Idle: listed(r.Idle),
		Reservations: listed(r.Reservations), Unplaced: listed(r.Unplaced), Halves: listed(r.Halves),
	}
}

// listed answers an empty list for none, which is no null in JSON.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
