//go:build e2e

package dev

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
)

//go:embed testdata/hosts.yaml
var hostsCluster string

// breeding is a cluster whose hosts live for some seconds.
var breeding = example{Cluster: hostsCluster, Units: 20, Hold: 1, Hosts: []string{
	"--template", "small=2:1024", "--capacity", "small=8", "--price", "small=100000",
	"--template", "large=4:4096", "--capacity", "large=4", "--price", "large=190000",
	"--latency", "300ms",
}}

const (
	leastHosts   = 50
	killsOfHosts = 8 // of each kind
	// fewHosts are too few for one to crash: a list that lacks a large part of
	// them would not be believed, and they would be found only by their silence.
	fewHosts = 5
)

// TestNoHostIsForgottenUnderKills has at least 50 hosts come and go under a mix
// of jobs, while provisioner, controller, Temporal, agents and provider scripts
// are killed at random moments, hosts are drained, reclaimed and crash. At the
// end nothing runs that the ledger does not know, every job ended once, and no
// host was given back with a job on it.
func TestNoHostIsForgottenUnderKills(t *testing.T) {
	t.Parallel()
	f := startFarm(t, breeding)
	s := seed(t)
	ctx, cancel := context.WithCancel(t.Context())
	var load, killers sync.WaitGroup
	submitted := 0
	load.Go(func() { submitted = f.submitMix(ctx, t, rand.New(rand.NewPCG(s, 11))) })
	stories := starter.New(f.connect(t))
	load.Go(func() { f.trouble(ctx, t, stories, rand.New(rand.NewPCG(s, 12))) })
	for i, name := range []string{"worker", "controller", "temporal"} {
		killers.Go(func() { f.killAgain(t, killsOfHosts, name, rand.New(rand.NewPCG(s, 13+uint64(i)))) })
	}
	killers.Go(func() { f.killSome(t, 2*killsOfHosts, f.agents, rand.New(rand.NewPCG(s, 21))) })
	killers.Go(func() { f.killSome(t, killsOfHosts, f.scripts, rand.New(rand.NewPCG(s, 22))) })
	began := time.Now()
	killers.Wait()
	f.restartAll(t)
	t.Logf("all kills are done after %s", time.Since(began))
	eventually(t, 5*time.Minute, func() error {
		believe(t, stories)
		return f.enoughHosts(t)
	})
	cancel()
	load.Wait()
	t.Logf("no more jobs come after %s", time.Since(began))
	eventually(t, 3*time.Minute, func() error {
		believe(t, stories)
		return f.hostsSettled(t.Context())
	})
	t.Logf("all is over after %s", time.Since(began))
	f.checkHosts(t, submitted)
}

// believe does what an operator does who knows that the machines are gone which
// all at once are not listed any more.
func believe(t *testing.T, stories *starter.Client) {
	p, err := stories.Provider(t.Context(), hostsName)
	if err == nil && p.Hosts.Doubt != "" && !p.Hosts.Believe {
		t.Logf("taken at its word: %s", p.Hosts.Doubt)
		err = stories.Believe(t.Context(), hostsName)
	}
	if err != nil {
		t.Log(err)
	}
}

func (f *farm) enoughHosts(t *testing.T) error {
	hosts, err := f.controller.ElasticHosts(t.Context(), true)
	made := 0
	for _, h := range hosts {
		if h.Joined > 0 {
			made++
		}
	}
	if err == nil && made < leastHosts {
		err = fmt.Errorf("%d hosts so far", made)
	}
	return err
}

// submitMix submits jobs of all sizes in bursts until ctx ends, and answers how
// many. Each writes a line when it begins and when it ends.
func (f *farm) submitMix(ctx context.Context, t *testing.T, r *rand.Rand) (submitted int) {
	for ctx.Err() == nil {
		for range 5 + r.IntN(8) {
			spec := cluster.JobSpec{
				Name: fmt.Sprintf("mix-%d", submitted), CPUs: 1 + r.Int64N(3), MemoryMB: 100,
				Command: []string{"sh", "-c", fmt.Sprintf("echo $XCE_JOB_ID $XCE_JOB_REQUEUES begin >>%[1]s; sleep %d.%d; echo $XCE_JOB_ID $XCE_JOB_REQUEUES end >>%[1]s", f.path("lines.txt"), r.IntN(6)/4, r.IntN(10))},
			}
			if r.IntN(3) == 0 {
				spec.Tokens = map[string]int64{resource: 1 + r.Int64N(4)}
			}
			f.submitOnce(t, spec)
			submitted++
		}
		least := 2 * time.Second
		if r.IntN(2) == 0 {
			least = 4 * time.Second // so that hosts fall idle, and others are made
		}
		pause(ctx, r, least, least+time.Second)
	}
	return submitted
}

