package simulation_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// erlangC is how likely a job has to wait for one of c servers under a load (in servers).
func erlangC(c int, load float64) float64 {
	term, sum := 1.0, 1.0
	for n := 1; n < c; n++ {
		term *= load / float64(n)
		sum += term
	}
	term *= load / float64(c) * float64(c) / (float64(c) - load)
	return term / (sum + term)
}

// markov is a stream of jobs for one cpu, or one token, each: arrivals and runs are exponential.
func markov(seed uint64, jobs int, servers, utilization float64, run cluster.Duration, shape *trace.Shape) *trace.Trace {
	source := rand.New(rand.NewPCG(seed, 7))
	tr := &trace.Trace{Source: "a Poisson stream"}
	now := usually
	between := float64(run) / (servers * utilization)
	for i := range jobs {
		now = now.Add(cluster.Duration(source.ExpFloat64() * between))
		runs := max(cluster.Duration(source.ExpFloat64()*float64(run)), 1)
		tr.Jobs = append(tr.Jobs, trace.Job{ID: int64(i) + 1, Submit: now, Run: runs, Waited: -1, Shape: shape})
	}
	return tr
}

func TestQueuesWaitAsTheirTheorySays(t *testing.T) {
	t.Parallel()
	const (
		jobs    = 60_000
		batches = 30
		run     = 10 * cluster.Minute
	)
	cases := []struct {
		servers     int
		utilization float64
	}{{1, 0.5}, {1, 0.8}, {4, 0.7}, {16, 0.85}, {64, 0.9}}
	for _, c := range cases {
		for _, of := range []string{"cpus", "tokens"} {
			t.Run(fmt.Sprintf("%d %s %.2f", c.servers, of, c.utilization), func(t *testing.T) {
				t.Parallel()
				farm, shape := oneQueue(of, int64(c.servers))
				tr := markov(uint64(c.servers), jobs, float64(c.servers), c.utilization, run, shape)
				r, err := simulation.Run(t.Context(), farm, tr, simulation.Options{})
				if err != nil {
					t.Fatal(err)
				}
				load := float64(c.servers) * c.utilization
				want := erlangC(c.servers, load) * float64(run) / (float64(c.servers) - load)
				mean, error := batchMeans(r, batches)
				t.Logf("waits %.1f s, by theory %.1f s, half width %.1f s", mean/1000, want/1000, error/1000)
				if math.Abs(mean-want) > error {
					t.Errorf("the mean wait is %.0f ms, by theory %.0f ms, more than %.0f ms off", mean, want, error)
				}
			})
		}
	}
}

// oneQueue is a farm on which so many jobs of a shape can run at once, for want of cpus or of tokens.
func oneQueue(of string, servers int64) (simulation.Farm, *trace.Shape) {
	farm := simulation.Farm{Name: "east", SessionInterval: cluster.Minute}
	farm.Hosts = []simulation.OwnedHosts{{Name: "node", CPUs: servers}}
	shape := &trace.Shape{}
	shape.CPUs = 1
	if of == "tokens" {
		farm.Hosts[0].CPUs = 1 << 20
		farm.Resources = []cluster.SharedResource{{Name: "vcs", Owned: servers}}
		shape.Tokens = map[string]int64{"vcs": 1}
	}
	return farm, shape
}

// batchMeans answers the mean wait after a tenth of the jobs, and four standard errors of it, by the means of batches,
// which depend on each other little.
func batchMeans(r *simulation.Result, batches int) (mean, error float64) {
	outcomes, jobs := r.Outcomes[len(r.Outcomes)/10:], r.Trace.Jobs[len(r.Outcomes)/10:]
	size := len(outcomes) / batches
	means := make([]float64, batches)
	for b := range means {
		for i := b * size; i < (b+1)*size; i++ {
			means[b] += float64(outcomes[i].Start.Sub(jobs[i].Submit)) / float64(size)
		}
		mean += means[b] / float64(batches)
	}
	for _, m := range means {
		error += (m - mean) * (m - mean)
	}
	return mean, 4 * math.Sqrt(error/float64(batches-1)/float64(batches))
}
