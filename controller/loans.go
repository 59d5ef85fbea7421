package controller

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/store"
)

// write applies one change to a loan's row, and keeps beside the row what the change brings with it.
func (s *Service) write(ctx context.Context, actor string, in judge.LoanWrite) (api.Written, error) {
	return s.writeLoan(ctx, actor, in, 0)
}

// writeLoan is write, of a fence that takes no more than so many units.
func (s *Service) writeLoan(ctx context.Context, actor string, in judge.LoanWrite, most int64) (api.Written, error) {
	var written api.Written
	err := s.update(ctx, actor, func(w *work) error {
		r, books, err := w.loanBooks(in)
		if err != nil {
			return err
		}
		if err := s.recountLoan(ctx, w, &books, in, most); err != nil {
			return err
		}
		answer, err := books.Write(in, w.now)
		written = answer.Written
		if err != nil {
			return err
		}
		w.decided(record.Entry{Loan: &record.LoanEntry{Books: books, Write: in, Answer: answer}})
		if answer.Event.Kind == "" {
			return nil
		}
		return w.keepLoan(r, answer)
	})
	if err == nil && in.Intend == nil && in.Fence == nil && s.config.Backend != nil {
		s.settleSoon(ctx, in.At().Resource)
	}
	return written, err
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

// loanBooks reads the books around one loan. A closed row is not among a
// resource's open ones, so it is added: repeated writes must find it.
func (w *work) loanBooks(in judge.LoanWrite) (r store.Resource, books judge.LoanBooks, err error) {
	at := in.At()
	if r, err = w.resource(at.Resource); err != nil {
		return r, books, err
	}
	account, err := w.account(r)
	if err != nil {
		return r, books, err
	}
	row, found, err := w.Loan(at.Loan)
	if err != nil {
		return r, books, err
	}
	if !found && in.Intend != nil {
		row.Provider = in.Intend.Request.Provider
	}
	if err := w.fenced(row.Provider); err != nil {
		return r, books, err
	}
	if found && row.Resource != at.Resource {
		return r, books, refuse(http.StatusConflict, "loan %s is one of %s, not of %s", at.Loan, row.Resource, at.Resource)
	}
	if _, open := account.Loan(at.Loan); found && !open {
		account.Loans = append(account.Loans, row)
		slices.SortFunc(account.Loans, func(a, b cluster.Loan) int { return cmp.Compare(a.ID, b.ID) })
	}
	books = judge.LoanBooks{Resource: r.Resource, InUse: account.InUse, Loans: account.Loans, Lendings: account.Lendings, Idle: r.Idle}
	switch {
	case in.Intend != nil:
		books.Demand, err = w.demandFor(at.Resource, "", in.Intend.Request.Provider)
	case in.Commit != nil || in.Refuse != nil:
		books.Offer, err = w.offerOf(row)
	}
	return r, books, err
}

// offerOf answers the offer that a loan came from, or nil where it stands no more.
func (w *work) offerOf(row cluster.Loan) (*cluster.Offer, error) {
	offers, err := w.Offers()
	offer, stands := cluster.FindOffer(offers, row.Provider, row.Resource)
	if err != nil || !stands {
		return nil, err
	}
	return &offer, nil
}

// keepLoan stores the row, what changes beside it, and the audit record.
func (w *work) keepLoan(r store.Resource, answer judge.LoanAnswer) error {
	event := answer.Event
	err := w.SaveLoan(event.After)
	if answer.Idle != nil {
		r.Idle = *answer.Idle
		err = errors.Join(err, w.SaveResource(r))
	}
	if answer.Demand != nil {
		err = errors.Join(err, w.SaveDemand(*answer.Demand))
	}
	if answer.Offer != nil {
		err = errors.Join(err, w.SaveOffer(*answer.Offer))
	}
	if err != nil || !event.Material() {
		return err
	}
	var before any
	if event.Before.State != "" {
		before = event.Before
	}
	return w.record(api.Change{
		Kind: api.KindLoanWrite + event.Kind, Subject: event.Loan, Why: event.Why, Resource: event.Resource,
		TotalBefore: event.TotalBefore, TotalAfter: event.TotalAfter,
	}, before, event.After)
}

// Intend opens a loan's row and uses up the demand it answers.
func (s *Service) Intend(ctx context.Context, actor string, in api.IntendLoan) (api.Written, error) {
	return s.write(ctx, actor, judge.LoanWrite{Intend: &in})
}

// Commit takes a grant into the total; the lender's refusals are forgotten.
func (s *Service) Commit(ctx context.Context, actor string, in api.CommitLoan) (api.Written, error) {
	return s.write(ctx, actor, judge.LoanWrite{Commit: &in})
}

// Refuse closes a loan that was not granted; its lender is left alone for a while.
func (s *Service) Refuse(ctx context.Context, actor string, in api.RefuseLoan) (api.Written, error) {
	return s.write(ctx, actor, judge.LoanWrite{Refuse: &in})
}

// Fence takes unused units of a loan out of the total: what has been idle long
// enough and is this loan's turn, or exactly what an operator asks for.
func (s *Service) Fence(ctx context.Context, actor string, in api.FenceLoan) (api.Written, error) {
	if s.config.Backend != nil {
		return s.fenceLoan(ctx, actor, judge.LoanWrite{Fence: &in})
	}
	return s.write(ctx, actor, judge.LoanWrite{Fence: &in})
}

// Recall takes units that the lender wants back out of the total at once.
func (s *Service) Recall(ctx context.Context, actor string, in api.RecallLoan) (api.Written, error) {
	return s.write(ctx, actor, judge.LoanWrite{Recall: &in})
}

// Confirm records that fenced units are back with the lender.
func (s *Service) Confirm(ctx context.Context, actor string, in api.ConfirmLoan) (api.Written, error) {
	return s.write(ctx, actor, judge.LoanWrite{Confirm: &in})
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
