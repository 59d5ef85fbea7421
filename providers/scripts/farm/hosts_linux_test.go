package farm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/process"
)

// TestMain lets the test binary stand for the program itself, and for what it starts.
func TestMain(m *testing.M) {
	if os.Getenv("XCE_TEST_LOCAL") != "" || len(os.Args) > 1 && os.Args[1] == "boot" {
		os.Exit(testKind.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const token = "one-time-token-of-a-host"

// fakeAgent runs, where there is a jobs file, two jobs, once: one in a process group of its own, and one that
// has gone to another session. Last, when nothing but these runs beside it, it notes what it was started with.
const fakeAgent = `#!/bin/sh
args=$*
while [ $# -gt 0 ]; do
  case $1 in --join) join=$2 ;; --agent.folder) folder=$2 ;; esac
  shift
done
mkdir -p "$folder"
cp "$join" "$folder/joined"
if [ -e ../../jobs ] && ! [ -e "$folder/job" ]; then
  set -m
  sleep 1000 &
  echo $! >"$folder/job.new"
  setsid sleep 1000 &
  set +m
  sleep 0.1
  mv "$folder/job.new" "$folder/job"
fi
echo "$args" >>args
exec sleep 1000
`

// newFolder makes a folder of hosts, whose agents are fake ones. Nothing of them outlives the test.
func newFolder(t *testing.T, args ...string) string {
	t.Helper()
	folder, agent := filepath.Join(t.TempDir(), "farm"), filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, []byte(fakeAgent), 0o755); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"init", "--folder", folder, "--template", "small=2:4096", "--capacity", "small=4"}, args...)
	if exit, _, stderr := call(t, "", args...); exit != 0 {
		t.Fatal(stderr)
	}
	for name, value := range map[string]string{
		"XCE_LOCAL_FOLDER": folder, "XCE_LOCAL_CLUSTER": "east", "XCE_LOCAL_AGENT": agent, "GORACE": "atexit_sleep_ms=0",
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() { stopAll(t, folder) })
	return folder
}

func stopAll(t *testing.T, folder string) {
	t.Helper()
	if exit, _, stderr := call(t, "", "stop", "--folder", folder); exit != 0 {
		t.Error(stderr)
	}
	eventually(t, "nothing runs after the stop", func() bool { return len(running(folder)) == 0 })
}

// call runs the program in this process, and answers what it printed.
func call(t *testing.T, stdin string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	exit = testKind.Run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return exit, out.String(), errs.String()
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came true: %s", what)
		}
	}
}

