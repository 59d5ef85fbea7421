package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// runMain tells the test binary to be devserver itself, so that the tests
// drive the real program as a process without linking it once more.
const runMain = "DEVSERVER_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is one running devserver.
type process struct {
	readiness
	readyFile string
	startup   time.Duration // from start to ready
	cmd       *exec.Cmd
	stdout    bytes.Buffer
	stderr    bytes.Buffer
}

// command makes a devserver that is not started yet.
func command(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{readyFile: filepath.Join(t.TempDir(), "ready.json")}
	p.cmd = exec.Command(os.Args[0], append(args, "--ready-file", p.readyFile)...)
	p.cmd.Env = append(os.Environ(), runMain+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	return p
}

// begin starts a devserver and makes sure that it ends with the test.
func begin(t *testing.T, args ...string) *process {
	t.Helper()
	p := command(t, args...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.kill(t)
		}
	})
	return p
}

// launch starts a devserver and waits until it says that it is ready.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	begun := time.Now()
	p := begin(t, args...)
	deadline := begun.Add(30 * time.Second)
	for {
		content, err := os.ReadFile(p.readyFile)
		if err == nil {
			if err := json.Unmarshal(content, &p.readiness); err != nil {
				t.Fatalf("ready file %q: %v", content, err)
			}
			p.startup = time.Since(begun)
			return p
		}
		if time.Now().After(deadline) || syscall.Kill(p.cmd.Process.Pid, 0) != nil {
			p.kill(t)
			t.Fatalf("devserver %v is not ready; stderr:\n%s", args, p.stderr.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// kill ends the process the hard way.
func (p *process) kill(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// terminate asks for a graceful stop and checks that it was one.
func (p *process) terminate(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if !p.hears(t, signal) {
		t.Errorf("it was ended by %s", signal)
	}
}

// hears asks for a graceful stop, and tells whether the process listened for that already: the system ends it else.
// Of one that did it checks that the stop was graceful.
func (p *process) hears(t *testing.T, signal syscall.Signal) bool {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	err := p.cmd.Wait()
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == signal {
		return false
	}
	if err != nil {
		t.Errorf("after %s: %v", signal, err)
	}
	took := time.Since(begun)
	t.Logf("ready in %s, stopped in %s", p.startup.Round(time.Millisecond), took.Round(time.Millisecond))
	if took > 8*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if p.stderr.Len() > 0 {
		t.Errorf("stderr is not silent:\n%s", p.stderr.String())
	}
	return true
}

// refused runs a devserver that must fail, and returns what it says.
func refused(t *testing.T, code int, args ...string) string {
	t.Helper()
	p := command(t, args...)
	killer := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer killer.Stop()
	var exit *exec.ExitError
	if err := p.cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != code {
		t.Fatalf("devserver %v: got %v, want exit code %d; stderr:\n%s", args, err, code, p.stderr.String())
	}
	if p.stdout.Len() > 0 {
		t.Errorf("a refusal says on stdout: %s", p.stdout.String())
	}
	return p.stderr.String()
}

// dial connects a client to the process.
func (p *process) dial(t *testing.T) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{
		HostPort:  p.Address,
		Namespace: p.Namespace,
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// wantAll checks that a message holds every one of the parts.
func wantAll(t *testing.T, message string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("the message lacks %q:\n%s", part, message)
		}
	}
}
