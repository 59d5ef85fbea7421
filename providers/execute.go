package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// execute runs the script once, in its own process group; nothing of the group outlives the call.
func (r *Runner) execute(ctx context.Context, verb Verb, in []byte) Execution {
	// The kernel ends the script when the thread that forked it ends; so this one must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ctx, expire := context.WithTimeoutCause(ctx, r.spec.TimeLimit, errTimeLimit)
	defer expire()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	stdout := &limitedOutput{limit: r.spec.OutputLimit, full: func() { stop(errOutputLimit) }}
	stderr := &logLines{log: r.log.With("verb", string(verb))}
	cmd := exec.Command(r.spec.Script, string(verb))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), stdout, stderr
	cmd.Env, cmd.SysProcAttr, cmd.WaitDelay = r.environment(), ownGroup(), pipeLimit

	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return Execution{Exit: -1, Err: fmt.Errorf("%s not started: %w", verb, err)}
	}
	killed := waitGroup(ctx, cmd)
	stderr.flush()
	run := Execution{Stdout: stdout.text.Bytes(), Exit: cmd.ProcessState.ExitCode(), Elapsed: time.Since(begin)}
	if killed || stdout.overflowed {
		run.Err = r.broken(verb, context.Cause(ctx))
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

func (r *Runner) broken(verb Verb, cause error) error {
	switch {
	case errors.Is(cause, errTimeLimit):
		return fmt.Errorf("%s: no end within the time limit of %s: killed; make the script faster or raise the limit",
			verb, r.spec.TimeLimit)
	case errors.Is(cause, errOutputLimit):
		return fmt.Errorf("%s: more than %d bytes on stdout: killed; print one JSON object and nothing else",
			verb, r.spec.OutputLimit)
	}
	return fmt.Errorf("%s: killed: %w", verb, cause)
}

// environment is all that a script gets to see of ours.
func (r *Runner) environment() []string {
	settings := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			settings[name] = value
		}
	}
	for name, value := range r.spec.Environment {
		settings[name] = value
	}
	settings["LC_ALL"] = "C"
	environment := make([]string, 0, len(settings))
	for name, value := range settings {
		environment = append(environment, name+"="+value)
	}
	return environment
}
