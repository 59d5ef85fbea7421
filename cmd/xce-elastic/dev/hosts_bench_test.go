//go:build e2e

package dev

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/agent"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/worker"
)

//go:embed testdata/hosts-bench.yaml
var hostsBenchCluster string

// hostsAtOnce is how many hosts one round of the benchmark has.
const hostsAtOnce = 500

// BenchmarkHosts measures hosts from waiting jobs to confirmed returns, on a real
// server and a real controller, beside a workflow that does nothing with as many
// activities. Provider and agents are in this process: what machines cost is not
// ours.
func BenchmarkHosts(b *testing.B) {
	f := startBare(b, example{Cluster: hostsBenchCluster})
	m := &maker{b: b, made: map[string]providers.Grant{}}
	c := f.provision(b, m)
	steps := 0
	var hosts, idle time.Duration
	for b.Loop() {
		hosts += f.timeHosts(b)
		if steps == 0 {
			steps = f.activitiesOf(b, c, "host/node-1")
		}
		idle += timeNothing(b, c, steps, hostsAtOnce)
	}
	all := float64(b.N * hostsAtOnce)
	b.ReportMetric(all/hosts.Seconds(), "hosts/s")
	b.ReportMetric(all/idle.Seconds(), "no-ops/s")
	b.ReportMetric(hosts.Seconds()/idle.Seconds(), "host/no-op")
	b.ReportMetric(float64(steps), "activities/host")
	b.ReportMetric(0, "ns/op")
}

// startBare starts Temporal and a controller.
func startBare(b *testing.B, e example) *farm {
	b.Helper()
	f := &farm{example: e, Options: Options{
		Folder: b.TempDir(), Program: filepath.Join(programs(b), "xce-elastic"), Out: io.Discard, Temporal: client.Options{Namespace: "xce"},
	}}
	b.Cleanup(func() {
		if err := f.stop(); err != nil {
			b.Error(err)
		}
	})
	for _, step := range []func(context.Context) error{f.issueCertificates, f.startTemporal, f.writeConfig, f.startController} {
		if err := step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

// provision runs a provisioner in this process, with the maker as its provider.
func (f *farm) provision(b *testing.B, m *maker) client.Client {
	b.Helper()
	tls, err := pki.In(f.path("pki"), "provisioner").Client()
	if err != nil {
		b.Fatal(err)
	}
	authority, err := os.ReadFile(f.path("pki/ca.crt"))
	if err != nil {
		b.Fatal(err)
	}
	app := fx.New(fx.NopLogger, worker.Module(worker.Options{
		Temporal:   client.Options{HostPort: f.temporal, Namespace: "xce", Logger: silent{}},
		Controller: api.NewClient("https://"+f.address, tls), Address: "https://" + f.address, AuthorityPEM: authority,
		Providers: []worker.Provider{{Name: "maker", Script: m, SurveyEvery: cluster.Minute}}, Log: slog.New(slog.DiscardHandler),
	}))
	if err := app.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = app.Stop(context.Background()) })
	eventually(b, time.Minute, func() error {
		catalog, err := f.controller.Catalog(b.Context())
		if err == nil && len(catalog.Templates) == 0 {
			err = fmt.Errorf("no template yet")
		}
		return err
	})
	return f.connect(b)
}

func (f *farm) timeHosts(b *testing.B) time.Duration {
	began := time.Now()
	for range hostsAtOnce {
		if _, err := f.controller.Submit(b.Context(), cluster.JobSpec{CPUs: 1, Command: []string{"true"}}); err != nil {
			b.Fatal(err)
		}
	}
	eventually(b, 5*time.Minute, func() error { return f.hostsSettled(b.Context()) })
	return time.Since(began)
}

// maker is a provider of hosts in memory, whose hosts are agents in this process.
type maker struct {
	b    *testing.B
	mu   sync.Mutex
	made map[string]providers.Grant
}

func (m *maker) Describe(context.Context) (providers.Description, providers.Outcome) {
	return providers.Description{
		Contract: providers.ContractVersion, Kinds: []providers.Kind{providers.KindHosts}, PollInterval: 1, Concurrent: true,
		Templates: []providers.Template{{Template: "node", CPUs: 1, MemoryMB: 100, Headroom: hostsAtOnce}},
	}, providers.Outcome{Status: providers.StatusOK}
}

func (m *maker) Request(_ context.Context, in providers.RequestIn) (providers.RequestOut, providers.Outcome) {
	instances := []providers.Instance{{ID: "m-" + in.RequestID}}
	m.mu.Lock()
	m.made[in.RequestID] = providers.Grant{RequestID: in.RequestID, Template: in.Template, Units: 1, Instances: instances}
	m.mu.Unlock()
	go m.run(*in.Join)
	return providers.RequestOut{RequestID: in.RequestID, Granted: 1, Instances: instances}, providers.Outcome{Status: providers.StatusOK}
}

// run is a host's agent, which says of each job at once that it is done.
func (m *maker) run(join providers.Join) {
	ctx := m.b.Context()
	name, c, err := agent.Enroll(ctx, agent.Join(join), m.b.TempDir(), cluster.Capacity{CPUs: 1, MemoryMB: 100}, slog.New(slog.DiscardHandler))
	if err != nil {
		return // the story gives it up
	}
	defer c.Close()
	var next api.Assignments
	for ctx.Err() == nil {
		if next, err = c.Assignments(ctx, name, next.Revision, 15*time.Second); err != nil {
			return // it has been given back
		}
		for _, job := range next.Jobs {
			_ = c.EndJob(ctx, name, job.ID, api.JobEnd{State: cluster.JobDone, Why: "done"})
		}
	}
}

func (m *maker) Status(context.Context, providers.StatusIn) (providers.StatusOut, providers.Outcome) {
	return providers.StatusOut{}, providers.Outcome{Status: providers.StatusUnknown}
}

func (m *maker) Return(_ context.Context, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.made, in.RequestID)
	return providers.ReturnOut{RequestID: in.RequestID}, providers.Outcome{Status: providers.StatusOK}
}

func (m *maker) List(context.Context) (out providers.ListOut, outcome providers.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.made {
		out.Grants = append(out.Grants, g)
	}
	return out, providers.Outcome{Status: providers.StatusOK}
}

func (m *maker) Observe(context.Context) (providers.ObserveOut, providers.Outcome) {
	return providers.ObserveOut{}, providers.Outcome{Status: providers.StatusUnknown}
}
