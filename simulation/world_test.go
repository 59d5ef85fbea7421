package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/lender"
	"xce.internal/elastic/simulation/timeskip"
	"xce.internal/elastic/worker"
	"xce.internal/elastic/workflows"
)

// scene is what a world begins with. What is not given is as in newScene.
type scene struct {
	timeskip.Options
	// lasts is how long the world is played.
	lasts time.Duration
	// sessions and surveys are intervals; ensured is how often all stories are made sure of.
	sessions, surveys, ensured time.Duration
	resources                  []cluster.SharedResource
	lenders                    []string // their names
	makers                     []string // their names
	hosts                      cluster.HostRules
	orphanGrace                time.Duration
	// bare is a cluster without a host of its own.
	bare bool
	// authority makes the certificates of hosts that join with their tokens.
	authority *pki.Authority
	// mortal lets workflows of loans and hosts be terminated by the signal "terminate".
	mortal bool
}

const (
	pool  = "pool-a"
	other = "pool-b"
	node  = "node1"
	first = "loan/vcs/pool-a-1"
)

var nodePeer = pki.Peer{Role: string(api.HostRole), Name: node}

// newScene is a cluster that owns 4 vcs and may borrow 8 more of one lender;
// what is idle for 30 minutes goes back.
func newScene(lasts time.Duration) scene {
	return scene{
		Options: timeskip.Options{Seed: 1, Start: time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)}, lasts: lasts,
		sessions: 10 * time.Minute, surveys: 15 * time.Minute, ensured: time.Hour,
		resources: []cluster.SharedResource{vcs(4, 8)}, lenders: []string{pool},
	}
}

func vcs(owned, maxBorrowed int64) cluster.SharedResource {
	return cluster.SharedResource{Name: "vcs", Owned: owned, Elastic: &cluster.Elastic{
		Lenders: []string{pool}, MaxBorrowed: maxBorrowed, IdleTime: 30 * cluster.Minute,
	}}
}

// world is a cluster with everything that is ours as it is in production: the
// controller's service on its store, the activities, the workflows. Lenders are
// in memory. What daemons do by themselves, sessions after every change, telling
// providers of demand, making sure of every story, is done here step by step.
type world struct {
	t       *testing.T
	h       *timeskip.Harness
	scene   scene
	store   *store.Store
	service *controller.Service
	lenders map[string]*lender.Lender
	yard
	// commitFails, where set, is how the controller answers every commit.
	commitFails error

	jobs     map[int64]*job
	revision int64 // of the last change that was carried on
	kicked   bool  // a session is coming

	// What is left when all is over.
	report  *timeskip.Report
	changes []api.Change
	loans   []cluster.Loan
}

// job is one job of the script.
type job struct {
	id      int64
	runs    time.Duration // 0: until it is ended by hand
	started time.Duration
	ended   bool
	// starts counts the starts on elastic hosts.
	starts int
}

// play plays a world to its end. The script says what happens from outside.
func play(t *testing.T, s scene, script func(*world)) *world {
	t.Helper()
	w := &world{scene: s, lenders: map[string]*lender.Lender{}, jobs: map[int64]*job{}, yard: newYard()}
	s.Limit = s.lasts + time.Minute
	report := timeskip.Run(t, s.Options, func(t *testing.T, h *timeskip.Harness) {
		w.t, w.h = t, h
		w.build()
		script(w)
		h.At(s.lasts, h.Stop)
		h.AtEnd(w.remember)
	})
	w.t, w.report = t, report
	return w
}

func (w *world) build() {
	w.authority = w.scene.authority
	w.open()
	for _, name := range w.scene.lenders {
		l := &lender.Lender{Now: w.h.Now, Offers: []lender.Offer{{Resource: "vcs", Capacity: 8, Price: 250_000}}}
		l.BeforeReturn = func(in providers.ReturnIn) { w.judgeReturn(name, in) }
		w.lenders[name] = l
	}
	w.register()
	w.buildMakers()
	for _, name := range w.scene.lenders {
		w.must(w.h.Start(workflows.ProviderID(name), workflows.ProviderName,
			workflows.Provider{Name: name, SurveyEvery: cluster.DurationOf(w.scene.surveys)}))
	}
	w.h.Every(w.scene.sessions, func() {
		if !w.quiet() {
			w.session()
		}
	})
	w.h.Every(w.scene.ensured, w.ensure)
}

