package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/controller/slurm/slurmtest"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/check"
	"xce.internal/elastic/providers/scripts/farm"
	"xce.internal/elastic/providers/scripts/process"
)

// TestMain lets the test binary stand for the program itself, and for what it starts.
func TestMain(m *testing.M) {
	if os.Getenv("XCE_SLURMHOST_FOLDER") != "" || len(os.Args) > 1 && slices.Contains([]string{"boot", "node"}, os.Args[1]) {
		main()
	}
	os.Exit(m.Run())
}

// fixture is a folder of hosts, and the script that makes them.
type fixture struct {
	folder string
	spec   providers.Spec
	runner *providers.Runner
}

func newFixture(t *testing.T, conf string, init ...string) *fixture {
	t.Helper()
	folder, err := os.MkdirTemp("", "sh-") // short
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{folder: filepath.Join(folder, "f")}
	f.spec = providers.Spec{Name: "slurmhost", Script: os.Args[0], Environment: map[string]string{
		"XCE_SLURMHOST_FOLDER": f.folder, "XCE_SLURMHOST_CLUSTER": "east", "XCE_SLURMHOST_CONF": conf, "GORACE": "atexit_sleep_ms=0",
		"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
	}}
	f.operate(t, append([]string{"init", "--template", "big=2:2000", "--capacity", "big=4", "--feature", "big=dyn"}, init...)...)
	if f.runner, err = providers.NewRunner(f.spec, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.operate(t, "stop")
		if left := f.processes(); len(left) > 0 {
			t.Errorf("still running: %v", left)
		}
		_ = os.RemoveAll(folder)
	})
	return f
}

func (f *fixture) operate(t *testing.T, args ...string) {
	t.Helper()
	var errs bytes.Buffer
	args = append([]string{args[0], "--folder", f.folder}, args[1:]...)
	if exit := slurmhost.Run(t.Context(), args, strings.NewReader(""), io.Discard, &errs); exit != 0 {
		t.Errorf("%v: %s", args, errs.String())
	}
}

// processes answers all processes of hosts in the folder, with their commands.
func (f *fixture) processes() map[int]string {
	all, ours := process.All(), map[int]string{}
	for pid := range all {
		if strings.Contains(process.Environment(pid), "\x00SLURM_CONF="+f.folder) {
			ours[pid] = all[pid].Command
		}
	}
	return ours
}

