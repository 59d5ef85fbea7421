//go:build !nofence

package workflows

import "xce.internal/elastic/controller/api"

// release has idle units taken out of the total, so that they can go back.
func (l *Loan) release(env LoanEnv) { l.fence(env, api.FenceLoan{LedgerWrite: l.write()}) }
