package slurmtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"xce.internal/elastic/providers/scripts/process"
	"xce.internal/elastic/providers/scripts/slurmd/dynamic"
)

// spawn starts a daemon in the foreground, in a session of its own.
func (c *Cluster) spawn(name string, env []string, program string, args ...string) (ended <-chan struct{}, err error) {
	path, err := dynamic.Find(program)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = append(c.environment(), env...), c.path("log")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c.run(name, cmd)
}

// run starts a command whose output goes to the log of its name.
func (c *Cluster) run(name string, cmd *exec.Cmd) (<-chan struct{}, error) {
	log, err := os.OpenFile(c.path("log", name+".out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	return ended, nil
}

// await waits until a daemon answers, and says what it printed last when it never does.
func (c *Cluster) await(ctx context.Context, name string, ended <-chan struct{}, answers func() bool) error {
	died := false
	err := WaitFor(ctx, name+" answers", func() bool {
		select {
		case <-ended:
			died = true
			return true
		default:
			return answers()
		}
	})
	if died {
		err = fmt.Errorf("%s ended", name)
	}
	if err != nil {
		return fmt.Errorf("%w: it said: %s", err, c.tail(name))
	}
	c.Log.Info(name + " answers")
	return nil
}

func (c *Cluster) tail(name string) string {
	text, _ := os.ReadFile(c.path("log", name+".out"))
	more, _ := os.ReadFile(c.path("log", name+".log"))
	lines := strings.Split(strings.TrimSpace(string(text)+string(more)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], " | ")
}

func (c *Cluster) startMunge(ctx context.Context) error {
	ended, err := c.spawn("munged", nil, "munged", "--foreground", "--force", "--socket="+c.MungeSocket(), "--key-file="+c.path("munge", "key"),
		"--log-file="+c.path("log", "munged.log"), "--pid-file="+c.path("munge", "pid"), "--seed-file="+c.path("munge", "seed"), "--num-threads=4")
	if err != nil {
		return err
	}
	return c.await(ctx, "munged", ended, func() bool {
		_, err := c.Run(ctx, "munge", "-n", "-S", c.MungeSocket())
		return err == nil
	})
}

func (c *Cluster) startController(ctx context.Context) error {
	ended, err := c.spawn("slurmctld", nil, "slurmctld", "-D", "-f", c.Conf())
	if err != nil {
		return err
	}
	return c.await(ctx, "slurmctld", ended, func() bool {
		out, err := c.Run(ctx, "scontrol", "ping")
		return err == nil && strings.Contains(out, "is UP")
	})
}

func (c *Cluster) startNodes(ctx context.Context) error {
	names := c.configured()[:c.Nodes]
	for _, name := range names {
		if err := c.StartNode(name); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := c.WaitNode(ctx, name, "IDLE", "MIXED", "ALLOCATED"); err != nil {
			return err
		}
	}
	return nil
}

// StopController has slurmctld write down all it knows and end.
func (c *Cluster) StopController() { c.terminate(c.named("slurmctld")) }

// KillController kills slurmctld, as a machine that fails does.
func (c *Cluster) KillController() { c.kill(c.named("slurmctld")) }

// StartController starts slurmctld anew, and waits until it answers; nodes come back to it later.
func (c *Cluster) StartController(ctx context.Context) error { return c.startController(ctx) }

// PauseController has slurmctld hang.
func (c *Cluster) PauseController() { process.Signal(syscall.SIGSTOP, c.named("slurmctld")...) }

// ResumeController ends that.
func (c *Cluster) ResumeController() { process.Signal(syscall.SIGCONT, c.named("slurmctld")...) }

// StopMunge ends munge, without which no command can say who asks.
func (c *Cluster) StopMunge() { c.terminate(c.named("munged")) }

// StartMunge starts it anew.
func (c *Cluster) StartMunge(ctx context.Context) error { return c.startMunge(ctx) }

// StopAccounting ends slurmdbd: what slurmctld has of it, it keeps.
func (c *Cluster) StopAccounting() { c.terminate(c.named("slurmdbd")) }

// kill kills processes, and waits until they are gone.
func (c *Cluster) kill(pids []int) {
	process.Signal(syscall.SIGKILL, pids...)
	for anyLives(pids) {
		time.Sleep(time.Millisecond)
	}
}

// StartNode starts slurmd of a node of slurm.conf, or again that of a dynamic one.
// It does not wait until Slurm has seen it; [Cluster.WaitNode] does.
func (c *Cluster) StartNode(name string) error {
	c.mu.Lock()
	node, isDynamic := c.booted[name]
	c.mu.Unlock()
	var err error
	switch {
	case len(c.slurmd(name)) > 0:
	case isDynamic:
		err = c.boot(node)
	default:
		args := []string{"-D", "-f", c.Conf(), "-N", name, "-s"}
		if strings.HasPrefix(name, "c") { // it would be powering up for ever else
			args = append(args, "-b")
		}
		_, err = c.spawn("slurmd-"+name, nil, "slurmd", args...)
	}
	if err != nil {
		return fmt.Errorf("start node %s: %w", name, err)
	}
	return nil
}

// BootDynamic starts slurmd of a dynamic node at a loopback address of its own, such
// as 127.0.1.5, where port [Cluster.DynamicPort] must be free. The node must be made
// with that NodeAddr by scontrol create; before that slurmd ends with "lookup failure".
// Has is what the node's line says, as in "CPUs=4 RealMemory=4000 Feature=big".
func (c *Cluster) BootDynamic(name, address, has string) error {
	node := dynamic.Node{Conf: c.Conf(), Folder: c.path("node"), Name: name, Address: address, Has: has}
	c.mu.Lock()
	c.booted[name] = node
	c.mu.Unlock()
	if err := c.boot(node); err != nil {
		return fmt.Errorf("boot node %s: %w", name, err)
	}
	return nil
}

func (c *Cluster) boot(node dynamic.Node) error {
	cmd, err := node.Command(c.environment()[1:])
	if err != nil {
		return err
	}
	cmd.Dir = c.path("log")
	_, err = c.run("slurmd-"+node.Name, cmd)
	return err
}

// slurmd answers the processes of a node's slurmd.
func (c *Cluster) slurmd(name string) []int {
	return slices.DeleteFunc(c.named("slurmd"), func(pid int) bool {
		args := process.Arguments(pid)
		at := slices.Index(args, "-N")
		return at < 0 || at+1 >= len(args) || args[at+1] != name
	})
}

// StopNode ends slurmd of a node; its jobs run on.
func (c *Cluster) StopNode(name string) { c.terminate(c.slurmd(name)) }

// KillNode kills slurmd of a node, its steps and its jobs, as a host that loses its power does.
func (c *Cluster) KillNode(name string) {
	for {
		pids := append(c.slurmd(name), c.jobsOf(name)...)
		if len(pids) == 0 {
			return
		}
		process.Signal(syscall.SIGSTOP, pids...) // a step tells nobody how its task ended
		process.Signal(syscall.SIGKILL, pids...)
		time.Sleep(pause)
	}
}

// jobsOf answers the steps of a node with all that they run: a step does not show of
// which node it is, what it has started does.
func (c *Cluster) jobsOf(name string) (pids []int) {
	all := belonging(c.Folder)
	for pid, s := range all {
		if process.Bears(pid, "SLURMD_NODENAME", name) {
			pids = append(pids, pid)
		}
		if s.Command != "slurmstepd" {
			continue
		}
		below := process.Below(all, pid)
		if slices.ContainsFunc(below, func(p int) bool { return process.Bears(p, "SLURMD_NODENAME", name) }) {
			pids = append(append(pids, pid), below...)
		}
	}
	return pids
}

// NodeState answers the state of a node, as in [IDLE CLOUD DRAIN]; nil where Slurm
// knows none of that name.
func (c *Cluster) NodeState(ctx context.Context, name string) []string {
	out, err := c.Run(ctx, "scontrol", "-F", "-o", "show", "node", name)
	if err != nil {
		return nil
	}
	for field := range strings.FieldsSeq(out) {
		if state, is := strings.CutPrefix(field, "State="); is {
			return strings.Split(state, "+")
		}
	}
	return nil
}

// notReady are the flags of a node that takes no jobs now.
var notReady = []string{"NOT_RESPONDING", "POWERED_DOWN", "POWERING_UP", "POWERING_DOWN", "POWER_DOWN", "DRAIN", "COMPLETING", "INVALID_REG"}

// WaitNode waits until a node is in one of the states, such as IDLE, and nothing keeps it from its jobs.
func (c *Cluster) WaitNode(ctx context.Context, name string, states ...string) error {
	var last []string
	err := WaitFor(ctx, fmt.Sprintf("node %s is in state %v", name, states), func() bool {
		last = c.NodeState(ctx, name)
		return len(last) > 0 && slices.Contains(states, last[0]) && !slices.ContainsFunc(last, func(s string) bool {
			return strings.HasSuffix(s, "*") || slices.Contains(notReady, s)
		})
	})
	if err != nil {
		return fmt.Errorf("%w; it is %v, and its slurmd said: %s", err, last, c.tail("slurmd-"+name))
	}
	return nil
}
