package timeskip

import (
	"fmt"
	"strings"
	"time"
)

// An Event is one thing that happened to one workflow.
type Event struct {
	At       time.Duration // since the start of the run
	Workflow string        // its id
	Kind     Kind
	Name     string // the type of the workflow or activity, the name of the signal or update
	Sequence int    // of an activity: the how manieth of its workflow id
	Attempt  int    // of an activity
	Outcome  string
}

// Kind says what an event is about.
type Kind string

// The kinds of events.
const (
	KindWorkflow Kind = "workflow"
	KindActivity Kind = "activity"
	KindSignal   Kind = "signal"
	KindUpdate   Kind = "update"
)

// String is one line.
func (e Event) String() string {
	const day = 24 * time.Hour
	clock := time.Time{}.Add(e.At % day).Format("15:04:05.000000000")
	what := fmt.Sprintf("%s %s", e.Kind, e.Name)
	if e.Kind == KindActivity {
		what += fmt.Sprintf(" #%d attempt %d", e.Sequence, e.Attempt)
	}
	return fmt.Sprintf("%dd %s  %s  %s: %s", e.At/day, clock, e.Workflow, what, oneLine(e.Outcome))
}

// Trace is what happened, in order.
type Trace []Event

// String is one line for each event. Equal runs give equal strings.
func (t Trace) String() string {
	var b strings.Builder
	for _, e := range t {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Diff is empty when both traces are the same, and else tells where they part.
func (t Trace) Diff(other Trace) string {
	for i := range max(len(t), len(other)) {
		if a, b := t.line(i), other.line(i); a != b {
			return fmt.Sprintf("event %d:\n- %s\n+ %s", i, a, b)
		}
	}
	return ""
}

func (t Trace) line(i int) string {
	if i >= len(t) {
		return "(end)"
	}
	return t[i].String()
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
}
