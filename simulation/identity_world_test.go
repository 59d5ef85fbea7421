package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/simulation/timeskip"
	"xce.internal/elastic/simulation/trace"
	"xce.internal/elastic/worker"
	"xce.internal/elastic/workflows"
)

// Ranks of what shares a millisecond, in the order of the simulator: jobs end, jobs arrive, stories and providers
// go on, a session runs; before stories are told of it, what ends or goes on at once does so.
const (
	jobsEnd = iota
	jobsArrive
	storiesGoOn
	sessionRuns
	newsIsTold
)

var withinInstant = []int{jobsEnd, jobsArrive, storiesGoOn, sessionRuns, jobsEnd, storiesGoOn, newsIsTold}

// twin is a farm played with all that is ours as it is in production: the controller's service on its store,
// the activities, and the workflows in Temporal's environment. Its providers are the models of the simulator.
type twin struct {
	t        *testing.T
	h        *timeskip.Harness
	farm     simulation.Farm
	jobs     *trace.Trace
	restarts []cluster.Duration
	began    cluster.Time

	store    *store.Store
	service  *controller.Service
	models   map[string]*model.Model
	agents   map[string]*twinAgent // by the id of the host
	revision int64                 // of the last change that was seen
	wanted   bool                  // a session, now
	unheard  []twinNews
	due      bool               // the unheard news
	runs     map[int64]*twinRun // by job: what it does now
	places   map[int64]int      // by job: its place in the trace

	outcomes []simulation.Outcome
	changes  []simulation.Change
	orders   []string
	loans    []cluster.Loan
	hosts    []cluster.ElasticHost
	report   *timeskip.Report
}

// twinAgent is what runs on a machine, or on a host that the cluster owns.
type twinAgent struct {
	peer pki.Peer
	dead bool
}

// twinRun is one run of a job.
type twinRun struct{ agent *twinAgent }

// twinNews is something that a story is to be told.
type twinNews struct {
	host, provider string
	changed        bool
	signal         string
	arg            any
}

// playTwin plays a farm until a time.
func playTwin(t *testing.T, farm simulation.Farm, jobs *trace.Trace, restarts []cluster.Duration, until cluster.Time) *twin {
	t.Helper()
	w := &twin{
		farm: farm, jobs: jobs, restarts: restarts, began: jobs.Jobs[0].Submit, models: map[string]*model.Model{}, agents: map[string]*twinAgent{},
		runs: map[int64]*twinRun{}, places: map[int64]int{}, outcomes: make([]simulation.Outcome, len(jobs.Jobs)),
	}
	lasts := until.Sub(w.began).Std()
	options := timeskip.Options{
		Start: w.began.Std(), Limit: lasts + time.Hour,
		Exact: &timeskip.Exact{Order: withinInstant, Steps: storiesGoOn, Takes: w.takes},
	}
	w.report = timeskip.Run(t, options, func(t *testing.T, h *timeskip.Harness) {
		w.t, w.h = t, h
		w.build()
		h.AtRank(until.Std(), jobsEnd, h.Stop)
		h.AtEnd(w.remember)
	})
	w.t = t
	return w
}

func (w *twin) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *twin) now() cluster.Time { return cluster.TimeOf(w.h.Now()) }

func (w *twin) at(t cluster.Time, rank int, do func()) {
	w.h.AtRank(t.Std(), rank, do)
}

func (w *twin) build() {
	st, err := store.Open(w.t.Context(), store.Memory)
	w.must(err)
	w.t.Cleanup(func() { w.must(st.Close()) })
	w.store = st
	w.open()
	for _, owned := range w.farm.Hosts {
		w.joinOwned(owned)
	}
	w.register()
	for i := range w.jobs.Jobs {
		w.at(w.jobs.Jobs[i].Submit, jobsArrive, func() { w.submit(i) })
	}
	for _, p := range w.farm.Providers {
		w.buildProvider(p)
	}
	for i, o := range w.farm.Operator {
		w.at(w.began.Add(o.After), storiesGoOn, func() { w.order(i, o) })
	}
	for _, d := range w.restarts {
		w.at(w.began.Add(d), jobsEnd, w.open)
	}
	w.tick(w.began.Add(w.farm.SessionInterval))
	w.at(w.began, storiesGoOn, w.noticed)
}

