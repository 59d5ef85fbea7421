package synthetic

import (
	"math"
	"sort"

	"xce.internal/elastic/cluster"
)

const (
	slotsOfDay  = 48
	slotsOfWeek = 7 * slotsOfDay
	slotLength  = 30 * cluster.Minute
	dayLength   = 24 * cluster.Hour
	weekLength  = 7 * dayLength
)

// weekStart is a Monday at midnight, and Monday is a cycle's first day.
const weekStart = cluster.Time(4 * dayLength) // 1970-01-05

// cycle says how fast arrivals come over the week, in half hours of UTC: it maps a clock that runs
// fast where many arrive onto the real one. Over a week both go as far.
type cycle struct {
	// sums are the milliseconds of the first clock until each slot's end.
	sums [slotsOfWeek]float64
}

// newCycle makes one of the weights of a day's slots and of the days.
func newCycle(slots [slotsOfDay]float64, days [7]float64) *cycle {
	var c cycle
	sum := 0.0
	for i := range c.sums {
		sum += float64(slots[i%slotsOfDay] * days[i/slotsOfDay])
		c.sums[i] = sum
	}
	for i := range c.sums {
		c.sums[i] = c.sums[i] / sum * float64(weekLength)
	}
	return &c
}

// slot answers where a slot begins and how many milliseconds of the first clock it has.
func (c *cycle) slot(i int) (begin, length float64) {
	if i > 0 {
		begin = c.sums[i-1]
	}
	return begin, c.sums[i] - begin
}

// clock answers what the first clock shows at a time.
func (c *cycle) clock(at cluster.Time) float64 {
	since := int64(at - weekStart)
	weeks := math.Floor(float64(since) / float64(weekLength))
	in := since - int64(weeks)*int64(weekLength)
	begin, length := c.slot(int(in / int64(slotLength)))
	share := float64(in%int64(slotLength)) / float64(slotLength)
	return float64(weeks*float64(weekLength)) + (begin + float64(length*share))
}

// at answers the milliseconds since weekStart at which the first clock shows so much.
func (c *cycle) at(clock float64) float64 {
	weeks := math.Floor(clock / float64(weekLength))
	in := clock - float64(weeks*float64(weekLength))
	i := min(sort.Search(slotsOfWeek, func(i int) bool { return c.sums[i] > in }), slotsOfWeek-1)
	begin, length := c.slot(i)
	share := 0.0
	if length > 0 {
		share = max(0, min((in-begin)/length, 1))
	}
	return float64(weeks*float64(weekLength)) + float64((float64(i)+share)*float64(slotLength))
}

// time answers the instant at which the first clock shows so much, to the millisecond.
func (c *cycle) time(clock float64) cluster.Time { return weekStart + cluster.Time(c.at(clock)) }

// between answers how far the first clock goes from one time to another.
func (c *cycle) between(from, to cluster.Time) float64 { return c.clock(to) - c.clock(from) }

// even is a cycle without ups and downs.
func even() (slots [slotsOfDay]float64) {
	for i := range slots {
		slots[i] = 1
	}
	return slots
}

// allDays are days that are alike; workingDays have a quiet weekend.
var (
	allDays     = [7]float64{1, 1, 1, 1, 1, 1, 1}
	workingDays = [7]float64{1, 1, 1, 1, 1, weekendShare, weekendShare}
)

// weekendShare is what comes on a day of the weekend, of what comes on a working day.
const weekendShare = 0.35

// office is a day with a peak before and one after noon.
func office() (slots [slotsOfDay]float64) {
	for i := range slots {
		switch hour := i / 2; {
		case hour < 7:
			slots[i] = 0.25
		case hour < 9 || hour >= 20:
			slots[i] = 0.6
		case hour == 12 || hour >= 18:
			slots[i] = 1.2
		default:
			slots[i] = 2.2
		}
	}
	return slots
}
