//go:build nofence

package workflows

import (
	"xce.internal/elastic/activities"
	"xce.internal/elastic/controller/api"
)

// release gives units back before they are out of the total. A build for tests only: it shows that a run of chaos
// finds out.
func (l *Loan) release(env LoanEnv) {
	env.Return(activities.GiveBack{Ask: l.ask(), Remaining: 0})
	l.fence(env, api.FenceLoan{LedgerWrite: l.write()})
}
