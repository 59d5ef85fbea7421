package cluster

import (
	"fmt"
	"maps"
	"slices"
)

// JobState says where a job is in its life.
type JobState string

// States of a job.
const (
	JobWaiting JobState = "waiting"
	JobRunning JobState = "running"
	JobDone    JobState = "done"    // ended with exit status 0
	JobFailed  JobState = "failed"  // ended with another status, or could not be started
	JobTimeout JobState = "timeout" // ended by its own time limit
)

// Ended tells whether a job in state s will never run again.
func (s JobState) Ended() bool { return s == JobDone || s == JobFailed || s == JobTimeout }

// JobSpec is what a user asks for.
type JobSpec struct {
	Name    string   `json:"name,omitempty"`
	Command []string `json:"command"`
	// Directory is where the command runs; empty means the agent's job folder.
	Directory string `json:"directory,omitempty"`
	CPUs      int64  `json:"cpus"`
	MemoryMB  int64  `json:"memory_mb"`
	// Tokens maps shared resources to units; a job takes all its tokens or none.
	Tokens   map[string]int64 `json:"tokens,omitempty"`
	Priority int64            `json:"priority"`
	// TimeLimit ends the job; 0 means none.
	TimeLimit Duration `json:"time_limit,omitempty"`
}

// Job is a job and what has become of it.
type Job struct {
	ID int64 `json:"id"`
	JobSpec
	User      string   `json:"user"`
	State     JobState `json:"state"`
	Host      string   `json:"host,omitempty"`
	Submitted Time     `json:"submitted"`
	Started   Time     `json:"started,omitempty"`
	Ended     Time     `json:"ended,omitempty"`
	ExitCode  int64    `json:"exit_code"`
	// Why says in one sentence what a waiting job waits for, or how it ended.
	Why string `json:"why,omitempty"`
}

// TokenNames answers the resources a job needs, sorted.
func (s JobSpec) TokenNames() []string { return slices.Sorted(maps.Keys(s.Tokens)) }

// Validate checks s by itself and against the resources and hosts it would
// have to run on: what can never run is refused, naming the limit.
func (s JobSpec) Validate(resources []SharedResource, hosts []Host) Problems {
	var ps Problems
	if len(s.Command) == 0 || s.Command[0] == "" {
		ps.add("command", "there is no command", "say what to run")
	}
	if s.CPUs < 1 {
		ps.add("cpus", fmt.Sprintf("%d cpus cannot run a job", s.CPUs), "ask for at least 1")
	}
	ps.notNegative("memory_mb", s.MemoryMB)
	ps.notNegative("time_limit", int64(s.TimeLimit))
	ps.fits(s, hosts)
	for _, name := range s.TokenNames() {
		ps.tokens(name, s.Tokens[name], resources)
	}
	return ps
}

func (ps *Problems) tokens(name string, units int64, resources []SharedResource) {
	path := "tokens." + name
	i := slices.IndexFunc(resources, func(r SharedResource) bool { return r.Name == name })
	if i < 0 {
		ps.add(path, fmt.Sprintf("there is no shared resource %q", name), "use one that `xce-elastic status` lists")
		return
	}
	if units < 1 {
		ps.add(path, fmt.Sprintf("%d units cannot be taken", units), "ask for at least 1, or leave the resource out")
		return
	}
	r := resources[i]
	if units > r.Ceiling() {
		borrowed := int64(0)
		if r.Elastic != nil {
			borrowed = r.Elastic.MaxBorrowed
		}
		ps.add(path, fmt.Sprintf("%d units can never be had: the limit is %d (owned %d + max borrowed %d - kept back %d)",
			units, r.Ceiling(), r.Owned, borrowed, r.KeepBack), "ask for fewer, or raise the limit")
	}
}

// fits refuses a job that no host, as large as it is now, could ever run.
// A cluster without hosts refuses nothing: they may still join.
func (ps *Problems) fits(s JobSpec, hosts []Host) {
	if len(hosts) == 0 {
		return
	}
	var cpus, memory int64
	for _, h := range hosts {
		if h.CPUs >= s.CPUs && h.MemoryMB >= s.MemoryMB {
			return
		}
		cpus, memory = max(cpus, h.CPUs), max(memory, h.MemoryMB)
	}
	ps.add("cpus", fmt.Sprintf("no host can ever run %d cpus with %d MB; the largest have %d cpus and %d MB", s.CPUs, s.MemoryMB, cpus, memory),
		"ask for what one host has")
}
