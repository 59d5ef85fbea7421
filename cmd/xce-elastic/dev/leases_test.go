//go:build e2e

package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
)

// deputy is the name of a second provisioner, as a part and by its certificate.
const deputy = "p2"

// startDeputy starts a second provisioner.
func (f *farm) startDeputy(context.Context) error {
	_, err := f.run(deputy, f.Program, []string{"worker", "--config", configName}, f.as(deputy)...)
	return err
}

func (f *farm) certify(t *testing.T, name string) {
	t.Helper()
	ca, err := pki.OpenAuthority(f.path("pki"))
	if err == nil {
		err = ca.Issue(name, pki.Peer{Role: string(api.Provisioner), Name: name})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// holder answers who acts for a provider now, by the controller's word.
func (f *farm) holder(t *testing.T, provider string) string {
	t.Helper()
	leases, err := f.controller.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if l.Provider == provider {
			return l.Holder
		}
	}
	return ""
}

func (f *farm) heldBy(t *testing.T, provider, name string) error {
	if holder := f.holder(t, provider); holder != name {
		return fmt.Errorf("%s is held by %q, not by %q", provider, holder, name)
	}
	return nil
}

// checkHolders sees that every change by a provisioner was made by the one that
// held the lease of the provider then, and that epochs count up by one.
func (f *farm) checkHolders(t *testing.T) (moves int) {
	t.Helper()
	now := map[string]cluster.Lease{}
	f.eachChange(t, func(c api.Change) {
		if c.Kind == api.KindLease {
			var l cluster.Lease
			if err := json.Unmarshal(c.After, &l); err != nil {
				t.Fatal(err)
			}
			if before := now[l.Provider]; l.Holder != "" && l.Holder != before.Holder && l.Epoch != before.Epoch+1 || l.Epoch < before.Epoch {
				t.Errorf("change %d: epoch %d of %s follows %d", c.Revision, l.Epoch, l.Provider, before.Epoch)
			}
			now[l.Provider] = l
			moves++
			return
		}
		name, of := strings.CutPrefix(c.Actor, "provisioner/")
		if !of {
			return
		}
		var row struct {
			Provider string `json:"provider"`
		}
		_ = json.Unmarshal(c.After, &row)
		if row.Provider == "" {
			_ = json.Unmarshal(c.Before, &row)
		}
		if holder := now[row.Provider].Holder; row.Provider == "" || holder != name {
			t.Errorf("change %d (%s of %s) is by %s; %q is held by %q", c.Revision, c.Kind, c.Subject, name, row.Provider, holder)
		}
	})
	return moves
}

func (f *farm) eachChange(t *testing.T, see func(api.Change)) {
	t.Helper()
	for after := int64(0); ; {
		page, err := f.controller.Changes(t.Context(), after, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Changes) == 0 {
			return
		}
		for _, c := range page.Changes {
			see(c)
		}
		after = page.Revision
	}
}

// slowScript is a provider whose script never answers in time. It notes its process.
const slowScript = `#!/bin/sh
echo $$ >>%s
exec sleep 300
`

// A provisioner that is stopped for longer than its lease changes nothing: another
// acts, and the script that it had started is ended although it cannot end it.
func TestAProvisionerThatIsPausedChangesNothing(t *testing.T) {
	t.Parallel()
	e, pids := withSlow(t, brisk)
	f := startFarm(t, e)
	f.certify(t, deputy)
	if err := f.heldBy(t, "slow", "p1"); err != nil {
		t.Fatal(err)
	}
	if err := f.startDeputy(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	submitted := 0
	load.Go(func() { submitted = f.submitBursts(ctx, t, rand.New(rand.NewPCG(seed(t), 1))) })
	eventually(t, time.Minute, func() error {
		leases, err := f.controller.Leases(t.Context())
		if err == nil && len(leases.Provisioners) < 2 {
			err = errors.New("the second provisioner is not there yet")
		}
		return err
	})
	var script int
	eventually(t, time.Minute, func() (err error) { script, err = lastProcess(pids); return err })
	worker := f.part("worker").cmd.Process
	must(t, worker.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	eventually(t, 30*time.Second, func() error { return errors.Join(f.heldBy(t, poolName, deputy), f.heldBy(t, "slow", deputy)) })
	t.Logf("another acts %s after the stop", time.Since(stopped).Round(time.Millisecond))
	if err := syscall.Kill(script, 0); !errors.Is(err, syscall.ESRCH) && !isZombie(script) {
		t.Errorf("the script that began under the old lease still runs: %v", err)
	}
	time.Sleep(3 * time.Second)
	must(t, worker.Signal(syscall.SIGCONT))
	eventually(t, time.Minute, func() error { return f.logHas("worker", "lease lost") })
	time.Sleep(3 * time.Second)
	cancel()
	load.Wait()
	eventually(t, 2*time.Minute, func() error { return f.settled(t.Context()) })
	f.checkTruth(t, submitted)
	f.checkHolders(t)
	f.kill(deputy) // it would wait for the slow script, as it should
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// withSlow adds a provider whose scripts never end by themselves; their processes
// are in the file pids.
func withSlow(t *testing.T, e example) (slow example, pids string) {
	t.Helper()
	folder := t.TempDir()
	script, pids := filepath.Join(folder, "slow"), filepath.Join(folder, "pids")
	must(t, os.WriteFile(script, fmt.Appendf(nil, slowScript, pids), 0o700))
	e.Cluster = strings.Replace(e.Cluster, "providers:\n", "providers:\n  - name: slow\n    script: "+script+"\n    survey_every: 1s\n    time_limit: 2m\n", 1)
	return e, pids
}

// lastProcess answers the process of the script that began last.
func lastProcess(pids string) (pid int, err error) {
	data, err := os.ReadFile(pids)
	if err != nil {
		return 0, err
	}
	lines := strings.Fields(string(data))
	if len(lines) == 0 {
		return 0, errors.New("the slow script has not begun")
	}
	_, err = fmt.Sscan(lines[len(lines)-1], &pid)
	return pid, err
}

func isZombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(data), ") Z ")
}

func (f *farm) logHas(part, text string) error {
	data, err := os.ReadFile(f.path("log/" + part + ".log"))
	if err == nil && !strings.Contains(string(data), text) {
		err = fmt.Errorf("the log of %s does not have %q", part, text)
	}
	return err
}

// All provisioners are stopped and started again, one after the other and more
// than once, while jobs come; an operator moves a lease meanwhile.
func TestARollingRestartOfProvisionersLosesNothing(t *testing.T) {
	t.Parallel()
	f := startFarm(t, brisk)
	f.certify(t, deputy)
	must(t, f.startDeputy(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	submitted := 0
	load.Go(func() { submitted = f.submitBursts(ctx, t, rand.New(rand.NewPCG(seed(t), 1))) })
	for range 3 {
		for name, start := range map[string]func(context.Context) error{"worker": f.reviveWorker, deputy: f.startDeputy} {
			time.Sleep(2 * time.Second)
			began := time.Now()
			must(t, f.part(name).stop())
			t.Logf("%s stopped within %s", name, time.Since(began).Round(time.Millisecond))
			if err := f.part(name).err; err != nil {
				t.Errorf("%s did not stop in order: %v", name, err)
			}
			must(t, start(t.Context()))
		}
	}
	eventually(t, time.Minute, func() error {
		to := map[string]string{"p1": deputy, deputy: "p1"}[f.holder(t, poolName)]
		_, _, ok := f.cli(t, "leases", "move", poolName, "--to", to)
		if !ok {
			return fmt.Errorf("no move to %q yet", to)
		}
		eventually(t, 30*time.Second, func() error { return f.heldBy(t, poolName, to) })
		return nil
	})
	f.does(t, "leases", `(?m)^pool-a +p[12] +\d+ .* stays, as an operator wants`, `(?m)^p1 `, `(?m)^p2 `)
	cancel()
	load.Wait()
	eventually(t, 2*time.Minute, func() error { return f.settled(t.Context()) })
	f.checkTruth(t, submitted)
	t.Logf("%d changes of leases", f.checkHolders(t))
}
