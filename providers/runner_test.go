package providers

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand for a daemon that gets killed.
func TestMain(m *testing.M) {
	if script := os.Getenv("XCE_TEST_DAEMON"); script != "" {
		runner, err := NewRunner(Spec{Name: "test", Script: script, User: os.Getenv("XCE_TEST_USER")}, nil)
		if err == nil {
			runner.List(context.Background())
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// newTestRunner runs a shell script. Its folder is $DIR.
func newTestRunner(t *testing.T, body string, change func(*Spec)) (*Runner, string, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	spec := Spec{Name: "test", Script: writeScript(t, dir, body), Environment: map[string]string{"DIR": dir}, TimeLimit: 20 * time.Second}
	if change != nil {
		change(&spec)
	}
	log := new(bytes.Buffer)
	runner, err := NewRunner(spec, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return runner, dir, log
}

func writeScript(t *testing.T, dir, body string) string {
	t.Helper()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return script
}

const noGrants = `echo '{"grants":[]}'`

func TestScriptsThatDoNotKeepTheContract(t *testing.T) {
	tests := []struct {
		name, script string
		status       Status
		message      string
	}{
		{"good", noGrants, StatusOK, ""},
		{"input is there", `grep -q '^{}$' && [ "$#" = 1 ] && [ "$1" = list ] && ` + noGrants, StatusOK, ""},
		{"input is not read", `exec <&-; ` + noGrants, StatusOK, ""},
		{"good with exit status 1", noGrants + `; exit 1`, StatusOK, "exit status 1"},
		{"good, then killed", noGrants + `; kill -9 $$`, StatusOK, "signal"},
		{"noise", `echo '+ set -x'; ` + noGrants, StatusUnknown, "logs go to stderr"},
		{"two documents", noGrants + `; ` + noGrants, StatusUnknown, "more than one"},
		{"nothing", `:`, StatusUnknown, "nothing"},
		{"nothing and exit status 3", `exit 3`, StatusUnknown, "exit status 3"},
		{"half", `printf '{"grants":['`, StatusUnknown, "not one JSON object"},
		{"10 MiB", `dd if=/dev/zero bs=1048576 count=10 2>/dev/null | tr '\0' x`, StatusUnknown, "more than 1048576 bytes"},
		{"endless", `yes '{"grants":[]}'`, StatusUnknown, "more than 1048576 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runner, _, _ := newTestRunner(t, test.script, nil)
			_, outcome := runner.List(t.Context())
			if outcome.Status != test.status || !strings.Contains(outcome.Message, test.message) {
				t.Errorf("got %+v, want %s with %q", outcome, test.status, test.message)
			}
			if len(outcome.Text) > textLimit {
				t.Errorf("%d bytes of text kept", len(outcome.Text))
			}
		})
	}
}

func TestTimeLimitEndsTheWholeGroup(t *testing.T) {
	tests := []struct{ name, script string }{
		{"the script hangs", `echo $$ >"$DIR/pids"; exec sleep 600`},
		{"so does a child", `sleep 600 & echo $! >"$DIR/pids"; wait`},
		{"the script ignores signals", `trap '' TERM INT HUP; echo $$ >"$DIR/pids"; while :; do sleep 600; done`},
		{"it has answered already", noGrants + `; echo $$ >"$DIR/pids"; exec sleep 600`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runner, dir, _ := newTestRunner(t, test.script, func(s *Spec) { s.TimeLimit = 300 * time.Millisecond })
			begin := time.Now()
			_, outcome := runner.List(t.Context())
			if outcome.Status != StatusUnknown || !strings.Contains(outcome.Message, "time limit of 300ms") {
				t.Errorf("got %+v", outcome)
			}
			if elapsed := time.Since(begin); elapsed > 5*time.Second {
				t.Errorf("it took %s", elapsed)
			}
			expectGone(t, filepath.Join(dir, "pids"))
		})
	}
}

// TestGrandchildHoldsStdout: the script ends, but what it left behind keeps the pipe open.
func TestGrandchildHoldsStdout(t *testing.T) {
	tests := []struct {
		name, script string
		limit        time.Duration
	}{
		{"in the group", `sleep 600 & echo $! >"$DIR/pids"; ` + noGrants, 5 * time.Second},
		{"in a session of its own", `setsid sleep 4 & ` + noGrants, 3500 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runner, dir, _ := newTestRunner(t, test.script, nil)
			begin := time.Now()
			_, outcome := runner.List(t.Context())
			if outcome.Status != StatusOK {
				t.Errorf("got %+v, want ok: the script itself has answered and ended", outcome)
			}
			if elapsed := time.Since(begin); elapsed > test.limit {
				t.Errorf("it took %s", elapsed)
			}
			if test.name == "in the group" {
				expectGone(t, filepath.Join(dir, "pids"))
			}
		})
	}
}

func TestCancelEndsTheGroup(t *testing.T) {
	runner, dir, _ := newTestRunner(t, `sleep 600 & echo $! >"$DIR/pids"; wait`, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan Outcome, 1)
	go func() {
		_, outcome := runner.List(ctx)
		ended <- outcome
	}()
	waitForFile(t, filepath.Join(dir, "pids"))
	cancel()
	if outcome := <-ended; outcome.Status != StatusUnknown || !strings.Contains(outcome.Message, "cancel") {
		t.Errorf("got %+v", outcome)
	}
	expectGone(t, filepath.Join(dir, "pids"))
}

// TestDaemonKilled: a script does not outlive the daemon that called it.
func TestDaemonKilled(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	daemon := exec.Command(os.Args[0])
	daemon.Env = append(os.Environ(), "XCE_TEST_DAEMON="+writeScript(t, dir, `echo $$ >"`+pids+`"; exec sleep 600`))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	waitForFile(t, pids)
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	expectGone(t, pids)
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil && bytes.HasSuffix(text, []byte("\n")) {
			return
		}
	}
	t.Fatalf("%s was not written", path)
}

