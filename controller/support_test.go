package controller_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/store"
)

// world is a controller on the network, with one client per role.
type world struct {
	*controllertest.Controller
	t                       testing.TB
	pool, admin, user, host *api.Client
}

const hostName = "h1"

func newWorld(t testing.TB, config controller.Config) *world {
	t.Helper()
	c := controllertest.Open(t, store.Memory, config)
	c.Serve()
	return &world{
		Controller: c, t: t, pool: c.Client(api.Provisioner, "p1"), admin: c.Client(api.Admin, "root"),
		user: c.Client(api.Submitter, "ann"), host: c.Client(api.HostRole, hostName),
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// offer publishes what the pool can lend.
func (w *world) offer(headroom int64) {
	w.t.Helper()
	w.must(w.pool.PublishCatalog(w.t.Context(), "pool", catalog(headroom)))
}

func catalog(headroom int64) api.Catalog {
	return api.Catalog{Offers: []cluster.Offer{{
		Resource: "vcs", Headroom: headroom, Price: 2_000_000, MinimumHold: 10 * cluster.Minute, PartialReturn: true, MaxOpen: 4,
	}}, Observations: []cluster.Observation{}}
}

func (w *world) join(cpus int64) {
	w.t.Helper()
	w.must(w.host.Join(w.t.Context(), hostName, api.JoinHost{CPUs: cpus, MemoryMB: 1000}))
}

// submit submits a job of one cpu that needs units of vcs, and answers its id.
func (w *world) submit(units int64) int64 {
	w.t.Helper()
	job, err := w.user.Submit(w.t.Context(), vcsJob(units))
	w.must(err)
	return job.ID
}

func vcsJob(units int64) cluster.JobSpec {
	spec := cluster.JobSpec{Command: []string{"true"}, CPUs: 1}
	if units > 0 {
		spec.Tokens = map[string]int64{"vcs": units}
	}
	return spec
}

// job answers one job as it is now.
func (w *world) job(id int64) cluster.Job {
	w.t.Helper()
	jobs, err := w.Service.Jobs(context.Background(), "")
	w.must(err)
	for _, j := range jobs {
		if j.ID == id {
			return j
		}
	}
	w.t.Fatalf("there is no job %d", id)
	return cluster.Job{}
}

func (w *world) end(id int64) {
	w.t.Helper()
	w.must(w.host.EndJob(w.t.Context(), hostName, id, api.JobEnd{State: cluster.JobDone, Why: "ended by itself"}))
}

// later lets time pass, in which the host is heard of.
func (w *world) later(d cluster.Duration) {
	w.t.Helper()
	w.Clock.Advance(d)
	_, err := w.host.Assignments(w.t.Context(), hostName, 0, 0)
	w.must(err)
}

func at(loan string, step int64) api.LedgerWrite {
	return api.LedgerWrite{Loan: loan, Resource: "vcs", Step: step}
}

func request(units int64) cluster.LoanRequest {
	return cluster.LoanRequest{
		Provider: "pool", Resource: "vcs", Units: units, Jobs: []int64{1}, Reason: "job 1 waits for it",
		Terms: cluster.Terms{Price: 2_000_000, MinimumHold: 10 * cluster.Minute, PartialReturn: true, UnitWeight: 1},
	}
}

// written demands that a write was not refused.
func (w *world) written(answer api.Written, err error) cluster.Loan {
	w.t.Helper()
	w.must(err)
	if answer.Refusal != nil {
		w.t.Fatalf("refused: %+v", answer.Refusal)
	}
	return answer.Loan
}

// refusedAs demands that a write was refused with a code of the ledger.
func (w *world) refusedAs(code string, answer api.Written, err error) {
	w.t.Helper()
	w.must(err)
	if answer.Refusal == nil || answer.Refusal.Code != code {
		w.t.Errorf("want a refusal %q, got %+v of %+v", code, answer.Refusal, answer.Loan)
	}
}

// intend intends a loan at step 1.
func (w *world) intend(loan string, units int64) cluster.Loan {
	w.t.Helper()
	return w.written(w.pool.Intend(w.t.Context(), api.IntendLoan{LedgerWrite: at(loan, 1), Request: request(units)}))
}

// commit commits a grant at step 2.
func (w *world) commit(loan string, granted int64) cluster.Loan {
	w.t.Helper()
	return w.written(w.pool.Commit(w.t.Context(), api.CommitLoan{LedgerWrite: at(loan, 2), Granted: granted}))
}

// borrowed is a world of 2 owned units and one loan of 4, all of which one
// running job uses.
func borrowed(t testing.TB) (w *world, job int64) {
	t.Helper()
	w = newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.offer(10)
	job = w.submit(6)
	w.Session()
	w.intend("loan/vcs/pool-1", 4)
	w.commit("loan/vcs/pool-1", 4)
	w.Session()
	if state := w.job(job).State; state != cluster.JobRunning {
		t.Fatalf("the job is %s, want it running: %s", state, w.job(job).Why)
	}
	return w, job
}

// changes answers the audit records after a revision.
func (w *world) changes(after int64) []api.Change {
	w.t.Helper()
	var all []api.Change
	for {
		page, err := w.Service.Changes(context.Background(), ended, after)
		w.must(err)
		if len(page.Changes) == 0 {
			return all
		}
		all, after = append(all, page.Changes...), page.Revision
	}
}

// ended is a context that waits for nothing.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// status answers the HTTP status of an error of a client; 0 for none.
func status(err error) int {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Status
	}
	if err != nil {
		return -1
	}
	return 0
}

func (w *world) wantStatus(want int, err error) {
	w.t.Helper()
	if got := status(err); got != want {
		w.t.Errorf("HTTP status is %d (%v), want %d %s", got, err, want, http.StatusText(want))
	}
}
