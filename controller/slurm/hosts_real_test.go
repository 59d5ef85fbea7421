package slurm

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/slurm/slurmtest"
)

func machine(name, address, template string, features ...string) backend.Machine {
	return backend.Machine{Name: name, Address: address, Template: template, Capacity: cluster.Capacity{CPUs: 4, MemoryMB: 4000, Features: features}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gone removes a host until it is out.
func gone(r *real, b *Backend, host string) {
	r.t.Helper()
	r.until(host+" is out", func() bool {
		busy, err := b.Remove(context.Background(), host)
		must(r.t, err)
		return !busy
	})
}

func TestRealDynamicHosts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a dynamic node on this machine needs a host name of its own, which only root may give")
	}
	r := startSlurm(t, slurmtest.Options{Nodes: 1, Lines: []string{"NodeSet=dyn Feature=dyn"}})
	ctx := t.Context()
	b := r.backend(func(o *Options) { o.Hosts = map[string]HostOptions{"big": {Features: []string{"dyn"}}} })

	// Jobs wait for hosts that are not there, since a placeholder stands for them.
	if _, err := r.run("sbatch", "-C", "big", "--wrap", "true"); err == nil {
		t.Error("a job for a feature that no node has is taken")
	}
	for range 2 {
		must(t, b.Placeholder(ctx, "big", machine("", "", "", "big", "partition:main")))
	}
	waits := r.submit("-C", "big", "-n1")
	smaller := machine("", "", "", "big")
	smaller.CPUs = 2
	must(t, b.Placeholder(ctx, "big", smaller))
	if n, _ := r.node("xce-big"); n.CPUs != 2 || n.Base != "FUTURE" {
		t.Errorf("%+v", n)
	}

	// One comes, and takes the job.
	m := machine("e1", "127.0.3.7", "big", "big", "partition:main", "node:e1")
	for range 2 {
		must(t, b.Declare(ctx, m))
	}
	n, _ := r.node("e1")
	if h := asHost(n); h.State != backend.HostAwaited || !h.Removable || n.Address != m.Address {
		t.Errorf("%+v", n)
	}
	must(t, r.BootDynamic("e1", m.Address, "CPUs=4 RealMemory=4000 Feature=big,dyn"))
	r.until("it has come, and is closed", func() bool {
		n, _ := r.node("e1")
		return asHost(n).State == backend.HostClosed && asHost(n).Drained
	})
	if got := r.job(waits); !strings.HasPrefix(got, "PENDING") {
		t.Errorf("the job is %s before its host is opened", got)
	}
	must(t, b.Open(ctx, "e1"))
	r.until("the job runs", func() bool { return strings.HasPrefix(r.job(waits), "RUNNING") })
	must(t, b.Declare(ctx, m))

	// It is drained, opened, drained again; each twice.
	for range 2 {
		must(t, b.Drain(ctx, "e1", "a test"))
	}
	if n, _ := r.node("e1"); n.Reason != "xce: a test" || asHost(n).State != backend.HostClosed || !asHost(n).Drained {
		t.Errorf("%+v", n)
	}
	for range 2 {
		must(t, b.Open(ctx, "e1"))
	}
	r.until("it is open", func() bool { n, _ := r.node("e1"); return !n.has("DRAIN") })

	// It leaves only when its job is done, and a later job does not land there.
	for range 2 {
		if busy, err := b.Remove(ctx, "e1"); err != nil || !busy {
			t.Errorf("busy %v, %v", busy, err)
		}
	}
	later := r.submit("-C", "big", "-n1")
	_, err := r.run("scancel", waits)
	must(t, err)
	gone(r, b, "e1")
	gone(r, b, "e1")
	if _, there := r.node("e1"); there {
		t.Error("e1 is still there")
	}
	if got := r.job(later); !strings.HasPrefix(got, "PENDING") {
		t.Errorf("the later job is %s", got)
	}
	for range 2 {
		must(t, b.DropPlaceholder(ctx, "big"))
	}

	// One that slurm.conf names is drained and opened, and nothing else; what others do is left.
	if err := b.Declare(ctx, machine("n1", "", "big")); err == nil || !strings.Contains(err.Error(), "in slurm.conf") {
		t.Error(err)
	}
	if _, err := b.Remove(ctx, "n1"); err == nil || !strings.Contains(err.Error(), "not ours to take out") {
		t.Error(err)
	}
	r.scontrol("update", "nodename=n1", "state=drain", "reason=bad fan")
	must(t, b.Drain(ctx, "n1", "ours"))
	must(t, b.Open(ctx, "n1"))
	if n, _ := r.node("n1"); n.Reason != "bad fan" || !n.has("DRAIN") {
		t.Errorf("%+v", n)
	}
	if err := b.Open(ctx, "nosuch"); err == nil {
		t.Error("a host that is not there was opened")
	}
}

