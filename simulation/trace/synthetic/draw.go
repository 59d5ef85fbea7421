package synthetic

import (
	"math"
	"sort"
)

// purpose is what something is drawn for; draws for one purpose tell nothing of those for another.
type purpose uint64

const (
	forGap purpose = iota + 1
	forOtherGap
	forSubmission
	forSize
	forRun
	forLimit
	forSpacing
	forUser
	forPeople
	forHabit
	forShapes
)

// seed makes the streams of one trace.
type seed uint64

// stream is numbers drawn for one purpose of one thing.
type stream uint64

const golden = 0x9e3779b97f4a7c15

// mix scatters the bits of x; no two x have the same answer.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// of answers the stream of the thing with that number.
func (s seed) of(p purpose, number int64) stream {
	return stream(mix(mix(mix(uint64(s))+uint64(p)*golden) + uint64(number)*0xd1342543de82ef95))
}

func (s *stream) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// uniform answers a number between 0 and 1, which it never is.
func (s *stream) uniform() float64 { return float64((float64(s.next()>>12) + 0.5) * (1.0 / (1 << 52))) }

// below answers a whole number from 0 to n-1.
func (s *stream) below(n int64) int64 { return int64(float64(s.uniform() * float64(n))) }

// exponential answers a number of mean 1.
func (s *stream) exponential() float64 { return -log(s.uniform()) }

// normal answers a number of mean 0 and variance 1.
func (s *stream) normal() float64 {
	for {
		x, y := float64(2*s.uniform())-1, float64(2*s.uniform())-1
		if square := float64(x*x) + float64(y*y); square < 1 {
			return float64(x * math.Sqrt(-2*log(square)/square))
		}
	}
}

// gamma answers a number of a gamma distribution, whose mean is shape times scale; the shape
// is 1 or more. Marsaglia and Tsang's way: a cube of a normal, taken or refused.
func (s *stream) gamma(shape, scale float64) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(float64(v*v) * v)
		u, square := s.uniform(), float64(x*x)
		if u < 1-float64(0.0331*float64(square*square)) ||
			log(u) < float64(0.5*square)+float64(d*(1-v+log(v))) {
			return float64(float64(d*v) * scale)
		}
	}
}

// lognormal answers a number of that median; two of three are less than spread times
// larger or smaller.
func (s *stream) lognormal(median, spread float64) float64 {
	return float64(median * exp(float64(s.normal()*log(spread))))
}

// geometric answers a whole number from 1 on, of that mean.
func (s *stream) geometric(mean float64) int64 {
	if mean <= 1 {
		return 1
	}
	return 1 + int64(log(s.uniform())/log(1-1/mean))
}

// urn is things of different weights, of which some are drawn more often.
type urn []float64 // the sums of the weights up to each

func newUrn(weights []float64) urn {
	u, sum := make(urn, len(weights)), 0.0
	for i, w := range weights {
		sum += w
		u[i] = sum
	}
	return u
}

// draw answers the number of a thing.
func (u urn) draw(s *stream) int {
	at := s.uniform() * u[len(u)-1]
	return min(sort.Search(len(u), func(i int) bool { return u[i] > at }), len(u)-1)
}

// people is an urn of n users: few of them do much, many a little.
func people(n int64) urn {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1 / (float64(i) + 1)
	}
	return newUrn(weights)
}
