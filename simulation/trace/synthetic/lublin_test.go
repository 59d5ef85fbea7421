package synthetic

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// classesOf128 are all published classes, for the machine they are published for.
func classesOf128() []LublinClass {
	return []LublinClass{LublinBatch(128), LublinInteractive(128), LublinWhole(128)}
}

// oneClass answers many jobs of a class.
func oneClass(t testing.TB, c LublinClass, rhythm Rhythm) *trace.Trace {
	return generate(t, Options{Kind: Lublin, Seed: 11, Jobs: 100_000, Classes: []LublinClass{c}, Rhythm: rhythm})
}

func TestTheSharesOfSerialJobsAndPowersOfTwoAreThoseOfTheModel(t *testing.T) {
	for _, c := range classesOf128() {
		serial, powers, jobs := 0, 0, oneClass(t, c, Day).Jobs
		for i := range jobs {
			switch size := jobs[i].Shape.CPUs; {
			case size == 1:
				serial++
			case bits.OnesCount64(uint64(size)) == 1:
				powers++
			}
		}
		// What is not rounded to a power of two is one by chance, where 2^x is within a half of it; what
		// is below 1.5 processors is serial.
		other := 1 - c.Serial - c.Power2
		one := c.Power2*c.below(0.5) + other*c.below(math.Log2(1.5))
		byChance := 0.0
		for n := 2.0; n <= 128; n *= 2 {
			byChance += c.below(math.Log2(n+0.5)) - c.below(math.Log2(n-0.5))
		}
		hasShare(t, c.Name+": serial", serial, len(jobs), c.Serial+one)
		hasShare(t, c.Name+": powers of two", powers, len(jobs), c.Power2*(1-c.below(0.5))+other*byChance)
	}
}

// below answers the probability that the log2 of a size is less, before it is rounded.
func (c LublinClass) below(x float64) float64 {
	share := func(from, to float64) float64 { return max(0, min((x-from)/(to-from), 1)) }
	return c.MediumShare*share(c.Low, c.Medium) + (1-c.MediumShare)*share(c.Medium, c.High)
}

func TestTheMeanLogarithmOfSizesIsThatOfTwoUniforms(t *testing.T) {
	for _, c := range classesOf128() {
		c.Serial, c.Power2 = 0, 0 // nothing is rounded to powers of two
		var logs sample
		for _, j := range oneClass(t, c, Day).Jobs {
			logs = append(logs, math.Log2(float64(j.Shape.CPUs)))
		}
		want := (c.MediumShare*c.Low + c.Medium + (1-c.MediumShare)*c.High) / 2
		logs.hasMean(t, c.Name, want, 0.01) // whole processors
	}
}

func TestRunTimesAreThoseOfTheHyperGammaForTheirSize(t *testing.T) {
	for _, c := range classesOf128() {
		logs := map[int64]sample{}
		for _, j := range oneClass(t, c, Day).Jobs {
			if j.Run > longestRunOf(c) {
				t.Fatalf("%s: a job runs %s", c.Name, j.Run)
			}
			if j.Run >= 20*cluster.Second { // shorter ones are too coarse for logarithms
				logs[j.Shape.CPUs] = append(logs[j.Shape.CPUs], math.Log(float64(j.Run)/1000))
			}
		}
		for _, size := range []int64{1, 4, 16, 32} {
			p := c.MixSlope*float64(size) + c.Mix
			coarse := math.Log(19.5)
			weight := func(g Gamma) float64 { return 1 - g.expectation(step(coarse), longestLogRun) }
			mean := func(g Gamma) float64 {
				return g.expectation(func(x float64) float64 { return x * (1 - step(coarse)(x)) }, longestLogRun)
			}
			want := (p*mean(c.Short) + (1-p)*mean(c.Long)) / (p*weight(c.Short) + (1-p)*weight(c.Long))
			if len(logs[size]) < 500 {
				t.Fatalf("%s: only %d jobs have %d processors", c.Name, len(logs[size]), size)
			}
			logs[size].hasMean(t, c.Name, want, 0.001)
		}
	}
}

