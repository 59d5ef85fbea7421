package ledger

import (
	"fmt"

	"xce.internal/elastic/cluster"
)

// HostFact is what the cluster itself sees of an elastic host. It is not a write
// of the host's workflow and has no step; the workflow is told of it.
type HostFact interface {
	kind() string
	note(row *cluster.ElasticHost, now cluster.Time) error
}

// Note writes a fact into the host's row. One that changes nothing is no event;
// one that contradicts the row is a [*Refusal].
func (h Host) Note(fact HostFact, now cluster.Time) (cluster.ElasticHost, HostEvent, error) {
	after := h.Row
	if err := fact.note(&after, now); err != nil {
		return h.Row, HostEvent{}, err
	}
	event := HostEvent{Kind: fact.kind(), Before: h.Row, After: after}
	if !event.Material() && h.Row.BusySince == after.BusySince && h.Row.Busy == after.Busy {
		return h.Row, HostEvent{}, nil
	}
	return after, event, nil
}

// Join is a host's own word that it is there, and what it has.
type Join struct{ cluster.Capacity }

func (Join) kind() string { return "joined" }

func (f Join) note(row *cluster.ElasticHost, now cluster.Time) error {
	switch {
	case row.State.Here():
		return nil // its agent has started again
	case row.State != cluster.HostExpected:
		return refuse(Closed, "host %s is %s and cannot join", row.ID, row.State)
	case now > row.JoinBy:
		return refuse(Stale, "host %s is too late: it had to join until %s, and goes back", row.ID, row.JoinBy)
	}
	row.Why = fmt.Sprintf("joined with %d cpus and %d MB", f.CPUs, f.MemoryMB)
	if !f.Covers(row.Capacity) {
		row.Why += fmt.Sprintf(", less than the %d cpus and %d MB that %s says", row.CPUs, row.MemoryMB, row.Template)
	}
	row.State, row.Joined, row.Capacity = cluster.HostJoined, now, f.Capacity
	return nil
}

// Seen is how a host answers.
type Seen struct {
	cluster.Health
	// Why says since when it does.
	Why string
}

func (f Seen) kind() string {
	if f.Health == cluster.Well {
		return "well"
	}
	return string(f.Health)
}

func (f Seen) note(row *cluster.ElasticHost, _ cluster.Time) error {
	if !row.State.Here() {
		return refuse(Invalid, "host %s is %s and not listened to", row.ID, row.State)
	}
	if row.Health != f.Health {
		row.Health, row.Why = f.Health, f.Why
	}
	return nil
}

// Load is how many jobs are on a host after one began or ended.
type Load struct{ Jobs int64 }

func (f Load) kind() string {
	if f.Jobs > 0 {
		return "busy"
	}
	return "emptied"
}

func (f Load) note(row *cluster.ElasticHost, now cluster.Time) error {
	switch {
	case !row.State.Here(): // nothing is on it
	case f.Jobs == 0:
		rest(row, now)
	case row.BusySince == 0:
		row.BusySince = now
	}
	return nil
}

// rest ends the time for which the host has had jobs.
func rest(row *cluster.ElasticHost, now cluster.Time) {
	row.Busy, row.BusySince = row.Used(now), 0
}
