package simulation_test

import (
	"slices"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay/oracle"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/simulation/trace"
)

// publicJobs reads a public trace, repeated so many times one after the other.
func publicJobs(b testing.TB, prefix string, times int) *trace.Trace {
	b.Helper()
	p := oracle.Public(b, shared, prefix)
	jobs, err := trace.Read([]string{p.File}, trace.Options{Procs: p.Procs})
	if err != nil {
		b.Fatal(err)
	}
	jobs.Anchor(monday)
	once := slices.Clone(jobs.Jobs)
	span := once[len(once)-1].Submit.Sub(once[0].Submit) + 24*cluster.Hour
	for n := 1; n < times; n++ {
		for _, j := range once {
			j.Submit = j.Submit.Add(cluster.Duration(n) * span)
			jobs.Jobs = append(jobs.Jobs, j)
		}
	}
	return jobs
}

// benchmark simulates, and reports jobs per second.
func benchmark(b *testing.B, farm simulation.Farm, jobs *trace.Trace) {
	b.ReportAllocs()
	var r *simulation.Result
	for b.Loop() {
		var err error
		r, err = simulation.Run(b.Context(), farm, jobs, simulation.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if last := r.Outcomes[len(r.Outcomes)-1]; last.State != simulation.Done {
			b.Fatalf("the last job is %v", last)
		}
	}
	b.ReportMetric(float64(len(jobs.Jobs))*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(len(r.Loans)+len(r.Machines)), "loans+hosts")
}

func BenchmarkEASY(b *testing.B) {
	for _, times := range []int{1, 6, 36} {
		b.Run(map[int]string{1: "KTH", 6: "KTHx6", 36: "KTHx36"}[times], func(b *testing.B) {
			benchmark(b, oneHost(100, scheduling.EASY), publicJobs(b, "kth", times))
		})
	}
}

func BenchmarkConservative(b *testing.B) {
	benchmark(b, oneHost(100, scheduling.Conservative), publicJobs(b, "kth", 1))
}

// BenchmarkFull has three kinds of hosts, three kinds of tokens, latencies and failures. What it costs is the hosts and
// loans that come and go: a farm that owns little gets one for every fourth job, one that owns what it needs but at
// peaks one for every thirtieth.
func BenchmarkFull(b *testing.B) {
	for _, owns := range []struct {
		name         string
		cpus, tokens int64
	}{{"OwnsLittle", 60, 3}, {"OwnsMost", 90, 6}} {
		b.Run(owns.name, func(b *testing.B) { benchmark(b, fullFarm(owns.cpus, owns.tokens), jobsWithTokens(b)) })
	}
}

// jobsWithTokens are KTH's jobs, of which three of four need a token, of one of three kinds.
func jobsWithTokens(b *testing.B) *trace.Trace {
	jobs := publicJobs(b, "kth", 1)
	jobs.Jobs = slices.Clone(jobs.Jobs)
	withTokens := map[*trace.Shape][4]*trace.Shape{}
	names := []string{"", "vcs", "dc", "icc"}
	for i := range jobs.Jobs {
		j := &jobs.Jobs[i]
		made, known := withTokens[j.Shape]
		if !known {
			for n, name := range names {
				shape := *j.Shape
				if name != "" {
					shape.Tokens = map[string]int64{name: 1}
				}
				made[n] = &shape
			}
			withTokens[j.Shape] = made
		}
		j.Shape = made[j.ID%4]
	}
	return jobs
}

// fullFarm owns some of KTH's processors and so many tokens of each kind; the rest must be made and borrowed.
func fullFarm(cpus, owned int64) simulation.Farm {
	const minute = cluster.Minute
	elastic := func(name string, owned, most int64) cluster.SharedResource {
		return cluster.SharedResource{Name: name, Owned: owned, Elastic: &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: most, IdleTime: 30 * minute}}
	}
	host := func(name string, cpus, capacity, price int64) model.Template {
		return model.Template{
			Template: name, CPUs: cpus, Supply: model.Supply{Capacity: capacity, Price: price},
			Boot: model.Delay{Median: 2 * minute, P95: 5 * minute}, NeverJoins: 1,
		}
	}
	tokens := func(name string, capacity, price int64) model.Offer {
		return model.Offer{Resource: name, Supply: model.Supply{Capacity: capacity, Price: price, MinimumHold: 60 * minute}}
	}
	farm := oneHost(cpus, scheduling.EASY)
	farm.Rules = cluster.DefaultHostRules()
	farm.Resources = []cluster.SharedResource{elastic("vcs", owned, 10), elastic("dc", owned, 10), elastic("icc", owned, 10)}
	farm.Providers = []simulation.Provider{{Name: "pool", SurveyEvery: minute, OrphanGrace: 10 * minute}, {Name: "cloud", SurveyEvery: minute, OrphanGrace: 10 * minute}}
	farm.Settings.Providers = []model.Provider{
		{
			Name: "pool", Answer: model.Delay{Median: 200, P95: 1000}, Refused: 2, Unknown: 1,
			Offers: []model.Offer{tokens("vcs", 8, 250_000), tokens("dc", 8, 500_000), tokens("icc", 8, 900_000)},
		},
		{
			Name: "cloud", Answer: model.Delay{Median: 500, P95: 2000}, Refused: 2,
			Templates: []model.Template{host("small", 8, 20, 400_000), host("medium", 32, 5, 1_500_000), host("large", 100, 2, 5_000_000)},
		},
	}
	return farm
}
