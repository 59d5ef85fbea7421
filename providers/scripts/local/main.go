// Command local is a provider script: a provider of hosts on this machine, to try a cluster out with hosts
// that come and go. Each host is an agent in a session and a folder of its own, and says of itself what its
// template says, so that one machine can stand for many hosts.
//
// Called as local VERB it speaks the provider-script contract, version 1. It reads its settings from the
// environment:
//
//	XCE_LOCAL_FOLDER      the folder that local init has made
//	XCE_LOCAL_CLUSTER     the cluster that asks
//	XCE_LOCAL_AGENT       the program whose verb agent runs a host, xce-elastic
//
// For try-outs of what can go wrong:
//
//	XCE_LOCAL_LATENCY_MS  acts, then sleeps that long before it answers
//	XCE_LOCAL_PENDING_MS  answers a request with pending and grants it that long after
//	XCE_LOCAL_FAIL        each Nth call acts, then ends with exit status 1 and no answer
//	XCE_LOCAL_LIST        fail, empty or cut: what list answers instead of the truth
//	XCE_LOCAL_NAMES       1: hosts have names, node-1 and up, which are used again
//
// The operator's verbs are init, set, show, reclaim, crash and stop; local help lists their flags.
//
// Whoever calls the script also tends the hosts, as a machine's service manager would: what was granted and
// does not run is started, and what is to end is ended. So the script, the agents and the machine may die at
// any moment. Every change is also one line of JSON in the journal, local.json.log in the folder; where a
// host ends, it says how many processes beside the agent ran on it then.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"xce.internal/elastic/providers/scripts/dialogue"
	"xce.internal/elastic/providers/scripts/farm"
)

const usage = `usage: local VERB       one JSON object on stdin, one on stdout; VERB is one of
                        describe, request, status, return, list
       local init    --folder F --template small=2:4096 --capacity small=10 [--price small=250000]
                     [--hold small=60] [--billing small=0] [--feature small=avx512]
                     [--countable small:gpus=2] [--preference small=1] [--latency 2s]
       local set     --folder F [--capacity small=0] [--refuse small=quota] [--joins small=1:2048]
                     [--never-joins small=1] [--latency 5s] [--list good|fail|empty|cut]
       local show    --folder F [-o table|json]
       local reclaim --folder F [--grace 30s] HOST
       local crash   --folder F HOST
       local stop    --folder F
HOST is the id of an instance or of a request.
`

func main() {
	os.Exit(local.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

var local = farm.Kind{Name: "local", Usage: usage, Mark: "LOCAL_HOST", Joins: true, Restarts: true, Hosts: agents}

// agent is how a host runs: as an agent of the cluster.
type agent struct {
	program string
	named   bool
}

func agents() (farm.Hosts, error) {
	path := os.Getenv("XCE_LOCAL_AGENT")
	if path == "" {
		return nil, errors.New("XCE_LOCAL_AGENT must be set: to the path of xce-elastic")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		err = unix.Access(path, unix.X_OK)
	}
	if err != nil {
		return nil, fmt.Errorf("XCE_LOCAL_AGENT=%s: %w: give the path of xce-elastic", path, err)
	}
	named, err := dialogue.Number("XCE_LOCAL_NAMES")
	return agent{path, named > 0}, err
}

// Place implements farm.Hosts: a name is used again when its host is gone.
func (a agent) Place(h *farm.Host, others []farm.Host) error {
	for n := 1; a.named && h.Name == ""; n++ {
		name := fmt.Sprintf("node-%d", n)
		if !slices.ContainsFunc(others, func(h farm.Host) bool { return h.Name == name }) {
			h.Name = name
		}
	}
	return nil
}

// Arguments implements farm.Hosts.
func (a agent) Arguments(folder string, h *farm.Host) []string {
	arguments := []string{
		a.program, "agent", "--join", filepath.Join(folder, "join.json"), "--agent.folder", filepath.Join(folder, "agent"),
		"--agent.cpus", strconv.FormatInt(h.Size.CPUs, 10), "--agent.memory_mb", strconv.FormatInt(h.Size.MemoryMB, 10),
	}
	for _, feature := range h.Features {
		arguments = append(arguments, "--feature", feature)
	}
	for _, name := range slices.Sorted(maps.Keys(h.Countables)) {
		arguments = append(arguments, "--countable", fmt.Sprintf("%s=%d", name, h.Countables[name]))
	}
	return arguments
}
