package timeskip_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/simulation/timeskip"
)

var errPlain = errors.New("no answer")

// service is an activity that fails as scripted, and then succeeds.
type service struct {
	h        *timeskip.Harness
	failures []error
	ran      []time.Duration // when, since the start of the run
	attempts []int32
}

func (s *service) Do(ctx context.Context, n int) (int, error) {
	s.ran = append(s.ran, s.h.Now().Sub(midnight))
	s.attempts = append(s.attempts, activity.GetInfo(ctx).Attempt)
	if i := len(s.ran) - 1; i < len(s.failures) {
		return 0, s.failures[i]
	}
	return n + 1, nil
}

var midnight = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// caller calls the service once.
func caller(options workflow.ActivityOptions) func(workflow.Context) (int, error) {
	return func(ctx workflow.Context) (n int, err error) {
		err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), "Do", 41).Get(ctx, &n)
		return n, err
	}
}

// call runs the service under the options; latencies are exactly one second, so that times are round.
func call(t *testing.T, options workflow.ActivityOptions, faults func(timeskip.Attempt) timeskip.Fault, failures ...error) (*service, timeskip.Workflow) {
	t.Helper()
	var s *service
	run := timeskip.Options{
		Latency: func(string) (low, high time.Duration) { return time.Second, time.Second },
		Faults:  faults,
	}
	report := timeskip.Run(t, run, func(t *testing.T, h *timeskip.Harness) {
		s = &service{h: h, failures: failures}
		h.RegisterWorkflow(caller(options), "caller")
		h.RegisterActivity(s.Do, "Do")
		start(t, h, "c", "caller")
	})
	t.Logf("\n%s", report.Trace)
	return s, report.Workflow("c")
}

func start(t *testing.T, h *timeskip.Harness, id, workflowType string, args ...any) {
	t.Helper()
	if err := h.Start(id, workflowType, args...); err != nil {
		t.Fatal(err)
	}
}

func repeat(err error, times int) []error { return slices.Repeat([]error{err}, times) }

func TestRetries(t *testing.T) {
	typed := temporal.NewApplicationError("busy", "Busy")
	never := temporal.NewNonRetryableApplicationError("gone", "Gone", nil)
	later := temporal.NewApplicationErrorWithOptions("later", "Later", temporal.ApplicationErrorOptions{NextRetryDelay: 7 * time.Hour})
	tests := []struct {
		name     string
		policy   *temporal.RetryPolicy
		failures []error
		runs     int
		lasts    time.Duration // at most, with a second for each attempt
		err      string        // type of the error that the workflow gets
	}{
		{"no failure", nil, nil, 1, time.Second, ""},
		{"server's default backs off to 100 s and never gives up", nil, repeat(errPlain, 12), 13, 13*time.Second + (127+5*100)*time.Second, ""},
		{"policy", &temporal.RetryPolicy{InitialInterval: time.Minute, BackoffCoefficient: 3, MaximumInterval: 5 * time.Minute}, repeat(errPlain, 4), 5, 5*time.Second + (1+3+5+5)*time.Minute, ""},
		{"maximum attempts", &temporal.RetryPolicy{MaximumAttempts: 3}, repeat(typed, 9), 3, 3*time.Second + 3*time.Second, "Busy"},
		{"non-retryable error", nil, repeat(never, 9), 1, time.Second, "Gone"},
		{"non-retryable type", &temporal.RetryPolicy{NonRetryableErrorTypes: []string{"Busy"}}, []error{errPlain, typed}, 2, 2*time.Second + time.Second, "Busy"},
		{"wrapped non-retryable error is an ordinary one", nil, []error{fmt.Errorf("wrapped: %w", never)}, 2, 3 * time.Second, ""},
		{"next retry delay", nil, []error{later}, 2, 2*time.Second + 7*time.Hour, ""},
		{"cancelled error", nil, repeat(temporal.NewCanceledError(), 1), 1, time.Second, "canceled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: test.policy}
			s, w := call(t, options, nil, test.failures...)
			if len(s.ran) != test.runs {
				t.Errorf("ran %d times, want %d", len(s.ran), test.runs)
			}
			for i, attempt := range s.attempts {
				if int(attempt) != i+1 {
					t.Errorf("the body was told attempt %d for number %d", attempt, i+1)
				}
			}
			if lasted := w.Closed.Sub(midnight); lasted < test.lasts || lasted > test.lasts+time.Second {
				t.Errorf("lasted %v, want %v", lasted, test.lasts)
			}
			checkOutcome(t, w, test.err)
		})
	}
}