// tick has a session in every interval, needed or not.
func (w *twin) tick(at cluster.Time) {
	w.at(at, storiesGoOn, func() {
		w.tick(at.Add(w.farm.SessionInterval))
		w.want()
	})
}

// open starts the controller on its store, or starts it anew.
func (w *twin) open() {
	var names []string
	for _, p := range w.farm.Providers {
		names = append(names, p.Name)
	}
	config := controller.Config{
		Cluster: w.farm.Name, SessionInterval: w.farm.SessionInterval, Resources: w.farm.Resources, Providers: names, Policy: w.farm.Policy,
		Thresholds: w.farm.Thresholds, Hosts: w.farm.Rules,
	}
	var err error
	w.service, err = controller.NewService(w.t.Context(), config, w.store, w.now, slog.New(slog.DiscardHandler))
	w.must(err)
}

func (w *twin) joinOwned(owned simulation.OwnedHosts) {
	has, problems := cluster.ReadCapacity("", owned.CPUs, owned.MemoryMB, owned.Countables, owned.Features)
	w.must(problems.Err())
	for n := range max(owned.Count, 1) {
		name := owned.Name
		if owned.Count > 1 {
			name += "-" + strconv.FormatInt(n+1, 10)
		}
		a := &twinAgent{peer: pki.Peer{Role: string(api.HostRole), Name: name}}
		w.agents[name] = a
		w.must(w.service.Join(w.t.Context(), a.peer, joins(has, name)))
	}
}

// joins is what an agent says of its host.
func joins(has cluster.Capacity, instance string) api.JoinHost {
	return api.JoinHost{
		CPUs: has.CPUs, MemoryMB: has.MemoryMB, Countables: has.Countables, Features: has.Features, Attributes: has.Attributes, Instance: instance,
	}
}

func (w *twin) buildProvider(p simulation.Provider) {
	i := slices.IndexFunc(w.farm.Settings.Providers, func(m model.Provider) bool { return m.Name == p.Name })
	zone := time.UTC
	if w.farm.Zone != "" {
		var err error
		zone, err = time.LoadLocation(w.farm.Zone)
		w.must(err)
	}
	w.models[p.Name] = model.New(w.farm.Settings.Providers[i], uint64(w.farm.Seed), model.World{
		Now: w.now, At: func(t cluster.Time, do func()) { w.at(t, storiesGoOn, do) }, Began: w.began, Zone: zone,
		Made: func(m model.Machine, joins cluster.Time, has cluster.Capacity) {
			if joins > 0 {
				w.at(joins, storiesGoOn, func() { w.join(m, has) })
			}
		},
		Dead: w.dead,
	})
	w.at(w.began, storiesGoOn, func() {
		w.must(w.h.Start(workflows.ProviderID(p.Name), workflows.ProviderName, workflows.Provider{
			Name: p.Name, SurveyEvery: p.SurveyEvery, Hosts: workflows.ProviderHosts{OrphanGrace: p.OrphanGrace},
		}))
	})
}

// takes answers how long an activity takes: as the simulator has it.
func (w *twin) takes(activity string, args []any) time.Duration {
	script := func(provider string, verb providers.Verb, id string) time.Duration {
		return w.models[provider].Latency(verb, id).Std()
	}
	switch in := args[0].(type) {
	case activities.SurveyIn:
		return script(in.Provider, providers.VerbDescribe, "")
	case activities.GiveBack:
		return script(in.Provider, providers.VerbReturn, in.Request)
	case activities.Ask:
		verb := map[string]providers.Verb{
			activities.ProviderRequest: providers.VerbRequest, activities.ProviderStatus: providers.VerbStatus, activities.ProviderHolding: providers.VerbList,
		}[activity]
		return script(in.Provider, verb, in.Request)
	}
	return w.farm.Steps.Controller.Std()
}

