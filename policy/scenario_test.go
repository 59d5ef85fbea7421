package policy

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
)

var update = flag.Bool("update", false, "write what is decided into the scenarios")

// arrow stands between what is known and what is decided, nextStep between one
// decision and the next.
const (
	arrow    = "\n=>\n"
	nextStep = "\n---\n"
)

// question is what one step of a scenario asks: one or more of borrowing, a
// grant, a refusal and giving back.
type question struct {
	Now      cluster.Time `json:"now"`
	Borrow   *View        `json:"borrow"`
	Grant    *grant       `json:"grant"`
	Refusal  *refusal     `json:"refusal"`
	GiveBack *giveBack    `json:"give_back"`
}

// grant is a loan that is granted now.
type grant struct {
	cluster.Terms
	Own cluster.Duration `json:"own_minimum_hold"`
}

// refusal is the n-th refusal in a row.
type refusal struct {
	Number     int64            `json:"number"`
	RetryAfter cluster.Duration `json:"retry_after"`
}

// giveBack is what all loans of one resource ask again and again.
type giveBack struct {
	IdleTime cluster.Duration  `json:"idle_time"`
	Idle     cluster.IdleClock `json:"idle"`
	Loans    []cluster.Loan    `json:"loans"`
}

// Every scenario is a file in testdata: what is known as YAML, with the keys of
// question, and under an arrow what is decided. Where it goes on, a line of
// dashes follows, and the keys that are not as they were.
func TestEveryScenarioEndsAsWritten(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { playScenario(t, file) })
	}
}

func playScenario(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]any{}
	var played []string
	for i, step := range strings.Split(string(data), nextStep) {
		input, want, found := strings.Cut(step, arrow)
		if !found && !*update {
			t.Fatalf("there is no arrow in step %d", i+1)
		}
		got := strings.TrimSuffix(answer(readQuestion(t, input, known)), "\n")
		if want = strings.TrimSuffix(want, "\n"); got != want && !*update {
			t.Errorf("step %d decides\n%s\nand should decide\n%s", i+1, got, want)
		}
		played = append(played, strings.TrimRight(input, "\n")+"\n"+arrow+got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(played, nextStep)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readQuestion takes YAML as if it were JSON, so that a misspelt key fails. What
// it does not name is as it was known, which it brings up to date.
func readQuestion(t *testing.T, text string, known map[string]any) (q question) {
	t.Helper()
	var changes map[string]any
	if err := yaml.Unmarshal([]byte(text), &changes); err != nil {
		t.Fatal(err)
	}
	maps.Copy(known, changes)
	data, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&q); err != nil {
		t.Fatal(err)
	}
	return q
}

// answer says all that is decided, a line each.
func answer(q question) string {
	var b strings.Builder
	if q.Borrow != nil {
		borrowed(&b, *q.Borrow, q.Now)
	}
	if q.Grant != nil {
		fmt.Fprintf(&b, "held until %s\n", HoldUntil(q.Grant.Terms, q.Grant.Own, q.Now).Clock())
	}
	if q.Refusal != nil {
		wait := Backoff(q.Refusal.Number, q.Refusal.RetryAfter)
		fmt.Fprintf(&b, "left alone for %s, until %s\n", wait, q.Now.Add(wait).Clock())
	}
	if q.GiveBack != nil {
		givenBack(&b, *q.GiveBack, q.Now)
	}
	return b.String()
}

func borrowed(b *strings.Builder, view View, now cluster.Time) {
	plans := Borrow(view, now)
	for _, p := range plans {
		jobs := "job " + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Demand.Jobs), " ", ", job "), "[]")
		fmt.Fprintf(b, "borrow %d %s from %s for %s\n", p.Units, p.Demand.Resource, view.Provider, jobs)
	}
	if len(plans) == 0 {
		fmt.Fprintln(b, "borrow nothing")
	}
}

// givenBack asks for every loan, those first that go back first.
func givenBack(b *strings.Builder, g giveBack, now cluster.Time) {
	loans := ReturnOrder(g.Loans)
	for _, l := range g.Loans {
		if !slices.ContainsFunc(loans, func(held cluster.Loan) bool { return held.ID == l.ID }) {
			loans = append(loans, l)
		}
	}
	for _, l := range loans {
		units, again := Share(g.Loans, g.Idle, g.IdleTime, l.ID, now)
		fmt.Fprintf(b, "%s gives %d of %d back, and asks again at %s\n", l.ID, units, l.Borrowed, again.Clock())
	}
}
