package scheduling

import (
	"slices"

	"xce.internal/elastic/cluster"
)

func jobOf(in Input, id int64) cluster.Job {
	for _, jobs := range [][]cluster.Job{in.Jobs, in.Running} {
		if i := slices.IndexFunc(jobs, func(j cluster.Job) bool { return j.ID == id }); i >= 0 {
			return jobs[i]
		}
	}
	return cluster.Job{}
}

func hostOf(in Input, name string) Host {
	return in.Hosts[slices.IndexFunc(in.Hosts, func(h Host) bool { return h.Name == name })]
}

func reasonOf(r Result, job int64) (Unplaced, bool) {
	i := slices.IndexFunc(r.Unplaced, func(u Unplaced) bool { return slices.Contains(u.Jobs, job) })
	if i < 0 {
		return Unplaced{}, false
	}
	return r.Unplaced[i], true
}

// inOrderOf answers the waiting jobs in session order.
func inOrderOf(in Input) []cluster.Job {
	jobs := slices.Clone(in.Jobs)
	slices.SortFunc(jobs, func(a, b cluster.Job) int { return compareEntries(entryOf(&a), entryOf(&b)) })
	return jobs
}

// sizeOn is the vector cpus, memory, gpus, whole of a host.
func sizeOn(_ Input, h Host) []int64 {
	return []int64{h.CPUs, h.MemoryMB, h.Countables["gpus"], wholeHost}
}

func take(free []int64, job cluster.Job) {
	free[0] -= job.CPUs
	free[1] -= job.MemoryMB
	free[2] -= job.Countables["gpus"]
	if job.Exclusive {
		free[3] -= wholeHost
	} else {
		free[3]--
	}
}

// freeOn is what running jobs leave of a host.
func freeOn(in Input, h Host) []int64 {
	free := sizeOn(in, h)
	for _, job := range in.Running {
		if job.Host == h.Name || slices.Contains(job.Hosts, h.Name) {
			take(free, job)
		}
	}
	return free
}

// started is the input of the next session if nothing happens but what r starts.
func started(in Input, r Result) Input {
	next := in
	next.Resources, next.Running, next.Jobs = slices.Clone(in.Resources), slices.Clone(in.Running), nil
	begun := map[int64]int64{}
	for _, s := range r.Starts {
		job := jobOf(in, s.Job)
		job.Started, job.Hosts, job.Element, job.Alternative = in.Now, s.Hosts, s.Element, s.Alternative
		next.Running = append(next.Running, job)
		begun[s.Job]++
		for i := range next.Resources {
			res := &next.Resources[i]
			res.InUse += job.Tokens[res.Name]
			if s.Alternative > 0 {
				res.InUse += job.Alternatives[s.Alternative-1][res.Name]
			}
		}
	}
	for _, job := range in.Jobs {
		if n := begun[job.ID]; n > 0 {
			if job.Begun += n; job.Begun >= max(job.Array, 1) {
				continue
			}
		}
		next.Jobs = append(next.Jobs, job)
	}
	return next
}
