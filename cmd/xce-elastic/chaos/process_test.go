//go:build e2e

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// process is a part of the cluster: how to start it, and the program as it runs now.
type process struct {
	name, folder string
	program      string
	args         []string
	environment  []string
	as           *syscall.Credential // another user, where one is needed
	// ready is asked until the process is ready; none where nobody waits for it.
	ready func(context.Context) error

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{}
	wanted bool // it is started again where it ends by itself
}

// againAfter is how long after its end a program is started again that was not told to end.
const againAfter = 500 * time.Millisecond

// start starts the program, and does not wait for it. It is started again where it ends by
// itself, such as for want of a database, as a service is.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	return p.startLocked()
}

func (p *process) startLocked() error {
	log, err := os.OpenFile(filepath.Join(p.folder, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.program, p.args...)
	cmd.Dir, cmd.Env = p.folder, slices.Concat(os.Environ(), p.environment)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: p.as}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		_ = cmd.Wait()
		close(done)
		p.startAgain(done)
	}()
	return nil
}

// startAgain starts the program anew, unless it was told to end or is started already.
func (p *process) startAgain(ended chan struct{}) {
	time.Sleep(againAfter)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted && p.done == ended {
		_ = p.startLocked() // its folder is gone, and with it the run
	}
}

// unwanted has the program stay down once it has ended.
func (p *process) unwanted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
}

// running answers the program as it runs now, and what is closed when it ends.
func (p *process) running() (*exec.Cmd, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd, p.done
}

func (p *process) signal(s syscall.Signal) {
	if cmd, _ := p.running(); cmd != nil {
		_ = cmd.Process.Signal(s)
	}
}

// lives tells whether the program runs.
func (p *process) lives() bool {
	_, done := p.running()
	if done == nil {
		return false
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// end ends the program with a signal, and kills it where it takes too long.
func (p *process) end(s syscall.Signal, grace time.Duration) {
	p.unwanted()
	_, done := p.running()
	if done == nil {
		return
	}
	p.signal(s)
	select {
	case <-done:
	case <-time.After(grace):
		p.signal(syscall.SIGKILL)
		<-done
	}
}

// await waits until the process is ready.
func (p *process) await(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		if !p.lives() {
			return fmt.Errorf("%s has ended; see its log in %s: %w", p.name, p.folder, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is not ready after %s", p.name, within), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
