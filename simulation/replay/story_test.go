package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/workflows"
)

// stories are the recorded histories of real stories, by name.
func stories(t *testing.T) map[string]*history.History {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "workflows", "testdata", "histories", "*.json.gz"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d histories, error %v", len(paths), err)
	}
	all := map[string]*history.History{}
	for _, path := range paths {
		h, err := readHistory(path)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), historyEnd)] = h
	}
	return all
}

// toldAgain replays one history from a folder.
func toldAgain(t *testing.T, h *history.History, s Stories) *Report {
	t.Helper()
	folder := t.TempDir()
	to, err := NewHistories(folder, Index{Release: "1.2.3", Namespace: "xce"})
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Write("loan/vcs/pool-1", "run-1", h); err != nil {
		t.Fatal(err)
	}
	return replayed(t, folder, Options{Stories: s})
}

func TestRecordedStoriesAskForTheSameWithTheSameArguments(t *testing.T) {
	for name, h := range stories(t) {
		t.Run(name, func(t *testing.T) {
			r := toldAgain(t, h, Stories{})
			for _, d := range append(r.Differences, r.Rewordings...) {
				t.Errorf("%+v", d)
			}
			if stories, steps := r.kind(kindStories), r.kind(kindSteps); stories.Same != 1 || steps.Same < 4 || steps.Same != steps.Replayed {
				t.Errorf("%+v and %+v", stories, steps)
			}
		})
	}
}

// swap changes the first text in payloads that has one to another, and tells whether it did.
func swap(of *common.Payloads, from, to string) bool {
	for _, p := range of.GetPayloads() {
		if bytes.Contains(p.GetData(), []byte(from)) {
			p.Data = bytes.Replace(p.GetData(), []byte(from), []byte(to), 1)
			return true
		}
	}
	return false
}

// changes of a history that Temporal's replayer does not notice, by what they change. Each answers whether it could
// change the event.
var changes = map[string]func(*history.HistoryEvent) bool{
	"the length of a timer": func(e *history.HistoryEvent) bool {
		a := e.GetTimerStartedEventAttributes()
		if a == nil {
			return false
		}
		a.StartToFireTimeout = durationpb.New(a.GetStartToFireTimeout().AsDuration() + time.Millisecond)
		return true
	},
	"an argument of an activity": func(e *history.HistoryEvent) bool {
		return swap(e.GetActivityTaskScheduledEventAttributes().GetInput(), `"step":2`, `"step":3`)
	},
	"the queue of an activity": func(e *history.HistoryEvent) bool {
		queue := e.GetActivityTaskScheduledEventAttributes().GetTaskQueue()
		if !strings.HasPrefix(queue.GetName(), "xce-provider-") {
			return false
		}
		queue.Name += "x"
		return true
	},
	"what a signal says": func(e *history.HistoryEvent) bool {
		return swap(e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetInput(), `"loan":"loan/`, `"loan":"load/`)
	},
	"an answer to an operator": func(e *history.HistoryEvent) bool {
		return swap(e.GetWorkflowExecutionUpdateCompletedEventAttributes().GetOutcome().GetSuccess(), `"units":1`, `"units":2`)
	},
	"a no to an operator": func(e *history.HistoryEvent) bool {
		a := e.GetWorkflowExecutionUpdateCompletedEventAttributes()
		if a.GetOutcome().GetFailure() == nil {
			return false
		}
		a.Outcome.Value = nil
		return true
	},
	"the state that goes on": func(e *history.HistoryEvent) bool {
		return swap(e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput(), `"chapter":"keeping"`, `"chapter":"joining"`)
	},
}

func TestWhatTemporalDoesNotNoticeIsNoticed(t *testing.T) {
	all := stories(t)
	for what, change := range changes {
		t.Run(what, func(t *testing.T) {
			tried := 0
			for name := range all {
				h := proto.CloneOf(all[name])
				if event := changeFirst(h, change); event != nil {
					tried++
					mustBeNamed(t, name, h, event)
				}
				if tried == 2 {
					return
				}
			}
			if tried == 0 {
				t.Error("no history has what was to be changed")
			}
		})
	}
}

func changeFirst(h *history.History, change func(*history.HistoryEvent) bool) *history.HistoryEvent {
	for _, e := range h.GetEvents() {
		if change(e) {
			return e
		}
	}
	return nil
}

// mustBeNamed demands that Temporal takes a changed history for sound, and that the replay names the event.
func mustBeNamed(t *testing.T, name string, h *history.History, changed *history.HistoryEvent) {
	t.Helper()
	if _, fault := hear(&history.History{Events: cut(h.GetEvents())}, Stories{}.orLive()); fault != nil {
		t.Errorf("%s: Temporal notices it: %v", name, fault)
	}
	r := toldAgain(t, h, Stories{})
	if r.Different() != 1 || r.kind(kindStories).Different != 1 {
		t.Fatalf("%s: the report is %+v", name, r)
	}
	if d := r.Differences[0]; !strings.HasSuffix(d.Where, fmt.Sprintf(", event %d", changed.GetEventId())) || d.Live == d.Now {
		t.Errorf("%s: of event %d: %+v", name, changed.GetEventId(), d)
	}
}

