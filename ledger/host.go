package ledger

import (
	"fmt"

	"xce.internal/elastic/cluster"
)

// Host is what the books say around one elastic host, read in the transaction
// of a write.
type Host struct {
	// Row is the host's row; its zero value means that there is none.
	Row cluster.ElasticHost
	// Jobs is how many running jobs are on the host.
	Jobs int64
	// Demanded is how many hosts of the template are demanded at this moment.
	Demanded int64
}

// HostChange is one kind of write of a host's own workflow to its row.
type HostChange interface {
	kind() string
	// apply changes row, or refuses and leaves it unused.
	apply(h Host, row *cluster.ElasticHost, now cluster.Time) error
}

// HostEvent is what one write to a host's row changed; its zero value means
// that nothing did.
type HostEvent struct {
	Kind          string
	Before, After cluster.ElasticHost
}

// Material tells whether the event changed more than the host's step and the
// time at which its workflow asks again.
func (e HostEvent) Material() bool {
	before, after := e.Before, e.After
	return before.State != after.State || before.Health != after.Health || before.Drain != after.Drain || before.Keep != after.Keep
}

// Write applies one change of the host's workflow. A refused one is a
// [*Refusal] and leaves the row as it was. The same step again changes nothing
// and answers the row as it is.
func (h Host) Write(id string, step int64, change HostChange, now cluster.Time) (cluster.ElasticHost, HostEvent, error) {
	before := h.Row
	if _, opens := change.(IntendHost); before.State == "" && !opens {
		return before, HostEvent{}, refuse(Unknown, "there is no host %s to %s", id, change.kind())
	}
	if before.State != "" {
		if again, err := repeated("host "+id, step, before.Step, before.State); again || err != nil {
			return before, HostEvent{}, err
		}
	}
	after := before
	if err := change.apply(h, &after, now); err != nil {
		return before, HostEvent{}, err
	}
	after.ID, after.Step = id, step
	return after, HostEvent{Kind: change.kind(), Before: before, After: after}, nil
}

// IntendHost opens the row before the provider is asked. Where no more hosts of
// the template are demanded, the row is closed as it is opened, so that a late
// copy of the same write finds it.
type IntendHost struct {
	cluster.HostRequest
	// Capacity is what the template promises.
	Capacity cluster.Capacity
	Terms    cluster.HostTerms
}

func (IntendHost) kind() string { return "intend" }

func (c IntendHost) apply(h Host, row *cluster.ElasticHost, now cluster.Time) error {
	if row.State != "" {
		return refuse(Invalid, "host %s is %s already", row.ID, row.State)
	}
	*row = cluster.ElasticHost{
		ID: c.ID, Provider: c.Provider, Template: c.Template, Jobs: c.Jobs, Reason: c.Reason,
		State: cluster.HostRequested, Capacity: c.Capacity, HostTerms: c.Terms, Intended: now, Why: c.Reason,
	}
	if h.Demanded < 1 {
		row.State, row.Closed = cluster.HostRefused, now
		row.Why = fmt.Sprintf("not asked for: no host of %s is demanded any more", c.Template)
	}
	return nil
}

// ExpectHost tells that the provider has made the machine.
type ExpectHost struct {
	Instance string
	// Name is what the host is to be called in the cluster, and Address where it is reached; empty where its name says so.
	Name, Address string
}

func (ExpectHost) kind() string { return "expect" }

func (c ExpectHost) apply(_ Host, row *cluster.ElasticHost, now cluster.Time) error {
	if row.State != cluster.HostRequested {
		return refuse(Invalid, "host %s is %s and cannot be expected", row.ID, row.State)
	}
	row.State, row.Made = cluster.HostExpected, now
	row.Instance, row.Name, row.Address = c.Instance, c.Name, c.Address
	row.JoinBy, row.HoldUntil = now.Add(row.JoinWithin), now.Add(row.MinimumHold)
	row.Why = fmt.Sprintf("%s has made %s", row.Provider, row.Instance)
	return nil
}

// RefuseHost closes a host that was not made.
type RefuseHost struct{ Why string }

func (RefuseHost) kind() string { return "refuse" }

func (c RefuseHost) apply(_ Host, row *cluster.ElasticHost, now cluster.Time) error {
	if row.State != cluster.HostRequested {
		return refuse(Invalid, "host %s is %s and cannot be refused", row.ID, row.State)
	}
	row.State, row.Closed, row.Why = cluster.HostRefused, now, c.Why
	return nil
}

// LapseHost gives a host up that has not joined; it goes back.
type LapseHost struct{ Why string }

func (LapseHost) kind() string { return "lapse" }

func (c LapseHost) apply(_ Host, row *cluster.ElasticHost, now cluster.Time) error {
	if row.State != cluster.HostExpected {
		return refuse(Invalid, "host %s is %s and not awaited", row.ID, row.State)
	}
	row.State, row.Fenced, row.Why = cluster.HostLeaving, now, c.Why
	return nil
}

// DrainHost closes a host to new jobs. A host that drains already takes over
// the new deadline and action; one that the provider takes keeps them.
type DrainHost struct{ cluster.Drain }

func (DrainHost) kind() string { return "drain" }

