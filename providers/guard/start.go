package guard

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Process is a guard that runs, and how it is told.
type Process struct {
	*Guard
	pipe io.Closer
	cmd  *exec.Cmd
	// Ended is closed once it has ended.
	Ended chan struct{}
}

// Start starts a program that calls [Watch] as a guard. It has a process group of
// its own, so that what is meant for this one does not end it first.
func Start(program string, args ...string) (*Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard of scripts: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the guard of scripts: %w", err)
	}
	p := &Process{Guard: New(pipe), pipe: pipe, cmd: cmd, Ended: make(chan struct{})}
	go func() {
		defer close(p.Ended)
		_ = cmd.Wait() // it says on standard error why it failed
	}()
	return p, nil
}

// Stop has the guard end all that runs, and itself.
func (p *Process) Stop() {
	_ = p.pipe.Close()
	<-p.Ended
}
