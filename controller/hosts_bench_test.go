package controller_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
)

// BenchmarkHosts measures sessions of a cluster of many hosts that providers
// made, each with an agent that waits for jobs, and what memory they take.
func BenchmarkHosts(b *testing.B) {
	for _, hosts := range []int64{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("joined=%d", hosts), func(b *testing.B) {
			before := heap()
			w := withHosts(b, hosts)
			stop := w.agents(hosts)
			defer stop()
			w.Session()
			memory := heap() - before
			b.ResetTimer()
			for range b.N {
				w.Session()
			}
			b.StopTimer()
			b.ReportMetric(float64(memory)/(1<<20), "MB")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/session")
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// withHosts is a cluster in which so many hosts have joined, each with a job, and
// a tenth as many jobs wait.
func withHosts(b *testing.B, hosts int64) *world {
	config := controllertest.Vcs(1, 10)
	config.Hosts = cluster.DefaultHostRules()
	w := &world{Controller: controllertest.Open(b, store.Memory, config), t: b}
	ctx, waiting := b.Context(), hosts/10
	w.must(w.Service.PublishCatalog(ctx, "provisioner/p1", "pool", api.Catalog{Templates: []cluster.Template{{
		Name: "node", Provider: "pool", Capacity: cluster.Capacity{CPUs: 4, MemoryMB: 1000}, Headroom: hosts,
	}}}))
	for range hosts + waiting {
		_, err := w.Service.Submit(ctx, "submitter/ann", cluster.JobSpec{Command: []string{"true"}, CPUs: 4})
		w.must(err)
	}
	w.Session()
	for n := range hosts {
		w.makeHost(ctx, n)
	}
	w.Session()
	return w
}

func hostNumber(n int64) pki.Peer {
	return pki.Peer{Role: string(api.HostRole), Name: fmt.Sprintf("node-%d", n), ID: fmt.Sprintf("host/node-%d", n)}
}

// makeHost takes the n-th host through intent and expectation into the cluster.
func (w *world) makeHost(ctx context.Context, n int64) {
	peer := hostNumber(n)
	_, err := w.Service.WriteHost(ctx, "provisioner/p1", api.WriteHost{Host: peer.ID, Step: 1, Intend: &cluster.HostRequest{
		ID: peer.ID, Provider: "pool", Template: "node", Reason: "measured",
	}})
	w.must(err)
	_, err = w.Service.WriteHost(ctx, "provisioner/p1", api.WriteHost{Host: peer.ID, Step: 2, Expect: &api.ExpectHost{Instance: peer.Name}})
	w.must(err)
	w.must(w.Service.Join(ctx, peer, api.JoinHost{CPUs: 4, MemoryMB: 1000, Instance: peer.Name}))
}

// agents has every host wait for other jobs than it has, until the answered
// function is called.
func (w *world) agents(hosts int64) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var agents sync.WaitGroup
	for n := range hosts {
		agents.Go(func() {
			for after := int64(-1); ctx.Err() == nil; {
				wait, enough := context.WithTimeout(ctx, 15*time.Second)
				a, err := w.Service.Assignments(ctx, wait, hostNumber(n), after)
				enough()
				if err != nil && ctx.Err() == nil {
					w.t.Error(err)
					return
				}
				after = a.Revision
			}
		})
	}
	return func() { cancel(); agents.Wait() }
}
