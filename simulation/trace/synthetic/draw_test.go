package synthetic

import (
	"math"
	"testing"
)

func TestExponentialsAndLogarithmsAreThoseOfMathematics(t *testing.T) {
	draw := seed(1).of(forRun, 1)
	for range 100_000 {
		x := (draw.uniform() - 0.5) * 1400
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 4e-16*want {
			t.Fatalf("exp(%g) is %g, and %g is right", x, got, want)
		}
		y := math.Exp(x)
		if got, want := log(y), math.Log(y); math.Abs(got-want) > 4e-16*max(1, math.Abs(want)) {
			t.Fatalf("log(%g) is %g, and %g is right", y, got, want)
		}
	}
	if log(1) != 0 || exp(0) != 1 || math.Abs(pow2(7)-128) > 1e-12 || log2(8192) != 13 {
		t.Errorf("log(1) %g, exp(0) %g, 2^7 %g, log2(8192) %g", log(1), exp(0), pow2(7), log2(8192))
	}
}

func TestDrawsHaveTheMomentsOfTheirDistributions(t *testing.T) {
	for _, c := range []struct {
		what           string
		draw           func(s *stream) float64
		mean, variance float64
	}{
		{"uniform", func(s *stream) float64 { return s.uniform() }, 0.5, 1.0 / 12},
		{"exponential", func(s *stream) float64 { return s.exponential() }, 1, 1},
		{"normal", func(s *stream) float64 { return s.normal() }, 0, 1},
		{"gamma 1", func(s *stream) float64 { return s.gamma(1, 3) }, 3, 9},
		{"gamma 4.2", func(s *stream) float64 { return s.gamma(4.2, 0.94) }, 4.2 * 0.94, 4.2 * 0.94 * 0.94},
		{"gamma 639.1", func(s *stream) float64 { return s.gamma(639.1, 0.0156) }, 639.1 * 0.0156, 639.1 * 0.0156 * 0.0156},
		{"lognormal", func(s *stream) float64 { return math.Log(s.lognormal(10, 2)) }, math.Log(10), math.Log(2) * math.Log(2)},
		{"geometric", func(s *stream) float64 { return float64(s.geometric(40)) }, 40, 40 * 39},
		{"below", func(s *stream) float64 { return float64(s.below(7)) }, 3, 4},
	} {
		var drawn, squares sample
		for i := range int64(200_000) {
			draw := seed(7).of(forRun, i)
			x := c.draw(&draw)
			drawn, squares = append(drawn, x), append(squares, (x-c.mean)*(x-c.mean))
		}
		drawn.hasMean(t, c.what, c.mean, 0)
		squares.hasMean(t, c.what+", variance", c.variance, 0)
	}
}

func TestStreamsOfOtherSeedsPurposesAndNumbersTellNothingOfEachOther(t *testing.T) {
	var products [3]sample
	for i := range int64(100_000) {
		a, b, c, d := seed(1).of(forRun, i), seed(2).of(forRun, i), seed(1).of(forLimit, i), seed(1).of(forRun, i+1)
		x := a.uniform() - 0.5
		for k, other := range []*stream{&b, &c, &d} {
			products[k] = append(products[k], x*(other.uniform()-0.5))
		}
	}
	for k, what := range []string{"seeds", "purposes", "numbers"} {
		products[k].hasMean(t, "the correlation of "+what, 0, 0)
	}
}

func TestAnUrnGivesEachThingAsOftenAsItsWeightSays(t *testing.T) {
	u, hits := newUrn([]float64{1, 0, 3, 6}), [4]int{}
	for i := range int64(100_000) {
		draw := seed(3).of(forUser, i)
		hits[u.draw(&draw)]++
	}
	for i, want := range []float64{0.1, 0, 0.3, 0.6} {
		hasShare(t, "things", hits[i], 100_000, want)
	}
}