func (w *twin) register() {
	r := registry{h: w.h}
	worker.RegisterWorkflows(r)
	updates := &activities.Controller{Ledger: twinBooks{w}, Catalog: twinBooks{w}}
	worker.RegisterController(r, updates, &activities.Starter{Workflows: twinStarts{w}})
	worker.RegisterUpdates(r, updates)
	r.providers(w.provider)
}

func (w *twin) provider(name string) *activities.Provider {
	return &activities.Provider{Script: w.models[name], Hosts: twinBooks{w}}
}

// twinBooks is the controller as activities reach it.
type twinBooks struct{ w *twin }

func (b twinBooks) Join(ctx context.Context, host string) (providers.Join, error) {
	token, err := b.w.service.JoinToken(ctx, host)
	return providers.Join{Host: host, Token: token.Token, Deadline: token.Deadline.Std()}, overHTTP(err)
}

func (b twinBooks) Machines(ctx context.Context, provider string) ([]api.HostMachine, error) {
	machines, err := b.w.service.Machines(ctx, provider)
	return machines, overHTTP(err)
}

// twinWrite carries on what a write changed.
func twinWrite[O any](w *twin, out O, err error) (O, error) {
	w.noticed()
	return out, overHTTP(err)
}

func (b twinBooks) Intend(ctx context.Context, in api.IntendLoan) (api.Written, error) {
	out, err := b.w.service.Intend(ctx, provisioner, in)
	return twinWrite(b.w, out, err)
}

func (b twinBooks) Commit(ctx context.Context, in api.CommitLoan) (api.Written, error) {
	out, err := b.w.service.Commit(ctx, provisioner, in)
	return twinWrite(b.w, out, err)
}

func (b twinBooks) Refuse(ctx context.Context, in api.RefuseLoan) (api.Written, error) {
	out, err := b.w.service.Refuse(ctx, provisioner, in)
	return twinWrite(b.w, out, err)
}

func (b twinBooks) Fence(ctx context.Context, in api.FenceLoan) (api.Written, error) {
	out, err := b.w.service.Fence(ctx, provisioner, in)
	return twinWrite(b.w, out, err)
}

func (b twinBooks) Recall(ctx context.Context, in api.RecallLoan) (api.Written, error) {
	out, err := b.w.service.Recall(ctx, provisioner, in)
	return twinWrite(b.w, out, err)
}

func (b twinBooks) Confirm(ctx context.Context, in api.ConfirmLoan) (api.Written, error) {
	out, err := b.w.service.Confirm(ctx, provisioner, in)
	return twinWrite(b.w, out, err)
}

func (b twinBooks) WriteHost(ctx context.Context, in api.WriteHost) (api.HostWritten, error) {
	out, err := b.w.service.WriteHost(ctx, provisioner, in)
	return twinWrite(b.w, out, err)
}

func (b twinBooks) PublishCatalog(ctx context.Context, provider string, c api.Catalog) error {
	_, err := twinWrite(b.w, 0, b.w.service.PublishCatalog(ctx, provisioner, provider, c))
	return err
}

func (b twinBooks) ProviderView(ctx context.Context, provider string, ask []string) (api.ProviderView, error) {
	v, err := b.w.service.ProviderView(ctx, provider, ask)
	return v, overHTTP(err)
}

func (b twinBooks) ReportStray(ctx context.Context, s api.Stray) error {
	_, err := twinWrite(b.w, 0, b.w.service.ReportStray(ctx, provisioner, s))
	return err
}

// twinStarts starts stories as the client of Temporal does.
type twinStarts struct{ w *twin }

