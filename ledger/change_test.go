package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"xce.internal/elastic/cluster"
)

const (
	id  = "loan/vcs/pool-1"
	now = cluster.Time(1_767_261_600_000)
)

// books is an account with one loan of 4, of which the columns are given.
func books(state cluster.LoanState, borrowed, recalled, fenced, returned int64) Account {
	row := cluster.Loan{State: state, Borrowed: borrowed, Recalled: recalled, Fenced: fenced, Returned: returned, Step: 1}
	row.ID, row.Provider, row.Resource, row.Units, row.PartialReturn = id, "pool", "vcs", 4, true
	return Account{Resource: "vcs", Owned: 10, MaxBorrowed: 8, Loans: []cluster.Loan{row}}
}

// outcome says in short how a write ended: the row, or the refusal's code.
func outcome(row cluster.Loan, err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return string(refusal.Code)
	}
	return brief(row)
}

// brief is a row's state and columns: borrowed, recalled, fenced, returned.
func brief(l cluster.Loan) string {
	return fmt.Sprintf("%s %d %d %d %d", l.State, l.Borrowed, l.Recalled, l.Fenced, l.Returned)
}

// clone copies an account, so that a write in place would show.
func clone(a Account) Account {
	a.Loans, a.Lendings = slices.Clone(a.Loans), slices.Clone(a.Lendings)
	return a
}

func TestEveryChangeInEveryState(t *testing.T) {
	intend := Intend{LoanRequest: cluster.LoanRequest{Units: 4}, Demanded: 4}
	changes := []Change{
		intend,
		Commit{Granted: 4},
		Refuse{Why: "quota"},
		Fence{Units: 3},
		Fence{Units: 3, Exact: true},
		Recall{Units: 1},
		Confirm{Units: 1},
	}
	tests := []struct {
		name string
		in   Account
		want []string // by changes
	}{
		{"no row", Account{Resource: "vcs", Owned: 10, MaxBorrowed: 8}, []string{
			"requested 0 0 0 0", "unknown", "unknown",
			"unknown", "unknown", "unknown", "unknown",
		}},
		{"requested", books(cluster.LoanRequested, 0, 0, 0, 0), []string{
			"invalid", "borrowed 4 0 0 0", "refused 0 0 0 0",
			"invalid", "invalid", "invalid", "invalid",
		}},
		{"borrowed", books(cluster.LoanBorrowed, 4, 0, 0, 0), []string{
			"invalid", "invalid", "invalid",
			"returning 1 0 3 0", "returning 1 0 3 0", "borrowed 3 1 0 0", "invalid",
		}},
		{"borrowed and recalled", books(cluster.LoanBorrowed, 2, 2, 0, 0), []string{
			"invalid", "invalid", "invalid",
			"returning 1 0 3 0", "returning 1 0 3 0", "borrowed 1 3 0 0", "invalid",
		}},
		{"returning", books(cluster.LoanReturning, 2, 0, 2, 0), []string{
			"invalid", "invalid", "invalid",
			"returning 0 0 4 0", "invalid", "returning 1 1 2 0", "returning 2 0 1 1",
		}},
		{"returning the last", books(cluster.LoanReturning, 0, 0, 1, 3), []string{
			"invalid", "invalid", "invalid",
			"returning 0 0 1 3", "invalid", "returning 0 0 1 3", "returned 0 0 0 4",
		}},
		{"returning the first", books(cluster.LoanReturning, 3, 0, 1, 0), []string{
			"invalid", "invalid", "invalid",
			"returning 0 0 4 0", "returning 0 0 4 0", "returning 2 1 1 0", "borrowed 3 0 0 1",
		}},
		{"returned", books(cluster.LoanReturned, 0, 0, 0, 4), []string{
			"closed", "closed", "closed", "closed", "closed", "closed", "closed",
		}},
		{"refused", books(cluster.LoanRefused, 0, 0, 0, 0), []string{
			"closed", "closed", "closed", "closed", "closed", "closed", "closed",
		}},
	}
	for _, test := range tests {
		for i, change := range changes {
			t.Run(fmt.Sprintf("%s, %s %d", test.name, change.kind(), i), func(t *testing.T) {
				a := clone(test.in)
				row, event, err := a.Write(id, 2, change, now)
				if got := outcome(row, err); got != test.want[i] {
					t.Fatalf("got %s (%v), want %s", got, err, test.want[i])
				}
				if err != nil {
					if !reflect.DeepEqual(a, test.in) || event.Kind != "" {
						t.Errorf("a refused write left %+v, event %+v", a, event)
					}
					return
				}
				if kept, _ := a.Loan(id); !reflect.DeepEqual(kept, row) || row.Step != 2 {
					t.Errorf("answered %+v, kept %+v", row, kept)
				}
				if event.Kind != change.kind() || event.TotalBefore != test.in.Total() || event.TotalAfter != a.Total() {
					t.Errorf("event %+v, total %d then %d", event, test.in.Total(), a.Total())
				}
			})
		}
	}
}

