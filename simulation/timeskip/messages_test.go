package timeskip_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/simulation/timeskip"
)

type counterState struct {
	Total, Runs int
	Seen        []string // ids of updates
}

// counter adds what it is told by update and signal. An update of more than 10 is refused; one
// of 7 fails; one of 9 is never answered. The signal "again" makes it continue as new, "end" makes it end.
func counter(ctx workflow.Context, s counterState) (int, error) {
	s.Runs++
	again, end := false, false
	err := workflow.SetUpdateHandlerWithOptions(ctx, "add", func(ctx workflow.Context, n int) (int, error) {
		s.Seen = append(s.Seen, workflow.GetCurrentUpdateInfo(ctx).ID)
		switch n {
		case 7:
			return 0, temporal.NewApplicationError("not seven", "Seven")
		case 9:
			return 0, workflow.Await(ctx, func() bool { return false })
		}
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return 0, err
		}
		s.Total += n
		return s.Total, nil
	}, workflow.UpdateHandlerOptions{Validator: func(n int) error {
		if n > 10 {
			return errors.New("too much")
		}
		return nil
	}})
	if err != nil {
		return 0, err
	}
	if err := workflow.SetQueryHandler(ctx, "state", func() (counterState, error) { return s, nil }); err != nil {
		return 0, err
	}
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(workflow.GetSignalChannel(ctx, "add"), func(c workflow.ReceiveChannel, _ bool) {
		var n int
		c.Receive(ctx, &n)
		s.Total += n
	})
	selector.AddReceive(workflow.GetSignalChannel(ctx, "again"), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		again = true
	})
	selector.AddReceive(workflow.GetSignalChannel(ctx, "end"), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		end = true
	})
	for !again && !end {
		selector.Select(ctx)
	}
	if end {
		return s.Total, nil
	}
	return 0, workflow.NewContinueAsNewError(ctx, "counter", s)
}

// script runs counters named a, b, ... and does each action a minute and a half after the one before.
func script(t *testing.T, counters int, actions ...func(h *timeskip.Harness)) *timeskip.Report {
	t.Helper()
	report := timeskip.Run(t, timeskip.Options{Limit: 24 * time.Hour}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(counter, "counter")
		for i := range counters {
			start(t, h, string(rune('a'+i)), "counter", counterState{})
		}
		for i, action := range actions {
			h.At(time.Duration(i+1)*90*time.Second, func() { action(h) })
		}
	})
	t.Logf("\n%s", report.Trace)
	return report
}

func TestUpdates(t *testing.T) {
	var ok, other, refused, again, failed, lost, twice, twiceMore, afresh, unknown *timeskip.Update
	var seen counterState
	var early error
	told := 0
	script(t, 2,
		func(h *timeskip.Harness) {
			ok = h.Update("a", "u1", "add", 3)
			early = ok.Result(nil)
			ok.Then(func() { told++ })
			other = h.Update("b", "u1", "add", 4)
		},
		func(h *timeskip.Harness) { refused = h.Update("a", "u2", "add", 11) },
		func(h *timeskip.Harness) { again = h.Update("a", "u2", "add", 5) },
		func(h *timeskip.Harness) { failed = h.Update("a", "u3", "add", 7) },
		func(h *timeskip.Harness) {
			twice, twiceMore = h.Update("a", "u4", "add", 1), h.Update("a", "u4", "add", 1)
		},
		func(h *timeskip.Harness) { lost = h.Update("a", "u5", "add", 9) },
		func(h *timeskip.Harness) { mustDo(t, h.Signal("a", "again", nil)) },
		func(h *timeskip.Harness) { afresh = h.Update("a", "u1", "add", 1) },
		func(h *timeskip.Harness) { unknown = h.Update("z", "u1", "add", 1) },
		func(h *timeskip.Harness) { mustDo(t, h.Query("a", "state", &seen)) },
	)
	if !errors.Is(early, timeskip.ErrNotAnswered) || told != 1 {
		t.Errorf("early result %v, told %d times", early, told)
	}
	checkUpdate(t, ok, true, 3, "")
	checkUpdate(t, other, true, 4, "")
	checkUpdate(t, refused, false, 0, "too much")
	checkUpdate(t, again, true, 8, "")
	checkUpdate(t, failed, true, 0, "not seven")
	checkUpdate(t, twice, true, 9, "")
	if twice != twiceMore {
		t.Error("the same update twice is two updates")
	}
	checkUpdate(t, lost, true, 0, "ended before")
	checkUpdate(t, afresh, true, 10, "")
	checkUpdate(t, unknown, false, 0, "no open workflow")
	if want := []string{"u1", "u2", "u3", "u4", "u5", "u1"}; !slices.Equal(seen.Seen, want) || seen.Total != 10 || seen.Runs != 2 {
		t.Errorf("state %+v", seen)
	}
	var app *temporal.ApplicationError
	if !errors.As(failed.Result(nil), &app) || app.Type() != "Seven" {
		t.Errorf("failure %v", failed.Result(nil))
	}
}

