package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// storyLimit is how long the workload may take before something must be wrong.
const storyLimit = 3 * time.Minute

// Run brings the example cluster up, runs the workload to its end, shows it,
// and says how the books stand. With Stay it then keeps the cluster up. An
// interrupt while it stays up is its normal end.
func Run(ctx context.Context, options Options) (err error) {
	// The kernel ends the parts with the thread that started them: keep it.
	runtime.LockOSThread()
	if err := os.MkdirAll(options.Folder, 0o700); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	unlock, err := claim(options.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	f := &farm{Options: options, example: theExample}
	defer func() {
		if ctx.Err() != nil && err != nil {
			err = errInterrupted
		}
		if err = errors.Join(err, f.stop()); err == nil {
			err = f.leave()
		}
	}()
	fmt.Fprintf(f.Out, "Starting the example cluster in %s\n", f.Folder)
	if err := f.start(ctx); err != nil {
		return err
	}
	f.sayWhere()
	if err := f.tell(ctx); err != nil {
		return err
	}
	if !f.Stay {
		return nil
	}
	fmt.Fprintf(f.Out, "\nThe cluster stays up until Ctrl-C. Try, with %s/xce-elastic.yaml as the configuration:\n", f.Folder)
	for _, line := range []string{"status", "submit --token vcs=3 -- sleep 20", "jobs", "session", "loans", "explain resource vcs"} {
		fmt.Fprintf(f.Out, "  %s -c %s %s\n", f.Program, f.path(configName), line)
	}
	return f.stay(ctx)
}

// errInterrupted is how a run ends that was stopped before its end.
var errInterrupted = errors.New("interrupted before the end of the workload")

// claim makes sure that no other run has the folder.
func claim(folder string) (unlock func() error, err error) {
	lock, err := os.OpenFile(filepath.Join(folder, "dev.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another `xce-elastic dev` runs in %s; stop it, or name another --folder", folder), lock.Close())
	}
	return lock.Close, nil
}

func (f *farm) sayWhere() {
	if f.ui != "" {
		fmt.Fprintf(f.Out, "Temporal UI: %s/namespaces/%s/workflows\n", f.ui, f.Temporal.Namespace)
	} else {
		fmt.Fprintf(f.Out, "Temporal: %s, namespace %s (it ran already)\n", f.temporal, f.Temporal.Namespace)
	}
	fmt.Fprintf(f.Out, "Controller:  https://%s\n\n", f.address)
}

// stay waits for the end of ctx, or of a part that should not have ended.
func (f *farm) stay(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := f.healthy(); err != nil {
				return err
			}
		}
	}
}
