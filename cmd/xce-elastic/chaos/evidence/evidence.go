// Package evidence is what is left of a run of chaos: what lenders and makers of hosts wrote down themselves,
// what the jobs wrote, the rows and audit records of the ledger, and the workflows. It is plain data with
// readers of its own, which share nothing with the code that decided; so a run can be kept, and judged again.
package evidence

import (
	"xce.internal/elastic/cluster"
)

// Evidence of one run.
type Evidence struct {
	Seed  uint64       `json:"seed"`
	Began cluster.Time `json:"began"`
	Ended cluster.Time `json:"ended"`
	// Faults are those that were done, in order.
	Faults []Fault `json:"faults"`

	Lenders []Lender `json:"lenders"`
	Makers  []Maker  `json:"makers"`
	Marks   []Mark   `json:"marks"`
	// Submitted are the jobs that were handed in.
	Submitted []Submission `json:"submitted"`

	Records []Record `json:"records"`
	Loans   []Loan   `json:"loans"`
	Hosts   []Host   `json:"hosts"`
	Jobs    []Job    `json:"jobs"`
	Stories []Story  `json:"stories"`
}

// Fault is something that was done to the cluster, from a moment to another.
type Fault struct {
	At    cluster.Time `json:"at"`
	Until cluster.Time `json:"until,omitempty"`
	Kind  string       `json:"kind"`
	// Target is the process, connection or provider it was done to.
	Target string `json:"target"`
	// Held names what the target was in charge of then: providers whose lease it had, or "sessions".
	Held []string `json:"held,omitempty"`
	Text string   `json:"text"`
}

// Lender is a pool of tokens and its journal.
type Lender struct {
	Name  string      `json:"name"`
	Lines []LoanLine  `json:"lines"`
	Open  []OpenGrant `json:"open"`
}

// LoanLine is a line of a pool's journal.
type LoanLine struct {
	Sequence int64        `json:"sequence"`
	At       cluster.Time `json:"at"`
	Cluster  string       `json:"cluster,omitempty"`
	Request  string       `json:"request,omitempty"`
	Resource string       `json:"resource,omitempty"`
	Change   string       `json:"change"`
	Units    int64        `json:"units"`
	Free     int64        `json:"free"`
}

// OpenGrant is what a pool's file says is lent at the end.
type OpenGrant struct {
	Request string `json:"request"`
	Units   int64  `json:"units"`
}

// Maker is a provider of hosts and its journal.
type Maker struct {
	Name  string     `json:"name"`
	Lines []HostLine `json:"lines"`
	// Open are the instances that its file says exist at the end, and Left the processes of hosts that are there.
	Open []string `json:"open"`
	Left []string `json:"left"`
}

// HostLine is a line of the journal of a maker of hosts.
type HostLine struct {
	Sequence int64        `json:"sequence"`
	At       cluster.Time `json:"at"`
	Request  string       `json:"request,omitempty"`
	Template string       `json:"template,omitempty"`
	Instance string       `json:"instance,omitempty"`
	Change   string       `json:"change"`
}

// Gone tells whether the line says that the machine is no more.
func (l HostLine) Gone() bool {
	switch l.Change {
	case "returned", "crashed", "reclaimed", "stopped":
		return true
	}
	return false
}

// Mark is a line that a job wrote itself.
type Mark struct {
	At       cluster.Time `json:"at"`
	Job      int64        `json:"job"`
	Requeues int64        `json:"requeues"`
	// What is begin or end.
	What string `json:"what"`
	// Machine is where it ran: the instance, or the name of a host of the cluster's own.
	Machine string           `json:"machine"`
	Name    string           `json:"name"`
	Tokens  map[string]int64 `json:"tokens,omitempty"`
}

// Submission is a job as it was handed in.
type Submission struct {
	Name   string           `json:"name"`
	Tokens map[string]int64 `json:"tokens,omitempty"`
}

// Record is an audit record.
type Record struct {
	Revision    int64        `json:"revision"`
	At          cluster.Time `json:"at"`
	Actor       string       `json:"actor"`
	Kind        string       `json:"kind"`
	Subject     string       `json:"subject"`
	Why         string       `json:"why"`
	Resource    string       `json:"resource,omitempty"`
	TotalBefore int64        `json:"total_before"`
	TotalAfter  int64        `json:"total_after"`
	// Provider is whose the row is, where it is one of a provider's.
	Provider string `json:"provider,omitempty"`
	// What was written, by what it is; none where it was removed.
	Shared *Shared `json:"shared,omitempty"`
	Loan   *Loan   `json:"loan,omitempty"`
	Host   *Host   `json:"host,omitempty"`
	Job    *Job    `json:"job,omitempty"`
	Lease  *Lease  `json:"lease,omitempty"`
}

// Shared is a shared resource.
type Shared struct {
	Name  string `json:"name"`
	Owned int64  `json:"owned"`
}

// Loan is the ledger's row of a loan.
type Loan struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	Resource string `json:"resource"`
	State    string `json:"state"`
	Units    int64  `json:"units"`
	Borrowed int64  `json:"borrowed"`
	Recalled int64  `json:"recalled"`
	Fenced   int64  `json:"fenced"`
	Returned int64  `json:"returned"`
}

// Granted is all that the row says was ever given.
func (l Loan) Granted() int64 { return l.Borrowed + l.Recalled + l.Fenced + l.Returned }

// Open tells whether the row still stands for something.
func (l Loan) Open() bool { return l.State != "returned" && l.State != "refused" }

// Host is the ledger's row of a host that a provider made.
type Host struct {
	ID       string       `json:"id"`
	Provider string       `json:"provider"`
	Template string       `json:"template"`
	State    string       `json:"state"`
	Instance string       `json:"instance"`
	Name     string       `json:"name"`
	Made     cluster.Time `json:"made"`
}

// Open tells whether the row still stands for something.
func (h Host) Open() bool { return h.State != "returned" && h.State != "refused" }

// Here tells whether jobs may be on the host.
func (h Host) Here() bool { return h.State == "joined" || h.State == "draining" }

// Job is the ledger's row of a job.
type Job struct {
	ID       int64            `json:"id"`
	Name     string           `json:"name"`
	State    string           `json:"state"`
	Host     string           `json:"host"`
	Tokens   map[string]int64 `json:"tokens"`
	Requeues int64            `json:"requeues"`
	Why      string           `json:"why"`
}

// Lease is a provisioner's right to act for a provider.
type Lease struct {
	Provider string `json:"provider"`
	Holder   string `json:"holder"`
	Instance string `json:"instance"`
	Epoch    int64  `json:"epoch"`
}

// Story is a workflow as Temporal lists it.
type Story struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
}
