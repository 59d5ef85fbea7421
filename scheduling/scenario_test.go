package scheduling

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write what the sessions answer into the scenarios")

// arrow stands between the input of a scenario and what its session answers.
const arrow = "\n=>\n"

// Every scenario is a file in testdata: the input of one session as YAML, with
// the keys of Input, and under an arrow what the session answers.
func TestEveryScenarioEndsAsWritten(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, found := strings.Cut(string(data), arrow)
			if !found && !*update {
				t.Fatal("there is no arrow")
			}
			got := render(Run(read(t, input)))
			if *update {
				input = strings.TrimRight(input, "\n") + "\n"
				if err := os.WriteFile(file, []byte(input+arrow+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("the session answers\n%s\nand should answer\n%s", got, want)
			}
		})
	}
}

// read takes YAML as if it were the JSON of an Input, so that a misspelt key fails.
func read(t *testing.T, text string) (in Input) {
	t.Helper()
	var document any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(document)
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
		fmt.Fprintf(&b, "job %d is promised %s at %s\n", res.Job, strings.Join(res.Hosts, ", "), res.At.Clock())
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
			fmt.Fprintf(&b, "idle: %s since %s\n", idle.Host, idle.Since.Clock())
			continue
		}
		fmt.Fprintf(&b, "idle: %d %s since %s", idle.Units, idle.Resource, idle.Since.Clock())
		for i, lot := range r.Clocks[idle.Resource] {
			fmt.Fprintf(&b, "%s %d since %s", []string{":", ","}[min(i, 1)], lot.Units, lot.Since.Clock())
		}
		fmt.Fprintln(&b)
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