func checkOutcome(t *testing.T, w timeskip.Workflow, wantErr string) {
	t.Helper()
	var n int
	err := w.Result(&n)
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case wantErr == "" && err == nil && n == 42:
	case wantErr == "canceled" && temporal.IsCanceledError(err):
	case wantErr == "timeout" && errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_START_TO_CLOSE:
	case errors.As(err, &app) && app.Type() == wantErr:
	default:
		t.Errorf("result %d, error %v; want error %q", n, err, wantErr)
	}
}

func TestScheduleToCloseEndsRetries(t *testing.T) {
	options := workflow.ActivityOptions{ScheduleToCloseTimeout: 30 * time.Second}
	s, w := call(t, options, nil, repeat(temporal.NewApplicationError("busy", "Busy"), 99)...)
	// After 1, 2, 4 and 8 s of backoff and five attempts, 16 s more would be too late.
	if len(s.ran) != 5 {
		t.Errorf("ran %d times, want 5", len(s.ran))
	}
	checkOutcome(t, w, "Busy")
}

func TestPolicyIsTheWorkflowsOwnEachTime(t *testing.T) {
	// The environment writes its defaults into the policy on the workflow's context.
	var s *service
	twice := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute,
			RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second},
		})
		_ = workflow.ExecuteActivity(ctx, "Do", 1).Get(ctx, nil)
		return workflow.ExecuteActivity(ctx, "Do", 1).Get(ctx, nil)
	}
	report := timeskip.Run(t, timeskip.Options{}, func(t *testing.T, h *timeskip.Harness) {
		s = &service{h: h, failures: append([]error{nil}, repeat(errPlain, 20)...)}
		h.RegisterWorkflow(twice, "twice")
		h.RegisterActivity(s.Do, "Do")
		start(t, h, "c", "twice")
	})
	if w := report.Workflow("c"); w.Err != nil || len(s.ran) != 22 {
		t.Errorf("ran %d times, error %v", len(s.ran), w.Err)
	}
}

func TestFaults(t *testing.T) {
	first := func(f timeskip.Fault) func(timeskip.Attempt) timeskip.Fault {
		return func(a timeskip.Attempt) timeskip.Fault {
			if a.Number == 1 && a.Sequence == 1 && a.Workflow == "c" && a.Activity == "Do" {
				return f
			}
			return timeskip.None
		}
	}
	always := func(f timeskip.Fault) func(timeskip.Attempt) timeskip.Fault {
		return func(timeskip.Attempt) timeskip.Fault { return f }
	}
	once := &temporal.RetryPolicy{MaximumAttempts: 1}
	tests := []struct {
		name     string
		faults   func(timeskip.Attempt) timeskip.Fault
		policy   *temporal.RetryPolicy
		failures []error
		runs     int
		lasts    time.Duration
		err      string
	}{
		{"none", first(timeskip.None), nil, nil, 1, time.Second, ""},
		{"runs twice", first(timeskip.RunTwice), nil, nil, 2, time.Second, ""},
		{"second answer counts", first(timeskip.RunTwice), once, []error{nil, temporal.NewApplicationError("again?", "Again")}, 2, time.Second, "Again"},
		{"first answer does not", first(timeskip.RunTwice), once, []error{errPlain}, 2, time.Second, ""},
		{"lost answer", first(timeskip.LostAnswer), nil, nil, 2, time.Minute + 2*time.Second, ""},
		{"lost answer, no retry", first(timeskip.LostAnswer), once, nil, 1, time.Minute, "timeout"},
		{"not run", first(timeskip.NotRun), nil, nil, 1, time.Minute + 2*time.Second, ""},
		{"never run", always(timeskip.NotRun), &temporal.RetryPolicy{MaximumAttempts: 2}, nil, 0, 2*time.Minute + time.Second, "timeout"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: test.policy}
			s, w := call(t, options, test.faults, test.failures...)
			if len(s.ran) != test.runs {
				t.Errorf("ran %d times, want %d", len(s.ran), test.runs)
			}
			if lasted := w.Closed.Sub(midnight); lasted < test.lasts || lasted > test.lasts+time.Second {
				t.Errorf("lasted %v, want %v", lasted, test.lasts)
			}
			checkOutcome(t, w, test.err)
		})
	}
}

