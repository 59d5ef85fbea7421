package lender

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/mishap"
)

// Offer is one resource that the lender lends.
type Offer struct {
	Resource    string
	Capacity    int64
	Price       int64
	MinimumHold time.Duration
	BillingStep time.Duration
	MaxRequest  int64
	MaxOpen     int64
}

// Move is one change of what is lent: more under a request, or less.
type Move struct {
	At      time.Time
	Request string
	Units   int64
}

// Lender lends units of its offers. Its fields may be changed between calls.
type Lender struct {
	// Now is its clock.
	Now    func() time.Time
	Offers []Offer
	// Whole tells that no part of a loan can go back before the rest.
	Whole bool
	// Poll is how often it wants to be asked about the same thing: a minute unless given.
	Poll time.Duration
	// PendingFor is how long a request stays undecided.
	PendingFor time.Duration
	// RetryAfter is what a refusal advises.
	RetryAfter time.Duration
	// Surplus is granted with every request, beyond what was asked.
	Surplus int64
	// Miscount is how many more units than are lent every grant in the list shows.
	Miscount int64
	// Mishap says what goes wrong with a call: nothing unless given.
	Mishap func(mishap.Call) mishap.Mishap
	// BeforeReturn sees every return that is carried out.
	BeforeReturn func(providers.ReturnIn)

	// Moves are the lender's books, in order of time.
	Moves []Move

	requests []*request
	recalls  map[string]int64
	calls    mishap.Calls
	dated    time.Time // of the late call that is being carried out
}

// request is one request id, from the first word about it.
type request struct {
	id       string
	resource string
	state    providers.State
	reason   providers.Reason
	granted  int64 // what it got at first
	lent     int64
	reserved int64
	decided  time.Time // when a pending one is granted
}

// clock is the time at which what is being done is done.
func (l *Lender) clock() time.Time {
	if !l.dated.IsZero() {
		return l.dated
	}
	return l.Now()
}

// Lent is what is lent of a resource now.
func (l *Lender) Lent(resource string) int64 {
	l.advance()
	var n int64
	for _, r := range l.requests {
		if r.resource == resource {
			n += r.lent
		}
	}
	return n
}

// LentTo is what is lent under one request id now.
func (l *Lender) LentTo(id string) int64 {
	l.advance()
	if r := l.find(id); r != nil {
		return r.lent
	}
	return 0
}

// Grants are the requests under which something is lent now.
func (l *Lender) Grants() (grants []providers.Grant) {
	l.advance()
	for _, r := range l.requests {
		if r.lent > 0 {
			grants = append(grants, providers.Grant{RequestID: r.id, Resource: r.resource, Units: r.lent})
		}
	}
	return grants
}

// Recall marks units of one request as wanted back, in all.
func (l *Lender) Recall(id string, units int64) {
	if l.recalls == nil {
		l.recalls = map[string]int64{}
	}
	l.recalls[id] = units
}

// Lose loses units of one request without a word to anyone.
func (l *Lender) Lose(id string, units int64) { l.move(l.find(id), -units) }

// Plant lends units under an id that nobody has asked for.
func (l *Lender) Plant(id, resource string, units int64) {
	r := l.find(id)
	if r == nil {
		r = &request{id: id, resource: resource}
		l.requests = append(l.requests, r)
	}
	r.state = providers.StateGranted
	l.move(r, units)
}