func expectGone(t *testing.T, pids string) {
	t.Helper()
	waitForFile(t, pids)
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
}

// alive: a zombie that nobody has reaped yet is not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	state := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
	return state != "Z" && state != "X"
}

func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("SECRET_OF_OURS", "x")
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	t.Setenv("LANG", "de_DE.UTF-8")
	t.Setenv("HOME", "/home/xce")
	t.Setenv("TMPDIR", t.TempDir())
	runner, dir, _ := newTestRunner(t, `env >"$DIR/environment"; `+noGrants, func(s *Spec) { s.Environment["POOL"] = "a b=c" })
	if _, outcome := runner.List(t.Context()); outcome.Status != StatusOK {
		t.Fatalf("%+v", outcome)
	}
	text, err := os.ReadFile(filepath.Join(dir, "environment"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[name] = value
	}
	for _, own := range []string{"PWD", "OLDPWD", "_", "SHLVL"} { // the shell's own
		delete(got, own)
	}
	want := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": "/home/xce", "TMPDIR": os.Getenv("TMPDIR"),
		"LC_ALL": "C", "DIR": dir, "POOL": "a b=c",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s=%q, want %q", name, got[name], value)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("too much: %v", got)
	}
}

func TestScriptIsNotPassedToAShell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b; touch oops $(touch oops)")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	runner, err := NewRunner(Spec{Name: "test", Script: writeScript(t, dir, noGrants)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, outcome := runner.List(t.Context()); outcome.Status != StatusOK {
		t.Errorf("%+v", outcome)
	}
}

func TestCallsTakeTurns(t *testing.T) {
	runner, _, _ := newTestRunner(t, `mkdir "$DIR/busy" || exit 1; sleep 0.1; rmdir "$DIR/busy"; `+noGrants, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, outcome := runner.List(t.Context()); outcome.Status != StatusOK {
				t.Errorf("calls overlapped: %+v", outcome)
			}
		})
	}
	all.Wait()
}

// TestConcurrentCalls: each waits for the other, so they end only if they run side by side.
func TestConcurrentCalls(t *testing.T) {
	runner, _, _ := newTestRunner(t, `
case $1 in describe)
  echo '{"contract":1,"kinds":["tokens"],"idempotent":true,"partial_return":true,"concurrent":true,"poll_interval_s":5,"offers":[]}'
  exit ;;
esac
: >"$DIR/here.$$"
until set -- "$DIR"/here.*; [ $# = 2 ]; do sleep 0.05; done
`+noGrants, nil)
	if _, outcome := runner.Describe(t.Context()); outcome.Status != StatusOK {
		t.Fatalf("%+v", outcome)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, outcome := runner.List(t.Context()); outcome.Status != StatusOK {
				t.Errorf("%+v", outcome)
			}
		})
	}
	both.Wait()
}

