// Package plan draws what is done to a cluster in a run of chaos: a pure function of the seed.
package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"xce.internal/elastic/cluster"
)

// Kind is a kind of fault.
type Kind string

// Kinds of faults.
const (
	Kill    Kind = "kill"    // kill -9, and start again after a while
	Pause   Kind = "pause"   // SIGSTOP, and SIGCONT after a while
	Restart Kind = "restart" // SIGTERM, and start again at once
	Skew    Kind = "skew"    // start again with another clock
	Cut     Kind = "cut"     // connections are reset, and new ones too
	Hole    Kind = "hole"    // connections stay, and nothing passes
	Delay   Kind = "delay"   // what passes takes its time
	Script  Kind = "script"  // the provider's script misbehaves
	Shrink  Kind = "shrink"  // a pool lends less: partial grants and refusals
	Recall  Kind = "recall"  // a pool wants units of a loan back
	Crash   Kind = "crash"   // a machine is gone
	Reclaim Kind = "reclaim" // a provider takes a machine
	Agent   Kind = "agent"   // kill -9 of the agent of a made host
)

// Fault is one thing that is done, so long after the begin, for so long.
type Fault struct {
	At     cluster.Duration
	For    cluster.Duration
	Kind   Kind
	Target string
	// Mode is how a script misbehaves.
	Mode string
	// Amount is a number that the kind needs: milliseconds of a delay or a clock, units of a pool.
	Amount int64
	// Pick chooses among what is there when it is done.
	Pick uint64
}

// String tells what is done.
func (f Fault) String() string {
	text := fmt.Sprintf("%s %s", f.Kind, f.Target)
	switch f.Kind {
	case Script:
		text += " " + f.Mode
	case Delay, Skew:
		text += fmt.Sprintf(" %+d ms", f.Amount)
	case Shrink, Recall:
		text += fmt.Sprintf(" %d", f.Amount)
	}
	if f.For > 0 {
		text += fmt.Sprintf(" for %s", f.For)
	}
	return text
}

// World is what there is to hurt.
type World struct {
	Processes []string
	// Clocks are the processes that can be started with another clock.
	Clocks []string
	Links  []string
	Pools  []string
	Farms  []string
	// Lease is how long a lease lasts: pauses are also longer.
	Lease cluster.Duration
	// Length is for how long faults begin.
	Length cluster.Duration
	// Every is how long after a fault the next one comes, on average.
	Every cluster.Duration
}

// modes are how a script may misbehave; see package mischief.
var modes = []string{"slow", "late", "dead", "silent", "babble", "half", "refuse", "stale", "pending"}

// weights say how often each kind is drawn.
var weights = []struct {
	kind   Kind
	weight int
}{{Kill, 8}, {Pause, 6}, {Restart, 3}, {Skew, 2}, {Cut, 4}, {Hole, 4}, {Delay, 2}, {Script, 6}, {Shrink, 2}, {Recall, 2}, {Crash, 2}, {Reclaim, 2}, {Agent, 2}}

// Draw draws the faults of a seed, in order. Nothing is hurt that is hurt already.
func Draw(seed uint64, w World) (faults []Fault) {
	r := rand.New(rand.NewPCG(seed, 0xc4a05))
	busy := map[string]cluster.Duration{}
	for at := gap(r, w.Every); at < w.Length; at += gap(r, w.Every) {
		f, ok := w.draw(r)
		if !ok || busy[f.Target] > at {
			continue
		}
		f.At = at
		busy[f.Target] = at + f.For + cluster.Second
		faults = append(faults, f)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return faults
}

// gap answers how long after a fault the next comes.
func gap(r *rand.Rand, mean cluster.Duration) cluster.Duration {
	return 1 + cluster.Duration(r.ExpFloat64()*float64(mean))
}

// draw draws one fault; there is none where the world has nothing of the kind.
func (w World) draw(r *rand.Rand) (f Fault, ok bool) {
	f = Fault{Kind: drawKind(r), Pick: r.Uint64()}
	targets := w.targets(f.Kind)
	if len(targets) == 0 {
		return f, false
	}
	f.Target = targets[r.IntN(len(targets))]
	switch f.Kind {
	case Kill:
		f.For = between(r, 0, 4*cluster.Second)
	case Pause:
		f.For = between(r, w.Lease/4, 2*w.Lease+cluster.Second)
	case Cut, Hole:
		f.For = between(r, 500, w.Lease+3*cluster.Second)
	case Delay:
		f.Amount, f.For = r.Int64N(400)+20, between(r, 2*cluster.Second, 8*cluster.Second)
	case Skew:
		f.Amount = r.Int64N(240_000) - 120_000
	case Script:
		f.Mode, f.For = modes[r.IntN(len(modes))], between(r, cluster.Second, 7*cluster.Second)
	case Shrink:
		f.Amount, f.For = r.Int64N(5), between(r, 2*cluster.Second, 8*cluster.Second)
	case Recall:
		f.Amount = r.Int64N(3) + 1
	}
	return f, true
}

// targets are what a kind of fault can be done to.
func (w World) targets(k Kind) []string {
	switch k {
	case Kill, Pause, Restart:
		return w.Processes
	case Skew:
		return w.Clocks
	case Cut, Hole, Delay:
		return w.Links
	case Script:
		return slices.Concat(w.Pools, w.Farms)
	case Shrink, Recall:
		return w.Pools
	}
	return w.Farms
}

func drawKind(r *rand.Rand) Kind {
	all := 0
	for _, k := range weights {
		all += k.weight
	}
	n := r.IntN(all)
	for _, k := range weights {
		if n -= k.weight; n < 0 {
			return k.kind
		}
	}
	panic("weights that do not add up")
}

func between(r *rand.Rand, least, most cluster.Duration) cluster.Duration {
	return least + cluster.Duration(r.Int64N(int64(max(most-least, 1))))
}
