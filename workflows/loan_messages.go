package workflows

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// hear answers a message.
func (l *Loan) hear(env LoanEnv, m Message) {
	switch {
	case m.Return != nil:
		m.Return.Answer(l.operatorReturn(env, m.Return.ReturnUnits))
	case m.Recalled != nil && m.Recalled.At > l.GaveBack:
		l.recall(env, m.Recalled.Units-l.Row.Recalled-l.Row.Fenced, fmt.Sprintf("%s wants %d units back", l.Request.Provider, m.Recalled.Units))
	case m.Check && l.Chapter == Keeping:
		l.check(env)
	}
}

// check compares the books with the lender's list. What the lender has lost is
// recalled, unless it is already; what it lends beyond the books goes back.
func (l *Loan) check(env LoanEnv) {
	held := env.Holding(l.ask())
	if held.Outcome.Status != providers.StatusOK {
		return
	}
	listed := held.Ceil()
	if listed > l.Row.Held() {
		l.turn(GivingBack)
		return
	}
	l.recall(env, l.Row.Borrowed+l.Row.Fenced-listed, fmt.Sprintf("%s lists %d units, %d fewer than were lent", l.Request.Provider, listed, l.Row.Held()-listed))
}

// MayReturn tells whether an operator's wish can be taken up at all, or why
// not: what needs no look at the ledger.
func (l *Loan) MayReturn(now cluster.Time, wish ReturnUnits) error {
	here := l.Row.Borrowed + l.Row.Recalled
	switch {
	case wish.Units < 0:
		return fmt.Errorf("%d units cannot be returned; ask for 1 or more, or 0 for all", wish.Units)
	case l.Chapter == GivingBack || l.Chapter == Verifying:
		return fmt.Errorf("%d units of %s are on their way back already; ask again when they are there", l.Row.Fenced, l.Request.ID)
	case l.Chapter != Keeping:
		return fmt.Errorf("loan %s is %s: there is nothing to return", l.Request.ID, l.state())
	case wish.Units > here:
		return fmt.Errorf("loan %s has %d units, not %d", l.Request.ID, here, wish.Units)
	case now < l.Row.HoldUntil && l.Row.Recalled == 0:
		return fmt.Errorf("loan %s is held until %s, as %s demands", l.Request.ID, l.Row.HoldUntil, l.Request.Provider)
	}
	return nil
}

// operatorReturn fences exactly what an operator asked for, all or none.
func (l *Loan) operatorReturn(env LoanEnv, wish ReturnUnits) ReturnAnswer {
	if err := l.MayReturn(env.Now(), wish); err != nil {
		return ReturnAnswer{Refused: err.Error()}
	}
	units := wish.Units
	if units == 0 {
		units = l.Row.Borrowed + l.Row.Recalled
	}
	w := l.fence(env, api.FenceLoan{LedgerWrite: l.write(), Units: units, Why: "returned by " + wish.By})
	if w.Refusal != nil {
		return ReturnAnswer{Refused: w.Refusal.Text}
	}
	return ReturnAnswer{Units: units}
}

// recall takes units that the lender wants back out of the total at once; they
// go back as soon as no job uses them.
func (l *Loan) recall(env LoanEnv, units int64, why string) {
	units = min(units, l.Row.Borrowed)
	if units < 1 || l.Surrender != "" {
		return
	}
	w := env.Recall(api.RecallLoan{LedgerWrite: l.write(), Units: units, Why: why})
	if l.lost(w) || w.Refusal != nil {
		return
	}
	l.Row, l.AskNow = w.Loan, true
}
