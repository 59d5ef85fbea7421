package ledger

import (
	"fmt"

	"xce.internal/elastic/cluster"
)

// Change is one kind of write to a loan's row.
type Change interface {
	kind() string
	// apply changes row, or refuses and leaves it unused.
	apply(a Account, row *cluster.Loan, now cluster.Time) error
}

// Intend opens the row before the lender is asked. It is clipped to what is
// still demanded and may still be borrowed; where that is nothing, the row is
// closed as it is opened, so that a late copy of the same write finds it.
type Intend struct {
	cluster.LoanRequest
	// Demanded is the demand for the offer at this moment.
	Demanded int64
}

func (Intend) kind() string { return "intend" }

func (c Intend) apply(a Account, row *cluster.Loan, now cluster.Time) error {
	if row.State != "" {
		return refuse(Invalid, "loan %s is %s already", row.ID, row.State)
	}
	if c.Units < 1 {
		return refuse(Invalid, "loan %s of %d units makes no sense", row.ID, c.Units)
	}
	id := row.ID
	row.LoanRequest = c.LoanRequest
	row.ID, row.Resource = id, a.Resource
	row.State, row.Intended, row.Why = cluster.LoanRequested, now, c.Reason
	room := a.MaxBorrowed - a.Borrowed() - a.Requested()
	row.Units = min(c.Units, c.Demanded, room)
	if row.Units < 1 {
		row.Units, row.State, row.Closed = 0, cluster.LoanRefused, now
		row.Why = fmt.Sprintf("not asked for: %d still demanded, %d may still be borrowed", max(c.Demanded, 0), max(room, 0))
	}
	return nil
}

// Commit tells what the lender granted. The row takes as much into the total
// as was asked for and may be borrowed; any surplus is fenced at once.
type Commit struct {
	Granted int64
	// HoldUntil is when the minimum hold is over.
	HoldUntil cluster.Time
}

func (Commit) kind() string { return "commit" }

func (c Commit) apply(a Account, row *cluster.Loan, now cluster.Time) error {
	if row.State != cluster.LoanRequested {
		return refuse(Invalid, "loan %s is %s and cannot be granted", row.ID, row.State)
	}
	if c.Granted < 1 {
		return refuse(Invalid, "a grant of %d units to loan %s makes no sense", c.Granted, row.ID)
	}
	row.Borrowed = max(min(c.Granted, row.Units, a.MaxBorrowed-a.Borrowed()), 0)
	row.Fenced = c.Granted - row.Borrowed
	row.State, row.Committed = cluster.LoanBorrowed, now
	row.HoldUntil, row.AskAgain = c.HoldUntil, c.HoldUntil
	row.Why = fmt.Sprintf("%s granted %d of %d", row.Provider, c.Granted, row.Units)
	if row.Fenced > 0 {
		row.State = cluster.LoanReturning
		row.Why += fmt.Sprintf("; %d more than may be used go back", row.Fenced)
	}
	return nil
}

// Refuse closes a loan that was not granted.
type Refuse struct{ Why string }

func (Refuse) kind() string { return "refuse" }

func (c Refuse) apply(_ Account, row *cluster.Loan, now cluster.Time) error {
	if row.State != cluster.LoanRequested {
		return refuse(Invalid, "loan %s is %s and cannot be refused", row.ID, row.State)
	}
	row.State, row.Closed, row.Why = cluster.LoanRefused, now, c.Why
	return nil
}

// Fence takes unused units of the loan out of the total, recalled ones first.
// Those that still count go only as far as the total exceeds what is in use, and
// all together where the lender takes no part of a loan back.
type Fence struct {
	// Units is the most to fence; fewer are fenced where jobs use them.
	Units int64
	// Exact refuses the change whole where not all can be fenced.
	Exact bool
	// AskAgain is kept in the row: when to ask for the next fence.
	AskAgain cluster.Time
	Why      string
}

func (Fence) kind() string { return "fence" }

func (c Fence) apply(a Account, row *cluster.Loan, now cluster.Time) error {
	if here := row.Borrowed + row.Recalled; row.State == cluster.LoanRequested || c.Exact && c.Units > here {
		return refuse(Invalid, "loan %s is %s and has %d units here, not %d", row.ID, row.State, here, c.Units)
	}
	recalled := max(min(c.Units, row.Recalled, a.Unused()), 0)
	borrowed := max(min(c.Units-recalled, row.Borrowed, a.Total()-a.InUse), 0)
	held := now < row.HoldUntil
	part := !row.PartialReturn && borrowed < row.Borrowed
	if c.Exact {
		if err := c.notAll(*row, recalled+borrowed, held, part); err != nil {
			return err
		}
	} else if held || part {
		borrowed = 0
	}
	row.Recalled -= recalled
	row.Borrowed -= borrowed
	row.Fenced += recalled + borrowed
	row.AskAgain = c.AskAgain
	if recalled+borrowed > 0 {
		row.State, row.Why = cluster.LoanReturning, c.Why
	}
	return nil
}

// notAll refuses an exact fence of which not all units can go back.
func (c Fence) notAll(row cluster.Loan, units int64, held, part bool) error {
	switch {
	case c.Units > row.Recalled && held:
		return refuse(Hold, "loan %s is held until %s, as %s demands", row.ID, row.HoldUntil, row.Provider)
	case units < c.Units:
		return refuse(InUse, "%d of %d units are in use", c.Units-units, c.Units)
	case c.Units > row.Recalled && part:
		return refuse(Invalid, "%s takes no part of loan %s back; return all %d units", row.Provider, row.ID, row.Borrowed+row.Recalled)
	}
	return nil
}

// Recall takes units that the lender wants back out of the total at once, used or not.
type Recall struct {
	Units int64
	Why   string
}

func (Recall) kind() string { return "recall" }

func (c Recall) apply(_ Account, row *cluster.Loan, _ cluster.Time) error {
	if row.State == cluster.LoanRequested || c.Units < 1 {
		return refuse(Invalid, "%d units of loan %s, which is %s, cannot be recalled", c.Units, row.ID, row.State)
	}
	units := min(c.Units, row.Borrowed)
	row.Borrowed -= units
	row.Recalled += units
	row.Why = c.Why
	return nil
}

// Confirm tells that the lender has fenced units back; the last ones close the loan.
type Confirm struct{ Units int64 }

func (Confirm) kind() string { return "confirm" }

func (c Confirm) apply(_ Account, row *cluster.Loan, now cluster.Time) error {
	if c.Units < 1 || c.Units > row.Fenced {
		return refuse(Invalid, "%d units of loan %s cannot be back with %s: %d are fenced", c.Units, row.ID, row.Provider, row.Fenced)
	}
	row.Fenced -= c.Units
	row.Returned += c.Units
	row.Why = fmt.Sprintf("%s has %d of %d units back", row.Provider, row.Returned, row.Granted())
	switch {
	case row.Held() == 0:
		row.State, row.Closed, row.AskAgain = cluster.LoanReturned, now, 0
	case row.Fenced == 0:
		row.State = cluster.LoanBorrowed
	}
	return nil
}
