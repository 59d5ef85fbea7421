package farm

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/process"
)

// killWithin is how long the end of a host may take before it is left to the next call.
const killWithin = 2 * time.Second

// here is this machine, with the folders of the hosts.
type here struct {
	kind   Kind
	folder string
	hosts  Hosts      // how they run; nil where none may be started
	gates  []*os.File // of agents that wait for their record
}

func (m *here) host(instance string) string { return filepath.Join(m.folder, "hosts", instance) }

func (m *here) joins() bool { return m.kind.Joins }

func (m *here) place(h *Host, others []Host) error { return m.hosts.Place(h, others) }

// newInstance never answers the same twice, not even when the state file was lost.
func (m *here) newInstance(number int64) (string, error) {
	instance := fmt.Sprintf("i-%d-%s", number, strings.ToLower(rand.Text()[:8]))
	if _, err := os.Lstat(m.host(instance)); err == nil {
		return "", fmt.Errorf("folder %s is there already: remove it", m.host(instance))
	}
	return instance, nil
}

// prepare replaces the join message whole. It alone has the token.
func (m *here) prepare(instance string, join *providers.Join) error {
	folder := m.host(instance)
	if err := private.Folder(folder); err != nil {
		return fmt.Errorf("folder of a host: %w: allow writing in %s", err, m.folder)
	}
	if join == nil {
		return nil
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

// start starts SCRIPT boot in a session of its own, which becomes the agent. It waits at a gate until the
// record of it is kept, and ends when this process ends before.
func (m *here) start(h *Host, wait time.Duration) (process.Process, error) {
	if m.hosts == nil {
		return process.Process{}, errors.New("hosts are not started here")
	}
	self, err := os.Executable()
	if err != nil {
		return process.Process{}, err
	}
	log, err := private.Open(filepath.Join(m.host(h.Instance), "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY)
	if err != nil {
		return process.Process{}, err
	}
	defer log.Close()
	entrance, gate, err := os.Pipe()
	if err != nil {
		return process.Process{}, err
	}
	defer entrance.Close()
	cmd := exec.Command(self, append([]string{"boot", wait.String()}, m.hosts.Arguments(m.host(h.Instance), h)...)...)
	cmd.Dir, cmd.Env = m.host(h.Instance), append(m.environment(), m.kind.Mark+"="+m.host(h.Instance))
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{entrance}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		gate.Close()
		return process.Process{}, err
	}
	started, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		gate.Close()
		return process.Process{}, err
	}
	go func() { _ = cmd.Wait() }() // it outlives this process, or was ended by the next call
	m.gates = append(m.gates, gate)
	return started, nil
}

// environment is ours without what steers this script.
func (m *here) environment() []string {
	return slices.DeleteFunc(os.Environ(), func(line string) bool {
		return strings.HasPrefix(line, "XCE_") || strings.HasPrefix(line, m.kind.Mark+"=")
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

func (m *here) lives(agent process.Process) bool { return agent.Lives() }

// failed tells of a host that had booted; what it became wrote so in its folder.
func (m *here) failed(instance string) bool {
	if m.kind.Restarts {
		return false
	}
	_, err := os.Lstat(filepath.Join(m.host(instance), Booted))
	return err == nil
}

func (m *here) jobs(instance string, agent process.Process) int64 {
	var jobs int64
	for pid, command := range members(m.kind.Mark, m.host(instance), agent) {
		if pid != agent.PID && (m.kind.Job == "" || m.kind.Job == command) {
			jobs++
		}
	}
	return jobs
}

// end kills the agent first, so that it can tell nobody that its jobs have failed, as on a machine that loses
// its power.
func (m *here) end(instance string, agent process.Process) bool {
	for deadline := time.Now().Add(killWithin); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		left := members(m.kind.Mark, m.host(instance), agent)
		if len(left) == 0 {
			return true
		}
		if _, lives := left[agent.PID]; lives {
			process.Signal(syscall.SIGKILL, agent.PID)
		}
		all := slices.Collect(maps.Keys(left))
		process.Signal(syscall.SIGSTOP, all...) // nothing tells how what it has started has ended
		process.Signal(syscall.SIGKILL, all...)
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

func (m *here) complain(h *Host, err error) {
	fmt.Fprintf(os.Stderr, "%s: host %s was not started: %v; the next call tries again\n", m.kind.Name, h.Instance, err)
}

// members answers every process of a host, with the name of its command: those that
// bear its mark, wherever they have gone, what they have started, and those of its
// session. A session's number is the host's own as long as its agent has it, or a
// process in it bears the mark.
func members(mark, host string, agent process.Process) map[int]string {
	own := agent.Lives()
	all := process.All()
	var session, marked []int
	for pid, s := range all {
		switch inside := s.Session == agent.PID; {
		case bears(pid, mark, host):
			own = own || inside
			marked = append(marked, pid)
		case inside:
			session = append(session, pid)
		}
	}
	if own {
		marked = append(marked, session...)
	}
	commands := map[int]string{}
	for _, pid := range append(marked, process.Below(all, marked...)...) {
		commands[pid] = all[pid].Command
	}
	return commands
}

// bears tells whether the process was started with the host's mark: its folder, or something in that.
func bears(pid int, mark, host string) bool {
	_, value, found := strings.Cut(process.Environment(pid), "\x00"+mark+"="+host)
	return found && (value[0] == 0 || value[0] == filepath.Separator)
}
