package slurmtest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/providers/scripts/process"
)

// The backend relies on what stands here about Slurm 22.05, and on much of it against
// what anyone would expect. Where another release fails one of these tests, the backend
// must be looked at first.

// trapped is a cluster with what the tests of it ask again and again.
type trapped struct {
	*Cluster
	*testing.T
}

// Run is the cluster's, not the test's.
func (c trapped) Run(ctx context.Context, name string, args ...string) (string, error) {
	return c.Cluster.Run(ctx, name, args...)
}

// does runs a command that succeeds.
func (c trapped) does(name string, args ...string) string {
	c.Helper()
	out, err := c.Run(c.T.Context(), name, args...)
	if err != nil {
		c.Fatalf("%s %q: %v", name, args, err)
	}
	return out
}

// fails runs one that does not, and says why: sacctmgr on standard output, the others on standard error.
func (c trapped) fails(says, name string, args ...string) {
	c.Helper()
	if out, err := c.Run(c.T.Context(), name, args...); err == nil || !strings.Contains(out+err.Error(), says) {
		c.Errorf("%s %q: %q, %v, want one that says %q", name, args, out, err, says)
	}
}

func (c trapped) until(what string, is func() bool) {
	c.Helper()
	if err := WaitFor(c.T.Context(), what, is); err != nil {
		c.Fatalf("%v: the queue is %s, and slurmctld said %s", err, c.does("squeue", "-o", "%i %T %N %r"), c.tail("slurmctld"))
	}
}

// job submits one, which ends with the test.
func (c trapped) job(command string, options ...string) (id string) {
	c.Helper()
	id, err := c.Submit(c.T.Context(), command, options...)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		_, _ = c.Run(context.Background(), "scancel", id) // it may have ended
		_ = WaitFor(context.Background(), "it ended", func() bool {
			return !slices.Contains([]string{"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"}, c.JobState(context.Background(), id))
		})
	})
	return id
}

func (c trapped) becomes(id string, states ...string) {
	c.Helper()
	c.until("job "+id+" is "+strings.Join(states, " or "), func() bool { return slices.Contains(states, c.JobState(c.T.Context(), id)) })
}

func (c trapped) waitsFor(id string, reasons ...string) {
	c.Helper()
	c.until("job "+id+" waits for "+strings.Join(reasons, " or "), func() bool {
		return c.JobState(c.T.Context(), id) == "PENDING" && slices.Contains(reasons, strings.TrimSpace(c.does("squeue", "-h", "-j", id, "-o", "%r")))
	})
}

// begun submits a job, and waits until its command has begun: that it is RUNNING says that it was sent.
func (c trapped) begun(command string, options ...string) (id string) {
	c.Helper()
	mark := filepath.Join(c.TempDir(), "begun")
	id = c.job("touch "+mark+"; "+command, options...)
	c.until("job "+id+" has begun", func() bool { _, err := os.Stat(mark); return err == nil })
	return id
}

