//go:build e2e

package dev

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

const (
	killsOfEach = 20
	leastLoans  = 40
)

// seed answers the seed of a run: XCE_SEED, or one from the clock.
func seed(tb testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv("XCE_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("XCE_SEED: %v", err)
		}
	}
	tb.Logf("XCE_SEED=%d repeats the choices of this run", s)
	return s
}

// TestNothingIsLostUnderKills kills provisioner, controller and Temporal
// server at random moments, while jobs come and loans come and go; then all
// three at once. At the end pool, ledger, workflows and jobs must agree.
func TestNothingIsLostUnderKills(t *testing.T) {
	t.Parallel()
	f := startFarm(t, brisk)
	s := seed(t)
	ctx, cancel := context.WithCancel(t.Context())
	var load, killers sync.WaitGroup
	submitted := 0
	load.Go(func() { submitted = f.submitBursts(ctx, t, rand.New(rand.NewPCG(s, 1))) })
	load.Go(func() { f.neighbourDraws(ctx, rand.New(rand.NewPCG(s, 2))) })
	for i, name := range []string{"worker", "controller", "temporal"} {
		killers.Go(func() { f.killAgain(t, killsOfEach, name, rand.New(rand.NewPCG(s, 3+uint64(i)))) })
	}
	killers.Wait()
	f.restartAll(t)
	eventually(t, 5*time.Minute, func() error { return f.enoughLoans(t) })
	cancel()
	load.Wait()
	eventually(t, 3*time.Minute, func() error { return f.settled(t.Context()) })
	f.checkTruth(t, submitted)
	loans, err := f.controller.Loans(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d jobs, %d loans, %d kills", submitted, len(loans), 3*killsOfEach+3)
}

func (f *farm) enoughLoans(t *testing.T) error {
	loans, err := f.controller.Loans(t.Context(), true)
	if err == nil && len(loans) < leastLoans {
		err = fmt.Errorf("%d loans so far", len(loans))
	}
	return err
}

// submitBursts submits jobs in bursts with pauses in which loans fall idle,
// until ctx ends, and answers how many. A submission of which no answer came is
// looked for: it may have been taken.
func (f *farm) submitBursts(ctx context.Context, t *testing.T, r *rand.Rand) (submitted int) {
	for ctx.Err() == nil {
		for range 3 + r.IntN(5) {
			spec := cluster.JobSpec{
				Name: fmt.Sprintf("burst-%d", submitted), CPUs: 1,
				Tokens:  map[string]int64{resource: 1 + r.Int64N(3)},
				Command: []string{"sh", "-c", fmt.Sprintf("echo $XCE_JOB_ID >>%s; sleep 0.%d", f.path("jobs.txt"), r.IntN(10))},
			}
			f.submitOnce(t, spec)
			submitted++
		}
		pause(ctx, r, 2*time.Second, 4500*time.Millisecond)
	}
	return submitted
}

func (f *farm) submitOnce(t *testing.T, spec cluster.JobSpec) {
	for {
		if _, err := f.controller.Submit(t.Context(), spec); err == nil || f.has(t, spec.Name) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// has tells whether a job of that name is queued, as soon as it can be told.
func (f *farm) has(t *testing.T, name string) bool {
	for {
		jobs, err := f.controller.Jobs(t.Context(), "")
		if err != nil && t.Context().Err() == nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for _, j := range jobs {
			if j.Name == name {
				return true
			}
		}
		return false
	}
}

// neighbourDraws lets a second cluster take of the pool and give back, until ctx ends.
func (f *farm) neighbourDraws(ctx context.Context, r *rand.Rand) {
	pool, err := f.poolAs(neighbour)
	if err != nil {
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("west-%d", n)
		pool.Request(context.WithoutCancel(ctx), providers.RequestIn{RequestID: id, Resource: resource, Units: 1 + r.Int64N(6)})
		pause(ctx, r, 200*time.Millisecond, 3*time.Second)
		pool.Return(context.WithoutCancel(ctx), providers.ReturnIn{RequestID: id, Remaining: 0})
		pause(ctx, r, 200*time.Millisecond, 2*time.Second)
	}
}

// killAgain kills a part and starts it again, so many times.
func (f *farm) killAgain(t *testing.T, times int, name string, r *rand.Rand) {
	for range times {
		pause(t.Context(), r, 100*time.Millisecond, 4*time.Second)
		f.kill(name)
		pause(t.Context(), r, time.Millisecond, time.Second)
		if err := f.starters()[name](t.Context()); err != nil {
			t.Errorf("start %s again: %v", name, err)
			return
		}
	}
}

// restartAll kills all three at once and starts them again, in the order that
// is hardest on the provisioner.
func (f *farm) restartAll(t *testing.T) {
	for _, name := range []string{"worker", "controller", "temporal"} {
		f.kill(name)
	}
	for _, name := range []string{"worker", "controller", "temporal"} {
		if err := f.starters()[name](t.Context()); err != nil {
			t.Fatalf("start %s again: %v", name, err)
		}
	}
}
