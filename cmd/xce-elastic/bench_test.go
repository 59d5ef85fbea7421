package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// BenchmarkFileToReport is the whole command: an accounting file in, the page of the report out.
func BenchmarkFileToReport(b *testing.B) {
	const public, times = "../../../shared/traces/KTH-SP2-1996-2.1-cln.swf.gz", 36
	if _, err := os.Stat(public); err != nil {
		b.Skip("there is no folder shared/traces beside the repository")
	}
	folder := b.TempDir()
	log, jobs := repeated(b, public, times, filepath.Join(folder, "jobs.swf"))
	farm := filepath.Join(folder, "farm.yaml")
	if err := os.WriteFile(farm, []byte("cluster: {name: kth}\npolicy: {order: easy}\nsimulation: {hosts: [{name: sp2, cpus: 100}]}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, page := range []string{"terminal", "page", "everything"} {
		b.Run(page, func(b *testing.B) {
			args := []string{"simulate", "--cluster", farm, "--jobs", log, "--processors", "100", "--quiet"}
			switch page {
			case "page":
				args = append(args, "--page", filepath.Join(folder, "report.html"))
			case "everything":
				args = append(args, "--out", filepath.Join(folder, "out"))
			}
			benchmarkCommand(b, jobs, args...)
		})
	}
}

// BenchmarkLongQueue is the same for a large machine for which tens of thousands of jobs wait.
func BenchmarkLongQueue(b *testing.B) {
	folder := b.TempDir()
	log, farm := filepath.Join(folder, "jobs.swf"), filepath.Join(folder, "farm.yaml")
	if err := os.WriteFile(farm, []byte("cluster: {name: large}\npolicy: {order: easy}\nsimulation: {hosts: [{name: all, cpus: 8192}]}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	command(b, "trace", "generate", "long-queue", "--out", log)
	b.ResetTimer()
	benchmarkCommand(b, 450_000, "simulate", "--cluster", farm, "--jobs", log, "--quiet", "--page", filepath.Join(folder, "report.html"))
}

// benchmarkCommand runs a command, and reports how many jobs it comes to a second.
func benchmarkCommand(b *testing.B, jobs int, args ...string) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		command(b, args...)
	}
	b.ReportMetric(float64(jobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// command runs one.
func command(b *testing.B, args ...string) {
	b.Helper()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(new(bytes.Buffer))
	if err := root.ExecuteContext(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// repeated writes a trace so many times one after the other.
func repeated(b *testing.B, file string, times int, to string) (log string, jobs int) {
	b.Helper()
	once, err := trace.Read([]string{file}, trace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	all := &trace.Trace{Source: once.Source}
	span := once.Jobs[len(once.Jobs)-1].Submit.Sub(once.Jobs[0].Submit) + 24*cluster.Hour
	for n := range times {
		for _, j := range once.Jobs {
			j.Submit = j.Submit.Add(cluster.Duration(n) * span)
			j.ID += int64(n * len(once.Jobs))
			all.Jobs = append(all.Jobs, j)
		}
	}
	f, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := all.WriteSWF(f); err != nil {
		b.Fatal(err)
	}
	return to, len(all.Jobs)
}
