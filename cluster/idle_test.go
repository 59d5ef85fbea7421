package cluster

import (
	"flag"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "1000") // the command line may say otherwise
	os.Exit(m.Run())
}

// drawClock draws a clock as sessions leave it, and the time of the last one.
func drawClock(t *rapid.T) (c IdleClock, now Time) {
	now = 1_000_000
	for range rapid.IntRange(0, 8).Draw(t, "sessions") {
		now = now.Add(Duration(rapid.Int64Range(-2, 20).Draw(t, "later")) * Second)
		c = c.Follow(rapid.Int64Range(-1, 9).Draw(t, "idle"), now)
	}
	return c, now
}

// units lists since when each unit is idle, the oldest first.
func units(c IdleClock) (since []Time) {
	for _, lot := range c {
		since = append(since, slices.Repeat([]Time{lot.Since}, int(lot.Units))...)
	}
	return since
}

func TestTheIdleClockFollowsTheNumberOfIdleUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := drawClock(t)
		before := slices.Clone(c)
		n := rapid.Int64Range(-3, 12).Draw(t, "idle")
		next := c.Follow(n, now)
		if next.Units() != max(n, 0) {
			t.Fatalf("%v follows %d with %d units", c, n, next.Units())
		}
		if !slices.Equal(c, before) {
			t.Fatalf("%v was changed into %v", before, c)
		}
		old, kept := units(c), min(max(n, 0), c.Units())
		if !slices.Equal(units(next)[:kept], old[:kept]) {
			t.Fatalf("%v follows %d to %v: not the youngest were used", c, n, next)
		}
	})
}

func TestLotsOfTheIdleClockAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawClock(t)
		if !slices.IsSortedFunc(c, func(a, b IdleLot) int { return int(a.Since - b.Since) }) {
			t.Fatalf("%v is out of order", c)
		}
		for _, lot := range c {
			if lot.Units < 1 {
				t.Fatalf("%v has an empty lot", c)
			}
		}
		if since := units(c); len(since) > 0 && c.Since() != since[0] || len(since) == 0 && c.Since() != 0 {
			t.Fatalf("%v is idle since %s", c, c.Since())
		}
	})
}

func TestTheOldestIdleUnitsAreTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawClock(t)
		before := slices.Clone(c)
		n := rapid.Int64Range(-2, 12).Draw(t, "taken")
		next := c.Take(n)
		if want := units(c)[min(max(n, 0), c.Units()):]; !slices.Equal(units(next), want) {
			t.Fatalf("%d taken of %v leave %v", n, c, next)
		}
		if !slices.Equal(c, before) {
			t.Fatalf("%v was changed into %v", before, c)
		}
	})
}

func TestAnIdleUnitIsRipeOrNotAndNextRipeIsWhenMoreAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := drawClock(t)
		age := Duration(rapid.Int64Range(0, 60).Draw(t, "age")) * Second
		var ripe, unripe int64
		for _, since := range units(c) {
			if now.Sub(since) >= age {
				ripe++
			} else {
				unripe++
			}
		}
		if c.Ripe(age, now) != ripe || ripe+unripe != c.Units() {
			t.Fatalf("%d of %v are ripe, counted one by one %d", c.Ripe(age, now), c, ripe)
		}
		next := c.NextRipe(age, now)
		if next <= now {
			t.Fatalf("next ripe at %s, now is %s", next, now)
		}
		if unripe > 0 && (c.Ripe(age, next) <= ripe || c.Ripe(age, next-1) != ripe) {
			t.Fatalf("%v: %d ripe now, %d at %s, %d just before", c, ripe, c.Ripe(age, next), next, c.Ripe(age, next-1))
		}
	})
}

func TestTheIdleClock(t *testing.T) {
	const now = 100 * Time(Second)
	c := IdleClock{{Units: 2, Since: now - 50}, {Units: 3, Since: now - 10}}
	tests := []struct {
		name string
		got  IdleClock
		want IdleClock
	}{
		{"more units begin a lot", c.Follow(9, now), IdleClock{{2, now - 50}, {3, now - 10}, {4, now}}},
		{"more units at once join one", c.Follow(9, now-10), IdleClock{{2, now - 50}, {7, now - 10}}},
		{"a clock set back begins none", c.Follow(9, now-40), IdleClock{{2, now - 50}, {7, now - 10}}},
		{"as many change nothing", c.Follow(5, now), c},
		{"fewer take the youngest", c.Follow(1, now), IdleClock{{1, now - 50}}},
		{"none end it", c.Follow(0, now), IdleClock{}},
		{"fewer than none end it", c.Follow(-4, now), IdleClock{}},
		{"a fence takes the oldest", c.Take(3), IdleClock{{2, now - 10}}},
		{"a fence of more takes all", c.Take(30), IdleClock{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if !slices.Equal(test.got, test.want) {
				t.Errorf("got %v, want %v", test.got, test.want)
			}
		})
	}
}
