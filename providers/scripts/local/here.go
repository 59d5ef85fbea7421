package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/providers"
)

// mark is the variable by which a process knows, and shows, of which host it is.
const mark = "LOCAL_HOST"

// killWithin is how long the end of a host may take before it is left to the next call.
const killWithin = 2 * time.Second

// here is this machine, with the folders of the hosts.
type here struct {
	folder    string
	agent     string // the program; empty where none may be started
	giveNames bool
	gates     []*os.File // of agents that wait for their record
}

func (m *here) host(instance string) string { return filepath.Join(m.folder, "hosts", instance) }

func (m *here) names() bool { return m.giveNames }

// newInstance never answers the same twice, not even when the state file was lost.
func (m *here) newInstance(number int64) (string, error) {
	instance := fmt.Sprintf("i-%d-%s", number, strings.ToLower(rand.Text()[:8]))
	if _, err := os.Lstat(m.host(instance)); err == nil {
		return "", fmt.Errorf("folder %s is there already: remove it", m.host(instance))
	}
	return instance, nil
}

// prepare replaces the join message whole. It alone has the token.
func (m *here) prepare(instance string, join providers.Join) error {
	folder := m.host(instance)
	if err := private.Folder(folder); err != nil {
		return fmt.Errorf("folder of a host: %w: allow writing in %s", err, m.folder)
	}
	text, err := json.Marshal(join)
	if err != nil {
		return err
	}
	if err := private.Replace(filepath.Join(folder, "join.json"), append(text, '\n')); err != nil {
		return fmt.Errorf("join message of %s: %w", instance, err)
	}
	return nil
}

// arguments of the agent of a host.
func (m *here) arguments(h *host) []string {
	folder := m.host(h.Instance)
	arguments := []string{
		m.agent, "agent", "--join", filepath.Join(folder, "join.json"), "--agent.folder", filepath.Join(folder, "agent"),
		"--agent.cpus", strconv.FormatInt(h.Size.CPUs, 10), "--agent.memory_mb", strconv.FormatInt(h.Size.MemoryMB, 10),
	}
	for _, feature := range h.Features {
		arguments = append(arguments, "--feature", feature)
	}
	for _, name := range sortedNames(h.Countables) {
		arguments = append(arguments, "--countable", fmt.Sprintf("%s=%d", name, h.Countables[name]))
	}
	return arguments
}

// start starts local boot in a session of its own, which becomes the agent. It waits at a gate until the
// record of it is kept, and ends when this process ends before.
func (m *here) start(h *host, wait time.Duration) (process, error) {
	if m.agent == "" {
		return process{}, errors.New("no agent is given")
	}
	self, err := os.Executable()
	if err != nil {
		return process{}, err
	}
	log, err := private.Open(filepath.Join(m.host(h.Instance), "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY)
	if err != nil {
		return process{}, err
	}
	defer log.Close()
	entrance, gate, err := os.Pipe()
	if err != nil {
		return process{}, err
	}
	defer entrance.Close()
	cmd := exec.Command(self, append([]string{"boot", wait.String()}, m.arguments(h)...)...)
	cmd.Dir, cmd.Env = m.host(h.Instance), append(environment(), mark+"="+m.host(h.Instance))
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{entrance}
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		gate.Close()
		return process{}, err
	}
	started, err := identify(cmd.Process.Pid)
	if err != nil {
		gate.Close()
		return process{}, err
	}
	go func() { _ = cmd.Wait() }() // it outlives this process, or was ended by the next call
	m.gates = append(m.gates, gate)
	return started, nil
}

// environment is ours without what steers this script.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(line string) bool {
		return strings.HasPrefix(line, "XCE_") || strings.HasPrefix(line, mark+"=")
	})
}

// release lets the agents begin whose record is kept. The others find the gate closed and end.
func (m *here) release(kept bool) {
	for _, gate := range m.gates {
		if kept {
			_, _ = gate.Write([]byte{'\n'}) // one that was killed meanwhile is started again by the next call
		}
		gate.Close()
	}
	m.gates = nil
}

func (m *here) lives(agent process) bool { return agent.lives() }

func (m *here) jobs(instance string, agent process) int64 {
	var jobs int64
	for _, pid := range members(m.host(instance), agent) {
		if pid != agent.PID {
			jobs++
		}
	}
	return jobs
}

// end kills the agent first, so that it can tell nobody that its jobs have failed, as on a machine that loses
// its power.
func (m *here) end(instance string, agent process) bool {
	for deadline := time.Now().Add(killWithin); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		left := members(m.host(instance), agent)
		if len(left) == 0 {
			return true
		}
		if slices.Contains(left, agent.PID) {
			kill(agent.PID)
		}
		for _, pid := range left {
			kill(pid)
		}
	}
	return false
}

func (m *here) clear(instances []string) {
	entries, err := os.ReadDir(filepath.Join(m.folder, "hosts"))
	if err != nil {
		return // no host was made yet
	}
	for _, entry := range entries {
		if !slices.Contains(instances, entry.Name()) {
			_ = os.RemoveAll(m.host(entry.Name())) // best effort: the next call tries again
		}
	}
}

func (m *here) complain(h *host, err error) {
	fmt.Fprintf(os.Stderr, "local: the agent of %s was not started: %v; the next call tries again\n", h.Instance, err)
}
