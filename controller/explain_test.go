package controller_test

import (
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/scheduling"
)

// explained demands that the explanation has all the words.
func (w *world) explained(kind, id string, words ...string) {
	w.t.Helper()
	e, err := w.admin.Explain(w.t.Context(), kind, id)
	w.must(err)
	text := strings.Join(e.Sentences, "\n")
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("%s lacks %q:\n%s", e.Subject, word, text)
		}
	}
	for _, s := range e.Sentences {
		if !strings.HasSuffix(s, ".") || strings.Contains(s, "..") || strings.Contains(s, "%!") {
			w.t.Errorf("%s: %q is no sentence", e.Subject, s)
		}
	}
}

func TestAJobIsExplainedThroughItsLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.offer(10)
	w.submit(6)
	w.Session()
	w.explained("job", "1", "Job 1 waits since", "00:00:00", "6 vcs", "2 free", "4 to be borrowed from pool", "For it to start, pool ", "wants 4 vcs from pool")
	w.intend(loan, 4)
	w.Session()
	w.explained("job", "1", "4 requested", "Loan "+loan+" asked pool for 4 vcs")
	w.Clock.Advance(5 * cluster.Second)
	w.commit(loan, 4)
	w.Session()
	w.explained("job", "1", "runs on h1 since", "00:00:05", "after 5s of waiting")
	w.Clock.Advance(5 * cluster.Second)
	w.must(w.host.EndJob(t.Context(), hostName, 1, api.JobEnd{State: cluster.JobFailed, ExitCode: 3, Why: "ended with exit status 3"}))
	w.explained("job", "1", "ended as failed", "00:00:10", "on h1", "exit status 3")
}

func TestAJobIsExplainedWithItsReservation(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Policy.Order = scheduling.EASY
	w := newWorld(t, config)
	w.join(8)
	limited := func(cpus int64, limit cluster.Duration) {
		spec := vcsJob(0)
		spec.CPUs, spec.TimeLimit = cpus, limit
		w.put(spec)
	}
	limited(6, cluster.Hour)
	limited(4, cluster.Hour)
	limited(1, cluster.Hour)
	w.Session()
	w.explained("job", "2", "Job 2 waits since", "For it to start, ", "It has a reservation: it starts on h1 at Jan 1 01:00:00 UTC at the latest, if every running job keeps its time limit")
	w.explained("job", "3", "Job 3 runs on h1")
	w.submit(0)
	w.Session()
	w.submit(0)
	w.end(1)
	w.Session()
	w.explained("job", "2", "Job 2 runs on h1")
}

func TestAJobBehindJobsWithoutATimeLimitIsExplained(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Policy.Order = scheduling.Conservative
	w := newWorld(t, config)
	w.join(8)
	w.submit(2)
	w.submit(2)
	w.Session()
	w.explained("job", "2", "Job 2 waits since", "needs 2 vcs", "For it to start, ")
	if _, err := w.admin.Session(t.Context()); err != nil {
		t.Errorf("the session cannot be read: %v", err)
	}
}

func TestDemandIsKeptBackBelowAThreshold(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Thresholds = []scheduling.Threshold{{Resource: "vcs", Jobs: 1, Wait: cluster.Minute}}
	w := newWorld(t, config)
	w.join(8)
	w.offer(10)
	w.submit(4)
	w.Session()
	if st := w.Status(); len(st.Demand) != 0 {
		t.Errorf("demand is %+v before the job has waited long enough", st.Demand)
	}
	if code := w.job(1).Code; code != string(scheduling.WaitMore) {
		t.Errorf("the job waits for %q", code)
	}
	w.explained("job", "1", "needs 4 vcs; 2 free", "For it to start, ", "1m0s")
	w.later(cluster.Minute)
	w.Session()
	if st := w.Status(); len(st.Demand) != 1 || st.Demand[0].Units != 2 {
		t.Errorf("demand is %+v once it has", st.Demand)
	}
}

