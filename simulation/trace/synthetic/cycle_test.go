package synthetic

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestTheClocksOfACycleLeadBackToEachOther(t *testing.T) {
	c := newCycle(office(), workingDays)
	rapid.Check(t, func(t *rapid.T) {
		at := cluster.Time(rapid.Int64Range(0, int64(lastStart)).Draw(t, "at"))
		if back := c.time(c.clock(at)); back.Sub(at) > 1 || at.Sub(back) > 1 {
			t.Fatalf("%d leads to %d", at, back)
		}
	})
}

func TestAWeekIsAWeekOnBothClocks(t *testing.T) {
	c := newCycle(office(), workingDays)
	for at := range cluster.Time(3) {
		if got := c.between(at*1e9, at*1e9+cluster.Time(weekLength)); got-float64(weekLength) > 1e-3 || got-float64(weekLength) < -1e-3 {
			t.Errorf("from %d on a week has %g ms", at, got)
		}
	}
}

func TestNothingComesInHoursOfNoWeight(t *testing.T) {
	var slots [slotsOfDay]float64
	slots[20], slots[21] = 1, 3 // 10:00 to 11:00
	c := newCycle(slots, [7]float64{0, 1, 1, 1, 1, 0, 0})
	draw, halves := seed(1).of(forGap, 1), [2]int{}
	for range 10_000 {
		at := c.time(draw.uniform() * 52 * float64(weekLength)).Std()
		if day := at.Weekday(); at.Hour() != 10 || day == time.Monday || day == time.Saturday || day == time.Sunday {
			t.Fatalf("something comes at %s", at.Format(time.RFC1123))
		}
		halves[at.Minute()/30]++
	}
	hasShare(t, "the second half hour", halves[1], 10_000, 0.75)
}

func TestDaysBeginAtMidnightOfMonday(t *testing.T) {
	if at := weekStart.Std(); at.Weekday() != time.Monday || at.Hour() != 0 {
		t.Errorf("weeks begin at %s", at)
	}
	if at := defaultStart.Std(); at.Weekday() != time.Monday || at.Hour() != 0 {
		t.Errorf("traces begin at %s", at)
	}
}
