package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// kill is best effort: who is gone is gone already, and whoever asked looks again.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// stat is what the kernel says of one process.
type stat struct {
	session int
	start   uint64
	dead    bool // but not reaped yet
}

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the state, field 3, on
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("process %d: its stat is cut", pid)
	}
	session, err := strconv.Atoi(fields[3])
	if err != nil {
		return stat{}, err
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return stat{session, start, fields[0] == "Z" || fields[0] == "X"}, err
}

func thisBoot() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// identify names a process that was just started by us, and so exists until we reap it.
func identify(pid int) (process, error) {
	boot, err := thisBoot()
	if err != nil {
		return process{}, err
	}
	s, err := readStat(pid)
	return process{PID: pid, Start: s.start, Boot: boot}, err
}

func (p process) lives() bool {
	if p.PID == 0 {
		return false
	}
	boot, err := thisBoot()
	if err != nil || boot != p.Boot {
		return false
	}
	s, err := readStat(p.PID)
	return err == nil && s.start == p.Start && !s.dead
}

// members answers every process of a host: those that bear its mark, wherever they have gone, and those of
// its session. A session's number is the host's own as long as its agent has it, or a process in it bears
// the mark.
func members(host string, agent process) (all []int) {
	own := agent.lives()
	var session, marked []int
	for _, pid := range processes() {
		s, err := readStat(pid)
		if err != nil || s.dead {
			continue
		}
		switch inside := s.session == agent.PID; {
		case bears(pid, host):
			own = own || inside
			marked = append(marked, pid)
		case inside:
			session = append(session, pid)
		}
	}
	if own {
		marked = append(marked, session...)
	}
	return marked
}

func processes() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// bears tells whether the process was started with the host's mark. Another user's process shows nothing.
func bears(pid int, host string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, text...), []byte("\x00"+mark+"="+host+"\x00"))
}