func requestText(id string) string {
	text, err := json.Marshal(providers.RequestIn{RequestID: id, Template: "small", Units: 1, Join: &providers.Join{
		Host: id, Controller: "https://controller.invalid:443", CA: "PEM", Token: token, Deadline: time.Now().Add(time.Minute).UTC(),
	}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func ask(t *testing.T, id string) (providers.RequestOut, providers.Outcome) {
	t.Helper()
	_, stdout, _ := call(t, requestText(id), "request")
	in := providers.RequestIn{RequestID: id, Template: "small", Units: 1}
	return providers.ClassifyRequest(in, providers.Execution{Stdout: []byte(stdout)})
}

// made asks for a host, and answers its instance.
func made(t *testing.T, id string) providers.Instance {
	t.Helper()
	out, outcome := ask(t, id)
	if outcome.Status != providers.StatusOK {
		t.Fatalf("%s: %+v", id, outcome)
	}
	return out.Instances[0]
}

func give(t *testing.T, id string) (providers.ReturnOut, providers.Outcome) {
	t.Helper()
	in := providers.ReturnIn{RequestID: id, Units: 1}
	_, stdout, _ := call(t, fmt.Sprintf(`{"request_id":%q,"units":1,"remaining":0}`, id), "return")
	return providers.ClassifyReturn(in, providers.Execution{Stdout: []byte(stdout)})
}

func gone(t *testing.T, id string) {
	t.Helper()
	if out, outcome := give(t, id); outcome.Status != providers.StatusOK || out.Remaining != 0 {
		t.Fatalf("return of %s: %+v, %+v", id, out, outcome)
	}
}

func listed(t *testing.T) (all []string) {
	t.Helper()
	_, stdout, stderr := call(t, "{}", "list")
	out, outcome := providers.ClassifyList(providers.Execution{Stdout: []byte(stdout)})
	if outcome.Status != providers.StatusOK {
		t.Fatalf("list: %s%s", stdout, stderr)
	}
	for _, grant := range out.Grants {
		all = append(all, grant.RequestID)
	}
	return all
}

func describe(t *testing.T) providers.Description {
	t.Helper()
	_, stdout, stderr := call(t, "{}", "describe")
	description, outcome := providers.ClassifyDescribe(providers.Execution{Stdout: []byte(stdout)})
	if outcome.Status != providers.StatusOK {
		t.Fatalf("describe: %s%s", stdout, stderr)
	}
	return description
}

func readFarm(t *testing.T, folder string) *farm {
	t.Helper()
	file, _, err := testKind.open(folder)
	f := new(farm)
	if err == nil {
		err = file.Read(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// agentOf answers the process of a host, once it has become the agent.
func agentOf(t *testing.T, folder, id string) process.Process {
	t.Helper()
	return nthAgentOf(t, folder, id, 1)
}

// nthAgentOf does so where the agent was started that often.
func nthAgentOf(t *testing.T, folder, id string, starts int) process.Process {
	t.Helper()
	var agent process.Process
	eventually(t, "the agent of "+id+" runs", func() bool {
		h := readFarm(t, folder).find("east", id)
		agent = h.Process
		text, _ := os.ReadFile(filepath.Join(folder, "hosts", h.Instance, "args"))
		return agent.Lives() && bytes.Count(text, []byte("\n")) == starts
	})
	return agent
}

// running answers every process that bears the mark of a host in the folder, and of which host it is.
func running(folder string) map[int]string {
	all := map[int]string{}
	for pid := range process.All() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		_, host, found := strings.Cut("\x00"+string(text), "\x00"+testKind.Mark+"="+filepath.Join(folder, "hosts")+"/")
		if found {
			all[pid], _, _ = strings.Cut(host, "\x00")
		}
	}
	return all
}

// journal answers the changes, and checks that each stands there once.
func journal(t *testing.T, folder string) (changes []change) {
	t.Helper()
	file, err := os.Open(filepath.Join(folder, testKind.stateName()+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var entry change
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatalf("journal: %q: %v", lines.Text(), err)
		}
		if entry.Sequence != int64(len(changes)+1) {
			t.Fatalf("change %d follows %d", entry.Sequence, len(changes))
		}
		changes = append(changes, entry)
	}
	return changes
}

func wantChanges(t *testing.T, folder, id string, want ...string) (last change) {
	t.Helper()
	var got []string
	for _, entry := range journal(t, folder) {
		if entry.Request == id {
			got, last = append(got, entry.Change), entry
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the journal has %q of %s, want %q", got, id, want)
	}
	return last
}

func wantJobs(t *testing.T, last change, jobs int64) {
	t.Helper()
	if last.Jobs == nil || *last.Jobs != jobs {
		t.Errorf("the journal has %+v, want %d jobs", last, jobs)
	}
}

func runJobs(t *testing.T, folder string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "jobs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHostLivesFromRequestToReturn(t *testing.T) {
	folder := newFolder(t, "--price", "small=250000", "--hold", "small=60", "--feature", "small=avx512", "--feature", "small=site=z1", "--countable", "small:gpus=2")
	instance := made(t, "host/small-1")
	agentOf(t, folder, "host/small-1")
	host := filepath.Join(folder, "hosts", instance.ID)
	args, _ := os.ReadFile(filepath.Join(host, "args"))
	want := fmt.Sprintf("--join %s/join.json --agent.folder %s/agent --agent.cpus 2 --agent.memory_mb 4096\n", host, host)
	if string(args) != want {
		t.Errorf("started with %q, want %q", args, want)
	}
	if description := describe(t); description.Templates[0].Headroom != 3 || description.Templates[0].Attributes["site"] != "z1" {
		t.Errorf("described %+v", description)
	}
	if got := listed(t); !slices.Equal(got, []string{"host/small-1"}) {
		t.Errorf("listed %q", got)
	}
	if out, _ := ask(t, "host/small-1"); len(out.Instances) != 1 || out.Instances[0] != instance {
		t.Errorf("asked again: %+v, want %+v", out, instance)
	}
	gone(t, "host/small-1")
	if left := running(folder); len(left) > 0 || len(listed(t)) > 0 {
		t.Errorf("still running %v, listed %v", left, listed(t))
	}
	if _, err := os.Stat(host); err == nil {
		t.Error("the folder of the host is still there")
	}
	if out, outcome := ask(t, "host/small-1"); outcome.Status != providers.StatusRefused {
		t.Errorf("asked after the return: %+v", out)
	}
	gone(t, "host/small-1")
	wantJobs(t, wantChanges(t, folder, "host/small-1", "requested", "granted", "started", "returned"), 0)
	if again := made(t, "host/small-2"); again.ID == instance.ID {
		t.Errorf("%s was used again", again.ID)
	}
}

// TestTokenIsNowhereButInItsFile: not in the arguments, environment or log of anything, and not in the state.
func TestTokenIsNowhereButInItsFile(t *testing.T) {
	folder := newFolder(t)
	instance := made(t, "a")
	agentOf(t, folder, "a")
	for pid := range running(folder) {
		for _, file := range []string{"cmdline", "environ"} {
			if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file)); bytes.Contains(text, []byte(token)) {
				t.Errorf("the token is in the %s of process %d", file, pid)
			}
		}
	}
	for _, file := range []string{testKind.stateName(), testKind.stateName() + ".log", "hosts/" + instance.ID + "/agent.log"} {
		if text, err := os.ReadFile(filepath.Join(folder, file)); err != nil || bytes.Contains(text, []byte(token)) {
			t.Errorf("%s: %v, %s", file, err, text)
		}
	}
	join := filepath.Join(folder, "hosts", instance.ID, "join.json")
	if info, err := os.Stat(join); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(join)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	var message providers.Join
	if text, err := os.ReadFile(join); err != nil || json.Unmarshal(text, &message) != nil || message.Token != token || message.Host != "a" {
		t.Errorf("%v: %+v", err, message)
	}
}

// TestHostOutlivesTheCall: the runner kills the script's process group when the call is over.
func TestHostOutlivesTheCall(t *testing.T) {
	folder := newFolder(t, "--latency", "200ms")
	environment := map[string]string{"XCE_TEST_LOCAL": "1", "GORACE": "atexit_sleep_ms=0"}
	for _, name := range []string{"XCE_LOCAL_FOLDER", "XCE_LOCAL_CLUSTER", "XCE_LOCAL_AGENT"} {
		environment[name] = os.Getenv(name)
	}
	runner, err := providers.NewRunner(providers.Spec{Name: "local", Script: os.Args[0], Environment: environment}, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := providers.RequestIn{RequestID: "a", Template: "small", Units: 1, Join: &providers.Join{
		Host: "a", Controller: "https://controller.invalid:443", CA: "PEM", Token: token, Deadline: time.Now().UTC(),
	}}
	begin := time.Now()
	if out, outcome := runner.Request(t.Context(), in); outcome.Status != providers.StatusOK {
		t.Fatal(out, outcome)
	}
	if elapsed := time.Since(begin); elapsed > time.Second {
		t.Errorf("the call took %s: something holds its pipes", elapsed)
	}
	agentOf(t, folder, "a")
}

func TestReturnKillsTheJobsToo(t *testing.T) {
	folder := newFolder(t)
	runJobs(t, folder)
	made(t, "a")
	agentOf(t, folder, "a")
	gone(t, "a")
	if left := running(folder); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	wantJobs(t, wantChanges(t, folder, "a", "requested", "granted", "started", "returned"), 2)
}

func TestDeadAgentIsStartedAgain(t *testing.T) {
	folder := newFolder(t)
	runJobs(t, folder)
	made(t, "a")
	agent := agentOf(t, folder, "a")
	process.Signal(syscall.SIGKILL, agent.PID)
	eventually(t, "the agent is dead", func() bool { return !agent.Lives() })
	if left := running(folder); len(left) != 2 {
		t.Errorf("%v runs, want the 2 jobs", left)
	}
	eventually(t, "the agent runs again", func() bool {
		listed(t)
		again := readFarm(t, folder).find("east", "a").Process
		return again != agent && again.Lives()
	})
	nthAgentOf(t, folder, "a", 2)
	gone(t, "a")
	if left := running(folder); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	wantJobs(t, wantChanges(t, folder, "a", "requested", "granted", "started", "restarted", "returned"), 2)
}

func TestBootTakesItsTime(t *testing.T) {
	folder := newFolder(t, "--latency", "600ms")
	begin := time.Now()
	made(t, "a")
	if elapsed := time.Since(begin); elapsed > 500*time.Millisecond {
		t.Errorf("the request took %s: it must not wait for the boot", elapsed)
	}
	booting := readFarm(t, folder).find("east", "a").Process
	if agent := agentOf(t, folder, "a"); agent != booting || time.Since(begin) < 600*time.Millisecond {
		t.Errorf("%+v booted and %+v runs after %s", booting, agent, time.Since(begin))
	}
	if latency := describe(t).Templates[0].Latency; latency != 1 {
		t.Errorf("described with a latency of %d s", latency)
	}
}

func TestPendingRequestIsGrantedByWhoeverComes(t *testing.T) {
	folder := newFolder(t)
	t.Setenv("XCE_LOCAL_PENDING_MS", "100")
	if _, outcome := ask(t, "a"); outcome.Status != providers.StatusPending {
		t.Errorf("%+v", outcome)
	}
	if got := listed(t); len(got) > 0 || len(running(folder)) > 0 {
		t.Errorf("listed %q, running %v", got, running(folder))
	}
	if _, outcome := ask(t, "b"); outcome.Status != providers.StatusPending {
		t.Errorf("%+v", outcome)
	}
	gone(t, "b") // it is cancelled
	time.Sleep(100 * time.Millisecond)
	_, stdout, _ := call(t, `{"request_ids":["a","b"]}`, "status")
	out, outcome := providers.ClassifyStatus(providers.StatusIn{RequestIDs: []string{"a", "b"}}, providers.Execution{Stdout: []byte(stdout)})
	if outcome.Status != providers.StatusOK || len(out.Requests[0].Instances) != 1 || out.Requests[1].Status != providers.StateRefused {
		t.Errorf("%s: %+v", stdout, outcome)
	}
	agentOf(t, folder, "a")
	wantChanges(t, folder, "b", "requested", "cancelled")
}

func TestReclaimedHostIsTakenAfterItsGrace(t *testing.T) {
	folder := newFolder(t)
	instance := made(t, "a")
	agentOf(t, folder, "a")
	if exit, stdout, stderr := call(t, "", "reclaim", instance.ID, "--folder", folder, "--grace", "1500ms"); exit != 0 {
		t.Fatal(stdout, stderr)
	}
	want := []providers.Recall{{RequestID: "a", Units: 1, Grace: 2}}
	if got := describe(t).Recalls; !slices.Equal(got, want) {
		t.Errorf("described %+v, want %+v", got, want)
	}
	if got := listed(t); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
	eventually(t, "it is taken", func() bool { return len(listed(t)) == 0 })
	if left, recalls := running(folder), describe(t).Recalls; len(left) > 0 || len(recalls) > 0 {
		t.Errorf("still running %v, described %+v", left, recalls)
	}
	gone(t, "a")
	wantJobs(t, wantChanges(t, folder, "a", "requested", "granted", "started", "recalled", "reclaimed"), 0)
}

func TestCrashedHostIsNotListed(t *testing.T) {
	folder := newFolder(t)
	runJobs(t, folder)
	made(t, "a")
	agentOf(t, folder, "a")
	if exit, stdout, stderr := call(t, "", "crash", "--folder", folder, "a"); exit != 0 {
		t.Fatal(stdout, stderr)
	}
	if left := running(folder); len(left) > 0 || len(listed(t)) > 0 {
		t.Errorf("still running %v, listed %v", left, listed(t))
	}
	if headroom := describe(t).Templates[0].Headroom; headroom != 4 {
		t.Errorf("headroom %d", headroom)
	}
	gone(t, "a")
	wantJobs(t, wantChanges(t, folder, "a", "requested", "granted", "started", "crashed"), 2)
}

func TestWhatGoesWrongOnDemand(t *testing.T) {
	set := func(t *testing.T, folder string, args ...string) {
		t.Helper()
		if exit, _, stderr := call(t, "", append([]string{"set", "--folder", folder}, args...)...); exit != 0 {
			t.Fatal(stderr)
		}
	}
	t.Run("no stock", func(t *testing.T) {
		set(t, newFolder(t), "--capacity", "small=0")
		if _, outcome := ask(t, "a"); outcome.Reason != providers.ReasonCapacity || describe(t).Templates[0].Headroom != 0 {
			t.Errorf("%+v", outcome)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		folder := newFolder(t)
		for _, reason := range []providers.Reason{providers.ReasonQuota, providers.ReasonDenied} {
			set(t, folder, "--refuse", "small="+string(reason))
			if _, outcome := ask(t, string(reason)); outcome.Reason != reason {
				t.Errorf("%+v, want %s", outcome, reason)
			}
		}
		set(t, folder, "--refuse", "small=no")
		made(t, "a")
	})
	t.Run("hosts that never join", func(t *testing.T) {
		folder := newFolder(t)
		set(t, folder, "--never-joins", "small=1")
		made(t, "a")
		if got := listed(t); len(got) != 1 || len(running(folder)) > 0 {
			t.Errorf("listed %q, running %v", got, running(folder))
		}
		gone(t, "a")
	})
	t.Run("hosts that join smaller", func(t *testing.T) {
		folder := newFolder(t)
		set(t, folder, "--joins", "small=1:2048")
		host := filepath.Join(folder, "hosts", made(t, "a").ID)
		agentOf(t, folder, "a")
		if args, _ := os.ReadFile(filepath.Join(host, "args")); !strings.Contains(string(args), "--agent.cpus 1 --agent.memory_mb 2048") {
			t.Errorf("started with %q", args)
		}
		if template := describe(t).Templates[0]; template.CPUs != 2 {
			t.Errorf("described %+v", template)
		}
	})
	t.Run("lists", func(t *testing.T) {
		folder := newFolder(t)
		made(t, "a")
		for mode, want := range map[string]providers.Status{"fail": providers.StatusUnknown, "empty": providers.StatusOK, "cut": providers.StatusUnknown, "good": providers.StatusOK} {
			set(t, folder, "--list", mode)
			_, stdout, _ := call(t, "{}", "list")
			out, outcome := providers.ClassifyList(providers.Execution{Stdout: []byte(stdout)})
			if outcome.Status != want || (len(out.Grants) == 1) != (mode == "good") {
				t.Errorf("%s: %s", mode, stdout)
			}
		}
		set(t, folder, "--list", "good")
		t.Setenv("XCE_LOCAL_LIST", "fail")
		if exit, stdout, _ := call(t, "{}", "list"); exit != 1 || !strings.Contains(stdout, "unknown") {
			t.Errorf("%d: %s", exit, stdout)
		}
	})
	t.Run("failure after the deed", func(t *testing.T) {
		newFolder(t)
		t.Setenv("XCE_LOCAL_FAIL", "2")
		for i := range 4 {
			exit, stdout, _ := call(t, requestText(fmt.Sprintf("r%d", i)), "request")
			if fails := i%2 == 1; fails != (exit == 1) || fails != (stdout == "") {
				t.Errorf("call %d: exit status %d, %q", i, exit, stdout)
			}
		}
		t.Setenv("XCE_LOCAL_FAIL", "")
		if got := listed(t); len(got) != 4 {
			t.Errorf("listed %q", got)
		}
	})
	t.Run("latency", func(t *testing.T) {
		newFolder(t)
		t.Setenv("XCE_LOCAL_LATENCY_MS", "60")
		if begin := time.Now(); len(listed(t)) > 0 || time.Since(begin) < 60*time.Millisecond {
			t.Error("answered too early")
		}
	})
}

func TestRefusedRequests(t *testing.T) {
	folder := newFolder(t)
	made(t, "a")
	tests := []struct{ name, text, want string }{
		{"tokens", `{"request_id":"x","resource":"vcs","units":1}`, "vcs"},
		{"no such template", strings.Replace(requestText("x"), `"small"`, `"large"`, 1), "large"},
		{"no join", `{"request_id":"x","template":"small","units":1}`, "join"},
		{"two with one join", strings.Replace(requestText("x"), `"units":1`, `"units":2`, 1), "at /units"},
		{"another template under the same id", strings.Replace(requestText("a"), `"small"`, `"large"`, 1), "new id"},
		{"no join the second time", `{"request_id":"a","template":"small","units":1}`, "join"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			exit, stdout, _ := call(t, test.text, "request")
			if exit != 2 || !strings.Contains(stdout, `"reason":"invalid"`) || !strings.Contains(stdout, test.want) {
				t.Errorf("exit status %d: %s", exit, stdout)
			}
		})
	}
	if got := len(readFarm(t, folder).Hosts); got != 1 {
		t.Errorf("%d hosts", got)
	}
}

func TestSettings(t *testing.T) {
	newFolder(t)
	for name, value := range map[string]string{
		"XCE_LOCAL_FOLDER": "", "XCE_LOCAL_CLUSTER": "", "XCE_LOCAL_AGENT": "/no/such/program", "XCE_LOCAL_FAIL": "often",
		"XCE_LOCAL_LATENCY_MS": "-1", "XCE_LOCAL_PENDING_MS": "1.5", "XCE_LOCAL_LIST": "wrong",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if exit, stdout, stderr := call(t, "{}", "list"); exit != 1 || !strings.Contains(stderr, name) || !strings.Contains(stdout, "unknown") {
				t.Errorf("exit status %d: %s%s", exit, stdout, stderr)
			}
		})
	}
}

func TestOperatorVerbs(t *testing.T) {
	folder := newFolder(t)
	fresh := filepath.Join(t.TempDir(), "fresh")
	made(t, "host/small-1")
	steps := []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"show", "--folder", folder}, 0, "host/small-1"},
		{[]string{"show", "--folder", folder, "-o", "json"}, 0, `"headroom": 3`},
		{[]string{"show", "--folder", folder, "-o", "xml"}, 1, "table or json"},
		{[]string{"show", "--folder", fresh}, 1, "local init"},
		{[]string{"show"}, 1, "--folder"},
		{[]string{"show", "--nonsense"}, 2, "nonsense"},
		{[]string{"crash", "--folder", folder}, 1, "no host"},
		{[]string{"crash", "--folder", folder, "nobody"}, 1, "show lists"},
		{[]string{"crash", "nobody", "--folder", folder, "extra"}, 1, "extra"},
		{[]string{"reclaim", "--folder", folder, "--grace", "1h", "host/small-1"}, 0, "taken back in 1h"},
		{[]string{"set", "--folder", folder, "--capacity", "large=4"}, 1, "no template large"},
		{[]string{"set", "--folder", folder, "--refuse", "small=monday"}, 1, "monday"},
		{[]string{"set", "--folder", folder, "--list", "wrong"}, 1, "wrong"},
		{[]string{"init", "--folder", folder, "--template", "small=1:1"}, 1, "move it away"},
		{[]string{"init", "--folder", fresh}, 1, "--template"},
		{[]string{"init", "--folder", fresh, "--template", "small=2"}, 2, "CPUS:MB"},
		{[]string{"init", "--folder", fresh, "--template", "sm all=2:4"}, 1, "sm all"},
		{[]string{"init", "--folder", fresh, "--template", "small=2:4", "--price", "large=1"}, 1, "no template large"},
		{[]string{"init", "--folder", fresh, "--template", "small=2:4", "--countable", "small:cpus=1"}, 1, "cpus"},
		{[]string{"init", "--folder", fresh, "--template", "small=2:4", "--feature", "small=a b"}, 1, "a b"},
		{[]string{"boot"}, 1, "its help"},
		{[]string{"help"}, 2, "usage"},
		{[]string{"lend"}, 2, `"refused"`},
		{[]string{"stop", "--folder", folder}, 0, "1 hosts are stopped"},
	}
	for _, step := range steps {
		exit, stdout, stderr := call(t, "{}", step.args...)
		if exit != step.exit || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%v: exit status %d, want %d\n%s%s", step.args, exit, step.exit, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(fresh, testKind.stateName())); err == nil {
		t.Error("a refused init left a file")
	}
}

// command runs the program in a process of its own.
func command(cluster, verb, text string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], verb)
	cmd.Env = append(os.Environ(), "XCE_TEST_LOCAL=1", "XCE_LOCAL_CLUSTER="+cluster)
	cmd.Stdin = strings.NewReader(text)
	return cmd
}
