package maker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/mishap"
)

// Template is one kind of host that the maker makes.
type Template struct {
	providers.Template
	// Capacity is how many of it there may be at once.
	Capacity int64
}

// Machine is one machine that is there.
type Machine struct {
	providers.Instance
	Request, Template string
	Join              *providers.Join
	Made              time.Time
	// ending is when a return of it that is under way is through, and reclaimed when
	// the maker takes it by itself.
	ending, reclaimed time.Time
}

// Move is one machine made or ended.
type Move struct {
	At       time.Time
	Request  string
	Instance string
	Made     bool
}

// Maker makes hosts of its templates. Its fields may be changed between calls.
type Maker struct {
	// Now is its clock.
	Now       func() time.Time
	Templates []Template
	// Poll is how often it wants to be asked about the same thing: 10 seconds unless given.
	Poll time.Duration
	// PendingFor is how long a request stays undecided, ReturnFor a return.
	PendingFor, ReturnFor time.Duration
	// RetryAfter is what a refusal advises.
	RetryAfter time.Duration
	// Surplus is how many machines are made beyond what was asked.
	Surplus int64
	// Sticky has a return be answered as done while the machine stays.
	Sticky bool
	// Named has machines have names, which are used again.
	Named bool
	// Mishap says what goes wrong with a call: nothing unless given.
	Mishap func(mishap.Call) mishap.Mishap
	// Lists, where set, answers what is listed in place of the truth.
	Lists func([]providers.Grant) []providers.Grant
	// BeforeReturn sees every machine that a return ends.
	BeforeReturn func(Machine)
	// Made and Ended see every machine that is made, and that is no more.
	Made, Ended func(Machine)
	// Wake, where set, is told that Advance should be called after so long.
	Wake func(time.Duration)

	// Moves are the maker's books, in order of time.
	Moves []Move

	requests []*request
	machines []*Machine
	calls    mishap.Calls
	numbers  int
}

// request is one request id, from the first word about it.
type request struct {
	in      providers.RequestIn
	state   providers.State
	reason  providers.Reason
	made    []providers.Instance // at first
	decided time.Time            // when a pending one is granted
}

// Machines are the machines that are there, under one request or all for "".
func (m *Maker) Machines(id string) (there []Machine) {
	m.Advance()
	for _, machine := range m.machines {
		if id == "" || machine.Request == id {
			there = append(there, *machine)
		}
	}
	return there
}

// Reclaim has the maker take a host by itself when the grace is over.
func (m *Maker) Reclaim(id string, grace time.Duration) {
	for _, machine := range m.machines {
		if machine.Request == id {
			machine.reclaimed = m.Now().Add(grace)
		}
	}
	m.wake(grace)
}

// Vanish ends the machines of a request without a word to anyone.
func (m *Maker) Vanish(id string) {
	m.end(func(machine *Machine) bool { return machine.Request == id })
}

// Swap puts another machine in the place of each that a request has.
func (m *Maker) Swap(id string) {
	template := m.Machines(id)[0].Template
	m.Vanish(id)
	m.Plant(id, template)
}

// Plant makes a machine under an id, whether it was asked for or not.
func (m *Maker) Plant(id, template string) {
	m.make(providers.RequestIn{RequestID: id, Template: template, Units: 1})
}

func (m *Maker) find(id string) *request {
	i := slices.IndexFunc(m.requests, func(r *request) bool { return r.in.RequestID == id })
	if i < 0 {
		return nil
	}
	return m.requests[i]
}

func (m *Maker) free(t Template) int64 {
	free := t.Capacity
	for _, machine := range m.machines {
		if machine.Template == t.Template.Template {
			free--
		}
	}
	for _, r := range m.requests {
		if r.in.Template == t.Template.Template && r.state == providers.StatePending {
			free -= r.in.Units
		}
	}
	return max(free, 0)
}

// make makes the machines of a request.
func (m *Maker) make(in providers.RequestIn) (made []providers.Instance) {
	for range in.Units {
		m.numbers++
		machine := &Machine{Request: in.RequestID, Template: in.Template, Join: in.Join, Made: m.Now()}
		machine.ID = fmt.Sprintf("i-%d", m.numbers)
		if m.Named {
			machine.Name = m.freeName()
		}
		m.machines = append(m.machines, machine)
		m.Moves = append(m.Moves, Move{m.Now(), in.RequestID, machine.ID, true})
		made = append(made, machine.Instance)
		if m.Made != nil {
			m.Made(*machine)
		}
	}
	return made
}

