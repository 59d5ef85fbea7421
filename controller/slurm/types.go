package slurm

import "xce.internal/elastic/cluster"

// Node is a node as `scontrol -F -o show node` tells of it.
type Node struct {
	Name, Address, Hostname string
	CPUs, MemoryMB          int64
	Features                []string // the available ones
	// Gres are countables by their names, such as gpu, over all types of each.
	Gres       map[string]int64
	Partitions []string
	// Base is the first word of the state, such as IDLE; Flags are the others, such as DRAIN.
	Base  string
	Flags []string
	// Reason is who said what of the node, as in "xce: idle [root@2026-01-31T08:00:00]", without the part in brackets.
	Reason string
	// AllocatedCPUs are in use by jobs.
	AllocatedCPUs int64
	Booted        cluster.Time
}

// Licence is one licence as `scontrol -o show licenses` tells of it.
type Licence struct {
	Name                        string // with the server, as in vcs@pool, of a remote one
	Total, Used, Free, Reserved int64
	Remote                      bool
	// LastConsumed and Deficit are what newer releases tell beside that.
	LastConsumed, Deficit int64
}

// Reservation is a reservation as `scontrol -o show reservation` tells of it.
type Reservation struct {
	Name     string
	Flags    []string
	Licences map[string]int64
	Nodes    []string
	State    string // ACTIVE or INACTIVE
	Start    cluster.Time
	End      cluster.Time
	Users    []string
}

// Partition is a partition as `scontrol -o show partition` tells of it.
type Partition struct {
	Name     string
	Default  bool
	State    string // UP, DOWN, DRAIN or INACTIVE
	Nodes    []string
	NodeSets []string
	// MaxNodes is the most nodes of one job; 0 means no limit. MaxTime is its longest time; 0 means no limit.
	MaxNodes       int64
	MaxTime        cluster.Duration
	PriorityFactor int64
}

// Job is one row of `squeue`: a job, a component of a heterogeneous one, a running
// element of an array, or all its waiting ones. Rows with the same wishes share
// their maps and lists, which nobody changes.
type Job struct {
	// ID is unique only together with Submitted: a slurmctld that was killed gives the ids of its last seconds again.
	// A job that is requeued keeps its id and has another Submitted.
	ID int64
	// ArrayID is the array's id, 0 of a job that is none; ArrayTasks are its elements in Slurm's words, as in 2-100%10.
	ArrayID    int64
	ArrayTasks string
	// Elements is how many of them there are, AtOnce how many may run at once (0 is no limit).
	Elements, AtOnce int64
	// HetID and HetOffset tell of a component of a heterogeneous job; HetID is 0 where it is none.
	HetID, HetOffset             int64
	Name, User, Partition, State string
	Reason                       string
	Priority                     int64
	// Nodes is, of a job that waits, how many Slurm thinks that it takes at least; CPUs and Tasks are those of all nodes.
	Nodes, CPUs, Tasks int64
	MemoryMB           int64 // on each node, or for each cpu
	MemoryPerCPU       bool
	Features           string
	Licences           map[string]int64
	AnyLicence         bool             // one of Licences, not all
	Gres               map[string]int64 // on each node
	// Unjudged says what of its wishes cannot be judged here, in one sentence.
	Unjudged                               string
	TimeLimit                              cluster.Duration // 0 is none
	Submitted, Eligible, Started, Expected cluster.Time
	Reservation                            string
	RequiredNodes                          []string
	Exclusive                              bool
	On                                     []string // nodes it runs on
}

// Settings are what a running Slurm says of itself.
type Settings struct {
	Version string // as in 22.05.8
	// Booted is when slurmctld started: another time is another start.
	Booted  cluster.Time
	Cluster string
	// Keys are the lines of `scontrol show config`, by their names in lower case.
	Keys map[string]string
}
