package controller_test

import (
	"net/http"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

const loan = "loan/vcs/pool-1"

func TestAnIntentIsClippedToTheDemandAndUsesItUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.offer(10)
	w.submit(5)
	w.Session()
	if demand := w.Status().Demand; len(demand) != 1 || demand[0].Units != 3 || demand[0].Provider != "pool" {
		t.Fatalf("the session demands %+v, want 3 from pool", demand)
	}
	if row := w.intend(loan, 8); row.Units != 3 || row.State != cluster.LoanRequested {
		t.Errorf("the intent is of %d units and %s, want 3 requested", row.Units, row.State)
	}
	if demand := w.Status().Demand; len(demand) != 0 {
		t.Errorf("the demand is left at %+v", demand)
	}
	late := w.intend("loan/vcs/pool-2", 3)
	if late.Units != 0 || late.State != cluster.LoanRefused {
		t.Errorf("an intent without demand is %s of %d units, want it refused", late.State, late.Units)
	}
	w.Session()
	if demand := w.Status().Demand; len(demand) != 0 {
		t.Errorf("the next session buys %+v twice", demand)
	}
	w.submit(2)
	w.Session()
	if demand := w.Status().Demand; len(demand) != 1 || demand[0].Units != 2 {
		t.Errorf("the session with one more job demands %+v, want 2 more", demand)
	}
}

func TestAPartlyAnsweredDemandLeavesTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.offer(10)
	w.submit(6)
	w.Session()
	if row := w.intend(loan, 1); row.Units != 1 {
		t.Fatalf("the intent is of %d units, want 1", row.Units)
	}
	for range 2 {
		if demand := w.Status().Demand; len(demand) != 1 || demand[0].Units != 3 {
			t.Errorf("the demand is %+v, want 3", demand)
		}
		w.Session()
	}
}

func TestTheSameStepAgainAnswersTheRowAndAnOlderOneIsStale(t *testing.T) {
	t.Parallel()
	w, _ := borrowed(t)
	before := w.Status()
	w.Clock.Advance(cluster.Hour)
	if row := w.commit(loan, 9); row.Borrowed != 4 || row.Fenced != 0 {
		t.Errorf("the repeated commit changed the row to %+v", row)
	}
	answer, err := w.pool.Intend(t.Context(), api.IntendLoan{LedgerWrite: at(loan, 1), Request: request(4)})
	w.refusedAs("stale", answer, err)
	if answer.Loan.Borrowed != 4 {
		t.Errorf("a refusal answers the row %+v, want it as it is", answer.Loan)
	}
	if after := w.Status(); after.Revision != before.Revision || after.Resources[0].Total != 6 {
		t.Errorf("revision %d became %d, the total is %d", before.Revision, after.Revision, after.Resources[0].Total)
	}
}

func TestAGrantBeyondTheLimitIsSurplusAndGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 3))
	w.join(8)
	w.offer(10)
	w.submit(5)
	w.Session()
	w.intend(loan, 3)
	row := w.commit(loan, 7)
	if row.Borrowed != 3 || row.Fenced != 4 || row.State != cluster.LoanReturning {
		t.Errorf("of a grant of 7 with room for 3: %+v", row)
	}
	if r := w.Resource("vcs"); r.Total != 5 || r.Returning != 4 {
		t.Errorf("the total is %d with %d returning, want 5 and 4", r.Total, r.Returning)
	}
	row = w.written(w.pool.Confirm(t.Context(), api.ConfirmLoan{LedgerWrite: at(loan, 3), Units: 4}))
	if row.State != cluster.LoanBorrowed || row.Returned != 4 || w.Resource("vcs").Total != 5 {
		t.Errorf("after the surplus is back: %+v", row)
	}
}

