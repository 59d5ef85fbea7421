package workflows

import (
	"fmt"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// Chapter says where a loan's or a host's story is.
type Chapter string

// Chapters, in the order in which a story goes through them.
const (
	Intending  Chapter = ""           // record the intent
	Requesting Chapter = "requesting" // ask the provider
	Polling    Chapter = "polling"    // the provider has not decided
	Settling   Chapter = "settling"   // what the provider did is unknown
	Committing Chapter = "committing" // take the grant into the books
	Joining    Chapter = "joining"    // a host has to join
	Keeping    Chapter = "keeping"    // minimum hold, use, idleness
	GivingBack Chapter = "returning"  // give back what was fenced
	Verifying  Chapter = "verifying"  // see whether it is back
	Closed     Chapter = "closed"
)

// Dealing is what a story remembers of its dealing with the provider about one
// request, under the story's own id.
type Dealing struct {
	Chapter Chapter `json:"chapter"`
	// Tries counts the calls without success of this chapter, and Doubts the looks
	// at a pending request that failed in a row.
	Tries  int64 `json:"tries"`
	Doubts int64 `json:"doubts"`
	// Cancelled tells that the request is being withdrawn: nothing of it may be
	// used. CancelHeard tells that the provider knows.
	Cancelled   bool `json:"cancelled"`
	CancelHeard bool `json:"cancel_heard"`
	// Surrender is why the ledger does not carry the loan or host any more, so that
	// all of it goes back without the ledger.
	Surrender string `json:"surrender,omitempty"`
	// Trouble is what went wrong last, in the provider's words.
	Trouble string `json:"trouble,omitempty"`
	// WaitsFor and Until say what the story waits for.
	WaitsFor string       `json:"waits_for"`
	Until    cluster.Time `json:"until,omitempty"`
}

func (d *Dealing) dealing() *Dealing { return d }

// turn begins a chapter.
func (d *Dealing) turn(to Chapter) { d.Chapter, d.Tries = to, 0 }

// note remembers what went wrong, in the provider's words; success forgets it.
func (d *Dealing) note(o providers.Outcome) {
	d.Trouble = ""
	if o.Status == providers.StatusUnknown || o.Status == providers.StatusRefused {
		d.Trouble = words(o)
	}
}

// words says in one line how a call ended.
func words(o providers.Outcome) string {
	text := string(o.Status)
	if o.Reason != "" {
		text += " (" + string(o.Reason) + ")"
	}
	if o.Message != "" {
		text += ": " + o.Message
	}
	return text
}

// backoff answers how long to wait before the n-th try (n from 1): twice as
// long each time from `first` to `most`.
func backoff(first, most cluster.Duration, n int64) cluster.Duration {
	wait := first
	for ; n > 1 && wait < most; n-- {
		wait *= 2
	}
	return min(wait, max(most, first))
}

// party is a story in so far as it deals with its provider.
type party[E DealEnv] interface {
	dealing() *Dealing
	ask() activities.Ask
	pollInterval() cluster.Duration
	// pause waits, and hears what is said meanwhile.
	pause(env E, waitsFor string, d cluster.Duration)
	granted(g activities.Grant)
	refused(env E, o providers.Outcome)
}

// settle takes the provider's answer to the request.
func settle[E DealEnv](p party[E], env E, g activities.Grant) {
	d := p.dealing()
	d.note(g.Outcome)
	switch g.Outcome.Status {
	case providers.StatusOK, providers.StatusPartial:
		p.granted(g)
	case providers.StatusRefused:
		p.refused(env, g.Outcome)
	case providers.StatusPending:
		if d.Chapter != Polling {
			d.turn(Polling)
		}
	default:
		d.turn(Settling)
	}
}

// mostDoubts is how many looks in a row may fail before a pending request is
// taken for one of unknown outcome, which is cancelled unless it is listed.
const mostDoubts = 3

// poll asks how the request stands, until the provider has decided.
func poll[E DealEnv](p party[E], env E) {
	d := p.dealing()
	d.Tries++
	p.pause(env, "a decision of "+p.ask().Provider, backoff(p.pollInterval(), 5*cluster.Minute, d.Tries))
	g := env.Status(p.ask())
	if g.Outcome.Status == providers.StatusUnknown && d.Doubts < mostDoubts {
		d.Doubts++
		d.note(g.Outcome)
		return
	}
	d.Doubts = 0
	settle(p, env, g)
}

// findOut settles a request of which the outcome is unknown by what the provider
// lists under its id. Where it lists nothing the request is cancelled, so that
// it cannot be granted late; once the provider knows, the list must show nothing
// again. A cancel that was not heard may still come to be: what is listed after
// it is not used either.
func findOut[E DealEnv](p party[E], env E) {
	d, provider := p.dealing(), p.ask().Provider
	d.Tries++
	p.pause(env, "a list of "+provider+", since the outcome of the request is unknown", backoff(p.pollInterval(), 10*cluster.Minute, d.Tries))
	held := env.Holding(p.ask())
	d.note(held.Outcome)
	if held.Outcome.Status != providers.StatusOK {
		return
	}
	switch listed := held.Ceil(); {
	case listed > 0 && !d.Cancelled:
		p.granted(held)
	case listed == 0 && d.CancelHeard:
		p.refused(env, providers.Outcome{Message: fmt.Sprintf("the outcome was unknown; cancelled, and %s lists nothing of it", provider)})
	default:
		d.Cancelled = true
		cancel := env.Return(activities.GiveBack{Ask: p.ask(), Remaining: 0, Instances: held.Instances}).Outcome
		d.note(cancel)
		d.CancelHeard = d.CancelHeard || heard(cancel)
	}
}

// heard tells that the provider knows of a cancel: it has noted it, or says that
// there is no such request.
func heard(cancel providers.Outcome) bool {
	return cancel.Status == providers.StatusOK ||
		cancel.Status == providers.StatusRefused && cancel.Reason == providers.ReasonInvalid
}
