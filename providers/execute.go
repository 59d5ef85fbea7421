package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// pipeLimit is how long a pipe may stay open after the script has ended: long enough for buffers to
// drain, short enough that a process which escaped from the group cannot hold us.
const pipeLimit = time.Second

var (
	errTimeLimit   = errors.New("time limit")
	errOutputLimit = errors.New("output limit")
)

// Command is a program to execute once, under limits: what the Runner makes of a script and a verb, and
// what adapters for scripts of other contracts need as well.
type Command struct {
	Name        string // for messages and the log
	Path        string
	Args        []string
	Folder      string // where it runs; empty = where we do
	Stdin       []byte
	Environment map[string]string // beside PATH, HOME, TMPDIR and LC_ALL=C, which it always gets
	TimeLimit   time.Duration
	OutputLimit int64
	Scrub       func(string) string // hides secrets in what goes to the log; nil = there are none
	Log         *slog.Logger
}

// Execute runs the command in its own process group; nothing of the group outlives the call. Only a
// process that the kernel will not let go of (a dead file system) does: it must not hold the caller.
// Ended is called once it has ended indeed.
func (c Command) Execute(ctx context.Context, ended func()) Execution {
	result := make(chan Execution, 1)
	go func() {
		defer ended()
		result <- c.execute(ctx)
	}()
	abandon := time.NewTimer(c.TimeLimit + 3*pipeLimit)
	defer abandon.Stop()
	select {
	case run := <-result:
		return run
	case <-abandon.C:
		return Execution{Exit: -1, Err: fmt.Errorf("%s: the script cannot be killed: see what its process waits for", c.Name)}
	}
}

func (c Command) execute(ctx context.Context) Execution {
	// The kernel ends the script when the thread that forked it ends; so this one must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ctx, expire := context.WithTimeoutCause(ctx, c.TimeLimit, errTimeLimit)
	defer expire()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	stdout := &limitedOutput{limit: c.OutputLimit, full: func() { stop(errOutputLimit) }}
	stderr := &logLines{log: c.Log, scrub: c.Scrub}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), stdout, stderr
	cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.WaitDelay = c.Folder, c.environment(), ownGroup(), pipeLimit

	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return Execution{Exit: -1, Err: fmt.Errorf("%s not started: %w", c.Name, err)}
	}
	ended := watched(ctx, cmd.Process.Pid)
	killed := waitGroup(ctx, cmd)
	ended()
	stderr.flush()
	run := Execution{Stdout: stdout.text.Bytes(), Exit: cmd.ProcessState.ExitCode(), Elapsed: time.Since(begin)}
	if killed || stdout.overflowed {
		run.Err = c.broken(context.Cause(ctx))
	}
	return run
}

// waitGroup waits for the script, kills its group when ctx ends first, and says whether it had to.
func waitGroup(ctx context.Context, cmd *exec.Cmd) (killed bool) {
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
			killed = true
			killGroup(cmd.Process.Pid)
		case <-ended:
		}
	}()
	// Until it is reaped the script keeps its process id, so the group that is killed is surely its own.
	if awaitExit(cmd.Process.Pid) {
		killGroup(cmd.Process.Pid)
		close(ended)
		<-watched
		_ = cmd.Wait() // the exit status is read from ProcessState; pipes that stayed open are cut
		return killed
	}
	_ = cmd.Wait()
	close(ended)
	<-watched
	return killed
}

// killGroup is best effort: a group that has ended by itself is gone already.
func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }

func (c Command) broken(cause error) error {
	switch {
	case errors.Is(cause, errTimeLimit):
		return fmt.Errorf("%s: no end within the time limit of %s: killed; make the script faster or raise the limit",
			c.Name, c.TimeLimit)
	case errors.Is(cause, errOutputLimit):
		return fmt.Errorf("%s: more than %d bytes on stdout: killed; print one JSON object and nothing else",
			c.Name, c.OutputLimit)
	}
	return fmt.Errorf("%s: killed: %w", c.Name, cause)
}

// environment is all that a script gets to see of ours.
func (c Command) environment() []string {
	settings := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			settings[name] = value
		}
	}
	for name, value := range c.Environment {
		settings[name] = value
	}
	settings["LC_ALL"] = "C"
	environment := make([]string, 0, len(settings))
	for name, value := range settings {
		environment = append(environment, name+"="+value)
	}
	return environment
}
