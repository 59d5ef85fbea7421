package lender

import (
	"slices"
	"time"

	"xce.internal/elastic/providers"
)

// Call is one call of the lender.
type Call struct {
	Verb providers.Verb
	// Number counts the calls of this verb from 1.
	Number  int
	Request string // empty for describe and list
	At      time.Time
}

// Kind says how a call goes wrong.
type Kind int

// The kinds of mishaps.
const (
	// None: it goes well.
	None Kind = iota
	// NotHeard: nothing is done, and no answer comes.
	NotHeard
	// NoAnswer: it is done, and no answer comes.
	NoAnswer
	// Late: no answer comes, and it is done only after a while.
	Late
	// Refusal: nothing is done, and the lender says so.
	Refusal
	// Unsettled: nothing is done, and the lender says that it will be.
	Unsettled
)

// Mishap is what goes wrong with one call.
type Mishap struct {
	Kind Kind
	// After is when a late call is carried out.
	After time.Duration
	// RetryAfter is what a refusal advises.
	RetryAfter time.Duration
}

// call answers one call, with what goes wrong with it.
func call[O any](l *Lender, verb providers.Verb, request string, do func() (O, providers.Outcome)) (O, providers.Outcome) {
	l.advance()
	if l.calls == nil {
		l.calls = map[providers.Verb]int{}
	}
	l.calls[verb]++
	var m Mishap
	if l.Mishap != nil {
		m = l.Mishap(Call{Verb: verb, Number: l.calls[verb], Request: request, At: l.Now()})
	}
	return Answer(m, do, func() {
		l.late = append(l.late, late{at: l.Now().Add(m.After), do: func() { do() }})
		slices.SortStableFunc(l.late, func(a, b late) int { return a.at.Compare(b.at) })
	})
}

// Answer answers a call that goes as the mishap says; later has it done late.
func Answer[O any](m Mishap, do func() (O, providers.Outcome), later func()) (O, providers.Outcome) {
	var none O
	lost := providers.Outcome{Status: providers.StatusUnknown, Message: "no answer came"}
	switch m.Kind {
	case NotHeard:
		return none, lost
	case NoAnswer:
		do()
		return none, lost
	case Late:
		later()
		return none, lost
	case Refusal:
		outcome := refused(providers.ReasonDenied, "not now")
		outcome.RetryAfter = seconds(m.RetryAfter)
		return none, outcome
	case Unsettled:
		return none, providers.Outcome{Status: providers.StatusPending}
	}
	return do()
}
