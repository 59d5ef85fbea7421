package scheduling

import (
	"fmt"
	"strings"
	"testing"

	"xce.internal/elastic/cluster/scenario"
)

// A scenario is the input of one session, or of several one after the other, and
// what they answer. Those in testdata/field have gone wrong somewhere; see
// INDEX.txt there.
func TestEveryScenarioEndsAsWritten(t *testing.T) {
	scenario.Play(t, "testdata", playSession)
}

func TestEveryScenarioFromTheFieldEndsAsWritten(t *testing.T) {
	scenario.Play(t, "testdata/field", playSession)
}

func playSession(in Input) string { return render(Run(in)) }

// render says all that a result says, a line each.
func render(r Result) string {
	var b strings.Builder
	for _, s := range r.Starts {
		fmt.Fprintf(&b, "job %d%s starts on %s%s\n", s.Job, element(s.Element), strings.Join(s.Hosts, ", "), alternative(s.Alternative))
	}
	for _, res := range r.Reservations {
		fmt.Fprintf(&b, "job %d%s is promised %s at %s%s\n", res.Job, element(res.Element), strings.Join(res.Hosts, ", "), res.At.Clock(), alternative(res.Alternative))
	}
	for _, u := range r.Unplaced {
		fmt.Fprintf(&b, "%s (%s) %s\n    to change: %s\n", who(u), u.Code, u.Why, u.Change)
	}
	for _, d := range r.Demand {
		fmt.Fprintf(&b, "demand: %d %s from %s at %s, because %s\n", d.Units, d.What(), d.Provider, d.Price, d.Reason)
	}
	for _, h := range r.Halves {
		what := fmt.Sprintf("%d %s", h.Units, h.Resource)
		if h.Host != "" {
			what = h.Host + madeFrom(h.Template)
		}
		fmt.Fprintf(&b, "kept: %s for %s, awaiting %s\n", what, who(Unplaced{Jobs: h.Jobs, Count: h.Count}), strings.Join(h.Awaits, ", "))
	}
	for _, idle := range r.Idle {
		if idle.Host != "" {
			fmt.Fprintf(&b, "idle: %s%s since %s\n", idle.Host, madeFrom(idle.Template), idle.Since.Clock())
			continue
		}
		fmt.Fprintf(&b, "idle: %d %s since %s", idle.Units, idle.Resource, idle.Since.Clock())
		for i, lot := range r.Clocks[idle.Resource] {
			fmt.Fprintf(&b, "%s %d since %s", []string{":", ","}[min(i, 1)], lot.Units, lot.Since.Clock())
		}
		fmt.Fprintln(&b)
	}
	if b.Len() == 0 {
		return "nothing starts, waits or is idle\n"
	}
	return b.String()
}

func who(u Unplaced) string {
	text := jobList(u.Jobs)
	if u.Count > int64(len(u.Jobs)) {
		text += fmt.Sprintf(", %d elements", u.Count)
	}
	return text
}

func element(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" element %d", n)
}

func alternative(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" with alternative %d", n)
}

func madeFrom(template string) string {
	if template == "" {
		return ""
	}
	return ", made from " + template + ","
}