// open opens an empty store and the service on it.
func (w *world) open() {
	st, err := store.Open(w.t.Context(), store.Memory)
	w.must(err)
	w.t.Cleanup(func() { w.must(st.Close()) })
	w.store, w.revision = st, 0
	w.configure(w.scene.resources...)
	if w.scene.bare {
		return
	}
	w.must(w.service.Join(w.t.Context(), nodePeer, api.JoinHost{CPUs: 1000, MemoryMB: 1 << 20}))
}

// configure starts the controller, or starts it anew, with these resources.
func (w *world) configure(resources ...cluster.SharedResource) {
	config := controller.Config{
		Cluster: "east", SessionInterval: cluster.DurationOf(w.scene.sessions), Resources: resources,
		Providers: slices.Concat(w.scene.lenders, w.scene.makers), Hosts: w.scene.hosts,
	}
	if w.authority != nil {
		config.Authority = w.authority
	}
	var err error
	w.service, err = controller.NewService(w.t.Context(), config, w.store, w.now, slog.New(slog.DiscardHandler))
	w.must(err)
}

func (w *world) now() cluster.Time { return cluster.TimeOf(w.h.Now()) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// registry lets the worker register at the harness what it does at Temporal.
type registry struct {
	sdkworker.WorkflowRegistry
	sdkworker.ActivityRegistry
	h *timeskip.Harness
}

func (r registry) RegisterWorkflowWithOptions(fn any, o workflow.RegisterOptions) {
	r.h.RegisterWorkflow(fn, o.Name)
}

func (r registry) RegisterActivityWithOptions(fn any, o activity.RegisterOptions) {
	r.h.RegisterActivity(fn, o.Name)
}

// providers registers the activities of all providers. In production each has a task queue; here there is one for all.
func (r registry) providers(of func(name string) *activities.Provider) {
	r.h.RegisterActivity(func(ctx context.Context, in activities.SurveyIn) (activities.Survey, error) {
		return of(in.Provider).Survey(ctx, in)
	}, activities.ProviderSurvey)
	r.h.RegisterActivity(func(ctx context.Context, in activities.Ask) (activities.Grant, error) {
		return of(in.Provider).Request(ctx, in)
	}, activities.ProviderRequest)
	r.h.RegisterActivity(func(ctx context.Context, in activities.Ask) (activities.Grant, error) {
		return of(in.Provider).Status(ctx, in)
	}, activities.ProviderStatus)
	r.h.RegisterActivity(func(ctx context.Context, in activities.Ask) (activities.Grant, error) {
		return of(in.Provider).Holding(ctx, in)
	}, activities.ProviderHolding)
	r.h.RegisterActivity(func(ctx context.Context, in activities.GiveBack) (activities.Grant, error) {
		return of(in.Provider).Return(ctx, in)
	}, activities.ProviderReturn)
}

func (w *world) register() {
	r := registry{h: w.h}
	if w.scene.mortal {
		r.h.RegisterWorkflow(mortal(workflows.LoanWorkflow), workflows.LoanName)
		r.h.RegisterWorkflow(mortal(workflows.HostWorkflow), workflows.HostName)
		r.h.RegisterWorkflow(workflows.ProviderWorkflow, workflows.ProviderName)
	} else {
		worker.RegisterWorkflows(r)
	}
	updates := &activities.Controller{Ledger: books{w}, Catalog: books{w}}
	worker.RegisterController(r, updates, &activities.Starter{Workflows: starts{w}})
	worker.RegisterUpdates(r, updates)
	r.providers(w.provider)
}

func (w *world) provider(name string) *activities.Provider {
	if m := w.makers[name]; m != nil {
		return &activities.Provider{Script: m, Hosts: gate{w}}
	}
	return &activities.Provider{Script: w.lenders[name]}
}

// books is the controller as the activities reach it.
type books struct{ w *world }

const provisioner = "provisioner/p1"

// errDown is what comes of calling a controller that is down.
var errDown = errors.New("connection refused")

func write[I any](ctx context.Context, b books, in I, do func(context.Context, string, I) (api.Written, error)) (api.Written, error) {
	if b.w.down {
		return api.Written{}, errDown
	}
	out, err := do(ctx, provisioner, in)
	b.w.kick()
	return out, overHTTP(err)
}

// overHTTP makes of an error what the controller's client would.
func overHTTP(err error) error {
	var refused *controller.Refused
	if errors.As(err, &refused) {
		return &api.Error{Status: refused.Status, Detail: refused.Text}
	}
	return err
}

func (b books) Intend(ctx context.Context, in api.IntendLoan) (api.Written, error) {
	return write(ctx, b, in, b.w.service.Intend)
}

func (b books) Commit(ctx context.Context, in api.CommitLoan) (api.Written, error) {
	if b.w.commitFails != nil {
		return api.Written{}, b.w.commitFails
	}
	return write(ctx, b, in, b.w.service.Commit)
}

func (b books) Refuse(ctx context.Context, in api.RefuseLoan) (api.Written, error) {
	return write(ctx, b, in, b.w.service.Refuse)
}

func (b books) Fence(ctx context.Context, in api.FenceLoan) (api.Written, error) {
	return write(ctx, b, in, b.w.service.Fence)
}

func (b books) Recall(ctx context.Context, in api.RecallLoan) (api.Written, error) {
	return write(ctx, b, in, b.w.service.Recall)
}

func (b books) Confirm(ctx context.Context, in api.ConfirmLoan) (api.Written, error) {
	return write(ctx, b, in, b.w.service.Confirm)
}

func (b books) PublishCatalog(ctx context.Context, provider string, c api.Catalog) error {
	if b.w.down {
		return errDown
	}
	err := b.w.service.PublishCatalog(ctx, provisioner, provider, c)
	b.w.kick()
	return overHTTP(err)
}

func (b books) WriteHost(ctx context.Context, in api.WriteHost) (api.HostWritten, error) {
	if b.w.down {
		return api.HostWritten{}, errDown
	}
	written, err := b.w.service.WriteHost(ctx, provisioner, in)
	b.w.kick()
	return written, overHTTP(err)
}

func (b books) ProviderView(ctx context.Context, provider string, ask []string) (api.ProviderView, error) {
	if b.w.down {
		return api.ProviderView{}, errDown
	}
	v, err := b.w.service.ProviderView(ctx, provider, ask)
	return v, overHTTP(err)
}

func (b books) ReportStray(ctx context.Context, s api.Stray) error {
	return overHTTP(b.w.service.ReportStray(ctx, provisioner, s))
}

var (
	rejectDuplicate = workflow.ChildWorkflowOptions{WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE}
	allowDuplicate  = workflow.ChildWorkflowOptions{WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}
)

// starts starts loans as the client of Temporal does.
type starts struct{ w *world }

func (s starts) StartLoan(_ context.Context, r cluster.LoanRequest) error {
	return s.start(workflows.Loan{Request: r}, rejectDuplicate)
}

func (s starts) StartHost(_ context.Context, r cluster.HostRequest) error {
	return s.startHost(workflows.Host{Request: r}, rejectDuplicate)
}

func (s starts) startHost(h workflows.Host, options workflow.ChildWorkflowOptions) error {
	return s.started(s.w.h.StartWith(options, h.Request.ID, workflows.HostName, h))
}

func (s starts) start(l workflows.Loan, options workflow.ChildWorkflowOptions) error {
	return s.started(s.w.h.StartWith(options, l.Request.ID, workflows.LoanName, l))
}

// started takes a story that was started before for one that is started.
func (s starts) started(err error) error {
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return nil
	}
	return err
}

