package cluster

import (
	"slices"
	"testing"
)

func TestAResourceWithoutElasticSectionNeitherBorrowsNorHolds(t *testing.T) {
	tests := []struct {
		name            string
		in              SharedResource
		ceiling, weight int64
		idleTime, hold  Duration
	}{
		{name: "elastic", in: SharedResource{
			Owned: 4, KeepBack: 1, UnitWeight: 1000,
			Elastic: &Elastic{MaxBorrowed: 8, IdleTime: Minute, MinimumHold: Hour},
		}, ceiling: 11, weight: 1000, idleTime: Minute, hold: Hour},
		{name: "not elastic", in: SharedResource{Owned: 4, KeepBack: 1}, ceiling: 3, weight: 1},
		{name: "all kept back", in: SharedResource{Owned: 4, KeepBack: 5}, ceiling: 0, weight: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.in.Ceiling() != test.ceiling || test.in.Weight() != test.weight {
				t.Errorf("ceiling %d, weight %d", test.in.Ceiling(), test.in.Weight())
			}
			if test.in.IdleTime() != test.idleTime || test.in.MinimumHold() != test.hold {
				t.Errorf("idle time %s, minimum hold %s", test.in.IdleTime(), test.in.MinimumHold())
			}
		})
	}
}

func TestALoanIsOpenUntilNothingStandsForIt(t *testing.T) {
	for state, want := range map[LoanState]bool{
		LoanRequested: true, LoanBorrowed: true, LoanReturning: true, LoanReturned: false, LoanRefused: false,
	} {
		if got := state.Open(); got != want {
			t.Errorf("%s is open: %t", state, got)
		}
	}
	l := Loan{Borrowed: 1, Recalled: 2, Fenced: 4, Returned: 8}
	if l.Held() != 7 || l.Granted() != 15 {
		t.Errorf("held %d, granted %d", l.Held(), l.Granted())
	}
}

func TestAJobEndsOnce(t *testing.T) {
	for state, want := range map[JobState]bool{
		JobWaiting: false, JobRunning: false, JobDone: true, JobFailed: true, JobTimeout: true,
	} {
		if got := state.Ended(); got != want {
			t.Errorf("%s has ended: %t", state, got)
		}
	}
}

func TestDemandIsOrderedByResourceThenTemplateThenProvider(t *testing.T) {
	got := []Demand{
		{Resource: "b", Provider: "a"},
		{Template: "d", Provider: "a"},
		{Resource: "a", Provider: "b"},
		{Template: "c", Provider: "b"},
		{Resource: "a", Provider: "a"},
		{Template: "c", Provider: "a"},
	}
	slices.SortFunc(got, CompareDemand)
	for i, want := range []string{"ca", "cb", "da", "aa", "ab", "ba"} {
		if d := got[i]; d.Resource+d.Template+d.Provider != want {
			t.Errorf("row %d is %+v, want %s", i, d, want)
		}
	}
}
