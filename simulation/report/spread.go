package report

import (
	"math/bits"
	"slices"
)

// Spread is how some whole numbers are spread. Quantiles are values that occur: the smallest that at
// least so much of the numbers does not exceed. The mean is rounded to the nearest.
type Spread struct {
	Count  int64 `json:"count"`
	Sum    int64 `json:"sum"`
	Mean   int64 `json:"mean"`
	Median int64 `json:"median"`
	P95    int64 `json:"p95"`
	P99    int64 `json:"p99"`
	Max    int64 `json:"max"`
}

// spreadOf answers the spread of values, whose order it changes.
func spreadOf(values []int64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	s := Spread{Count: int64(n), Max: values[0]}
	for _, v := range values {
		s.Sum += v
		s.Max = max(s.Max, v)
	}
	s.Mean = ratio(s.Sum, 1, s.Count)
	s.Median = choose(values, rank(n, 50))
	low := rank(n, 50) // what is below is no larger, and needs no second look
	s.P95 = choose(values[low:], rank(n, 95)-low)
	low = rank(n, 95)
	s.P99 = choose(values[low:], rank(n, 99)-low)
	return s
}

// rank is the place of a quantile among n sorted numbers.
func rank(n, percent int) int { return (n*percent+99)/100 - 1 }

// choose answers the k-th smallest of values, from 0, and moves what is smaller before it and what is
// larger behind it. Most lists have many equal numbers, such as waits of 0, so those in the middle are
// set apart.
func choose(values []int64, k int) int64 {
	for rounds := 2 * bits.Len(uint(len(values))); len(values) > 32 && rounds > 0; rounds-- {
		less, more := partition(values, pivot(values))
		switch {
		case k < less:
			values = values[:less]
		case k < more:
			return values[k]
		default:
			values, k = values[more:], k-more
		}
	}
	slices.Sort(values) // few are left, or the pivots were bad
	return values[k]
}

// pivot is a number from about the middle.
func pivot(values []int64) int64 {
	step := len(values) / 9
	var some [9]int64
	for i := range some {
		some[i] = values[i*step+step/2]
	}
	slices.Sort(some[:])
	return some[4]
}

// partition moves what is smaller than the pivot to the front and what is larger to the back, and
// answers where the equal ones begin and end.
func partition(values []int64, pivot int64) (less, more int) {
	more = len(values)
	for i := 0; i < more; {
		switch v := values[i]; {
		case v < pivot:
			values[i], values[less] = values[less], v
			less++
			i++
		case v > pivot:
			more--
			values[i], values[more] = values[more], v
		default:
			i++
		}
	}
	return less, more
}