func TestCancelWhileWaitingForTheTurn(t *testing.T) {
	runner, dir, _ := newTestRunner(t, `echo $$ >>"$DIR/pids"; exec sleep 600`, nil)
	holding, release := context.WithCancel(t.Context())
	var holder sync.WaitGroup
	holder.Go(func() { runner.List(holding) })
	waitForFile(t, filepath.Join(dir, "pids"))
	waiting, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, outcome := runner.List(waiting); outcome.Status != StatusUnknown || !strings.Contains(outcome.Message, "not started") {
		t.Errorf("got %+v", outcome)
	}
	release()
	holder.Wait()
	text, _ := os.ReadFile(filepath.Join(dir, "pids"))
	if got := len(strings.Fields(string(text))); got != 1 {
		t.Errorf("%d scripts ran, want 1", got)
	}
}

func TestMalformedQuestionIsNeverAsked(t *testing.T) {
	runner, dir, _ := newTestRunner(t, `: >"$DIR/called"; `+noGrants, nil)
	outcomes := map[string]Outcome{}
	_, outcomes["negative"] = runner.Request(t.Context(), RequestIn{RequestID: "a", Resource: "vcs", Units: -1})
	_, outcomes["no id"] = runner.Request(t.Context(), RequestIn{Resource: "vcs", Units: 1})
	_, outcomes["no ids"] = runner.Status(t.Context(), StatusIn{})
	_, outcomes["the same id twice"] = runner.Status(t.Context(), StatusIn{RequestIDs: []string{"a", "a"}})
	_, outcomes["negative target"] = runner.Return(t.Context(), ReturnIn{RequestID: "a", Remaining: -1})
	for name, outcome := range outcomes {
		if outcome.Status != StatusRefused || outcome.Reason != ReasonInvalid || !strings.Contains(outcome.Message, "not asked") {
			t.Errorf("%s: got %+v", name, outcome)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "called")); err == nil {
		t.Error("the script was called")
	}
}

const token = "Zm9v/YmFy.c2VjcmV0-token"

func requestThatJoins() RequestIn {
	return RequestIn{RequestID: "host/small-1", Template: "small", Units: 1, Join: &Join{
		Host: "host/small-1", Controller: "https://controller:7700", CA: "PEM", Token: token,
		Deadline: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC),
	}}
}

// TestTokenIsKeptNowhere: whatever the script does with the token, nothing that is kept of the call has it.
func TestTokenIsKeptNowhere(t *testing.T) {
	tests := []struct {
		name, script string
		status       Status
	}{
		{"answers with it", `printf '{"request_id":"host/small-1","status":"ok","granted":1,"instances":[{"id":"i-1","name":"%s"}],"message":"%s"}' "$token" "$token"`, StatusOK},
		{"refuses with it", `printf '{"status":"refused","reason":"denied","message":"bad token %s"}' "$token"`, StatusRefused},
		{"repeats its input", `printf '%s' "$in"`, StatusUnknown},
		{"escapes it", `printf '%s' "$in" | sed 's!/!\\/!g'`, StatusUnknown},
		{"is cut within it", `printf '%s' "$token" | cut -c 1-20 | tr -d '\n'`, StatusUnknown},
		{"answers its request id with it", `printf '{"request_id":"%s","status":"pending"}' "$token"`, StatusUnknown},
		{"traces", `set -x; : "$token"; : "{\"token\":\"$token\"}"; exit 1`, StatusUnknown},
		{"logs a long line", `printf '%01010d%s\n' 0 "$token" >&2`, StatusUnknown},
		{"logs it with a bell in it", `printf '%s\a%s\n' "${token%%"${token#????????}"}" "${token#????????}" >&2`, StatusUnknown},
		{"has too much to say", `yes "$token"`, StatusUnknown},
	}
	const head = `in=$(cat) token=$(printf '%s' "$in" | sed 's/.*"token":"\([^"]*\)".*/\1/'); [ ${#token} = 24 ] || echo '{"status":"refused","reason":"invalid"}'; `
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runner, _, log := newTestRunner(t, head+test.script, nil)
			out, outcome := runner.Request(t.Context(), requestThatJoins())
			if outcome.Status != test.status {
				t.Errorf("got %+v, want %s", outcome, test.status)
			}
			kept := fmt.Sprintf("%+v %+v %s", out, outcome, log)
			if strings.Contains(strings.ReplaceAll(kept, `\/`, `/`), token[:8]) {
				t.Errorf("the token is kept: %s", kept)
			}
		})
	}
}