// ensure makes sure of every story, as the provisioner does now and then.
func (w *world) ensure() {
	if w.down {
		return
	}
	w.ensureHosts()
	for _, name := range w.scene.lenders {
		w.must(w.h.Signal(workflows.ProviderID(name), workflows.SignalCatalogChanged,
			workflows.Changed{SurveyEvery: cluster.DurationOf(w.scene.surveys)}))
	}
	loans, err := w.service.Loans(w.t.Context(), false)
	w.must(err)
	for _, l := range loans {
		w.must(starts{w}.start(workflows.ResumeLoan(l), allowDuplicate))
	}
}

// kick asks for a session, as every change does.
func (w *world) kick() {
	if !w.kicked {
		w.kicked = true
		w.h.After(10*time.Millisecond, w.session)
	}
}

// session runs a session, and carries on what it decided.
func (w *world) session() {
	w.kicked = false
	if w.down {
		return
	}
	if !w.scene.bare {
		_, err := w.service.Assignments(w.t.Context(), ended(), nodePeer, -1) // the host's sign of life
		w.must(err)
	}
	w.askForJobs()
	w.must(w.service.Session(w.t.Context()))
	w.askForJobs()
	if !w.deaf {
		w.carryOn()
	}
}

// carryOn carries on what changed in the controller, as the provisioner's bridge does.
func (w *world) carryOn() {
	var told []string
	for _, c := range w.read(w.revision) {
		w.revision = c.Revision
		switch {
		case c.Kind == api.KindJob && c.Why == "placed on "+node:
			w.started(c)
		case c.Kind == api.KindDemand && !slices.Contains(told, c.Subject):
			told = append(told, c.Subject)
			w.must(w.h.Signal(workflows.ProviderID(c.Subject), workflows.SignalDemand, struct{}{}))
		default:
			w.tellHost(c)
		}
	}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// read reads the audit records after a revision.
func (w *world) read(after int64) (all []api.Change) {
	for {
		page, err := w.service.Changes(w.t.Context(), ended(), after)
		w.must(err)
		if len(page.Changes) == 0 {
			return all
		}
		all, after = append(all, page.Changes...), page.Revision
	}
}

func (w *world) started(c api.Change) {
	id, err := strconv.ParseInt(c.Subject, 10, 64)
	w.must(err)
	j := w.jobs[id]
	j.started = w.since(c.At)
	if j.runs > 0 {
		w.h.After(j.runs, func() { w.stop(j) })
	}
}

func (w *world) stop(j *job) {
	if j.ended {
		return
	}
	j.ended = true
	w.must(w.service.EndJob(w.t.Context(), nodePeer, j.id, api.JobEnd{State: cluster.JobDone, Why: "done"}))
	w.kick()
}

// submit submits a job that takes units of vcs, at an instant.
func (w *world) submit(at time.Duration, units int64, runs time.Duration) *job {
	return w.submitFor(at, map[string]int64{"vcs": units}, runs)
}

func (w *world) submitFor(at time.Duration, tokens map[string]int64, runs time.Duration) *job {
	j := &job{runs: runs}
	w.h.At(at, func() {
		kept, err := w.service.Submit(w.t.Context(), "submitter/ada", cluster.JobSpec{Command: []string{"work"}, CPUs: 1, Tokens: tokens})
		w.must(err)
		j.id = kept.ID
		w.jobs[j.id] = j
		w.kick()
	})
	return j
}

// giveBack is an operator's wish, at an instant.
func (w *world) giveBack(at time.Duration, loan string, units int64) *wish {
	a := &wish{}
	w.h.At(at, func() {
		a.update = w.h.Update(loan, fmt.Sprintf("wish at %s", at), workflows.UpdateReturn, workflows.ReturnUnits{Units: units, By: "admin/eve"})
	})
	return a
}

// wish is an operator's wish and its answer.
type wish struct{ update *timeskip.Update }

// answer is how many units go back, or why none do.
func (a *wish) answer() string {
	var back workflows.ReturnAnswer
	if err := a.update.Result(&back); err != nil {
		return "refused: " + err.Error()
	}
	return fmt.Sprintf("%d go back", back.Units)
}

// ask asks a loan's story how it stands.
func (w *world) ask(loan string) (l workflows.Loan) {
	w.must(w.h.Query(loan, workflows.QueryLoan, &l))
	return l
}

// judgeReturn sees every return of units: only what the controller has taken out
// of the total may go back.
func (w *world) judgeReturn(name string, in providers.ReturnIn) {
	loans, err := w.service.Loans(w.t.Context(), false)
	w.must(err)
	for _, l := range loans {
		kept := min((l.Borrowed+l.Recalled)*l.UnitWeight, w.lenders[name].LentTo(l.ID))
		if l.ID == in.RequestID && in.Remaining < kept {
			w.t.Errorf("%s: %s is to keep %d of %s, of which jobs may use %d", w.since(w.now()), name, in.Remaining, l.ID, kept)
		}
	}
}

// remember keeps what is asked for when all is over, and judges what must be
// true of every world.
func (w *world) remember() {
	w.changes = w.read(0)
	loans, err := w.service.Loans(w.t.Context(), true)
	w.must(err)
	w.loans = loans
	w.rowsOfHosts, err = w.service.ElasticHosts(w.t.Context(), true)
	w.must(err)
	w.judge()
}

// judge checks the audit log: totals follow each other, and no unit was fenced
// that a job used.
func (w *world) judge() {
	total := map[string]int64{}
	for _, c := range w.changes {
		if c.Resource == "" {
			continue
		}
		if c.Kind != api.KindResource && c.TotalBefore != total[c.Resource] {
			w.t.Errorf("revision %d: total of %s was %d and is changed from %d", c.Revision, c.Resource, total[c.Resource], c.TotalBefore)
		}
		total[c.Resource] = c.TotalAfter
	}
}

// settled checks that all is as it was before anything was borrowed.
func (w *world) settled() {
	w.t.Helper()
	for _, l := range w.loans {
		if l.State.Open() || l.Held() > 0 {
			w.t.Errorf("%s is %s with %d units: %s", l.ID, l.State, l.Held(), l.Why)
		}
		if story := w.report.Workflow(l.ID); story.Open() || story.Err != nil {
			w.t.Errorf("the story of %s is open: %v, error: %v", l.ID, story.Open(), story.Err)
		}
	}
	for name, l := range w.lenders {
		for _, o := range l.Offers {
			if lent := l.Lent(o.Resource); lent != 0 {
				w.t.Errorf("%s still lends %d %s:\n%s", name, lent, o.Resource, l)
			}
		}
	}
}

func (w *world) since(at cluster.Time) time.Duration { return at.Std().Sub(w.scene.Start) }

// clock writes an instant of the play to the minute.
func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

// totals are all changes of a resource's total.
func (w *world) totals(resource string) (lines []string) {
	for _, c := range w.changes {
		if c.Resource == resource && c.TotalBefore != c.TotalAfter && c.Kind != api.KindResource {
			lines = append(lines, fmt.Sprintf("%s %d>%d", clock(w.since(c.At)), c.TotalBefore, c.TotalAfter))
		}
	}
	return lines
}

// lent are all changes of what a lender lends.
func (w *world) lent(name string) (lines []string) {
	for _, m := range w.lenders[name].Moves {
		lines = append(lines, fmt.Sprintf("%s %s%+d", clock(w.since(cluster.TimeOf(m.At))), short(m.Request), m.Units))
	}
	return lines
}

func short(id string) string { return "#" + id[strings.LastIndex(id, "-")+1:] + " " }

// rows are the loans with their ends.
func (w *world) rows() (lines []string) {
	for _, l := range w.loans {
		lines = append(lines, fmt.Sprintf("%s %s: %s", l.ID, l.State, l.Why))
	}
	return lines
}

// kinds are the audit records of one kind.
func (w *world) kinds(kind string) (lines []string) {
	for _, c := range w.changes {
		if c.Kind == kind {
			lines = append(lines, fmt.Sprintf("%s %s: %s", clock(w.since(c.At)), c.Subject, c.Why))
		}
	}
	return lines
}

func (w *world) same(what string, got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s:\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// mortal is a story's workflow that can be terminated by hand: it ends on the
// spot, whatever it was about.
func mortal[S any](story func(workflow.Context, S) error) func(workflow.Context, S) error {
	return func(ctx workflow.Context, s S) (err error) {
		over := false
		workflow.Go(ctx, func(ctx workflow.Context) {
			err = story(ctx, s)
			over = true
		})
		terminate := workflow.GetSignalChannel(ctx, "terminate")
		if e := workflow.Await(ctx, func() bool { return over || terminate.ReceiveAsync(nil) }); e != nil {
			return e
		}
		return err
	}
}
