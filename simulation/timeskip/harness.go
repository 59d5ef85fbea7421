package timeskip

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Options of a run. The zero value is usable.
type Options struct {
	// Seed decides all latencies and shifts.
	Seed uint64
	// Start is the virtual time at which the run starts: Monday 2026-01-05T00:00:00Z unless given.
	Start time.Time
	// Limit ends the run after so much virtual time, whatever is still open: 30 days unless given.
	Limit time.Duration
	// Latency bounds the time from the start of an attempt to its answer, by type of
	// activity: 20 to 500 ms unless given. An attempt that takes longer than its StartToClose
	// timeout has its effect all the same, but times out.
	Latency func(activityType string) (low, high time.Duration)
	// Faults says what goes wrong: nothing unless given. It must depend on its argument only.
	Faults func(Attempt) Fault
	// SuggestContinueAsNew is the number of history events at which continue-as-new is suggested
	// to a workflow: 4096, the server's, unless given. The harness counts six for each activity,
	// timer, signal and update of a run.
	SuggestContinueAsNew int
	// Exact, where given, takes the place of all latencies and shifts.
	Exact *Exact
	// Logger of workflows and activities: silent unless given.
	Logger log.Logger
}

const (
	defaultLimit   = 30 * 24 * time.Hour
	defaultSuggest = 4096
	// shiftLimit is how late a scripted action may run.
	shiftLimit = time.Millisecond
	// idleLimit is on the bubble's clock, which jumps there when there is nothing to wait for.
	idleLimit = time.Hour
)

func (o Options) withDefaults() Options {
	if o.Start.IsZero() {
		o.Start = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	if o.Latency == nil {
		o.Latency = defaultLatency
	}
	if o.Faults == nil {
		o.Faults = func(Attempt) Fault { return None }
	}
	if o.SuggestContinueAsNew <= 0 {
		o.SuggestContinueAsNew = defaultSuggest
	}
	if o.Logger == nil {
		o.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	}
	return o
}

// defaultLatency is that of a service nearby.
func defaultLatency(string) (low, high time.Duration) {
	return 20 * time.Millisecond, 500 * time.Millisecond
}

// Harness is the world of one run. See the package's documentation for when its
// methods may be called.
type Harness struct {
	t      *testing.T
	opts   Options
	env    *testsuite.TestWorkflowEnvironment
	agenda *agenda
	places places // of an exact run
	trace  Trace

	workflows map[string]*record
	started   []string // ids in the order of their first start
	types     map[string]bool
	requests  []startRequest // for the host to start
	calls     calls
	hostInfo  *workflow.Info

	updatesSent int

	until         func() bool
	atEnd         []func()
	phase         phase
	reason        Reason
	ended         time.Time
	checkIsQueued bool
}

type phase int

const (
	settingUp phase = iota
	running
	stopping // no more actions; the host is about to close what is open
	stopped
)

// Report is what is known after a run.
type Report struct {
	Trace     Trace
	Workflows []Workflow // in the order of their first start
	Reason    Reason
	Ended     time.Time // virtual
}

// Workflow gives the workflow with this id; its zero value if there was none.
func (r *Report) Workflow(id string) Workflow {
	i := slices.IndexFunc(r.Workflows, func(w Workflow) bool { return w.ID == id })
	if i < 0 {
		return Workflow{}
	}
	return r.Workflows[i]
}

// Reason is why a run ended.
type Reason string

// The reasons.
const (
	ReachedLimit     Reason = "limit reached"
	ReachedCondition Reason = "condition reached"
	NothingLeft      Reason = "nothing left to happen"
	Asked            Reason = "asked to stop"
)

// Run sets up a world and runs it to its end: the limit, the condition given to Until,
// a call of Stop, or, without Until, when all workflows are closed and no action is left.
func Run(t *testing.T, opts Options, setup func(t *testing.T, h *Harness)) *Report {
	t.Helper()
	var report *Report
	inBubble(t, func(t *testing.T) {
		h := newHarness(t, opts.withDefaults())
		setup(t, h)
		h.run()
		report = h.report()
	})
	return report
}

func newHarness(t *testing.T, opts Options) *Harness {
	h := &Harness{
		t:         t,
		opts:      opts,
		agenda:    newAgenda(),
		places:    places{Exact: opts.Exact, next: make(map[int64]int64)},
		workflows: make(map[string]*record),
		types:     make(map[string]bool),
		calls:     calls{byActivity: make(map[activityKey]*call)},
	}
	h.env = h.newEnvironment()
	h.agenda.add(&entry{at: opts.Start.Add(opts.Limit), do: func() { h.stop(ReachedLimit) }, background: true})
	return h
}

func (h *Harness) newEnvironment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(h.opts.Logger)
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(h.opts.Start)
	env.SetTestTimeout(idleLimit)
	env.SetWorkflowRunTimeout(0)
	env.SetDetachedChildWait(false)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&workerInterceptor{h: h}}})
	env.RegisterWorkflowWithOptions(h.host, workflow.RegisterOptions{Name: hostType})
	env.SetOnChildWorkflowCompletedListener(h.closed)
	env.SetOnActivityCanceledListener(func(info *activity.Info) { h.calls.cancel(info) })
	return env
}