func TestALoanIsExplainedInEachState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.offer(10)
	w.submit(6)
	w.Session()
	w.intend("loan/vcs/pool-0", 4)
	w.explained("loan", "loan/vcs/pool-0", "because job 1 waits for it", "pool was asked for 4 vcs and has not settled")
	w.written(w.pool.Refuse(t.Context(), api.RefuseLoan{LedgerWrite: at("loan/vcs/pool-0", 2), Why: "no licences left", RetryAfter: cluster.Second}))
	w.explained("loan", "loan/vcs/pool-0", "nothing granted: no licences left")

	w.Clock.Advance(cluster.Second)
	w.Session()
	w.intend(loan, 4)
	w.commit(loan, 5)
	w.Session()
	w.explained("loan", loan, "pool granted 5 of 4 vcs", "1 units are out of the total", "minimum hold of 10m0s lasts until", "00:10:01",
		"4 units stay because none of the 6 vcs is idle: 6 are in use", "once idle for 1m0s")
	w.end(1)
	w.Session()
	w.explained("loan", loan, "6 vcs are idle", "asks next at")
	w.Clock.Advance(10 * cluster.Minute)
	w.join(8)
	w.written(w.pool.Recall(t.Context(), api.RecallLoan{LedgerWrite: at(loan, 3), Units: 1, Why: "wanted"}))
	w.explained("loan", loan, "pool wants 1 units back")
	w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 4)}))
	w.explained("loan", loan, "5 units are out of the total and on their way back", "left the total: ")
	w.written(w.pool.Confirm(t.Context(), api.ConfirmLoan{LedgerWrite: at(loan, 5), Units: 5}))
	w.explained("loan", loan, "All of it was back with pool at", "00:10:01")
}

func TestAResourceIsExplainedByItsNumbers(t *testing.T) {
	t.Parallel()
	w, _ := borrowed(t)
	w.must(w.admin.SetOwned(t.Context(), "vcs", api.Owned{Owned: 1, Why: "one expired"}))
	w.explained("resource", "vcs", "is 5 = 1 owned + 4 borrowed - 0 lent", "6 are in use", "0 are idle", "exceeds the total by 1",
		"Up to 10 may be borrowed; 0 are requested, 0 are on their way back", "Lender pool could lend 10", "for 2 per unit and hour", "Loan "+loan+": 4 borrowed")
	w.intend("loan/vcs/pool-2", 1)
	w.submit(3)
	w.Session()
	w.intend("loan/vcs/pool-3", 3)
	w.explained("resource", "vcs", "Loan loan/vcs/pool-3: ")
}

func TestALenderThatIsLeftAloneOrSilentIsExplained(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Providers, config.Resources[0].Elastic.Lenders = []string{"pool", "lake"}, []string{"pool", "lake"}
	config.Resources = append(config.Resources, cluster.SharedResource{Name: "zebu", Owned: 3})
	w := newWorld(t, config)
	w.join(8)
	w.offer(10)
	w.submit(4)
	w.Session()
	w.intend(loan, 2)
	w.written(w.pool.Refuse(t.Context(), api.RefuseLoan{LedgerWrite: at(loan, 2), Why: "no"}))
	w.explained("resource", "vcs", "Lender pool refused 1 times in a row and is left alone until", "00:00:30", "Lender lake has not published an offer")
	w.explained("resource", "zebu", "is 3 = 3 owned + 0 borrowed - 0 lent", "It is not elastic")
}

func TestWhatIsNotThereIsNotExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	for kind, want := range map[string]struct {
		id     string
		status int
	}{"job": {"7", 404}, "loan": {"loan/vcs/pool-7", 404}, "resource": {"zebu", 404}, "host": {"h1", 404}, "lender": {"pool", 422}} {
		_, err := w.admin.Explain(t.Context(), kind, want.id)
		w.wantStatus(want.status, err)
	}
	_, err := w.admin.Explain(t.Context(), "job", "seven")
	w.wantStatus(422, err)
}