func (l *Lender) find(id string) *request {
	i := slices.IndexFunc(l.requests, func(r *request) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return l.requests[i]
}

func (l *Lender) offer(resource string) *Offer {
	i := slices.IndexFunc(l.Offers, func(o Offer) bool { return o.Resource == resource })
	if i < 0 {
		return nil
	}
	return &l.Offers[i]
}

func (l *Lender) free(o *Offer) int64 {
	free := o.Capacity
	for _, r := range l.requests {
		if r.resource == o.Resource {
			free -= r.lent + r.reserved
		}
	}
	return max(free, 0)
}

func (l *Lender) move(r *request, units int64) { l.moveAt(l.clock(), r, units) }

func (l *Lender) moveAt(at time.Time, r *request, units int64) {
	if units == 0 {
		return
	}
	r.lent += units
	l.Moves = append(l.Moves, Move{At: at, Request: r.id, Units: units})
	slices.SortStableFunc(l.Moves, func(a, b Move) int { return a.At.Compare(b.At) })
}

// advance does what has become due.
func (l *Lender) advance() {
	now := l.Now()
	l.calls.CarryOut(now, func(at time.Time, do func()) {
		l.dated = at
		do()
		l.dated = time.Time{}
	})
	for _, r := range l.requests {
		if r.state == providers.StatePending && !r.decided.After(now) {
			r.state, r.granted, r.reserved = providers.StateGranted, r.reserved, 0
			l.moveAt(r.decided, r, r.granted)
		}
	}
}

// Describe implements the verb.
func (l *Lender) Describe(context.Context) (providers.Description, providers.Outcome) {
	return call(l, providers.VerbDescribe, "", func() (providers.Description, providers.Outcome) {
		d := providers.Description{
			Contract: providers.ContractVersion, Kinds: []providers.Kind{providers.KindTokens}, Idempotent: true,
			PartialReturn: !l.Whole, PollInterval: seconds(cmp.Or(l.Poll, time.Minute)),
		}
		for i, o := range l.Offers {
			d.Offers = append(d.Offers, providers.Offer{
				Resource: o.Resource, Headroom: l.free(&l.Offers[i]), Price: o.Price, MinimumHold: seconds(o.MinimumHold),
				BillingStep: seconds(o.BillingStep), MaxRequest: o.MaxRequest, MaxOpen: o.MaxOpen,
			})
		}
		for _, r := range l.requests {
			if units := min(l.recalls[r.id], r.lent); units > 0 {
				d.Recalls = append(d.Recalls, providers.Recall{RequestID: r.id, Units: units})
			}
		}
		return d, ok
	})
}

// Request implements the verb.
func (l *Lender) Request(_ context.Context, in providers.RequestIn) (providers.RequestOut, providers.Outcome) {
	return call(l, providers.VerbRequest, in.RequestID, func() (providers.RequestOut, providers.Outcome) {
		r := l.find(in.RequestID)
		if r == nil {
			r = l.decide(in)
			l.requests = append(l.requests, r)
			l.move(r, r.granted)
		}
		outcome := l.standing(r)
		if outcome.Status != providers.StatusOK {
			return providers.RequestOut{}, outcome
		}
		if r.granted < in.Units {
			outcome.Status = providers.StatusPartial
		}
		return providers.RequestOut{RequestID: r.id, Granted: r.granted}, outcome
	})
}

// decide answers what becomes of a new request.
func (l *Lender) decide(in providers.RequestIn) *request {
	r := &request{id: in.RequestID, resource: in.Resource}
	o := l.offer(in.Resource)
	if o == nil {
		r.state, r.reason = providers.StateRefused, providers.ReasonInvalid
		return r
	}
	units := min(in.Units+l.Surplus, l.free(o))
	switch {
	case units == 0:
		r.state, r.reason = providers.StateRefused, providers.ReasonCapacity
	case l.PendingFor > 0:
		r.state, r.reserved, r.decided = providers.StatePending, units, l.clock().Add(l.PendingFor)
	default:
		r.state, r.granted = providers.StateGranted, units
	}
	return r
}

// standing says how a request stands.
func (l *Lender) standing(r *request) providers.Outcome {
	switch {
	case r.state == providers.StatePending:
		return providers.Outcome{Status: providers.StatusPending}
	case r.state == providers.StateGranted && r.lent > 0:
		return ok
	case r.state == providers.StateGranted:
		return refused(providers.ReasonInvalid, "it was returned")
	}
	outcome := refused(r.reason, "")
	outcome.RetryAfter = seconds(l.RetryAfter)
	return outcome
}

// Status implements the verb.
func (l *Lender) Status(_ context.Context, in providers.StatusIn) (providers.StatusOut, providers.Outcome) {
	id := in.RequestIDs[0]
	return call(l, providers.VerbStatus, id, func() (providers.StatusOut, providers.Outcome) {
		state := providers.RequestState{RequestID: id, Status: providers.StateUnknown}
		if r := l.find(id); r != nil {
			state.Status, state.Granted = r.state, r.granted
			if outcome := l.standing(r); outcome.Status == providers.StatusRefused {
				state.Status, state.Granted, state.Reason, state.RetryAfter = providers.StateRefused, 0, outcome.Reason, outcome.RetryAfter
			}
		}
		return providers.StatusOut{Requests: []providers.RequestState{state}}, ok
	})
}

// Return implements the verb.
func (l *Lender) Return(_ context.Context, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	return call(l, providers.VerbReturn, in.RequestID, func() (providers.ReturnOut, providers.Outcome) {
		r := l.find(in.RequestID)
		if l.BeforeReturn != nil {
			l.BeforeReturn(in)
		}
		if r == nil || r.state == providers.StatePending || r.state == providers.StateRefused {
			return l.cancel(r, in)
		}
		back := r.lent - in.Remaining
		if l.Whole && back > 0 && in.Remaining > 0 && l.recalls[r.id] == 0 {
			return providers.ReturnOut{}, refused(providers.ReasonInvalid, "a loan goes back whole")
		}
		if back > 0 {
			l.move(r, -back)
			if l.recalls[r.id] > 0 {
				l.recalls[r.id] = max(l.recalls[r.id]-back, 0)
			}
		}
		return providers.ReturnOut{RequestID: r.id, Status: providers.StatusOK, Remaining: r.lent}, ok
	})
}

// cancel takes a request that was not granted out of the world for good.
func (l *Lender) cancel(r *request, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	if in.Remaining > 0 {
		return providers.ReturnOut{}, refused(providers.ReasonInvalid, "nothing was granted to it")
	}
	if r == nil {
		r = &request{id: in.RequestID}
		l.requests = append(l.requests, r)
	}
	r.state, r.reason, r.reserved = providers.StateRefused, providers.ReasonInvalid, 0
	return providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK}, ok
}

