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

func (l *Loan) granted(g activities.Grant) {
	l.Granted, l.Rest = g.Units, g.Rest
	if g.Units == 0 {
		l.surrender(fmt.Sprintf("%s granted less than one unit", l.Request.Provider), 1)
		return
	}
	l.turn(Committing)
}

func (l *Loan) refused(env LoanEnv, o providers.Outcome) {
	why := o.Message
	if o.Status != "" {
		why = words(o)
	}
	l.refuse(env, why, cluster.Duration(o.RetryAfter)*cluster.Second)
}

// refuse closes the row of a loan of which nothing was granted.
func (l *Loan) refuse(env LoanEnv, why string, retryAfter cluster.Duration) {
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
