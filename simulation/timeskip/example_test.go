package timeskip_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/simulation/timeskip"
)

// lender is the world of the example: it has tokens, and no locks.
type lender struct {
	now  func() time.Time
	free int
}

func (l *lender) Borrow(_ context.Context, units int) (time.Time, error) {
	if units > l.free {
		return time.Time{}, fmt.Errorf("only %d free", l.free)
	}
	l.free -= units
	return l.now().Add(time.Hour), nil // not to be returned before
}

func (l *lender) GiveBack(_ context.Context, units int) error {
	l.free += units
	return nil
}

// loan borrows, holds for at least an hour and until it is recalled, and gives back.
func loan(ctx workflow.Context, units int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var minimum time.Time
	if err := workflow.ExecuteActivity(ctx, "Borrow", units).Get(ctx, &minimum); err != nil {
		return err
	}
	if err := workflow.Sleep(ctx, minimum.Sub(workflow.Now(ctx))); err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "recalled").Receive(ctx, nil)
	return workflow.ExecuteActivity(ctx, "GiveBack", units).Get(ctx, nil)
}

// TestExample is how a test looks, and its trace how one reads.
func TestExample(t *testing.T) {
	var world *lender
	options := timeskip.Options{
		Seed:  7,
		Limit: 72 * time.Hour,
		Faults: func(a timeskip.Attempt) timeskip.Fault {
			if a.Activity == "GiveBack" && a.Number == 1 {
				return timeskip.NotRun
			}
			return timeskip.None
		},
	}
	report := timeskip.Run(t, options, func(t *testing.T, h *timeskip.Harness) {
		world = &lender{now: h.Now, free: 5}
		h.RegisterWorkflow(loan, "loan")
		h.RegisterActivity(world.Borrow, "Borrow")
		h.RegisterActivity(world.GiveBack, "GiveBack")
		for i, units := range []int{3, 2} {
			if err := h.Start(fmt.Sprintf("loan/vcs/pool-%d", i+1), "loan", units); err != nil {
				t.Fatal(err)
			}
		}
		h.At(26*time.Hour, func() { _ = h.Signal("loan/vcs/pool-1", "recalled", nil) })
		h.At(50*time.Hour, func() { _ = h.Signal("loan/vcs/pool-2", "recalled", nil) })
	})
	if world.free != 5 || report.Workflow("loan/vcs/pool-2").Err != nil {
		t.Errorf("free %d, error %v", world.free, report.Workflow("loan/vcs/pool-2").Err)
	}
	golden, err := os.ReadFile("testdata/example.trace")
	if err != nil || string(golden) != report.Trace.String() {
		t.Errorf("trace is not testdata/example.trace (%v):\n%s", err, report.Trace)
	}
}