func TestSlowAttemptTimesOutWithItsEffect(t *testing.T) {
	options := workflow.ActivityOptions{StartToCloseTimeout: 500 * time.Millisecond, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}}
	s, w := call(t, options, nil)
	if len(s.ran) != 1 {
		t.Errorf("ran %d times", len(s.ran))
	}
	checkOutcome(t, w, "timeout")
}

func TestErrorsReachTheWorkflowUnchanged(t *testing.T) {
	failure := temporal.NewApplicationErrorWithOptions("quota", "Quota", temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{"vcs", 3}, Cause: errors.New("licence server"),
	})
	_, w := call(t, workflow.ActivityOptions{StartToCloseTimeout: time.Minute}, nil, failure)
	var app *temporal.ApplicationError
	var activityError *temporal.ActivityError
	if !errors.As(w.Err, &activityError) || !errors.As(w.Err, &app) {
		t.Fatalf("error %v", w.Err)
	}
	var resource string
	var units int
	if err := app.Details(&resource, &units); err != nil || resource != "vcs" || units != 3 {
		t.Errorf("details %q %d, error %v", resource, units, err)
	}
	if !app.NonRetryable() || app.Message() != "quota" || errors.Unwrap(app) == nil {
		t.Errorf("error %#v", app)
	}
}

// resumer makes three steps in three attempts, and leaves word of how far it came.
type resumer struct{ steps []int }

func (r *resumer) Do(ctx context.Context, _ int) (int, error) {
	from := 0
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &from); err != nil {
			return 0, err
		}
	}
	r.steps = append(r.steps, from)
	activity.RecordHeartbeat(ctx, from+1)
	if from < 2 {
		return 0, errPlain
	}
	return 42, nil
}

func TestHeartbeatDetailsReachTheNextAttempt(t *testing.T) {
	r := &resumer{}
	report := timeskip.Run(t, timeskip.Options{}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(caller(workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: time.Second}), "caller")
		h.RegisterActivity(r.Do, "Do")
		start(t, h, "c", "caller")
	})
	checkOutcome(t, report.Workflow("c"), "")
	if !slices.Equal(r.steps, []int{0, 1, 2}) {
		t.Errorf("steps %v", r.steps)
	}
}

// spoiler changes what it is given and keeps what it gives.
type spoiler struct {
	seen  []string
	given []string
}

func (s *spoiler) Do(_ context.Context, names []string) ([]string, error) {
	s.seen = append(s.seen, names[0])
	names[0] = "spoiled"
	s.given = []string{"result"}
	if len(s.seen) == 1 {
		return nil, errPlain
	}
	return s.given, nil
}

func TestBodiesShareNothingWithTheWorkflow(t *testing.T) {
	s := &spoiler{}
	ask := func(ctx workflow.Context) (names []string, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		err = workflow.ExecuteActivity(ctx, "Do", []string{"fresh"}).Get(ctx, &names)
		return names, err
	}
	report := timeskip.Run(t, timeskip.Options{}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(ask, "ask")
		h.RegisterActivity(s.Do, "Do")
		start(t, h, "c", "ask")
		h.Every(time.Millisecond, func() {
			if s.given != nil {
				s.given[0] = "changed between effect and answer"
			}
		})
	})
	var names []string
	if err := report.Workflow("c").Result(&names); err != nil || names[0] != "result" {
		t.Errorf("names %v, error %v", names, err)
	}
	if !slices.Equal(s.seen, []string{"fresh", "fresh"}) {
		t.Errorf("arguments seen: %v", s.seen)
	}
}
