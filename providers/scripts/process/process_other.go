//go:build unix && !linux

// Package process cannot tell processes apart for certain here.
package process

import (
	"errors"
	"syscall"
)

// Signal is best effort.
func Signal(signal syscall.Signal, pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal)
	}
}

// Stat is what the kernel says of one process.
type Stat struct {
	Command         string
	Parent, Session int
	Start           uint64
	Dead            bool
}

// Identify kills what it cannot name.
func Identify(pid int) (Process, error) {
	Signal(syscall.SIGKILL, pid)
	return Process{}, errors.New("processes of this machine can be told apart on Linux only")
}

// Read cannot tell.
func Read(int) (Stat, error) { return Stat{}, errors.New("processes can be read on Linux only") }

// Lives cannot tell.
func (p Process) Lives() bool { return false }

// All answers none.
func All() map[int]Stat { return nil }

// Environment answers nothing.
func Environment(int) string { return "" }

// Bears cannot tell.
func Bears(int, string, string) bool { return false }

// Arguments answers none.
func Arguments(int) []string { return nil }

// Below answers none.
func Below(map[int]Stat, ...int) []int { return nil }