func TestAStoryThatIsToldOtherwiseIsNamedWithItsEvent(t *testing.T) {
	all := stories(t)
	for name, test := range map[string]struct {
		history string
		stories Stories
		want    Difference
	}{
		"polled less often": {"loan-pending", Stories{Loan: func(ctx workflow.Context, l workflows.Loan) error {
			l.Request.PollInterval = 7 * cluster.Second
			return workflows.LoanWorkflow(ctx, l)
		}}, Difference{What: "activity ledger.intend on xce-controller", Path: "[0].request.poll_interval"}},
		"one activity more": {"loan", Stories{Loan: func(ctx workflow.Context, l workflows.Loan) error {
			hasty := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: "xce-controller", StartToCloseTimeout: 1})
			_ = workflow.ExecuteActivity(hasty, "controller.view", nil).Get(ctx, nil)
			return workflows.LoanWorkflow(ctx, l)
		}}, Difference{What: "what the story asks for", Live: "activity ledger.intend on xce-controller", Now: "activity controller.view on xce-controller"}},
		"nothing done": {"host", Stories{Host: func(workflow.Context, workflows.Host) error { return nil }}, Difference{
			What: "what the story asks for", Live: "activity ledger.host on xce-controller", Now: "end of the story",
		}},
		"a story that stops": {"host", Stories{Host: func(workflow.Context, workflows.Host) error { panic("no such chapter") }}, Difference{
			What: "the story as Temporal replays it", Live: "the steps of its history",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := toldAgain(t, all[test.history], test.stories)
			if r.Different() != 1 || r.kind(kindStories).Different != 1 {
				t.Fatalf("the report is %+v", r)
			}
			d := r.Differences[0]
			if d.What != test.want.What || d.Path != test.want.Path || test.want.Live != "" && d.Live != test.want.Live || test.want.Now != "" && d.Now != test.want.Now {
				t.Errorf("the difference is %+v\nwant %+v", d, test.want)
			}
			if name == "a story that stops" && !strings.Contains(d.Now, "no such chapter") {
				t.Errorf("the difference is %+v", d)
			}
		})
	}
}

func TestAStoryThatStillRunsIsReplayedAsFarAsItHasCome(t *testing.T) {
	whole := stories(t)["host"]
	for n := len(whole.GetEvents()) - 1; n > 0; n-- {
		if len(cut(whole.GetEvents()[:n+1])) > n {
			continue // a server writes down at once what a task commands
		}
		r := toldAgain(t, &history.History{Events: whole.GetEvents()[:n]}, Stories{})
		if r.Different() > 0 || r.kind(kindStories).Same+r.NotBegun != 1 {
			t.Fatalf("up to event %d: %+v", n, r)
		}
	}
}

func TestOtherWordsOfAProviderAreNoOtherStep(t *testing.T) {
	h := stories(t)["loan-refused"]
	if changeFirst(h, func(e *history.HistoryEvent) bool {
		return swap(e.GetActivityTaskScheduledEventAttributes().GetInput(), `"why":"`, `"why":"alas, `)
	}) == nil {
		t.Fatal("no reason is given in the history")
	}
	r := toldAgain(t, h, Stories{})
	if r.Different() != 0 || r.kind(kindSteps).Reworded != 1 || r.kind(kindStories).Reworded != 1 || len(r.Rewordings) != 1 {
		t.Errorf("the report is %+v", r)
	}
}

func TestHistoriesThatAreNotKnownAreRefusedWithARemedy(t *testing.T) {
	folder := t.TempDir()
	to, err := NewHistories(folder, Index{Release: "1.2.3", Namespace: "xce"})
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Write("host/small-1", "run-1", stories(t)["host"]); err != nil {
		t.Fatal(err)
	}
	if _, err := NewHistories(folder, Index{}); err == nil || !strings.Contains(err.Error(), "is there already; name another folder") {
		t.Errorf("a second time: %v", err)
	}
	index := filepath.Join(folder, historyFolder, indexName)
	sound, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		strings.Replace(string(sound), `"version": 1`, `"version": 7`, 1): "the histories have format 7, and this program knows format 1; replay them with release 1.2.3, or record them anew",
		"{}": "does not say that histories of workflows are here; record them anew",
		"":   "is missing, which says what the histories are; record them anew",
	} {
		err := os.WriteFile(index, []byte(text), 0o600)
		if text == "" {
			err = os.Remove(index)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), folder, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of the index %q: %v", text, err)
		}
	}
	bad := filepath.Join(folder, historyFolder, "host_small-2.run"+historyEnd)
	if err := os.WriteFile(index, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, []byte("no history"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), folder, Options{}); err == nil || !strings.Contains(err.Error(), bad+": it is no history that can be read") {
		t.Errorf("of a damaged history: %v", err)
	}
}