func (s twinStarts) StartLoan(_ context.Context, r cluster.LoanRequest) error {
	return s.start(r.ID, workflows.LoanName, workflows.Loan{Request: r})
}

func (s twinStarts) StartHost(_ context.Context, r cluster.HostRequest) error {
	return s.start(r.ID, workflows.HostName, workflows.Host{Request: r})
}

func (s twinStarts) start(id, name string, state any) error {
	options := workflow.ChildWorkflowOptions{WorkflowIDReusePolicy: rejectDuplicate.WorkflowIDReusePolicy}
	err := s.w.h.StartWith(options, id, name, state)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return nil
	}
	return err
}

// submit submits a job. One that is refused takes no part.
func (w *twin) submit(i int) {
	j := &w.jobs.Jobs[i]
	spec := j.Shape.JobSpec
	spec.Command, spec.TimeLimit = []string{"work"}, j.Limit
	kept, err := w.service.Submit(w.t.Context(), "submitter/ada", spec)
	var impossible cluster.Problems
	if errors.As(err, &impossible) {
		w.outcomes[i].State = simulation.Impossible
		return
	}
	w.must(err)
	w.places[kept.ID] = i
	w.outcomes[i].State = simulation.Waiting
	w.noticed()
}

// want asks for a session at this instant.
func (w *twin) want() {
	if !w.wanted {
		w.wanted = true
		w.at(w.now(), sessionRuns, w.session)
	}
}

func (w *twin) session() {
	for _, a := range w.agents {
		w.breathe(a)
	}
	w.must(w.service.Session(w.t.Context()))
	w.wanted = false
	w.carryOn()
}

// breathe is an agent's sign of life.
func (w *twin) breathe(a *twinAgent) {
	if a.dead {
		return
	}
	_, err := w.service.Assignments(w.t.Context(), ended(), a.peer, -1)
	var refused *controller.Refused
	if err != nil && !errors.As(err, &refused) {
		w.must(err)
	}
}

// noticed carries on what was changed just now, and has a session follow if anything was.
func (w *twin) noticed() {
	if w.carryOn() {
		w.want()
	}
}

// carryOn carries on what changed, as agents and the bridge do.
func (w *twin) carryOn() (some bool) {
	for {
		page, err := w.service.Changes(w.t.Context(), ended(), w.revision)
		w.must(err)
		if len(page.Changes) == 0 {
			return some
		}
		some, w.revision = true, page.Revision
		for _, c := range page.Changes {
			w.carry(c)
		}
	}
}

func (w *twin) carry(c api.Change) {
	w.keep(c)
	switch {
	case c.Kind == api.KindJob:
		var before, after cluster.Job
		w.read(c.Before, &before)
		w.read(c.After, &after)
		w.carryJob(before, after)
	case c.Kind == api.KindDemand:
		w.spread(twinNews{provider: c.Subject})
	case strings.HasPrefix(c.Kind, api.KindHostWrite):
		w.carryHost(c)
	}
}

func (w *twin) read(data json.RawMessage, to any) {
	if len(data) > 0 {
		w.must(json.Unmarshal(data, to))
	}
}

// carryHost tells of a host what the bridge would.
func (w *twin) carryHost(c api.Change) {
	var row cluster.ElasticHost
	w.read(c.After, &row)
	switch c.Kind {
	case api.KindJoined:
		w.spread(twinNews{host: row.ID, signal: workflows.SignalJoined, arg: workflows.HostJoined{At: row.Joined}})
	case api.KindEmptied:
		w.spread(twinNews{host: row.ID, signal: workflows.SignalEmptied, arg: struct{}{}})
	case api.KindSuspect, api.KindLost, api.KindWell:
		w.spread(twinNews{host: row.ID, signal: workflows.SignalHealth, arg: workflows.HostHealth{Health: row.Health}})
	default:
		if !row.State.Open() {
			w.spread(twinNews{provider: row.Provider, changed: true})
		}
	}
}

