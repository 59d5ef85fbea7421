package synthetic

import "math"

// The functions here give the same bits on every machine. A product that goes into a
// sum is converted explicitly, since a compiler may fuse the two otherwise.

// The logarithm of 2, the high part with so few bits that its product with an exponent is exact.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// expTerms are 1/n! for n from 13 down to 0.
var expTerms = [...]float64{
	1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
	1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1,
}

// exp answers e to the power of x, to about one unit in the last place, for x between -700 and 700.
func exp(x float64) float64 {
	x = max(-700, min(x, 700))
	n := math.Floor(float64(x/math.Ln2) + 0.5)
	r := x - float64(n*ln2High)
	r -= float64(n * ln2Low)
	sum := 0.0
	for _, term := range expTerms {
		sum = float64(sum*r) + term
	}
	return sum * math.Float64frombits(uint64(int64(n)+1023)<<52)
}

// logTerms are 1/(2n+1) for n from 11 down to 0.
var logTerms = [...]float64{
	1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1,
}

// log answers the natural logarithm of a positive number that is not denormal, to a few units in the last place.
func log(x float64) float64 {
	bits := math.Float64bits(x)
	exponent := int64(bits>>52) - 1023
	m := math.Float64frombits(bits&(1<<52-1) | 1023<<52) // from 1 to below 2
	if m > math.Sqrt2 {
		m, exponent = m/2, exponent+1
	}
	s := (m - 1) / (m + 1)
	square, sum := float64(s*s), 0.0
	for _, term := range logTerms {
		sum = float64(sum*square) + term
	}
	n := float64(exponent)
	return float64(n*ln2High) + (float64(2*s*sum) + float64(n*ln2Low))
}

// pow2 answers 2 to the power of x.
func pow2(x float64) float64 { return exp(float64(x * math.Ln2)) }

// log2 answers the logarithm to base 2.
func log2(x float64) float64 { return log(x) / math.Ln2 }

// round answers the nearest whole number.
func round(x float64) float64 { return math.Floor(float64(x) + 0.5) }
