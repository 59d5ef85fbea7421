package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/workflows"
)

// Stories are the workflows that are asked again.
type Stories struct{ Loan, Host, Provider any }

// orLive answers the workflows of this program where none are given.
func (s Stories) orLive() Stories {
	if s.Loan == nil {
		s.Loan = workflows.LoanWorkflow
	}
	if s.Host == nil {
		s.Host = workflows.HostWorkflow
	}
	if s.Provider == nil {
		s.Provider = workflows.ProviderWorkflow
	}
	return s
}

// story replays one history.
func (r *Report) story(ctx context.Context, path string, stories Stories, decode decode) error {
	h, err := readHistory(path)
	if err != nil {
		return err
	}
	if err := decode(ctx, h); err != nil {
		return fmt.Errorf("%s: %w; name the file of the keys with --codec-keys", path, err)
	}
	name := nameOf(h, path)
	events := cut(h.GetEvents())
	if len(events) == 0 {
		r.NotBegun++
		return nil
	}
	recorded, answers, err := stepsOf(events)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	heard, fault := hear(&history.History{Events: events}, stories)
	if heard.err != nil {
		return fmt.Errorf("%s: %w", path, heard.err)
	}
	t := telling{Report: r, name: name, fault: fault}
	t.compare(recorded, slices.DeleteFunc(heard.steps, func(s step) bool { return s.void }))
	t.compareAnswers(answers, heard.answers)
	t.end()
	return nil
}

// nameOf names the run of a history by its workflow.
func nameOf(h *history.History, path string) string {
	name := strings.TrimSuffix(filepath.Base(path), historyEnd)
	if len(h.GetEvents()) == 0 {
		return name
	}
	begun := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	if id := begun.GetWorkflowId(); id != "" {
		return fmt.Sprintf("%s (run %s)", id, begun.GetOriginalExecutionRunId())
	}
	return name
}

// hear runs a story against its history, and answers what it asks for. The fault is what Temporal's replayer finds.
func hear(h *history.History, stories Stories) (*listener, error) {
	l := &listener{answers: map[string]step{}}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: []interceptor.WorkerInterceptor{l}, DisableDeadlockDetection: true,
	})
	if err != nil {
		l.err = err
		return l, nil
	}
	for name, story := range map[string]any{
		workflows.LoanName: stories.Loan, workflows.HostName: stories.Host, workflows.ProviderName: stories.Provider,
	} {
		replayer.RegisterWorkflowWithOptions(story, workflow.RegisterOptions{Name: name})
	}
	return l, replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h)
}

// telling is one story that is compared with its history.
type telling struct {
	*Report
	name  string
	fault error
	// differs tells that the story has come to a difference: what follows from it is none of its own.
	differs, reworded bool
}

// compare compares the steps in their order, up to the first difference.
func (t *telling) compare(recorded, asked []step) {
	for i, live := range recorded {
		if i >= len(asked) {
			if t.fault == nil {
				t.found(live, nil, &finding{live: live.String(), now: "nothing is asked for"})
			}
			return
		}
		if !t.step(live, asked[i]) {
			return
		}
	}
	if len(asked) > len(recorded) && t.fault == nil {
		now := asked[len(recorded)]
		t.found(step{event: now.task}, nil, &finding{live: "nothing was asked for", now: now.String()})
	}
}

// step compares one step, and tells whether it makes sense to go on.
func (t *telling) step(live, now step) bool {
	if !live.alike(now) || live.task != now.task {
		f := &finding{live: live.String(), now: now.String()}
		if live.alike(now) {
			f.path, f.live, f.now = "event", fmt.Sprintf("after event %d", live.task), fmt.Sprintf("after event %d", now.task)
		}
		t.found(live, &now, f)
		return false
	}
	return t.inputs(live, now)
}

// inputs compares what goes with a step.
func (t *telling) inputs(live, now step) bool {
	c, err := compare(live.input, now.input)
	if err != nil {
		c.differs = &finding{live: shown(live.input), now: err.Error()}
	}
	where := t.where(live)
	t.count(kindSteps, c.differs.at(where, live.String()), c.reworded.at(where, live.String()))
	t.differs = t.differs || c.differs != nil
	t.reworded = t.reworded || c.reworded != nil
	return c.differs == nil
}

func (t *telling) where(s step) string { return fmt.Sprintf("%s, event %d", t.name, s.event) }

// found notes a step that is another now.
func (t *telling) found(live step, now *step, f *finding) {
	what := "what the story asks for"
	if now == nil && live.kind != "" {
		what = live.String()
	}
	t.count(kindSteps, f.at(t.where(live), what), nil)
	t.differs = true
}

// compareAnswers compares what operators were answered.
func (t *telling) compareAnswers(recorded, given map[string]step) {
	live := make([]step, 0, len(recorded))
	for _, s := range recorded {
		live = append(live, s)
	}
	slices.SortFunc(live, func(a, b step) int { return int(a.event - b.event) })
	for _, s := range live {
		now, is := given[s.name]
		switch {
		case t.differs:
			return
		case !is:
			t.found(s, nil, &finding{live: shown(s.input), now: "no answer is given"})
		default:
			t.inputs(s, now)
		}
	}
}

// end counts the story as a whole.
func (t *telling) end() {
	k := t.kind(kindStories)
	k.Replayed++
	switch {
	case t.fault != nil && !t.differs:
		t.count(kindSteps, &Difference{
			Where: t.name, What: "the story as Temporal replays it", Live: "the steps of its history", Now: faultText(t.fault),
		}, nil)
		k.Different++
	case t.differs:
		k.Different++
	default:
		k.Same++
		if t.reworded {
			k.Reworded++
		}
	}
}

// faultText answers the words of the replayer's error that say what is wrong.
func faultText(err error) string {
	text := errors.Unwrap(err)
	if text == nil {
		text = err
	}
	return text.Error()
}