// RegisterWorkflow registers a workflow function under a name.
func (h *Harness) RegisterWorkflow(fn any, name string) {
	h.types[name] = true
	h.env.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: name})
}

// RegisterActivity registers an activity function, such as a method of a world, under a name.
func (h *Harness) RegisterActivity(fn any, name string) {
	h.env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
}

// Now is the virtual time.
func (h *Harness) Now() time.Time { return h.env.Now().UTC() }

// At does f at an instant d after the start of the run; at once if that has passed.
func (h *Harness) At(d time.Duration, f func()) {
	h.push(h.shifted(h.opts.Start.Add(d)), false, f)
}

// After does f when d has passed from now.
func (h *Harness) After(d time.Duration, f func()) {
	h.push(h.shifted(h.Now().Add(d)), false, f)
}

// Every does f again and again, first a period from now. It does not keep the run going.
func (h *Harness) Every(period time.Duration, f func()) {
	if period <= 0 {
		h.t.Fatalf("timeskip: Every with period %v", period)
	}
	h.every(h.Now().Add(period), period, f)
}

func (h *Harness) every(at time.Time, period time.Duration, f func()) {
	h.push(h.shifted(at), true, func() {
		h.every(at.Add(period), period, f)
		f()
	})
}

// Until ends the run as soon as condition is true. It is asked after each step, and should be
// quick. A run that reaches its limit first fails the test.
func (h *Harness) Until(condition func() bool) { h.until = condition }

// AtEnd does f when the run has ended but all workflows are as they were, for last queries.
func (h *Harness) AtEnd(f func()) { h.atEnd = append(h.atEnd, f) }

// Stop ends the run after the present step.
func (h *Harness) Stop() { h.stop(Asked) }

// shifted moves an instant by a seeded bit. Scripts that think in round hours would otherwise meet
// the timers of workflows that do so too.
func (h *Harness) shifted(at time.Time) time.Time {
	if h.opts.Exact != nil {
		return at
	}
	return at.Add(drawDuration(1, shiftLimit, h.opts.Seed, "shift", at.UnixNano()))
}

// push puts a step on the agenda.
func (h *Harness) push(at time.Time, background bool, step func()) {
	now := h.Now()
	switch {
	case h.opts.Exact != nil:
		at = h.places.take(at, now, h.opts.Exact.Steps)
	case !at.After(now):
		at = now.Add(1)
	}
	h.agenda.add(&entry{at: at, do: step, background: background})
	h.arm()
}

// arm asks the environment to call when the next step is due.
func (h *Harness) arm() {
	if h.phase != running {
		return
	}
	if e := h.agenda.next(); e != nil && !e.armed {
		e.armed = true
		h.env.RegisterDelayedCallback(h.step, e.at.Sub(h.Now()))
	}
}

// step does what is due. It may be called for an entry that an earlier one has overtaken.
func (h *Harness) step() {
	if h.phase != running {
		return
	}
	if e := h.agenda.due(h.Now()); e != nil {
		e.do()
		h.check()
	}
	h.arm()
}

// check looks, once all that a step has caused is settled, whether the run is to end.
func (h *Harness) check() {
	if h.checkIsQueued || h.phase != running {
		return
	}
	h.checkIsQueued = true
	h.soon(func() {
		h.checkIsQueued = false
		switch {
		case h.phase != running:
		case h.until != nil && h.until():
			h.stop(ReachedCondition)
		case h.until == nil && h.agenda.foreground == 0 && len(h.requests) == 0 && h.allClosed():
			h.stop(NothingLeft)
		}
	})
}

// soon does f in the environment's loop, after what is queued there now.
func (h *Harness) soon(f func()) { h.env.RegisterDelayedCallback(f, 0) }

// stop lets the host end the run, at an instant of its own: by then no goroutine of an
// activity or a starting child is under way.
func (h *Harness) stop(reason Reason) {
	if h.phase != running {
		return
	}
	h.phase = stopping
	h.env.RegisterDelayedCallback(func() {
		h.reason, h.ended = reason, h.Now()
		for _, f := range h.atEnd {
			f()
		}
		h.phase = stopped
		h.wakeHost()
	}, 1)
}

// run is the whole run, from the host's first step to its last.
func (h *Harness) run() {
	h.env.ExecuteWorkflow(hostType)
	if err := h.env.GetWorkflowError(); err != nil {
		h.t.Errorf("timeskip: the host workflow failed: %v", err)
	}
	if h.until != nil && h.reason == ReachedLimit {
		h.t.Errorf("timeskip: limit of %v reached without the condition; last events:\n%s",
			h.opts.Limit, h.trace[max(0, len(h.trace)-20):])
	}
}

func (h *Harness) report() *Report {
	report := &Report{Trace: h.trace, Reason: h.reason, Ended: h.ended}
	for _, id := range h.started {
		report.Workflows = append(report.Workflows, h.workflows[id].Workflow)
	}
	return report
}

func (h *Harness) note(e Event) {
	if h.phase == stopped {
		return
	}
	e.At = h.Now().Sub(h.opts.Start)
	h.trace = append(h.trace, e)
}
