// Package judge answers what the controller makes of writes to the ledger, of what is seen of hosts and of the
// cluster's own limits: pure functions of all that a decision depends on. The controller reads that in one
// transaction, and keeps what is answered; a record of both is judged again with another version.
package judge

import (
	"errors"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/ledger"
)

// refusalOf answers the refusal that an error of the ledger is, or nil.
func refusalOf(err error) *api.Refusal {
	if err == nil {
		return nil
	}
	var refusal *ledger.Refusal
	if !errors.As(err, &refusal) {
		return nil
	}
	return &api.Refusal{Code: string(refusal.Code), Text: refusal.Text}
}
