package timeskip

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// panicErrorType is the type under which the SDK sends a panic; it comes back as a temporal.PanicError.
const panicErrorType = "PanicError"

// call is one activity, from its scheduling by a workflow to its final answer.
type call struct {
	h          *Harness
	r          *record
	run        workflow.Execution
	key        activityKey
	typ        string
	given      []any // its arguments
	sequence   int
	policy     temporal.RetryPolicy
	timeout    time.Duration // of one attempt; zero if there is none
	scheduled  time.Time
	expires    time.Time // no attempt starts after it; zero if there is none
	attempt    int
	began      time.Time // of the attempt
	canceled   bool
	body       body
	previous   *commonpb.Payloads // heartbeat details of the attempts before
	heartbeats *commonpb.Payloads // of this attempt
}

// body is what the environment's goroutine hands over.
type body struct {
	ctx   context.Context
	next  interceptor.ActivityInboundInterceptor
	token []byte
	input *commonpb.Payloads
	types []reflect.Type
}

type activityKey struct{ runID, activityID string }

// calls are the open ones. The lock is for the environment's goroutines, which look theirs up.
type calls struct {
	sync.Mutex
	byActivity map[activityKey]*call
}

func (cs *calls) find(info activity.Info) *call {
	cs.Lock()
	defer cs.Unlock()
	return cs.byActivity[activityKey{info.WorkflowExecution.RunID, info.ActivityID}]
}

func (cs *calls) add(c *call) {
	cs.Lock()
	defer cs.Unlock()
	cs.byActivity[c.key] = c
}

func (cs *calls) remove(c *call) {
	cs.Lock()
	defer cs.Unlock()
	delete(cs.byActivity, c.key)
}

func (cs *calls) cancel(info *activity.Info) {
	if c := cs.find(*info); c != nil {
		c.canceled = true
	}
}

// plan schedules an activity of a workflow, and gives the id that connects it with what the
// environment makes of it.
func (h *Harness) plan(r *record, activityType string, args []any, options workflow.ActivityOptions) string {
	r.sequence++
	id := options.ActivityID
	if id == "" {
		id = strconv.Itoa(r.sequence)
	}
	c := &call{
		h: h, r: r, run: r.run, key: activityKey{r.run.RunID, id},
		typ: activityType, given: args, sequence: r.sequence, scheduled: h.Now(),
		policy: withServerDefaults(options.RetryPolicy), timeout: options.StartToCloseTimeout,
	}
	if options.ScheduleToCloseTimeout > 0 {
		c.expires = c.scheduled.Add(options.ScheduleToCloseTimeout)
	}
	h.calls.add(c)
	c.begin()
	return id
}

// takeOver is called on a goroutine of the environment. The loop cannot come to the body before it
// has returned.
func (c *call) takeOver(
	ctx context.Context, args []any, next interceptor.ActivityInboundInterceptor, token []byte,
) error {
	input, err := converter.GetDefaultDataConverter().ToPayloads(args...)
	if err != nil {
		return err
	}
	types := make([]reflect.Type, len(args))
	for i, arg := range args {
		types[i] = reflect.TypeOf(arg)
	}
	// The environment cancels its context when its goroutine is done.
	c.body = body{ctx: context.WithoutCancel(ctx), next: next, token: token, input: input, types: types}
	return nil
}

// begin starts an attempt: it decides when its effect and its answer are.
func (c *call) begin() {
	if c.attempt > 0 && c.unheard() {
		c.h.calls.remove(c)
		return
	}
	c.attempt++
	c.began = c.h.Now()
	c.previous = c.heartbeats
	effect, answer := c.latency()
	limit := c.limit()
	fault := c.h.opts.Faults(Attempt{c.r.ID, c.typ, c.sequence, c.attempt, c.h.opts.Seed})
	if limit > 0 && answer >= limit && fault != NotRun {
		fault = LostAnswer
	}
	switch fault {
	case NotRun:
		c.after(limit, c.timeOut)
	case LostAnswer:
		c.after(effect, func() { c.perform(" (answer lost)") })
		c.after(limit, c.timeOut)
	case RunTwice:
		c.after(effect, func() { c.perform(" (runs twice)") })
		c.after(effect+(answer-effect)/2, func() { c.performAndAnswer(answer) })
	default:
		c.after(effect, func() { c.performAndAnswer(answer) })
	}
}

// latency answers how long after the attempt's begin its effect and its answer are.
func (c *call) latency() (effect, answer time.Duration) {
	if exact := c.h.opts.Exact; exact != nil {
		c.began = c.began.Truncate(time.Millisecond)
		answer = exact.Takes(c.typ, c.given)
		return halfway(answer), answer
	}
	low, high := c.h.opts.Latency(c.typ)
	answer = max(2, drawDuration(low, high, c.h.opts.Seed, "latency", c.r.ID, c.typ, c.sequence, c.attempt))
	return drawDuration(1, answer-1, c.h.opts.Seed, "effect", c.r.ID, c.typ, c.sequence, c.attempt), answer
}

// limit is the time that this attempt may take; zero if it may take any.
func (c *call) limit() time.Duration {
	limit := c.timeout
	if !c.expires.IsZero() {
		if left := c.expires.Sub(c.began); limit == 0 || left < limit {
			limit = left
		}
	}
	return limit
}

