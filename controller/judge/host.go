package judge

import (
	"errors"
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
)

// HostBooks is all that a write to an elastic host's row is judged on.
type HostBooks struct {
	// Row is the host's; its zero value means that there is none. Jobs run on it.
	Row  cluster.ElasticHost `json:"row,omitzero"`
	Jobs int64               `json:"jobs,omitempty"`
	// Demand is what is left of it for the template; read for an intent, as are the rules.
	Demand cluster.Demand     `json:"demand,omitzero"`
	Rules  *cluster.HostRules `json:"rules,omitempty"`
	// Template is the host's, where there still is one; read where it is of concern.
	Template *cluster.Template `json:"template,omitempty"`
	// Name is what the host can be called; read where it is about to be expected.
	Name string `json:"name,omitempty"`
	// IdleSince is since when the last session found it idle; read for a fence.
	IdleSince cluster.Time `json:"idle_since,omitempty"`
}

// HostAnswer is what becomes of a write to a host's row.
type HostAnswer struct {
	api.HostWritten
	// Event is what changed; where its kind is empty, nothing did.
	Event ledger.HostEvent `json:"-"`
	// Demand and Template are those of the books after the write, where it changed them.
	Demand   *cluster.Demand   `json:"demand,omitempty"`
	Template *cluster.Template `json:"template,omitempty"`
}

// ErrNoChange is a write without a change.
var ErrNoChange = errors.New("the write has no change")

// Write judges one write.
func (b HostBooks) Write(w api.WriteHost, now cluster.Time) (answer HostAnswer, err error) {
	books := ledger.Host{Row: b.Row, Jobs: b.Jobs}
	if b.Template != nil || w.Intend == nil { // nothing is demanded any more of a template that is gone
		books.Demanded = b.Demand.Units
	}
	change := b.change(w, now)
	if change == nil {
		return answer, ErrNoChange
	}
	answer.Host, answer.Event, err = books.Write(w.Host, w.Step, change, now)
	if answer.Refusal = refusalOf(err); answer.Refusal != nil {
		return answer, nil
	}
	if err == nil && answer.Event.Kind != "" {
		b.follow(w, &answer, now)
	}
	return answer, err
}

// change answers the ledger's form of a write, or nil where there is none.
func (b HostBooks) change(w api.WriteHost, now cluster.Time) ledger.HostChange {
	switch {
	case w.Intend != nil:
		return b.intend(*w.Intend)
	case w.Expect != nil:
		return ledger.ExpectHost{Instance: w.Expect.Instance, Name: b.Name, Address: w.Expect.Address}
	case w.Refuse != nil:
		return ledger.RefuseHost{Why: w.Refuse.Why}
	case w.Lapse != nil:
		return ledger.LapseHost{Why: w.Lapse.Why}
	case w.Drain != nil:
		return ledger.DrainHost{Drain: *w.Drain}
	case w.Undrain != nil:
		return ledger.UndrainHost{By: w.Undrain.By}
	case w.Keep != nil:
		return ledger.KeepHost{Keep: *w.Keep}
	case w.Release != nil:
		return ledger.ReleaseHost{By: w.Release.By}
	case w.StopJobs != nil:
		return ledger.StopJobs{Why: w.StopJobs.Why}
	case w.Fence:
		return b.fence(now)
	case w.Confirm:
		return ledger.ConfirmHost{}
	case w.Gone != nil:
		return ledger.LoseHost{Why: w.Gone.Why}
	}
	return nil
}

// intend makes a request one of the template as it is now.
func (b HostBooks) intend(r cluster.HostRequest) ledger.HostChange {
	var t cluster.Template
	if b.Template != nil {
		t = *b.Template
	}
	var rules cluster.HostRules
	if b.Rules != nil {
		rules = *b.Rules
	}
	return ledger.IntendHost{HostRequest: r, Capacity: t.Believed(), Terms: rules.Terms(t)}
}

// fence decides whether the host may go: empty it must be in any case.
func (b HostBooks) fence(now cluster.Time) ledger.HostChange {
	idle, again := policy.ReturnHost(b.Row, b.IdleSince, now)
	why := ""
	switch {
	case b.Row.Drain != nil:
		why = "empty, and drained: " + b.Row.Drain.Why
	case idle:
		why = fmt.Sprintf("idle for %s since %s", b.Row.IdleTime, b.IdleSince)
	}
	return ledger.FenceHost{Idle: idle, AskAgain: again, Why: why}
}

// follow answers what a write that changed the row changes beside it.
func (b HostBooks) follow(w api.WriteHost, answer *HostAnswer, now cluster.Time) {
	switch {
	case w.Intend != nil && answer.Host.State.Open():
		demand := b.Demand
		demand.Units--
		answer.Demand = &demand
	case w.Refuse != nil && !w.Refuse.Ours:
		answer.Template = b.letBe(w.Refuse.RetryAfter, now)
	case w.Lapse != nil && w.Lapse.Late:
		answer.Template = b.letBe(0, now)
	case w.Gone != nil && answer.Event.Before.State == cluster.HostExpected:
		answer.Template = b.letBe(0, now)
	}
}

// letBe answers the template after a refusal, or a machine that never came: it is let be for a while.
func (b HostBooks) letBe(retryAfter cluster.Duration, now cluster.Time) *cluster.Template {
	if b.Template == nil {
		return nil
	}
	t := policy.RefusedTemplate(*b.Template, retryAfter, now)
	return &t
}

// Fact is one thing that is seen of a host; exactly one field is set.
type Fact struct {
	Join *cluster.Capacity `json:"join,omitempty"`
	Seen *Seen             `json:"seen,omitempty"`
	Load *int64            `json:"load,omitempty"`
}

// Seen is how a host answers.
type Seen struct {
	Health cluster.Health `json:"health,omitempty"`
	Why    string         `json:"why,omitempty"`
}

// FactAnswer is what becomes of a host's row where something is seen of it.
type FactAnswer struct {
	Host    cluster.ElasticHost `json:"host"`
	Refusal *api.Refusal        `json:"refusal,omitempty"`
	Event   ledger.HostEvent    `json:"-"`
}

// Note judges what is seen of a host.
func Note(row cluster.ElasticHost, fact Fact, now cluster.Time) (answer FactAnswer, err error) {
	var of ledger.HostFact
	switch {
	case fact.Join != nil:
		of = ledger.Join{Capacity: *fact.Join}
	case fact.Seen != nil:
		of = ledger.Seen{Health: fact.Seen.Health, Why: fact.Seen.Why}
	case fact.Load != nil:
		of = ledger.Load{Jobs: *fact.Load}
	default:
		return answer, ErrNoChange
	}
	answer.Host, answer.Event, err = ledger.Host{Row: row}.Note(of, now)
	if answer.Refusal = refusalOf(err); answer.Refusal != nil {
		err = nil
	}
	return answer, err
}
