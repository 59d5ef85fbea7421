package providers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// asNobody lets a script run as nobody, who may get at its folder.
func asNobody(t *testing.T) func(*Spec) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	return func(s *Spec) {
		s.User = "nobody"
		open(t, filepath.Dir(s.Script))
	}
}

// open lets everyone into a folder of a test.
func open(t *testing.T, folder string) {
	t.Helper()
	for _, path := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAScriptRunsAsItsUserWithNothingOfOurs(t *testing.T) {
	runner, _, log := newTestRunner(t, `echo "uid=$(id -u) gid=$(id -g) groups=$(id -G) home=$HOME user=$USER $LOGNAME tmp=$TMPDIR" >&2; cat /etc/shadow >&2; `+noGrants, asNobody(t))
	t.Setenv("TMPDIR", "/root/tmp")
	if _, outcome := runner.List(t.Context()); outcome.Status != StatusOK {
		t.Fatalf("%+v", outcome)
	}
	want := "uid=65534 gid=65534 groups=65534 home=/nonexistent user=nobody nobody tmp="
	if !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "Permission denied") {
		t.Errorf("the log is\n%s\nwant %s", log, want)
	}
}

func TestAScriptOfAnotherUserIsStillKilledWithItsGroup(t *testing.T) {
	as := asNobody(t)
	dir := t.TempDir()
	open(t, dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	runner, _, _ := newTestRunner(t, `sleep 300 & echo $! $$ >"$PIDS.new"; mv "$PIDS.new" "$PIDS"; wait`, func(s *Spec) {
		as(s)
		s.Environment["PIDS"] = filepath.Join(dir, "pids")
		s.TimeLimit = time.Second
	})
	if _, outcome := runner.List(t.Context()); outcome.Status != StatusUnknown || !strings.Contains(outcome.Message, "killed") {
		t.Errorf("%+v", outcome)
	}
	expectGone(t, filepath.Join(dir, "pids"))
}

// The kernel forgets the signal of a parent's death when ids change; it must have
// been asked for after that.
func TestAScriptOfAnotherUserEndsWithADaemonThatIsKilled(t *testing.T) {
	asNobody(t)
	dir := t.TempDir()
	open(t, dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	script := writeScript(t, dir, `echo $$ >`+dir+`/pid.new; mv `+dir+`/pid.new `+dir+`/pid; exec sleep 300`)
	daemon := exec.Command(os.Args[0])
	daemon.Env = append(os.Environ(), "XCE_TEST_DAEMON="+script, "XCE_TEST_USER=nobody")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	waitForFile(t, filepath.Join(dir, "pid"))
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/status")
	if err != nil || !strings.Contains(string(status), "Uid:\t65534\t65534\t65534\t65534") {
		t.Errorf("the script is not nobody's: %s (%v)", status, err)
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	expectGone(t, filepath.Join(dir, "pid"))
}

func TestAUserWhoCannotBeIsRefusedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	script := writeScript(t, dir, noGrants)
	if _, err := NewRunner(Spec{Name: "p", Script: script, User: "no-such-user"}, nil); err == nil || !strings.Contains(err.Error(), "no-such-user") {
		t.Errorf("nobody of that name: %v", err)
	}
	if os.Geteuid() != 0 {
		if _, err := NewRunner(Spec{Name: "p", Script: script, User: "root"}, nil); err == nil || !strings.Contains(err.Error(), "only root can") {
			t.Errorf("not being root: %v", err)
		}
		return
	}
	open(t, dir)
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := NewRunner(Spec{Name: "p", Script: script, User: "nobody"}, nil); err == nil || !strings.Contains(err.Error(), "user nobody may not execute") {
		t.Errorf("a script that is not for the user: %v", err)
	}
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := NewRunner(Spec{Name: "p", Script: script, User: "nobody"}, nil); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder that is not for the user: %v", err)
	}
	if _, err := NewRunner(Spec{Name: "p", Script: script, User: "root"}, nil); err != nil {
		t.Errorf("our own user: %v", err)
	}
	// As another user we cannot become anyone: the test's own binary is asked.
	open(t, dir)
	daemon := exec.Command(copyOf(t, os.Args[0], dir))
	daemon.Env = append(os.Environ(), "XCE_TEST_DAEMON="+script, "XCE_TEST_USER=daemon", "GOCOVERDIR="+dir)
	daemon.SysProcAttr = ownGroup()
	(&Account{uid: 65534, gid: 65534}).become(daemon.SysProcAttr)
	text, _ := daemon.CombinedOutput()
	if !strings.Contains(string(text), "only root can run scripts as another user, and this is user 65534") {
		t.Errorf("as nobody: %s", text)
	}
}

func copyOf(t *testing.T, file, dir string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "daemon")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const hunter = "correct horse/\"battery\" stäple"

// secretFile writes a secret as an editor does, for its owner alone.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// spill says all that a script can say of itself, and its secret in many ways.
const spill = `cp /proc/$$/cmdline "$DIR/cmdline"; cp /proc/$$/environ "$DIR/environ"; env >"$DIR/env"
cat "$KEY_FILE" >"$DIR/got"; cat "$KEY_FILE" >>"$DIR/got"
echo "I have $(cat "$KEY_FILE")" >&2; set -x; : "$(cat "$KEY_FILE")"; set +x
`

func TestASecretReachesTheScriptAndNothingElse(t *testing.T) {
	for name, change := range map[string]func(*Spec){"as us": nil, "as another user": func(s *Spec) { asNobody(t)(s) }} {
		t.Run(name, func(t *testing.T) {
			answer := `printf '{"status":"refused","reason":"denied","message":"bad key %s"}' "$(sed 's/"/\\"/g' "$KEY_FILE")"`
			runner, dir, log := newTestRunner(t, spill+answer, func(s *Spec) {
				if change != nil {
					change(s)
				}
				if err := os.Chmod(filepath.Dir(s.Script), 0o777); err != nil {
					t.Fatal(err)
				}
				s.Secrets = map[string]string{"KEY": secretFile(t, hunter)}
			})
			_, outcome := runner.List(t.Context())
			if outcome.Status != StatusRefused {
				t.Fatalf("%+v\n%s", outcome, log)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "got")); err != nil || string(got) != hunter+hunter {
				t.Fatalf("the script got %q (%v)", got, err)
			}
			seen := map[string]string{"the log": log.String(), "the message": outcome.Message, "the text": outcome.Text}
			for _, file := range []string{"cmdline", "environ", "env"} {
				data, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				seen[file] = string(data)
			}
			for where, text := range seen {
				if strings.Contains(text, "horse") || strings.Contains(text, "battery") {
					t.Errorf("%s has it: %q", where, text)
				}
			}
			if !strings.Contains(seen["environ"], "KEY_FILE=") || !strings.Contains(outcome.Message, Hidden) {
				t.Errorf("there is no trace of it: %q, %+v", seen["environ"], outcome)
			}
		})
	}
}

