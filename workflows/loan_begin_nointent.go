//go:build nointent

package workflows

// begin asks the lender before the row is there. A build for tests only: it shows that a run of chaos finds out.
func (l *Loan) begin(env LoanEnv) {
	l.Row.Units = l.Request.Units
	granted := env.Request(l.ask())
	l.intend(env)
	if l.Chapter == Requesting {
		settle(l, env, granted)
	}
}
