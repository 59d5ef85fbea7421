package replay_test

import (
	"fmt"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay"
)

// farm is a cluster of hosts of three kinds, templates of each, and three licence
// features, whose providers have nothing left to give.
func farm() scheduling.Input {
	in := scheduling.Input{Policy: scheduling.Policy{Order: scheduling.EASY}}
	sizes := []cluster.Capacity{
		{CPUs: 16, MemoryMB: 64}, {CPUs: 16, MemoryMB: 256, Features: []string{"big"}}, {CPUs: 32, MemoryMB: 256, Countables: map[string]int64{"gpus": 2}},
	}
	for i, name := range []string{"small", "large", "gpu"} {
		in.Templates = append(in.Templates, cluster.Template{
			Name: name, Provider: "cloud", Capacity: sizes[i], Price: cluster.Price(i+1) * 100_000, MinimumHold: cluster.Hour, Latency: 5 * cluster.Minute, Quotas: []string{"hosts"},
		})
		for n := range []int{5, 1, 1}[i] {
			in.Hosts = append(in.Hosts, scheduling.Host{Name: fmt.Sprintf("%s-%d", name, n), Capacity: sizes[i], Template: []string{"", name}[n%2]})
		}
	}
	in.Quotas = []cluster.Quota{{Name: "hosts", Counts: "hosts", Limit: 8, Used: 6}}
	for i := range 3 {
		r := resource(fmt.Sprintf("r%d", i), []int64{3, 8, 20}[i])
		r.Elastic = &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: 10, IdleTime: cluster.Hour}
		in.Resources = append(in.Resources, r)
		in.Offers = append(in.Offers, cluster.Offer{Provider: "pool", Resource: r.Name, Latency: cluster.Minute, Price: 1000})
	}
	return in
}

// played is a trace as a simulator holds it: what jobs have in common is kept once.
type played struct {
	arrivals []arrival
	shapes   []cluster.Job
}

type arrival struct {
	submit cluster.Time
	run    cluster.Duration
	shape  int32
}

// held answers a trace as it is played, with what shaped makes of each job.
func held(trace replay.Trace, shaped func(i int, j replay.Job) cluster.JobSpec) (p played) {
	known := map[string]int32{}
	for i, j := range trace.Jobs {
		spec := shaped(i, j)
		spec.TimeLimit = j.Estimate
		key := fmt.Sprint(spec.Nodes, spec.CPUs, spec.MemoryMB, spec.Tokens, spec.TimeLimit)
		shape, seen := known[key]
		if !seen {
			shape = int32(len(p.shapes))
			known[key] = shape
			p.shapes = append(p.shapes, cluster.Job{JobSpec: spec, State: cluster.JobWaiting})
		}
		p.arrivals = append(p.arrivals, arrival{j.Submit, j.Run, shape})
	}
	return p
}

// onFarm makes a job need hosts and tokens of the farm.
func onFarm(i int, j replay.Job) cluster.JobSpec {
	kind := i * 7 % 20
	spec := cluster.JobSpec{CPUs: min(j.Procs, 16), Nodes: min((j.Procs+15)/16, 6), MemoryMB: 2 * min(j.Procs, 16)}
	for r, of := range []int{10, 5, 2} {
		if kind%of == 0 && kind > 0 {
			spec.Tokens = map[string]int64{fmt.Sprintf("r%d", r): 1 + int64(kind%2)}
		}
	}
	return spec
}

// play runs a session after every event, and answers how many.
func (p *played) play(b *testing.B, in scheduling.Input, session func(*scheduling.Engine, cluster.Time) []scheduling.Start) (sessions int) {
	b.Helper()
	e := scheduling.New(in)
	likes := make([]*scheduling.Like, len(p.shapes))
	for i := range likes {
		likes[i] = e.Like(&p.shapes[i].JobSpec)
	}
	running := replay.Completions{}
	arrived, started := 0, 0
	for started < len(p.arrivals) {
		now := cluster.Time(1 << 60)
		if arrived < len(p.arrivals) {
			now = p.arrivals[arrived].submit
		}
		if at, more := running.Next(); more {
			now = min(now, at)
		}
		for at, more := running.Next(); more && at <= now; at, more = running.Next() {
			e.End(running.Pop(), 0)
		}
		for ; arrived < len(p.arrivals) && p.arrivals[arrived].submit <= now; arrived++ {
			shape := p.arrivals[arrived].shape
			e.SubmitLike(likes[shape], int64(arrived+1), now, p.shapes[shape].TimeLimit)
		}
		for _, s := range session(e, now) {
			running.Push(now.Add(p.arrivals[s.Job-1].run), s.Job)
			started++
		}
		if sessions++; now == 1<<60 {
			b.Fatalf("%d of %d jobs started", started, len(p.arrivals))
		}
	}
	return sessions
}

func benchmarkFarm(b *testing.B, session func(*scheduling.Engine, cluster.Time) []scheduling.Start) {
	b.Helper()
	p := held(kth(b, 1), onFarm)
	b.ReportAllocs()
	b.ResetTimer()
	sessions, began := 0, cpuTime()
	for range b.N {
		sessions = p.play(b, farm(), session)
	}
	b.ReportMetric(float64((cpuTime()-began).Nanoseconds())/float64(sessions*b.N), "cpu-ns/session")
	reportJobs(b, len(p.arrivals)*b.N, began)
}

func BenchmarkFarm(b *testing.B) {
	b.Run("place", func(b *testing.B) {
		benchmarkFarm(b, func(e *scheduling.Engine, now cluster.Time) []scheduling.Start { return e.Place(now) })
	})
	b.Run("decide", func(b *testing.B) {
		benchmarkFarm(b, func(e *scheduling.Engine, now cluster.Time) []scheduling.Start { return e.Decide(now).Starts })
	})
	b.Run("session", func(b *testing.B) {
		benchmarkFarm(b, func(e *scheduling.Engine, now cluster.Time) []scheduling.Start { return e.Session(now).Starts })
	})
}
