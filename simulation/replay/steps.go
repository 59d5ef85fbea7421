package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
)

// step is one thing that a story asks of the world.
type step struct {
	// task is the event with which the workflow task began in which it is asked, and event that of the step itself,
	// where it is one of a history.
	task, event int64
	kind        stepKind
	// name is the activity's type, or the signal's, or the update's id; to is the task queue, or the workflow that
	// is told.
	name, to string
	input    any
	// void tells that the step was taken back in the same task, so that no history shows it.
	void bool
}

type stepKind string

const (
	activityStep stepKind = "activity"
	timerStep    stepKind = "timer"
	signalStep   stepKind = "signal"
	endStep      stepKind = "end"
	answerStep   stepKind = "answer"
)

// String says what is asked.
func (s step) String() string {
	switch s.kind {
	case activityStep:
		return fmt.Sprintf("activity %s on %s", s.name, s.to)
	case timerStep:
		return "timer of " + s.name
	case signalStep:
		return fmt.Sprintf("signal %s to %s", s.name, s.to)
	case answerStep:
		return "answer to an operator"
	}
	return s.name
}

// alike tells whether two steps are of one sort, so that it makes sense to compare what goes with them.
func (s step) alike(other step) bool {
	return s.kind == other.kind && s.name == other.name && (s.to == other.to || s.kind == activityStep && parts(s.to, other.to))
}

// parts tells whether a task queue is a part of what was one when the history was
// made: changes for all providers had one before each got its own.
func parts(then, now string) bool { return strings.HasPrefix(now, then+"-") }

// stepsOf answers the steps that a history shows, in their order, and the answers to operators by update.
func stepsOf(events []*history.HistoryEvent) (steps []step, answers map[string]step, err error) {
	answers = map[string]step{}
	task, begun := int64(0), map[int64]int64{}
	for _, e := range events {
		if done := e.GetWorkflowTaskCompletedEventAttributes(); done != nil {
			task = done.GetStartedEventId()
			begun[e.GetEventId()] = task
			continue
		}
		s, shows, err := stepOf(e)
		if err != nil {
			return nil, nil, fmt.Errorf("event %d: %w", e.GetEventId(), err)
		}
		if !shows {
			continue
		}
		s.event, s.task = e.GetEventId(), task
		if s.kind == answerStep {
			answers[s.name] = s
			continue
		}
		steps = append(steps, s)
	}
	return steps, answers, nil
}

// stepOf answers the step that an event shows.
func stepOf(e *history.HistoryEvent) (s step, shows bool, err error) {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		s = step{kind: activityStep, name: a.GetActivityType().GetName(), to: a.GetTaskQueue().GetName()}
		s.input, err = values(a.GetInput())
	case enums.EVENT_TYPE_TIMER_STARTED:
		s = timer(e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration())
	case enums.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
		s = step{kind: signalStep, name: a.GetSignalName(), to: a.GetWorkflowExecution().GetWorkflowId()}
		s.input, err = values(a.GetInput())
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		s = step{kind: endStep, name: "end of the story"}
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		a := e.GetWorkflowExecutionContinuedAsNewEventAttributes()
		s = step{kind: endStep, name: "going on in a new history"}
		s.input, err = values(a.GetInput())
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		a := e.GetWorkflowExecutionUpdateCompletedEventAttributes()
		s = step{kind: answerStep, name: a.GetMeta().GetUpdateId()}
		if failure := a.GetOutcome().GetFailure(); failure != nil {
			s.input = refusal(failure.GetMessage())
			break
		}
		s.input, err = values(a.GetOutcome().GetSuccess())
	default:
		return s, false, nil
	}
	return s, true, err
}

func timer(d time.Duration) step {
	return step{kind: timerStep, name: d.String()}
}

// refusal is an answer to an operator that is a no.
func refusal(text string) any { return map[string]any{"refused": true, "text": text} }

// values answers what payloads say, as JSON takes it apart.
func values(of *common.Payloads) (any, error) {
	list := []any{}
	for _, p := range of.GetPayloads() {
		encoding := string(p.GetMetadata()["encoding"])
		switch {
		case encoding == "binary/null":
			list = append(list, nil)
		case strings.HasPrefix(encoding, "json/"):
			tree, err := treeOf(json.RawMessage(p.GetData()))
			if err != nil {
				return nil, err
			}
			list = append(list, tree)
		default:
			return nil, fmt.Errorf("what is in it is %q, which this program does not know; record the histories without encryption", encoding)
		}
	}
	return list, nil
}
