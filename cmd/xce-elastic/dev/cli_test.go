//go:build e2e

package dev

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
)

//go:embed testdata/calm.yaml
var calmCluster string

// cli runs the program against a farm, and answers what it printed and whether it succeeded.
func (f *farm) cli(t *testing.T, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), f.Program, args...)
	cmd.Env = append(os.Environ(), "XCE_CONFIG="+f.path(configName))
	cmd.Dir = t.TempDir()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), err == nil
}

// does expects a command to succeed and to print what the patterns say.
func (f *farm) does(t *testing.T, args string, patterns ...string) string {
	t.Helper()
	out, errs, ok := f.cli(t, strings.Fields(args)...)
	if !ok {
		t.Fatalf("%s failed: %s", args, errs)
	}
	expect(t, out, patterns...)
	return out
}

// refuses expects a command to fail and to say why.
func (f *farm) refuses(t *testing.T, args string, patterns ...string) {
	t.Helper()
	out, errs, ok := f.cli(t, strings.Fields(args)...)
	if ok {
		t.Fatalf("%s succeeded: %s", args, out)
	}
	expect(t, errs, patterns...)
}

func TestWhatPeopleType(t *testing.T) {
	t.Parallel()
	f := startFarm(t, example{Cluster: calmCluster, Units: 8, Hold: 1})
	if err := os.WriteFile(f.path("observed.json"), []byte(`{"vcs":{"in_use":5}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f.does(t, "version -o json", `"version"`)
	f.does(t, "config check", `sound: 1 resources, 1 providers`)
	f.does(t, "submit --token vcs=4 --name first -- sleep 2", `job 1 is submitted`)
	f.does(t, "submit --token vcs=3 -o json -- sleep 300", `"state": "waiting"`)
	f.isRefusedAtSubmit(t)
	eventually(t, 20*time.Second, func() error { return f.total(t, 7) })
	f.does(t, "jobs --state running", `2 +- +running +you +vcs=3`)
	f.does(t, "loans", `loan/vcs/pool-a-1 +borrowed +3 +3 +3 +0 +0 +0`)
	f.does(t, "explain job 2", `Job 2 runs on node1`)
	f.does(t, "explain loan loan/vcs/pool-a-1", `because job 2 waits`, `pool-a granted 3 of 3 vcs`)
	f.does(t, "explain resource vcs", `total of vcs is 7 = 4 owned \+ 3 borrowed - 0 lent`)
	f.does(t, "owned vcs 5 --why bought")
	eventually(t, 20*time.Second, func() error { return f.total(t, 8) })
	eventually(t, 20*time.Second, func() error {
		if out, _, _ := f.cli(t, "status"); !regexp.MustCompile(`5 \(pool-a, [\d.]+m?s ago\)`).MatchString(out) {
			return errors.New("the observed count is not shown: " + out)
		}
		return nil
	})
	f.listsInEveryFormat(t)
	f.operatorReturns(t)
	f.savesAndReplays(t)
}

// savesAndReplays: what waits for what is shown from the live cluster and from a
// snapshot of it alike.
func (f *farm) savesAndReplays(t *testing.T) {
	t.Helper()
	f.does(t, "submit --countable gpus=2 --feature site=z1 -- sleep 300", `job 4 is submitted`)
	f.does(t, "submit --countable gpus=1 --constraint avx512 -- true", `job 5 is submitted`)
	f.does(t, "submit --after 2 -- true", `job 6 is submitted`)
	f.refuses(t, "submit --countable gpus=3 -- true", `countables\.gpus: no host can ever give 3 gpus; the most on any is 2`)
	eventually(t, 20*time.Second, func() error {
		if out, _, _ := f.cli(t, "jobs", "--state", "waiting"); !regexp.MustCompile(`5 .*needs 1 cpu.*1 gpu`).MatchString(out) || !strings.Contains(out, "job 2") {
			return errors.New(out)
		}
		return nil
	})
	waits := []string{`(?s)hosts  1 job waits: 5\n  needs 1 cpu.* 1\s+gpu`, `dependency  1 job waits: 6\n .*job 2`}
	f.does(t, "session", waits...)
	f.does(t, "explain job 5", `Job 5 waits since`, `For it to start, `)
	f.does(t, "demand", "nothing can be asked for now; 2 jobs wait, see `xce-elastic session`")
	f.does(t, "idle -o json", `"resource": "vcs"|\[\]`)
	f.does(t, "status", `node1 .* gpus=0 +avx512,site=z1`)
	for _, flags := range []string{"", " --hash"} {
		file := f.path("state" + strings.TrimSpace(flags) + ".json")
		f.does(t, "snapshot --out "+file+flags, `has the state of east at .*: 2 jobs wait, \d run`)
		f.refuses(t, "snapshot --out "+file+flags, `is there already`)
		f.does(t, "session --snapshot "+file, waits...)
		if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), `"sleep"`) != (flags == "") {
			t.Errorf("%v\n%s", err, data)
		}
	}
}

func (f *farm) isRefusedAtSubmit(t *testing.T) {
	t.Helper()
	f.refuses(t, "submit --token vcs=13 -- true", `the limit is 12 \(owned 4 \+ max borrowed 8 - kept back 0\)`)
	f.refuses(t, "submit --cpus 64 -- true", `the largest have 16 cpus`)
	f.refuses(t, "submit --token hspice=1 -- true", `no shared resource "hspice"`)
	f.refuses(t, "submit --token vcs=1.5 -- true", `whole number`)
	f.refuses(t, "submit --token vcs=-1 -- true", `at least 1`)
	f.refuses(t, "submit --token vcs=1", `there is no command; write it behind --`)
	f.refuses(t, "explain job 99", `no job 99`)
	f.refuses(t, "explain loan nonsense", `no loan "nonsense"`)
	f.refuses(t, "explain weather 1", `cannot be explained`)
	f.refuses(t, "return loan/vcs/pool-a-99", `no open loan`)
	f.refuses(t, "status -o xml", `use table, json or yaml`)
}

// operatorReturns: what is in use stays, what is not goes back at once.
func (f *farm) operatorReturns(t *testing.T) {
	t.Helper()
	f.does(t, "submit --token vcs=5 -- sleep 300")
	eventually(t, 20*time.Second, func() error { return f.inUse(t, 8) })
	f.refuses(t, "return loan/vcs/pool-a-1", `3 of 3 units are in use`)
	f.does(t, "owned vcs 6 --why one-more")
	f.refuses(t, "return loan/vcs/pool-a-1 --units 2", `1 of 2 units are in use`)
	f.does(t, "return loan/vcs/pool-a-1 --units 1", `1 units of loan/vcs/pool-a-1 are out of the total`)
	eventually(t, 20*time.Second, func() error { return f.total(t, 8) })
	eventually(t, 20*time.Second, func() error {
		if out, _, _ := f.cli(t, "loans"); !regexp.MustCompile(`pool-a-1 +borrowed +3 +3 +2 +0 +0 +1`).MatchString(out) {
			return errors.New(out)
		}
		return nil
	})
}

func (f *farm) total(t *testing.T, want int64) error {
	st, err := f.controller.Status(t.Context())
	if err == nil && st.Resources[0].Total != want {
		err = errors.New("the total is not there yet")
	}
	return err
}

func (f *farm) inUse(t *testing.T, want int64) error {
	st, err := f.controller.Status(t.Context())
	if err == nil && st.Resources[0].InUse != want {
		err = errors.New("the jobs do not run yet")
	}
	return err
}

func (f *farm) listsInEveryFormat(t *testing.T) {
	t.Helper()
	for _, command := range []string{"status", "jobs", "demand", "idle", "session", "loans", "loans --all", "explain resource vcs", "config check", "version"} {
		var fromJSON, fromYAML any
		if err := json.Unmarshal([]byte(f.does(t, command+" -o json")), &fromJSON); err != nil {
			t.Errorf("%s -o json: %v", command, err)
		}
		if err := yaml.Unmarshal([]byte(f.does(t, command+" -o yaml")), &fromYAML); err != nil {
			t.Errorf("%s -o yaml: %v", command, err)
		}
	}
	var loans []cluster.Loan
	if err := json.Unmarshal([]byte(f.does(t, "loans -o json")), &loans); err != nil || len(loans) != 1 || loans[0].Borrowed != 3 {
		t.Errorf("loans -o json: %+v %v", loans, err)
	}
}

func TestBadStateIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program := filepath.Join(programs(t), "xce-elastic")
	run := func(environment []string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), environment...)
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%v succeeded: %s", args, out)
		}
		return string(out)
	}
	issue := exec.CommandContext(t.Context(), program, "cert", "issue", "--role", "controller", "--name", "east", "--address", "127.0.0.1")
	issue.Dir = folder
	if out, err := issue.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("xce-elastic.yaml", "cluster: {name: east}\ncontroller: {listen: '127.0.0.1:0', state: state.db}\n")
	write("state.db", "this is no database, and must stay as it is")
	expect(t, run(nil, "controller"), `state\.db is not a database; nothing was changed`)
	if data, _ := os.ReadFile(filepath.Join(folder, "state.db")); string(data) != "this is no database, and must stay as it is" {
		t.Error("the file was changed")
	}
	write("bad.yaml", "cluster:\n  name: east\n  sesion_interval: 1s\n")
	expect(t, run(nil, "config", "check", "-c", "bad.yaml"), `bad\.yaml:3: cluster\.sesion_interval: there is no such key; did you mean "session_interval"\?`)
	expect(t, run([]string{"XCE_CLUSTER_SESSION_INTERVAL=soon"}, "config", "check"), `session_interval.*soon`)
	expect(t, run(nil, "status", "-c", "absent.yaml"), `absent\.yaml.*--config`)
}

func TestAProviderIsChecked(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	bin := programs(t)
	file := filepath.Join(folder, "pool.json")
	if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pool"), "init", "--file", file, "--resource", "vcs=8", "--hold", "vcs=600", "--price", "vcs=250000").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "xce-elastic"), append([]string{"provider", "check"}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := check("-e", "XCE_POOL_FILE="+file, "-e", "XCE_POOL_CLUSTER=east", filepath.Join(bin, "pool")); err != nil {
		t.Errorf("the pool breaks the contract: %v\n%s", err, out)
	}
	bad := filepath.Join(folder, "bad")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\necho hello\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := check(bad)
	if err == nil {
		t.Error("a script that prints noise passed")
	}
	expect(t, out, `(?i)wrong`)
}
