package controller_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/postgrestest"
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

// Loans that go back at the same time do so at once: none spoils what another waits for.
func TestLoansAreFencedBesideEachOther(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	w.offer(10)
	job := s.submit(8, cluster.Told{Reason: "Licenses"})
	tick(w, s)
	loans := []string{"loan/vcs/p1-1", "loan/vcs/p1-2", "loan/vcs/p1-3"}
	for _, id := range loans {
		w.intend(id, 2)
		w.commit(id, 2)
	}
	tick(w, s)
	lieIdle(w, s, job)
	s.lasting = 300 * time.Millisecond
	least := s.tokens["vcs"].Ceiling
	s.before = func() { least = min(least, s.tokens["vcs"].Ceiling-s.tokens["vcs"].Withheld) }
	var all sync.WaitGroup
	for i, id := range loans {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			written, err := w.Service.Fence(t.Context(), "p1", api.FenceLoan{LedgerWrite: at(id, 3)})
			if err != nil || written.Refusal != nil || written.Loan.Fenced != 2 {
				t.Errorf("of %s %d are fenced: %+v, %v", id, written.Loan.Fenced, written.Refusal, err)
			}
		})
	}
	all.Wait()
	if r, vcs := w.Resource("vcs"), s.tokens["vcs"]; r.Total != 2 || vcs.Ceiling-vcs.Withheld != 2 || least != 2 {
		t.Errorf("the total is %d, usable are %d, and were at least %d; want 2", r.Total, vcs.Ceiling-vcs.Withheld, least)
	}
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
	lieIdle(w, s, job)
	s.lasting = 500 * time.Millisecond
	time.Sleep(s.lasting)
	s.broken, s.late = errAway, true // 4 are withheld, and nobody knows
	in := api.FenceLoan{LedgerWrite: at(second, 3)}
	if _, err := w.Service.Fence(t.Context(), "p1", in); err == nil {
		t.Fatal("want an unknown outcome")
	}
	s.broken = nil
	w.Session() // it is read again
	began := time.Now()
	row := w.written(w.Service.Fence(t.Context(), "p1", in))
	if took := time.Since(began); row.Fenced != 4 || took < s.lasting {
		t.Errorf("%d are fenced %s after they were withheld, want 4 after at least %s", row.Fenced, took, s.lasting)
	}
}

// A backend that hangs is waited for once, and not by each who would fence.
func TestABackendThatHangsIsAskedNothingMore(t *testing.T) {
	t.Parallel()
	w, s := idleLoan(t)
	s.hangs = true
	in := api.FenceLoan{LedgerWrite: at(loan, 3)}
	if _, err := w.Service.Fence(t.Context(), "p1", in); err == nil || !strings.Contains(err.Error(), "nothing was decided") {
		t.Fatalf("a fence that is not answered says %v", err)
	}
	if w.Status().Backend.Trouble == nil {
		t.Error("the status does not say that Slurm is away")
	}
	s.hangs, s.steps = false, nil
	if _, err := w.Service.Fence(t.Context(), "p1", in); err == nil || len(s.steps) > 0 {
		t.Errorf("Slurm, which is away, is asked again: %v, %v", err, s.steps)
	}
	w.Session()
	if row := w.written(w.Service.Fence(t.Context(), "p1", in)); row.Fenced != 4 {
		t.Errorf("once it is read again %d are fenced, want 4", row.Fenced)
	}
}

// What is lent to another cluster must be kept from jobs first, like what goes back to a lender.
func TestWhatIsLentIsKeptFromTheBackendsJobs(t *testing.T) {
	w, s := onSlurm(t)
	tick(w, s)
	s.submit(2, cluster.Told{})
	s.cycle() // after the last reading
	err := w.admin.Lend(t.Context(), "l1", api.LendUnits{Resource: "vcs", Units: 2, To: "east"})
	if vcs := s.tokens["vcs"]; err == nil && (vcs.Used > 0 || vcs.Ceiling-vcs.Withheld > 0) {
		t.Errorf("2 of 2 are lent, while jobs use %d and may use %d", vcs.Used, vcs.Ceiling-vcs.Withheld)
	}
}

// A controller that does not run the sessions refuses to fence, so that the caller asks
// the one that does, whose sessions leave alone what is kept from jobs meanwhile.
func TestOnlyTheControllerThatRunsTheSessionsFences(t *testing.T) {
	address := postgrestest.Shared(t)
	s := &scheduler{hosts: map[string]*backend.Host{}, tokens: map[string]*backend.Resource{"vcs": {Ceiling: 12, Withheld: 10}}}
	member := func(name string) *controllertest.Controller {
		config := together(name, cluster.Minute)
		config.Backend = s
		return controllertest.OpenShared(t, address, config)
	}
	leader, other := member("one"), member("two")
	s.clock = controllertest.NewClock()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	session := func() { t.Helper(); must(leader.Service.Session(ctx)) }
	session()
	must(leader.Service.PublishCatalog(ctx, "pool", "pool", catalog(10)))
	s.hosts["n1"] = &backend.Host{Name: "n1", Capacity: cluster.Capacity{CPUs: 4, MemoryMB: 4000, Features: []string{"partition:main"}}, State: backend.HostReady}
	s.submit(6, cluster.Told{Reason: "Licenses"})
	session()
	lend4 := request(4)
	lend4.Terms.MinimumHold = 0
	_, err := leader.Service.Intend(ctx, "p1", api.IntendLoan{LedgerWrite: at(loan, 1), Request: lend4})
	must(err)
	_, err = leader.Service.Commit(ctx, "p1", api.CommitLoan{LedgerWrite: at(loan, 2), Granted: 4})
	must(err)
	s.jobs = slices.Delete(s.jobs, 0, 1)
	session()
	must(other.Service.Session(ctx)) // which only looks
	s.lasting = 300 * time.Millisecond
	done := make(chan struct{})
	go func() { // a session comes while the fence waits
		defer close(done)
		time.Sleep(150 * time.Millisecond)
		_ = leader.Service.Session(ctx)
	}()
	in := api.FenceLoan{LedgerWrite: at(loan, 3), Units: 4, Why: "an operator asks"}
	_, err = other.Service.Fence(ctx, "p1", in)
	var refused *controller.Refused
	if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("another controller than the leader answers %v, want HTTP 503", err)
	}
	written, err := leader.Service.Fence(ctx, "p1", in)
	<-done
	if err != nil || written.Refusal != nil {
		t.Errorf("the fence answers %v, %v: %v", written.Refusal, err, s.steps)
	}
}

// A host that was opened for jobs must not be given up as one that never came.
func TestAHostThatIsOpenIsNotGivenUpWithAJobOnIt(t *testing.T) {
	w, s := onSlurm(t)
	makeHost(w, s)
	h := s.hosts["big-1"]
	h.State, h.Drained = backend.HostClosed, true // it has come, and is drained until it is opened
	w.Session()
	s.cycle() // it takes a job at once
	if s.busy("big-1") != 1 {
		t.Fatalf("%d jobs are on it, want 1: %v", s.busy("big-1"), s.steps)
	}
	s.broken = errAway // and Slurm cannot be read until the host is late
	_ = w.Service.Session(t.Context())
	s.broken = nil
	answer, err := w.pool.WriteHost(t.Context(), api.WriteHost{Host: made, Step: 3, Lapse: &api.LapseHost{Why: "it has not joined within 10m", Late: true}})
	if err == nil && answer.Refusal == nil && s.busy("big-1") == 1 {
		t.Errorf("the host is %s with a job on it", answer.Host.State)
	}
}
