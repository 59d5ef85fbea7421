package model

import (
	"hash/fnv"
	"math/rand/v2"

	"xce.internal/elastic/cluster"
)

// Chance is where numbers come from: a seed. The zero value is a seed too.
type Chance uint64

// draw answers a source of numbers for one purpose.
func (c Chance) draw(purpose ...string) *rand.PCG {
	sum := fnv.New64a()
	for _, p := range purpose {
		_, _ = sum.Write([]byte(p))
		_, _ = sum.Write([]byte{0})
	}
	return rand.NewPCG(uint64(c), sum.Sum64())
}

// percent is true in so many of a hundred cases.
func (c Chance) percent(n int64, purpose ...string) bool {
	return n > 0 && rand.New(c.draw(purpose...)).Int64N(100) < n
}

// exponential answers a length of time with a mean: how long it takes until something happens that
// may happen at any moment. Drawn by comparisons only (von Neumann's method), it needs no logarithm.
func (c Chance) exponential(mean cluster.Duration, purpose ...string) cluster.Duration {
	source := c.draw(purpose...)
	for whole := int64(0); ; whole++ {
		first := source.Uint64() >> 11
		last, falling := first, 1
		for {
			next := source.Uint64() >> 11
			if next > last {
				break
			}
			last, falling = next, falling+1
		}
		if falling%2 == 1 {
			return mean*cluster.Duration(whole) + scaled(mean, first)
		}
	}
}

// scaled answers a fraction (of 2^53) of a length of time.
func scaled(d cluster.Duration, fraction uint64) cluster.Duration {
	return cluster.Duration(float64(float64(d)*float64(fraction)) / (1 << 53))
}

// normal answers a number about 0 with deviation 1: the sum of twelve even ones, which is enough
// for delays and needs no table.
func normal(source *rand.PCG) float64 {
	var sum float64
	for range 12 {
		sum += float64(source.Uint64()>>11) / (1 << 53)
	}
	return sum - 6
}

// exp is the exponential function, by halving and a series of a fixed order.
func exp(x float64) float64 {
	const halvings = 10
	x /= 1 << halvings
	term, sum := 1.0, 1.0
	for n := 1; n <= 12; n++ {
		term = float64(term*x) / float64(n)
		sum += term
	}
	for range halvings {
		sum = float64(sum * sum)
	}
	return sum
}

// ln is the natural logarithm of a number of at least 1, by halving and a series.
func ln(x float64) float64 {
	const ln2 = 0.693147180559945309417232121458176568
	var halvings float64
	for x > 1.5 {
		x, halvings = x/2, halvings+1
	}
	y := (x - 1) / (x + 1)
	square, term, sum := float64(y*y), y, 0.0
	for n := 1; n < 60; n += 2 {
		sum += term / float64(n)
		term = float64(term * square)
	}
	return float64(halvings*ln2) + float64(2*sum)
}

// Delay is how long something takes: always the same (Fixed), evenly between Min and Max, or about
// Median with one in twenty beyond P95 (log-normal, kept within Min and Max where they are given).
type Delay struct {
	Fixed  cluster.Duration `json:"fixed,omitempty"`
	Min    cluster.Duration `json:"min,omitempty"`
	Max    cluster.Duration `json:"max,omitempty"`
	Median cluster.Duration `json:"median,omitempty"`
	P95    cluster.Duration `json:"p95,omitempty"`
}

// Typical is what the delay is in the middle.
func (d Delay) Typical() cluster.Duration {
	switch {
	case d.Fixed > 0:
		return d.Fixed
	case d.Median > 0:
		return d.Median
	}
	return (d.Min + d.Max) / 2
}

// z95 is how many deviations the 95th percentile is from the middle.
const z95 = 1.6448536269514722

func (d Delay) drawn(c Chance, purpose ...string) cluster.Duration {
	switch {
	case d.Fixed > 0:
		return d.Fixed
	case d.Median > 0:
		deviation := ln(float64(max(d.P95, d.Median))/float64(d.Median)) / z95
		length := cluster.Duration(float64(float64(d.Median) * exp(float64(deviation*normal(c.draw(purpose...))))))
		length = max(length, d.Min)
		if d.Max > 0 {
			length = min(length, d.Max)
		}
		return length
	case d.Max > d.Min:
		return d.Min + cluster.Duration(rand.New(c.draw(purpose...)).Int64N(int64(d.Max-d.Min)+1))
	}
	return d.Min
}

func (d Delay) validate(ps *cluster.Problems, at string) {
	add := func(key, what, remedy string) {
		*ps = append(*ps, cluster.Problem{Path: at + "." + key, What: what, Remedy: remedy})
	}
	for _, length := range []struct {
		key string
		d   cluster.Duration
	}{{"fixed", d.Fixed}, {"min", d.Min}, {"max", d.Max}, {"median", d.Median}, {"p95", d.P95}} {
		if length.d < 0 {
			add(length.key, length.d.String()+" is negative", "write a length of time such as 90s")
		}
	}
	switch {
	case d.Fixed != 0 && d != Delay{Fixed: d.Fixed}:
		add("fixed", "something else is given as well", "keep fixed alone, or min and max, or median and p95")
	case d.P95 > 0 && d.P95 < d.Median || d.P95 > 0 && d.Median == 0:
		add("p95", "it is less than the median", "write at least the median, or leave it out")
	case d.Max > 0 && d.Max < d.Min:
		add("max", "it is less than min", "write at least min")
	}
}
