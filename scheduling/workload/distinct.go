package workload

import (
	"slices"

	"xce.internal/elastic/scheduling"
)

// finer is how many units of memory Distinct makes of one.
const finer = 1000

// Distinct answers the instance with memory counted in thousandths of what it
// was, and every waiting job with another need: of the jobs that needed the same
// cpus and memory, each needs one such unit less than the one before. So no two
// are alike, what fitted still fits, and nothing is changed that matters. A
// quota on memory is not counted anew.
func Distinct(in scheduling.Input) scheduling.Input {
	in.Hosts, in.Templates = slices.Clone(in.Hosts), slices.Clone(in.Templates)
	in.Running, in.Jobs = slices.Clone(in.Running), slices.Clone(in.Jobs)
	for i := range in.Hosts {
		in.Hosts[i].MemoryMB *= finer
	}
	for i := range in.Templates {
		in.Templates[i].MemoryMB *= finer
	}
	for i := range in.Running {
		in.Running[i].MemoryMB *= finer
	}
	alike := map[[2]int64]int64{}
	for i := range in.Jobs {
		job := &in.Jobs[i]
		need := [2]int64{job.CPUs, job.MemoryMB}
		job.MemoryMB = job.MemoryMB*finer - alike[need]
		alike[need]++
	}
	return in
}
