// Package process tells the processes of this machine apart, and finds those that
// belong to one thing: by what their environment says, and by who started them.
package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Signal is best effort: who is gone is gone already, and whoever asked looks again.
func Signal(signal syscall.Signal, pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal)
	}
}

// Stat is what the kernel says of one process.
type Stat struct {
	Command         string // its name, cut to 15 bytes
	Parent, Session int
	Start           uint64 // as the kernel counts since it booted
	Dead            bool   // but not reaped yet
}

// Read asks the kernel about a process.
func Read(pid int) (Stat, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Stat{}, err
	}
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[shut+1:])) // from the state, field 3, on
	if open < 0 || shut < open || len(fields) < 20 {
		return Stat{}, fmt.Errorf("process %d: its stat is cut", pid)
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return Stat{}, err
	}
	session, err := strconv.Atoi(fields[3])
	if err != nil {
		return Stat{}, err
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return Stat{string(text[open+1 : shut]), parent, session, start, fields[0] == "Z" || fields[0] == "X"}, err
}

func thisBoot() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// Identify names a process that was just started by us, and so exists until we reap it.
func Identify(pid int) (Process, error) {
	boot, err := thisBoot()
	if err != nil {
		return Process{}, err
	}
	s, err := Read(pid)
	return Process{PID: pid, Start: s.Start, Boot: boot}, err
}

// Lives tells whether the process runs still.
func (p Process) Lives() bool {
	if p.PID == 0 {
		return false
	}
	boot, err := thisBoot()
	if err != nil || boot != p.Boot {
		return false
	}
	s, err := Read(p.PID)
	return err == nil && s.Start == p.Start && !s.Dead
}

// All answers every process that is not dead.
func All() map[int]Stat {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]Stat, len(entries))
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, err := Read(pid); err == nil && !s.Dead {
			all[pid] = s
		}
	}
	return all
}

// Environment answers what the process was started with, each line after a zero
// byte and before one. Another user's process shows nothing.
func Environment(pid int) string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return "\x00" + string(text)
}

// Bears tells whether the process was started with the variable.
func Bears(pid int, name, value string) bool {
	return strings.Contains(Environment(pid), "\x00"+name+"="+value+"\x00")
}

// Arguments answers the command line of a process.
func Arguments(pid int) []string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Below answers those of all that some of the processes have started, and what those have started, in order.
func Below(all map[int]Stat, of ...int) []int {
	var below []int
	above := of
	for len(above) > 0 {
		var next []int
		for pid, s := range all {
			if slices.Contains(above, s.Parent) && !slices.Contains(below, pid) && !slices.Contains(of, pid) {
				next = append(next, pid)
			}
		}
		below, above = append(below, next...), next
	}
	slices.Sort(below)
	return below
}
