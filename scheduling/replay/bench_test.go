package replay_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay"
	"xce.internal/elastic/scheduling/replay/oracle"
)

// kth is the trace of KTH, so many times one after the other.
func kth(b *testing.B, times int) (trace replay.Trace) {
	b.Helper()
	once := read(b, oracle.Public(b, shared, "kth")).Jobs
	span := once[len(once)-1].Submit.Sub(once[0].Submit) + cluster.Hour
	for i := range times {
		for _, j := range once {
			j.ID += int64(i * len(once))
			j.Submit = j.Submit.Add(cluster.Duration(i) * span)
			trace.Jobs = append(trace.Jobs, j)
		}
	}
	return trace
}

// bursts are jobs that come many at a time, as one user's like ones: tens of thousands of them
// wait for the processors.
func bursts(jobs int, procs int64) (trace replay.Trace) {
	draw := rand.New(rand.NewPCG(1, 2))
	at, load := cluster.Time(0), int64(0)
	for len(trace.Jobs) < jobs {
		j := replay.Job{Procs: 1 << draw.IntN(8), Estimate: cluster.Duration(1+draw.IntN(72)) * 10 * cluster.Minute}
		if draw.IntN(4) == 0 {
			j.Procs = 1 + draw.Int64N(256)
		}
		for range 1 + draw.IntN(400) {
			j.ID, j.Submit = int64(len(trace.Jobs)+1), at
			j.Run = cluster.Duration(1+draw.Int64N(int64(j.Estimate)/1000)) * 1000
			load += j.Procs * int64(j.Run)
			trace.Jobs = append(trace.Jobs, j)
			at = at.Add(cluster.Duration(draw.IntN(3)) * cluster.Second)
		}
		// What has come keeps the processors busy until now, and a day longer.
		at = max(at, cluster.Time(load/procs)-cluster.Time(24*cluster.Hour))
	}
	trace.Jobs = trace.Jobs[:jobs]
	return trace
}

// benchmark plays a trace on one host that has all processors.
func benchmark(b *testing.B, trace replay.Trace, procs int64, order scheduling.Order) {
	b.Helper()
	in := scheduling.Input{Policy: scheduling.Policy{Order: order}, Hosts: replay.OneHost(procs).Hosts}
	p := held(trace, func(_ int, j replay.Job) cluster.JobSpec { return cluster.JobSpec{CPUs: j.Procs} })
	b.ReportAllocs()
	b.ResetTimer()
	began := cpuTime()
	for range b.N {
		p.play(b, in, (*scheduling.Engine).Place)
	}
	reportJobs(b, len(p.arrivals)*b.N, began)
}

// reportJobs reports how many jobs were played a second, by the clock and by the time
// that the processors spent, the collector's included: other programs do not count there.
func reportJobs(b *testing.B, jobs int, began time.Duration) {
	b.Helper()
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(jobs)/(cpuTime()-began).Seconds(), "jobs/cpu-s")
}

// cpuTime is what the processors have spent on this program.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkEASY(b *testing.B) {
	for _, times := range []int{1, 6, 36, 72} {
		b.Run(fmt.Sprintf("kth x %d", times), func(b *testing.B) {
			benchmark(b, kth(b, times), 100, scheduling.EASY)
		})
	}
}

func BenchmarkLongQueue(b *testing.B) {
	const procs = 8192
	benchmark(b, bursts(450_000, procs), procs, scheduling.EASY)
}

func BenchmarkConservative(b *testing.B) {
	benchmark(b, kth(b, 1), 100, scheduling.Conservative)
}

func BenchmarkFCFS(b *testing.B) {
	benchmark(b, kth(b, 6), 100, scheduling.FCFS)
}