// stays looks for longer than the scheduler takes.
func (c trapped) stays(id, state string) {
	c.Helper()
	for range 15 {
		if is := c.JobState(c.T.Context(), id); is != state {
			c.Fatalf("job %s is %s, and was to stay %s; slurmctld said %s", id, is, state, c.tail("slurmctld"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// licence answers the numbers of one.
func (c trapped) licence(name string) (total, used, free, reserved string) {
	c.Helper()
	for line := range strings.Lines(c.does("scontrol", "-o", "show", "licenses")) {
		if Field(line, "LicenseName") == name {
			return Field(line, "Total"), Field(line, "Used"), Field(line, "Free"), Field(line, "Reserved")
		}
	}
	c.Fatalf("there is no licence %s", name)
	return "", "", "", ""
}

func (c trapped) counts(name, want string) {
	c.Helper()
	var got string
	c.until(name+" counts "+want, func() bool {
		total, used, free, reserved := c.licence(name)
		got = strings.Join([]string{total, used, free, reserved}, " ")
		return got == want
	})
}

// drained tells whether a node has the flag now.
func (c trapped) drained(name string) bool {
	return slices.Contains(c.NodeState(c.T.Context(), name), "DRAIN")
}

func (c trapped) reserve(licences string) {
	c.Helper()
	c.does("scontrol", "create", "reservation", "reservationname=unborrowed", "starttime=now", "duration=365-0", "users=root",
		"flags=LICENSE_ONLY", "licenses="+licences)
	c.Cleanup(func() { _, _ = c.Run(context.Background(), "scontrol", "delete", "reservation=unborrowed") })
}

// trap is one thing to know. A slow one is tested with the tag e2e only.
type trap struct {
	name string
	slow bool
	test func(c trapped)
}

var traps = []trap{
	{"a reservation keeps tokens back, and Free does not say so", false, func(c trapped) {
		c.reserve("foo:8")
		c.counts("foo", "10 0 10 8")
		id := c.job("sleep 600", "-L", "foo:3")
		c.waitsFor(id, "Licenses")
		c.does("scontrol", "update", "reservationname=unborrowed", "licenses=foo:7")
		c.becomes(id, "RUNNING")
		c.counts("foo", "10 3 7 7")
	}},
	{"a reservation above what is free kills nobody", false, func(c trapped) {
		id := c.job("sleep 600", "-L", "foo:3")
		c.becomes(id, "RUNNING")
		c.reserve("foo:10")
		c.counts("foo", "10 3 7 10")
		c.stays(id, "RUNNING")
	}},
	{"a reservation above the total is refused", false, func(c trapped) {
		c.fails("", "scontrol", "create", "reservation", "reservationname=unborrowed", "starttime=now", "duration=365-0", "users=root",
			"flags=LICENSE_ONLY", "licenses=foo:11")
	}},
	{"a job that asks for more than the total is refused as it is submitted", false, func(c trapped) {
		for _, asks := range []string{"foo:11", "nosuch:1"} {
			c.fails("Invalid license specification", "sbatch", "-L", asks, "--wrap=true")
		}
	}},
	{"a job that asks for what no node has is refused, unless a node to come has it", false, func(c trapped) {
		c.fails("", "sbatch", "-C", "huge", "--wrap=true")
		c.does("scontrol", "create", "nodename=ph1", "CPUs=64", "RealMemory=512000", "Feature=huge", "NodeAddr=127.0.9.9", "NodeHostname=ph1", "State=FUTURE")
		c.waitsFor(c.job("true", "-C", "huge"), "ReqNodeNotAvail, May be reserved for other job")
		if strings.Contains(c.does("scontrol", "-o", "show", "node"), "NodeName=ph1 ") {
			c.Error("a node to come is shown without -F")
		}
	}},
	{"a job is placed on a node that is made and not there yet, and waits for up to half a minute after it is", true, func(c trapped) {
		c.does("scontrol", "create", "nodename=d4", "CPUs=64", "RealMemory=4000", "NodeAddr=127.0.3.12", "NodeHostname=d4", "State=CLOUD")
		id := c.job("sleep 600", "-c", "8")
		c.becomes(id, "CONFIGURING")
		if err := c.BootDynamic("d4", "127.0.3.12", "CPUs=64 RealMemory=4000"); err != nil {
			c.Fatal(err)
		}
		c.becomes(id, "RUNNING")
		c.does("scancel", id)
		c.until("d4 can be deleted", func() bool {
			_, err := c.Run(c.T.Context(), "scontrol", "delete", "nodename=d4")
			return err == nil
		})
		c.KillNode("d4")
	}},
	{"making a node that is there says nothing and changes nothing", false, func(c trapped) {
		c.does("scontrol", "create", "nodename=d1", "CPUs=2", "RealMemory=2000", "NodeAddr=127.0.3.9", "NodeHostname=d1", "State=CLOUD")
		c.does("scontrol", "create", "nodename=d1", "CPUs=8", "RealMemory=9000", "NodeAddr=127.0.3.10", "NodeHostname=d1", "State=CLOUD")
		if line := c.does("scontrol", "-F", "-o", "show", "node", "d1"); Field(line, "CPUTot") != "2" || Field(line, "NodeAddr") != "127.0.3.9" {
			c.Error(line)
		}
		c.does("scontrol", "delete", "nodename=d1")
		c.fails("", "scontrol", "delete", "nodename=d1")
	}},
	{"a dynamic node is not deleted under its job", false, func(c trapped) {
		const has = "CPUs=2 RealMemory=2000"
		c.does("scontrol", "create", "nodename=d2", "CPUs=2", "RealMemory=2000", "NodeAddr=127.0.3.8", "NodeHostname=d2", "State=CLOUD")
		if err := c.BootDynamic("d2", "127.0.3.8", has); err != nil {
			c.Fatal(err)
		}
		if err := c.WaitNode(c.T.Context(), "d2", "IDLE"); err != nil {
			c.Fatal(err)
		}
		id := c.job("sleep 600", "-w", "d2")
		c.becomes(id, "RUNNING")
		c.does("scontrol", "update", "nodename=d2", "state=drain", "reason=test")
		c.fails("Requested nodes are busy", "scontrol", "delete", "nodename=d2")
		c.does("scancel", id)
		c.until("it can be deleted", func() bool {
			_, err := c.Run(c.T.Context(), "scontrol", "delete", "nodename=d2")
			return err == nil
		})
		c.KillNode("d2")
	}},
	{"a list of nodes of which one is unknown is refused, and half of it done", false, func(c trapped) {
		c.fails("Invalid node name specified", "scontrol", "update", "nodename=n3,nosuch", "state=drain", "reason=test")
		if !c.drained("n3") {
			c.Error("n3 is not drained")
		}
		c.does("scontrol", "update", "nodename=n3", "state=undrain")
		c.does("scontrol", "update", "nodename=n3", "state=undrain") // twice is no fault
	}},
	{"resuming a node that is idle is a fault, and draining one without a reason", false, func(c trapped) {
		c.fails("Invalid node state specified", "scontrol", "update", "nodename=n3", "state=resume")
		c.fails("", "scontrol", "update", "nodename=n3", "state=drain")
		if c.drained("n3") {
			c.Error("n3 is drained")
		}
	}},
	{"a node that is made FUTURE gets no job before it is there, and drained by then it comes closed", false, func(c trapped) {
		id := c.job("sleep 600", "-c", "8")
		c.does("scontrol", "create", "nodename=d5", "CPUs=64", "RealMemory=4000", "NodeAddr=127.0.3.13", "NodeHostname=d5", "State=FUTURE")
		c.stays(id, "PENDING")
		c.does("scontrol", "update", "nodename=d5", "state=drain", "reason=joining")
		if err := c.BootDynamic("d5", "127.0.3.13", "CPUs=64 RealMemory=4000"); err != nil {
			c.Fatal(err)
		}
		c.until("d5 is there", func() bool { return !slices.Contains(c.NodeState(c.T.Context(), "d5"), "FUTURE") })
		c.stays(id, "PENDING")
		c.does("scontrol", "update", "nodename=d5", "state=undrain")
		c.becomes(id, "RUNNING")
		c.does("scancel", id)
		c.until("d5 can be deleted", func() bool {
			_, err := c.Run(c.T.Context(), "scontrol", "delete", "nodename=d5")
			return err == nil
		})
		c.KillNode("d5")
	}},
	{"a drained node keeps its job and gets no other", false, func(c trapped) {
		on := c.job("sleep 600", "-w", "n3")
		c.becomes(on, "RUNNING")
		c.does("scontrol", "update", "nodename=n3", "state=drain", "reason=test")
		later := c.job("sleep 600", "-w", "n3")
		c.stays(on, "RUNNING")
		c.stays(later, "PENDING")
		c.does("scontrol", "update", "nodename=n3", "state=undrain")
	}},
	{"a job that is requeued waits two minutes", false, func(c trapped) {
		id := c.job("sleep 600", "--requeue")
		c.becomes(id, "RUNNING")
		c.does("scontrol", "requeue", id)
		c.waitsFor(id, "BeginTime")
	}},
	{"a waiting array is one row", false, func(c trapped) {
		c.reserve("foo:10")
		id := c.job("true", "-L", "foo:1", "--array=1-5000%10")
		if rows := strings.Fields(c.does("squeue", "-h", "-t", "PD", "-j", id, "-o", "%i")); !slices.Equal(rows, []string{id + "_[1-5000%10]"}) {
			c.Errorf("%q", rows)
		}
	}},
	{"what a hung controller failed to do is done when it goes on", false, func(c trapped) {
		c.PauseController()
		defer c.ResumeController()
		ctx, cancel := context.WithTimeout(c.T.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := c.Run(ctx, "scontrol", "update", "nodename=n3", "state=drain", "reason=test"); err == nil {
			c.Error("it hangs, and answers")
		}
		c.ResumeController()
		c.until("n3 is drained", func() bool { return c.drained("n3") })
		c.does("scontrol", "update", "nodename=n3", "state=undrain")
	}},
	{"a total below what is in use lets jobs run on", false, func(c trapped) {
		id := c.begun("sleep 600", "-L", "foo:3") // one that is just being launched may be requeued by a reconfigure, and held
		c.setLicences("foo:2,sim:4")
		c.counts("foo", "2 3 0 0")
		c.stays(id, "RUNNING")
		c.setLicences("foo:10,sim:4")
		c.counts("foo", "10 3 7 0")
	}},
	{"a licence whose name goes lets waiting jobs start without it", false, func(c trapped) {
		c.reserve("foo:10")
		id := c.job("sleep 600", "-L", "foo:3")
		c.waitsFor(id, "Licenses")
		c.does("scontrol", "delete", "reservation=unborrowed")
		c.becomes(id, "RUNNING")
		waits := c.job("sleep 600", "-L", "foo:8")
		c.waitsFor(waits, "Licenses")
		c.setLicences("sim:4")
		c.becomes(waits, "RUNNING") // 11 of 10 are in use
		c.setLicences("foo:10,sim:4")
		c.counts("foo", "10 0 10 0") // and none is counted
	}},
	{"a node to come that has come and is idle is forgotten by a restart, and comes back when it is resumed", false, func(c trapped) {
		if err := c.StartNode("f1"); err != nil {
			c.Fatal(err)
		}
		if err := c.WaitNode(c.T.Context(), "f1", "IDLE"); err != nil {
			c.Fatal(err)
		}
		c.StopController()
		c.restart()
		if state := c.NodeState(c.T.Context(), "f1"); !slices.Contains(state, "FUTURE") {
			c.Errorf("f1 is %v", state)
		}
		c.does("scontrol", "update", "nodename=f1", "state=resume")
		if err := c.WaitNode(c.T.Context(), "f1", "IDLE"); err != nil {
			c.Error(err)
		}
	}},
	{"a missing slurm.conf is no error but a wait", true, func(c trapped) {
		elsewhere := &Cluster{Options: Options{Folder: c.TempDir()}}
		if err := os.Mkdir(elsewhere.path("log"), 0o700); err != nil {
			c.Fatal(err)
		}
		c.hangs(elsewhere)
	}},
	{"without munge a command hangs", true, func(c trapped) {
		c.StopMunge()
		c.hangs(c.Cluster)
		if err := c.StartMunge(c.T.Context()); err != nil {
			c.Fatal(err)
		}
		c.until("it answers", func() bool { _, err := c.Run(c.T.Context(), "squeue"); return err == nil })
	}},
	{"a kill of the controller keeps drains, reservations and dynamic nodes, and may take jobs, whose ids are used again", true, func(c trapped) {
		c.reserve("foo:5")
		c.does("scontrol", "create", "nodename=d3", "CPUs=2", "RealMemory=2000", "NodeAddr=127.0.3.11", "NodeHostname=d3", "State=CLOUD")
		c.does("scontrol", "update", "nodename=n3", "state=drain", "reason=test")
		holds := c.job("sleep 600", "-w", "n1", "-L", "foo:2")
		c.becomes(holds, "RUNNING")
		time.Sleep(6 * time.Second) // it writes what it knows at least every 5 s
		id := c.forgets(func() string { return c.job("true", "--hold") })
		if again := c.job("true", "--hold"); again != id {
			c.Errorf("job %s is lost, and the next is %s", id, again)
		}
		c.counts("foo", "10 2 8 5")
		if !c.drained("n3") || c.NodeState(c.T.Context(), "d3") == nil {
			c.Errorf("n3 is %v, d3 is %v", c.NodeState(c.T.Context(), "n3"), c.NodeState(c.T.Context(), "d3"))
		}
		c.until("n3 can be undrained, which it cannot before it is back", func() bool {
			_, err := c.Run(c.T.Context(), "scontrol", "update", "nodename=n3", "state=undrain")
			return err == nil
		})
	}},
	{"a job with the id of a forgotten one that runs on is held, and its node is drained", true, func(c trapped) {
		id := c.forgets(func() string { return c.begun("sleep 600", "-w", "n2") })
		first := c.jobsOf("n2")
		// As on a machine that is loaded: Slurm tells its node to end what it does not know, which takes its time.
		process.Signal(syscall.SIGSTOP, first...)
		defer process.Signal(syscall.SIGCONT, first...)
		if again := c.job("sleep 1", "-w", "n2"); again != id {
			c.Fatalf("the next job is %s, not %s", again, id)
		}
		c.until("its node is drained", func() bool { return c.drained("n2") })
		process.Signal(syscall.SIGCONT, first...)
		c.waitsFor(id, "launch failed requeued held")
		c.does("scontrol", "update", "nodename=n2", "state=undrain")
	}},
	{"ids go on from FirstJobId after a start, where that is higher", true, func(c trapped) {
		c.StopController()
		if err := c.Set("FirstJobId=5000"); err != nil {
			c.Fatal(err)
		}
		c.restart()
		if id := c.job("true", "--hold"); id != "5000" {
			c.Errorf("the next job is %s", id)
		}
	}},
	{"a token comes back when its job has left the state COMPLETING", true, func(c trapped) {
		id := c.begun("trap '' TERM; while :; do sleep 1; done", "-w", "n1", "-L", "foo:3")
		time.Sleep(time.Second) // it has to hear of the trap
		c.does("scancel", id)
		c.becomes(id, "COMPLETING")
		c.counts("foo", "10 3 7 0")
		c.becomes(id, "CANCELLED")
		c.counts("foo", "10 0 10 0")
	}},
	{"a job outlives its node's slurmd, if that comes back in time", true, func(c trapped) {
		id := c.begun("sleep 4", "-w", "n2")
		c.kill(c.slurmd("n2"))
		if err := c.StartNode("n2"); err != nil {
			c.Fatal(err)
		}
		c.becomes(id, "COMPLETED")
	}},
	{"a client that waits for less hears sooner that there is no controller", true, func(c trapped) {
		text, err := os.ReadFile(c.Conf())
		if err != nil {
			c.Fatal(err)
		}
		client := &Cluster{Options: Options{Folder: c.TempDir()}}
		for _, name := range []string{"log", "etc"} {
			if err := os.Mkdir(client.path(name), 0o700); err != nil {
				c.Fatal(err)
			}
		}
		conf := strings.Replace(string(text), "MessageTimeout=10", "MessageTimeout=2", 1)
		if err := os.WriteFile(client.Conf(), []byte(conf), 0o600); err != nil {
			c.Fatal(err)
		}
		c.StopController()
		defer c.restart()
		ctx, cancel := context.WithTimeout(c.T.Context(), 6*time.Second)
		defer cancel()
		if out, err := client.Run(ctx, "squeue"); err == nil || !strings.Contains(err.Error(), "Unable to contact slurm controller") {
			c.Errorf("%q, %v", out, err)
		}
	}},
	{"a node of slurm.conf can be deleted, and the next reconfigure ends the controller", false, func(c trapped) { // the last
		for _, id := range strings.Fields(c.does("squeue", "-h", "-o", "%A")) {
			c.does("scancel", id)
		}
		c.until("n3 can be deleted", func() bool {
			_, err := c.Run(c.T.Context(), "scontrol", "delete", "nodename=n3")
			return err == nil
		})
		_, _ = c.Run(c.T.Context(), "scontrol", "reconfigure") // nobody is left to say how that went
		c.until("it has ended", func() bool { return len(c.named("slurmctld")) == 0 })
		if said := c.tail("slurmctld"); !strings.Contains(said, "hostnames inconsistency detected") {
			c.Error(said)
		}
	}},
}

// hangs asks a cluster that does not answer, for as long as none should take.
func (c trapped) hangs(of *Cluster) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), 2*time.Second)
	defer cancel()
	if out, err := of.Run(ctx, "squeue"); err == nil || ctx.Err() == nil {
		c.Errorf("it answers %q, %v", out, err)
	}
}

func (c trapped) restart() {
	c.Helper()
	if err := c.StartController(c.T.Context()); err != nil {
		c.Fatal(err)
	}
}

// forgets kills slurmctld just after it has written what it knows and then got a job, until it has forgotten that.
func (c trapped) forgets(job func() string) (id string) {
	c.Helper()
	written := func() time.Time {
		info, err := os.Stat(c.path("ctld", "job_state"))
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	for range 5 {
		was := written()
		c.job("true", "--hold")
		c.until("slurmctld has written its jobs down", func() bool { return written().After(was) })
		id = job()
		c.KillController()
		c.restart()
		if c.JobState(c.T.Context(), id) == "" {
			return id
		}
	}
	c.Fatal("no job was forgotten in 5 kills")
	return ""
}

// setLicences writes slurm.conf anew, and has it read.
func (c trapped) setLicences(licences string) {
	c.Helper()
	if err := c.Set("Licenses=" + licences); err != nil {
		c.Fatal(err)
	}
	c.does("scontrol", "reconfigure")
}

func TestTraps(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: 3, Future: 1, Licences: map[string]int64{"foo": 10, "sim": 4}})
	for i, trap := range traps {
		t.Run(strconv.Itoa(i+1)+" "+trap.name, func(t *testing.T) {
			if trap.slow && !endToEnd {
				t.Skip("it is slow: the tag e2e has it run")
			}
			trap.test(trapped{c, t})
			if t.Failed() {
				t.Log(c.tail("slurmctld"))
			}
		})
	}
}
