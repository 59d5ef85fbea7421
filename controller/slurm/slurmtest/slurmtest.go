// Package slurmtest runs a private Slurm cluster for tests and try-outs, from the
// programs of Debian's packages: all its daemons on this machine, in a folder of its
// own, on free ports of the loopback interface, with a munge of its own, as whoever
// calls. It ends with the process that started it, however that ends.
package slurmtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/providers/scripts/process"
	"xce.internal/elastic/providers/scripts/slurmd/dynamic"
)

// Options say what cluster to start.
type Options struct {
	// Folder has everything; empty makes one that goes with the cluster. Its path must be short, since
	// sockets are in it. Where a cluster was in it before, its state goes on.
	Folder string
	// Nodes are there from the start: n1 and on, with the feature static. Future ones are f1 and on,
	// with the feature future; Slurm does not show them until their slurmd is started. Cloud ones
	// are c1 and on, with the feature cloud; Slurm powers them up and down.
	Nodes, Future, Cloud int
	CPUs, MemoryMB       int64 // of each node; 0 is 4 and 4000
	Licences             map[string]int64
	// Partitions are lines of slurm.conf after PartitionName=; none is "main Nodes=ALL Default=YES".
	Partitions []string
	// MaxNodes is how many nodes there can be; 0 is 64.
	MaxNodes int
	// Accounting runs slurmdbd on a MariaDB; see [Accounting] for whether it can be had.
	Accounting bool
	// Lines are further ones of slurm.conf. One that stands there already is replaced.
	Lines []string
	// Log hears what is done; nil is silence.
	Log *slog.Logger
}

// Cluster is a Slurm cluster that runs.
type Cluster struct {
	Options
	own      bool // the folder goes with it
	user     string
	port     int // of slurmctld
	database int // port of slurmdbd
	common   int // SlurmdPort
	ports    map[string]int

	mu     sync.Mutex
	leave  io.WriteCloser // ends the guard
	left   chan struct{}
	booted map[string]dynamic.Node
}

// limits of waiting.
const (
	startWithin = 60 * time.Second
	stopWithin  = 10 * time.Second
	pause       = 20 * time.Millisecond
)

// longest is how long the path of the folder may be: a socket's path has at most 107 bytes.
const longest = 48

// needed are the programs that a cluster needs.
var needed = []string{"slurmctld", "slurmd", "munged", "scontrol", "squeue", "sbatch", "hostname"}

// Installed tells whether a cluster can be had here, or names the program that is missing.
func Installed() (missing string, ok bool) { return installed(needed) }

// Accounting tells whether one with accounting can, or names the program that is missing.
func Accounting() (missing string, ok bool) {
	return installed(append([]string{"slurmdbd", "mariadbd", "mariadb-install-db", "mariadb-admin", "sacctmgr"}, needed...))
}

func installed(programs []string) (missing string, ok bool) {
	for _, name := range programs {
		if _, err := dynamic.Find(name); err != nil {
			return name, false
		}
	}
	return "", true
}

// Need skips a test where there is no Slurm.
func Need(tb testing.TB) {
	tb.Helper()
	if missing, ok := Installed(); !ok {
		tb.Skipf("there is no %s here: %s is skipped; `make slurm` brings it", missing, tb.Name())
	}
}