// freeName answers the first name that no machine has.
func (m *Maker) freeName() string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("ip-10-0-0-%d", n)
		if !slices.ContainsFunc(m.machines, func(other *Machine) bool { return other.Name == name }) {
			return name
		}
	}
}

// end ends the machines that are meant.
func (m *Maker) end(meant func(*Machine) bool) {
	var ended []*Machine
	m.machines = slices.DeleteFunc(m.machines, func(machine *Machine) bool {
		over := meant(machine)
		if over {
			ended = append(ended, machine)
		}
		return over
	})
	for _, machine := range ended {
		m.Moves = append(m.Moves, Move{m.Now(), machine.Request, machine.ID, false})
		if m.Ended != nil {
			m.Ended(*machine)
		}
	}
}

func (m *Maker) wake(after time.Duration) {
	if m.Wake != nil {
		m.Wake(after)
	}
}

// Advance does what has become due.
func (m *Maker) Advance() {
	now := m.Now()
	m.calls.CarryOut(now, func(_ time.Time, do func()) { do() })
	for _, r := range m.requests {
		if r.state == providers.StatePending && !r.decided.After(now) {
			r.state, r.made = providers.StateGranted, m.make(r.in)
		}
	}
	m.end(func(machine *Machine) bool { return due(machine.ending, now) || due(machine.reclaimed, now) })
}

func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// Describe implements the verb.
func (m *Maker) Describe(context.Context) (providers.Description, providers.Outcome) {
	return call(m, providers.VerbDescribe, "", func() (providers.Description, providers.Outcome) {
		d := providers.Description{
			Contract: providers.ContractVersion, Kinds: []providers.Kind{providers.KindHosts}, Idempotent: true, PartialReturn: true,
			PollInterval: seconds(cmp.Or(m.Poll, 10*time.Second)),
		}
		for _, t := range m.Templates {
			t.Headroom = m.free(t)
			d.Templates = append(d.Templates, t.Template)
		}
		for _, machine := range m.machines {
			if !machine.reclaimed.IsZero() {
				d.Recalls = append(d.Recalls, providers.Recall{RequestID: machine.Request, Units: 1, Grace: seconds(machine.reclaimed.Sub(m.Now()))})
			}
		}
		return d, ok
	})
}

// Request implements the verb.
func (m *Maker) Request(_ context.Context, in providers.RequestIn) (providers.RequestOut, providers.Outcome) {
	return call(m, providers.VerbRequest, in.RequestID, func() (providers.RequestOut, providers.Outcome) {
		r := m.find(in.RequestID)
		if r == nil {
			r = m.decide(in)
			m.requests = append(m.requests, r)
			if r.state == providers.StateGranted {
				r.made = m.make(r.in)
			}
		}
		outcome := m.standing(r)
		if outcome.Status != providers.StatusOK {
			return providers.RequestOut{}, outcome
		}
		return providers.RequestOut{RequestID: in.RequestID, Granted: int64(len(r.made)), Instances: r.made}, outcome
	})
}

// decide answers what becomes of a new request.
func (m *Maker) decide(in providers.RequestIn) *request {
	r := &request{in: in, state: providers.StateRefused, reason: providers.ReasonInvalid}
	i := slices.IndexFunc(m.Templates, func(t Template) bool { return t.Template.Template == in.Template })
	switch {
	case i < 0:
	case m.free(m.Templates[i]) < in.Units:
		r.reason = providers.ReasonCapacity
	default:
		r.in.Units += m.Surplus
		r.state = providers.StateGranted
		if m.PendingFor > 0 {
			r.state, r.decided = providers.StatePending, m.Now().Add(m.PendingFor)
			m.wake(m.PendingFor)
		}
	}
	return r
}

// standing says how a request stands.
func (m *Maker) standing(r *request) providers.Outcome {
	switch {
	case r.state == providers.StatePending:
		return providers.Outcome{Status: providers.StatusPending}
	case r.state == providers.StateGranted && len(m.Machines(r.in.RequestID)) > 0:
		return ok
	case r.state == providers.StateGranted:
		return refused(providers.ReasonInvalid, "it was returned")
	}
	outcome := refused(r.reason, "")
	outcome.RetryAfter = seconds(m.RetryAfter)
	return outcome
}