func TestASecretIsReadAnewAtEachCall(t *testing.T) {
	path := secretFile(t, "first-secret")
	runner, dir, _ := newTestRunner(t, `cat "$KEY_FILE" >"$DIR/got"; `+noGrants, func(s *Spec) { s.Secrets = map[string]string{"KEY": path} })
	for _, text := range []string{"first-secret", "second-secret"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, outcome := runner.List(t.Context()); outcome.Status != StatusOK {
			t.Fatalf("%+v", outcome)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "got")); string(got) != text {
			t.Errorf("the script got %q, want %q", got, text)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, outcome := runner.List(context.Background()); outcome.Status != StatusUnknown || !strings.Contains(outcome.Message, "chmod 600") || strings.Contains(outcome.Message, "second-secret") {
		t.Errorf("with a secret that others can read: %+v", outcome)
	}
}

func TestSecretsThatCouldNotBeKeptAreRefusedAtTheStart(t *testing.T) {
	public := secretFile(t, "long-enough")
	if err := os.Chmod(public, 0o604); err != nil {
		t.Fatal(err)
	}
	for want, spec := range map[string]Spec{
		"chmod 600":                     {Secrets: map[string]string{"KEY": public}},
		"fewer than 8 characters":       {Secrets: map[string]string{"KEY": secretFile(t, "short")}},
		"no such file":                  {Secrets: map[string]string{"KEY": "/nowhere/key"}},
		"a variable cannot be called":   {Secrets: map[string]string{"A-B": secretFile(t, "long-enough")}},
		"environment sets KEY_FILE":     {Secrets: map[string]string{"KEY": secretFile(t, "long-enough")}, Environment: map[string]string{"KEY_FILE": "x"}},
		strconv.Itoa(mostSecret) + " m": {Secrets: map[string]string{"KEY": secretFile(t, strings.Repeat("x", mostSecret))}},
	} {
		spec.Name, spec.Script = "p", writeScript(t, t.TempDir(), noGrants)
		if _, err := NewRunner(spec, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "long-enough") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestEveryPartOfASecretIsHidden(t *testing.T) {
	key := `{"type":"service","private_key":"-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nAoIBAQC7VJTUt9Us\n-----END KEY-----\n","id":"x"}`
	var s Secrets
	_, done, err := s.ReadSecrets(map[string]string{"KEY": secretFile(t, key)})
	if err != nil {
		t.Fatal(err)
	}
	done()
	for _, said := range []string{
		key, "key MIIEvQIBADANBgkq is bad", `"AoIBAQC7VJTUt9Us"`, `-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nAoIBAQC7VJTUt9Us\n`,
	} {
		if text := s.Scrub(said); strings.Contains(text, "MIIEvQIB") || strings.Contains(text, "AoIBAQC7") {
			t.Errorf("%q is told as %q", said, text)
		}
	}
}