func TestIntendIsClippedToDemandAndLimit(t *testing.T) {
	tests := []struct {
		name                 string
		units, demanded, max int64
		borrowed, requested  int64 // by other loans
		want                 int64
		state                cluster.LoanState
		why                  string
	}{
		{name: "all of it", units: 4, demanded: 6, max: 8, want: 4, state: cluster.LoanRequested, why: "jobs wait"},
		{name: "one unit", units: 1, demanded: 1, max: 1, want: 1, state: cluster.LoanRequested, why: "jobs wait"},
		{name: "less is demanded by now", units: 4, demanded: 3, max: 8, want: 3, state: cluster.LoanRequested, why: "jobs wait"},
		{name: "the limit leaves less", units: 4, demanded: 6, max: 8, borrowed: 3, requested: 3, want: 2, state: cluster.LoanRequested, why: "jobs wait"},
		{name: "nothing is demanded any more", units: 4, demanded: 0, max: 8, state: cluster.LoanRefused, why: "not asked for: 0 still demanded, 8 may still be borrowed"},
		{name: "the limit is reached", units: 4, demanded: 2, max: 8, borrowed: 8, state: cluster.LoanRefused, why: "not asked for: 2 still demanded, 0 may still be borrowed"},
		{name: "the limit was lowered", units: 4, demanded: -1, max: 2, borrowed: 4, state: cluster.LoanRefused, why: "not asked for: 0 still demanded, 0 may still be borrowed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := Account{Resource: "vcs", MaxBorrowed: test.max, Loans: []cluster.Loan{
				{LoanRequest: cluster.LoanRequest{ID: "a", Units: test.borrowed}, State: cluster.LoanBorrowed, Borrowed: test.borrowed},
				{LoanRequest: cluster.LoanRequest{ID: "b", Units: test.requested}, State: cluster.LoanRequested},
			}}
			row, _, err := a.Write(id, 1, Intend{LoanRequest: cluster.LoanRequest{Units: test.units, Reason: "jobs wait"}, Demanded: test.demanded}, now)
			if err != nil || row.State != test.state || row.Units != test.want || row.Why != test.why {
				t.Errorf("got %s %d %q (%v), want %s %d %q", row.State, row.Units, row.Why, err, test.state, test.want, test.why)
			}
			if row.Intended != now || (row.Closed == now) != (test.state == cluster.LoanRefused) {
				t.Errorf("intended %s, closed %q", row.Intended, row.Closed)
			}
			if want := test.requested + test.want; a.Requested() != want {
				t.Errorf("%d are requested, want %d", a.Requested(), want)
			}
			if row.ID != id || row.Resource != "vcs" {
				t.Errorf("the row is %q of %q", row.ID, row.Resource)
			}
		})
	}
}

func TestIntendOfNothingIsRefused(t *testing.T) {
	a := Account{Resource: "vcs", MaxBorrowed: 8}
	row, _, err := a.Write(id, 1, Intend{Demanded: 4}, now)
	if got := outcome(row, err); got != "invalid" || len(a.Loans) > 0 {
		t.Errorf("got %s, %d rows", got, len(a.Loans))
	}
}

func TestCommitTakesWhatWasAskedForAndMayBeBorrowed(t *testing.T) {
	tests := []struct {
		name         string
		granted, max int64
		want, why    string
	}{
		{"all", 4, 8, "borrowed 4 0 0 0", "pool granted 4 of 4"},
		{"one unit", 1, 8, "borrowed 1 0 0 0", "pool granted 1 of 4"},
		{"a part", 3, 8, "borrowed 3 0 0 0", "pool granted 3 of 4"},
		{"more than asked", 6, 8, "returning 4 0 2 0", "pool granted 6 of 4; 2 more than may be used go back"},
		{"the limit was lowered", 4, 1, "returning 1 0 3 0", "pool granted 4 of 4; 3 more than may be used go back"},
		{"nothing may be borrowed any more", 4, 0, "returning 0 0 4 0", "pool granted 4 of 4; 4 more than may be used go back"},
		{"nothing granted is no grant", 0, 8, "invalid", ""},
		{"less than nothing", -1, 8, "invalid", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := books(cluster.LoanRequested, 0, 0, 0, 0)
			a.MaxBorrowed = test.max
			row, _, err := a.Write(id, 2, Commit{Granted: test.granted, HoldUntil: now + 7}, now)
			if got := outcome(row, err); got != test.want {
				t.Fatalf("got %s, want %s", got, test.want)
			}
			if err == nil && (row.Why != test.why || row.Committed != now || row.HoldUntil != now+7 || row.AskAgain != now+7 || row.Granted() != test.granted) {
				t.Errorf("got %+v", row)
			}
		})
	}
}

