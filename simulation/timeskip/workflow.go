package timeskip

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// Workflow is what the harness knows about a workflow id; if the id was used again,
// about its last use.
type Workflow struct {
	ID, Type string
	Runs     int       // grows with each continue-as-new
	Started  time.Time // the first run, virtual
	Closed   time.Time // zero while open
	Err      error     // why it failed: what a client would find below its WorkflowExecutionError

	result converter.EncodedValue
}

// Open says whether it was started and has not closed.
func (w Workflow) Open() bool { return w.ID != "" && w.Closed.IsZero() }

// Result decodes what a closed workflow returned, or gives its error.
func (w Workflow) Result(valuePtr any) error {
	switch {
	case w.Open() || w.ID == "":
		return fmt.Errorf("workflow %q has not closed", w.ID)
	case w.Err != nil:
		return w.Err
	case w.result == nil || !w.result.HasValue():
		return fmt.Errorf("workflow %q returned nothing", w.ID)
	}
	return w.result.Get(valuePtr)
}

// record is a workflow with what is needed to run it.
type record struct {
	Workflow
	run      workflow.Execution // the present one; empty before the first
	startRun string
	began    time.Time // of the present run
	running  bool      // false before its code runs, and between two runs
	held     []func()  // deliveries that wait for the code to run
	sequence int       // of its activities
	events   int       // of its history, estimated
	cancel   workflow.CancelFunc
	updates  map[string]*Update
}

// Start starts a workflow by its registered name: at the beginning of the run when called in the
// setup function, else at once. What an activity starts runs before its answer is heard. A
// workflow that is open already is an error, as from a client that asks for one.
func (h *Harness) Start(id, workflowType string, args ...any) error {
	return h.StartWith(workflow.ChildWorkflowOptions{}, id, workflowType, args...)
}

// StartWith is Start with search attributes, memo, reuse policy and so on. The id in the
// options and the parent close policy are of no effect.
func (h *Harness) StartWith(options workflow.ChildWorkflowOptions, id, workflowType string, args ...any) error {
	if !h.types[workflowType] {
		h.t.Fatalf("timeskip: no workflow is registered as %q", workflowType)
	}
	if r := h.workflows[id]; r != nil && !mayStart(r, options.WorkflowIDReusePolicy) {
		return serviceerror.NewWorkflowExecutionAlreadyStarted("Workflow execution already started", "", r.run.RunID)
	}
	r := h.renew(id)
	r.Type = workflowType
	r.Started = h.Now()
	request := startRequest{workflowType, childOptions(id, options), args}
	if h.phase == settingUp {
		h.At(0, func() { h.request(request) })
	} else {
		h.request(request)
	}
	return nil
}

func (h *Harness) request(r startRequest) {
	h.requests = append(h.requests, r)
	h.wakeHost()
}

func mayStart(r *record, policy enumspb.WorkflowIdReusePolicy) bool {
	switch {
	case r.Open(), policy == enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:
		return false
	case policy == enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY:
		return r.Err != nil
	default:
		return true
	}
}

// renew makes a new record for an id, whose activities go on counting.
func (h *Harness) renew(id string) *record {
	r := &record{Workflow: Workflow{ID: id}, updates: make(map[string]*Update)}
	if old := h.workflows[id]; old != nil {
		r.sequence = old.sequence
	} else {
		h.started = append(h.started, id)
	}
	h.workflows[id] = r
	return r
}

// Workflow gives what is known about an id now; the zero value if nothing.
func (h *Harness) Workflow(id string) Workflow {
	if r := h.workflows[id]; r != nil {
		return r.Workflow
	}
	return Workflow{}
}

func (h *Harness) allClosed() bool {
	for _, r := range h.workflows {
		if r.Open() {
			return false
		}
	}
	return true
}

// Signal sends a signal. A workflow that has been started but does not run yet gets it when it
// does.
func (h *Harness) Signal(id, name string, arg any) error {
	return h.deliver(id, func() {
		if err := h.env.SignalWorkflowByID(id, name, arg); err != nil {
			h.note(Event{Workflow: id, Kind: KindSignal, Name: name, Outcome: "dropped: workflow has closed"})
		}
	})
}

// Cancel asks a workflow to cancel: its context is cancelled, and it goes on as it likes.
func (h *Harness) Cancel(id string) error {
	return h.deliver(id, func() { _ = h.env.SignalWorkflowByID(id, cancelSignal, nil) })
}

