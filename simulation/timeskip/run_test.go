package timeskip_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/simulation/timeskip"
)

func sleeper(ctx workflow.Context, d time.Duration) error { return workflow.Sleep(ctx, d) }

func TestActionsRunInTimeAndOrder(t *testing.T) {
	var got []string
	note := func(h *timeskip.Harness, name string) func() {
		return func() {
			got = append(got, fmt.Sprintf("%s %v", name, h.Now().Sub(midnight).Truncate(10*time.Millisecond)))
		}
	}
	report := timeskip.Run(t, timeskip.Options{Limit: 3 * time.Hour}, func(t *testing.T, h *timeskip.Harness) {
		h.At(time.Hour, note(h, "b"))
		h.At(time.Hour, note(h, "c"))
		h.At(0, note(h, "a"))
		h.At(time.Hour, func() { h.At(time.Minute, note(h, "late")) })
		h.At(2*time.Hour, func() { h.After(time.Minute, note(h, "d")) })
		h.Every(50*time.Minute, note(h, "tick"))
	})
	want := []string{"a 0s", "tick 50m0s", "b 1h0m0s", "c 1h0m0s", "late 1h0m0s", "tick 1h40m0s", "d 2h1m0s"}
	if !slices.Equal(got, want) || report.Reason != timeskip.NothingLeft {
		t.Errorf("%q, ended: %s", got, report.Reason)
	}
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name   string
		setup  func(h *timeskip.Harness)
		reason timeskip.Reason
		after  time.Duration
		open   bool
	}{
		{"all closed", func(*timeskip.Harness) {}, timeskip.NothingLeft, 10 * time.Hour, false},
		{"asked", func(h *timeskip.Harness) { h.At(3*time.Hour, h.Stop) }, timeskip.Asked, 3 * time.Hour, true},
		{"condition of the world", func(h *timeskip.Harness) {
			reached := false
			h.At(4*time.Hour, func() { reached = true })
			h.Until(func() bool { return reached })
		}, timeskip.ReachedCondition, 4 * time.Hour, true},
		{"condition on a workflow", func(h *timeskip.Harness) {
			h.At(90*time.Hour, func() {})
			h.Until(func() bool { return !h.Workflow("s").Open() })
		}, timeskip.ReachedCondition, 10 * time.Hour, false},
		{"limit", func(h *timeskip.Harness) { _ = h.Start("long", "sleeper", 1000*time.Hour) }, timeskip.ReachedLimit, 100 * time.Hour, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			report := timeskip.Run(t, timeskip.Options{Limit: 100 * time.Hour}, func(t *testing.T, h *timeskip.Harness) {
				h.RegisterWorkflow(sleeper, "sleeper")
				start(t, h, "s", "sleeper", 10*time.Hour)
				test.setup(h)
			})
			if after := report.Ended.Sub(midnight).Round(10 * time.Millisecond); after != test.after || report.Reason != test.reason {
				t.Errorf("ended after %v: %s", after, report.Reason)
			}
			if w := report.Workflow("s"); w.Open() != test.open {
				t.Errorf("%+v", w)
			}
		})
	}
}

func TestCancelledActivityInFlightStillRuns(t *testing.T) {
	var ran []time.Duration
	impatient := func(ctx workflow.Context) error {
		short, cancel := workflow.WithCancel(ctx)
		short = workflow.WithActivityOptions(short, workflow.ActivityOptions{StartToCloseTimeout: time.Hour})
		future := workflow.ExecuteActivity(short, "Slow")
		_ = workflow.Sleep(ctx, 10*time.Second)
		cancel()
		err := future.Get(ctx, nil)
		_ = workflow.Sleep(ctx, time.Hour)
		// Cancelled in the same step, it is never begun.
		at, cancelAtOnce := workflow.WithCancel(ctx)
		future = workflow.ExecuteActivity(workflow.WithActivityOptions(at, workflow.ActivityOptions{StartToCloseTimeout: time.Hour}), "Slow")
		cancelAtOnce()
		return errors.Join(err, future.Get(ctx, nil))
	}
	options := timeskip.Options{
		Seed:    3,
		Latency: func(string) (low, high time.Duration) { return time.Minute, time.Minute },
	}
	report := timeskip.Run(t, options, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(impatient, "impatient")
		h.RegisterActivity(func(context.Context) error {
			ran = append(ran, h.Now().Sub(midnight))
			return errPlain
		}, "Slow")
		start(t, h, "i", "impatient")
	})
	if len(ran) != 1 || ran[0] < 10*time.Second || !strings.Contains(report.Trace.String(), "(nobody waits)") {
		t.Errorf("ran at %v\n%s", ran, report.Trace)
	}
	if !temporal.IsCanceledError(report.Workflow("i").Err) && !strings.Contains(report.Workflow("i").Err.Error(), "canceled") {
		t.Errorf("error %v", report.Workflow("i").Err)
	}
}

