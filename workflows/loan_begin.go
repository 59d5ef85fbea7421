//go:build !nointent

package workflows

// begin records the intent before anyone is asked.
func (l *Loan) begin(env LoanEnv) { l.intend(env) }