// trouble drains, reclaims and crashes hosts, until ctx ends.
func (f *farm) trouble(ctx context.Context, t *testing.T, stories *starter.Client, r *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, r, 500*time.Millisecond, 3*time.Second)
		hosts, err := f.controller.ElasticHosts(ctx, false)
		hosts = slices.DeleteFunc(hosts, func(h cluster.ElasticHost) bool { return h.State != cluster.HostJoined || h.Health != cluster.Well })
		if err != nil || len(hosts) == 0 {
			continue
		}
		h := hosts[r.IntN(len(hosts))]
		kind := r.IntN(4)
		if kind == 0 && len(hosts) < fewHosts {
			continue
		}
		switch kind {
		case 0:
			_ = f.local(ctx, "crash", h.Instance)
		case 1:
			_ = f.local(ctx, "reclaim", h.Instance, "--grace", "2s")
		default:
			order(ctx, t, stories, h.ID, workflows.HostOrder{By: "test", Within: cluster.Second, Requeue: r.IntN(2) == 0})
		}
	}
}

// order drains a host as an operator does. Temporal may be away, and the host gone.
func order(ctx context.Context, t *testing.T, stories *starter.Client, id string, order workflows.HostOrder) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err := stories.OrderHost(ctx, id, fmt.Sprint(time.Now().UnixNano()), workflows.UpdateDrain, order)
	if err != nil {
		t.Logf("drain of %s: %v", id, err)
	}
}

// killSome kills one process of a kind again and again.
func (f *farm) killSome(t *testing.T, times int, find func(*testing.T) []int, r *rand.Rand) {
	for killed := 0; killed < times && t.Context().Err() == nil; {
		pause(t.Context(), r, 20*time.Millisecond, 700*time.Millisecond)
		if pids := find(t); len(pids) > 0 {
			_ = syscall.Kill(pids[r.IntN(len(pids))], syscall.SIGKILL)
			killed++
		}
	}
}

// agents are the processes of the made hosts' agents.
func (f *farm) agents(t *testing.T) []int {
	return processes(t, func(args []string, _ string) bool {
		return len(args) > 2 && args[1] == "agent" && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, f.path("hosts")) })
	})
}

// scripts are the processes of the provider's script that run now.
func (f *farm) scripts(t *testing.T) []int {
	return processes(t, func(args []string, environment string) bool {
		return len(args) == 2 && filepath.Base(args[0]) == "local" && strings.Contains(environment, "XCE_LOCAL_FOLDER="+f.path("hosts"))
	})
}

// remains are the processes that anything on a made host has left.
func (f *farm) remains(t *testing.T) []int {
	return processes(t, func(args []string, environment string) bool {
		return strings.Contains(strings.Join(args, " "), f.path("hosts")+"/") || strings.Contains(environment, "="+f.path("hosts")+"/")
	})
}

// processes finds processes by their arguments and environment.
func processes(t *testing.T, is func(args []string, environment string) bool) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range all {
		command, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || len(command) == 0 {
			continue
		}
		environment, _ := os.ReadFile(filepath.Join(folder, "environ"))
		args := strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00")
		if is(args, string(environment)) {
			pid, _ := strconv.Atoi(filepath.Base(folder))
			pids = append(pids, pid)
		}
	}
	return pids
}

// hostsSettled tells whether nothing is going on any more: no job, no loan, no host.
func (f *farm) hostsSettled(ctx context.Context) error {
	if err := f.settled(ctx); err != nil {
		return err
	}
	hosts, err := f.controller.ElasticHosts(ctx, false)
	if err == nil && len(hosts) > 0 {
		err = fmt.Errorf("%d hosts are open: %+v", len(hosts), hosts[0])
	}
	return err
}

