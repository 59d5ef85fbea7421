package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/providers"
)

// example is the script that stands in the manual.
func example(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"sh", "awk", "sed", "tr"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the example needs %s: %v", tool, err)
		}
	}
	manual, err := os.ReadFile("../../docs/provider.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(manual), "```sh\n")
	script, _, ended := strings.Cut(script, "```\n")
	if !found || !ended {
		t.Fatal("the manual has no fenced sh block")
	}
	return script
}

// lender makes a provider of a script of the example's kind.
func lender(t *testing.T, script, capacity string) (spec providers.Spec, records string) {
	t.Helper()
	dir := t.TempDir()
	records = filepath.Join(dir, "records")
	path := filepath.Join(dir, "lend.sh")
	if err := os.WriteFile(records, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return providers.Spec{
		Name: "lend", Script: path, TimeLimit: 20 * time.Second,
		Environment: map[string]string{"LEND_FILE": records, "LEND_CAPACITY": capacity},
	}, records
}

func runCheck(t *testing.T, spec providers.Spec) (Report, string) {
	t.Helper()
	var out bytes.Buffer
	report, err := run(t.Context(), spec, &out, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return report, out.String()
}

func verdicts(report Report, verdict Verdict) (names []string) {
	for _, row := range report.Rows {
		if row.Verdict == verdict {
			names = append(names, row.Check)
		}
	}
	return names
}

func expectClean(t *testing.T, report Report, out string, skipped ...string) {
	t.Helper()
	if bad := slices.Concat(verdicts(report, Wrong), verdicts(report, Warning)); len(bad) > 0 {
		t.Errorf("faults in %q:\n%s", bad, out)
	}
	if got := verdicts(report, Skipped); !slices.Equal(got, skipped) {
		t.Errorf("skipped %q, want %q", got, skipped)
	}
}

func TestExampleOfTheManual(t *testing.T) {
	t.Parallel()
	spec, records := lender(t, example(t), "4")
	report, out := runCheck(t, spec)
	expectClean(t, report, out, "two requests at once", "a request for more than the headroom", "observe")
	expectNothingLent(t, records)
}

func TestExampleWithOneToken(t *testing.T) {
	t.Parallel()
	spec, records := lender(t, example(t), "1")
	report, out := runCheck(t, spec)
	if report.Failed() || slices.Contains(verdicts(report, Skipped), "a request for more than the headroom") {
		t.Error(out)
	}
	expectNothingLent(t, records)
}

func expectNothingLent(t *testing.T, records string) {
	t.Helper()
	text, err := os.ReadFile(records)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, " 0\n") {
			t.Errorf("still lent: %s", line)
		}
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	pool := build(t, "pool")
	counts := filepath.Join(t.TempDir(), "counts.json")
	if err := os.WriteFile(counts, []byte(`{"vcs":{"in_use":3}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		environment map[string]string
		skipped     []string
	}{
		{"plain", nil, []string{"observe"}},
		{"observed", map[string]string{"XCE_POOL_OBSERVE_FILE": counts}, nil},
		{"pending", map[string]string{"XCE_POOL_PENDING_MS": "50"}, []string{"observe"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pool.json")
			made := exec.Command(pool, "init", "--file", file, "--resource", "vcs=8", "--resource", "xcelium=1")
			if text, err := made.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			spec := providers.Spec{Name: "pool", Script: pool, TimeLimit: 20 * time.Second, Environment: map[string]string{
				"XCE_POOL_FILE": file, "XCE_POOL_CLUSTER": "east",
			}}
			for name, value := range test.environment {
				spec.Environment[name] = value
			}
			report, out := runCheck(t, spec)
			expectClean(t, report, out, test.skipped...)
		})
	}
}

func build(t *testing.T, name string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), name)
	if text, err := exec.Command("go", "build", "-o", script, "../scripts/"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return script
}

// TestFindsFaults spoils one thing of the good example at a time.
func TestFindsFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, old, spoiled string
		verdict            Verdict
		rows               []string // where it must be found; it may be found elsewhere too
	}{
		{"noise", "case ${1-} in\n", "echo hello\ncase ${1-} in\n", Wrong, []string{"describe"}},
		{"price missing", `"price":0,`, ``, Wrong, []string{"describe"}},
		{"any resource", `"$(text resource)" = "$resource"`, `a = a`, Wrong, []string{"a name that does not exist"}},
		{"0 units", "'' | *[!0-9]* | 0* | ??????????*) refuse invalid \"units", "'' | *[!0-9]* | ??????????*) refuse invalid \"units", Warning, []string{"a request for 0 units"}},
		{"negative units are turned", "units=$(number units)\n", "units=$(number units | tr -d -)\n", Wrong, []string{"a request for -1 units"}},
		{"more than all is cut to all", `??????????*) refuse invalid "units`, `_) refuse invalid "units`, Wrong, []string{"a request beyond the contract's limit"}},
		{"input is guessed", "case $in in '{'*'}') ;; *) refuse", "case $in in *) ;; *) refuse", Wrong, []string{"input cut short"}},
		{"unknown verb does something", "*)\n  refuse invalid \"unknown verb\"", "*)\n  echo '{\"grants\":[]}'", Wrong, []string{"a verb that does not exist"}},
		{"unknown verb says nothing", "*)\n  refuse invalid \"unknown verb\"", "*)\n  exit 1", Warning, []string{"a verb that does not exist"}},
		{"status knows everything", `printf '"status":"unknown"}'`, `printf '"status":"granted","granted":1}'`, Wrong, []string{"status of an unknown request"}},
		{"status hangs", "comma=\n", "comma=\n  sleep 60 & sleep 60\n", Wrong, []string{"status of an unknown request", "request, list, status, repeat, return"}},
		{"no cancel", `[ "$remaining" = 0 ] || refuse invalid`, `refuse invalid`, Wrong, []string{"cancel, then a late request"}},
		{"closed requests are forgotten", "[ \"$lent\" -gt 0 ] || refuse invalid \"this request was returned or cancelled\"\n", "[ \"$lent\" -gt 0 ] || { granted=$units; keep \"$units $units $units\"; }\n", Wrong, []string{"cancel, then a late request", "a late request after the return"}},
		{"two for one", "granted=$((units < free ? units : free))", "granted=$((units + 1))", Warning, []string{"request, list, status, repeat, return"}},
		{"list forgets", "$4 > 0 { list", "$4 > 99 { list", Wrong, []string{"request, list, status, repeat, return"}},
		{"repeating grants again", "    [ \"$asked\" = \"$units\" ] ||", "    granted=$((granted + 1)); keep \"$asked $granted $granted\"\n    [ \"$asked\" = \"$units\" ] ||", Wrong, []string{"a repeated request grants nothing new", "the same request twice at once"}},
		{"the last units win", "[ \"$asked\" = \"$units\" ] || refuse invalid", "granted=$units; keep \"$units $units $units\"; [ \"$asked\" = \"$units\" ] || refuse invalid", Wrong, []string{"the same id with other units"}},
		{"return by units", `[ "$lent" -le "$remaining" ] ||`, `remaining=$((lent > 0 ? lent - 1 : 0));`, Wrong, []string{"part of a grant goes back"}},
		{"return raises", `[ "$lent" -le "$remaining" ] ||`, ``, Wrong, []string{"a late return raises nothing"}},
		{"return only says so", `keep "$asked $granted $remaining" && lent=`, `lent=`, Wrong, []string{"request, list, status, repeat, return", "everything is given back"}},
		{"return of the other", `printf '{"request_id":"%s","status":"ok","remaining":%d}\n' "$id"`, `printf '{"request_id":"%s","status":"ok","remaining":%d}\n' x`, Wrong, []string{"everything is given back"}},
		{"no lock, yet concurrent", "echo \"$id $*\"; }", "sleep 0.3; echo \"$id $*\"; }", Wrong, []string{"two requests at once"}},
		{"observe is offered only", `"concurrent":false,`, `"concurrent":false,"observe":true,`, Wrong, []string{"observe"}},
	}
	good := example(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(good, test.old) != 1 {
				t.Fatalf("the example has %q %d times", test.old, strings.Count(good, test.old))
			}
			script := strings.Replace(good, test.old, test.spoiled, 1)
			if strings.HasSuffix(test.name, "yet concurrent") {
				script = strings.Replace(script, `"concurrent":false`, `"concurrent":true`, 1)
				script = strings.Replace(script, `"billing_step_s":0`, `"billing_step_s":0,"max_open":9`, 1)
			}
			spec, _ := lender(t, script, "4")
			if test.name == "status hangs" {
				spec.TimeLimit = time.Second
			}
			report, out := runCheck(t, spec)
			found := verdicts(report, test.verdict)
			for _, row := range test.rows {
				if !slices.Contains(found, row) {
					t.Errorf("%s is not found in %q:\n%s", test.verdict, row, out)
				}
			}
			if report.Failed() != (test.verdict == Wrong) {
				t.Errorf("failed: %t\n%s", report.Failed(), out)
			}
		})
	}
}

// TestCancelled: when the check is cancelled while it holds a token, the token goes back all the same.
func TestCancelled(t *testing.T) {
	t.Parallel()
	script := strings.Replace(example(t), "comma=\n", "comma=\n  [ \"$free\" = \"$capacity\" ] || { : >\"$file.held\"; sleep 1; }\n", 1)
	spec, records := lender(t, script, "4")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(records + ".held"); err == nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	var out bytes.Buffer
	report, err := Run(ctx, spec, &out)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	last := report.Rows[len(report.Rows)-1]
	if last.Check != "everything is given back" || last.Verdict != OK {
		t.Errorf("last row %+v\n%s", last, out.String())
	}
	if _, err := os.Stat(records + ".held"); err != nil {
		t.Fatal("nothing was held when it was cancelled")
	}
	expectNothingLent(t, records)
}

func TestNothingToLend(t *testing.T) {
	t.Parallel()
	spec, _ := lender(t, example(t), "0")
	report, out := runCheck(t, spec)
	if report.Failed() || len(verdicts(report, Warning)) == 0 {
		t.Error(out)
	}
}

func TestNoSuchScript(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), providers.Spec{Name: "x", Script: filepath.Join(t.TempDir(), "x")}, new(bytes.Buffer)); err == nil {
		t.Error("a missing script was checked")
	}
}

// TestReport: a fault says what was expected, the exact answer, and how to mend it, in text and in JSON.
func TestReport(t *testing.T) {
	t.Parallel()
	spec, _ := lender(t, "#!/bin/sh\nprintf '{\"contract\":1}\\033[31m\\n'\n", "1")
	report, out := runCheck(t, spec)
	for _, want := range []string{"WRONG    describe", "expected:", "found:", `"{\"contract\":1}\x1b[31m"`, "mend:"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("the answer steers the terminal")
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil || len(back.Rows) != 1 || back.Rows[0].Answer != "{\"contract\":1}\x1b[31m\n" {
		t.Errorf("%s: %+v, %v", text, back, err)
	}
}
