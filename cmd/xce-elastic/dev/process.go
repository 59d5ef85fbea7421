package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is one part of the cluster, running as a program of its own, its log in a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended
}

// start starts a program. Its environment is ours with `extra` added.
func start(folder, name, program string, args, extra []string) (*process, error) {
	p := &process{name: name, log: filepath.Join(folder, "log", name+".log"), done: make(chan struct{})}
	if err := os.MkdirAll(filepath.Dir(p.log), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for logs: %w", err)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	defer log.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = folder
	p.cmd.Env = append(os.Environ(), extra...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stopGrace is how long a program may take to stop before it is killed.
const stopGrace = 20 * time.Second

// stop asks the program to stop, and kills it where it does not.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopGrace):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not stop within %s and was killed; see %s", p.name, stopGrace, p.log)
	}
}

// ended answers an error once the program has ended by itself.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself (%v); see %s", p.name, p.err, p.log)
	default:
		return nil
	}
}

// await repeats a question every tenth of a second until it is answered without
// error, ctx ends, or the program does.
func (p *process) await(ctx context.Context, within time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return errors.Join(p.ended(), err)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s; see %s: %w", p.name, within, p.log, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