func longestRunOf(LublinClass) cluster.Duration {
	return cluster.Duration(math.Ceil(math.Exp(longestLogRun))) * cluster.Second
}

// step is 1 below at, and 0 from there on.
func step(at float64) func(float64) float64 {
	return func(x float64) float64 {
		if x < at {
			return 1
		}
		return 0
	}
}

func TestLargeJobsRunLonger(t *testing.T) {
	for _, c := range classesOf128() {
		small, large := c, c
		small.Serial, large.Serial, large.Low, large.Medium = 1, 0, 5, 5
		var shorter, longer sample
		for _, j := range oneClass(t, small, Day).Jobs {
			shorter = append(shorter, math.Log(float64(j.Run)))
		}
		for _, j := range oneClass(t, large, Day).Jobs {
			longer = append(longer, math.Log(float64(j.Run)))
		}
		if !(longer.mean() > shorter.mean()+0.1) {
			t.Errorf("%s: the mean logarithms are %g and %g", c.Name, shorter.mean(), longer.mean())
		}
	}
}

func TestGapsAreExponentialsOfTheGamma(t *testing.T) {
	for _, c := range classesOf128() {
		jobs := oneClass(t, c, Even).Jobs
		var gaps sample
		for i := 1; i < len(jobs); i++ {
			gaps = append(gaps, float64(jobs[i].Submit-jobs[i-1].Submit)/1000)
		}
		gaps.hasMean(t, c.Name, c.Gap.expectation(math.Exp, longestLogGap), 0)
	}
}

func TestADayHasTheHoursOfTheModel(t *testing.T) {
	for _, c := range classesOf128() {
		jobs := oneClass(t, c, Day).Jobs
		var got [slotsOfDay]float64
		for _, j := range jobs {
			got[slotOf(j.Submit)] += 1 / float64(len(jobs))
		}
		want, distance := share(c), 0.0
		for i := range want {
			distance += math.Abs(got[i]-want[i]) / 2
		}
		// Gaps that are so different make some slots fuller by chance.
		if distance > 0.05 {
			t.Errorf("%s: %.1f %% of the jobs come at another hour than the model says: %.3f, and not %.3f", c.Name, 100*distance, got, want)
		}
		if peak := top(want); peak < 22 || peak > 30 {
			t.Errorf("%s: most jobs come in half hour %d of the day", c.Name, peak)
		}
		for i := 6; i < 10; i++ { // 3 to 5 o'clock
			if want[i] > want[top(want)]/4 {
				t.Errorf("%s: half hour %d has %.3f of the jobs", c.Name, i, want[i])
			}
		}
	}
}

func slotOf(at cluster.Time) int {
	return int((at - weekStart) % cluster.Time(dayLength) / cluster.Time(slotLength))
}

// share answers which share of a day's jobs each half hour has, by the density itself.
func share(c LublinClass) (slots [slotsOfDay]float64) {
	sum := 0.0
	for n := 11; n < 11+slotsOfDay; n++ {
		part := c.Hours.expectation(func(x float64) float64 { return step(float64(n)+0.5)(x) - step(float64(n)-0.5)(x) }, 500)
		slots[(n-1)%slotsOfDay] = part
		sum += part
	}
	for i := range slots {
		slots[i] /= sum
	}
	return slots
}

func top(slots [slotsOfDay]float64) (best int) {
	for i := range slots {
		if slots[i] > slots[best] {
			best = i
		}
	}
	return best
}

func TestAWeekendIsQuietWhereTheRhythmIsAWeek(t *testing.T) {
	jobs := oneClass(t, LublinBatch(128), Week).Jobs
	weekend := 0
	for _, j := range jobs {
		if int64(j.Submit-weekStart)%int64(weekLength) >= 5*int64(dayLength) {
			weekend++
		}
	}
	want := 2 * weekendShare / (5 + 2*weekendShare)
	if got := float64(weekend) / float64(len(jobs)); math.Abs(got-want) > 0.02 {
		t.Errorf("%.3f of the jobs come at weekends, and %.3f is expected", got, want)
	}
}