// TestTokenIsKeptNowhereLater: a script that wrote the token down tells it at another verb, also after a
// request that has another token.
func TestTokenIsKeptNowhereLater(t *testing.T) {
	const script = `
in=$(cat)
[ "$1" = request ] && echo "$in" | sed 's/.*"token":"\([^"]*\)".*/\1/' >>"$DIR/tokens"
said=$(tr '\n' ' ' <"$DIR/tokens"); echo "$1: $said" >&2
printf '{"requests":[{"request_id":"host/small-1","status":"refused","reason":"denied","message":"%s"}]}' "$said"`
	runner, _, log := newTestRunner(t, script, nil)
	other := requestThatJoins()
	other.RequestID, other.Join.Token = "host/small-2", "b3RoZXI.b25l-token"
	for _, in := range []RequestIn{requestThatJoins(), other} {
		_, outcome := runner.Request(t.Context(), in)
		if kept := fmt.Sprint(outcome, log); strings.Contains(kept, token[:8]) || strings.Contains(kept, other.Join.Token[:8]) {
			t.Errorf("a token is kept: %s", kept)
		}
	}
	out, outcome := runner.Status(t.Context(), StatusIn{RequestIDs: []string{"host/small-1"}})
	kept := fmt.Sprintf("%+v %+v %s", out, outcome, log)
	if strings.Contains(kept, token[:8]) || strings.Contains(kept, other.Join.Token[:8]) {
		t.Errorf("a token is kept: %s", kept)
	}
	const both = Hidden + " " + Hidden
	if outcome.Status != StatusOK || out.Requests[0].Message != both+" " || !strings.Contains(log.String(), "status: "+both) {
		t.Errorf("%s is not said: %s", both, kept)
	}
}

func TestTokenIsHiddenAsLongAsItsCallGoesOn(t *testing.T) {
	var s Secrets
	s.Add(token)
	_ = s.Add("b3RoZXI.b25l-token")
	for i := range 2 * mostSecrets {
		s.Add(fmt.Sprintf("%08d-another-token", i))()
	}
	for _, going := range []string{token, "b3RoZXI.b25l-token"} {
		if got := s.Scrub(going); got != Hidden {
			t.Errorf("got %s", got)
		}
	}
	if len(s.told) != mostSecrets {
		t.Errorf("%d tokens are remembered", len(s.told))
	}
}