func checkUpdate(t *testing.T, u *timeskip.Update, accepted bool, want int, wantErr string) {
	t.Helper()
	var got int
	err := u.Result(&got)
	switch {
	case !u.Answered(), u.Accepted() != accepted, got != want, (err != nil) != (wantErr != ""):
		t.Errorf("%s: accepted %v, result %d, error %v", u.ID, u.Accepted(), got, err)
	case err != nil && !strings.Contains(err.Error(), wantErr):
		t.Errorf("%s: error %v, want %q", u.ID, err, wantErr)
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func TestSignalsAndQueries(t *testing.T) {
	var open, closed counterState
	var unknown, late, queried error
	report := script(t, 1,
		func(h *timeskip.Harness) { mustDo(t, h.Signal("a", "add", 2)) },
		func(h *timeskip.Harness) {
			for _, name := range []string{"add", "again", "add", "add"} { // none is lost over continue-as-new
				h.After(0, func() { mustDo(t, h.Signal("a", name, 1)) })
			}
		},
		func(h *timeskip.Harness) { mustDo(t, h.Query("a", "state", &open)) },
		func(h *timeskip.Harness) { unknown, queried = h.Signal("z", "add", 1), h.Query("z", "state", nil) },
		func(h *timeskip.Harness) { mustDo(t, h.Signal("a", "end", nil)) },
		func(h *timeskip.Harness) { late = h.Signal("a", "add", 1) },
		func(h *timeskip.Harness) { mustDo(t, h.Query("a", "state", &closed)) },
	)
	if open.Total != 5 || open.Runs != 2 || closed.Total != 5 {
		t.Errorf("state %+v, when closed %+v", open, closed)
	}
	var notFound *serviceerror.NotFound
	for _, err := range []error{unknown, late, queried} {
		if !errors.As(err, &notFound) {
			t.Errorf("error %v", err)
		}
	}
	var total int
	if w := report.Workflow("a"); w.Result(&total) != nil || total != 5 || w.Runs != 2 || w.Open() {
		t.Errorf("result %d of %+v", total, w)
	}
	if report.Reason != timeskip.NothingLeft {
		t.Errorf("ended: %s", report.Reason)
	}
}

// opener starts workflows for a workflow.
type opener struct{ h *timeskip.Harness }

func (o *opener) Open(_ context.Context, id string) error {
	if err := o.h.Start(id, "counter", counterState{}); err != nil {
		return err
	}
	return o.h.Signal(id, "add", 100) // it does not run yet
}

func TestStartFromActivity(t *testing.T) {
	parent := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}})
		for i := range 3 {
			id := fmt.Sprintf("loan/%d", i)
			if err := workflow.ExecuteActivity(ctx, "Open", id).Get(ctx, nil); err != nil {
				return err
			}
			// What the activity has started can be reached as soon as it has answered.
			if err := workflow.SignalExternalWorkflow(ctx, id, "", "add", i).Get(ctx, nil); err != nil {
				return err
			}
		}
		if err := workflow.SignalExternalWorkflow(ctx, "loan/9", "", "add", 0).Get(ctx, nil); err == nil {
			return errors.New("signal to nobody arrived")
		}
		return workflow.ExecuteActivity(ctx, "Open", "loan/0").Get(ctx, nil)
	}
	states := make([]counterState, 3)
	report := timeskip.Run(t, timeskip.Options{Limit: time.Hour}, func(t *testing.T, h *timeskip.Harness) {
		o := &opener{h}
		h.RegisterWorkflow(parent, "parent")
		h.RegisterWorkflow(counter, "counter")
		h.RegisterActivity(o.Open, "Open")
		start(t, h, "p", "parent")
		h.AtEnd(func() {
			for i := range states {
				mustDo(t, h.Query(fmt.Sprintf("loan/%d", i), "state", &states[i]))
			}
		})
	})
	for i, s := range states {
		if s.Total != 100+i {
			t.Errorf("loan/%d has %+v", i, s)
		}
	}
	// They outlive the one that caused them, and a second start is refused.
	if w := report.Workflow("p"); w.Open() || w.Err == nil || !strings.Contains(w.Err.Error(), "already started") {
		t.Errorf("parent %+v", w)
	}
	if w := report.Workflow("loan/2"); !w.Open() || report.Reason != timeskip.ReachedLimit {
		t.Errorf("loan %+v, ended: %s", w, report.Reason)
	}
}

