package workload

import (
	"fmt"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// sink keeps the compiler from leaving sessions out.
var sink scheduling.Result

// benchmarkRun measures sessions from scratch: the state is taken over, the
// jobs are sorted into classes, and one session is run.
func benchmarkRun(b *testing.B, in scheduling.Input) {
	b.ReportAllocs()
	for b.Loop() {
		sink = scheduling.Run(in)
	}
	reportRate(b, len(in.Jobs))
}

// reportRate adds how many jobs were handled in a second, and how many hosts
// the last session demanded.
func reportRate(b *testing.B, jobs int) {
	b.ReportMetric(float64(jobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	var hosts int64
	for _, d := range sink.Demand {
		if d.Template != "" {
			hosts += d.Units
		}
	}
	b.ReportMetric(float64(hosts), "hosts")
}

// benchmarkBoth measures the natural instance and the one of distinct jobs.
func benchmarkBoth(b *testing.B, in scheduling.Input) {
	b.Run("grouped", func(b *testing.B) { benchmarkRun(b, in) })
	b.Run("distinct", func(b *testing.B) { benchmarkRun(b, Distinct(in)) })
}

func BenchmarkW1Generic(b *testing.B) {
	for _, n := range []int{1_000, 2_000, 5_000, 10_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) { benchmarkBoth(b, Generic(n)) })
	}
}

func BenchmarkW2Diverse(b *testing.B) {
	for _, n := range []int{1_000, 5_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) { benchmarkBoth(b, Diverse(n)) })
	}
}

func BenchmarkW3Preferences(b *testing.B) { benchmarkBoth(b, Preferences(4_000)) }

func BenchmarkW4Estimator(b *testing.B) { benchmarkBoth(b, Estimator()) }

func BenchmarkW5Loop(b *testing.B) { benchmarkBoth(b, Loop()) }

func BenchmarkW6Full(b *testing.B) {
	for _, size := range fullSizes {
		b.Run(fmt.Sprintf("hosts=%d,running=%d,jobs=%d", size[0], size[1], size[2]), func(b *testing.B) {
			benchmarkBoth(b, Full(size[0], size[1], size[2]))
		})
	}
}

// BenchmarkW7IdlePacked has no waiting jobs; its rate is that of the running ones.
func BenchmarkW7IdlePacked(b *testing.B) {
	in := IdlePacked()
	b.ReportAllocs()
	for b.Loop() {
		sink = scheduling.Run(in)
	}
	reportRate(b, len(in.Running))
}

func BenchmarkW8Devices(b *testing.B) { benchmarkBoth(b, DeviceJobs()) }

func BenchmarkW8LicensedDevices(b *testing.B) { benchmarkBoth(b, LicensedDeviceJobs()) }

func BenchmarkW9Matrix(b *testing.B) {
	for _, hosts := range MatrixHosts {
		for _, templates := range MatrixTemplates {
			for _, licences := range MatrixLicences {
				b.Run(fmt.Sprintf("hosts=%d,templates=%d,licences=%d", hosts, templates, licences), func(b *testing.B) {
					benchmarkRun(b, Matrix(hosts, templates, licences))
				})
			}
		}
	}
}

var policies = []scheduling.Policy{{Order: scheduling.FCFS}, {Order: scheduling.EASY}, {Order: scheduling.Conservative, Depth: 50}}

// eachPolicy runs a benchmark of the mixed instance for each order of jobs.
func eachPolicy(b *testing.B, run func(*testing.B, scheduling.Input)) {
	in := Mixed()
	for _, policy := range policies {
		in.Policy = policy
		b.Run(string(policy.Order), func(b *testing.B) {
			b.ReportAllocs()
			run(b, in)
			reportRate(b, len(in.Jobs))
		})
	}
}

// BenchmarkMixedFromScratch takes the state over and runs its first session.
func BenchmarkMixedFromScratch(b *testing.B) {
	eachPolicy(b, func(b *testing.B, in scheduling.Input) {
		for b.Loop() {
			sink = scheduling.New(in).Session(Now)
		}
	})
}

// BenchmarkMixedFirstSession runs the first session of a state that was taken
// over already, in which jobs start.
func BenchmarkMixedFirstSession(b *testing.B) {
	eachPolicy(b, func(b *testing.B, in scheduling.Input) {
		for b.Loop() {
			b.StopTimer()
			e := scheduling.New(in)
			b.StartTimer()
			sink = e.Session(Now)
		}
	})
}

// BenchmarkMixedNextSession runs a session after one, when nothing has changed.
func BenchmarkMixedNextSession(b *testing.B) {
	eachPolicy(b, func(b *testing.B, in scheduling.Input) {
		e := scheduling.New(in)
		e.Session(Now)
		for b.Loop() {
			sink = e.Session(Now)
		}
	})
}

// BenchmarkMixedAfterOneEnd ends a job and runs the session that follows, each
// time a second later; when few jobs are left, it begins anew.
func BenchmarkMixedAfterOneEnd(b *testing.B) {
	eachPolicy(b, func(b *testing.B, in scheduling.Input) {
		var e *scheduling.Engine
		now, next := Now, 0
		begin := func() {
			e, now, next = scheduling.New(in), Now, 0
			e.Session(now)
			e.End(in.Running[next].ID, 0)
			e.Session(now)
		}
		begin()
		for b.Loop() {
			if next++; next == len(in.Running)/2 {
				b.StopTimer()
				begin()
				b.StartTimer()
			}
			now = now.Add(cluster.Second)
			if !e.End(in.Running[next].ID, 0) {
				b.Fatalf("job %d does not run", in.Running[next].ID)
			}
			sink = e.Session(now)
		}
	})
}
