package synthetic

import "fmt"

// Gamma is a gamma distribution of mean Shape times Scale.
type Gamma struct{ Shape, Scale float64 }

// LublinClass is the parameters of one class of jobs of the Lublin-Feitelson model.
type LublinClass struct {
	Name string
	// Serial is the share of jobs of one processor. Power2 is that of those
	// others whose size is rounded to a power of two.
	Serial, Power2 float64
	// The log2 of the other sizes is uniform from Low to Medium for a share of MediumShare of
	// them, and uniform from Medium to High for the rest.
	Low, Medium, High, MediumShare float64
	// The logarithm of the run time in seconds is of Short with the probability
	// Mix + MixSlope times the size, else of Long.
	Short, Long   Gamma
	Mix, MixSlope float64
	// The logarithm of the gap between arrivals in seconds is of Gap.
	Gap Gamma
	// Hours is how the arrivals are distributed over the 48 half hours of a day, which are counted from 1
	// and begin with the 11th, at 5 o'clock.
	Hours Gamma
}

// LublinBatch and LublinInteractive are the classes that were fitted to jobs of the two
// types, LublinWhole the one that was fitted to all together; for a machine of so many
// processors. The published ones are for 128, from which the sizes are moved.
func LublinBatch(processors int64) LublinClass {
	most := log2(float64(processors))
	return LublinClass{
		Name: "batch", Serial: 0.2927, Power2: 0.6686, Low: 1.2, Medium: most - 2, High: most, MediumShare: 0.875,
		Short: Gamma{6.57, 0.823}, Long: Gamma{639.1, 0.0156}, Mix: 0.6986, MixSlope: -0.003,
		Gap: Gamma{6.0415 * 1.0519, 0.8531}, Hours: Gamma{6.1271, 5.2740},
	}.sized()
}

// LublinInteractive is as [LublinBatch] says.
func LublinInteractive(processors int64) LublinClass {
	most := log2(float64(processors)) - 1.5
	return LublinClass{
		Name: "interactive", Serial: 0.1541, Power2: 0.625, Low: 1, Medium: most - 2.5, High: most, MediumShare: 0.705,
		Short: Gamma{3.8351, 0.6605}, Long: Gamma{7.073, 0.6856}, Mix: 0.9156, MixSlope: -0.0118,
		Gap: Gamma{6.5510 * 0.9797, 0.6621}, Hours: Gamma{8.9186, 3.6680},
	}.sized()
}

// LublinWhole is as [LublinBatch] says.
func LublinWhole(processors int64) LublinClass {
	most := log2(float64(processors))
	return LublinClass{
		Name: "whole", Serial: 0.244, Power2: 0.576, Low: 0.8, Medium: most - 2.5, High: most, MediumShare: 0.86,
		Short: Gamma{4.2, 0.94}, Long: Gamma{312, 0.03}, Mix: 0.78, MixSlope: -0.0054,
		Gap: Gamma{10.2303 * 1.0225, 0.4871}, Hours: Gamma{8.1737, 3.9631},
	}.sized()
}

// sized keeps the sizes in order on machines that are too small for the published ones.
func (c LublinClass) sized() LublinClass {
	c.High = max(c.High, 0)
	c.Low = min(c.Low, c.High)
	c.Medium = max(c.Medium, c.Low)
	return c
}

// The logarithms beyond which run times (two days) and gaps (five days) are drawn anew.
const (
	longestLogRun = 12
	longestLogGap = 13
)

func (c LublinClass) validate(ps *problems, at string) {
	gamma := func(name string, g Gamma, longest float64) {
		ps.number(at+"."+name+".shape", g.Shape, 1, 10_000)
		ps.number(at+"."+name+".scale", g.Scale, 1e-6, 1000)
		if g.Shape*g.Scale > longest {
			ps.add(at+"."+name, fmt.Sprintf("the mean is over %s, and what is over it is drawn anew", number(longest)), "make the shape or the scale smaller")
		}
	}
	ps.name(at+".name", c.Name)
	ps.number(at+".serial", c.Serial, 0, 1)
	ps.number(at+".power2", c.Power2, 0, 1)
	ps.number(at+".medium_share", c.MediumShare, 0, 1)
	ps.number(at+".low", c.Low, 0, 30)
	ps.number(at+".medium", c.Medium, c.Low, 30)
	ps.number(at+".high", c.High, c.Medium, 30)
	ps.number(at+".mix", c.Mix, -10, 10)
	ps.number(at+".mix_slope", c.MixSlope, -10, 10)
	gamma("short", c.Short, longestLogRun)
	gamma("long", c.Long, longestLogRun)
	gamma("gap", c.Gap, longestLogGap)
	gamma("hours", c.Hours, 1000)
}

// slots answers how many arrivals each half hour has, but for a factor.
func (c LublinClass) slots() (slots [slotsOfDay]float64) {
	const first, parts = 11, 16
	for n := first; n < first+slotsOfDay; n++ {
		sum := 0.0
		for i := range parts {
			sum += c.Hours.density(float64(n) - 0.5 + float64((float64(i)+0.5)/parts))
		}
		slots[(n-1)%slotsOfDay] = sum
	}
	return slots
}

// density is that of the distribution, as a share of its highest.
func (g Gamma) density(x float64) float64 {
	top := max((g.Shape-1)*g.Scale, g.Scale)
	return exp(float64((g.Shape-1)*log(x/top)) - (x-top)/g.Scale)
}
