package workflows

import (
	"fmt"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// keep waits until units of the loan may go back, and asks the ledger to take
// them out of the total. First the minimum hold passes, then the ledger says
// each time when it is worth asking again.
func (l *Loan) keep(env LoanEnv) {
	if !l.AskNow {
		l.show(env, l.keepingFor(env.Now()), l.Row.AskAgain)
		if m, ok := env.Receive(l.Row.AskAgain); ok {
			l.hear(env, m)
			return
		}
	}
	l.AskNow = false
	l.release(env)
	if l.Chapter != Keeping {
		return
	}
	l.Row.AskAgain = l.askAgain(env.Now())
}

// askAgain answers when to ask for the next fence: when the ledger says, but
// never at once. Recalled units that jobs use are asked for less and less often,
// and so is a ledger whose clock is behind.
func (l *Loan) askAgain(now cluster.Time) cluster.Time {
	soonest := now.Add(cluster.Second)
	shortest := cluster.Second
	switch {
	case l.Row.Recalled > 0:
		shortest = 15 * cluster.Second
	case l.Row.AskAgain > now:
		l.Tries = 0
		return max(l.Row.AskAgain, soonest)
	}
	l.Tries++
	return now.Add(backoff(shortest, 5*cluster.Minute, l.Tries))
}

func (l *Loan) keepingFor(now cluster.Time) string {
	switch {
	case l.Row.Fenced > 0:
		return fmt.Sprintf("the next try: %s refused to take %d units back", l.Request.Provider, l.Row.Fenced)
	case now < l.Row.HoldUntil:
		return "the end of the minimum hold"
	case l.Row.Recalled > 0:
		return "jobs to give recalled units back"
	}
	return "idle units"
}

// fence asks the ledger to take units out of the total.
func (l *Loan) fence(env LoanEnv, in api.FenceLoan) api.Written {
	w := env.Fence(in)
	if l.lost(w) {
		return w
	}
	if w.Refusal == nil {
		l.Row = w.Loan
	}
	if l.Row.Fenced > 0 {
		l.Chapter = GivingBack
	}
	return w
}

// ahead takes the story up from the ledger's row, where a write was refused and
// the row is not what the story remembers, as when Temporal was restored from an
// old backup.
func (l *Loan) ahead(w api.Written) bool {
	if w.Refusal == nil || w.Loan.ID == "" || !w.Loan.State.Open() || w.Loan.Step == l.Row.Step {
		return false
	}
	*l = ResumeLoan(w.Loan)
	return true
}

// lost tells that the ledger does not carry the loan as the story remembers it.
// Where it does not carry it at all, as when it was restored from an old backup,
// all of the loan goes back.
func (l *Loan) lost(w api.Written) bool {
	if w.Refusal == nil || l.ahead(w) {
		return w.Refusal != nil
	}
	switch w.Refusal.Code {
	case "unknown", "closed", "stale":
		l.surrender("the ledger carries the loan no more: "+w.Refusal.Text, l.Row.Held())
		return true
	}
	return false
}

// giveBack gives the fenced units back to the lender. One that refuses them may
// take the whole loan: what jobs may use of it is kept meanwhile.
func (l *Loan) giveBack(env LoanEnv) {
	l.Tries++
	l.show(env, fmt.Sprintf("%s to take %d units back", l.Request.Provider, l.Row.Fenced), 0)
	left := env.Return(activities.GiveBack{Ask: l.ask(), Remaining: l.Row.Borrowed + l.Row.Recalled})
	l.note(left.Outcome)
	switch left.Outcome.Status {
	case providers.StatusOK, providers.StatusPartial:
		l.Rest = false
		l.confirm(env, left.Ceil())
	case providers.StatusRefused:
		wait := cluster.Duration(left.Outcome.RetryAfter) * cluster.Second
		if wait == 0 {
			wait = backoff(l.pollInterval(), 10*cluster.Minute, l.Tries)
		}
		if l.Row.Borrowed+l.Row.Recalled > 0 {
			l.keepOn(env.Now(), wait)
			return
		}
		l.pause(env, fmt.Sprintf("the next try: %s refused to take %d units back", l.Request.Provider, l.Row.Fenced), wait)
	default:
		l.Chapter = Verifying
	}
}

// keepOn goes on with keeping for so long, or until more lies idle.
func (l *Loan) keepOn(now cluster.Time, most cluster.Duration) {
	l.Chapter = Keeping
	until := now.Add(most)
	if l.Row.Recalled == 0 {
		until = min(until, max(l.Row.AskAgain, now.Add(l.pollInterval())))
	}
	l.Row.AskAgain = until
}

// verify settles a return of which the outcome is open by the lender's list.
func (l *Loan) verify(env LoanEnv) {
	l.pause(env, fmt.Sprintf("a list of %s that shows %d units back", l.Request.Provider, l.Row.Fenced), backoff(l.pollInterval(), 10*cluster.Minute, l.Tries))
	held := env.Holding(l.ask())
	l.note(held.Outcome)
	if held.Outcome.Status != providers.StatusOK {
		l.Tries++
		return
	}
	l.Rest = false
	l.confirm(env, held.Ceil())
}

// confirm records how many of the fenced units the lender has back, given what
// it still lends. What it has not is asked for again.
func (l *Loan) confirm(env LoanEnv, left int64) {
	back := min(max(l.Row.Held()-left, 0), l.Row.Fenced)
	if back > 0 && !l.confirmed(env, back) {
		return
	}
	switch {
	case l.Row.Held() == 0:
		l.end(env)
	case l.Row.Fenced == 0:
		l.turn(Keeping)
		if back > 0 {
			l.tellChanged(env)
		}
	default:
		l.Chapter = GivingBack
		l.pause(env, fmt.Sprintf("the next try: %s still lends %d units", l.Request.Provider, left), backoff(l.pollInterval(), 10*cluster.Minute, l.Tries))
	}
}

// confirmed tells the ledger, or answers false where it does not carry the loan
// as the story remembers it.
func (l *Loan) confirmed(env LoanEnv, back int64) bool {
	l.GaveBack = env.Now()
	if l.Surrender != "" {
		l.Row.Fenced -= back
		l.Row.Returned += back
		return true
	}
	w := env.Confirm(api.ConfirmLoan{LedgerWrite: l.write(), Units: back})
	if l.lost(w) {
		return false
	}
	if w.Refusal == nil {
		l.Row = w.Loan
	}
	return true
}

// end closes the story. A surrendered loan may still have an open row.
func (l *Loan) end(env LoanEnv) {
	if l.Surrender != "" {
		l.refuse(env, l.Surrender, 0)
		return
	}
	l.turn(Closed)
}
