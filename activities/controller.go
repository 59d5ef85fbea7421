package activities

import (
	"context"
	"errors"
	"net/http"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// Ledger is the part of the controller that loans write to.
type Ledger interface {
	Intend(context.Context, api.IntendLoan) (api.Written, error)
	Commit(context.Context, api.CommitLoan) (api.Written, error)
	Refuse(context.Context, api.RefuseLoan) (api.Written, error)
	Fence(context.Context, api.FenceLoan) (api.Written, error)
	Recall(context.Context, api.RecallLoan) (api.Written, error)
	Confirm(context.Context, api.ConfirmLoan) (api.Written, error)
	WriteHost(context.Context, api.WriteHost) (api.HostWritten, error)
}

// Catalog is the part of the controller that providers report to.
type Catalog interface {
	PublishCatalog(ctx context.Context, provider string, catalog api.Catalog) error
	ProviderView(ctx context.Context, provider string, ask []string) (api.ProviderView, error)
	ReportStray(context.Context, api.Stray) error
}

// Controller holds the activities that update the controller.
type Controller struct {
	Ledger  Ledger
	Catalog Catalog
}

// written turns a controller's final "no" into a refusal of the write: what it
// does not know, or what contradicts its books, will not get better by retries.
func written(w api.Written, err error) (api.Written, error) {
	if refusal := finalNo(err); refusal != nil {
		return api.Written{Refusal: refusal}, nil
	}
	return w, err
}

// finalNo answers the refusal that an error of the controller is, or nil.
func finalNo(err error) *api.Refusal {
	var e *api.Error
	if !errors.As(err, &e) || e.Foreign {
		return nil
	}
	switch e.Status {
	case http.StatusNotFound, http.StatusConflict:
		return &api.Refusal{Code: "unknown", Text: e.Detail}
	case http.StatusUnprocessableEntity:
		return &api.Refusal{Code: "invalid", Text: e.Error()}
	}
	return nil
}

// Intend opens a loan's row.
func (c *Controller) Intend(ctx context.Context, in api.IntendLoan) (api.Written, error) {
	return written(c.Ledger.Intend(ctx, in))
}

// Commit takes a grant into the total.
func (c *Controller) Commit(ctx context.Context, in api.CommitLoan) (api.Written, error) {
	return written(c.Ledger.Commit(ctx, in))
}

// Refuse closes a loan that was not granted.
func (c *Controller) Refuse(ctx context.Context, in api.RefuseLoan) (api.Written, error) {
	return written(c.Ledger.Refuse(ctx, in))
}

// Fence takes unused units out of the total.
func (c *Controller) Fence(ctx context.Context, in api.FenceLoan) (api.Written, error) {
	return written(c.Ledger.Fence(ctx, in))
}

// Recall takes recalled units out of the total.
func (c *Controller) Recall(ctx context.Context, in api.RecallLoan) (api.Written, error) {
	return written(c.Ledger.Recall(ctx, in))
}

// Confirm records that fenced units are back.
func (c *Controller) Confirm(ctx context.Context, in api.ConfirmLoan) (api.Written, error) {
	return written(c.Ledger.Confirm(ctx, in))
}

// WriteHost writes one change to a host's row.
func (c *Controller) WriteHost(ctx context.Context, in api.WriteHost) (api.HostWritten, error) {
	w, err := c.Ledger.WriteHost(ctx, in)
	if refusal := finalNo(err); refusal != nil {
		return api.HostWritten{Refusal: refusal}, nil
	}
	return w, err
}

// Publish publishes what a provider offers.
func (c *Controller) Publish(ctx context.Context, provider string, catalog api.Catalog) error {
	return c.Catalog.PublishCatalog(ctx, provider, catalog)
}

// View reads what borrowing from a provider is decided upon.
func (c *Controller) View(ctx context.Context, in View) (api.ProviderView, error) {
	return c.Catalog.ProviderView(ctx, in.Provider, in.Ask)
}

// Stray records a stray.
func (c *Controller) Stray(ctx context.Context, s api.Stray) error {
	return c.Catalog.ReportStray(ctx, s)
}

// WorkflowStarter starts the workflows of loans and hosts, once for each id.
type WorkflowStarter interface {
	StartLoan(ctx context.Context, request cluster.LoanRequest) error
	StartHost(ctx context.Context, request cluster.HostRequest) error
}

// Starter holds the activities that start loans and hosts.
type Starter struct{ Workflows WorkflowStarter }

// StartLoan starts a loan's workflow; one that was started before is left alone.
func (s *Starter) StartLoan(ctx context.Context, request cluster.LoanRequest) error {
	return s.Workflows.StartLoan(ctx, request)
}

// StartHosts starts the workflows of hosts; those that were started before are
// left alone.
func (s *Starter) StartHosts(ctx context.Context, requests []cluster.HostRequest) error {
	for _, r := range requests {
		if err := s.Workflows.StartHost(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