func TestFenceTakesOnlyWhatIsUnused(t *testing.T) {
	tests := []struct {
		name string
		// The loan's units that are borrowed and recalled; another loan's that are recalled.
		borrowed, recalled, others int64
		owned, inUse               int64
		held                       cluster.Duration // from now on
		whole                      bool
		fence                      Fence
		want                       string
	}{
		{name: "unused", borrowed: 4, fence: Fence{Units: 3}, want: "returning 1 0 3 0"},
		{name: "more than the loan has", borrowed: 4, fence: Fence{Units: 9}, want: "returning 0 0 4 0"},
		{name: "some in use", borrowed: 4, inUse: 3, fence: Fence{Units: 4}, want: "returning 3 0 1 0"},
		{name: "all in use", borrowed: 4, inUse: 4, fence: Fence{Units: 4}, want: "borrowed 4 0 0 0"},
		{name: "owned ones are used first", owned: 3, borrowed: 4, inUse: 3, fence: Fence{Units: 4}, want: "returning 0 0 4 0"},
		{name: "overdraft", borrowed: 4, inUse: 6, fence: Fence{Units: 4}, want: "borrowed 4 0 0 0"},
		{name: "less than nothing", borrowed: 4, fence: Fence{Units: -1}, want: "borrowed 4 0 0 0"},
		{name: "recalled go first", borrowed: 2, recalled: 2, inUse: 1, fence: Fence{Units: 3}, want: "returning 1 0 3 0"},
		{name: "recalled and in use", borrowed: 0, recalled: 4, inUse: 3, fence: Fence{Units: 4}, want: "returning 0 3 1 0"},
		{name: "what another lender recalled is not unused", borrowed: 4, others: 4, inUse: 4, fence: Fence{Units: 4}, want: "borrowed 4 0 0 0"},
		{name: "nor to an operator", borrowed: 4, others: 4, inUse: 4, fence: Fence{Units: 4, Exact: true}, want: "in-use"},
		{name: "held", borrowed: 4, held: 1, fence: Fence{Units: 4}, want: "borrowed 4 0 0 0"},
		{name: "held until now", borrowed: 4, held: 0, fence: Fence{Units: 4}, want: "returning 0 0 4 0"},
		{name: "recalled ones are not held", borrowed: 2, recalled: 2, held: 1, fence: Fence{Units: 4}, want: "returning 2 0 2 0"},
		{name: "exact", borrowed: 4, inUse: 1, fence: Fence{Units: 3, Exact: true}, want: "returning 1 0 3 0"},
		{name: "exact, in use", borrowed: 4, inUse: 2, fence: Fence{Units: 3, Exact: true}, want: "in-use"},
		{name: "exact, held", borrowed: 4, held: 1, fence: Fence{Units: 3, Exact: true}, want: "hold"},
		{name: "exact, recalled are not held", borrowed: 1, recalled: 3, held: 1, fence: Fence{Units: 3, Exact: true}, want: "returning 1 0 3 0"},
		{name: "exact, more than the loan has", borrowed: 4, fence: Fence{Units: 5, Exact: true}, want: "invalid"},
		{name: "whole", borrowed: 4, whole: true, fence: Fence{Units: 4}, want: "returning 0 0 4 0"},
		{name: "whole, some in use", borrowed: 4, whole: true, inUse: 1, fence: Fence{Units: 4}, want: "borrowed 4 0 0 0"},
		{name: "whole, the recalled part goes", borrowed: 2, recalled: 2, whole: true, inUse: 1, fence: Fence{Units: 4}, want: "returning 2 0 2 0"},
		{name: "whole, exactly a part", borrowed: 4, whole: true, fence: Fence{Units: 3, Exact: true}, want: "invalid"},
		{name: "whole, exactly what is recalled", borrowed: 2, recalled: 2, whole: true, fence: Fence{Units: 2, Exact: true}, want: "returning 2 0 2 0"},
		{name: "whole, exactly all", borrowed: 4, whole: true, fence: Fence{Units: 4, Exact: true}, want: "returning 0 0 4 0"},
		{name: "whole, exactly all, some in use", borrowed: 4, whole: true, inUse: 1, fence: Fence{Units: 4, Exact: true}, want: "in-use"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := books(cluster.LoanBorrowed, test.borrowed, test.recalled, 0, 0)
			a.Owned, a.InUse = test.owned, test.inUse
			a.Loans[0].PartialReturn = !test.whole
			a.Loans[0].HoldUntil = now.Add(test.held)
			a.Loans = append(a.Loans, cluster.Loan{LoanRequest: cluster.LoanRequest{ID: "z"}, State: cluster.LoanBorrowed, Recalled: test.others})
			test.fence.AskAgain, test.fence.Why = now+5, "idle"
			row, _, err := a.Write(id, 2, test.fence, now)
			if got := outcome(row, err); got != test.want {
				t.Fatalf("got %s (%v), want %s", got, err, test.want)
			}
			if err == nil && (row.AskAgain != now+5 || (row.Why == "idle") != (row.Fenced > 0)) {
				t.Errorf("asks again at %s, because %q", row.AskAgain, row.Why)
			}
		})
	}
}

