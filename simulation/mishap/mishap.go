// Package mishap has calls of a provider in memory go wrong: they are not heard, not answered, carried out
// late, or refused. Whoever makes the provider says which, call by call.
package mishap

import (
	"slices"
	"time"

	"xce.internal/elastic/providers"
)

// Call is one call of a provider.
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
	// Refusal: nothing is done, and the provider says so.
	Refusal
	// Unsettled: nothing is done, and the provider says that it will be.
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

// Calls are the calls of one provider: how many there were, and those that are yet to be carried out.
// The zero value is ready for use.
type Calls struct {
	counts map[providers.Verb]int
	late   []late
}

// late is something that a call whose answer is long lost still does.
type late struct {
	at time.Time
	do func()
}

// CarryOut hands the late calls that are due to with, in order of time.
func (c *Calls) CarryOut(now time.Time, with func(at time.Time, do func())) {
	for len(c.late) > 0 && !c.late[0].at.After(now) {
		next := c.late[0]
		c.late = c.late[1:]
		with(next.at, next.do)
	}
}

// Answer counts a call and answers it, with what goes wrong with it by which: nothing if that is nil. It has
// do done at once, later, or not at all; wake is told when CarryOut has something to do.
func Answer[O any](c *Calls, call Call, which func(Call) Mishap, wake func(time.Duration), do func() (O, providers.Outcome)) (O, providers.Outcome) {
	if c.counts == nil {
		c.counts = map[providers.Verb]int{}
	}
	c.counts[call.Verb]++
	call.Number = c.counts[call.Verb]
	var m Mishap
	if which != nil {
		m = which(call)
	}
	var none O
	lost := providers.Outcome{Status: providers.StatusUnknown, Message: "no answer came"}
	switch m.Kind {
	case NotHeard:
		return none, lost
	case NoAnswer:
		do()
		return none, lost
	case Late:
		c.late = append(c.late, late{at: call.At.Add(m.After), do: func() { do() }})
		slices.SortStableFunc(c.late, func(a, b late) int { return a.at.Compare(b.at) })
		wake(m.After)
		return none, lost
	case Refusal:
		return none, providers.Outcome{
			Status: providers.StatusRefused, Reason: providers.ReasonDenied, Message: "not now", RetryAfter: int64(m.RetryAfter / time.Second),
		}
	case Unsettled:
		return none, providers.Outcome{Status: providers.StatusPending}
	}
	return do()
}