// Status implements the verb.
func (m *Maker) Status(_ context.Context, in providers.StatusIn) (providers.StatusOut, providers.Outcome) {
	id := in.RequestIDs[0]
	return call(m, providers.VerbStatus, id, func() (providers.StatusOut, providers.Outcome) {
		state := providers.RequestState{RequestID: id, Status: providers.StateUnknown}
		if r := m.find(id); r != nil {
			state.Status, state.Granted, state.Instances = r.state, int64(len(r.made)), r.made
			if outcome := m.standing(r); outcome.Status == providers.StatusRefused {
				state = providers.RequestState{RequestID: id, Status: providers.StateRefused, Reason: outcome.Reason, Message: outcome.Message, RetryAfter: outcome.RetryAfter}
			}
		}
		return providers.StatusOut{Requests: []providers.RequestState{state}}, ok
	})
}

// Return implements the verb.
func (m *Maker) Return(_ context.Context, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	return call(m, providers.VerbReturn, in.RequestID, func() (providers.ReturnOut, providers.Outcome) {
		r := m.find(in.RequestID)
		if len(m.Machines(in.RequestID)) == 0 && in.Remaining == 0 {
			m.cancel(r, in)
			return providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK}, ok
		}
		if m.Sticky {
			return providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK, Remaining: in.Remaining}, ok
		}
		return m.giveBack(in)
	})
}

// giveBack ends the machines that are named, or where none is, all.
func (m *Maker) giveBack(in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	for _, machine := range m.machines {
		named := len(in.Instances) == 0 || slices.ContainsFunc(in.Instances, func(i providers.Instance) bool { return i.ID == machine.ID })
		if machine.Request != in.RequestID || !named || !machine.ending.IsZero() {
			continue
		}
		if m.BeforeReturn != nil {
			m.BeforeReturn(*machine)
		}
		machine.ending = m.Now().Add(m.ReturnFor)
		m.wake(m.ReturnFor)
	}
	left := int64(len(m.Machines(in.RequestID)))
	if left > in.Remaining {
		return providers.ReturnOut{}, providers.Outcome{Status: providers.StatusPending}
	}
	return providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK, Remaining: left}, ok
}

// cancel takes a request of which nothing was made out of the world for good.
func (m *Maker) cancel(r *request, in providers.ReturnIn) {
	switch {
	case r == nil:
		m.requests = append(m.requests, &request{in: providers.RequestIn{RequestID: in.RequestID}, state: providers.StateRefused, reason: providers.ReasonInvalid})
	case r.state == providers.StatePending:
		r.state, r.reason = providers.StateRefused, providers.ReasonInvalid
	}
}

// List implements the verb.
func (m *Maker) List(context.Context) (providers.ListOut, providers.Outcome) {
	return call(m, providers.VerbList, "", func() (providers.ListOut, providers.Outcome) {
		var grants []providers.Grant
		for _, machine := range m.machines {
			i := slices.IndexFunc(grants, func(g providers.Grant) bool { return g.RequestID == machine.Request })
			if i < 0 {
				i = len(grants)
				grants = append(grants, providers.Grant{RequestID: machine.Request, Template: machine.Template, Since: machine.Made})
			}
			grants[i].Units++
			grants[i].Instances = append(grants[i].Instances, machine.Instance)
		}
		if m.Lists != nil {
			grants = m.Lists(grants)
		}
		return providers.ListOut{Grants: grants}, ok
	})
}

// Observe implements the verb, which this maker does not offer.
func (m *Maker) Observe(context.Context) (providers.ObserveOut, providers.Outcome) {
	return providers.ObserveOut{}, refused(providers.ReasonInvalid, "not offered")
}

// String is the maker's books, a line for each move.
func (m *Maker) String() string {
	text := ""
	for _, move := range m.Moves {
		what := map[bool]string{true: "made", false: "ended"}[move.Made]
		text += fmt.Sprintf("%s %s %s %s\n", move.At.Format(time.RFC3339), move.Request, move.Instance, what)
	}
	return text
}

// call answers one call, with what goes wrong with it.
func call[O any](m *Maker, verb providers.Verb, request string, do func() (O, providers.Outcome)) (O, providers.Outcome) {
	m.Advance()
	return mishap.Answer(&m.calls, mishap.Call{Verb: verb, Request: request, At: m.Now()}, m.Mishap, m.wake, do)
}

var ok = providers.Outcome{Status: providers.StatusOK}

func refused(reason providers.Reason, message string) providers.Outcome {
	return providers.Outcome{Status: providers.StatusRefused, Reason: reason, Message: message}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
