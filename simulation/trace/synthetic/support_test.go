package synthetic

import (
	"math"
	"testing"

	"xce.internal/elastic/simulation/trace"
)

// make answers the jobs of options that must be right.
func generate(t testing.TB, o Options) *trace.Trace {
	t.Helper()
	made, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// sample is numbers that were observed.
type sample []float64

func (s sample) mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}

func (s sample) variance() float64 {
	mean, sum := s.mean(), 0.0
	for _, x := range s {
		sum += (x - mean) * (x - mean)
	}
	return sum / float64(len(s)-1)
}

// deviations is how many standard errors a mean may be off. One sound test in 15,000 would be
// further off, and the seeds are fixed.
const deviations = 4

// hasMean demands a mean within the bounds of chance, and a relative slack for what is rounded.
func (s sample) hasMean(t *testing.T, what string, want, slack float64) {
	t.Helper()
	bound := deviations*math.Sqrt(s.variance()/float64(len(s))) + slack*math.Abs(want)
	if got := s.mean(); !(math.Abs(got-want) <= bound) {
		t.Errorf("%s: the mean of %d is %g, and %g±%g is expected", what, len(s), got, want, bound)
	}
}

// hasShare demands a share within the bounds of chance.
func hasShare(t *testing.T, what string, hits, of int, want float64) {
	t.Helper()
	got, bound := float64(hits)/float64(of), deviations*math.Sqrt(want*(1-want)/float64(of))
	if !(math.Abs(got-want) <= bound) {
		t.Errorf("%s: %d of %d are %.4f, and %.4f±%.4f is expected", what, hits, of, got, want, bound)
	}
}

// integral answers that of f from a to b.
func integral(f func(float64) float64, a, b float64) float64 {
	const parts = 20_000
	sum := 0.0
	for i := range parts {
		sum += f(a + (b-a)*(float64(i)+0.5)/parts)
	}
	return sum * (b - a) / parts
}

// expectation answers the mean of f of a gamma that is cut off.
func (g Gamma) expectation(f func(float64) float64, longest float64) float64 {
	normal, _ := math.Lgamma(g.Shape)
	density := func(x float64) float64 {
		return math.Exp((g.Shape-1)*math.Log(x) - x/g.Scale - normal - g.Shape*math.Log(g.Scale))
	}
	return integral(func(x float64) float64 { return f(x) * density(x) }, 0, longest) / integral(density, 0, longest)
}
