package judge

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
)

// LoanWrite is one write to a loan's row; exactly one field is set.
type LoanWrite struct {
	Intend  *api.IntendLoan  `json:"intend,omitempty"`
	Commit  *api.CommitLoan  `json:"commit,omitempty"`
	Refuse  *api.RefuseLoan  `json:"refuse,omitempty"`
	Fence   *api.FenceLoan   `json:"fence,omitempty"`
	Recall  *api.RecallLoan  `json:"recall,omitempty"`
	Confirm *api.ConfirmLoan `json:"confirm,omitempty"`
}

// At says which row is written, and by which step.
func (w LoanWrite) At() api.LedgerWrite {
	switch {
	case w.Intend != nil:
		return w.Intend.LedgerWrite
	case w.Commit != nil:
		return w.Commit.LedgerWrite
	case w.Refuse != nil:
		return w.Refuse.LedgerWrite
	case w.Fence != nil:
		return w.Fence.LedgerWrite
	case w.Recall != nil:
		return w.Recall.LedgerWrite
	case w.Confirm != nil:
		return w.Confirm.LedgerWrite
	}
	return api.LedgerWrite{}
}

// LoanBooks is all that a write to a loan's row is judged on.
type LoanBooks struct {
	Resource cluster.SharedResource `json:"resource"`
	InUse    int64                  `json:"in_use"`
	// Loans are the resource's open ones and the one that is written, by id.
	Loans    []cluster.Loan    `json:"loans"`
	Lendings []cluster.Lending `json:"lendings,omitempty"`
	Idle     cluster.IdleClock `json:"idle,omitempty"`
	// Demand is what is left of it for the offer; read for an intent.
	Demand cluster.Demand `json:"demand,omitzero"`
	// Most is how many units a fence may take at most, where that is limited: what became idle
	// after the backend was asked to withhold the rest waits for the next fence.
	Most *int64 `json:"most,omitempty"`
	// Offer is the one that the loan came from, where it still stands; read where it may change.
	Offer *cluster.Offer `json:"offer,omitempty"`
}

// Account answers the books in the ledger's form.
func (b LoanBooks) Account() ledger.Account {
	a := ledger.Account{Resource: b.Resource.Name, Owned: b.Resource.Owned, InUse: b.InUse, Loans: b.Loans, Lendings: b.Lendings}
	if b.Resource.Elastic != nil {
		a.MaxBorrowed = b.Resource.Elastic.MaxBorrowed
	}
	return a
}

// LoanAnswer is what becomes of a write to a loan's row.
type LoanAnswer struct {
	api.Written
	// Event is what changed; where its kind is empty, nothing did.
	Event ledger.Event `json:"-"`
	// Idle, Demand and Offer are those of the books after the write, where it changed them.
	Idle   *cluster.IdleClock `json:"idle,omitempty"`
	Demand *cluster.Demand    `json:"demand,omitempty"`
	Offer  *cluster.Offer     `json:"offer,omitempty"`
}

// Write judges one write.
func (b LoanBooks) Write(w LoanWrite, now cluster.Time) (answer LoanAnswer, err error) {
	account, at := b.Account(), w.At()
	row, _ := account.Loan(at.Loan)
	answer.Loan, answer.Event, err = account.Judge(at.Loan, at.Step, b.change(w, row, now), now)
	if answer.Refusal = refusalOf(err); answer.Refusal != nil {
		return answer, nil
	}
	if err == nil && answer.Event.Kind != "" {
		b.follow(w, &answer, now)
	}
	return answer, err
}

// change answers the ledger's form of a write.
func (b LoanBooks) change(w LoanWrite, row cluster.Loan, now cluster.Time) ledger.Change {
	switch {
	case w.Intend != nil:
		return ledger.Intend{LoanRequest: w.Intend.Request, Demanded: b.Demand.Units}
	case w.Commit != nil:
		return ledger.Commit{Granted: w.Commit.Granted, HoldUntil: policy.HoldUntil(row.Terms, b.Resource.MinimumHold(), now)}
	case w.Refuse != nil:
		return ledger.Refuse{Why: w.Refuse.Why}
	case w.Fence != nil:
		return b.fence(*w.Fence, row, now)
	case w.Recall != nil:
		return ledger.Recall{Units: w.Recall.Units, Why: w.Recall.Why}
	}
	return ledger.Confirm{Units: w.Confirm.Units}
}

// fence fences what has been idle long enough and is this loan's turn, or exactly what an operator asks for.
func (b LoanBooks) fence(in api.FenceLoan, row cluster.Loan, now cluster.Time) ledger.Change {
	units, again := policy.ReturnUnits(b.Loans, b.Idle, b.Resource.IdleTime(), row, now)
	if b.Most != nil {
		units = min(units, *b.Most)
	}
	if in.Units > 0 {
		return ledger.Fence{Units: in.Units, Exact: true, AskAgain: again, Why: in.Why}
	}
	return ledger.Fence{Units: units, AskAgain: again, Why: b.idleReason(row, units)}
}

func (b LoanBooks) idleReason(row cluster.Loan, units int64) string {
	switch {
	case units == 0:
		return ""
	case row.Recalled > 0:
		return fmt.Sprintf("%d units unused and recalled by %s", units, row.Provider)
	}
	return fmt.Sprintf("%d units idle for %s since %s", units, b.Resource.IdleTime(), b.Idle.Since())
}

// follow answers what a write that changed the row changes beside it.
func (b LoanBooks) follow(w LoanWrite, answer *LoanAnswer, now cluster.Time) {
	event := answer.Event
	if fenced := event.Before.Borrowed - event.After.Borrowed; fenced > 0 && w.Fence != nil {
		idle := b.Idle.Take(fenced)
		answer.Idle = &idle
	}
	switch {
	case w.Intend != nil && event.After.Units > 0:
		demand := b.Demand
		demand.Units -= event.After.Units
		answer.Demand = &demand
	case b.Offer == nil:
	case w.Commit != nil:
		offer := *b.Offer
		offer.Refusals, offer.BackoffUntil = 0, 0
		answer.Offer = &offer
	case w.Refuse != nil:
		offer := policy.RefusedOffer(*b.Offer, w.Refuse.RetryAfter, now)
		answer.Offer = &offer
	}
}
