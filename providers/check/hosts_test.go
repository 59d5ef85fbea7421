package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/providers"
)

// maker is the example of the manual, turned into one that makes hosts: an instance each.
func maker(t *testing.T) string {
	t.Helper()
	script := example(t)
	for _, change := range [][2]string{
		{`"kinds":["tokens"]`, `"kinds":["hosts"]`},
		{`"offers":[{"resource":"%s",`, `"templates":[{"template":"%s","cpus":1,"memory_mb":1024,`},
		{`$(text resource)`, `$(text template)`},
		{`"granted":%d}\n' "$id" "$status" "$granted"`, `"granted":%d,"instances":[{"id":"i-%s"}]}\n' "$id" "$status" "$granted" "$id"`},
		{`"status":"granted","granted":%d}' "$granted"`, `"status":"granted","granted":%d,"instances":[{"id":"i-%s"}]}' "$granted" "$id"`},
		{`\"resource\":\"%s\",\"units\":%d}", $1, resource, $4)`, `\"template\":\"%s\",\"units\":%d,\"instances\":[{\"id\":\"i-%s\"}]}", $1, resource, $4, $1)`},
	} {
		script = replace(t, script, change[0], change[1])
	}
	return script
}

func replace(t *testing.T, script, old, by string) string {
	t.Helper()
	if strings.Count(script, old) != 1 {
		t.Fatalf("the example has %q %d times", old, strings.Count(script, old))
	}
	return strings.Replace(script, old, by, 1)
}

const (
	hostsInParts = "hosts: part of a grant goes back"
	hostsBeyond  = "hosts: a request for more than the headroom"
)

func TestMakerOfHosts(t *testing.T) {
	t.Parallel()
	spec, records := lender(t, maker(t), "4")
	report, out := runCheck(t, spec)
	expectClean(t, report, out, hostsInParts, hostsBeyond, "observe")
	expectNothingLent(t, records)
}

// TestFindsFaultsOfHosts spoils one thing of the good maker at a time.
func TestFindsFaultsOfHosts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, old, spoiled string
		verdict            Verdict
		row                string // where it must be found; it may be found elsewhere too
	}{
		{"one id for all hosts", `[{"id":"i-%s"}]}\n' "$id" "$status" "$granted" "$id"`, `[{"id":"i-1"}]}\n' "$id" "$status" "$granted"`, Wrong, "hosts: request, list, status, repeat, return"},
		{"no instance", `,"instances":[{"id":"i-%s"}]}\n' "$id" "$status" "$granted" "$id"`, `}\n' "$id" "$status" "$granted"`, Wrong, "hosts: request, list, status, repeat, return"},
		{"status does not know the instance", `,"instances":[{"id":"i-%s"}]}' "$granted" "$id"`, `}' "$granted"`, Wrong, "hosts: request, list, status, repeat, return"},
		{"list names another instance", `$1, resource, $4, $1)`, `$1, resource, $4, $1 "x")`, Wrong, "hosts: request, list, status, repeat, return"},
		{"list says resource", `\"template\"`, `\"resource\"`, Wrong, "hosts: request, list, status, repeat, return"},
		{"any template", `"$(text template)" = "$resource"`, `a = a`, Wrong, "hosts: a name that does not exist"},
		{"closed requests are forgotten", "[ \"$lent\" -gt 0 ] || refuse invalid \"this request was returned or cancelled\"\n", "[ \"$lent\" -gt 0 ] || { granted=$units; keep \"$units $units $units\"; }\n", Wrong, "hosts: a late request after the return"},
		{"input is guessed", "case $in in '{'*'}') ;; *) refuse", "case $in in *) ;; *) refuse", Wrong, "hosts: input cut short"},
		{"another instance each time", `"$status" "$granted" "$id"`, `"$status" "$granted" "$id/$$"`, Wrong, "hosts: a repeated request grants nothing new"},
	}
	good := maker(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			spec, _ := lender(t, replace(t, good, test.old, test.spoiled), "4")
			report, out := runCheck(t, spec)
			if !slices.Contains(verdicts(report, test.verdict), test.row) {
				t.Errorf("%s is not found in %q:\n%s", test.verdict, test.row, out)
			}
		})
	}
}

func TestBothKinds(t *testing.T) {
	t.Parallel()
	script := replace(t, example(t), `"kinds":["tokens"],`, `"kinds":["tokens","hosts"],"templates":[{"template":"small","cpus":1,"memory_mb":1,"headroom":0,"price":0,"minimum_hold_s":0,"billing_step_s":0}],`)
	spec, records := lender(t, script, "4")
	report, out := runCheck(t, spec)
	if report.Failed() || !slices.Contains(verdicts(report, OK), "a late return raises nothing") || !slices.Contains(verdicts(report, Warning), "hosts: a late return raises nothing") {
		t.Error(out)
	}
	expectNothingLent(t, records)
}

func TestLocal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("hosts on this machine need Linux")
	}
	local, agent := build(t, "local"), filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		environment map[string]string
	}{
		{"plain", nil},
		{"pending", map[string]string{"XCE_LOCAL_PENDING_MS": "50"}},
		{"named", map[string]string{"XCE_LOCAL_NAMES": "1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "farm")
			run := func(args ...string) {
				if text, err := exec.Command(local, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
			}
			run("init", "--folder", folder, "--template", "small=1:1024", "--template", "big=8:8192", "--capacity", "small=3", "--price", "big=9")
			t.Cleanup(func() { run("stop", "--folder", folder) })
			spec := providers.Spec{Name: "local", Script: local, TimeLimit: 20 * time.Second, Environment: map[string]string{
				"XCE_LOCAL_FOLDER": folder, "XCE_LOCAL_CLUSTER": "east", "XCE_LOCAL_AGENT": agent,
			}}
			for name, value := range test.environment {
				spec.Environment[name] = value
			}
			report, out := runCheck(t, spec)
			expectClean(t, report, out, hostsInParts, "observe")
		})
	}
}
