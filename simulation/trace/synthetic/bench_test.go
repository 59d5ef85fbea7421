package synthetic

import "testing"

func BenchmarkAMillionJobs(b *testing.B) {
	for _, kind := range Kinds {
		b.Run(string(kind), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t, err := Generate(Options{Kind: kind, Seed: 1, Jobs: 1_000_000})
				if err != nil || len(t.Jobs) != 1_000_000 {
					b.Fatal(err, len(t.Jobs))
				}
			}
			b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