// after does a step of this attempt. Steps are dropped when the environment has never come to the
// body: it refused the options, or the workflow cancelled at once.
func (c *call) after(d time.Duration, step func()) {
	c.h.push(c.began.Add(d), false, func() {
		if c.body.next == nil {
			c.h.calls.remove(c)
			return
		}
		step()
	})
}

// outcome is what a body returned. The result is encoded at once: it may point into the world,
// which goes on.
type outcome struct {
	result any
	err    error
}

func (c *call) performAndAnswer(answer time.Duration) {
	at := c.began.Add(answer)
	o := c.invoke()
	wait, again := c.retry(o.err, at)
	c.note(o.text(wait, again) + c.hint())
	c.after(answer, func() { c.settle(o, wait, again) })
}

// perform runs the body for its effect only.
func (c *call) perform(remark string) {
	o := c.invoke()
	c.note(o.text(0, false) + remark)
}

func (c *call) timeOut() {
	o := outcome{err: temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)}
	wait, again := c.retry(o.err, c.h.Now())
	c.note("timed out" + retryText(wait, again))
	c.settle(o, wait, again)
}

// settle answers the workflow, or goes on with another attempt.
func (c *call) settle(o outcome, wait time.Duration, again bool) {
	if again && !c.unheard() {
		c.h.push(c.h.Now().Add(wait), false, c.begin)
		return
	}
	c.h.calls.remove(c)
	if c.unheard() {
		return
	}
	if err := c.h.env.CompleteActivity(c.body.token, o.result, o.err); err != nil {
		c.h.t.Errorf("timeskip: answer of activity %s to %s: %v", c.typ, c.r.ID, err)
	}
	// The answer itself wakes the host only. The workflow may just have closed.
	_ = c.h.env.SignalWorkflowByID(c.r.ID, wakeSignal, nil)
}

// unheard says that nobody waits for the answer any more.
func (c *call) unheard() bool {
	return c.canceled || !c.r.Open() || !c.r.running || c.r.run != c.run
}

func (c *call) retry(err error, at time.Time) (time.Duration, bool) {
	if err == nil {
		return 0, false
	}
	wait, again := retryDelay(c.policy, c.attempt, err)
	if again && !c.expires.IsZero() && at.Add(wait).After(c.expires) {
		return 0, false
	}
	return wait, again
}

// invoke runs the body once.
func (c *call) invoke() (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			c.h.t.Errorf("activity %s of %s panicked: %v\n%s", c.typ, c.r.ID, p, debug.Stack())
			o = outcome{err: temporal.NewApplicationError(fmt.Sprint(p), panicErrorType)}
		}
	}()
	args, err := c.args()
	if err != nil {
		return outcome{err: err}
	}
	result, err := c.body.next.ExecuteActivity(c.body.ctx, &interceptor.ExecuteActivityInput{Args: args})
	if errors.Is(err, activity.ErrResultPending) {
		c.h.t.Errorf("timeskip: activity %s of %s answers later, which is not supported", c.typ, c.r.ID)
	}
	if err != nil || result == nil {
		return outcome{err: err}
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(result)
	return outcome{result: converter.NewRawValue(payload), err: err}
}

// args are decoded anew for each run of the body, which may change what they point to.
func (c *call) args() ([]any, error) {
	pointers := make([]any, len(c.body.types))
	for i, t := range c.body.types {
		pointers[i] = reflect.New(t).Interface()
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(c.body.input, pointers...); err != nil {
		return nil, err
	}
	args := make([]any, len(pointers))
	for i, p := range pointers {
		args[i] = reflect.ValueOf(p).Elem().Interface()
	}
	return args, nil
}

func (c *call) describe(info *activity.Info) {
	info.Attempt = int32(c.attempt)
	info.ScheduledTime, info.StartedTime = c.scheduled, c.began
	info.Deadline = c.began.Add(c.limit())
	policy := c.policy
	info.RetryPolicy = &policy
}

func (c *call) heartbeat(details []any) {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(details...)
	if err != nil {
		c.h.t.Errorf("timeskip: heartbeat of activity %s of %s: %v", c.typ, c.r.ID, err)
		return
	}
	c.heartbeats = payloads
}

func (c *call) heartbeatDetails(pointers []any) error {
	if c.previous == nil {
		return errors.New("no data available")
	}
	return converter.GetDefaultDataConverter().FromPayloads(c.previous, pointers...)
}

func (c *call) note(outcome string) {
	c.h.note(Event{
		Workflow: c.r.ID, Kind: KindActivity, Name: c.typ,
		Sequence: c.sequence, Attempt: c.attempt, Outcome: outcome,
	})
}

func (c *call) hint() string {
	if c.unheard() {
		return " (nobody waits)"
	}
	return ""
}

func (o outcome) text(wait time.Duration, again bool) string {
	if o.err == nil {
		return "ok"
	}
	return "error: " + o.err.Error() + retryText(wait, again)
}

func retryText(wait time.Duration, again bool) string {
	if !again {
		return ""
	}
	return fmt.Sprintf("; again after %v", wait)
}