func TestARefusalBacksOffTwiceAsLongEachTimeUntilAGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.offer(10)
	w.submit(4)
	for n, want := range []cluster.Duration{30 * cluster.Second, cluster.Minute} {
		w.Session()
		id := loan + strings.Repeat("0", n+1)
		w.intend(id, 2)
		row := w.written(w.pool.Refuse(t.Context(), api.RefuseLoan{LedgerWrite: at(id, 2), Why: "no licences left"}))
		if row.State != cluster.LoanRefused || row.Why != "no licences left" {
			t.Errorf("the refused loan is %+v", row)
		}
		w.offer(10) // a new survey does not forget the refusal
		offer := w.Status().Offers[0]
		if offer.Refusals != int64(n+1) || offer.BackoffUntil.Sub(w.Clock.Now()) != want {
			t.Errorf("after refusal %d the lender is left alone for %s, want %s", n+1, offer.BackoffUntil.Sub(w.Clock.Now()), want)
		}
		w.Session()
		if demand := w.Status().Demand; len(demand) != 0 {
			t.Errorf("a lender that is left alone is asked for %+v", demand)
		}
		w.Clock.Advance(want)
		w.join(8) // a sign of life
	}
	w.Session()
	w.intend(loan, 2)
	w.commit(loan, 2)
	if offer := w.Status().Offers[0]; offer.Refusals != 0 || offer.BackoffUntil != 0 {
		t.Errorf("a grant leaves %d refusals until %s", offer.Refusals, offer.BackoffUntil)
	}
}

func TestALenderThatSaysWhenToAskAgainIsAskedThen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.offer(10)
	w.submit(4)
	w.Session()
	w.intend(loan, 2)
	w.written(w.pool.Refuse(t.Context(), api.RefuseLoan{LedgerWrite: at(loan, 2), Why: "later", RetryAfter: cluster.Hour}))
	if until := w.Status().Offers[0].BackoffUntil; until != w.Clock.Now().Add(cluster.Hour) {
		t.Errorf("the lender is left alone until %s, want an hour", until)
	}
}

func TestOnlyUnitsThatAreIdleLongEnoughAndHeldLongEnoughAreFenced(t *testing.T) {
	t.Parallel()
	w, job := borrowed(t)
	step := int64(2)
	fence := func() cluster.Loan {
		t.Helper()
		step++
		return w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, step)}))
	}
	if row := fence(); row.Fenced != 0 || row.AskAgain != row.HoldUntil {
		t.Errorf("a held loan in use: %d fenced, asks again at %s, held until %s", row.Fenced, row.AskAgain, row.HoldUntil)
	}
	w.Clock.Advance(10 * cluster.Minute)
	if row := fence(); row.Fenced != 0 {
		t.Errorf("%d units in use were fenced", row.Fenced)
	}
	w.end(job)
	w.Session()
	w.Clock.Advance(cluster.Minute - 1)
	if row := fence(); row.Fenced != 0 || row.AskAgain != w.Clock.Now().Add(1) {
		t.Errorf("a moment before the idle time is over: %d fenced, asks again at %s", row.Fenced, row.AskAgain)
	}
	w.Clock.Advance(1)
	row := fence()
	if row.Fenced != 4 || row.Borrowed != 0 || row.State != cluster.LoanReturning {
		t.Errorf("after the idle time: %+v", row)
	}
	if r := w.Resource("vcs"); r.Total != 2 || r.Idle != 2 || r.Returning != 4 {
		t.Errorf("after the fence: %+v", r)
	}
	row = w.written(w.pool.Confirm(t.Context(), api.ConfirmLoan{LedgerWrite: at(loan, step+1), Units: 4}))
	if row.State != cluster.LoanReturned || row.Closed != w.Clock.Now() {
		t.Errorf("the confirmed loan is %+v", row)
	}
	open, err := w.admin.Loans(t.Context(), false)
	w.must(err)
	all, err := w.admin.Loans(t.Context(), true)
	w.must(err)
	if len(open) != 0 || len(all) != 1 {
		t.Errorf("%d loans are open and %d in the books, want 0 and 1", len(open), len(all))
	}
	answer, err := w.pool.Confirm(t.Context(), api.ConfirmLoan{LedgerWrite: at(loan, step+2), Units: 1})
	w.refusedAs("closed", answer, err)
}

