package slurm

import (
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// ourReason begins the reason of every drain that is ours.
const ourReason = "xce: "

// has tells whether one of the words is in a node's state.
func (n Node) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return n.Base == w || slices.Contains(n.Flags, w) })
}

// state answers a node's state as one word of Slurm's.
func (n Node) state() string { return strings.Join(append([]string{n.Base}, n.Flags...), "+") }

// dynamic tells whether a node was made at run time: no configuration names it.
func (n Node) dynamic() bool { return n.has("DYNAMIC_NORM", "DYNAMIC_FUTURE") }

// drainedByUs tells whether a node takes no jobs since we said so. When a node registers that was not there, Slurm
// keeps the drain and may forget the reason, which nobody can leave out who drains one but in slurm.conf.
func (n Node) drainedByUs() bool {
	forgotten := n.Reason == "" && (n.has("CLOUD") || n.dynamic())
	return n.has("DRAIN") && (forgotten || strings.HasPrefix(n.Reason, ourReason))
}

// busy tells whether jobs are on a node, those that are just ending among them.
func (n Node) busy() bool {
	return n.AllocatedCPUs > 0 || n.has("ALLOCATED", "MIXED", "COMPLETING")
}

// asHost answers a node in our words. Its Busy is 1 where jobs are on it: how many,
// the jobs say.
func asHost(n Node) backend.Host {
	features := append(slices.Clone(n.Features), backend.AtNode+n.Name)
	for _, p := range n.Partitions {
		features = append(features, backend.InPartition+p)
	}
	slices.Sort(features)
	h := backend.Host{
		Name: n.Name,
		Capacity: cluster.Capacity{
			CPUs: n.CPUs, MemoryMB: n.MemoryMB, Countables: n.Gres, Features: slices.Compact(features),
		},
		Drained: n.drainedByUs(), PutOff: n.has("FUTURE") && (!n.has("DRAIN") || n.drainedByUs()), Removable: n.dynamic(),
	}
	h.State, h.Why = standing(n)
	if n.busy() {
		h.Busy = 1
	}
	return h
}

// standing says how Slurm stands to a node, and why it takes no jobs. What says that the
// machine is not there goes before what says that it may take no jobs: a node that
// is away and drained is away.
func standing(n Node) (backend.HostState, string) {
	here := n.Booted != 0
	switch {
	case n.has("FUTURE") && n.dynamic():
		return backend.HostAwaited, "it is declared and not here yet"
	case n.has("FUTURE"):
		return backend.HostAwaited, "it is declared for later; Slurm puts idle FUTURE nodes back to that when it restarts: where its slurmd runs, set it to resume"
	case n.has("POWERING_DOWN", "POWER_DOWN"):
		return backend.HostRemoving, "Slurm is switching it off"
	case n.has("POWERED_DOWN") && n.has("DOWN"):
		return backend.HostAwaited, because(n, "Slurm waited for it in vain; set it to resume to try again")
	case n.has("POWERED_DOWN"):
		return backend.HostAwaited, "it is declared and not here yet"
	case n.has("POWERING_UP", "POWER_UP") && here && !n.has("NOT_RESPONDING"):
		return backend.HostAwaited, "its slurmd answers, and did not start after Slurm began to wait for it; restart that with -b"
	case n.has("POWERING_UP", "POWER_UP"):
		return backend.HostAwaited, "it is starting; Slurm gives up after its ResumeTimeout"
	case n.has("DOWN", "UNKNOWN", "ERROR", "NOT_RESPONDING") && !here:
		return backend.HostAwaited, because(n, "it is declared and has never answered")
	case n.has("DOWN", "UNKNOWN", "ERROR", "NOT_RESPONDING"):
		return backend.HostSilent, because(n, "its slurmd does not answer, or Slurm took it down: "+n.state())
	case n.has("INVALID_REG", "INVAL"):
		return backend.HostClosed, because(n, "it has less than it was declared with")
	case n.has("REBOOT", "REBOOT_ISSUED", "REBOOT_REQUESTED"):
		return backend.HostClosed, "it is being restarted"
	case n.drainedByUs():
		return backend.HostClosed, strings.TrimSuffix("we drained it: "+strings.TrimPrefix(n.Reason, ourReason), ": ")
	case n.has("DRAIN", "FAIL"):
		return backend.HostClosed, because(n, "someone drained it")
	case n.has("MAINTENANCE", "MAINT"):
		return backend.HostClosed, "a reservation keeps it for maintenance"
	case n.has("RESERVED", "RES"):
		return backend.HostClosed, "a reservation keeps it"
	case n.has("BLOCKED"):
		return backend.HostClosed, "a job keeps its part of the network to itself"
	case n.Base == "IDLE" || n.Base == "ALLOCATED" || n.Base == "MIXED":
		return backend.HostReady, ""
	}
	return backend.HostClosed, fmt.Sprintf("Slurm says %s of it, which is not known here", n.state())
}

func because(n Node, what string) string {
	if n.Reason == "" {
		return what
	}
	return what + ": " + n.Reason
}
