package controller_test

import (
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// Units that become idle enough while the fence waits must not keep it from fencing
// what was idle when it began.
func TestAFenceIsNotUndoneByUnitsThatBecomeIdleMeanwhile(t *testing.T) {
	w, s := onSlurm(t)
	w.offer(10)
	var jobs []int64
	for range 6 {
		jobs = append(jobs, s.submit(1, cluster.Told{Reason: "Licenses"}))
	}
	tick(w, s)
	w.intend(loan, 4)
	w.commit(loan, 4)
	tick(w, s)
	w.Clock.Advance(2 * cluster.Hour) // no loan is held any more
	tick(w, s)
	for _, job := range jobs { // one ends every five seconds
		s.end(job)
		w.Clock.Advance(4 * cluster.Second)
		tick(w, s)
	}
	s.lasting = 20 * time.Millisecond
	s.before = func() { w.Clock.Advance(6 * cluster.Second) } // so long a fence waits
	refused := 0
	for step := int64(3); step < 400; {
		written, err := w.Service.Fence(t.Context(), "p1", api.FenceLoan{LedgerWrite: at(loan, step)})
		if err != nil {
			refused++
			t.Log(err)
			continue
		}
		step++
		t.Log(written.Loan.Fenced, written.Loan.AskAgain, w.Clock.Now())
		if written.Loan.Fenced > 0 {
			if refused > 0 {
				t.Errorf("the fence is refused %d times, and then takes %d", refused, written.Loan.Fenced)
			}
			return
		}
		w.Clock.Advance(5 * cluster.Second)
	}
	t.Error("nothing is fenced")
}

// A change of which the outcome is not known is news: what is fenced on it must have lasted.
func TestWhatWasWithheldByAnUnknownOutcomeLastsBeforeItIsFenced(t *testing.T) {
	w, s := idleLoan(t)
	w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 3)})) // 2 are usable from now on
	w.written(w.pool.Confirm(t.Context(), api.ConfirmLoan{LedgerWrite: at(loan, 4), Units: 4}))
	second := "loan/vcs/p1-2"
	job := s.submit(6, cluster.Told{Reason: "Licenses"})
	tick(w, s)
	w.intend(second, 4)
	s.broken, s.late = errAway, true // the grant is made usable, and nobody knows
	w.commit(second, 4)
	s.broken = nil
	tick(w, s)
	s.end(job)
	tick(w, s)
	w.Clock.Advance(2 * cluster.Hour)
	tick(w, s)
	s.lasting = 500 * time.Millisecond
	time.Sleep(s.lasting)
	s.broken, s.late = errAway, true // 4 are withheld, and nobody knows
	in := api.FenceLoan{LedgerWrite: at(second, 3)}
	if _, err := w.Service.Fence(t.Context(), "p1", in); err == nil {
		t.Fatal("want an unknown outcome")
	}
	s.broken = nil
	began := time.Now()
	row := w.written(w.Service.Fence(t.Context(), "p1", in))
	if took := time.Since(began); row.Fenced != 4 || took < s.lasting {
		t.Errorf("%d are fenced %s after they were withheld, want 4 after at least %s", row.Fenced, took, s.lasting)
	}
}
