package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"xce.internal/elastic/providers/scripts/farm"
	"xce.internal/elastic/providers/scripts/slurmd/dynamic"
)

// Pauses between two tries.
const (
	askEvery  = 150 * time.Millisecond
	askWithin = 5 * time.Second
	bootEvery = time.Second
)

// runNode is what a host's first process becomes: slurmhost node CONF NAME ADDRESS HAS, in the host's folder.
// It returns when the host's slurmd was ended.
func runNode(args []string) error {
	if len(args) != 4 {
		return errors.New("node is for the script itself: slurmhost help shows what there is")
	}
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	n := dynamic.Node{Conf: args[0], Folder: folder, Name: args[1], Address: args[2], Has: args[3]}
	runtime.LockOSThread() // slurmd ends with the thread that started it
	for ; ; time.Sleep(bootEvery) {
		for !known(n) {
			time.Sleep(askEvery)
		}
		err := boot(n)
		if !again(err) {
			return fmt.Errorf("slurmd of %s is over: %w", n.Name, err)
		}
		fmt.Fprintf(os.Stderr, "slurmhost: slurmd of %s ended and is started again: %v\n", n.Name, err)
	}
}

// known tells whether Slurm knows the node under this address, and not an earlier one of its name.
func known(n dynamic.Node) bool {
	scontrol, err := dynamic.Find("scontrol")
	if err != nil {
		fmt.Fprintln(os.Stderr, "slurmhost:", err)
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, scontrol, "-F", "-o", "show", "node", n.Name)
	cmd.Env = []string{"SLURM_CONF=" + n.Conf, "LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = endsWithUs(nil)
	out, err := cmd.Output()
	return err == nil && slices.Contains(strings.Fields(string(out)), "NodeAddr="+n.Address)
}

// boot runs slurmd until it ends.
func boot(n dynamic.Node) error {
	cmd, err := n.Command([]string{"LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
	if err != nil {
		return err
	}
	if err := os.WriteFile(farm.Booted, nil, 0o600); err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = endsWithUs(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	return errDown
}

// errDown: slurmd ended as it was told.
var errDown = errors.New("it was shut down")

// again tells whether slurmd gave up by itself, such as when Slurm does not know its node any more. It is not
// started again where someone has ended it.
func again(err error) bool {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, isStatus := exit.Sys().(syscall.WaitStatus)
		return isStatus && status.Exited()
	}
	return !errors.Is(err, errDown)
}
