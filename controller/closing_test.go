package controller

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// told is one time that the backend was told how much of a resource is usable.
type told struct {
	at     time.Time
	usable int64
}

// sinceWhen says by all that was told since when no more was usable.
func sinceWhen(all []told, usable int64, now time.Time) time.Time {
	since := now
	for _, t := range slices.Backward(all) {
		if t.usable > usable {
			break
		}
		since = t.at
	}
	return since
}

func TestSinceWhenUnitsAreKeptFromJobs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c, now := newClosing(), time.Unix(0, 0)
		var all []told
		for range rapid.IntRange(1, 20).Draw(rt, "times") {
			now = now.Add(time.Second)
			usable := rapid.Int64Range(0, 6).Draw(rt, "usable")
			before := int64(9) // nobody knows
			if n := len(all); n > 0 {
				before = all[n-1].usable
			}
			switch rapid.IntRange(0, 9).Draw(rt, "event") {
			case 0: // the backend has forgotten what it was told
				before += rapid.Int64Range(1, 3).Draw(rt, "more")
				all = nil
			case 1: // someone else keeps more from jobs
				before = max(before-rapid.Int64Range(1, 3).Draw(rt, "less"), 0)
			case 2: // nobody knows what became of the last time
				c.forget("vcs")
				all = nil
			}
			c.keeps("vcs", usable, before, now)
			all = append(all, told{now, usable})
			for limit := range int64(8) {
				if got, want := c.since("vcs", limit, now), sinceWhen(all, limit, now); !got.Equal(want) {
					rt.Fatalf("no more than %d are usable since %s, want %s: %v", limit, got, want, all)
				}
			}
		}
	})
}

func TestFencesUnderWayKeepTheirUnitsEach(t *testing.T) {
	t.Parallel()
	c := newClosing()
	var ends []func()
	for _, f := range []fence{{resource: "vcs", units: 2}, {resource: "sim", units: 3}, {resource: "vcs", units: 4}, {host: "n1"}} {
		ends = append(ends, c.begin(&f))
	}
	for i, want := range []int64{3, 5, 5, 9} {
		if got := c.usable("vcs", 9); got != want {
			t.Errorf("after %d have ended %d of 9 are usable, want %d", i, got, want)
		}
		ends[i]()
	}
	if got := c.usable("vcs", 9); got != 9 || c.closes("n1") {
		t.Errorf("after all have ended %d of 9 are usable", got)
	}
}
