// Package proof judges the evidence of a run of chaos. It knows what must hold whatever was done to the cluster,
// and nothing of how the cluster decides: it reads what lenders, makers of hosts and jobs wrote down themselves,
// and holds the ledger's rows and audit records, and the workflows, against it.
package proof

import (
	"cmp"
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

// Property is something that must hold.
type Property string

// Properties.
const (
	Conservation Property = "conservation"      // lenders' books, ledger and workflows agree
	Twice        Property = "nothing twice"     // no token and no machine is given or used twice
	Forgotten    Property = "nothing forgotten" // all that was given is back, all rows are closed
	Fence        Property = "fence first"       // nothing in use goes back, and nothing that still counts
	Intent       Property = "intent first"      // the row was there before the provider was asked
	Jobs         Property = "jobs once"         // every job ran once, or again where it is marked so
	Totals       Property = "totals are sums"   // at every recorded moment
	Epochs       Property = "fenced ownership"  // who changes something for a provider holds its lease
	Stories      Property = "stories closed"    // every workflow of a loan or host has ended well
)

// Violation is a property that does not hold: where, and when.
type Violation struct {
	Property Property
	At       cluster.Time
	// Subject is the loan, host, job, machine or provider that it is about.
	Subject string
	Text    string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s at %s: %s", v.Property, v.Subject, clock(v.At), v.Text)
}

// clock shows an instant as a timeline does.
func clock(t cluster.Time) string { return t.Std().Format("15:04:05.000") }

// court collects what does not hold.
type court struct {
	evidence.Evidence
	found []Violation
}

func (c *court) violated(p Property, at cluster.Time, subject, format string, args ...any) {
	c.found = append(c.found, Violation{Property: p, At: at, Subject: subject, Text: fmt.Sprintf(format, args...)})
}

// Check answers all that does not hold, the earliest first.
func Check(e evidence.Evidence) []Violation {
	c := &court{Evidence: e}
	for _, look := range []func(*court){
		(*court).lenders, (*court).makers, (*court).rows, (*court).intents, (*court).counted, (*court).returns, (*court).machines,
		(*court).jobs, (*court).usage, (*court).replay, (*court).leases, (*court).stories,
	} {
		look(c)
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return c.found
}

// event is one step of something that is followed over time. Of those of one moment, lower ranks come first:
// clocks are read before things happen, so what allows goes before what is allowed.
type event struct {
	at   cluster.Time
	rank int
	do   func()
}

// follow does events in order.
func follow(events []event) {
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank))
	})
	for _, e := range events {
		e.do()
	}
}
