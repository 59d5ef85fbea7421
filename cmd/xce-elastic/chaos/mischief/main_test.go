package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script notes each call and answers with what it was given and told.
const script = `#!/bin/sh
echo "$1" >>"$0.calls"
input=$(cat)
n=$(wc -l <"$0.calls")
if [ "$1" = list ]; then echo "{\"n\":$n}"; else echo "{\"in\":$input,\"pending\":\"$XCE_POOL_PENDING_MS\",\"more\":\"$MORE\"}"; fi
`

// try calls the script under a control, and answers what it did.
func try(t *testing.T, c Control, verb, input string) (out string, code, calls int) {
	t.Helper()
	folder := os.Getenv("MISCHIEF_CONTROL")
	if folder == "" {
		folder = filepath.Join(t.TempDir(), "control.json")
		t.Setenv("MISCHIEF_CONTROL", folder)
		t.Setenv("MISCHIEF_SCRIPT", filepath.Join(t.TempDir(), "script"))
		if err := os.WriteFile(os.Getenv("MISCHIEF_SCRIPT"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(folder, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	code, err = run([]string{verb}, strings.NewReader(input), &stdout)
	if err != nil {
		t.Fatal(err)
	}
	done, _ := os.ReadFile(os.Getenv("MISCHIEF_SCRIPT") + ".calls")
	return strings.TrimSpace(stdout.String()), code, strings.Count(string(done), "\n")
}

func TestEachModeMisbehavesInItsOwnWay(t *testing.T) {
	const honest = `{"in":{"a":1},"pending":"","more":""}`
	tests := []struct {
		mode, verb  string
		want        string
		code, calls int
	}{
		{"", "request", honest, 0, 1},
		{"slow", "request", honest, 0, 1},
		{"late", "request", honest, 0, 1},
		{"dead", "request", "", 1, 0},
		{"silent", "request", "", 1, 1},
		{"babble", "request", "<html>502 Bad Gateway</html>", 0, 1},
		{"half", "request", honest[:(len(honest)+1)/2], 0, 1},
		{"refuse", "request", `{"status":"refused","reason":"denied","retry_after":1,"message":"not now"}`, 0, 0},
		{"refuse", "describe", honest, 0, 1},
		{"pending", "request", `{"in":{"a":1},"pending":"1500","more":""}`, 0, 1},
	}
	for _, test := range tests {
		t.Run(test.mode+" "+test.verb, func(t *testing.T) {
			out, code, calls := try(t, Control{Mode: test.mode, Wait: 1}, test.verb, `{"a":1}`)
			if out != test.want || code != test.code || calls != test.calls {
				t.Errorf("got %q, exit status %d, %d calls; want %q, %d, %d", out, code, calls, test.want, test.code, test.calls)
			}
		})
	}
}

func TestAStaleListIsTheFirstOneOfItsMode(t *testing.T) {
	try(t, Control{}, "describe", "{}")
	if out, _, _ := try(t, Control{Mode: "stale"}, "list", "{}"); out != `{"n":2}` {
		t.Fatalf("got %s", out)
	}
	var stdout bytes.Buffer
	if _, err := run([]string{"list"}, strings.NewReader("{}"), &stdout); err != nil || strings.TrimSpace(stdout.String()) != `{"n":2}` {
		t.Errorf("got %s, %v", stdout.String(), err)
	}
	if out, _, _ := try(t, Control{}, "list", "{}"); out != `{"n":4}` {
		t.Errorf("an honest list: %s", out)
	}
}

func TestHostsAreToldAnotherWayToTheController(t *testing.T) {
	out, _, _ := try(t, Control{Agents: "https://here", Environment: []string{"MORE=x"}}, "request", `{"join":{"controller":"https://there","token":"t"}}`)
	if want := `{"in":{"join":{"controller":"https://here","token":"t"}},"pending":"","more":"x"}`; out != want {
		t.Errorf("got %s, want %s", out, want)
	}
}
