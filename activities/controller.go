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
	var e *api.Error
	if !errors.As(err, &e) || e.Foreign {
		return w, err
	}
	switch e.Status {
	case http.StatusNotFound, http.StatusConflict:
		return api.Written{Refusal: &api.Refusal{Code: "unknown", Text: e.Detail}}, nil
	case http.StatusUnprocessableEntity:
		return api.Written{Refusal: &api.Refusal{Code: "invalid", Text: e.Error()}}, nil
	}
	return w, err
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

// LoanStarter starts the workflow of a loan, once for each id.
type LoanStarter interface {
	StartLoan(ctx context.Context, request cluster.LoanRequest) error
}

// Starter holds the activity that starts loans.
type Starter struct{ Loans LoanStarter }

// StartLoan starts a loan's workflow; one that was started before is left alone.
func (s *Starter) StartLoan(ctx context.Context, request cluster.LoanRequest) error {
	return s.Loans.StartLoan(ctx, request)
}