func TestTokenIsHiddenInPieces(t *testing.T) {
	const first8 = "Zm9v/YmF"
	var s Secrets
	s.Add(token)
	for text, want := range map[string]string{
		first8 + " " + token:  Hidden + " " + Hidden,
		"x" + token[:4] + `\`: "x" + Hidden + `\`,
		token[:3]:             token[:3],
		strings.ReplaceAll(token, "/", `\/`) + "x":   Hidden + "x",
		first8 + "\n" + token[8:] + " " + first8[:7]: Hidden + " " + Hidden,
	} {
		if got := s.Scrub(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	slash := "/slash0-token"
	s.Add(slash)
	if got := s.Scrub(`{"m":"\` + slash + `"}`); got != `{"m":"`+Hidden+`"}` {
		t.Errorf("got %s", got)
	}
}

func TestTokenThatCouldNotBeHiddenIsNotAsked(t *testing.T) {
	runner, _, _ := newTestRunner(t, noGrants, nil)
	for _, bad := range []string{"", "short", "with blanks in it", `with"quotes"in`} {
		in := requestThatJoins()
		in.Join.Token = bad
		_, outcome := runner.Request(t.Context(), in)
		if outcome.Status != StatusRefused || !strings.Contains(outcome.Message, "/join/token") || bad != "" && strings.Contains(outcome.Message, bad) {
			t.Errorf("%q: got %+v", bad, outcome)
		}
	}
}

func TestObserveOnlyWhenOffered(t *testing.T) {
	const script = `
case $1 in
describe) echo '{"contract":1,"kinds":["tokens"],"idempotent":true,"partial_return":true,"concurrent":true,"poll_interval_s":5,"offers":[],"observe":'$OBSERVE'}' ;;
observe) : >"$DIR/called"; echo '{"observations":[{"resource":"vcs","in_use":3,"at":"2026-03-01T08:00:00Z"}]}' ;;
esac`
	for observe, want := range map[string]Status{"true": StatusOK, "false": StatusRefused} {
		runner, dir, _ := newTestRunner(t, script, func(s *Spec) { s.Environment["OBSERVE"] = observe })
		if _, outcome := runner.Observe(t.Context()); outcome.Status != want {
			t.Errorf("observe %s: got %+v, want %s", observe, outcome, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "called")); (err == nil) != (want == StatusOK) {
			t.Errorf("observe %s: called is %t", observe, err == nil)
		}
	}
}

func TestStderrBecomesLog(t *testing.T) {
	runner, _, log := newTestRunner(t, `printf 'plain\nred \033[31m\a bell\r\n\n\377 bytes\nlast' >&2; `+noGrants, nil)
	if _, outcome := runner.List(t.Context()); outcome.Status != StatusOK {
		t.Fatalf("%+v", outcome)
	}
	for _, want := range []string{"stderr=plain\n", `stderr="red ·[31m· bell·"`, `stderr="· bytes"`, "stderr=last\n", "provider=test", "verb=list"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, log)
		}
	}
}

func TestChattyStderrIsLimited(t *testing.T) {
	runner, _, log := newTestRunner(t, `yes chatter | head -c 3000000 >&2; `+noGrants, nil)
	if _, outcome := runner.List(t.Context()); outcome.Status != StatusOK {
		t.Fatalf("%+v", outcome)
	}
	if log.Len() > 2<<20 || !strings.Contains(log.String(), "more to stderr than is kept") {
		t.Errorf("%d bytes logged", log.Len())
	}
}

func TestNewRunnerRefuses(t *testing.T) {
	dir := t.TempDir()
	good := writeScript(t, dir, noGrants)
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec Spec
		want string
	}{
		{"no script", Spec{}, "give the path"},
		{"missing", Spec{Script: filepath.Join(dir, "missing")}, "no such file"},
		{"folder", Spec{Script: dir}, "is not a file"},
		{"not executable", Spec{Script: plain}, "chmod +x"},
		{"LC_ALL", Spec{Script: good, Environment: map[string]string{"LC_ALL": "de"}}, "LC_ALL"},
		{"odd name", Spec{Script: good, Environment: map[string]string{"A=B": "c"}}, "rename"},
		{"NUL", Spec{Script: good, Environment: map[string]string{"A": "\x00"}}, "rename"},
		{"negative limit", Spec{Script: good, TimeLimit: -1}, "positive"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := NewRunner(test.spec, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestScriptThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	runner, err := NewRunner(Spec{Name: "test", Script: script, User: os.Getenv("XCE_TEST_USER")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, outcome := runner.List(t.Context()); outcome.Status != StatusUnknown || !strings.Contains(outcome.Message, "not started") {
		t.Errorf("got %+v", outcome)
	}
}

func TestAScriptMayBeNamedAsOnPATH(t *testing.T) {
	dir, here := t.TempDir(), t.TempDir()
	t.Chdir(here)
	t.Setenv("PATH", dir)
	onPath, ours := filepath.Join(dir, "lender"), filepath.Join(here, "maker")
	for _, path := range []string{onPath, ours} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for script, want := range map[string]string{"lender": onPath, "maker": ours, "./maker": ours} {
		if got, err := Executable(script); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", script, got, err, want)
		}
	}
	if got, err := Executable("./lender"); err == nil {
		t.Errorf("./lender is %s", got)
	}
}
