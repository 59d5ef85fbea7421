package synthetic

import (
	"testing"

	"xce.internal/elastic/cluster"
)

func TestGapsAndRunTimesOfPoissonAreExponential(t *testing.T) {
	made := generate(t, Options{Kind: Poisson, Seed: 5, Jobs: 200_000, Rate: 30, Run: 20 * cluster.Minute})
	var gaps, gapSquares, runs, runSquares, products sample
	last := defaultStart
	for _, j := range made.Jobs {
		gap, run := float64(j.Submit.Sub(last))/120_000, float64(j.Run)/1_200_000
		gaps, gapSquares = append(gaps, gap), append(gapSquares, gap*gap)
		runs, runSquares = append(runs, run), append(runSquares, run*run)
		products = append(products, (gap-1)*(run-1))
		last = j.Submit
	}
	gaps.hasMean(t, "gaps", 1, 1e-4)
	gapSquares.hasMean(t, "squares of gaps", 2, 1e-4)
	runs.hasMean(t, "run times", 1, 1e-4)
	runSquares.hasMean(t, "squares of run times", 2, 1e-4)
	products.hasMean(t, "the correlation of both", 0, 0)
	over := 0
	for _, g := range gaps {
		if g > 3 {
			over++
		}
	}
	hasShare(t, "gaps over three times the mean", over, len(gaps), 0.049787)
}

func TestTheLoadSetsTheRateOfPoisson(t *testing.T) {
	made := generate(t, Options{Kind: Poisson, Seed: 5, Jobs: 100_000, Load: 0.5, Processors: 8, Run: cluster.Hour})
	var gaps sample
	for i := 1; i < len(made.Jobs); i++ {
		gaps = append(gaps, float64(made.Jobs[i].Submit.Sub(made.Jobs[i-1].Submit)))
	}
	gaps.hasMean(t, "gaps", 3_600_000/4, 1e-4)
}

func TestJobsOfPoissonComeTogetherOnRequest(t *testing.T) {
	made := generate(t, Options{Kind: Poisson, Seed: 5, Jobs: 100_000, Rate: 60, Together: 10})
	alone := 0
	for i := 1; i < len(made.Jobs); i++ {
		if made.Jobs[i].Submit > made.Jobs[i-1].Submit {
			alone++
		}
	}
	hasShare(t, "jobs that do not come with the one before", alone, len(made.Jobs)-1, 0.1)
	hours := float64(made.Jobs[len(made.Jobs)-1].Submit.Sub(defaultStart)) / float64(cluster.Hour)
	if rate := 100_000 / hours; rate < 57 || rate > 63 {
		t.Errorf("%.1f jobs come per hour, and 60 are expected", rate)
	}
}