func (w *twin) spread(n twinNews) {
	w.unheard = append(w.unheard, n)
	if !w.due {
		w.due = true
		w.at(w.now().Add(w.farm.Steps.News), newsIsTold, w.hear)
	}
}

// hear tells stories what is new, as the bridge does: hosts in the order of the changes, then each provider once.
func (w *twin) hear() {
	heard := w.unheard
	w.unheard, w.due = nil, false
	for _, n := range heard {
		if n.host != "" {
			w.signal(n.host, n.signal, n.arg)
		}
	}
	for _, p := range w.farm.Providers {
		some, changed := false, false
		for _, n := range heard {
			if n.provider == p.Name {
				some, changed = true, changed || n.changed
			}
		}
		switch {
		case changed:
			w.signal(workflows.ProviderID(p.Name), workflows.SignalCatalogChanged, workflows.Changed{})
		case some:
			w.signal(workflows.ProviderID(p.Name), workflows.SignalDemand, struct{}{})
		}
	}
}

// signal tells a story, which may be over.
func (w *twin) signal(id, name string, arg any) {
	err := w.h.Signal(id, name, arg)
	var gone *serviceerror.NotFound
	if !errors.As(err, &gone) {
		w.must(err)
	}
}

// carryJob does what agents do with a job.
func (w *twin) carryJob(before, after cluster.Job) {
	i, known := w.places[after.ID]
	if !known {
		return // it is being submitted
	}
	out, job := &w.outcomes[i], &w.jobs.Jobs[i]
	switch {
	case after.State == cluster.JobRunning && before.State == cluster.JobWaiting:
		out.State, out.Start = simulation.Running, after.Started
		a := w.agentOf(after.Host)
		if a.dead {
			return // it gets no word of it
		}
		r := &twinRun{a}
		w.runs[after.ID] = r
		runs, state := job.Run, cluster.JobDone
		if job.Limit > 0 && job.Limit < job.Run {
			runs, state = job.Limit, cluster.JobTimeout
		}
		w.at(w.now().Add(runs), jobsEnd, func() { w.end(r, after.ID, state) })
	case after.Stopping && !before.Stopping:
		if r := w.runs[after.ID]; r != nil {
			w.at(w.now().Add(w.farm.Steps.Stop), storiesGoOn, func() { w.end(r, after.ID, cluster.JobWaiting) })
		}
	case after.State == cluster.JobWaiting && before.State == cluster.JobRunning:
		out.State, out.Start = simulation.Waiting, 0
		out.Requeues++
		delete(w.runs, after.ID)
	case after.State.Ended():
		out.State, out.End = simulation.Done, after.Ended
		if after.State == cluster.JobTimeout {
			out.State = simulation.TimedOut
		}
		delete(w.runs, after.ID)
	}
}

// agentOf finds who is on a host.
func (w *twin) agentOf(name string) *twinAgent {
	for _, a := range w.agents {
		if a.peer.Name == name && !a.dead {
			return a
		}
	}
	return &twinAgent{dead: true}
}

// end reports the end of a run, if it still is one.
func (w *twin) end(r *twinRun, id int64, state cluster.JobState) {
	if w.runs[id] != r || r.agent.dead {
		return
	}
	w.must(w.service.EndJob(w.t.Context(), r.agent.peer, id, api.JobEnd{State: state, Why: string(state)}))
	w.noticed()
}

// join has a machine join; where it is not expected yet, it tries again.
func (w *twin) join(m model.Machine, has cluster.Capacity) {
	if w.models[w.rowOf(m.Request).Provider].Held(m.Request) == 0 {
		return
	}
	row := w.rowOf(m.Request)
	a := &twinAgent{peer: pki.Peer{Role: string(api.HostRole), Name: row.Name, ID: row.ID}}
	err := w.service.Join(w.t.Context(), a.peer, joins(has, m.ID))
	switch {
	case err == nil:
		w.agents[row.ID] = a
		w.noticed()
	case !api.Permanent(overHTTP(err)):
		w.at(w.now().Add(cluster.Second), storiesGoOn, func() { w.join(m, has) })
	}
}