func TestManyAtOnce(t *testing.T) {
	const many = 2000
	report := timeskip.Run(t, timeskip.Options{}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(sleeper, "sleeper")
		for i := range many {
			start(t, h, fmt.Sprintf("s-%d", i), "sleeper", time.Hour)
		}
	})
	for _, w := range report.Workflows {
		if w.Open() || w.Err != nil {
			t.Fatalf("%+v", w)
		}
	}
	if len(report.Workflows) != many {
		t.Errorf("%d workflows", len(report.Workflows))
	}
}

func TestDeferredCallsOfOpenWorkflows(t *testing.T) {
	// At the end of the run their coroutines are unwound, and the deferred calls run.
	holder := func(ctx workflow.Context) error {
		for range 3 {
			workflow.Go(ctx, func(ctx workflow.Context) {
				ctx, cancel := workflow.WithCancel(ctx)
				defer cancel()
				_ = workflow.NewTimer(ctx, 1000*time.Hour).Get(ctx, nil)
			})
		}
		return workflow.Sleep(ctx, 1000*time.Hour)
	}
	timeskip.Run(t, timeskip.Options{Limit: time.Hour}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(holder, "holder")
		for i := range 300 {
			start(t, h, fmt.Sprintf("h-%d", i), "holder")
		}
	})
}

func TestIDsAreUsedAgain(t *testing.T) {
	var refused error
	report := timeskip.Run(t, timeskip.Options{}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(sleeper, "sleeper")
		start(t, h, "s", "sleeper", time.Hour)
		h.At(30*time.Minute, func() { refused = h.Start("s", "sleeper", time.Hour) })
		h.At(2*time.Hour, func() { mustDo(t, h.Start("s", "sleeper", 5*time.Hour)) })
	})
	w := report.Workflow("s")
	if refused == nil || len(report.Workflows) != 1 || w.Closed.Sub(w.Started).Round(time.Minute) != 5*time.Hour {
		t.Errorf("second start: %v; %+v", refused, report.Workflows)
	}
}

// failing are runs that must fail their test. Each runs in a process of its own.
var failing = map[string]struct {
	setup func(t *testing.T, h *timeskip.Harness)
	says  string
}{
	"panic in an activity": {func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(caller(workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}}), "caller")
		h.RegisterActivity(func(context.Context, int) (int, error) { panic("ouch") }, "Do")
		_ = h.Start("c", "caller")
	}, "activity Do of c panicked: ouch"},
	"condition not reached": {func(t *testing.T, h *timeskip.Harness) {
		h.Until(func() bool { return false })
	}, "reached without the condition"},
	"failure in the midst": {func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(sleeper, "sleeper")
		_ = h.Start("s", "sleeper", 10*time.Hour)
		h.At(time.Hour, func() { t.Fatal("enough") })
	}, "enough"},
	"leak": {func(t *testing.T, h *timeskip.Harness) {
		go leak()
	}, "timeskip_test.leak"},
	"no such workflow": {func(t *testing.T, h *timeskip.Harness) {
		_ = h.Start("s", "sleeper")
	}, `no workflow is registered as "sleeper"`},
	"no such activity": {func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(caller(workflow.ActivityOptions{StartToCloseTimeout: time.Minute}), "caller")
		h.RegisterActivity(func(context.Context) error { return nil }, "Other")
		_ = h.Start("c", "caller")
		h.AtEnd(func() { t.Errorf("caller: %v", h.Workflow("c").Err) })
	}, "unable to find activityType=Do"},
}

func leak() { <-make(chan int) }

const failingEnv = "TIMESKIP_FAILING"

func TestFailures(t *testing.T) {
	if name := os.Getenv(failingEnv); name != "" {
		timeskip.Run(t, timeskip.Options{Limit: 24 * time.Hour}, failing[name].setup)
		return
	}
	for name, want := range failing {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFailures$")
			cmd.Env = append(os.Environ(), failingEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want.says) {
				t.Errorf("error %v, output:\n%s", err, out)
			}
		})
	}
}
