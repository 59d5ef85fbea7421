package agent_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/store"
)

func TestAJobEndsAsItsProcessDoes(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	for name, test := range map[string]struct {
		command []string
		state   cluster.JobState
		code    int64
		why     string
	}{
		"well":                     {[]string{"true"}, cluster.JobDone, 0, "ended by itself"},
		"with a status":            {[]string{"sh", "-c", "exit 3"}, cluster.JobFailed, 3, "exit status 3"},
		"by a signal":              {[]string{"sh", "-c", "kill -9 $$"}, cluster.JobFailed, 137, "exit status 137"},
		"as it cannot be found":    {[]string{"no-such-program"}, cluster.JobFailed, 127, "no-such-program"},
		"as its path is not there": {[]string{"/no/such/program"}, cluster.JobFailed, 127, "exit status 127"},
	} {
		t.Run(name, func(t *testing.T) {
			job := f.ended(f.submit(cluster.JobSpec{Command: test.command}))
			if job.State != test.state || job.ExitCode != test.code || !strings.Contains(job.Why, test.why) {
				t.Errorf("the job is %s with %d: %q; want %s with %d: %q", job.State, job.ExitCode, job.Why, test.state, test.code, test.why)
			}
		})
	}
}

func TestAJobInAFolderThatIsMissingFailsAndSaysSo(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	job := f.ended(f.submit(cluster.JobSpec{Command: []string{"true"}, Directory: "/no/such/folder"}))
	if job.State != cluster.JobFailed || job.ExitCode != 127 || !strings.HasSuffix(job.Why, "folder /no/such/folder is not there") {
		t.Errorf("the job is %s with %d: %q", job.State, job.ExitCode, job.Why)
	}
}

func TestWhatAJobPrintsIsKept(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	elsewhere := t.TempDir()
	f.ended(f.submit(cluster.JobSpec{Command: []string{"sh", "-c", "echo job $XCE_JOB_ID; echo trouble >&2; pwd"}, Directory: elsewhere}))
	if got, want := content(t, filepath.Join(f.jobFolder("1"), "output")), "job 1\ntrouble\n"+elsewhere+"\n"; got != want {
		t.Errorf("the output is %q, want %q", got, want)
	}
}

func TestACommandIsNeverReadAsShellText(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	arguments := []string{"a b", "", ";touch x", "$(touch x)", "`touch x`", "$HOME", "*", `"q"`, "'r'", "\\", "&& touch x", "-n", "line\nline", "é"}
	f.ended(f.submit(cluster.JobSpec{Command: append([]string{"printf", "[%s]\n"}, arguments...)}))
	want := "[" + strings.Join(arguments, "]\n[") + "]\n"
	if got := content(t, filepath.Join(f.jobFolder("1"), "output")); got != want {
		t.Errorf("the job got the arguments\n%s\nwant\n%s", got, want)
	}
	if _, err := os.Stat(filepath.Join(f.jobFolder("1"), "x")); err == nil {
		t.Error("an argument was run")
	}
}

func TestWordsOfTheShellAreNotCommands(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	for _, command := range [][]string{{"eval", "echo x >&2; exit 0"}, {"exit", "0"}, {"exec", "true"}, {":"}, {"exit 0"}, {"X=1"}, {"."}, {"!", "false"}} {
		job := f.ended(f.submit(cluster.JobSpec{Command: command}))
		if job.State != cluster.JobFailed || job.ExitCode != 127 {
			t.Errorf("%q is %s with %d: %s", command, job.State, job.ExitCode, job.Why)
		}
	}
}

// alive tells whether a process is there and no zombie.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func number(t *testing.T, path string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(content(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func gone(t *testing.T, pid int) bool {
	t.Helper()
	for range 200 {
		if !alive(t, pid) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestTheTimeLimitEndsTheWholeProcessGroup(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	pids := t.TempDir()
	id := f.submit(cluster.JobSpec{
		Command:   []string{"sh", "-c", `trap "" TERM; sleep 60 & echo $! >"$0/child"; echo $$ >"$0/self"; wait`, pids},
		TimeLimit: 500 * cluster.Millisecond,
	})
	child, self := number(t, filepath.Join(pids, "child")), number(t, filepath.Join(pids, "self"))
	if !alive(t, child) {
		t.Fatal("the child ended before its time")
	}
	job := f.ended(id)
	if job.State != cluster.JobTimeout || job.ExitCode != 137 || !strings.Contains(job.Why, "500ms") {
		t.Errorf("the job is %s with %d: %s", job.State, job.ExitCode, job.Why)
	}
	if !gone(t, child) || !gone(t, self) {
		t.Error("a process of the job lives on")
	}
}

func TestATimeLimitIsMeasuredByTheClockOfTheHost(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory) // its controller's clock is far from ours
	id := f.submit(cluster.JobSpec{Command: []string{"sleep", "0.3"}, TimeLimit: cluster.Minute})
	if job := f.ended(id); job.State != cluster.JobDone {
		t.Errorf("the job is %s: %s", job.State, job.Why)
	}
}

func TestATimeLimitThatIsOverAtOnceStillEndsTheProcess(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	id := f.submit(cluster.JobSpec{Command: []string{"sleep", "60"}, TimeLimit: 1})
	if job := f.ended(id); job.State != cluster.JobTimeout {
		t.Errorf("the job is %s: %s", job.State, job.Why)
	}
	if pid := number(t, filepath.Join(f.jobFolder("1"), "pid")); !gone(t, pid) {
		t.Error("the job's process lives on")
	}
}

func TestAJobWhoseProcessesVanishHasFailed(t *testing.T) {
	t.Parallel()
	f := newFarm(t, store.Memory)
	id := f.shell("sleep 60")
	f.job(id, func(j cluster.Job) bool { return j.State == cluster.JobRunning })
	pid := number(t, filepath.Join(f.jobFolder("1"), "pid"))
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if job := f.ended(id); job.State != cluster.JobFailed || job.ExitCode != -1 || !strings.Contains(job.Why, "left no exit status") {
		t.Errorf("the job is %s with %d: %s", job.State, job.ExitCode, job.Why)
	}
}