// hostLine is a line of the provider's own journal: the outside truth.
type hostLine struct {
	Sequence int64  `json:"sequence"`
	Request  string `json:"request"`
	Instance string `json:"instance"`
	Change   string `json:"change"`
	Jobs     *int64 `json:"jobs"`
}

func (f *farm) hostJournal(t *testing.T) (lines []hostLine) {
	t.Helper()
	data, err := os.ReadFile(f.path("hosts/local.json.log"))
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(data) {
		var line hostLine
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("journal line %q: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines
}

// checkHosts checks that provider, ledger, machine and jobs agree once all is over.
func (f *farm) checkHosts(t *testing.T, jobs int) {
	t.Helper()
	hosts, err := f.controller.ElasticHosts(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	granted, ended, returned := map[string]bool{}, map[string]string{}, 0
	for _, line := range f.hostJournal(t) {
		switch line.Change {
		case "granted":
			if granted[line.Request] {
				t.Errorf("journal: %s was granted twice", line.Request)
			}
			granted[line.Request] = true
		case "returned":
			returned++
			if line.Jobs == nil || *line.Jobs > 0 {
				t.Errorf("journal: %s was given back with a job on it: %+v", line.Request, line)
			}
			fallthrough
		case "crashed", "reclaimed":
			if was, before := ended[line.Request]; before {
				t.Errorf("journal: %s was %s and then %s", line.Request, was, line.Change)
			}
			ended[line.Request] = line.Change
		}
	}
	for id := range granted {
		if ended[id] == "" {
			t.Errorf("journal: %s was granted and is still there", id)
		}
	}
	for _, h := range hosts {
		if h.Made > 0 && !granted[h.ID] {
			t.Errorf("ledger: %s was made, says the ledger, but not the provider", h.ID)
		}
		if h.State.Open() || h.Paid(h.Closed) < h.Used(h.Closed) {
			t.Errorf("ledger: %+v", h)
		}
	}
	if left := f.remains(t); len(left) > 0 {
		t.Errorf("%d processes of hosts are left: %v", len(left), left)
	}
	requeues := f.checkLines(t, jobs)
	f.checkStories(t, workflows.HostName)
	f.checkStories(t, workflows.LoanName)
	t.Logf("%d jobs, %d stopped or lost and run again; %d hosts, %d of them returned", jobs, requeues, len(granted), returned)
}

// checkLines checks that every job ended once, and that only those ran again
// that are marked as such.
func (f *farm) checkLines(t *testing.T, jobs int) (requeues int64) {
	t.Helper()
	all, err := f.controller.Jobs(t.Context(), "")
	if err != nil || len(all) != jobs {
		t.Fatalf("%d jobs, want %d: %v", len(all), jobs, err)
	}
	data, err := os.ReadFile(f.path("lines.txt"))
	if err != nil {
		t.Fatal(err)
	}
	begun := map[string]int{}
	for line := range strings.Lines(string(data)) {
		begun[strings.TrimSpace(line)]++
	}
	for _, j := range all {
		requeues += j.Requeues
		if j.State != cluster.JobDone {
			t.Errorf("job %d is %s: %s", j.ID, j.State, j.Why)
		}
		for n := range j.Requeues + 1 {
			if times := begun[fmt.Sprintf("%d %d begin", j.ID, n)]; times > 1 {
				t.Errorf("job %d began %d times as the same run", j.ID, times)
			}
		}
		if ends := begun[fmt.Sprintf("%d %d end", j.ID, j.Requeues)]; ends != 1 {
			t.Errorf("job %d, requeued %d times, ended %d times in its last run", j.ID, j.Requeues, ends)
		}
	}
	return requeues
}

// showHosts is how the provider's hosts stand, for a test that failed.
func (f *farm) showHosts() string {
	local, err := f.beside("local")
	if err != nil {
		return err.Error()
	}
	out, _ := exec.Command(local, "show", "--folder", f.path("hosts")).CombinedOutput()
	return string(out)
}
