package report

import (
	"cmp"
	"math/bits"
	"slices"

	"xce.internal/elastic/simulation"
)

// A curve says how many of some numbers are at most so large. Counting them in buckets that grow with the
// numbers takes no sorting; at the buckets' ends the curve is exact.

// floor is where the axis of a curve begins: a second, or a slowdown of 1.
const floor = 1000

// bucketBits is how many leading bits of a number tell its bucket: buckets are at most 1/32 wide.
const bucketBits = 5

func bucketOf(v int64) int {
	if v < 1<<bucketBits {
		return int(max(v, 0))
	}
	e := bits.Len64(uint64(v)) - bucketBits - 1
	return (e+1)<<bucketBits | int(v>>e)&(1<<bucketBits-1)
}

// bucketEnd answers the largest number in a bucket.
func bucketEnd(b int) int64 {
	if b < 1<<bucketBits {
		return int64(b)
	}
	e := b>>bucketBits - 1
	return (int64(b)&(1<<bucketBits-1)|1<<bucketBits+1)<<e - 1
}

// curve is the points of one: so many numbers are at most X.
type curve struct {
	group int
	name  string
	count int64
	x, y  []int64
}

// curveOf counts numbers into a curve.
func curveOf(name string, values []int64) curve {
	c := curve{name: name, count: int64(len(values))}
	var counts [64 << bucketBits]int64
	low := int64(0)
	for _, v := range values {
		if v <= floor {
			low++
		} else {
			counts[bucketOf(v)]++
		}
	}
	c.x, c.y = []int64{floor}, []int64{low}
	sum := low
	for b, n := range counts {
		if n > 0 {
			sum += n
			c.x, c.y = append(c.x, bucketEnd(b)), append(c.y, sum)
		}
	}
	return c
}

// mostCurves is how many curves a chart has; the groups with the fewest jobs share the last.
const mostCurves = 7

// curvesOf answers the curves of the largest groups, in the groups' order.
func curvesOf(r *simulation.Result, d division, m measure, names func(string) string, buffer []int64) []curve {
	d = d.largest(mostCurves)
	curves := []curve{}
	for g, part := range d.parts(r, m, buffer) {
		if len(part) > 0 {
			c := curveOf(names(d.names[g]), part)
			c.group = g
			curves = append(curves, c)
		}
	}
	return curves
}

// others is the name of the groups that are put together.
const others = "all others"

// largest puts all but the largest groups together.
func (d division) largest(most int) division {
	if len(d.names) <= most {
		return d
	}
	counts := make([]int, len(d.names))
	for _, g := range d.of {
		counts[g]++
	}
	order := make([]int, len(d.names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	kept := slices.Sorted(slices.Values(order[:most-1]))
	few := division{of: make([]int32, len(d.of))}
	place := make([]int32, len(d.names))
	for i := range place {
		place[i] = int32(most - 1)
	}
	for to, from := range kept {
		few.names = append(few.names, d.names[from])
		place[from] = int32(to)
	}
	few.names = append(few.names, others)
	for i, g := range d.of {
		few.of[i] = place[g]
	}
	return few
}
