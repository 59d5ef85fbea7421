package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// Trace is the jobs of a cluster over some time. Of jobs that arrive at one
// instant, the one that stands first comes first.
type Trace struct {
	Jobs []Job
}

// Job is a job of a trace.
type Job struct {
	ID     int64 // the trace's own
	Submit cluster.Time
	// Run is how long the job runs once it has started; Estimate is what its user
	// said, its time limit. It should not be less than Run.
	Run, Estimate cluster.Duration
	// Procs is how many processors it takes. What that means is the machine's to
	// say; 0 means that Spec says all.
	Procs int64
	// Spec is what else the job asks for. It names no earliest start: that is Submit.
	Spec cluster.JobSpec
}

// Machine is the hosts and shared resources on which a trace is replayed.
type Machine struct {
	Hosts     []scheduling.Host
	Resources []scheduling.Resource
	// Spread makes a job run on as many hosts as it takes processors, with one
	// cpu of each; otherwise all its processors are cpus of one host.
	Spread bool
}

// OneHost is one host that has all processors.
func OneHost(procs int64) Machine {
	return Machine{Hosts: []scheduling.Host{{Name: "host", Capacity: cluster.Capacity{CPUs: procs}}}}
}

// HostPerProcessor is as many hosts as there are processors.
func HostPerProcessor(procs int64) Machine {
	m := Machine{Spread: true}
	for i := range procs {
		m.Hosts = append(m.Hosts, scheduling.Host{Name: fmt.Sprintf("host%d", i), Capacity: cluster.Capacity{CPUs: 1}})
	}
	return m
}

// job answers a job of the trace as the engine's, under the engine's id.
func (m Machine) job(id int64, j *Job) cluster.Job {
	job := cluster.Job{ID: id, JobSpec: j.Spec, State: cluster.JobWaiting, Submitted: j.Submit}
	job.TimeLimit = j.Estimate
	switch {
	case j.Procs == 0:
	case m.Spread:
		job.Nodes, job.CPUs = j.Procs, 1
	default:
		job.CPUs = j.Procs
	}
	return job
}

// Row is a job of the trace and when it started.
type Row struct {
	ID            int64
	Submit, Start cluster.Time
	Run           cluster.Duration
	Procs         int64
	Estimate      cluster.Duration
}

// String is the row in whole seconds: id, submit, start, run, procs, estimate.
func (r Row) String() string {
	const second = int64(cluster.Second)
	return fmt.Sprintf("%d %d %d %d %d %d", r.ID, int64(r.Submit)/second, int64(r.Start)/second,
		int64(r.Run)/second, r.Procs, int64(r.Estimate)/second)
}

// Print writes the rows to w, one a line, ordered by id.
func Print(w io.Writer, rows []Row) error {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range rows {
		if _, err := fmt.Fprintln(w, r); err != nil {
			return err
		}
	}
	return nil
}
