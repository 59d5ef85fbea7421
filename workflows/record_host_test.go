//go:build record

package workflows_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/maker"
	"xce.internal/elastic/simulation/mishap"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/worker"
	"xce.internal/elastic/workflows"
)

// wantedHosts are the histories of hosts to record, by the name of their file.
var wantedHosts = map[string]want{
	"host":                {20, []string{"type: host", `"fence":true`, `"confirm":true`, "EXECUTION_COMPLETED", "!ACCEPTED", "!provider.holding", `!"drain"`, `!"lapse"`}},
	"host-refused":        {10, []string{"type: host", `"refuse":`, "EXECUTION_COMPLETED", "!provider.holding"}},
	"host-unknown":        {10, []string{"type: host", `"refuse":`, "EXECUTION_COMPLETED", "provider.holding"}},
	"host-never-joined":   {20, []string{"type: host", `"lapse":`, `"confirm":true`, "EXECUTION_COMPLETED"}},
	"host-drained":        {20, []string{"type: host", `"stop_jobs":`, "ACCEPTED", `"confirm":true`, "EXECUTION_COMPLETED", `!"forced":true`}},
	"host-gone":           {20, []string{"type: host", `"gone":`, "provider.holding", "EXECUTION_COMPLETED", "!ACCEPTED"}},
	"host-kept":           {20, []string{"type: host", `"keep":`, `"release":`, `"confirm":true`, "EXECUTION_COMPLETED"}},
	"host-reclaimed":      {20, []string{"type: host", `"forced":true`, `"confirm":true`, "EXECUTION_COMPLETED"}},
	"host-cut":            {1000, []string{"type: host", "EXECUTION_CONTINUED_AS_NEW"}},
	"host-continued":      {10, []string{"type: host", `"continuedExecutionRunId"`, `"confirm":true`, "EXECUTION_COMPLETED"}},
	"provider-with-hosts": {150, []string{"type: provider", "starter.hosts", "catalog-changed"}},
}

// TestRecordHosts runs a small cluster of hosts at a real server until it has the
// histories that are wanted, and writes them.
func TestRecordHosts(t *testing.T) {
	r := newRecorder(t)
	r.startTemporal()
	rules := cluster.DefaultHostRules()
	rules.IdleTime, rules.JoinWithin, rules.SuspectAfter = 3*cluster.Second, 6*cluster.Second, 20*cluster.Second
	r.startController(controller.Config{Providers: []string{"cloud"}, Hosts: rules})
	f := &farm{recorder: r, done: map[string]bool{}}
	f.maker = &maker.Maker{Now: time.Now, Poll: time.Second, Mishap: f.mishap, Templates: []maker.Template{{
		Template: providers.Template{Template: template, CPUs: 16, MemoryMB: 65536}, Capacity: 20,
	}}}
	r.startProvisioner(worker.Provider{Name: "cloud", Script: f, SurveyEvery: 2 * cluster.Second, OrphanGrace: 10 * cluster.Second})
	go f.work(t.Context())
	r.record(wantedHosts)
}

// farm is a maker that many activities use at once, and the machines that it makes.
type farm struct {
	*recorder
	mu    sync.Mutex
	maker *maker.Maker
	done  map[string]bool // what was done to a host already
}

// fate of a host, by its number.
type hostFate int

const (
	reclaimed hostFate = iota
	lives
	refused
	neverJoins
	drained
	vanishes
	isSpammed
	kept
	unheard
	fates
)

func fateOf(id string) hostFate {
	n, _ := strconv.Atoi(id[strings.LastIndex(id, "-")+1:])
	return hostFate(n) % fates
}

func (f *farm) mishap(c mishap.Call) mishap.Mishap {
	switch {
	case c.Verb != providers.VerbRequest:
		return mishap.Mishap{}
	case fateOf(c.Request) == refused:
		return mishap.Mishap{Kind: mishap.Refusal, RetryAfter: time.Second}
	case fateOf(c.Request) == unheard:
		return mishap.Mishap{Kind: mishap.NotHeard}
	}
	return mishap.Mishap{}
}

