package farm

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// testKind is a kind whose hosts are what XCE_LOCAL_AGENT names.
var testKind = Kind{Name: "local", Usage: "usage: local VERB\n", Mark: "LOCAL_HOST", Joins: true, Restarts: true, Hosts: func() (Hosts, error) {
	program := os.Getenv("XCE_LOCAL_AGENT")
	if _, err := os.Stat(program); err != nil {
		return nil, errors.New("XCE_LOCAL_AGENT is no program")
	}
	return agents{program}, nil
}}

type agents struct{ program string }

func (a agents) Place(*Host, []Host) error { return nil }

func (a agents) Arguments(folder string, h *Host) []string {
	return []string{
		a.program, "--join", filepath.Join(folder, "join.json"), "--agent.folder", filepath.Join(folder, "agent"),
		"--agent.cpus", strconv.FormatInt(h.Size.CPUs, 10), "--agent.memory_mb", strconv.FormatInt(h.Size.MemoryMB, 10),
	}
}
