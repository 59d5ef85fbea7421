package replay

import (
	"errors"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// listener stands between a story and Temporal's replayer, and takes down what the story asks for.
type listener struct {
	interceptor.WorkerInterceptorBase
	steps   []step
	answers map[string]step
	err     error
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (l *listener) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &inbound{listener: l}
	in.Next = next
	return in
}

// asked takes a step down, with its arguments as they would be in a history.
func (l *listener) asked(task int, s step, args ...any) {
	s.task = int64(task)
	if len(args) > 0 {
		payloads, err := converter.GetDefaultDataConverter().ToPayloads(args...)
		if err == nil {
			s.input, err = values(payloads)
		}
		l.err = errors.Join(l.err, err)
	}
	if s.kind == answerStep {
		l.answers[s.name] = s
		return
	}
	l.steps = append(l.steps, s)
}

// inbound sees how a story ends and what it answers.
type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	*listener
	out *outbound
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	i.out = &outbound{listener: i.listener}
	i.out.Next = next
	return i.Next.Init(i.out)
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	var on *workflow.ContinueAsNewError
	switch {
	case errors.As(err, &on):
		s := step{kind: endStep, name: "going on in a new history"}
		input, failed := values(on.Input)
		s.input, i.err = input, errors.Join(i.err, failed)
		i.asked(i.out.task(ctx), s)
	case err == nil:
		i.asked(i.out.task(ctx), step{kind: endStep, name: "end of the story"})
	}
	return result, err
}

// ExecuteUpdate implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	id := workflow.GetCurrentUpdateInfo(ctx).ID
	result, err := i.Next.ExecuteUpdate(ctx, in)
	s := step{kind: answerStep, name: id}
	var refused *temporal.ApplicationError
	switch {
	case errors.As(err, &refused):
		s.input = refusal(refused.Message())
		i.asked(i.out.task(ctx), s)
	case err == nil:
		i.asked(i.out.task(ctx), s, result)
	}
	return result, err
}

// outbound sees what a story asks for.
type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	*listener
}

// task answers the event with which the workflow task began that runs.
func (o *outbound) task(ctx workflow.Context) int {
	return o.Next.GetInfo(ctx).GetCurrentHistoryLength()
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o.asked(o.task(ctx), step{kind: activityStep, name: name, to: workflow.GetActivityOptions(ctx).TaskQueue}, args...)
	return o.Next.ExecuteActivity(ctx, name, args...)
}

// AwaitWithOptions implements interceptor.WorkflowOutboundInterceptor. A wait that is over in the task in which it
// began leaves no timer behind.
func (o *outbound) AwaitWithOptions(ctx workflow.Context, options workflow.AwaitOptions, condition func() bool) (bool, error) {
	task, before := o.task(ctx), len(o.steps)
	ok, err := o.Next.AwaitWithOptions(ctx, options, condition)
	if ok && o.task(ctx) == task {
		for i := before; i < len(o.steps); i++ {
			o.steps[i].void = o.steps[i].kind == timerStep
		}
	}
	return ok, err
}

// NewTimerWithOptions implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	o.asked(o.task(ctx), timer(d))
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

// SignalExternalWorkflow implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) SignalExternalWorkflow(ctx workflow.Context, id, run, name string, arg any) workflow.Future {
	o.asked(o.task(ctx), step{kind: signalStep, name: name, to: id}, arg)
	return o.Next.SignalExternalWorkflow(ctx, id, run, name, arg)
}
