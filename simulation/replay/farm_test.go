package replay

import (
	"fmt"
	"log/slog"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/store"
)

// farm is a real controller, in memory, whose decisions are recorded.
type farm struct {
	*controllertest.Controller
	t      testing.TB
	folder string
	record *record.Writer
	steps  map[string]int64
}

const (
	provisioner = "provisioner/p1"
	ownHost     = "h1"
	aLoan       = "loan/vcs/pool-1"
	aHost       = "host/small-1"
)

func newFarm(t testing.TB) *farm {
	t.Helper()
	f := &farm{t: t, folder: t.TempDir(), steps: map[string]int64{}}
	config := controllertest.Vcs(2, 10)
	config.Providers = append(config.Providers, "cloud")
	config.Hosts = cluster.DefaultHostRules()
	config.Hosts.Max = 5
	clock := controllertest.NewClock()
	f.record = record.NewWriter(record.Options{
		Folder: f.folder, Cluster: "test", Release: "1.2.3", Now: clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(f.record.Close)
	config.Record = f.record
	f.Controller = controllertest.Open(t, store.Memory, config)
	return f
}

func (f *farm) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *farm) peer(name string) pki.Peer { return pki.Peer{Role: string(api.HostRole), Name: name} }

// publish publishes what can be borrowed and made.
func (f *farm) publish() {
	f.t.Helper()
	ctx := f.t.Context()
	f.must(f.Service.PublishCatalog(ctx, provisioner, "pool", api.Catalog{Offers: []cluster.Offer{{
		Resource: "vcs", Headroom: 8, Price: 2_000_000, MinimumHold: 10 * cluster.Minute, PartialReturn: true, MaxOpen: 4,
	}}}))
	f.must(f.Service.PublishCatalog(ctx, provisioner, "cloud", api.Catalog{
		Templates: []cluster.Template{{
			Name: "small", Capacity: cluster.Capacity{CPUs: 16, MemoryMB: 64000}, Headroom: 20, Quotas: []string{"site"}, Price: 400_000, MinimumHold: 20 * cluster.Minute,
		}},
		Quotas: []cluster.Quota{{Name: "site", Counts: "hosts", Limit: 9}},
	}))
}

func (f *farm) submit(spec cluster.JobSpec) {
	f.t.Helper()
	spec.Name, spec.Command, spec.Directory = "chip7", []string{"/tools/run", "--password=hunter2"}, "/home/ann"
	_, err := f.Service.Submit(f.t.Context(), "submitter/ann", spec)
	f.must(err)
}

// later lets time pass, in which the hosts are heard of.
func (f *farm) later(d cluster.Duration, hosts ...string) {
	f.t.Helper()
	f.Clock.Advance(d)
	for _, h := range hosts {
		_, err := f.Service.Assignments(f.t.Context(), f.t.Context(), f.peer(h), -1)
		f.must(err)
	}
	f.Session()
}

func (f *farm) endJobs(host string) {
	f.t.Helper()
	jobs, err := f.Service.Jobs(f.t.Context(), cluster.JobRunning)
	f.must(err)
	for _, j := range jobs {
		if j.Host == host {
			f.must(f.Service.EndJob(f.t.Context(), f.peer(host), j.ID, api.JobEnd{State: cluster.JobDone, Why: "ended"}))
		}
	}
}

func (f *farm) at(id string) api.LedgerWrite {
	f.steps[id]++
	return api.LedgerWrite{Loan: id, Resource: "vcs", Step: f.steps[id]}
}

func (f *farm) host(id string, in api.WriteHost) {
	f.t.Helper()
	f.steps[id]++
	in.Host, in.Step = id, f.steps[id]
	_, err := f.Service.WriteHost(f.t.Context(), provisioner, in)
	f.must(err)
}

// live lives through a day of the farm: loans and hosts in all their ways.
func (f *farm) live() {
	f.t.Helper()
	ctx := f.t.Context()
	f.must(f.Service.Join(ctx, f.peer(ownHost), api.JoinHost{CPUs: 8, MemoryMB: 1000}))
	f.publish()
	f.submit(cluster.JobSpec{CPUs: 1, Tokens: map[string]int64{"vcs": 2}})
	f.submit(cluster.JobSpec{CPUs: 1, Tokens: map[string]int64{"vcs": 4}})
	f.submit(cluster.JobSpec{CPUs: 16})
	f.submit(cluster.JobSpec{CPUs: 16})
	f.Session()
	f.Session() // finds nothing new
	f.borrow()
	f.make()
	f.giveBack()
}

func (f *farm) borrow() {
	f.t.Helper()
	ctx := f.t.Context()
	loan := func(_ api.Written, err error) { f.t.Helper(); f.must(err) }
	request := cluster.LoanRequest{Provider: "pool", Units: 4, Jobs: []int64{2}, Reason: "job 2 waits", Terms: cluster.Terms{Price: 2_000_000, MinimumHold: 10 * cluster.Minute, PartialReturn: true, UnitWeight: 1}}
	loan(f.Service.Intend(ctx, provisioner, api.IntendLoan{LedgerWrite: f.at(aLoan), Request: request}))
	loan(f.Service.Intend(ctx, provisioner, api.IntendLoan{LedgerWrite: f.at("loan/vcs/pool-2"), Request: request})) // demanded no more
	f.later(cluster.Second, ownHost)
	loan(f.Service.Commit(ctx, provisioner, api.CommitLoan{LedgerWrite: f.at(aLoan), Granted: 4}))
	f.later(cluster.Second, ownHost)
	loan(f.Service.Fence(ctx, provisioner, api.FenceLoan{LedgerWrite: f.at(aLoan), Units: 4, Why: "returned by admin/eve"}))
	f.submit(cluster.JobSpec{CPUs: 1, Tokens: map[string]int64{"vcs": 7}})
	f.later(cluster.Second, ownHost)
	loan(f.Service.Intend(ctx, provisioner, api.IntendLoan{LedgerWrite: f.at("loan/vcs/pool-3"), Request: request}))
	loan(f.Service.Refuse(ctx, provisioner, api.RefuseLoan{LedgerWrite: f.at("loan/vcs/pool-3"), Why: "the pool says: eve has them all"}))
}

func (f *farm) make() {
	f.t.Helper()
	for n := range 2 {
		id := fmt.Sprintf("host/small-%d", n+1)
		f.host(id, api.WriteHost{Intend: &cluster.HostRequest{ID: id, Provider: "cloud", Template: "small", Jobs: []int64{3}, Reason: "job 3 waits"}})
		f.later(cluster.Second, ownHost)
	}
	f.host(aHost, api.WriteHost{Expect: &api.ExpectHost{Instance: "i-1", Name: "m1"}})
	f.host("host/small-2", api.WriteHost{Refuse: &api.RefuseHost{Why: "quota of account 4711"}})
	f.later(cluster.Second, ownHost)
	f.must(f.Service.Join(f.t.Context(), f.peer("m1"), api.JoinHost{CPUs: 16, MemoryMB: 64000}))
	f.later(cluster.Minute, ownHost, "m1")
	f.host(aHost, api.WriteHost{Keep: &cluster.Keep{By: "admin/eve", Why: "a demo for ann"}})
	f.host(aHost, api.WriteHost{Release: &api.By{By: "admin/eve"}})
	f.later(2*cluster.Minute, ownHost) // m1 is silent
	f.later(cluster.Second, ownHost, "m1")
}

func (f *farm) giveBack() {
	f.t.Helper()
	ctx := f.t.Context()
	f.endJobs("m1")
	f.endJobs(ownHost)
	f.later(cluster.Second, ownHost, "m1")
	f.endJobs("m1")
	f.later(30*cluster.Minute, ownHost, "m1")
	f.endJobs("m1")
	f.host(aHost, api.WriteHost{Fence: true})
	f.later(30*cluster.Minute, ownHost, "m1")
	f.host(aHost, api.WriteHost{Fence: true})
	f.host(aHost, api.WriteHost{Confirm: true})
	loan := func(_ api.Written, err error) { f.t.Helper(); f.must(err) }
	loan(f.Service.Recall(ctx, provisioner, api.RecallLoan{LedgerWrite: f.at(aLoan), Units: 1, Why: "wanted"}))
	loan(f.Service.Fence(ctx, provisioner, api.FenceLoan{LedgerWrite: f.at(aLoan)}))
	loan(f.Service.Confirm(ctx, provisioner, api.ConfirmLoan{LedgerWrite: f.at(aLoan), Units: 4}))
	f.must(f.Service.Lend(ctx, "admin/eve", "lend-1", api.LendUnits{Resource: "vcs", Units: 1, To: "west"}))
	f.later(cluster.Second, ownHost)
}