// Query asks a workflow, open or closed, and decodes the answer.
func (h *Harness) Query(id, name string, valuePtr any, args ...any) error {
	if r := h.workflows[id]; r == nil || (r.Open() && !r.running) {
		return notFound(id)
	}
	answer, err := h.env.QueryWorkflowByID(id, name, args...)
	if err != nil {
		return err
	}
	return answer.Get(valuePtr)
}

// deliver calls f when the workflow can take a message. Between two runs there is a moment when
// the environment would lose it, and before the first one it would crash.
func (h *Harness) deliver(id string, f func()) error {
	if h.phase == settingUp {
		h.t.Fatalf("timeskip: message to workflow %s before the run; use At", id)
	}
	r := h.workflows[id]
	if r == nil || !r.Open() {
		return notFound(id)
	}
	if r.running {
		f()
	} else {
		r.held = append(r.held, f)
	}
	return nil
}

func notFound(id string) error {
	return serviceerror.NewNotFound(fmt.Sprintf("no open workflow %q", id))
}

// runBegins is called when the code of a run is about to be run.
func (h *Harness) runBegins(info *workflow.Info, cancel workflow.CancelFunc) *record {
	id := info.WorkflowExecution.ID
	r := h.workflows[id]
	if r == nil || !r.Open() {
		// A workflow of the code under test has started a child.
		r = h.renew(id)
		r.Type = info.WorkflowType.Name
		r.Started = h.Now()
	}
	r.Runs++
	if r.Runs == 1 {
		r.startRun = info.WorkflowExecution.RunID
		h.note(Event{Workflow: id, Kind: KindWorkflow, Name: r.Type, Outcome: "started"})
	}
	r.run = info.WorkflowExecution
	r.began = h.Now()
	r.cancel = cancel
	r.running = true
	r.events = 0
	r.release()
	return r
}

func (r *record) release() {
	held := r.held
	r.held = nil
	for _, f := range held {
		f()
	}
}

// runEnds is called when the code of a run has returned. Unless another run follows, closed does.
func (h *Harness) runEnds(r *record, err error) {
	r.running = false
	r.abortUpdates()
	var again *workflow.ContinueAsNewError
	if errors.As(err, &again) {
		h.note(Event{Workflow: r.ID, Kind: KindWorkflow, Name: r.Type, Outcome: "continued as new"})
	}
}

// closed is called by the environment when a workflow has closed for good, however it came to
// that.
func (h *Harness) closed(info *workflow.Info, result converter.EncodedValue, err error) {
	r := h.workflows[info.WorkflowExecution.ID]
	if r == nil || h.phase == stopped {
		return
	}
	outcome := "closed"
	// The environment wraps the error for the parent, which is of no interest.
	if wrapped := errors.Unwrap(err); wrapped != nil {
		err = wrapped
	}
	if err != nil {
		outcome = "failed: " + err.Error()
	}
	r.running = false
	r.Closed, r.Err, r.result = h.Now(), err, result
	r.abortUpdates()
	h.note(Event{Workflow: r.ID, Kind: KindWorkflow, Name: r.Type, Outcome: outcome})
	r.release()
	h.check()
}

// info is what a workflow is told about itself: what it would be in production. The environment
// shows the host as its parent and real time as its start, and never suggests continue-as-new.
func (h *Harness) info(r *record, raw *workflow.Info) *workflow.Info {
	h.env.SetCurrentHistoryLength(r.events)
	h.env.SetContinueAsNewSuggested(r.events >= h.opts.SuggestContinueAsNew)
	info := *h.hostInfo // the only one whose history the environment lets us set
	copyExported(&info, raw)
	info.WorkflowStartTime = r.began
	info.FirstRunID, info.OriginalRunID = r.startRun, raw.WorkflowExecution.RunID
	if parent := raw.ParentWorkflowExecution; parent != nil && *parent == h.hostInfo.WorkflowExecution {
		info.ParentWorkflowExecution, info.RootWorkflowExecution, info.ParentWorkflowNamespace = nil, nil, ""
	}
	return &info
}

func copyExported(to, from *workflow.Info) {
	dst, src := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range dst.NumField() {
		if dst.Type().Field(i).IsExported() {
			dst.Field(i).Set(src.Field(i))
		}
	}
}
