package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/controller/api"
)

// run is one job's process and its folder:
//
//	started  made before the process: whoever finds it must not start the job again;
//	         locked for as long as a process of the job lives
//	pid      the process group, written by the process
//	exit     the exit status, written by the process as its last act
//	output   what the job printed
type run struct {
	folder string
	job    cluster.Job
}

// supervise runs the job's command, which it gets as arguments and never reads
// as shell text, and leaves pid and exit status behind.
const supervise = `echo $$ >"$0/pid.new" && mv "$0/pid.new" "$0/pid"
"$@"
echo $? >"$0/exit.new" && mv "$0/exit.new" "$0/exit"`

// lookEvery is how often a running job is looked at.
const lookEvery = 50 * time.Millisecond

func (r run) path(name string) string { return filepath.Join(r.folder, name) }

// start starts the process, unless the folder shows that it was started before.
func (r run) start() error {
	if err := private.Folder(r.folder); err != nil {
		return fmt.Errorf("make the job's folder: %w", err)
	}
	mark, err := private.Open(r.path("started"), os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mark the job as started: %w", err)
	}
	defer mark.Close() // the job's processes inherit it, and its lock
	if err := unix.Flock(int(mark.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock the job's mark: %w", err)
	}
	command, err := resolve(r.job.Command)
	if err != nil {
		return err
	}
	output, err := private.Open(r.path("output"), os.O_CREATE|os.O_TRUNC|os.O_RDWR)
	if err != nil {
		return fmt.Errorf("make the job's output file: %w", err)
	}
	defer output.Close()
	if info, err := os.Stat(r.job.Directory); r.job.Directory != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("folder %s is not there", r.job.Directory)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", supervise, r.folder}, command...)...)
	cmd.Dir = r.job.Directory
	if cmd.Dir == "" {
		cmd.Dir = r.folder
	}
	cmd.Env = append(os.Environ(), "XCE_JOB_ID="+strconv.FormatInt(r.job.ID, 10), "XCE_JOB_REQUEUES="+strconv.FormatInt(r.job.Requeues, 10))
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = output, output, []*os.File{mark}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the job in %s: %w", cmd.Dir, err)
	}
	go func() { _ = cmd.Wait() }() // no zombies; the exit file says how it ended
	return nil
}

// resolve finds the program of a command, so that the shell runs it and nothing
// of its own that has the same name.
func resolve(command []string) ([]string, error) {
	if strings.Contains(command[0], "/") {
		return command, nil
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("find the job's program: %w", err)
	}
	return append([]string{program}, command[1:]...), nil
}

// wait waits for the job's end, and ends it at its time limit, or where it is to
// stop. It answers false where ctx ends first.
func (r run) wait(ctx context.Context, stop <-chan struct{}) (api.JobEnd, bool) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	stopped := false
	for {
		if end, ended := r.look(); ended {
			if (stopped || r.job.Stopping) && end.ExitCode == noExit {
				end = api.JobEnd{State: cluster.JobWaiting, ExitCode: noExit, Why: "its host was drained"}
			}
			return end, true
		}
		select {
		case <-stop:
			stopped = r.kill() || stopped
		default:
		}
		if limit := r.job.TimeLimit; limit > 0 && r.age() > limit.Std() && r.kill() {
			return api.JobEnd{State: cluster.JobTimeout, ExitCode: 128 + int64(syscall.SIGKILL), Why: fmt.Sprintf("ended by its time limit of %s", limit)}, true
		}
		select {
		case <-ctx.Done():
			return api.JobEnd{}, false
		case <-tick.C:
		}
	}
}

// look answers how the job ended, if it has. Whether its processes are gone is
// asked first: the exit status is their last act.
func (r run) look() (api.JobEnd, bool) {
	gone := r.gone()
	if code, err := readNumber(r.path("exit")); err == nil {
		end := api.JobEnd{State: cluster.JobDone, ExitCode: code, Why: "ended by itself"}
		if code != 0 {
			end.State, end.Why = cluster.JobFailed, fmt.Sprintf("ended with exit status %d", code)
		}
		return end, true
	}
	return api.JobEnd{State: cluster.JobFailed, ExitCode: noExit, Why: "its process is gone and left no exit status"}, gone
}

// noExit stands for the exit status of a job that left none.
const noExit = -1

// gone tells whether the job was started and no process of it is left: none
// holds the lock. A process id would not do, since a restart of the machine
// gives it to another.
func (r run) gone() bool {
	mark, err := os.OpenFile(r.path("started"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer mark.Close()
	return unix.Flock(int(mark.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// age is for how long the job runs, by this machine's clock: the controller's
// may differ.
func (r run) age() time.Duration {
	mark, err := os.Stat(r.path("started"))
	if err != nil {
		return 0
	}
	return time.Since(mark.ModTime())
}

// kill ends the job's processes, and tells whether it could: not before the
// first of them has written its id.
func (r run) kill() bool {
	pid, err := readNumber(r.path("pid"))
	return err == nil && syscall.Kill(-int(pid), syscall.SIGKILL) == nil
}

func readNumber(path string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
}