// echo answers each "ping" with a "pong", and continues as new each time.
func echo(ctx workflow.Context, peer, in, out string, rounds int) error {
	workflow.GetSignalChannel(ctx, in).Receive(ctx, nil)
	if rounds == 0 {
		return nil
	}
	if err := workflow.SignalExternalWorkflow(ctx, peer, "", out, nil).Get(ctx, nil); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, "echo", peer, in, out, rounds-1)
}

func TestSignalsBetweenWorkflowsThatContinueAsNew(t *testing.T) {
	report := timeskip.Run(t, timeskip.Options{}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(echo, "echo")
		start(t, h, "a", "echo", "b", "ping", "pong", 50)
		start(t, h, "b", "echo", "a", "pong", "ping", 50)
		h.At(time.Hour, func() { mustDo(t, h.Signal("a", "ping", nil)) })
	})
	// a is the first to have no rounds left, and says nothing more, so that b waits for ever.
	if a := report.Workflow("a"); a.Open() || a.Err != nil || a.Runs != 51 {
		t.Errorf("%+v", a)
	}
	if b := report.Workflow("b"); !b.Open() || b.Runs != 51 {
		t.Errorf("%+v", b)
	}
}

func TestCancelLetsTheWorkflowCleanUp(t *testing.T) {
	var cleaned time.Time
	careful := func(ctx workflow.Context) error {
		err := workflow.Sleep(ctx, 100*time.Hour)
		ctx, _ = workflow.NewDisconnectedContext(ctx)
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		return errors.Join(err, workflow.ExecuteActivity(ctx, "Clean").Get(ctx, nil))
	}
	report := timeskip.Run(t, timeskip.Options{}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(careful, "careful")
		h.RegisterActivity(func(context.Context) error { cleaned = h.Now(); return nil }, "Clean")
		start(t, h, "c", "careful")
		h.At(2*time.Hour, func() { mustDo(t, h.Cancel("c")) })
	})
	if at := cleaned.Sub(midnight); at < 2*time.Hour || at > 2*time.Hour+time.Second {
		t.Errorf("cleaned at %v\n%s", at, report.Trace)
	}
}

func TestWorkflowsCannotTellThatTheyAreChildren(t *testing.T) {
	type told struct {
		Info   workflow.Info
		Length int
	}
	var first, second, child told
	look := func(ctx workflow.Context, into *told) {
		info := workflow.GetInfo(ctx)
		*into = told{*info, info.GetCurrentHistoryLength()}
	}
	looker := func(ctx workflow.Context, run int) error {
		if run == 1 {
			look(ctx, &first)
			for !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
				if err := workflow.Sleep(ctx, time.Hour); err != nil {
					return err
				}
			}
			return workflow.NewContinueAsNewError(ctx, "looker", 2)
		}
		look(ctx, &second)
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "child"})
		return workflow.ExecuteChildWorkflow(ctx, "child").Get(ctx, nil)
	}
	timeskip.Run(t, timeskip.Options{SuggestContinueAsNew: 144}, func(t *testing.T, h *timeskip.Harness) {
		h.RegisterWorkflow(looker, "looker")
		h.RegisterWorkflow(func(ctx workflow.Context) error { look(ctx, &child); return nil }, "child")
		start(t, h, "c", "looker", 1)
	})
	if first.Info.ParentWorkflowExecution != nil || first.Info.RootWorkflowExecution != nil || first.Length != 0 {
		t.Errorf("first run was told %+v", first)
	}
	// A timer counts as 6 events, so that 144 are a day.
	if d := second.Info.WorkflowStartTime.Sub(first.Info.WorkflowStartTime); d.Round(time.Second) != 24*time.Hour {
		t.Errorf("runs began %v apart", d)
	}
	if second.Info.FirstRunID != first.Info.WorkflowExecution.RunID || second.Info.WorkflowExecution.RunID == second.Info.FirstRunID {
		t.Errorf("runs %+v and %+v", first.Info, second.Info)
	}
	if p := child.Info.ParentWorkflowExecution; p == nil || p.ID != "c" {
		t.Errorf("child has parent %+v", p)
	}
}