func (f *fixture) pids(command string) (pids []int) {
	for pid, is := range f.processes() {
		if is == command {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (f *fixture) request(t *testing.T, id string) providers.Instance {
	t.Helper()
	out, outcome := f.runner.Request(t.Context(), providers.RequestIn{RequestID: id, Template: "big", Units: 1})
	if outcome.Status != providers.StatusOK || len(out.Instances) != 1 {
		t.Fatalf("%+v, %+v", out, outcome)
	}
	return out.Instances[0]
}

func (f *fixture) giveBack(t *testing.T, id string) {
	t.Helper()
	out, outcome := f.runner.Return(t.Context(), providers.ReturnIn{RequestID: id, Units: 1})
	if outcome.Status != providers.StatusOK || out.Remaining != 0 {
		t.Fatalf("%+v, %+v", out, outcome)
	}
}

func (f *fixture) list(t *testing.T) (ids []string) {
	t.Helper()
	out, outcome := f.runner.List(t.Context())
	if outcome.Status != providers.StatusOK {
		t.Fatalf("%+v", outcome)
	}
	for _, grant := range out.Grants {
		ids = append(ids, grant.RequestID)
	}
	return ids
}

func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := slurmtest.WaitFor(t.Context(), what, is); err != nil {
		t.Fatal(err)
	}
}

func declare(t *testing.T, c *slurmtest.Cluster, i providers.Instance) {
	t.Helper()
	if out, err := c.Run(t.Context(), "scontrol", "create", "nodename="+i.Name, "CPUs=2", "RealMemory=2000", "Feature=dyn",
		"NodeAddr="+i.Address, "NodeHostname="+i.Name, "State=CLOUD"); err != nil {
		t.Fatal(out, err)
	}
}

// TestHostRunsJobsFromRequestToReturn: the node is declared some time after its host was granted.
func TestHostRunsJobsFromRequestToReturn(t *testing.T) {
	c := slurmtest.New(t, slurmtest.Options{})
	f := newFixture(t, c.Conf(), "--latency", "100ms")
	one, two := f.request(t, "host/big-7"), f.request(t, "host/big-8")
	if one.Name != "big-7" || one.Address == "" || two.Address == "" || one.Address == two.Address {
		t.Fatalf("%+v, %+v", one, two)
	}
	time.Sleep(500 * time.Millisecond)
	if pids := f.pids("slurmd"); len(pids) > 0 {
		t.Errorf("slurmd runs for a node that Slurm does not know: %v", pids)
	}
	for _, host := range []providers.Instance{one, two} {
		declare(t, c, host)
	}
	// A job that has left its session behind ends with its host too.
	id, err := c.Submit(t.Context(), "setsid sleep 601 & sleep 600", "-w", "big-7", "-N1")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []providers.Instance{one, two} {
		if err := c.WaitNode(t.Context(), host.Name, "IDLE", "MIXED", "ALLOCATED"); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "the job runs", func() bool { return len(f.pids("slurmstepd")) > 0 && len(sleeps(c, f)) == 2 })
	if again := f.request(t, "host/big-7"); again != one {
		t.Errorf("%+v, and again %+v", one, again)
	}
	f.giveBack(t, "host/big-7")
	if left := sleeps(c, f); len(left) > 0 || len(f.pids("slurmd")) != 1 {
		t.Errorf("jobs %v, slurmd %v", left, f.pids("slurmd"))
	}
	if got := f.list(t); !slices.Equal(got, []string{"host/big-8"}) {
		t.Errorf("listed %q", got)
	}
	f.giveBack(t, "host/big-7")
	if left := c.JobState(t.Context(), id); left == "COMPLETED" {
		t.Errorf("the job is %s", left)
	}
}

// sleeps answers the job processes of hosts.
func sleeps(c *slurmtest.Cluster, f *fixture) (pids []int) {
	for pid, s := range process.All() {
		env := process.Environment(pid)
		if s.Command == "sleep" && (strings.Contains(env, c.Folder) || strings.Contains(env, f.folder)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestHostWhoseSlurmdDiedIsGone(t *testing.T) {
	c := slurmtest.New(t, slurmtest.Options{})
	f := newFixture(t, c.Conf())
	declare(t, c, f.request(t, "host/big-1"))
	if err := c.WaitNode(t.Context(), "big-1", "IDLE"); err != nil {
		t.Fatal(err)
	}
	process.Signal(syscall.SIGKILL, f.pids("slurmd")...)
	wait(t, "it is listed no more", func() bool { return len(f.list(t)) == 0 })
	out, _ := f.runner.Status(t.Context(), providers.StatusIn{RequestIDs: []string{"host/big-1"}})
	if len(out.Requests) != 1 || out.Requests[0].Status != providers.StateRefused || out.Requests[0].Reason != providers.ReasonCapacity {
		t.Errorf("%+v", out)
	}
}

// TestHostThatDiedBeforeItBootedIsStartedAgain: nothing was lost with it.
func TestHostThatDiedBeforeItBootedIsStartedAgain(t *testing.T) {
	c := slurmtest.New(t, slurmtest.Options{})
	f := newFixture(t, c.Conf())
	instance := f.request(t, "host/big-1")
	for pid := range f.processes() {
		process.Signal(syscall.SIGKILL, pid)
	}
	declare(t, c, instance)
	wait(t, "it is started again, and boots", func() bool {
		return slices.Equal(f.list(t), []string{"host/big-1"}) && len(f.pids("slurmd")) == 1
	})
	if err := c.WaitNode(t.Context(), "big-1", "IDLE"); err != nil {
		t.Fatal(err)
	}
}

// TestScriptThatIsKilledLosesNothing: at any point of a request or a return.
func TestScriptThatIsKilledLosesNothing(t *testing.T) {
	f := newFixture(t, emptyConf(t))
	for i := range 12 {
		id := fmt.Sprintf("host/big-%d", i/4)
		verb, text := "request", fmt.Sprintf(`{"request_id":%q,"template":"big","units":1}`, id)
		if i%4 > 1 {
			verb, text = "return", fmt.Sprintf(`{"request_id":%q,"units":1,"remaining":0}`, id)
		}
		cmd := exec.Command(os.Args[0], verb)
		for name, value := range f.spec.Environment {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Stdin = strings.NewReader(text)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i*5) * time.Millisecond)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		wait(t, "as many run as are listed", func() bool { return len(f.list(t)) == len(f.processes()) })
		if verb == "return" {
			f.giveBack(t, id)
		}
	}
	f.operate(t, "stop")
}

func emptyConf(t *testing.T) string {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return conf
}

// TestContract has the script answer all that one is asked on a hostile day.
func TestContract(t *testing.T) {
	f := newFixture(t, emptyConf(t))
	report, err := check.Run(t.Context(), f.spec, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range report.Rows {
		if row.Verdict == check.Wrong {
			text, _ := json.Marshal(row)
			t.Errorf("%s", text)
		}
	}
	t.Logf("%d checks", len(report.Rows))
}

func TestPlaces(t *testing.T) {
	n := node{program: "slurmhost", conf: "/c", addresses: netip.MustParsePrefix("127.0.64.0/30")}
	var others []farm.Host
	given := map[string]bool{}
	for i := range 4 {
		h := farm.Host{RequestID: "host/big-" + strconv.Itoa(i)}
		err := n.Place(&h, others)
		if full := i == 3; (err != nil) != full || given[h.Address] || !full && !n.addresses.Contains(netip.MustParseAddr(h.Address)) {
			t.Errorf("%+v, %v", h, err)
		}
		given[h.Address] = true
		others = append(others, h)
	}
	if given["127.0.64.0"] {
		t.Error("the address of the network is given")
	}
	wide, dead, next := n, farm.Host{RequestID: "host/big-1"}, farm.Host{RequestID: "host/big-2"}
	wide.addresses = netip.MustParsePrefix(anyAddress)
	if err := errors.Join(wide.Place(&dead, nil), wide.Place(&next, nil)); err != nil || dead.Address == next.Address {
		t.Errorf("the address of a host that is gone is given to the next: %+v, %+v, %v", dead, next, err)
	}
	others = others[:2]
	for id, want := range map[string]string{"host/": "names no node", "a b": "names no node", "other/big-0": "already"} {
		if err := n.Place(&farm.Host{RequestID: id}, others); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", id, err, want)
		}
	}
	h := &farm.Host{Name: "big-7", Address: "127.0.64.1", Features: []string{"fast", "site=z1", "big"}}
	h.Size.CPUs, h.Size.MemoryMB = 4, 4000
	want := []string{"slurmhost", "node", "/c", "big-7", "127.0.64.1", "CPUs=4 RealMemory=4000 Feature=fast,big"}
	if got := n.Arguments("", h); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSettings(t *testing.T) {
	conf := emptyConf(t)
	for _, wrong := range [][2]string{
		{"XCE_SLURMHOST_CONF", "/no/such/file"}, {"XCE_SLURMHOST_ADDRESSES", "many"}, {"XCE_SLURMHOST_ADDRESSES", "10.0.0.0/8"},
	} {
		t.Setenv("XCE_SLURMHOST_CONF", conf)
		t.Setenv("XCE_SLURMHOST_ADDRESSES", "")
		t.Setenv(wrong[0], wrong[1])
		if _, err := nodes(); err == nil || !strings.Contains(err.Error(), wrong[0]) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func TestSlurmdIsStartedAgainOnlyWhereItGaveUp(t *testing.T) {
	for command, want := range map[string]bool{"exit 1": true, "kill -9 $$": false, "kill $$": false} {
		if err := exec.Command("/bin/sh", "-c", command).Run(); again(err) != want {
			t.Errorf("%s: %v, want again %t", command, err, want)
		}
	}
	if again(errDown) {
		t.Error("it is started again after it was shut down")
	}
}
