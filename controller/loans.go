package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
)

// entry is one write to a loan's row in progress.
type entry struct {
	*work
	resource store.Resource
	account  ledger.Account
	row      cluster.Loan // as it is before the write; zero if there is none
}

// write applies one change to a loan's row. `change` makes it from the books;
// `then` keeps beside the row what the change brings with it, and may be nil.
func (s *Service) write(ctx context.Context, actor string, at api.LedgerWrite,
	change func(*entry) (ledger.Change, error), then func(*entry, cluster.Loan) error,
) (api.Written, error) {
	var written api.Written
	err := s.update(ctx, actor, func(w *work) error {
		e, err := w.entry(at)
		if err != nil {
			return err
		}
		c, err := change(e)
		if err != nil {
			return err
		}
		after, event, err := e.account.Write(at.Loan, at.Step, c, w.now)
		written.Loan = after
		if written.Refusal = refusalOf(err); written.Refusal != nil {
			return nil
		}
		if err != nil || event.Kind == "" {
			return err
		}
		return e.keep(event, then)
	})
	return written, err
}

// refusalOf answers the refusal that an error of the ledger is, or nil.
func refusalOf(err error) *api.Refusal {
	var refusal *ledger.Refusal
	if !errors.As(err, &refusal) {
		return nil
	}
	return &api.Refusal{Code: string(refusal.Code), Text: refusal.Text}
}

// demandFor answers what is left of the demand for one offer, or for one template.
func (w *work) demandFor(resource, template, provider string) (cluster.Demand, error) {
	all, err := w.Demand()
	of := cluster.Demand{Resource: resource, Template: template, Provider: provider}
	i := slices.IndexFunc(all, func(d cluster.Demand) bool { return cluster.CompareDemand(d, of) == 0 })
	if i < 0 {
		return cluster.Demand{}, err
	}
	return all[i], err
}

// entry reads the books around one loan. A closed row is not among a
// resource's open ones, so it is added: repeated writes must find it.
func (w *work) entry(at api.LedgerWrite) (*entry, error) {
	r, err := w.resource(at.Resource)
	if err != nil {
		return nil, err
	}
	account, err := w.account(r)
	if err != nil {
		return nil, err
	}
	row, found, err := w.Loan(at.Loan)
	if err != nil {
		return nil, err
	}
	if found && row.Resource != at.Resource {
		return nil, refuse(http.StatusConflict, "loan %s is one of %s, not of %s", at.Loan, row.Resource, at.Resource)
	}
	if _, open := account.Loan(at.Loan); found && !open {
		account.Loans = append(account.Loans, row)
		slices.SortFunc(account.Loans, func(a, b cluster.Loan) int { return cmp.Compare(a.ID, b.ID) })
	}
	return &entry{work: w, resource: r, account: account, row: row}, nil
}

// keep stores the row, the idle clock and the audit record.
func (e *entry) keep(event ledger.Event, then func(*entry, cluster.Loan) error) error {
	if err := e.SaveLoan(event.After); err != nil {
		return err
	}
	if fenced := event.Before.Borrowed - event.After.Borrowed; fenced > 0 && event.Kind == "fence" {
		e.resource.Idle = e.resource.Idle.Take(fenced)
		if err := e.SaveResource(e.resource); err != nil {
			return err
		}
	}
	if then != nil {
		if err := then(e, event.After); err != nil {
			return err
		}
	}
	if !event.Material() {
		return nil
	}
	var before any
	if event.Before.State != "" {
		before = event.Before
	}
	return e.record(api.Change{
		Kind: api.KindLoanWrite + event.Kind, Subject: event.Loan, Why: event.Why, Resource: event.Resource,
		TotalBefore: event.TotalBefore, TotalAfter: event.TotalAfter,
	}, before, event.After)
}

