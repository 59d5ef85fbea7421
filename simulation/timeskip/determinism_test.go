package timeskip_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/simulation/timeskip"
)

// fleet is a world in which the order of all effects shows.
type fleet struct {
	h   *timeskip.Harness
	log []string
}

func (f *fleet) note(format string, args ...any) {
	f.log = append(f.log, f.h.Now().Format(time.RFC3339Nano)+" "+fmt.Sprintf(format, args...))
}

func (f *fleet) StartMember(_ context.Context, id string) error {
	f.note("start %s", id)
	err := f.h.Start(id, "member", memberState{ID: id})
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) { // the activity runs twice now and then
		return nil
	}
	return err
}

func (f *fleet) Probe(_ context.Context, id string, day int) (int, error) {
	f.note("probe %s %d", id, day)
	if len(f.log)%7 == 0 {
		return 0, errors.New("probe failed")
	}
	return len(f.log), nil
}

func (f *fleet) Report(_ context.Context, from workflow.Execution, sum int) error {
	f.note("report %v %d", from, sum)
	if len(f.log)%31 == 0 {
		return temporal.NewNonRetryableApplicationError("report refused", "Refused", nil)
	}
	return nil
}

type memberState struct {
	ID                        string
	Rounds, Sum, Pokes, Fails int
}

// member probes every twelve hours with two activities at once, tells the leader, counts what it
// is told, and continues as new every five rounds.
func member(ctx workflow.Context, s memberState) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 4},
	})
	pokes := workflow.GetSignalChannel(ctx, "poke")
	for range 5 {
		if s.round(ctx) {
			return nil
		}
		s.wait(ctx, pokes, 12*time.Hour)
	}
	for pokes.ReceiveAsync(nil) {
		s.Pokes++
	}
	return workflow.NewContinueAsNewError(ctx, "member", s)
}

// round says whether the member has done its work.
func (s *memberState) round(ctx workflow.Context) bool {
	s.Rounds++
	probe := workflow.ExecuteActivity(ctx, "Probe", s.ID, s.Rounds)
	report := workflow.ExecuteActivity(ctx, "Report", workflow.GetInfo(ctx).WorkflowExecution, s.Sum+s.Pokes)
	var n int
	if probe.Get(ctx, &n) != nil || report.Get(ctx, nil) != nil {
		s.Fails++
	}
	s.Sum += n
	_ = workflow.SignalExternalWorkflow(ctx, "leader", "", "done", s.ID).Get(ctx, nil)
	return s.Rounds > 60
}

func (s *memberState) wait(ctx workflow.Context, pokes workflow.ReceiveChannel, d time.Duration) {
	timer := workflow.NewTimer(ctx, d)
	selector := workflow.NewSelector(ctx)
	due := false
	selector.AddFuture(timer, func(workflow.Future) { due = true })
	selector.AddReceive(pokes, func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		s.Pokes++
	})
	for !due {
		selector.Select(ctx)
	}
}

// leader starts the members through an activity, and pokes whoever has reported.
func leader(ctx workflow.Context, members int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	done := workflow.GetSignalChannel(ctx, "done")
	for i := range members {
		if err := workflow.ExecuteActivity(ctx, "StartMember", fmt.Sprintf("member-%02d", i)).Get(ctx, nil); err != nil {
			return err
		}
	}
	for {
		var id string
		done.Receive(ctx, &id)
		_ = workflow.SignalExternalWorkflow(ctx, id, "", "poke", nil).Get(ctx, nil)
	}
}

func runFleet(t *testing.T, seed uint64, members int) (*timeskip.Report, string) {
	t.Helper()
	var world *fleet
	options := timeskip.Options{
		Seed:  seed,
		Limit: 10 * 24 * time.Hour,
		Faults: func(a timeskip.Attempt) timeskip.Fault {
			switch {
			case a.Chance(0.03):
				return timeskip.RunTwice
			case a.Chance(0.06):
				return timeskip.LostAnswer
			default:
				return timeskip.None
			}
		},
	}
	report := timeskip.Run(t, options, func(t *testing.T, h *timeskip.Harness) {
		world = &fleet{h: h}
		h.RegisterWorkflow(member, "member")
		h.RegisterWorkflow(leader, "leader")
		h.RegisterActivity(world.StartMember, "StartMember")
		h.RegisterActivity(world.Probe, "Probe")
		h.RegisterActivity(world.Report, "Report")
		if err := h.Start("leader", "leader", members); err != nil {
			t.Fatal(err)
		}
		for day := range 9 {
			for i := range members {
				h.At(time.Duration(day+1)*24*time.Hour, func() {
					_ = h.Signal(fmt.Sprintf("member-%02d", i), "poke", nil)
				})
			}
		}
	})
	return report, strings.Join(world.log, "\n")
}

func TestSameSeedSameTrace(t *testing.T) {
	const members = 50
	stop := disturb()
	defer stop()
	first, firstLog := runFleet(t, 1, members)
	t.Logf("%d events, %d effects", len(first.Trace), strings.Count(firstLog, "\n")+1)
	for i := range 5 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + i%3))
		again, log := runFleet(t, 1, members)
		if diff := first.Trace.Diff(again.Trace); diff != "" {
			t.Fatalf("run %d: %s", i, diff)
		}
		if log != firstLog {
			t.Fatalf("run %d: effects differ", i)
		}
	}
	other, _ := runFleet(t, 2, members)
	if first.Trace.Diff(other.Trace) == "" {
		t.Error("another seed gives the same trace")
	}
}

// disturb keeps a processor busy, so that the scheduler has choices.
func disturb() (stop func()) {
	var done atomic.Bool
	go func() {
		for !done.Load() {
			runtime.Gosched()
		}
	}()
	return func() { done.Store(true) }
}
