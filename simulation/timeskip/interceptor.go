package timeskip

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// eventsPerStep is what one activity or timer adds to a history, with the workflow task that
// follows.
const eventsPerStep = 6

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
	h *Harness
}

func (w *workerInterceptor) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	in := &workflowInbound{h: w.h}
	in.Next = next
	return in
}

func (w *workerInterceptor) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	in := &activityInbound{h: w.h}
	in.Next = next
	return in
}

// workflowInbound stands between the environment and the code of one run. It leaves the host alone.
type workflowInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	h   *Harness
	out *workflowOutbound
	r   *record // nil until the run begins, and for the host
}

func (i *workflowInbound) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	i.out = &workflowOutbound{in: i}
	i.out.Next = outbound
	return i.Next.Init(i.out)
}

func (i *workflowInbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	info := i.out.Next.GetInfo(ctx)
	if info.WorkflowType.Name == hostType {
		return i.Next.ExecuteWorkflow(ctx, in)
	}
	ctx, cancel := workflow.WithCancel(ctx)
	i.r = i.h.runBegins(info, cancel)
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	i.h.runEnds(i.r, err)
	return result, err
}

func (i *workflowInbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	switch {
	case i.r == nil:
	case in.SignalName == wakeSignal:
		return nil
	case in.SignalName == cancelSignal:
		i.r.cancel()
		return nil
	default:
		i.r.events += eventsPerStep
		i.h.note(Event{Workflow: i.r.ID, Kind: KindSignal, Name: in.SignalName, Outcome: "received"})
	}
	return i.Next.HandleSignal(ctx, in)
}

func (i *workflowInbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	if i.r != nil {
		i.r.events += eventsPerStep
	}
	return i.Next.ExecuteUpdate(ctx, in)
}

// workflowOutbound stands between the code of one run and the environment.
type workflowOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	in *workflowInbound
}

func (o *workflowOutbound) GetInfo(ctx workflow.Context) *workflow.Info {
	raw := o.Next.GetInfo(ctx)
	if o.in.r == nil {
		return raw
	}
	return o.in.h.info(o.in.r, raw)
}

// ExecuteActivity plans the activity here, in the order of the workflow's code. The environment
// goes on with it on a goroutine, which neither the retry policy nor that order reaches.
func (o *workflowOutbound) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	if o.in.r == nil {
		return o.Next.ExecuteActivity(ctx, activityType, args...)
	}
	o.in.r.events += eventsPerStep
	options := workflow.GetActivityOptions(ctx)
	options.ActivityID = o.in.h.plan(o.in.r, activityType, args, options)
	// Whatever fails before the body, such as an activity without registration, is to fail at once.
	options.RetryPolicy = &temporal.RetryPolicy{MaximumAttempts: 1}
	return o.Next.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activityType, args...)
}