func TestAnOperatorsFenceIsAllOrNothing(t *testing.T) {
	t.Parallel()
	w, job := borrowed(t)
	exact := func(step, units int64) (api.Written, error) {
		return w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, step), Units: units, Why: "an operator wishes it"})
	}
	answer, err := exact(3, 5)
	w.refusedAs("invalid", answer, err)
	w.Clock.Advance(10 * cluster.Minute)
	answer, err = exact(3, 1)
	w.refusedAs("in-use", answer, err)
	w.end(job)
	row := w.written(exact(3, 1))
	if row.Fenced != 1 || row.Borrowed != 3 || row.Why != "an operator wishes it" || w.Resource("vcs").Total != 5 {
		t.Errorf("after one unit is fenced: %+v, total %d", row, w.Resource("vcs").Total)
	}
}

func TestAnOperatorsFenceWaitsForTheMinimumHold(t *testing.T) {
	t.Parallel()
	w, job := borrowed(t)
	w.end(job)
	fence := api.FenceLoan{LedgerWrite: at(loan, 3), Units: 4, Why: "an operator wishes it"}
	w.Clock.Advance(10*cluster.Minute - 1)
	answer, err := w.pool.Fence(t.Context(), fence)
	w.refusedAs("hold", answer, err)
	w.Clock.Advance(1)
	if row := w.written(w.pool.Fence(t.Context(), fence)); row.Fenced != 4 {
		t.Errorf("after the hold %d units are fenced, want 4", row.Fenced)
	}
}

func TestARecallBlocksStartsAndHurtsNoRunningJob(t *testing.T) {
	t.Parallel()
	w, job := borrowed(t)
	row := w.written(w.pool.Recall(t.Context(), api.RecallLoan{LedgerWrite: at(loan, 3), Units: 4, Why: "the lender needs them"}))
	if row.Recalled != 4 || row.Borrowed != 0 {
		t.Errorf("the recalled loan is %+v", row)
	}
	if r := w.Resource("vcs"); r.Total != 2 || r.InUse != 6 || r.Overdraft != 4 {
		t.Errorf("after the recall: %+v", r)
	}
	next := w.submit(1)
	w.Session()
	if running, waiting := w.job(job), w.job(next); running.State != cluster.JobRunning || waiting.State != cluster.JobWaiting {
		t.Errorf("the running job is %s, the new one %s", running.State, waiting.State)
	}
	row = w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 4)}))
	if row.Fenced != 0 || row.AskAgain != w.Clock.Now().Add(15*cluster.Second) {
		t.Errorf("recalled units in use: %d fenced, asks again at %s", row.Fenced, row.AskAgain)
	}
	w.end(job)
	row = w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 5)}))
	if row.Fenced != 4 || row.Recalled != 0 {
		t.Errorf("recalled units that are unused go back at once, hold or not: %+v", row)
	}
	w.Session()
	if state := w.job(next).State; state != cluster.JobRunning {
		t.Errorf("after the overdraft is gone the new job is %s", state)
	}
}

func TestALoanOfOneResourceIsNotWrittenAsOneOfAnother(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Resources = append(config.Resources, cluster.SharedResource{Name: "zebu", Owned: 1})
	w := newWorld(t, config)
	w.intend(loan, 1)
	wrong := api.LedgerWrite{Loan: loan, Resource: "zebu", Step: 2}
	_, err := w.pool.Refuse(t.Context(), api.RefuseLoan{LedgerWrite: wrong, Why: "x"})
	w.wantStatus(http.StatusConflict, err)
	wrong.Resource = "nothing"
	_, err = w.pool.Refuse(t.Context(), api.RefuseLoan{LedgerWrite: wrong, Why: "x"})
	w.wantStatus(http.StatusNotFound, err)
	answer, err := w.pool.Commit(t.Context(), api.CommitLoan{LedgerWrite: at("loan/vcs/pool-9", 1), Granted: 1})
	w.refusedAs("unknown", answer, err)
}
