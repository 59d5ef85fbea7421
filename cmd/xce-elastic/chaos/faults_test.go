//go:build e2e

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
	"xce.internal/elastic/cmd/xce-elastic/chaos/plan"
	"xce.internal/elastic/cmd/xce-elastic/chaos/proof"
)

// world is what there is to hurt.
func (f *farm) world(length time.Duration) plan.World {
	w := plan.World{
		Processes: slices.Sorted(maps.Keys(f.processes)), Links: slices.Sorted(maps.Keys(f.wires)),
		Lease: leaseFor, Length: cluster.DurationOf(length), Every: 1300,
	}
	if f.skewable {
		w.Clocks = slices.DeleteFunc(slices.Clone(w.Processes), func(name string) bool { return name == "temporal" })
	}
	if f.shares() {
		w.Processes = append(w.Processes, postgres)
	}
	for _, p := range f.providers {
		if p.pool {
			w.Pools = append(w.Pools, p.Name)
		} else {
			w.Farms = append(w.Farms, p.Name)
		}
	}
	return w
}

// leaseFor is how long leases last.
const leaseFor = 3 * cluster.Second

// hurt does what is planned, each at its time, and returns when all is healed.
func (f *farm) hurt(ctx context.Context, faults []plan.Fault) {
	began := time.Now()
	var all sync.WaitGroup
	for _, fault := range faults {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(began.Add(fault.At.Std()))):
		}
		all.Go(func() { f.do(ctx, fault) })
	}
	all.Wait()
}

// do does one fault and heals it.
func (f *farm) do(ctx context.Context, fault plan.Fault) {
	note := evidence.Fault{At: cluster.TimeOf(time.Now()), Kind: string(fault.Kind), Target: fault.Target, Text: fault.String(), Held: f.heldBy(fault.Target)}
	heal, err := f.begin(fault)
	switch {
	case err != nil:
		note.Text += ": not done, " + err.Error()
		note.Kind = "none"
	case heal != nil:
		select {
		case <-ctx.Done():
		case <-time.After(fault.For.Std()):
		}
		if err := heal(); err != nil {
			f.t.Errorf("heal %s: %v", fault, err)
		}
		note.Until = cluster.TimeOf(time.Now())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, note)
}

// begin does a fault, and answers how it is healed.
func (f *farm) begin(fault plan.Fault) (heal func() error, err error) {
	p, w := f.processes[fault.Target], f.wires[fault.Target]
	mend := func() error { w.Heal(); return nil }
	if fault.Target == postgres {
		return f.hurtPostgres(fault.Kind)
	}
	switch fault.Kind {
	case plan.Kill:
		p.end(syscall.SIGKILL, time.Minute)
		return p.start, nil
	case plan.Pause:
		p.signal(syscall.SIGSTOP)
		return func() error { p.signal(syscall.SIGCONT); return nil }, nil
	case plan.Restart:
		p.end(syscall.SIGTERM, 10*time.Second)
		return p.start, nil
	case plan.Skew:
		p.end(syscall.SIGKILL, time.Minute)
		p.environment = append(slices.Clone(p.environment), fmt.Sprintf("%s=%d", clockVariable, fault.Amount))
		return p.start, nil
	case plan.Cut:
		w.Cut()
		return mend, nil
	case plan.Hole:
		w.Hole()
		return mend, nil
	case plan.Delay:
		w.Delay(time.Duration(fault.Amount) * time.Millisecond)
		return mend, nil
	}
	return f.hurtProvider(fault)
}

func (f *farm) hurtProvider(fault plan.Fault) (heal func() error, err error) {
	p := f.provider(fault.Target)
	switch fault.Kind {
	case plan.Script:
		return func() error { return f.control(p, "", 0) }, f.control(p, fault.Mode, cluster.Duration(500+fault.Pick%5000))
	case plan.Shrink:
		return func() error { return f.setCapacity(p, 1000) }, f.setCapacity(p, fault.Amount)
	case plan.Recall:
		return nil, f.recall(p, fault)
	case plan.Agent:
		return nil, f.killAgent(p, fault.Pick)
	}
	instance, err := f.machine(p, fault.Pick)
	if err != nil {
		return nil, err
	}
	if fault.Kind == plan.Crash {
		return nil, p.operate("crash", instance)
	}
	return nil, p.operate("reclaim", instance, "--grace", "2s")
}

func (f *farm) provider(name string) provider {
	i := slices.IndexFunc(f.providers, func(p provider) bool { return p.Name == name })
	return f.providers[i]
}

// setCapacity has a pool lend at most so many of each resource, and never more than at first.
func (f *farm) setCapacity(p provider, most int64) error {
	var args []string
	for resource, units := range capacities[slices.IndexFunc(f.providers, func(o provider) bool { return o.Name == p.Name })] {
		args = append(args, "--capacity", fmt.Sprintf("%s=%d", resource, min(units, most)))
	}
	return p.operate(append([]string{"set"}, args...)...)
}

// recall has a pool want units of a loan back.
func (f *farm) recall(p provider, fault plan.Fault) error {
	l, err := evidence.ReadLender(p.Name, p.place)
	if err != nil {
		return err
	}
	if len(l.Open) == 0 {
		return errors.New("nothing is lent")
	}
	g := l.Open[fault.Pick%uint64(len(l.Open))]
	return p.operate("recall", "--cluster", "east", "--request", g.Request, "--units", strconv.FormatInt(min(fault.Amount, g.Units), 10))
}

// machine answers one of the machines that a maker has.
func (f *farm) machine(p provider, pick uint64) (string, error) {
	m, err := evidence.ReadMaker(p.Name, filepath.Join(p.place, "local.json"))
	if err != nil {
		return "", err
	}
	if len(m.Open) == 0 {
		return "", errors.New("there is no machine")
	}
	return m.Open[pick%uint64(len(m.Open))], nil
}

// killAgent kills the agent of a made host; its provider starts it again.
func (f *farm) killAgent(p provider, pick uint64) error {
	var agents []int
	for pid, command := range processesOf(p.place) {
		if strings.Contains(command, " agent --join ") {
			agents = append(agents, pid)
		}
	}
	if len(agents) == 0 {
		return errors.New("there is no agent")
	}
	slices.Sort(agents)
	return syscall.Kill(agents[pick%uint64(len(agents))], syscall.SIGKILL)
}

// processesOf answers the processes of the hosts of a maker, with their commands.
func processesOf(folder string) map[int]string {
	found := map[int]string{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		command, err := os.ReadFile(filepath.Join(p, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(p, "environ"))
		if err != nil || len(command) == 0 || !strings.Contains(string(environment), "LOCAL_HOST="+folder+"/") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(p))
		found[pid] = strings.ReplaceAll(strings.TrimSuffix(string(command), "\x00"), "\x00", " ")
	}
	return found
}

// heldBy answers what a process is in charge of now, as far as it can be told quickly.
func (f *farm) heldBy(target string) (held []string) {
	if f.processes[target] == nil {
		return nil
	}
	for _, c := range f.controllers {
		ctx, cancel := context.WithTimeout(f.t.Context(), 300*time.Millisecond)
		leases, err := c.client.Leases(ctx)
		cancel()
		if err != nil {
			continue
		}
		for _, l := range leases.Leases {
			if l.Holder == target {
				held = append(held, l.Provider)
			}
		}
		break
	}
	if f.leads(target) {
		held = append(held, proof.Sessions)
	}
	return held
}
