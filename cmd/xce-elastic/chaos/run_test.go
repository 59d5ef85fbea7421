//go:build e2e

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
	"xce.internal/elastic/cmd/xce-elastic/chaos/plan"
	"xce.internal/elastic/cmd/xce-elastic/chaos/proof"
)

const (
	// settleWithin is how long a cluster may take to come to rest once all is healed.
	settleWithin = 3 * time.Minute
	// around is what is told of the time before and after a violation.
	around = 2 * cluster.Second
	// mostTold is how many violations of a seed are told with all that happened.
	mostTold = 3
)

// outcome is what came of one seed.
type outcome struct {
	violations []proof.Violation
	times      proof.Times
	summary    string
}

// run runs one seed: start, load and faults, healing, rest, judgement.
func (s *station) run(t *testing.T, seed uint64, length time.Duration) (o outcome) {
	t.Helper()
	began := time.Now()
	f := s.newFarm(t, seed)
	defer f.stop()
	up := time.Now()
	faults := plan.Draw(seed, f.world(length))
	if os.Getenv("CHAOS_PLAN") != "" {
		for _, fault := range faults {
			t.Logf("%8s %s", fault.At, fault)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var submitted []evidence.Submission
	var load sync.WaitGroup
	load.Go(func() { submitted = f.load(ctx) })
	f.hurt(t.Context(), faults)
	<-ctx.Done()
	load.Wait()
	healed := time.Now()
	settled := f.eventually(settleWithin, f.settled)
	ended := time.Now()
	e, err := f.collect(t.Context(), began, submitted)
	if err != nil {
		t.Fatalf("seed %d: collect what is left: %v", seed, err)
	}
	o.violations, o.times = proof.Check(e), proof.Failovers(e)
	if settled != nil {
		o.violations = append(o.violations, proof.Violation{Property: proof.Forgotten, At: e.Ended, Subject: "the cluster", Text: "it did not come to rest: " + settled.Error()})
	}
	o.summary = fmt.Sprintf("seed %d: %d faults, %d jobs, %d loans, %d hosts, %d records; up after %s, at rest %s after %s of faults; %d violations",
		seed, len(e.Faults), len(e.Jobs), len(e.Loans), len(e.Hosts), len(e.Records), seconds(up.Sub(began)), seconds(ended.Sub(healed)), seconds(healed.Sub(up)), len(o.violations))
	if len(o.violations) > 0 && !s.broken {
		f.keepEvidence(e)
		tell(t, f.kept(), e, o.violations)
		t.Errorf("CHAOS_SEED=%d repeats the plan of this run", seed)
	}
	return o
}

func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// tell tells the first violations with what happened around them.
func tell(t *testing.T, kept string, e evidence.Evidence, violations []proof.Violation) {
	t.Helper()
	var text strings.Builder
	for i, v := range violations {
		fmt.Fprintf(&text, "\nSEED %d: %s\n", e.Seed, v)
		if i < mostTold {
			for _, line := range proof.Timeline(e, v, around) {
				fmt.Fprintf(&text, "  %s\n", line)
			}
		}
	}
	t.Logf("evidence and logs are in %s%s", kept, text.String())
}

// number reads a number of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestNothingIsLostInChaos runs seeds: CHAOS_SEEDS of them, from CHAOS_SEED on, with faults for CHAOS_FAULTS.
func TestNothingIsLostInChaos(t *testing.T) {
	first := number(t, "CHAOS_SEED", 1)
	length, err := time.ParseDuration(cmp.Or(os.Getenv("CHAOS_FAULTS"), "20s"))
	if err != nil {
		t.Fatalf("CHAOS_FAULTS: %v", err)
	}
	s := open(t, variant{clocks: os.Getenv("CHAOS_CLOCKS") != ""})
	times := proof.Times{}
	for seed := first; seed < first+number(t, "CHAOS_SEEDS", 2); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			o := s.run(t, seed, length)
			t.Log(o.summary)
			times.Add(o.times)
		})
	}
	for _, what := range []string{proof.LeaseMoved, proof.SessionResumed, proof.NewLoan} {
		if len(times[what]) > 0 {
			d := proof.SpreadOf(times[what])
			t.Logf("%-16s n=%-4d min %-8s median %-8s p90 %-8s max %s", what, d.N, d.Min, d.Median, d.P90, d.Max)
		}
	}
}

// onlyInFull skips what takes minutes where a short run is asked for.
func onlyInFull(t *testing.T) {
	if os.Getenv("CHAOS_FULL") == "" {
		t.Skip("it is run by `make chaos`, which sets CHAOS_FULL")
	}
}

// TestTheFenceAloneKeepsStaleChangesOut runs a build whose provisioners act on after their leases: the controller
// must refuse what they change.
func TestTheFenceAloneKeepsStaleChangesOut(t *testing.T) {
	onlyInFull(t)
	s := open(t, variant{tag: "stubborn"})
	s.broken = false
	for seed := uint64(1); seed <= number(t, "CHAOS_SEEDS", 1); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { t.Log(s.run(t, seed, 20*time.Second).summary) })
	}
}

// TestChaosFindsWhatIsSwitchedOff runs builds in each of which one protection is switched off, until the proof
// finds it out.
func TestChaosFindsWhatIsSwitchedOff(t *testing.T) {
	onlyInFull(t)
	const mostSeeds = 20
	for _, broken := range []struct {
		tag  string
		want proof.Property
	}{{"nointent", proof.Intent}, {"nofence", proof.Fence}, {"unfenced,stubborn", proof.Epochs}} {
		t.Run(strings.ReplaceAll(broken.tag, ",", "-"), func(t *testing.T) {
			s := open(t, variant{tag: broken.tag})
			for seed := uint64(1); seed <= mostSeeds; seed++ {
				o := s.run(t, seed, 15*time.Second)
				t.Log(o.summary)
				i := slices.IndexFunc(o.violations, func(v proof.Violation) bool { return v.Property == broken.want })
				if i >= 0 {
					t.Logf("found with seed %d: %s", seed, o.violations[i])
					return
				}
			}
			t.Errorf("%d seeds do not show that %q is switched off", mostSeeds, broken.tag)
		})
	}
}
