package scheduling

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write what the sessions answer into the scenarios")

// arrow stands between the input of a session and what it answers, nextStep
// between one session and the next.
const (
	arrow    = "\n=>\n"
	nextStep = "\n---\n"
)

// Every scenario is a file in testdata: the input of one session as YAML, with
// the keys of Input, and under an arrow what the session answers. Where it goes
// on, a line of dashes follows, and of the next session's input the keys that
// are not as they were. Those in testdata/field have gone wrong somewhere; see
// INDEX.txt there.
func TestEveryScenarioEndsAsWritten(t *testing.T) {
	files := scenarios(t, "testdata/*.txt", "testdata/field/*.txt")
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".txt")
		t.Run(name, func(t *testing.T) { playScenario(t, file) })
	}
}

// scenarios lists the files that match any of the patterns, but not the index.
func scenarios(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatalf("no scenarios in %s: %v", pattern, err)
		}
		for _, file := range some {
			if filepath.Base(file) != filepath.Base(index) {
				files = append(files, file)
			}
		}
	}
	return files
}

func playScenario(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]any{}
	var played []string
	for i, step := range strings.Split(string(data), nextStep) {
		input, want, found := strings.Cut(step, arrow)
		if !found && !*update {
			t.Fatalf("there is no arrow in step %d", i+1)
		}
		got := strings.TrimSuffix(render(Run(read(t, input, state))), "\n")
		if want = strings.TrimSuffix(want, "\n"); got != want && !*update {
			t.Errorf("session %d answers\n%s\nand should answer\n%s", i+1, got, want)
		}
		played = append(played, strings.TrimRight(input, "\n")+"\n"+arrow+got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(played, nextStep)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// read takes YAML as if it were the JSON of an Input, so that a misspelt key
// fails. What it does not name is as in the state, which it brings up to date.
func read(t *testing.T, text string, state map[string]any) (in Input) {
	t.Helper()
	var changes map[string]any
	if err := yaml.Unmarshal([]byte(text), &changes); err != nil {
		t.Fatal(err)
	}
	maps.Copy(state, changes)
	data, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		t.Fatal(err)
	}
	return in
}

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
		what := d.Resource
		if what == "" {
			what = hostsOf(d.Units, d.Template)
		}
		fmt.Fprintf(&b, "demand: %d %s from %s at %s, because %s\n", d.Units, what, d.Provider, d.Price, d.Reason)
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
