package controller_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"xce.internal/elastic/controller/pki"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/postgrestest"
	"xce.internal/elastic/controller/store"
)

// BenchmarkControllerUpdates measures ledger writes that change a row, over
// HTTP with mTLS: to a file and to PostgreSQL, where each one is durable when it
// is answered, and in memory.
func BenchmarkControllerUpdates(b *testing.B) {
	for name, state := range states {
		for _, running := range []int64{0, 100, 1000} {
			b.Run(fmt.Sprintf("%s/running=%d", name, running), func(b *testing.B) { updates(b, state(b), running) })
		}
	}
}

// states make a new, empty state of each kind.
var states = map[string]func(b *testing.B) string{
	"file":     func(b *testing.B) string { return filepath.Join(b.TempDir(), "state.db") },
	"memory":   func(*testing.B) string { return store.Memory },
	"postgres": func(b *testing.B) string { return postgrestest.DurableDatabase(b) },
}

func updates(b *testing.B, state string, running int64) {
	c := controllertest.Open(b, state, controllertest.Vcs(1<<20, 1<<40))
	c.Serve()
	w := &world{Controller: c, t: b, pool: c.Client(api.Provisioner, "p1")}
	w.busy(running)
	w.must(c.Service.PublishCatalog(b.Context(), "provisioner/p1", "pool", catalog(1<<40)))
	w.submitFor(b, 1<<30)
	w.Session()
	w.intend(loan, 1<<29)
	w.commit(loan, 1<<29)
	step := int64(2)
	b.ResetTimer()
	for range b.N {
		step++
		w.written(w.pool.Recall(b.Context(), api.RecallLoan{LedgerWrite: at(loan, step), Units: 1, Why: "measured"}))
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}

// busy fills the cluster with running jobs of one token each.
func (w *world) busy(running int64) {
	w.t.Helper()
	ctx := w.t.Context()
	w.must(w.Service.Join(ctx, pki.Peer{Role: "host", Name: hostName}, api.JoinHost{CPUs: running + 1}))
	for range running {
		_, err := w.Service.Submit(ctx, "submitter/ann", vcsJob(1))
		w.must(err)
	}
	w.Session()
}

func (w *world) submitFor(b *testing.B, units int64) {
	b.Helper()
	_, err := w.Service.Submit(b.Context(), "submitter/ann", vcsJob(units))
	w.must(err)
}

// BenchmarkSession measures a session over a long queue in which nothing changes.
func BenchmarkSession(b *testing.B) {
	for _, name := range []string{"memory", "postgres"} {
		for _, waiting := range []int{100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/waiting=%d", name, waiting), func(b *testing.B) {
				w := queued(b, states[name](b), waiting)
				for b.Loop() {
					w.Session()
				}
			})
		}
	}
}

// BenchmarkStatus measures what is asked most often, over a long queue.
func BenchmarkStatus(b *testing.B) {
	for _, name := range []string{"memory", "postgres"} {
		b.Run(name+"/waiting=1000", func(b *testing.B) {
			w := queued(b, states[name](b), 1000)
			for b.Loop() {
				w.Status()
			}
		})
	}
}

// queued is a cluster in which so many jobs wait.
func queued(b *testing.B, state string, waiting int) *world {
	b.Helper()
	c := controllertest.Open(b, state, controllertest.Vcs(1, 10))
	w := &world{Controller: c, t: b}
	w.busy(1)
	for range waiting {
		_, err := c.Service.Submit(b.Context(), "submitter/ann", cluster.JobSpec{Command: []string{"true"}, CPUs: 1, Tokens: map[string]int64{"vcs": 1}})
		w.must(err)
	}
	w.Session()
	return w
}
