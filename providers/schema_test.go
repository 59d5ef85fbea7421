package providers

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestEveryVerbHasItsSchemas(t *testing.T) {
	schemas, err := compileSchemas()
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []Verb{VerbDescribe, VerbRequest, VerbStatus, VerbReturn, VerbList, VerbObserve} {
		for _, direction := range []string{".in.json", ".out.json"} {
			if schemas[string(verb)+direction] == nil {
				t.Errorf("no schema %s%s", verb, direction)
			}
		}
	}
}

// TestManual: every example of the manual keeps the contract.
func TestManual(t *testing.T) {
	manual, err := os.ReadFile("../docs/provider.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```json ([a-z.]+)\n(.*?)```").FindAllStringSubmatch(string(manual), -1)
	if len(examples) < 10 {
		t.Fatalf("only %d examples found", len(examples))
	}
	for _, example := range examples {
		document, err := parse([]byte(example[2]))
		if err == nil {
			err = validate(example[1]+".json", document)
		}
		if err != nil {
			t.Errorf("example of %s: %v", example[1], err)
		}
	}
}

const joinMessage = `{"host":"host/small-1","controller":"https://controller:7700","ca":"PEM","token":"abcdefgh","deadline":"2026-03-01T08:10:00Z"}`

func TestParseIn(t *testing.T) {
	tests := []struct{ name, in, fault string }{
		{"good", `{"request_id":"loan/vcs/pool-1","resource":"vcs","units":1}`, ""},
		{"later field", `{"request_id":"loan/vcs/pool-1","resource":"vcs","units":1,"why":{}}`, ""},
		{"cut", `{"request_id":"loan/vcs/pool-1"`, "not one JSON object"},
		{"negative", `{"request_id":"loan/vcs/pool-1","resource":"vcs","units":-1}`, "at /units"},
		{"too many", `{"request_id":"loan/vcs/pool-1","resource":"vcs","units":1000000000001}`, "at /units"},
		{"id with a blank", `{"request_id":"a b","resource":"vcs","units":1}`, "at /request_id"},
		{"id like an option", `{"request_id":"-rf","resource":"vcs","units":1}`, "at /request_id"},
		{"hosts", `{"request_id":"host/small-1","template":"small","units":2}`, ""},
		{"a host that joins", `{"request_id":"host/small-1","template":"small","units":1,"join":` + joinMessage + `}`, ""},
		{"two hosts with one join", `{"request_id":"host/small-1","template":"small","units":2,"join":` + joinMessage + `}`, "at /units"},
		{"tokens that join", `{"request_id":"a","resource":"vcs","units":1,"join":` + joinMessage + `}`, "template"},
		{"a join without token", `{"request_id":"a","template":"small","units":1,"join":` + strings.Replace(joinMessage, `"token"`, `"taken"`, 1) + `}`, "at /join"},
		{"neither resource nor template", `{"request_id":"a","units":1}`, "resource"},
		{"resource and template", `{"request_id":"a","resource":"vcs","template":"small","units":1}`, "at /"},
		{"template with a slash", `{"request_id":"a","template":"../x","units":1}`, "at /template"},
		{"resource with a line feed", `{"request_id":"a","resource":"v\ncs","units":1}`, "at /resource"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var in RequestIn
			err := ParseIn(VerbRequest, []byte(test.in), &in)
			if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("got %v, want %q", err, test.fault)
			}
		})
	}
	if err := ParseIn("lend", []byte(`{}`), new(struct{})); err == nil {
		t.Error("a verb that is not of the contract was read")
	}
}

// TestMessagesSurviveHistory: what goes through workflow histories comes back the same.
func TestMessagesSurviveHistory(t *testing.T) {
	before := Outcome{Status: StatusRefused, Reason: ReasonQuota, RetryAfter: 7, Message: "m", Text: "t"}
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var after Outcome
	if err := json.Unmarshal(text, &after); err != nil || after != before {
		t.Errorf("%+v became %+v (%v)", before, after, err)
	}
}