// New starts a cluster that ends with the test; the test is skipped where there is no Slurm.
func New(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	Need(tb)
	c, err := Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Start starts a cluster, and waits until its nodes are ready for jobs.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if missing, ok := Installed(); !ok {
		return nil, fmt.Errorf("start Slurm: there is no %s here: install Debian's slurmctld, slurmd, slurm-client and munge", missing)
	}
	if missing, ok := Accounting(); o.Accounting && !ok {
		return nil, fmt.Errorf("start Slurm with accounting: there is no %s here: install Debian's slurmdbd and mariadb-server", missing)
	}
	who, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("start Slurm: %w", err)
	}
	c := &Cluster{Options: o, user: who.Username, booted: map[string]dynamic.Node{}}
	c.complete()
	if err := c.makeFolder(); err != nil {
		return nil, err
	}
	if err := c.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start Slurm: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) complete() {
	if c.CPUs == 0 {
		c.CPUs = 4
	}
	if c.MemoryMB == 0 {
		c.MemoryMB = 4000
	}
	if c.MaxNodes == 0 {
		c.MaxNodes = 64
	}
	if len(c.Partitions) == 0 {
		c.Partitions = []string{"main Nodes=ALL Default=YES"}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func (c *Cluster) makeFolder() (err error) {
	if c.own = c.Folder == ""; c.own {
		c.Folder, err = os.MkdirTemp("", "slurm-")
	} else {
		c.Folder, err = filepath.Abs(c.Folder)
	}
	if err == nil && len(c.Folder) > longest {
		err = fmt.Errorf("the path %s is longer than %d bytes: give a shorter one", c.Folder, longest)
	}
	for _, name := range []string{".", "etc", "run", "log", "munge", "ctld", "node"} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(c.Folder, name), 0o755)
		}
	}
	if err == nil && c.own {
		err = os.Chmod(c.Folder, 0o755) // munged refuses to have its socket where not all may go
	}
	if err != nil {
		return fmt.Errorf("folder of Slurm: %w", err)
	}
	Sweep(c.Folder)
	return nil
}

// begin starts the daemons, each when the one that it needs answers.
func (c *Cluster) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := c.startGuard(); err != nil {
		return err
	}
	if err := c.configure(); err != nil {
		return err
	}
	steps := []func(context.Context) error{c.startMunge, c.startController, c.startNodes}
	if c.Accounting {
		steps = slices.Insert(steps, 1, c.startDatabase)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	c.Log.Info("Slurm runs", "conf", c.Conf(), "nodes", c.Nodes)
	return nil
}

// Conf is the path of slurm.conf.
func (c *Cluster) Conf() string { return c.path("etc", "slurm.conf") }

// Env is what Slurm's commands need in their environment.
func (c *Cluster) Env() []string { return []string{"SLURM_CONF=" + c.Conf()} }

// MungeSocket is the socket of the cluster's own munge.
func (c *Cluster) MungeSocket() string { return c.path("munge", "s") }

// DynamicPort is the port at which Slurm reaches every dynamic node.
func (c *Cluster) DynamicPort() int { return c.common }

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.Folder}, parts...)...)
}

// Run runs one of Slurm's commands and answers what it printed. What it wrote to
// standard error is in the error; an empty error text stands there where it exited
// with 0.
func (c *Cluster) Run(ctx context.Context, name string, args ...string) (string, error) {
	program, err := dynamic.Find(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = c.environment()
	cmd.Dir = c.path("log") // where jobs leave what they print
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", name, err, exit.Stderr)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	return string(out), err
}

// environment is that of every process of the cluster, which is found by it too.
func (c *Cluster) environment() []string {
	return append(c.Env(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "TZ=UTC", "HOME="+c.Folder)
}

// WaitFor asks until the answer is yes, and fails with what was waited for when the
// context ends or is 30 s old, whichever is first.
func WaitFor(ctx context.Context, what string, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it never came true that %s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
	return nil
}

// Stop ends the cluster: its daemons, and every job. The folder stays unless it was made by [Start].
// It can be called again.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	leave := c.leave
	c.leave = nil
	c.mu.Unlock()
	if leave == nil {
		return nil
	}
	c.ResumeController()
	// The controller lingers where its nodes vanish under it, and the others need munge to end.
	for _, name := range []string{"slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged"} {
		c.terminate(c.named(name))
	}
	_ = leave.Close()
	<-c.left
	if left := belonging(c.Folder); len(left) > 0 {
		return fmt.Errorf("stop Slurm: still running: %v", slices.Sorted(maps.Keys(left)))
	}
	if c.own {
		return os.RemoveAll(c.Folder)
	}
	return nil
}

// terminate asks processes to end, and ends them.
func (c *Cluster) terminate(pids []int) {
	process.Signal(syscall.SIGTERM, pids...)
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	if WaitFor(ctx, "they ended", func() bool { return !anyLives(pids) }) != nil {
		c.Log.Warn("they did not end when asked", "pids", pids)
		process.Signal(syscall.SIGKILL, pids...)
	}
}

func anyLives(pids []int) bool {
	return slices.ContainsFunc(pids, func(pid int) bool {
		s, err := process.Read(pid)
		return err == nil && !s.Dead
	})
}
