package farm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/providers/scripts/process"
)

// TestKilledScripts: scripts of two clusters ask and return side by side, and are killed at any moment, each
// with its whole process group, as are agents. Afterwards each host that is granted runs once, and nothing
// else does.
func TestKilledScripts(t *testing.T) {
	folder := newFolder(t, "--latency", "20ms")
	runJobs(t, folder)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() { hammer(t, folder, worker) })
	}
	all.Wait()
	eventually(t, "after two calls every granted host runs, and nothing else does", func() bool {
		if _, err := command("east", "list", "{}").Output(); err != nil {
			t.Fatal(err)
		}
		return exactlyTheGranted(t, folder)
	})
	checkJournal(t, folder)
}

func hammer(t *testing.T, folder string, worker int) {
	random := rand.New(rand.NewPCG(3, uint64(worker)))
	cluster := []string{"east", "west"}[worker%2]
	for i := range 32 {
		verb, text := "request", requestText(fmt.Sprintf("w%d-%d", worker, i/2))
		switch i % 4 {
		case 2:
			verb, text = "return", fmt.Sprintf(`{"request_id":%q,"units":1,"remaining":0}`, someRequest(t, random, folder, cluster))
		case 3:
			verb, text = "list", "{}"
			killOne(random, folder)
		}
		runAndMaybeKill(t, random, command(cluster, verb, text))
	}
}

// someRequest answers one that the cluster has a host of, if there is any.
func someRequest(t *testing.T, random *rand.Rand, folder, cluster string) string {
	var all []string
	for _, h := range readFarm(t, folder).Hosts {
		if h.Cluster == cluster && h.exists() {
			all = append(all, h.RequestID)
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return all[random.IntN(len(all))]
}

// killOne kills a process of any host.
func killOne(random *rand.Rand, folder string) {
	pids := slices.Sorted(maps.Keys(running(folder)))
	if len(pids) > 0 {
		process.Signal(syscall.SIGKILL, pids[random.IntN(len(pids))])
	}
}

func runAndMaybeKill(t *testing.T, random *rand.Rand, cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	if random.IntN(2) == 0 {
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
	}
	_ = cmd.Wait() // killed, refused or ok: only the state counts
}

func exactlyTheGranted(t *testing.T, folder string) bool {
	granted := map[string]process.Process{}
	for _, h := range readFarm(t, folder).Hosts {
		if h.exists() {
			granted[h.Instance] = h.Process
		}
	}
	agents := map[string]int{}
	for pid, instance := range running(folder) {
		agent, known := granted[instance]
		if !known {
			return false
		}
		if pid == agent.PID {
			agents[instance]++
		} else if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); string(command) != "sleep\x001000\x00" {
			return false // neither the agent of the record nor a job: it may be ending
		}
	}
	for instance, agent := range granted {
		if agents[instance] != 1 || !agent.Lives() {
			return false
		}
	}
	return true
}

// checkJournal: an instance belongs to one request, is granted before it is started, and ends once.
func checkJournal(t *testing.T, folder string) {
	t.Helper()
	owner, order := map[string]string{}, map[string][]string{}
	exists, most := 0, 0
	for _, entry := range journal(t, folder) {
		if entry.Instance == "" {
			continue
		}
		who := entry.Cluster + " " + entry.Request
		if owner[entry.Instance] != "" && owner[entry.Instance] != who {
			t.Errorf("%s belongs to %q and to %q", entry.Instance, owner[entry.Instance], who)
		}
		owner[entry.Instance] = who
		switch entry.Change {
		case "requested":
			exists++
		case "returned":
			exists--
		}
		most = max(most, exists)
		order[entry.Instance] = append(order[entry.Instance], entry.Change)
	}
	for instance, changes := range order {
		ends := slices.Index(changes, "returned")
		if !slices.Equal(changes[:2], []string{"requested", "granted"}) || ends >= 0 && ends != len(changes)-1 {
			t.Errorf("%s: %q", instance, changes)
		}
	}
	if most > 4 {
		t.Errorf("%d hosts at once, there is room for 4", most)
	}
	t.Logf("%d hosts, up to %d at once", len(order), most)
}

// TestScriptThatDiesBeforeItsRecordLeavesNothing: what it started waits for the record, and ends without.
func TestScriptThatDiesBeforeItsRecordLeavesNothing(t *testing.T) {
	folder := newFolder(t)
	_, m, err := testKind.open(folder)
	if err != nil {
		t.Fatal(err)
	}
	m.hosts = agents{os.Getenv("XCE_LOCAL_AGENT")}
	h := &Host{Instance: "i-1-x", Size: size{1, 1}}
	if err := os.MkdirAll(m.host(h.Instance), 0o700); err != nil {
		t.Fatal(err)
	}
	started, err := m.start(h, 0)
	if err != nil || !started.Lives() {
		t.Fatal(started, err)
	}
	m.release(false)
	eventually(t, "it ends", func() bool { return len(running(folder)) == 0 })
	if _, err := os.Stat(m.host(h.Instance) + "/args"); err == nil {
		t.Error("the agent was started")
	}
	listed(t)
	call(t, "", "stop", "--folder", folder)
	if _, err := os.Stat(m.host(h.Instance)); err == nil {
		t.Error("the folder that no record has is still there")
	}
}

// TestNumberOfAnotherProcess: a process that got the number later is neither the agent nor killed.
func TestNumberOfAnotherProcess(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	real, err := process.Identify(cmd.Process.Pid)
	if err != nil || !real.Lives() {
		t.Fatal(real, err)
	}
	if got := members(testKind.Mark, "/nowhere", real); len(got) != 1 || got[real.PID] != "sleep" {
		t.Errorf("members %v, want %d", got, real.PID)
	}
	earlier, rebooted := real, real
	earlier.Start--
	rebooted.Boot = "another"
	for _, other := range []process.Process{earlier, rebooted, {}} {
		if other.Lives() || len(members(testKind.Mark, "/nowhere", other)) > 0 {
			t.Errorf("%+v lives, as %+v does", other, real)
		}
	}
}