func (w *twin) rowOf(id string) cluster.ElasticHost {
	rows, err := w.service.ElasticHosts(w.t.Context(), true)
	w.must(err)
	i := slices.IndexFunc(rows, func(r cluster.ElasticHost) bool { return r.ID == id })
	if i < 0 {
		w.t.Fatalf("there is no host %s", id)
	}
	return rows[i]
}

// dead silences the agent of a machine that is no more, which was heard of until now.
func (w *twin) dead(m model.Machine) {
	if a := w.agents[m.Request]; a != nil {
		w.breathe(a)
		a.dead = true
	}
}

// order carries out an operator's order.
func (w *twin) order(i int, o simulation.Order) {
	const by = "admin/operator"
	ctx := w.t.Context()
	switch o.Do {
	case "return":
		w.update(i, o, workflows.UpdateReturn, workflows.ReturnUnits{Units: o.Units, By: by})
	case "believe":
		w.ordered(o, w.h.Signal(workflows.ProviderID(o.Subject), workflows.SignalBelieve, struct{}{}))
	case "own":
		w.ordered(o, w.service.SetOwned(ctx, by, o.Subject, api.Owned{Owned: o.Units, Why: "ordered"}))
	case "lend":
		w.ordered(o, w.service.Lend(ctx, by, "lending/"+o.Subject, api.LendUnits{Resource: o.Subject, Units: o.Units, To: by}))
	default:
		w.update(i, o, o.Do, workflows.HostOrder{By: by, Why: o.Why, Within: o.Within, Requeue: o.Requeue})
	}
	w.noticed()
}

func (w *twin) update(i int, o simulation.Order, name string, arg any) {
	u := w.h.Update(o.Subject, fmt.Sprintf("order %d", i), name, arg)
	u.Then(func() { w.ordered(o, u.Result(nil)) })
}

func (w *twin) ordered(o simulation.Order, err error) {
	w.orders = append(w.orders, orderLine(w.now(), o.Do, o.Subject, err != nil))
}

func orderLine(at cluster.Time, do, subject string, refused bool) string {
	return fmt.Sprintf("%s %s %s: refused %v", at, do, subject, refused)
}

// keep keeps a change in the form of the simulator.
func (w *twin) keep(c api.Change) {
	kept := simulation.Change{At: c.At, Subject: c.Resource, Before: strconv.FormatInt(c.TotalBefore, 10), After: strconv.FormatInt(c.TotalAfter, 10)}
	switch {
	case strings.HasPrefix(c.Kind, api.KindLoanWrite):
		kept.Cause = strings.TrimPrefix(c.Kind, api.KindLoanWrite) + " " + c.Subject
	case c.Kind == api.KindLending:
		kept.Cause = "lent"
	case c.Kind == api.KindResource && len(c.Before) > 0:
		kept.Cause = "owned"
	case strings.HasPrefix(c.Kind, api.KindHostWrite):
		before, after := cluster.ElasticHost{State: "none"}, cluster.ElasticHost{}
		w.read(c.Before, &before)
		w.read(c.After, &after)
		kept.Subject, kept.Before, kept.After = c.Subject, string(before.State), string(after.State)
		kept.Cause = strings.TrimPrefix(c.Kind, api.KindHostWrite)
		if c.Kind == api.KindEmptied {
			return // of the state nothing
		}
	default:
		return
	}
	if kept.Before != kept.After {
		w.changes = append(w.changes, kept)
	}
}

// remember keeps what is asked for when all is over.
func (w *twin) remember() {
	var err error
	w.loans, err = w.service.Loans(w.t.Context(), true)
	w.must(err)
	w.hosts, err = w.service.ElasticHosts(w.t.Context(), true)
	w.must(err)
}