// Intend opens a loan's row and uses up the demand it answers.
func (s *Service) Intend(ctx context.Context, actor string, in api.IntendLoan) (api.Written, error) {
	var demand cluster.Demand
	return s.write(ctx, actor, in.LedgerWrite, func(e *entry) (_ ledger.Change, err error) {
		demand, err = e.demandFor(in.Resource, "", in.Request.Provider)
		return ledger.Intend{LoanRequest: in.Request, Demanded: demand.Units}, err
	}, func(e *entry, row cluster.Loan) error {
		if row.Units == 0 {
			return nil
		}
		demand.Units -= row.Units
		return e.SaveDemand(demand)
	})
}

// Commit takes a grant into the total; the lender's refusals are forgotten.
func (s *Service) Commit(ctx context.Context, actor string, in api.CommitLoan) (api.Written, error) {
	return s.write(ctx, actor, in.LedgerWrite, func(e *entry) (ledger.Change, error) {
		hold := policy.HoldUntil(e.row.Terms, e.resource.Resource.MinimumHold(), e.now)
		return ledger.Commit{Granted: in.Granted, HoldUntil: hold}, nil
	}, func(e *entry, row cluster.Loan) error {
		return e.changeOffer(row, func(o *cluster.Offer) { o.Refusals, o.BackoffUntil = 0, 0 })
	})
}

// Refuse closes a loan that was not granted; its lender is left alone for a while.
func (s *Service) Refuse(ctx context.Context, actor string, in api.RefuseLoan) (api.Written, error) {
	return s.write(ctx, actor, in.LedgerWrite, func(*entry) (ledger.Change, error) {
		return ledger.Refuse{Why: in.Why}, nil
	}, func(e *entry, row cluster.Loan) error {
		return e.changeOffer(row, func(o *cluster.Offer) {
			*o = policy.RefusedOffer(*o, in.RetryAfter, e.now)
		})
	})
}

// changeOffer changes the offer that a loan came from, if it still stands.
func (e *entry) changeOffer(row cluster.Loan, change func(*cluster.Offer)) error {
	offers, err := e.Offers()
	if err != nil {
		return err
	}
	offer, stands := cluster.FindOffer(offers, row.Provider, row.Resource)
	if !stands {
		return nil
	}
	change(&offer)
	return e.SaveOffer(offer)
}

// Fence takes unused units of a loan out of the total: what has been idle long
// enough and is this loan's turn, or exactly what an operator asks for.
func (s *Service) Fence(ctx context.Context, actor string, in api.FenceLoan) (api.Written, error) {
	return s.write(ctx, actor, in.LedgerWrite, func(e *entry) (ledger.Change, error) {
		units, again := policy.ReturnUnits(e.account.Loans, e.resource.Idle, e.resource.Resource.IdleTime(), e.row, e.now)
		if in.Units > 0 {
			return ledger.Fence{Units: in.Units, Exact: true, AskAgain: again, Why: in.Why}, nil
		}
		return ledger.Fence{Units: units, AskAgain: again, Why: idleReason(e, units)}, nil
	}, nil)
}

func idleReason(e *entry, units int64) string {
	if e.row.Recalled > 0 {
		return fmt.Sprintf("%d units unused and recalled by %s", units, e.row.Provider)
	}
	return fmt.Sprintf("%d units idle for %s since %s", units, e.resource.Resource.IdleTime(), e.resource.Idle.Since())
}

// Recall takes units that the lender wants back out of the total.
func (s *Service) Recall(ctx context.Context, actor string, in api.RecallLoan) (api.Written, error) {
	return s.write(ctx, actor, in.LedgerWrite, func(*entry) (ledger.Change, error) {
		return ledger.Recall{Units: in.Units, Why: in.Why}, nil
	}, nil)
}

// Confirm records that fenced units are back with the lender.
func (s *Service) Confirm(ctx context.Context, actor string, in api.ConfirmLoan) (api.Written, error) {
	return s.write(ctx, actor, in.LedgerWrite, func(*entry) (ledger.Change, error) {
		return ledger.Confirm{Units: in.Units}, nil
	}, nil)
}

// Loans lists loans: the open ones, or all.
func (s *Service) Loans(ctx context.Context, everything bool) (loans []cluster.Loan, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		if everything {
			loans, err = tx.Loans()
		} else {
			loans, err = tx.OpenLoans("")
		}
		return err
	})
	return loans, err
}
