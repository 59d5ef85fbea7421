package controller_test

import (
	"fmt"
	"sync"
	"testing"

	"xce.internal/elastic/controller/pki"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/store"
)

// Sessions start jobs, their ends free tokens, and fences take units away, all
// at once: at no revision may more be in use than there is.
func TestFencesAndStartsAtOnceNeverUseMoreThanThereIs(t *testing.T) {
	t.Parallel()
	const rounds = 25
	c := controllertest.Open(t, store.Memory, controllertest.Vcs(2, 20))
	w := &world{Controller: c, t: t}
	ctx, sv := t.Context(), c.Service
	w.must(sv.Join(ctx, pki.Peer{Role: "host", Name: hostName}, api.JoinHost{CPUs: 100}))
	var works sync.WaitGroup
	works.Go(func() { // the scheduler, and jobs that end
		for i := range int64(rounds) {
			if _, err := sv.Submit(ctx, "submitter/ann", vcsJob(1+i%4)); err != nil {
				t.Error(err)
			}
			if err := sv.Session(ctx); err != nil {
				t.Error(err)
			}
			w.endOne()
		}
	})
	for n := range 2 { // lenders: borrow, fence whatever is unused, return, borrow anew
		works.Go(func() {
			for i := range rounds {
				id := api.LedgerWrite{Loan: fmt.Sprintf("loan/vcs/pool-%d-%d", n, i), Resource: "vcs", Step: 1}
				w.hammer(id)
			}
		})
	}
	works.Wait()
	w.replay(22)
}

// endOne ends the job that runs longest, if any does.
func (w *world) endOne() {
	running, err := w.Service.Jobs(w.t.Context(), cluster.JobRunning)
	if err != nil {
		w.t.Error(err)
	}
	if len(running) > 0 {
		end := api.JobEnd{State: cluster.JobDone, Why: "ended by itself"}
		if err := w.Service.EndJob(w.t.Context(), pki.Peer{Role: "host", Name: hostName}, running[0].ID, end); err != nil {
			w.t.Error(err)
		}
	}
}

// hammer takes a loan, fences its units one by one and gives them back.
func (w *world) hammer(at api.LedgerWrite) {
	ctx, sv := w.t.Context(), w.Service
	if err := sv.PublishCatalog(ctx, "provisioner/p1", "pool", catalog(9)); err != nil {
		w.t.Error(err)
	}
	_, err := sv.Intend(ctx, "provisioner/p1", api.IntendLoan{LedgerWrite: at, Request: cluster.LoanRequest{
		Provider: "pool", Units: 4, Jobs: []int64{}, Reason: "test", Terms: cluster.Terms{PartialReturn: true},
	}})
	if err != nil {
		w.t.Error(err)
	}
	at.Step++
	if _, err := sv.Commit(ctx, "provisioner/p1", api.CommitLoan{LedgerWrite: at, Granted: 4}); err != nil {
		w.t.Error(err)
	}
	for range 4 {
		at.Step++
		answer, err := sv.Fence(ctx, "provisioner/p1", api.FenceLoan{LedgerWrite: at, Units: 1, Why: "hammered"})
		if err != nil {
			w.t.Error(err)
		}
		at.Step++
		if _, err := sv.Confirm(ctx, "provisioner/p1", api.ConfirmLoan{LedgerWrite: at, Units: answer.Loan.Fenced}); err != nil {
			w.t.Error(err)
		}
	}
}

// replay follows total and in use through the audit records, and demands that
// both moved, and that in use never exceeded the total.
func (w *world) replay(limit int64) {
	w.t.Helper()
	var total, inUse, highest, fences, starts int64
	for _, c := range w.changes(0) {
		switch {
		case c.Resource == "vcs":
			total = c.TotalAfter
			highest = max(highest, total)
			if c.Kind == "loan-fence" {
				fences++
			}
		case c.Kind == api.KindJob:
			before, after := jobIn(w.t, c.Before), jobIn(w.t, c.After)
			if after.State == cluster.JobRunning {
				starts++
				inUse += after.Tokens["vcs"]
			} else if before.State == cluster.JobRunning {
				inUse -= after.Tokens["vcs"]
			}
		}
		if inUse > total {
			w.t.Fatalf("at revision %d, %d are in use of %d", c.Revision, inUse, total)
		}
	}
	if r := w.Resource("vcs"); r.InUse != inUse || r.Total != total {
		w.t.Errorf("the books have %d in use of %d, the records %d of %d", r.InUse, r.Total, inUse, total)
	}
	if fences < 5 || starts < 5 || highest <= 2 || highest > limit {
		w.t.Errorf("%d fences, %d starts and a highest total of %d are no test", fences, starts, highest)
	}
}