func TestRealUnknownHostChange(t *testing.T) {
	r := startSlurm(t, slurmtest.Options{Nodes: 1})
	b := r.backend(func(o *Options) { o.Commands.Limit = 500 * time.Millisecond })
	r.PauseController()
	err := b.Declare(t.Context(), machine("e1", "", "big"))
	r.ResumeController()
	var unknown *backend.Unknown
	if !errors.As(err, &unknown) {
		t.Errorf("%v; want an unknown outcome", err)
	}
	r.until("it is done again", func() bool { return b.Declare(t.Context(), machine("e1", "", "big")) == nil })
	// Made and killed at once: it may be lost, and is made again.
	r.KillController()
	must(t, r.StartController(t.Context()))
	must(t, r.backend(nil).Declare(t.Context(), machine("e1", "", "big")))
}

func TestRealCloudHosts(t *testing.T) {
	r := startSlurm(t, slurmtest.Options{Cloud: 2, Lines: []string{"ResumeProgram=/bin/true", "SuspendProgram=/bin/true", "ResumeTimeout=60"}})
	ctx := t.Context()
	b := r.backend(func(o *Options) { o.Hosts = map[string]HostOptions{"t": {Kind: Cloud, Nodes: "c1"}} })
	if err := b.Declare(ctx, machine("c2", "", "t")); err == nil || !strings.Contains(err.Error(), "slurm.templates[t].nodes") {
		t.Error(err)
	}
	rounds := 1
	if endToEnd {
		rounds = 2 // it takes Slurm half a minute to miss the first
	}
	for round := range rounds {
		for range 2 {
			must(t, b.Declare(ctx, machine("c1", "127.0.0.1", "t")))
		}
		if n, _ := r.node("c1"); !n.has("DRAIN") || round == 0 && asHost(n).State != backend.HostAwaited {
			t.Errorf("%+v", n)
		}
		// A slurmd that started before the node was powered up, by the second, does not count as just started.
		r.until("Slurm awaits it", func() bool { n, _ := r.node("c1"); return round > 0 || n.has("POWERING_UP") })
		time.Sleep(2 * time.Second)
		must(t, r.StartNode("c1"))
		r.until("it has come, and is closed", func() bool {
			n, _ := r.node("c1")
			return asHost(n).State == backend.HostClosed && asHost(n).Drained
		})
		must(t, b.Open(ctx, "c1"))
		must(t, b.Open(ctx, "c1"))
		r.ready("c1")
		job := r.submit("-n1", "-w", "c1")
		r.until("the job runs", func() bool { return strings.HasPrefix(r.job(job), "RUNNING") })
		if busy, err := b.Remove(ctx, "c1"); err != nil || !busy {
			t.Errorf("busy %v, %v", busy, err)
		}
		_, err := r.run("scancel", job)
		must(t, err)
		gone(r, b, "c1")
		r.StopNode("c1")
		r.until("Slurm misses it", func() bool { n, _ := r.node("c1"); return round+1 == rounds || n.has("DOWN", "NOT_RESPONDING") })
	}
}

func TestRealFutureHosts(t *testing.T) {
	r := startSlurm(t, slurmtest.Options{Future: 1})
	ctx := t.Context()
	b := r.backend(func(o *Options) { o.Hosts = map[string]HostOptions{"t": {Kind: Future, Nodes: "f[1-2]"}} })
	if err := b.Declare(ctx, machine("f2", "", "t")); err == nil || !strings.Contains(err.Error(), "State=FUTURE") {
		t.Error(err)
	}
	for range 2 {
		must(t, b.Declare(ctx, machine("f1", "127.0.0.1", "t")))
		must(t, r.StartNode("f1"))
		r.ready("f1")
		must(t, b.Declare(ctx, machine("f1", "127.0.0.1", "t")))
		r.StopController()
		must(t, r.StartController(ctx))
		r.until("Slurm puts it off", func() bool { n, _ := r.node("f1"); return asHost(n).PutOff })
		must(t, b.Open(ctx, "f1"))
		r.ready("f1")
		job := r.submit("-n1")
		r.until("the job runs", func() bool { return strings.HasPrefix(r.job(job), "RUNNING") })
		if busy, err := b.Remove(ctx, "f1"); err != nil || !busy {
			t.Errorf("busy %v, %v", busy, err)
		}
		_, err := r.run("scancel", job)
		must(t, err)
		gone(r, b, "f1")
		if n, _ := r.node("f1"); n.Base != "FUTURE" || n.has("DRAIN") {
			t.Errorf("%+v", n)
		}
		r.StopNode("f1")
	}
}