// work has jobs come in waves, and the hosts live through what is their fate.
func (f *farm) work(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		if n%200 == 0 {
			for range int(fates) + 1 {
				_, _ = f.service.Submit(ctx, "submitter/ada", cluster.JobSpec{Command: []string{"work"}, CPUs: 16})
			}
		}
		rows, _ := f.service.ElasticHosts(ctx, false)
		for _, r := range rows {
			f.live(ctx, r)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (f *farm) live(ctx context.Context, r cluster.ElasticHost) {
	peer := pki.Peer{Role: string(api.HostRole), Name: r.Name, ID: r.ID}
	switch {
	case r.State == cluster.HostExpected && fateOf(r.ID) != neverJoins && f.once(r.ID+" joins"):
		_ = f.service.Join(ctx, peer, api.JoinHost{CPUs: 16, MemoryMB: 65536, Instance: r.Instance})
	case r.State.Here():
		if fateOf(r.ID) != vanishes || !f.done[r.ID] { // else no one is there who could ask
			f.runJobs(ctx, peer)
		}
		if time.Since(r.Joined.Std()) > afterJoining(r.ID) && f.once(r.ID) {
			f.meet(ctx, r)
		}
		if r.Keep != nil && time.Since(r.Keep.Since.Std()) > 4*time.Second && f.once(r.ID+" released") {
			go f.order(ctx, r.ID, workflows.UpdateRelease, workflows.HostOrder{})
		}
	}
}

// afterJoining is when a host meets its fate: one that was just made need not be
// listed yet.
func afterJoining(id string) time.Duration {
	if fateOf(id) == vanishes {
		return 8 * time.Second
	}
	return 2 * time.Second
}

func (f *farm) once(what string) bool {
	first := !f.done[what]
	f.done[what] = true
	return first
}

// runJobs ends the jobs that ran long enough or are to stop.
func (f *farm) runJobs(ctx context.Context, peer pki.Peer) {
	runs := map[hostFate]time.Duration{drained: 20 * time.Second, vanishes: 5 * time.Minute, reclaimed: 20 * time.Second, isSpammed: time.Minute}[fateOf(peer.ID)]
	runs = max(runs, 4*time.Second)
	assigned, _ := f.service.Assignments(ctx, ctx, peer, -1)
	for _, j := range assigned.Jobs {
		switch {
		case j.Stopping:
			_ = f.service.EndJob(ctx, peer, j.ID, api.JobEnd{State: cluster.JobWaiting, Why: "stopped"})
		case time.Since(j.Started.Std()) > runs:
			_ = f.service.EndJob(ctx, peer, j.ID, api.JobEnd{State: cluster.JobDone, Why: "done"})
		}
	}
}

// meet has a host that runs a job meet its fate.
func (f *farm) meet(ctx context.Context, r cluster.ElasticHost) {
	switch fateOf(r.ID) {
	case drained:
		go f.order(ctx, r.ID, workflows.UpdateDrain, workflows.HostOrder{Why: "maintenance", Within: cluster.Second, Requeue: true})
	case kept:
		go f.order(ctx, r.ID, workflows.UpdateHold, workflows.HostOrder{Why: "a demo"})
	case vanishes:
		f.hold(func() { f.maker.Vanish(r.ID) })
	case reclaimed:
		f.hold(func() { f.maker.Reclaim(r.ID, 30*time.Second) })
	case isSpammed:
		go f.spam(ctx, r.ID)
	}
}

// spam tells a host so often that it is empty that its history grows long.
func (f *farm) spam(ctx context.Context, id string) {
	for range 360 {
		_ = f.temporal.SignalWorkflow(ctx, id, "", workflows.SignalEmptied, struct{}{})
		time.Sleep(60 * time.Millisecond)
	}
}

func (f *farm) order(ctx context.Context, id string, kind workflows.HostUpdate, o workflows.HostOrder) {
	o.By = "admin/eve"
	_, _ = starter.New(f.temporal).OrderHost(ctx, id, fmt.Sprintf("%s %s", kind, id), kind, o)
}

// hold does something to the maker that nobody else uses meanwhile.
func (f *farm) hold(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// Describe implements the verb, as the next ones do.
func (f *farm) Describe(ctx context.Context) (out providers.Description, o providers.Outcome) {
	f.hold(func() { out, o = f.maker.Describe(ctx) })
	return out, o
}

func (f *farm) Request(ctx context.Context, in providers.RequestIn) (out providers.RequestOut, o providers.Outcome) {
	f.hold(func() { out, o = f.maker.Request(ctx, in) })
	return out, o
}

func (f *farm) Status(ctx context.Context, in providers.StatusIn) (out providers.StatusOut, o providers.Outcome) {
	f.hold(func() { out, o = f.maker.Status(ctx, in) })
	return out, o
}

func (f *farm) Return(ctx context.Context, in providers.ReturnIn) (out providers.ReturnOut, o providers.Outcome) {
	f.hold(func() { out, o = f.maker.Return(ctx, in) })
	return out, o
}

func (f *farm) List(ctx context.Context) (out providers.ListOut, o providers.Outcome) {
	f.hold(func() { out, o = f.maker.List(ctx) })
	return out, o
}

func (f *farm) Observe(ctx context.Context) (providers.ObserveOut, providers.Outcome) {
	return f.maker.Observe(ctx)
}

var _ activities.Script = (*farm)(nil)
