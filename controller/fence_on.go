//go:build !unfenced

package controller

import (
	"net/http"

	"xce.internal/elastic/controller/lease"
)

// fenced refuses a change of what is a provider's to a provisioner that does not
// hold the provider's lease now. It must be asked in the transaction of the change.
// What is no one's, as there is no such row, is for the ledger to refuse.
func (w *work) fenced(provider string) error {
	if w.acting == nil || provider == "" {
		return nil
	}
	if w.acting.claim.Provider != provider {
		return refuse(http.StatusPreconditionFailed, "%s acts under the lease of %q, and this is a change of what is %s's", w.acting.name, w.acting.claim.Provider, provider)
	}
	leases, err := w.Lease(provider)
	if err != nil {
		return err
	}
	book := lease.Book{Leases: leases}
	for _, l := range leases {
		if book.Provisioners, err = w.Provisioner(l.Holder); err != nil {
			return err
		}
	}
	if err := book.Check(provider, w.acting.name, w.acting.claim.Epoch, w.now); err != nil {
		return refuse(http.StatusPreconditionFailed, "%v", err)
	}
	return nil
}
