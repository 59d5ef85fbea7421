// Package workload builds the instances that sessions are measured and judged
// with. Each is given by its seed and the order of its draws, so that it can be
// rebuilt elsewhere and raced against other schedulers; the tests check its sums
// and the answers that are expected of a session.
//
// W1 to W8 are the instances of the benchmarks of two public autoscalers, in the
// words of a batch cluster: W1 to W3 are of one, W4 to W8 of the other. W9 and
// Mixed are ours. Every instance is natural, with many jobs alike; Distinct
// makes of it one in which no two jobs are.
//
// CPUs are thousandths of a core. MemoryMB counts what the instance says.
package workload

import (
	"fmt"
	"math/rand"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// Now is when the sessions of all instances are.
const Now cluster.Time = 1_767_261_600_000 // 2026-01-01 10:00 UTC

// Countables of the instances.
const (
	// Slots limits how many jobs a host runs; each job takes one.
	Slots = "slots"
	// Apart is what a host has one of, and each of the jobs takes that must not
	// share a host with each other.
	Apart = "apart"
	// Devices are counted things of a host, such as gpus.
	Devices = "devices"
)

// seed is that of every instance; each draws from a generator of its own.
const seed = 42

// What jobs of the first autoscaler draw their cpus (thousandths of a core) and
// memory (MiB) from.
var (
	drawnCPUs   = []int64{100, 250, 500, 1000, 1500}
	drawnMemory = []int64{100, 256, 512, 1024, 2048, 4096}
)

// oneSlot is what nearly every job takes; it is never written to.
var oneSlot = map[string]int64{Slots: 1}

// drawNeed draws the labels of a job, which batch jobs do not have, then what
// it needs.
func drawNeed(r *rand.Rand, labels int) (cpus, memory int64) {
	for range labels {
		r.Intn(7)
	}
	cpus = drawnCPUs[r.Intn(len(drawnCPUs))]
	return cpus, drawnMemory[r.Intn(len(drawnMemory))]
}

// waiting answers a waiting job; jobs are numbered and submitted in turn.
func waiting(id int, cpus, memory int64, countables map[string]int64) cluster.Job {
	return cluster.Job{
		ID: int64(id), State: cluster.JobWaiting, User: "user",
		Submitted: Now.Add(-cluster.Hour + cluster.Duration(id)),
		JobSpec:   cluster.JobSpec{CPUs: cpus, MemoryMB: memory, Countables: countables},
	}
}

// running answers a job that runs on a host since an hour.
func running(id int, host string, cpus, memory int64) cluster.Job {
	job := waiting(id, cpus, memory, nil)
	job.State, job.Host, job.Submitted, job.Started = cluster.JobRunning, host, Now.Add(-cluster.Hour), Now.Add(-cluster.Hour)
	return job
}

// hostName numbers hosts so that their names sort as they count.
func hostName(i int) string { return fmt.Sprintf("host%05d", i) }

// mostCores is the most that all hosts of the catalogue may have together.
const mostCores = 10_000_000

// addCatalogue adds the first n host templates of the first autoscaler: i+1
// cores, 2(i+1) GiB and 10(i+1) slots, of which the host's system keeps a tenth
// of a core and 10 MiB for itself. The autoscaler offers each as five (spot and
// on demand, in three zones) that cost the same. Here each is one, in one site.
func addCatalogue(in *scheduling.Input, n int) {
	in.Quotas = append(in.Quotas, cluster.Quota{Name: "pool", Counts: "cpus", Limit: mostCores * 1000, Published: Now})
	for i := range n {
		cores := int64(i + 1)
		in.Templates = append(in.Templates, cluster.Template{
			Name: fmt.Sprintf("cores%03d", cores), Provider: "cloud",
			Capacity: cluster.Capacity{CPUs: 1000*cores - 100, MemoryMB: 2048*cores - 10, Countables: map[string]int64{Slots: 10 * cores}, Attributes: map[string]string{"site": "z1"}},
			Headroom: mostCores / cores, Quotas: []string{"pool"}, Price: cataloguePrice(cores), Published: Now,
		})
	}
}

// cataloguePrice is 0.1 for a core and 0.1 for 10^9 bytes of memory, per hour.
func cataloguePrice(cores int64) cluster.Price {
	bytes := 2 * cores << 30
	return cluster.Price(100_000*cores + (bytes+5_000)/10_000)
}
