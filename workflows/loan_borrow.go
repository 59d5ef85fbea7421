package workflows

import (
	"fmt"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// intend records the intent before anyone is asked. Where the demand is gone
// meanwhile, the story ends here.
func (l *Loan) intend(env LoanEnv) {
	l.show(env, "the ledger", 0)
	w := env.Intend(api.IntendLoan{LedgerWrite: l.write(), Request: l.Request})
	if l.ahead(w) {
		return
	}
	l.Row = w.Loan
	switch {
	case w.Refusal != nil:
		l.Trouble = w.Refusal.Text
		l.turn(Closed)
	case !w.Loan.State.Open():
		l.turn(Closed)
	case l.Cancelled:
		l.turn(Settling)
	default:
		l.turn(Requesting)
		l.show(env, "an answer of "+l.Request.Provider, 0)
	}
}

// settle takes the lender's answer to the request.
func (l *Loan) settle(env LoanEnv, g activities.Grant) {
	l.note(g.Outcome)
	switch g.Outcome.Status {
	case providers.StatusOK, providers.StatusPartial:
		l.granted(g)
	case providers.StatusRefused:
		l.refused(env, words(g.Outcome), cluster.Duration(g.Outcome.RetryAfter)*cluster.Second)
	case providers.StatusPending:
		if l.Chapter != Polling {
			l.turn(Polling)
		}
	default:
		l.turn(Settling)
	}
}

func (l *Loan) granted(g activities.Grant) {
	l.Granted, l.Rest = g.Units, g.Rest
	if g.Units == 0 {
		l.surrender(fmt.Sprintf("%s granted less than one unit", l.Request.Provider), 1)
		return
	}
	l.turn(Committing)
}

func (l *Loan) refused(env LoanEnv, why string, retryAfter cluster.Duration) {
	w := env.Refuse(api.RefuseLoan{LedgerWrite: l.write(), Why: why, RetryAfter: retryAfter})
	switch {
	case l.ahead(w):
		return
	case w.Refusal == nil && w.Loan.State.Open(): // the step was another write's
		*l = ResumeLoan(w.Loan)
		return
	case w.Refusal == nil:
		l.Row = w.Loan
	}
	l.turn(Closed)
}

// mostDoubts is how many looks in a row may fail before a pending request is
// taken for one of unknown outcome, which is cancelled unless it is listed.
const mostDoubts = 3

// poll asks how the request stands, until the lender has decided.
func (l *Loan) poll(env LoanEnv) {
	l.Tries++
	l.pause(env, "a decision of "+l.Request.Provider, backoff(l.pollInterval(), 5*cluster.Minute, l.Tries))
	g := env.Status(l.ask())
	if g.Outcome.Status == providers.StatusUnknown && l.Doubts < mostDoubts {
		l.Doubts++
		l.note(g.Outcome)
		return
	}
	l.Doubts = 0
	l.settle(env, g)
}

// findOut settles a request of which the outcome is unknown by what the lender
// lists under its id. Where it lists nothing the request is cancelled, so that
// it cannot be granted late; once the lender knows, the list must show nothing
// again. A cancel that was not heard may still come to be: what is listed after
// it is not used either.
func (l *Loan) findOut(env LoanEnv) {
	l.Tries++
	l.pause(env, "a list of "+l.Request.Provider+", since the outcome of the request is unknown", backoff(l.pollInterval(), 10*cluster.Minute, l.Tries))
	held := env.Holding(l.ask())
	l.note(held.Outcome)
	if held.Outcome.Status != providers.StatusOK {
		return
	}
	switch listed := held.Ceil(); {
	case listed > 0 && !l.Cancelled:
		l.granted(held)
	case listed == 0 && l.CancelHeard:
		l.refused(env, fmt.Sprintf("the outcome was unknown; cancelled, and %s lists nothing of it", l.Request.Provider), 0)
	default:
		l.Cancelled = true
		cancel := env.Return(activities.GiveBack{Ask: l.ask(), Remaining: 0}).Outcome
		l.note(cancel)
		l.CancelHeard = l.CancelHeard || heard(cancel)
	}
}

// heard tells that the lender knows of a cancel: it has noted it, or says that
// there is no such request.
func heard(cancel providers.Outcome) bool {
	return cancel.Status == providers.StatusOK ||
		cancel.Status == providers.StatusRefused && cancel.Reason == providers.ReasonInvalid
}

// commit takes the grant into the total. A grant that the ledger does not take
// goes back.
func (l *Loan) commit(env LoanEnv) {
	w := env.Commit(api.CommitLoan{LedgerWrite: l.write(), Granted: l.Granted})
	if l.ahead(w) {
		return
	}
	if w.Refusal != nil {
		l.surrender("the grant could not be committed: "+w.Refusal.Text, l.Granted)
		return
	}
	l.Row = w.Loan
	l.turn(Keeping)
	if l.Row.Fenced > 0 || l.Rest {
		l.turn(GivingBack)
	}
	if l.Granted != l.Row.Units {
		l.tellChanged(env)
	} else {
		// One request less is open: what demand it could not carry may follow.
		env.TellProvider(l.Request.Provider, Message{Demand: true})
	}
}

// surrender gives all units back without the ledger, which does not carry them.
func (l *Loan) surrender(why string, units int64) {
	l.Surrender = why
	l.Row = cluster.Loan{LoanRequest: l.Request, State: cluster.LoanReturning, Fenced: units, Why: why}
	l.turn(GivingBack)
}
