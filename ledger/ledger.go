// Package ledger holds the rules of the books of one shared resource: a row per
// loan and per lending, and totals that are never written but summed:
//
//	total = owned + sum(borrowed) - sum(lent)
//
// A row is changed only as [Account.Judge] answers, on behalf of the loan's own
// workflow, and every write carries the workflow's step number: the same step
// again changes nothing and answers the row as it is, an older one is refused.
// So repeated and delayed activities cannot do harm.
//
// The way in raises the total only after the lender has granted ([Commit]).
// The way out takes units out of the total first, and only as far as they are
// unused ([Fence]); what was fenced goes back to the lender, who confirms it
// ([Confirm]). Units wanted back by the lender leave the total at once and may
// leave it below what is in use ([Recall]): that overdraft blocks new starts
// and hurts no running job.
//
// The rules are pure: (account, change, now) to (account, event). The
// controller keeps what they answer in one transaction; the simulator keeps it
// in memory.
package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
)

// Account is what the books say of one shared resource.
type Account struct {
	Resource string
	Owned    int64
	// MaxBorrowed limits requested and borrowed units together.
	MaxBorrowed int64
	// InUse is how many units running jobs hold, as the backend counts them in
	// the same transaction.
	InUse    int64
	Loans    []cluster.Loan    // ordered by ID
	Lendings []cluster.Lending // ordered by ID
}

// Total is what the cluster may use: owned + borrowed - lent.
func (a Account) Total() int64 { return a.Owned + a.Borrowed() - a.Lent() }

// Borrowed sums the units of all loans that count in the total.
func (a Account) Borrowed() int64 {
	return a.sum(func(l *cluster.Loan) int64 { return l.Borrowed })
}

// Requested sums the units of all loans that the lender has not settled yet.
func (a Account) Requested() int64 {
	return a.sum(func(l *cluster.Loan) int64 {
		if l.State == cluster.LoanRequested {
			return l.Units
		}
		return 0
	})
}

// Lent sums the units that other clusters have of us.
func (a Account) Lent() int64 {
	var n int64
	for _, l := range a.Lendings {
		n += l.Units
	}
	return n
}

// Overdraft is how far in use exceeds the total.
func (a Account) Overdraft() int64 { return max(a.InUse-a.Total(), 0) }

// Unused is how many of the units that are here, recalled ones included, no
// job uses. It is negative when more is in use than is here.
func (a Account) Unused() int64 {
	recalled := a.sum(func(l *cluster.Loan) int64 { return l.Recalled })
	return a.Total() + recalled - a.InUse
}

func (a Account) sum(of func(*cluster.Loan) int64) int64 {
	var n int64
	for i := range a.Loans {
		n += of(&a.Loans[i])
	}
	return n
}

// Loan finds a row.
func (a Account) Loan(id string) (cluster.Loan, bool) {
	i, found := a.find(id)
	if !found {
		return cluster.Loan{}, false
	}
	return a.Loans[i], true
}

func (a Account) find(id string) (int, bool) {
	return slices.BinarySearchFunc(a.Loans, id, func(l cluster.Loan, id string) int { return cmp.Compare(l.ID, id) })
}

// Event is what one write changed; its zero value means nothing did.
type Event struct {
	Kind        string       `json:"kind"`
	Resource    string       `json:"resource"`
	Loan        string       `json:"loan"`
	TotalBefore int64        `json:"total_before"`
	TotalAfter  int64        `json:"total_after"`
	Before      cluster.Loan `json:"before"`
	After       cluster.Loan `json:"after"`
	Why         string       `json:"why"`
}

// Material tells whether the event changed more than the loan's step and the
// time at which its workflow asks again.
func (e Event) Material() bool {
	before, after := e.Before, e.After
	return before.State != after.State || before.Borrowed != after.Borrowed || before.Recalled != after.Recalled ||
		before.Fenced != after.Fenced || before.Returned != after.Returned
}

// Write applies one change to the row of one loan and answers the row after
// it. A refused change is a [*Refusal] and leaves the account as it was.
func (a *Account) Write(id string, step int64, change Change, now cluster.Time) (cluster.Loan, Event, error) {
	row, event, err := a.Judge(id, step, change, now)
	if err != nil || event.Kind == "" {
		return row, event, err
	}
	i, found := a.find(id)
	a.Loans = slices.Clone(a.Loans)
	if !found {
		a.Loans = slices.Insert(a.Loans, i, cluster.Loan{})
	}
	a.Loans[i] = row
	return row, event, nil
}

// Judge answers what Write would, and writes nothing.
func (a Account) Judge(id string, step int64, change Change, now cluster.Time) (cluster.Loan, Event, error) {
	i, found := a.find(id)
	if !found {
		return a.open(id, step, change, now)
	}
	before := a.Loans[i]
	if again, err := repeated("loan "+id, step, before.Step, before.State); again || err != nil {
		return before, Event{}, err
	}
	after := before
	if err := change.apply(a, &after, now); err != nil {
		return before, Event{}, err
	}
	after.Step = step
	return after, a.event(change.kind(), before, after), nil
}

// repeated tells whether a step has been written already, which changes nothing. An
// older one is refused, and any to a row that is closed.
func repeated[S interface {
	~string
	Open() bool
}](what string, step, written int64, state S) (bool, error) {
	switch {
	case step == written:
		return true, nil
	case step < written:
		return false, refuse(Stale, "step %d of %s is older than step %d, which is written", step, what, written)
	case !state.Open():
		return false, refuse(Closed, "%s is %s and closed", what, state)
	}
	return false, nil
}

// open answers the first row of a loan, which only an Intend can make.
func (a Account) open(id string, step int64, change Change, now cluster.Time) (cluster.Loan, Event, error) {
	intend, ok := change.(Intend)
	if !ok {
		return cluster.Loan{}, Event{}, refuse(Unknown, "there is no loan %s of %s to %s", id, a.Resource, change.kind())
	}
	before := cluster.Loan{LoanRequest: cluster.LoanRequest{ID: id}}
	row := cluster.Loan{LoanRequest: before.LoanRequest, Step: step}
	if err := intend.apply(a, &row, now); err != nil {
		return cluster.Loan{}, Event{}, err
	}
	return row, a.event(intend.kind(), before, row), nil
}

func (a Account) event(kind string, before, after cluster.Loan) Event {
	total := a.Total()
	return Event{
		Kind: kind, Resource: a.Resource, Loan: after.ID, Why: after.Why, Before: before, After: after,
		TotalBefore: total, TotalAfter: total + after.Borrowed - before.Borrowed,
	}
}

// Code says why a change was refused, for a program.
type Code string

// Codes of refusals.
const (
	Stale   Code = "stale"   // an older step than the last one written
	Closed  Code = "closed"  // the row is closed
	Unknown Code = "unknown" // there is no such row
	InUse   Code = "in-use"  // jobs use the units
	Hold    Code = "hold"    // the minimum hold is not over
	Invalid Code = "invalid" // the change makes no sense for the row
)

// Refusal is a change that the rules do not allow. Nothing was changed.
type Refusal struct {
	Code Code
	Text string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

func refuse(code Code, format string, args ...any) error {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}