func TestChangesOfNoUnitsAreRefused(t *testing.T) {
	for _, change := range []Change{Confirm{}, Confirm{Units: -1}, Recall{}, Recall{Units: -1}} {
		for _, a := range []Account{books(cluster.LoanRequested, 0, 0, 0, 0), books(cluster.LoanReturning, 2, 0, 2, 0)} {
			before := clone(a)
			row, _, err := a.Write(id, 2, change, now)
			if got := outcome(row, err); got != "invalid" || !reflect.DeepEqual(a, before) {
				t.Errorf("%s loan, %+v: got %s", before.Loans[0].State, change, got)
			}
		}
	}
}

func TestRecallMayLeaveAnOverdraft(t *testing.T) {
	a := books(cluster.LoanBorrowed, 4, 0, 0, 0)
	a.InUse = 13
	row, event, err := a.Write(id, 2, Recall{Units: 9, Why: "wanted"}, now)
	if err != nil || brief(row) != "borrowed 0 4 0 0" || row.Why != "wanted" || !event.Material() {
		t.Fatalf("got %s %+v (%v)", brief(row), event, err)
	}
	if a.Total() != 10 || a.Overdraft() != 3 || a.Unused() != 1 {
		t.Errorf("total %d, overdraft %d, unused %d", a.Total(), a.Overdraft(), a.Unused())
	}
}

func TestStepsAreWrittenOnceAndInOrder(t *testing.T) {
	tests := []struct {
		name string
		step int64
		want string
	}{
		{"the next", 6, "returning 2 0 2 0"},
		{"a later one", 60, "returning 2 0 2 0"},
		{"the same", 5, "borrowed 4 0 0 0"},
		{"an older one", 4, "stale"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := books(cluster.LoanBorrowed, 4, 0, 0, 0)
			a.Loans[0].Step = 5
			before := clone(a)
			row, event, err := a.Write(id, test.step, Fence{Units: 2}, now)
			if got := outcome(row, err); got != test.want {
				t.Fatalf("got %s, want %s", got, test.want)
			}
			if test.step <= 5 && (!reflect.DeepEqual(a, before) || event.Kind != "") {
				t.Errorf("it changed %+v into %+v, event %+v", before, a, event)
			}
		})
	}
}

func TestAClosedLoanAnswersItsLastStepAgain(t *testing.T) {
	a := books(cluster.LoanReturning, 0, 0, 4, 0)
	first, _, err := a.Write(id, 2, Confirm{Units: 4}, now)
	if err != nil || first.Closed != now || first.AskAgain != 0 {
		t.Fatalf("got %+v (%v)", first, err)
	}
	again, event, err := a.Write(id, 2, Confirm{Units: 4}, now+1)
	if err != nil || !reflect.DeepEqual(first, again) || event.Kind != "" {
		t.Errorf("got %+v, event %+v (%v)", again, event, err)
	}
}

func TestWhatMovesUnitsIsMaterial(t *testing.T) {
	tests := []struct {
		name  string
		after cluster.Loan
		want  bool
	}{
		{"the step and when it asks again", cluster.Loan{Step: 9, AskAgain: now, Why: "idle"}, false},
		{"state", cluster.Loan{State: cluster.LoanReturning}, true},
		{"borrowed", cluster.Loan{Borrowed: 1}, true},
		{"recalled", cluster.Loan{Recalled: 1}, true},
		{"fenced", cluster.Loan{Fenced: 1}, true},
		{"returned", cluster.Loan{Returned: 1}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := (Event{After: test.after}).Material(); got != test.want {
				t.Errorf("it is material: %t", got)
			}
		})
	}
}

func TestARefusalSaysWhy(t *testing.T) {
	a := books(cluster.LoanBorrowed, 4, 0, 0, 0)
	a.InUse = 12
	_, _, err := a.Write(id, 2, Fence{Units: 4, Exact: true}, now)
	if want := "2 of 4 units are in use"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}