func TestBothClassesComeAsOftenAsEachWouldAlone(t *testing.T) {
	counts := map[string]float64{}
	made := generate(t, Options{Kind: Lublin, Seed: 3, Jobs: 100_000, Rhythm: Even})
	for _, j := range made.Jobs {
		counts[j.Shape.Queue]++
	}
	hours := float64(made.Jobs[len(made.Jobs)-1].Submit-defaultStart) / 1000
	for _, c := range []LublinClass{LublinBatch(128), LublinInteractive(128)} {
		gap, want := hours/counts[c.Name], c.Gap.expectation(math.Exp, longestLogGap)
		square := c.Gap.expectation(func(x float64) float64 { return math.Exp(2 * x) }, longestLogGap)
		if bound := deviations * math.Sqrt((square/want/want-1)/counts[c.Name]); math.Abs(gap/want-1) > bound {
			t.Errorf("a job of class %s comes every %g s, and every %g s is expected", c.Name, gap, want)
		}
	}
}

// The public trace was made by the model's authors' program, for 256 processors.
func TestJobsAreLikeThoseOfThePublishedTrace(t *testing.T) {
	file, err := os.Open("../../../../shared/traces/lublin_256.swf.gz")
	if err != nil {
		t.Skip("the public trace is not here")
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var theirs, ours character
	for lines := bufio.NewScanner(text); lines.Scan(); {
		var at, run, size int64
		if fields := strings.Fields(lines.Text()); len(fields) == 18 {
			if _, err := fmt.Sscan(fields[1]+" "+fields[3]+" "+fields[4], &at, &run, &size); err != nil {
				t.Fatal(err)
			}
			theirs.note(cluster.Time(at*1000), size, cluster.Duration(run*1000))
		}
	}
	made := generate(t, Options{Kind: Lublin, Seed: 1, Jobs: 10_000, Processors: 256, Classes: []LublinClass{LublinWhole(256)}})
	for _, j := range made.Jobs {
		ours.note(j.Submit-defaultStart, j.Shape.CPUs, j.Run)
	}
	theirs.alike(t, "size", theirs.sizes, ours.sizes)
	theirs.alike(t, "run time", theirs.runs, ours.runs)
	theirs.alike(t, "gap", theirs.gaps, ours.gaps)
	for i := range ours.quarters {
		// Theirs come some 40 minutes earlier; the description does not say to which time a half hour belongs.
		if a, b := theirs.quarters[i], ours.quarters[i]; math.Abs(a-b) > 0.06*float64(len(ours.sizes)) {
			t.Errorf("hours %d to %d: theirs are %g jobs, ours %g", i*6, i*6+6, a, b)
		}
	}
}

// character is what two traces are compared by: logarithms.
type character struct {
	sizes, runs, gaps sample
	quarters          [4]float64 // of the day
	last              cluster.Time
}

func (c *character) note(at cluster.Time, size int64, run cluster.Duration) {
	c.sizes, c.runs = append(c.sizes, math.Log2(float64(size))), append(c.runs, math.Log(max(float64(run)/1000, 1)))
	c.gaps = append(c.gaps, math.Log(max(float64(at-c.last)/1000, 1)))
	c.quarters[int64(at)/(6*int64(cluster.Hour))%4]++
	c.last = at
}

func (*character) alike(t *testing.T, what string, a, b sample) {
	t.Helper()
	bound := deviations * math.Sqrt(a.variance()/float64(len(a))+b.variance()/float64(len(b)))
	if math.Abs(a.mean()-b.mean()) > bound {
		t.Errorf("%s: the mean logarithm of theirs is %.3f, ours %.3f; %.3f is by chance", what, a.mean(), b.mean(), bound)
	}
	if ratio := b.variance() / a.variance(); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("%s: the variances are %.3f and %.3f", what, a.variance(), b.variance())
	}
}
