// Package dynamic runs slurmd of a dynamic node on this machine, under an address
// of its own.
//
// Slurm 22.05 reaches every dynamic node at the common SlurmdPort, whatever port the
// node has, so nodes on one machine need an address each. With NoInAddrAny slurmd
// listens at what its hostname resolves to: it runs in a UTS namespace whose hostname
// is that address.
package dynamic

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Node is a dynamic node.
type Node struct {
	// Conf is slurm.conf of the cluster. It must say CommunicationParameters=NoInAddrAny
	// and DebugFlags=NO_CONF_HASH, since the node has a copy of its own.
	Conf string
	// Folder is where the copy, the log and the spool folder of the node are. Its path must be short:
	// sockets are in it.
	Folder string
	Name   string
	// Address is of the loopback network, such as 127.0.1.5.
	Address string
	// Has is what its NodeName line says beside that, as in "CPUs=4 RealMemory=4000 Feature=big".
	Has string
}

// Copy is the node's own slurm.conf.
func (n Node) Copy() string { return filepath.Join(n.Folder, "slurm-"+n.Name+".conf") }

// ours are the settings of slurmd that the copy replaces.
var ours = []string{"slurmdspooldir", "slurmdpidfile", "slurmdlogfile"}

// prepare writes the copy: slurmd finds itself in no other way where the node was made after slurm.conf.
func (n Node) prepare() error {
	text, err := os.ReadFile(n.Conf)
	if err != nil {
		return fmt.Errorf("slurm.conf of node %s: %w", n.Name, err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		key, _, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !isOneOf(ours, strings.ToLower(strings.TrimSpace(key))) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	at := func(what string) string { return filepath.Join(n.Folder, what+"-"+n.Name) }
	lines = append(lines,
		"SlurmdSpoolDir="+at("spool"), "SlurmdPidFile="+at("slurmd")+".pid", "SlurmdLogFile="+at("slurmd")+".log",
		fmt.Sprintf("NodeName=%s %s NodeAddr=%s NodeHostname=%s State=CLOUD", n.Name, n.Has, n.Address, n.Name), "")
	if err := os.MkdirAll(at("spool"), 0o755); err != nil {
		return fmt.Errorf("spool folder of node %s: %w", n.Name, err)
	}
	return errors.Join(os.WriteFile(n.Copy(), []byte(strings.Join(lines, "\n")), 0o644))
}

func isOneOf(all []string, one string) bool {
	for _, each := range all {
		if each == one {
			return true
		}
	}
	return false
}

// Command prepares the node's folder, and answers the command that runs slurmd in the
// foreground until it ends. It tells Slurm that the node has just booted. Whoever
// starts it must see that it has SLURM_CONF in its environment, which names the copy.
func (n Node) Command(env []string) (*exec.Cmd, error) {
	slurmd, err := Find("slurmd")
	if err != nil {
		return nil, err
	}
	if err := n.prepare(); err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", `hostname "$1" && shift && exec "$@"`, "node", n.Address,
		slurmd, "-D", "-f", n.Copy(), "-N", n.Name, "-s", "-b")
	cmd.Env = append(env, "SLURM_CONF="+n.Copy())
	cmd.SysProcAttr = ownHostname()
	return cmd, nil
}

// Find answers where one of Slurm's programs is; daemons are where only root looks.
func Find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, folder := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s here: install it, or have it on PATH", name)
}
