// Package backend holds the words between the controller and a scheduler of
// another make that schedules the jobs in its place: what the scheduler has, as
// plain data.
package backend

import (
	"fmt"

	"xce.internal/elastic/cluster"
)

// Features that hosts have by where they are: in the partition, or being the node, whose name follows.
const (
	InPartition = "partition:"
	AtNode      = "node:"
)

// View is what the scheduler has, read at one moment and fit to be acted upon.
type View struct {
	At cluster.Time
	// Jobs are those that wait or run, ordered by id, which is the scheduler's own;
	// the first in line has the highest priority. What of them raises no demand says so in Told.Barred.
	Jobs []cluster.Job
	// Hosts are those that the scheduler knows, ordered by name; placeholders are not among them.
	Hosts []Host
	// Resources are the shared resources that it counts, by our name of each.
	Resources map[string]Resource
	// Placeholders are the hosts that stand for a template, by the template's name: they let jobs wait for
	// hosts of which there are none yet.
	Placeholders map[string]Host
	// Warnings say what someone should look at, each in one sentence.
	Warnings []string
}

// Listed answers how many units of each resource those of the jobs have that run.
func Listed(jobs []cluster.Job) map[string]int64 {
	units := map[string]int64{}
	for i := range jobs {
		job := &jobs[i]
		if job.State != cluster.JobRunning {
			continue
		}
		for resource, n := range job.TokensTaken(job.Alternative) {
			units[resource] += n
		}
	}
	return units
}

// Resource is how the scheduler counts a shared resource. What jobs can still take
// is max(0, Ceiling - Used - Withheld - Reserved - Elsewhere).
type Resource struct {
	// Ceiling is the fixed total; jobs that ask for more are refused as they are submitted.
	Ceiling int64
	// Used is what jobs have. Unlisted is as much of it as none of the view's jobs has, and lastingly: units are counted
	// when jobs have been listed, so that a job which starts in between is listed as waiting and its units are in use.
	Used, Unlisted int64
	// Withheld is what we keep from jobs, since it is not had now; Reserved is what others keep back for
	// theirs of the rest.
	Withheld, Reserved int64
	// Elsewhere is what the scheduler was told to be in use outside of it.
	Elsewhere int64
	// Doubted says why what was read of it last is not believed yet; the numbers are then those that were last believed.
	// Empty where they are believed.
	Doubted string
	// Before is what of it was withheld when it was to be changed: as much as Withheld where nothing had to be. A view has none.
	Before int64
}

// HostState says how the scheduler stands to a host.
type HostState string

// States of a host.
const (
	HostReady    HostState = "ready"    // takes jobs
	HostClosed   HostState = "closed"   // answers and takes no new jobs
	HostAwaited  HostState = "awaited"  // known, and not here yet
	HostSilent   HostState = "silent"   // was here and does not answer
	HostRemoving HostState = "removing" // on its way out
)

// Host is one host of the scheduler.
type Host struct {
	Name string
	// What it has for jobs; that it is in partition p counts as the feature [InPartition] + p.
	cluster.Capacity
	State HostState
	// Why says why it is not ready, in one sentence.
	Why string
	// Drained tells that it takes no new jobs since we said so.
	Drained bool
	// PutOff tells that the scheduler expects nothing of it for now: if it runs, it must be opened to come back.
	PutOff bool
	// Removable tells that it is one that we may take out: never one that someone wrote into the scheduler's configuration.
	// Ours tells that it is one of those all the same, and a template's.
	Removable, Ours bool
	// Busy is how many jobs are on it, those that are just ending among them.
	Busy int64
}

// Machine is a host that the scheduler is to know.
type Machine struct {
	Name string
	// Address is where it is reached; empty where its name says so.
	Address  string
	Template string
	cluster.Capacity
}

// Unknown is a call of which the outcome is not known: it may have been carried out,
// or be carried out later. What is so must be read before anything is decided.
type Unknown struct {
	What string
	Why  error
}

// Error implements error.
func (u *Unknown) Error() string { return fmt.Sprintf("%s: outcome unknown: %v", u.What, u.Why) }

// Unwrap answers what went wrong.
func (u *Unknown) Unwrap() error { return u.Why }

// NotYet is a reading that must not be acted upon, and why.
type NotYet struct{ Why string }

// Error implements error.
func (n *NotYet) Error() string { return "not acted upon: " + n.Why }