// List implements the verb.
func (l *Lender) List(context.Context) (providers.ListOut, providers.Outcome) {
	return call(l, providers.VerbList, "", func() (providers.ListOut, providers.Outcome) {
		out := providers.ListOut{Grants: l.Grants()}
		for i := range out.Grants {
			out.Grants[i].Units += l.Miscount
		}
		return out, ok
	})
}

// Observe implements the verb, which this lender does not offer.
func (l *Lender) Observe(context.Context) (providers.ObserveOut, providers.Outcome) {
	return providers.ObserveOut{}, refused(providers.ReasonInvalid, "not offered")
}

// String is the lender's books, a line for each move.
func (l *Lender) String() string {
	text := ""
	for _, m := range l.Moves {
		text += fmt.Sprintf("%s %s %+d\n", m.At.Format(time.RFC3339), m.Request, m.Units)
	}
	return text
}

// call answers one call, with what goes wrong with it. Nobody is woken: all is done at the next look.
func call[O any](l *Lender, verb providers.Verb, request string, do func() (O, providers.Outcome)) (O, providers.Outcome) {
	l.advance()
	return mishap.Answer(&l.calls, mishap.Call{Verb: verb, Request: request, At: l.Now()}, l.Mishap, func(time.Duration) {}, do)
}

var ok = providers.Outcome{Status: providers.StatusOK}

func refused(reason providers.Reason, message string) providers.Outcome {
	return providers.Outcome{Status: providers.StatusRefused, Reason: reason, Message: message}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
