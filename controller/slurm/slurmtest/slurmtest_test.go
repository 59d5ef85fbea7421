package slurmtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand for a process that starts a cluster.
func TestMain(m *testing.M) {
	if folder := os.Getenv("SLURMTEST_START"); folder != "" {
		os.Exit(standIn(folder))
	}
	os.Exit(m.Run())
}

// standIn starts a cluster with a dynamic node and a job on it, says so, and stays until its input ends.
func standIn(folder string) int {
	c, err := Start(context.Background(), Options{Folder: folder})
	if err == nil {
		err = c.runOnDynamic(context.Background(), "d1")
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("runs")
	_, _ = os.Stdin.Read(make([]byte, 1))
	if err := c.Stop(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func (c *Cluster) runOnDynamic(ctx context.Context, name string) error {
	const has = "CPUs=2 RealMemory=2000 Feature=dyn"
	args := append(append([]string{"create", "nodename=" + name}, strings.Fields(has)...), "NodeAddr=127.0.3.7", "NodeHostname="+name, "State=CLOUD")
	if _, err := c.Run(ctx, "scontrol", args...); err != nil {
		return err
	}
	if err := c.BootDynamic(name, "127.0.3.7", has); err != nil {
		return err
	}
	if err := c.WaitNode(ctx, name, "IDLE"); err != nil {
		return err
	}
	id, err := c.Submit(ctx, "sleep 600", "-w", name)
	if err != nil {
		return err
	}
	return WaitFor(ctx, "the job runs", func() bool { return c.JobState(ctx, id) == "RUNNING" && len(c.jobsOf(name)) > 1 })
}

func TestClusterOfEveryKindOfNode(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: 2, Future: 1, Cloud: 1, Licences: map[string]int64{"foo": 10}})
	if err := c.runOnDynamic(t.Context(), "d1"); err != nil {
		t.Fatal(err)
	}
	if err := c.StartNode("f1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), "scontrol", "update", "nodename=c1", "state=power_up"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f1", "c1"} {
		if err := c.WaitNode(t.Context(), name, "IDLE"); err != nil {
			t.Error(err)
		}
	}
	out, err := c.Run(t.Context(), "srun", "-N1", "-w", "n1", "-L", "foo:3", "scontrol", "-o", "show", "licenses")
	if err != nil || !strings.Contains(out, "LicenseName=foo Total=10 Used=3") {
		t.Errorf("%q, %v", out, err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestTwoClustersSideBySide(t *testing.T) {
	t.Parallel()
	one, two := New(t, Options{Nodes: 1}), New(t, Options{Nodes: 1})
	if err := two.Stop(); err != nil {
		t.Fatal(err)
	}
	if out, err := one.Run(t.Context(), "srun", "-N1", "echo", "here"); err != nil || out != "here\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestNodeThatIsKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: 1})
	if err := c.runOnDynamic(t.Context(), "d1"); err != nil {
		t.Fatal(err)
	}
	c.KillNode("d1")
	if left := c.jobsOf("d1"); len(left)+len(c.slurmd("d1")) > 0 || len(c.slurmd("n1")) == 0 {
		t.Errorf("jobs %v, slurmd %v of d1; slurmd %v of n1", left, c.slurmd("d1"), c.slurmd("n1"))
	}
}

func TestStateOutlivesTheCluster(t *testing.T) {
	t.Parallel()
	Need(t)
	folder := shortFolder(t)
	c := New(t, Options{Folder: folder, Nodes: 1})
	id, err := c.Submit(t.Context(), "true", "--hold")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	again := New(t, Options{Folder: folder, Nodes: 1})
	if state := again.JobState(t.Context(), id); state != "PENDING" {
		t.Errorf("job %s is %q", id, state)
	}
}

func TestControllerThatDiesComesBack(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: 1})
	c.KillController()
	if len(c.named("slurmctld")) > 0 {
		t.Fatal("it lives")
	}
	if err := c.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitNode(t.Context(), "n1", "IDLE"); err != nil {
		t.Fatal(err)
	}
	c.PauseController()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if out, err := c.Run(ctx, "squeue"); err == nil {
		t.Errorf("a controller that hangs answers %q", out)
	}
	c.ResumeController()
	if _, err := c.Run(t.Context(), "squeue"); err != nil {
		t.Error(err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	Need(t)
	if _, err := Start(t.Context(), Options{Folder: "/tmp/" + strings.Repeat("x", longest)}); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a long folder: %v", err)
	}
	if _, err := Start(t.Context(), Options{Lines: []string{"NoSuchSetting=1"}}); err == nil || !strings.Contains(err.Error(), "NoSuchSetting") {
		t.Errorf("a wrong line: %v", err)
	}
}

// TestKilledStarterLeavesNothing: neither as root nor as someone else, where that can be tried.
func TestKilledStarterLeavesNothing(t *testing.T) {
	t.Parallel()
	Need(t)
	people := map[string]*syscall.Credential{"as we are": nil}
	if os.Getuid() == 0 {
		people["as nobody"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for name, as := range people {
		t.Run(name, func(t *testing.T) {
			folder := shortFolder(t)
			if err := os.Chmod(folder, 0o777); err != nil {
				t.Fatal(err)
			}
			cmd := start(t, folder, as)
			if len(belonging(folder)) < 5 {
				t.Errorf("there are too few to be killed: %v", belonging(folder))
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			err := WaitFor(t.Context(), "nothing is left", func() bool { return len(belonging(folder)) == 0 })
			if err != nil {
				t.Errorf("%v: %v", err, belonging(folder))
			}
		})
	}
}

// start runs this binary as one that starts a cluster, and waits until that runs.
func start(t *testing.T, folder string, as *syscall.Credential) *exec.Cmd {
	t.Helper()
	binary := folder + "/binary" // where anyone may run it
	self, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, self, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = []string{"SLURMTEST_START=" + folder + "/c", "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if _, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Sweep(folder) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "runs\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	return cmd
}

// shortFolder is a folder whose path leaves room for sockets.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "st-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func TestLinesOfTheCallerReplaceOurs(t *testing.T) {
	c := &Cluster{Options: Options{Lines: []string{"KillWait=30", "Epilog=/bin/true"}}}
	got := c.replace([]string{"MinJobAge=300", "KillWait=2"})
	if want := []string{"MinJobAge=300", "KillWait=30", "Epilog=/bin/true"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFreePortsAreDistinct(t *testing.T) {
	ports, err := freePorts(200)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if compact := slices.Compact(slices.Clone(ports)); len(compact) != 200 || ports[0] < 10000 || ports[199] >= 32000 {
		t.Errorf("%d ports, %d distinct, from %d to %d", len(ports), len(compact), ports[0], ports[199])
	}
}