func (c DrainHost) apply(_ Host, row *cluster.ElasticHost, now cluster.Time) error {
	switch {
	case !row.State.Here():
		return refuse(Invalid, "host %s is %s: there is nothing to drain", row.ID, row.State)
	case row.Drain != nil && row.Drain.Forced && !c.Forced:
		return refuse(Invalid, "host %s drains already, because %s", row.ID, row.Drain.Why)
	case row.Keep != nil && !c.Forced:
		return refuse(Hold, "host %s is kept by %s (%s); release it first", row.ID, row.Keep.By, row.Keep.Why)
	}
	drain := c.Drain
	drain.Since = now
	if row.Drain != nil {
		drain.Since, drain.Requeued = row.Drain.Since, row.Drain.Requeued
	}
	row.State, row.Drain, row.Why = cluster.HostDraining, &drain, c.Why
	return nil
}

// UndrainHost opens a draining host to jobs again.
type UndrainHost struct{ By string }

func (UndrainHost) kind() string { return "undrain" }

func (c UndrainHost) apply(_ Host, row *cluster.ElasticHost, _ cluster.Time) error {
	switch {
	case row.State != cluster.HostDraining:
		return refuse(Invalid, "host %s is %s and does not drain", row.ID, row.State)
	case row.Drain.Forced:
		return refuse(Invalid, "the drain of host %s cannot be undone: %s", row.ID, row.Drain.Why)
	case row.Drain.Requeued > 0:
		return refuse(Invalid, "the drain of host %s cannot be undone: its jobs have been told to stop", row.ID)
	}
	row.State, row.Drain, row.Why = cluster.HostJoined, nil, "opened again by "+c.By
	return nil
}

// KeepHost keeps a host whatever lies idle, until it is released.
type KeepHost struct{ cluster.Keep }

func (KeepHost) kind() string { return "hold" }

func (c KeepHost) apply(_ Host, row *cluster.ElasticHost, now cluster.Time) error {
	if row.State != cluster.HostJoined {
		return refuse(Invalid, "host %s is %s and cannot be kept", row.ID, row.State)
	}
	keep := c.Keep
	keep.Since = now
	row.Keep, row.Why = &keep, fmt.Sprintf("kept by %s: %s", keep.By, keep.Why)
	return nil
}

// ReleaseHost ends an operator's wish to keep a host.
type ReleaseHost struct{ By string }

func (ReleaseHost) kind() string { return "release" }

func (c ReleaseHost) apply(_ Host, row *cluster.ElasticHost, _ cluster.Time) error {
	if row.Keep == nil {
		return refuse(Invalid, "host %s is not kept", row.ID)
	}
	row.Keep, row.Why = nil, "released by "+c.By
	return nil
}

// StopJobs tells the jobs on a draining host to stop and wait again, and writes
// down that it did.
type StopJobs struct{ Why string }

func (StopJobs) kind() string { return "requeue" }

func (c StopJobs) apply(h Host, row *cluster.ElasticHost, now cluster.Time) error {
	if row.State != cluster.HostDraining {
		return refuse(Invalid, "host %s is %s: its jobs run on", row.ID, row.State)
	}
	drain := *row.Drain
	drain.Requeued = now
	row.Drain, row.Why = &drain, fmt.Sprintf("jobs that still ran (%d) are stopped to wait again: %s", h.Jobs, c.Why)
	return nil
}

// FenceHost takes a host out of the cluster, if no job is on it. One that
// drains goes as soon as it is empty; another where Idle says that its time has
// come. Where it stays, the row keeps when to ask again.
type FenceHost struct {
	Idle     bool
	AskAgain cluster.Time
	Why      string
}

func (FenceHost) kind() string { return "fence" }

func (c FenceHost) apply(h Host, row *cluster.ElasticHost, now cluster.Time) error {
	if !row.State.Here() {
		return refuse(Invalid, "host %s is %s and cannot be fenced", row.ID, row.State)
	}
	row.AskAgain = c.AskAgain
	idle := c.Idle && row.State == cluster.HostJoined && row.Keep == nil
	if h.Jobs > 0 || !idle && row.State != cluster.HostDraining {
		return nil
	}
	row.State, row.Fenced, row.AskAgain, row.Why = cluster.HostLeaving, now, 0, c.Why
	return nil
}

// ConfirmHost tells that the provider has the machine back.
type ConfirmHost struct{}

func (ConfirmHost) kind() string { return "confirm" }

func (ConfirmHost) apply(_ Host, row *cluster.ElasticHost, now cluster.Time) error {
	if row.State != cluster.HostLeaving {
		return refuse(Invalid, "host %s is %s and not on its way back", row.ID, row.State)
	}
	row.State, row.Closed = cluster.HostReturned, now
	row.Why = fmt.Sprintf("%s has %s back", row.Provider, row.Instance)
	return nil
}

// LoseHost tells that the machine is no more, whoever was on it: its jobs wait
// again.
type LoseHost struct{ Why string }

func (LoseHost) kind() string { return "gone" }

func (c LoseHost) apply(_ Host, row *cluster.ElasticHost, now cluster.Time) error {
	if !row.State.Made() {
		return refuse(Invalid, "host %s is %s: there is no machine that could be gone", row.ID, row.State)
	}
	row.State, row.Closed, row.Why = cluster.HostReturned, now, c.Why
	rest(row, now)
	return nil
}
