package proof

import (
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

// Times are how long things took after faults, by what was awaited.
type Times map[string][]cluster.Duration

// What is awaited after a fault.
const (
	LeaseMoved     = "lease moved"     // after its holder was hurt: someone else has it, or the same anew
	SessionResumed = "session resumed" // after the controller that ran them was hurt: a job starts
	NewLoan        = "first new loan"  // after any fault of a process: a grant is taken into the total
)

// Sessions is what the controller in charge of sessions holds, beside leases.
const Sessions = "sessions"

// Failovers measures a run. A fault whose effect did not come before the end counts for nothing.
func Failovers(e evidence.Evidence) Times {
	times := Times{}
	for _, f := range e.Faults {
		if !slices.Contains([]string{"kill", "pause", "restart"}, f.Kind) {
			continue
		}
		measure := func(what string, is func(evidence.Record) bool) {
			for _, r := range e.Records {
				if r.At > f.At && is(r) {
					times[what] = append(times[what], r.At.Sub(f.At))
					return
				}
			}
		}
		for _, provider := range f.Held {
			if provider == Sessions {
				measure(SessionResumed, func(r evidence.Record) bool {
					return r.Kind == "job" && r.Job != nil && r.Job.State == "running" && strings.HasPrefix(r.Why, "placed")
				})
				continue
			}
			measure(LeaseMoved, func(r evidence.Record) bool {
				return r.Lease != nil && r.Lease.Provider == provider && r.Lease.Holder != ""
			})
		}
		measure(NewLoan, func(r evidence.Record) bool { return r.Kind == "loan-commit" })
	}
	return times
}

// Add takes the times of another run in.
func (t Times) Add(more Times) {
	for what, some := range more {
		t[what] = append(t[what], some...)
	}
}

// Spread is how times are distributed.
type Spread struct {
	N                     int
	Min, Median, P90, Max cluster.Duration
}

// SpreadOf answers how some times are distributed; there must be one at least.
func SpreadOf(times []cluster.Duration) Spread {
	sorted := slices.Sorted(slices.Values(times))
	at := func(percent int) cluster.Duration { return sorted[(len(sorted)-1)*percent/100] }
	return Spread{len(sorted), sorted[0], at(50), at(90), sorted[len(sorted)-1]}
}