// NewTimerWithOptions is behind all ways to wait for time.
func (o *workflowOutbound) NewTimerWithOptions(
	ctx workflow.Context, d time.Duration, options workflow.TimerOptions,
) workflow.Future {
	if o.in.r != nil {
		o.in.r.events += eventsPerStep
		d = o.in.h.timer(d)
	}
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

func (o *workflowOutbound) NewTimer(ctx workflow.Context, d time.Duration) workflow.Future {
	return o.NewTimerWithOptions(ctx, d, workflow.TimerOptions{})
}

// ExecuteChildWorkflow waits until the child runs; see startChild.
func (o *workflowOutbound) ExecuteChildWorkflow(
	ctx workflow.Context, childType string, args ...any,
) workflow.ChildWorkflowFuture {
	child := o.Next.ExecuteChildWorkflow(ctx, childType, args...)
	if o.in.r != nil {
		// The caller gets the error from the same future.
		_ = child.GetChildWorkflowExecution().Get(ctx, nil)
	}
	return child
}

// SignalExternalWorkflowWithOptions holds a signal to a workflow that is about to run; see deliver.
// About workflows that it does not know, the environment would ask a mock.
func (o *workflowOutbound) SignalExternalWorkflowWithOptions(
	ctx workflow.Context, workflowID, runID, name string, arg any, options workflow.SignalExternalWorkflowOptions,
) workflow.Future {
	target := o.in.h.workflows[workflowID]
	switch {
	case target == nil || !target.Open():
		return done(ctx, &temporal.UnknownExternalWorkflowExecutionError{})
	case target.running:
		return o.Next.SignalExternalWorkflowWithOptions(ctx, workflowID, runID, name, arg, options)
	default:
		return done(ctx, o.in.h.Signal(workflowID, name, arg))
	}
}

func (o *workflowOutbound) SignalExternalWorkflow(
	ctx workflow.Context, workflowID, runID, name string, arg any,
) workflow.Future {
	var options workflow.SignalExternalWorkflowOptions
	return o.SignalExternalWorkflowWithOptions(ctx, workflowID, runID, name, arg, options)
}

// RequestCancelExternalWorkflowWithOptions asks. The environment would end the other one on the
// spot, which is just what the host wants.
func (o *workflowOutbound) RequestCancelExternalWorkflowWithOptions(
	ctx workflow.Context, workflowID, runID string, options workflow.CancelExternalWorkflowOptions,
) workflow.Future {
	if o.in.r == nil {
		return o.Next.RequestCancelExternalWorkflowWithOptions(ctx, workflowID, runID, options)
	}
	if !o.in.h.Workflow(workflowID).Open() {
		return done(ctx, &temporal.UnknownExternalWorkflowExecutionError{})
	}
	return done(ctx, o.in.h.Cancel(workflowID))
}

func (o *workflowOutbound) RequestCancelExternalWorkflow(
	ctx workflow.Context, workflowID, runID string,
) workflow.Future {
	var options workflow.CancelExternalWorkflowOptions
	return o.RequestCancelExternalWorkflowWithOptions(ctx, workflowID, runID, options)
}

func (o *workflowOutbound) GetCurrentUpdateInfo(ctx workflow.Context) *workflow.UpdateInfo {
	info := o.Next.GetCurrentUpdateInfo(ctx)
	if info == nil {
		return nil
	}
	plain := *info
	plain.ID = updateID(info.ID)
	return &plain
}

func done(ctx workflow.Context, err error) workflow.Future {
	future, settable := workflow.NewFuture(ctx)
	settable.Set(nil, err)
	return future
}

// activityInbound takes the activity over from the goroutine on which the environment would run
// it.
type activityInbound struct {
	interceptor.ActivityInboundInterceptorBase
	h   *Harness
	out *activityOutbound
}

func (i *activityInbound) Init(outbound interceptor.ActivityOutboundInterceptor) error {
	i.out = &activityOutbound{}
	i.out.Next = outbound
	return i.Next.Init(i.out)
}

func (i *activityInbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := i.out.Next.GetInfo(ctx)
	c := i.h.calls.find(info)
	if c == nil { // a local activity
		return i.Next.ExecuteActivity(ctx, in)
	}
	i.out.call = c
	if err := c.takeOver(ctx, in.Args, i.Next, info.TaskToken); err != nil {
		return nil, err
	}
	return nil, activity.ErrResultPending
}

// activityOutbound tells a body about itself. What the environment knows is real time and one
// attempt.
type activityOutbound struct {
	interceptor.ActivityOutboundInterceptorBase
	call *call
}

func (o *activityOutbound) GetInfo(ctx context.Context) activity.Info {
	info := o.Next.GetInfo(ctx)
	if o.call != nil {
		o.call.describe(&info)
	}
	return info
}

// RecordHeartbeat must not reach the environment, whose lock is held while a body runs.
func (o *activityOutbound) RecordHeartbeat(ctx context.Context, details ...any) {
	if o.call == nil {
		o.Next.RecordHeartbeat(ctx, details...)
		return
	}
	o.call.heartbeat(details)
}

func (o *activityOutbound) HasHeartbeatDetails(ctx context.Context) bool {
	if o.call == nil {
		return o.Next.HasHeartbeatDetails(ctx)
	}
	return o.call.previous != nil
}

func (o *activityOutbound) GetHeartbeatDetails(ctx context.Context, d ...any) error {
	if o.call == nil {
		return o.Next.GetHeartbeatDetails(ctx, d...)
	}
	return o.call.heartbeatDetails(d)
}
