package scheduling

import (
	"fmt"
	"testing"

	"xce.internal/elastic/cluster"
)

// BenchmarkSession is one session over 10,000 waiting jobs, 100 hosts and 10
// resources: where all jobs start, where all lack tokens, and where all wait
// behind the first.
func BenchmarkSession(b *testing.B) {
	for _, bench := range []struct {
		name        string
		cpus, owned int64
	}{
		{"all start", 1000, 100_000},
		{"all lack tokens", 1000, 0},
		{"all wait for hosts", 0, 0},
	} {
		b.Run(bench.name, func(b *testing.B) {
			in := crowd(bench.cpus, bench.owned)
			b.ReportAllocs()
			for b.Loop() {
				Run(in)
			}
		})
	}
}

func crowd(cpus, owned int64) Input {
	in := Input{Now: now}
	for i := range 100 {
		in.Hosts = append(in.Hosts, Host{Name: fmt.Sprintf("node%d", i), CPUs: cpus, MemoryMB: 1 << 20})
	}
	for i := range 10 {
		r := Resource{Total: owned}
		r.Name, r.Owned = fmt.Sprintf("feature%d", i), owned
		r.Elastic = &cluster.Elastic{Lenders: []string{"pool-a", "pool-b"}, MaxBorrowed: 100_000, IdleTime: cluster.Minute}
		in.Resources = append(in.Resources, r)
		for _, provider := range r.Elastic.Lenders {
			in.Offers = append(in.Offers, cluster.Offer{Provider: provider, Resource: r.Name, Headroom: 1500})
		}
	}
	for i := range 10_000 {
		job := cluster.Job{ID: int64(i + 1)}
		job.CPUs, job.MemoryMB, job.Priority = int64(1+i%8), 1024, int64(i%3)
		job.Tokens = map[string]int64{fmt.Sprintf("feature%d", i%10): 1, fmt.Sprintf("feature%d", i*7%10): int64(1 + i%2)}
		in.Jobs = append(in.Jobs, job)
	}
	return in
}
