package timeskip

import (
	"fmt"
	"time"
)

// Exact makes a run one that another clock of whole milliseconds can be held against: scripted actions are at the
// very instants they ask for, and so are timers; an attempt takes as long as Takes says, and has its
// effect half way. What happens within one millisecond is told apart by nanoseconds, in a given order.
type Exact struct {
	// Order is in which order what shares a millisecond happens, by rank; it begins anew where something
	// is still to happen after its end. A rank may stand in it more than once.
	Order []int
	// Steps is the rank of activities, of timers and of scripted actions that are not given one.
	Steps int
	// Takes answers how long an attempt of an activity with these arguments takes.
	Takes func(activityType string, args []any) time.Duration
}

// AtRank does f at an instant of an exact run, in the order of its rank.
func (h *Harness) AtRank(at time.Time, rank int, f func()) {
	h.agenda.add(&entry{at: h.places.take(at, h.Now(), rank), do: f})
	h.arm()
}

// places are the nanoseconds of an exact run. Of one rank, what asked first comes first.
type places struct {
	*Exact
	// next is the first place that is free, by the beginning of the stretch that belongs to one rank.
	next map[int64]int64
}

const (
	// stretch is how many things of one rank may happen before those of the next rank do.
	stretch = 2000
	// mostStretches are in a millisecond.
	mostStretches = int(time.Millisecond) / stretch
	// mostRemembered is how many stretches are kept in mind before those that are over are forgotten.
	mostRemembered = 4096
)

// take takes the first free place of a rank in the millisecond of an instant, after now.
func (p *places) take(at, now time.Time, rank int) time.Time {
	ms, present := at.UnixNano(), now.UnixNano()
	ms -= ms % int64(time.Millisecond)
	this := present - present%int64(time.Millisecond)
	first := 0
	if ms <= this {
		ms, first = this, int((present-this)/stretch)
	}
	for n := first; n < mostStretches; n++ {
		if p.Order[n%len(p.Order)] != rank {
			continue
		}
		begins := ms + int64(n)*stretch
		place := max(begins, p.next[begins])
		if ms == this {
			place = max(place, present+1)
		}
		if place < begins+stretch {
			p.remember(begins, place+1, this)
			return time.Unix(0, place).UTC()
		}
	}
	panic(fmt.Sprintf("timeskip: too much happens at %s, or rank %d is not in the order", at, rank))
}

func (p *places) remember(begins, next, this int64) {
	if len(p.next) > mostRemembered {
		for old := range p.next {
			if old < this {
				delete(p.next, old)
			}
		}
	}
	p.next[begins] = next
}

// timer answers how long a timer of a workflow is to run, so that no other shares its instant.
func (h *Harness) timer(d time.Duration) time.Duration {
	if h.opts.Exact == nil || d <= 0 {
		return d
	}
	now := h.Now()
	return h.places.take(now.Truncate(time.Millisecond).Add(d), now, h.opts.Exact.Steps).Sub(now)
}

// halfway is when an attempt that takes so long has its effect.
func halfway(takes time.Duration) time.Duration {
	return (takes / 2).Truncate(time.Millisecond)
}
