//go:build e2e

package dev

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/postgrestest"
)

// pair is a farm with two controllers on one database.
type pair struct {
	*farm
	database  *postgrestest.Server
	addresses map[string]string // of the controllers, by name
}

// startPair starts a farm whose controllers share a database.
func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{database: postgrestest.Start(t, postgrestest.Options{Durable: true}), addresses: map[string]string{}}
	second, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	shared := brisk
	for old, now := range map[string]string{
		"state: controller.db":             "state: '" + p.database.Address("postgres") + "'\n  name: controller\n  session_lease: 2s\n  record: record",
		"address: https://{{.Controller}}": "address: https://{{.Controller}},https://" + second,
	} {
		if !strings.Contains(shared.Cluster, old) {
			t.Fatalf("the cluster has no %q", old)
		}
		shared.Cluster = strings.Replace(shared.Cluster, old, now, 1)
	}
	p.farm = startFarm(t, shared)
	p.addresses["controller"], p.addresses["second"] = p.address, second
	if err := p.startOne(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	tls, err := pki.In(p.path("pki"), "admin").Client()
	if err != nil {
		t.Fatal(err)
	}
	p.controller = api.NewClient("https://"+p.address+",https://"+second, tls)
	return p
}

// startOne starts one of the controllers, and waits until it answers.
func (p *pair) startOne(ctx context.Context, name string) error {
	tls, err := pki.In(p.path("pki"), "admin").Client()
	if err != nil {
		return err
	}
	client := api.NewClient("https://"+p.addresses[name], tls)
	defer client.Close()
	part, err := p.run(name, p.Program, []string{"controller", "--config", configName},
		"XCE_CONTROLLER_NAME="+name, "XCE_CONTROLLER_LISTEN="+p.addresses[name])
	if err != nil {
		return err
	}
	return part.await(ctx, 30*time.Second, func(ctx context.Context) error {
		_, err := client.Status(ctx)
		return err
	})
}

func (p *pair) other(name string) string {
	if name == "second" {
		return "controller"
	}
	return "second"
}

// leader answers which controller runs the sessions, once both are there.
func (p *pair) leader(t *testing.T) (name string) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		st, err := p.controller.Status(t.Context())
		if err != nil {
			return err
		}
		name = leaderOf(st)
		if name == "" || len(st.Controllers) < 2 {
			return fmt.Errorf("controllers are %+v", st.Controllers)
		}
		return nil
	})
	return name
}

func leaderOf(st api.Status) string {
	if i := slices.IndexFunc(st.Controllers, func(c api.ControllerStatus) bool { return c.Leads }); i >= 0 {
		return st.Controllers[i].Name
	}
	return ""
}

// resumed waits until another than `gone` runs sessions, and a job that is
// submitted then has been placed; it answers how long both took.
func (p *pair) resumed(t *testing.T, gone string, began time.Time) (led, placed time.Duration) {
	t.Helper()
	ask := func() error {
		st, err := p.controller.Status(t.Context())
		if err == nil && (leaderOf(st) == "" || leaderOf(st) == gone) {
			err = fmt.Errorf("controllers are %+v", st.Controllers)
		}
		return err
	}
	quickly(t, ask)
	led = time.Since(began)
	name := fmt.Sprintf("probe-%d", began.UnixNano())
	p.submitOnce(t, cluster.JobSpec{Name: name, CPUs: 1, Command: []string{"true"}})
	quickly(t, func() error {
		jobs, err := p.controller.Jobs(t.Context(), "")
		if err != nil {
			return err
		}
		i := slices.IndexFunc(jobs, func(j cluster.Job) bool { return j.Name == name })
		if i < 0 || jobs[i].State == cluster.JobWaiting {
			return fmt.Errorf("%s is not placed", name)
		}
		return nil
	})
	return led, time.Since(began)
}

func (p *pair) signal(t *testing.T, name string, what syscall.Signal) {
	t.Helper()
	if err := p.part(name).cmd.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
}

// quickly is eventually for what is measured.
func quickly(t *testing.T, ask func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// load submits jobs and has a neighbour draw on the pool, until stopped. It
// answers how many jobs it submitted.
func (p *pair) load(t *testing.T, s uint64) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var works sync.WaitGroup
	submitted := 0
	works.Go(func() { submitted = p.submitBursts(ctx, t, rand.New(rand.NewPCG(s, 1))) })
	works.Go(func() { p.neighbourDraws(ctx, rand.New(rand.NewPCG(s, 2))) })
	return func() int {
		cancel()
		works.Wait()
		return submitted
	}
}

// TestTwoControllersLoseNothing kills the controller that runs the sessions, has it
// stand still, restarts both one after the other, and stops and kills the database, all while
// jobs come and loans come and go. At the end pool, ledger, workflows and jobs agree.
func TestTwoControllersLoseNothing(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	stop := p.load(t, seed(t))
	for range 5 {
		gone := p.leader(t)
		began := time.Now()
		p.kill(gone)
		led, placed := p.resumed(t, gone, began)
		t.Logf("kill -9 of %s: %s leads after %s, and has placed a job after %s", gone, p.other(gone), led.Round(time.Millisecond), placed.Round(time.Millisecond))
		if err := p.startOne(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		still := p.leader(t)
		began := time.Now()
		p.signal(t, still, syscall.SIGSTOP)
		led, placed := p.resumed(t, still, began)
		p.signal(t, still, syscall.SIGCONT)
		t.Logf("SIGSTOP of %s: the other leads after %s, and has placed a job after %s", still, led.Round(time.Millisecond), placed.Round(time.Millisecond))
		if now := p.leader(t); now == still {
			t.Errorf("%s runs the sessions again, though the other is there", still)
		}
	}
	for range 3 {
		for _, name := range []string{"controller", "second"} {
			p.leader(t)
			began := time.Now()
			if err := p.part(name).stop(); err != nil {
				t.Error(err)
			}
			led, placed := p.resumed(t, name, began)
			t.Logf("stop of %s: the other leads after %s, and has placed a job after %s", name, led.Round(time.Millisecond), placed.Round(time.Millisecond))
			if err := p.startOne(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, end := range map[string]func() error{"stop": func() error { p.database.Stop(); return nil }, "kill -9": p.database.Kill} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := p.database.Restart(); err != nil {
			t.Fatal(err)
		}
		up := time.Since(began)
		_, placed := p.resumed(t, "", began)
		t.Logf("%s of the database, which was up again after %s: a job was placed after %s", name, up.Round(time.Millisecond), placed.Round(time.Millisecond))
	}
	submitted := stop()
	eventually(t, 3*time.Minute, func() error { return p.settled(t.Context()) })
	p.checkTruth(t, submitted)
	loans, err := p.controller.Loans(t.Context(), true)
	if err != nil || len(loans) == 0 {
		t.Errorf("%d loans are no test, %v", len(loans), err)
	}
	t.Logf("%d jobs and %d loans", submitted, len(loans))
	for _, name := range []string{"controller", "second"} { // each its own decisions, with all that they need
		p.does(t, "simulate --replay "+p.path("record/"+name), `sessions +\d+ +\d+ +0 +0`, `loan`, `Every decision of the record is the one that this program makes`)
	}
	p.does(t, "status", `CONTROLLER +RUNS SESSIONS`, `second +(true|false)`)
}
