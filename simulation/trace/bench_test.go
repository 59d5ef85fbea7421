package trace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"xce.internal/elastic/simulation/trace"
)

// manyLines is a log in the Standard Workload Format of so many jobs, with as many
// different shapes as logs of one machine have.
func manyLines(jobs int) string {
	var out bytes.Buffer
	out.WriteString("; MaxProcs: 100\n")
	draw := uint32(1)
	next := func(n uint32) uint32 {
		draw = draw*1664525 + 1013904223
		return (draw >> 8) % n
	}
	for i := range jobs {
		run := next(20_000) + 1
		fmt.Fprintf(&out, "%5d %8d %6d %6d %4d     -1    -1 %4d %6d    -1  1 %3d %3d -1 -1 -1 -1 -1\n",
			i+1, i*60, next(5000), run, next(64)+1, 4, run+next(3600), next(214), 1)
	}
	return out.String()
}

func BenchmarkReadSWF(b *testing.B) { benchmarkRead(b, manyLines(200_000)) }

func BenchmarkReadJSONL(b *testing.B) {
	var out bytes.Buffer
	if err := read(b, manyLines(200_000), trace.Options{}).WriteJSONL(&out); err != nil {
		b.Fatal(err)
	}
	benchmarkRead(b, out.String())
}

func benchmarkRead(b *testing.B, text string) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	jobs := 0
	for b.Loop() {
		jobs += len(read(b, text, trace.Options{}).Jobs)
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

// What is made for each job is the job alone.
func TestReadingALogMakesNoGarbage(t *testing.T) {
	text := strings.Repeat("1 0 0 10 5 -1 -1 1 -1 -1 1 1\n2 0 -1 30 2 -1 -1 1 20 -1 1 2\n", 20_000)
	made := testing.AllocsPerRun(1, func() { read(t, text, trace.Options{}) })
	if made > 500 {
		t.Errorf("for 40000 jobs, %.0f things are made", made)
	}
}

// The other formats are read as their samples, many times over.
func BenchmarkReadSamples(b *testing.B) {
	for name, head := range map[string]int{"sacct": 1, "lsf": 0, "ge": 0, "pbs": 0} {
		b.Run(name, func(b *testing.B) {
			lines := strings.SplitAfter(sample(b, name+".acct"), "\n")
			text := strings.Join(lines[:head], "") + strings.Repeat(strings.Join(lines[head:], ""), 2000)
			benchmarkRead(b, text)
		})
	}
}
