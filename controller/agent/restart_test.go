package agent_test

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/agent"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/store"
)

// line appends a line to a file, and then waits for another file to appear.
const line = `echo ran >>"$1"; while [ ! -e "$2" ]; do sleep 0.02; done; exit 5`

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAJobThatRunsOutlivesAnAgentThatStartsAgain(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	ran, finish := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "finish")
	id := f.shell(line, ran, finish)
	content(t, ran)
	for range 2 {
		f.stop()
		f.startAgent()
	}
	time.Sleep(100 * time.Millisecond)
	if job := f.job(id, func(cluster.Job) bool { return true }); job.State != cluster.JobRunning {
		t.Fatalf("the job is %s: %s", job.State, job.Why)
	}
	touch(t, finish)
	if job := f.ended(id); job.ExitCode != 5 {
		t.Errorf("the job ended with %d: %s", job.ExitCode, job.Why)
	}
	if got := content(t, ran); got != "ran\n" {
		t.Errorf("the job left %q, want one line", got)
	}
}

func TestAJobThatEndedWhileTheAgentWasAwayIsReportedAndNotRunAgain(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	ran, finish := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "finish")
	id := f.shell(line, ran, finish)
	content(t, ran)
	f.stop()
	touch(t, finish)
	content(t, filepath.Join(f.jobFolder("1"), "exit"))
	f.startAgent()
	if job := f.ended(id); job.ExitCode != 5 || job.State != cluster.JobFailed {
		t.Errorf("the job is %s with %d", job.State, job.ExitCode)
	}
	if got := content(t, ran); got != "ran\n" {
		t.Errorf("the job left %q, want one line", got)
	}
}

func TestTheEndOfAJobDuringAnOutageIsReportedLater(t *testing.T) {
	t.Parallel()
	f := newFarm(t, filepath.Join(t.TempDir(), "state.db"))
	ran, finish := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "finish")
	id := f.shell(line, ran, finish)
	content(t, ran)
	f.Stop()
	touch(t, finish)
	content(t, filepath.Join(f.jobFolder("1"), "exit"))
	time.Sleep(100 * time.Millisecond)
	f.Run()
	if job := f.ended(id); job.ExitCode != 5 {
		t.Errorf("the job ended with %d", job.ExitCode)
	}
	if next := f.ended(f.shell("exit 0")); next.State != cluster.JobDone {
		t.Errorf("after the outage a job is %s", next.State)
	}
	if got := content(t, ran); got != "ran\n" {
		t.Errorf("the job left %q, want one line", got)
	}
}

func TestAnAgentJoinsAControllerAgainThatLostItsState(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	if first := f.ended(f.shell("exit 5")); first.ID != 1 || first.ExitCode != 5 {
		t.Fatalf("the first job is %+v", first)
	}
	f.Stop()
	f.Clock.Advance(cluster.Second)
	f.Run()
	job := f.ended(f.shell("exit 6"))
	if job.ID != 1 || job.ExitCode != 6 {
		t.Errorf("the first job of the new state is %d with %d, want job 1 with its own exit status 6", job.ID, job.ExitCode)
	}
}

func TestAJobOfBeforeARestartOfTheMachineHasFailedAndNoOtherProcessIsHarmed(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	id := f.submit(cluster.JobSpec{Command: []string{"sleep", "60"}, TimeLimit: 500 * cluster.Millisecond})
	f.job(id, func(j cluster.Job) bool { return j.State == cluster.JobRunning })
	for len(glob(t, filepath.Join(f.folder, "1-*", "pid"))) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	f.stop()
	pidFile := filepath.Join(f.jobFolder("1"), "pid")
	if err := syscall.Kill(-number(t, pidFile), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "60") // got the process id of the job
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(other.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(600 * time.Millisecond)
	f.startAgent()
	if job := f.ended(id); job.State != cluster.JobFailed || job.ExitCode != -1 {
		t.Errorf("the job is %s with %d: %s", job.State, job.ExitCode, job.Why)
	}
	if !alive(t, other.Process.Pid) {
		t.Error("another process was killed")
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnAgentThatTheControllerWillNotHaveSaysSo(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	a, err := agent.New(agent.Config{Host: "h2", Capacity: cluster.Capacity{CPUs: 1}, Folder: t.TempDir()}, f.Client(api.Viewer, "h2"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(t.Context()) }()
	select {
	case err := <-done:
		var no *api.Error
		if !errors.As(err, &no) || no.Status != 403 {
			t.Errorf("the agent ends with %v, want what the controller said", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the agent keeps trying")
	}
}
