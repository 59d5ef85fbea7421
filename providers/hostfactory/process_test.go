package hostfactory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// TestMain lets the test binary stand for a provisioner that gets killed.
func TestMain(m *testing.M) {
	if text := os.Getenv("XCE_TEST_SPEC"); text != "" {
		var spec Spec
		err := json.Unmarshal([]byte(text), &spec)
		if err == nil {
			var a *Adapter
			if a, err = New(spec, nil); err == nil {
				a.Request(context.Background(), askOne("host/small-1"))
			}
		}
		fmt.Fprintln(os.Stderr, "the request came to an end:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// real makes an adapter that runs the scripts that were written.
func (f *fake) real(spec Spec, log *bytes.Buffer) *Adapter {
	f.t.Helper()
	a := f.adapterOf(spec, log)
	a.execute = a.command
	return a
}

func TestScriptsAreCalledAsBothFlavoursDo(t *testing.T) {
	for _, flavour := range Flavours {
		t.Run(string(flavour), func(t *testing.T) {
			f := newFake(t)
			f.write(requestMachines, `#!/bin/sh
				{ echo "$# $1"; stat -c %a "$2"; cat "$2"; env | sort; pwd; } >"$OUT"
				echo "$2" >"$OUT.path"
				echo '{"requestId":"r"}'`)
			spec := f.spec()
			spec.Flavour, spec.Environment = flavour, map[string]string{"OUT": filepath.Join(f.dir, "out"), "HF_VERSION": "9"}
			t.Setenv("NOT_FOR_PLUGINS", "x")
			if _, outcome := f.real(spec, nil).Request(t.Context(), askOne("host/small-1")); outcome.Status != providers.StatusPending {
				t.Fatalf("%+v", outcome)
			}
			out, path := read(t, filepath.Join(f.dir, "out")), strings.TrimSpace(read(t, filepath.Join(f.dir, "out.path")))
			want := []string{
				"2 -f\n600\n", `{"template":{"templateId":"small","machineCount":1}`, "\nPROVIDER_NAME=aws\n", "\nHF_PROVIDER_NAME=aws\n",
				"\nPRO_DATA_DIR=" + spec.Work, "\nHF_PROVIDER_WORKDIR=" + spec.Work, "\nPRO_CONF_DIR=" + spec.Conf, "\nPRO_LSF_LOGDIR=" + spec.Logs,
				"\nHF_VERSION=9\n", "\nLC_ALL=C\n", "\nHF_PROVIDER_ACTION_TIMEOUT=20\n", "\nSCRIPT_OPTIONS=\n", "\nPRO_LSF_TOP=" + f.dir,
			}
			lsf := []string{`"rc_account":"default"`, `"XCE_JOIN_TOKEN":"` + secretToken, `"XCE_HOST":"host/small-1"`}
			for _, part := range want {
				expectPart(t, out, part, true)
			}
			for _, part := range lsf {
				expectPart(t, out, part, flavour == LSF)
			}
			expectPart(t, out, "NOT_FOR_PLUGINS", false)
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the input is still there: %v", err)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func expectPart(t *testing.T, text, part string, there bool) {
	t.Helper()
	if strings.Contains(text, part) != there {
		t.Errorf("%q is there: %v, in\n%s", part, !there, text)
	}
}

func TestTheCertificateOfTheAuthorityHasNoSignThatPluginsSplitAt(t *testing.T) {
	for n := range 7 {
		pem := strings.Repeat("x", n) + "\n"
		if text := encodeCA(pem); strings.ContainsAny(text, "=;\n") {
			t.Errorf("%q becomes %q", pem, text)
		}
	}
}

// TestTokensAreNowhere: neither in logs, nor in outcomes, the state, or files.
func TestTokensAreNowhere(t *testing.T) {
	wrapped := `sed 's/s3cr3t/s3c\nr3t/'`
	bodies := map[string]string{
		"a trace on stderr":        `set -x; echo "$(cat "$2")" >/dev/null; echo '{"requestId":"r"}'`,
		"an echo on stdout":        `cat "$2"; echo oops; exit 1`,
		"an echo that is wrapped":  `cat "$2" | ` + wrapped + `; exit 1`,
		"an echo that is cut":      `head -c 640 "$2"; grep -o 's3cr3t-t0ken.of' "$2"; exit 1`,
		"a message with the token": `printf '{"message":"bad user data %s"}' "$(cat "$2" | tr -d '"')"; exit 1`,
		"a long line on stderr":    `printf '%1010s' x >&2; cat "$2" | grep -o 's3cr3t.*' >&2; exit 1`,
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			f, log := newFake(t), new(bytes.Buffer)
			f.write(requestMachines, "#!/bin/sh\n"+body+"\n")
			a := f.real(f.spec(), log)
			out, outcome := a.Request(t.Context(), askOne("host/small-1"))
			f.wait(cluster.Minute)
			state, _ := a.Status(t.Context(), providers.StatusIn{RequestIDs: []string{"host/small-1"}})
			all := log.String() + asAnswer(out) + asAnswer(outcome) + asAnswer(state) + read(t, a.spec.State)
			for _, part := range []string{"s3cr3t", "t0ken.of", "r3t-t0ken"} {
				expectPart(t, all, part, false)
			}
			expectPart(t, log.String()+asAnswer(outcome)+asAnswer(out), "requestId", name == "a trace on stderr")
		})
	}
}

func TestATimeLimitEndsTheWholeGroupAndLeavesADoubt(t *testing.T) {
	f := newFake(t)
	f.write(requestMachines, "#!/bin/sh\nsleep 600 & echo $! >\"$PIDS\"; wait\n")
	spec := f.spec()
	spec.TimeLimit, spec.Environment = 300*time.Millisecond, map[string]string{"PIDS": filepath.Join(f.dir, "pids")}
	a := f.real(spec, nil)
	_, outcome := a.Request(t.Context(), askOne("host/small-1"))
	if outcome.Status != providers.StatusUnknown || !strings.Contains(outcome.Message, "time limit") {
		t.Errorf("%+v", outcome)
	}
	time.Sleep(100 * time.Millisecond)
	pid := strings.TrimSpace(read(t, filepath.Join(f.dir, "pids")))
	if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %s lives on", pid)
	}
	if _, again := a.Request(t.Context(), askOne("host/small-1")); again.Status != providers.StatusUnknown {
		t.Errorf("again: %+v", again)
	}
}

// TestKilledAtAnyMoment kills a whole provisioner while a request is put, and what comes of the request.
func TestKilledAtAnyMoment(t *testing.T) {
	f := newFake(t)
	f.write(requestMachines, "#!/bin/sh\necho x >>\"$CALLS\"; sleep 600\n")
	calls := filepath.Join(f.dir, "calls")
	spec := f.spec()
	spec.Environment = map[string]string{"CALLS": calls}
	daemon := exec.Command(os.Args[0])
	daemon.Env = append(os.Environ(), "XCE_TEST_SPEC="+asAnswer(spec))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(calls); err == nil {
			break
		}
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait() // killed
	if left, err := os.ReadDir(spec.State + ".input"); err != nil || len(left) != 1 {
		t.Errorf("inputs left: %v %v", left, err)
	}
	a := f.adapterOf(f.spec(), nil)
	a.execute = f.execute
	if _, outcome := a.Request(t.Context(), askOne("host/small-1")); outcome.Status != providers.StatusUnknown {
		t.Errorf("%+v", outcome)
	}
	if state := f.settled(a, "host/small-1", cluster.Minute); state.Status != providers.StateUnknown {
		t.Errorf("%+v", state)
	}
	if list, outcome := a.List(t.Context()); outcome.Status != providers.StatusOK || len(list.Grants) != 0 {
		t.Errorf("%+v", list)
	}
	if left, err := os.ReadDir(spec.State + ".input"); err != nil || len(left) != 0 {
		t.Errorf("inputs left: %v %v", left, err)
	}
	if read(t, calls) != "x\n" || f.countCalls(requestMachines) != 0 {
		t.Error("the plug-in was asked twice")
	}
	first := f.back(a, "host/small-1", 50*cluster.Minute)
	if first.Status != providers.StatusPending {
		t.Errorf("it is given up as if nothing could have come of it: %+v", first)
	}
	if out := f.back(a, "host/small-1", 20*cluster.Minute); out.Status != providers.StatusOK {
		t.Errorf("%+v", out)
	}
	if d, _ := a.Describe(t.Context()); d.Templates[0].Headroom != 9 {
		t.Errorf("headroom %d: the machine may be there still", d.Templates[0].Headroom)
	}
}

// TestKilledBeforeTheAnswerWasKept: the script has worked, and the last that is written down is the intent.
func TestKilledBeforeTheAnswerWasKept(t *testing.T) {
	f := newFake(t)
	a := f.adapter()
	a.execute = func(ctx context.Context, name string, input []byte) providers.Execution {
		f.execute(ctx, name, input)
		panic("killed")
	}
	func() {
		defer func() { _ = recover() }()
		a.Request(t.Context(), askOne("host/small-1"))
	}()
	a = f.adapter()
	if state := f.settled(a, "host/small-1", cluster.Minute); state.Status != providers.StateUnknown {
		t.Errorf("%+v", state)
	}
	if d, _ := a.Describe(t.Context()); d.Templates[0].Headroom != 9 {
		t.Errorf("headroom %d, want one less: the machine may be there", d.Templates[0].Headroom)
	}
	// The plug-in tells of it unasked: then it is found again, and returned.
	f.wait(cluster.Minute)
	f.bend(getStatus, func(in map[string]any) (string, int) {
		in["requests"] = append(in["requests"].([]any), map[string]any{"requestId": "r-1"})
		return f.getStatus(in)
	})
	a.Request(t.Context(), askOne("host/small-2"))
	f.settled(a, "host/small-2", cluster.Hour)
	if state := f.settled(a, "host/small-1", cluster.Minute); state.Status != providers.StateGranted {
		t.Errorf("%+v", state)
	}
	for _, id := range []string{"host/small-1", "host/small-2"} {
		if out := f.back(a, id, cluster.Hour); out.Status != providers.StatusOK {
			t.Errorf("%+v", out)
		}
	}
	if left := f.runningIDs(); len(left) > 0 {
		t.Errorf("running: %q", left)
	}
}

// TestAHostThatJoinedCanBeReturnedThoughItsRequestIsUnknown: the caller knows where it is.
func TestAHostThatJoinedCanBeReturnedThoughItsRequestIsUnknown(t *testing.T) {
	f := newFake(t)
	f.errs[requestMachines] = errors.New("time limit")
	a := f.adapter()
	a.Request(t.Context(), askOne("host/small-1"))
	machine := providers.Instance{ID: f.machines[0].id, Name: f.machines[0].name}
	in := providers.ReturnIn{RequestID: "host/small-1", Units: 1, Instances: []providers.Instance{machine}}
	for range 5 {
		if out, _ := a.Return(t.Context(), in); out.Status == providers.StatusOK {
			break
		}
		f.wait(cluster.Minute)
	}
	if out, _ := a.Return(t.Context(), in); out.Status != providers.StatusOK || len(f.runningIDs()) > 0 {
		t.Errorf("%+v, running %q", out, f.runningIDs())
	}
}

func TestWithoutItsRecordsTheAdapterRefusesToWork(t *testing.T) {
	t.Run("the work folder is used", func(t *testing.T) {
		f := newFake(t)
		path := filepath.Join(f.dir, "work", "aws-db.json")
		if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := New(f.spec(), nil)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore") {
			t.Fatalf("%v", err)
		}
		_, text, _ := strings.Cut(err.Error(), "write {")
		text, _, _ = strings.Cut(text, "}")
		if err := os.WriteFile(f.spec().State, []byte("{"+text+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(f.spec(), nil); err != nil {
			t.Errorf("the remedy does not help: %v", err)
		}
	})
	for name, text := range map[string]string{
		"empty": "", "cut": `{"version":1,"prov`, "of another provider": `{"version":1,"provider":"azure"}`, "of a later program": `{"version":2,"provider":"aws"}`,
	} {
		t.Run("the state file is "+name, func(t *testing.T) {
			f := newFake(t)
			a := f.with(1)
			if err := os.WriteFile(a.spec.State, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			expectAllUnknown(t, f, a)
			if _, err := New(f.spec(), nil); err == nil {
				t.Error("a new adapter begins from nothing")
			}
		})
	}
	t.Run("the state file is gone", func(t *testing.T) {
		f := newFake(t)
		a := f.with(1)
		if err := os.Remove(a.spec.State); err != nil {
			t.Fatal(err)
		}
		expectAllUnknown(t, f, a)
	})
}

func expectAllUnknown(t *testing.T, f *fake, a *Adapter) {
	t.Helper()
	calls := len(f.calls)
	_, request := a.Request(t.Context(), askOne("host/small-2"))
	_, status := a.Status(t.Context(), providers.StatusIn{RequestIDs: []string{"host/small-1"}})
	_, back := a.Return(t.Context(), providers.ReturnIn{RequestID: "host/small-1"})
	_, list := a.List(t.Context())
	_, describe := a.Describe(t.Context())
	for verb, outcome := range map[string]providers.Outcome{"request": request, "status": status, "return": back, "list": list, "describe": describe} {
		if outcome.Status != providers.StatusUnknown || !strings.Contains(outcome.Message, "state") {
			t.Errorf("%s: %+v", verb, outcome)
		}
	}
	if len(f.calls) != calls {
		t.Errorf("the plug-in was called: %q", f.calls[calls:])
	}
}

func TestAnIntentThatCannotBeKeptIsNotPutToThePlugin(t *testing.T) {
	f := newFake(t)
	a := f.adapter()
	if err := os.Mkdir(a.spec.State+".next", 0o700); err != nil {
		t.Fatal(err)
	}
	_, outcome := a.Request(t.Context(), askOne("host/small-1"))
	if outcome.Status != providers.StatusRefused || f.countCalls(requestMachines) != 0 {
		t.Errorf("%+v after %q", outcome, f.calls)
	}
}

func TestAPluginThatIsNotThereIsNotInDoubt(t *testing.T) {
	for _, missing := range []string{"work", "scripts/requestMachines.sh"} {
		f := newFake(t)
		a := f.real(f.spec(), nil)
		if err := os.RemoveAll(filepath.Join(f.dir, missing)); err != nil {
			t.Fatal(err)
		}
		if _, outcome := a.Request(t.Context(), askOne("host/small-1")); outcome.Status != providers.StatusRefused || !strings.Contains(outcome.Message, "not asked") {
			t.Errorf("without %s: %+v", missing, outcome)
		}
	}
}

func TestACallerThatGoesAwayLeavesNoDoubtBehind(t *testing.T) {
	f := newFake(t)
	f.write(requestMachines, "#!/bin/sh\nsleep 0.3; echo '{\"requestId\":\"r\"}'\n")
	f.write(getStatus, "#!/bin/sh\nsleep 600\n")
	a := f.real(f.spec(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, outcome := a.Request(ctx, askOne("host/small-1")); outcome.Status != providers.StatusPending {
		t.Errorf("request: %+v", outcome)
	}
	f.wait(cluster.Minute)
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	a.Status(ctx, providers.StatusIn{RequestIDs: []string{"host/small-1"}})
	s, err := loadState(a.spec.State, a.spec.Name)
	if err != nil || s.Requests["host/small-1"].Theirs[0].Silent != 0 || len(a.alone) != 0 {
		t.Errorf("%v, %s", err, asAnswer(s))
	}
}

func TestAClockThatWasSetBackStopsNothing(t *testing.T) {
	f := newFake(t)
	a := f.adapter()
	a.Request(t.Context(), askOne("host/small-1"))
	f.wait(-2 * cluster.Hour)
	if state := f.settled(a, "host/small-1", cluster.Minute); state.Status != providers.StateGranted {
		t.Errorf("%+v", state)
	}
	if out := f.back(a, "host/small-1", cluster.Hour); out.Status != providers.StatusOK {
		t.Errorf("%+v", out)
	}
}

// TestCallsTakeTurns also between two processes with one state file.
func TestCallsTakeTurns(t *testing.T) {
	f := newFake(t)
	body := `#!/bin/sh
		mkdir "$LOCK" || { echo '{"message":"two at once"}'; exit 1; }
		sleep 0.02; rmdir "$LOCK"; `
	f.write(requestMachines, body+`echo "{\"requestId\":\"$$-$(date +%N)\"}"`)
	f.write(getStatus, body+`echo '{"requests":[]}'`)
	f.write(getTemplates, body+`echo '{"templates":[]}'`)
	f.write(getReturnRequests, body+`echo '{"requests":[]}'`)
	spec, log := f.spec(), new(bytes.Buffer)
	spec.Environment = map[string]string{"LOCK": filepath.Join(f.dir, "busy")}
	adapters := []*Adapter{f.real(spec, log), f.real(spec, nil)}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			a, id := adapters[i%2], fmt.Sprintf("host/small-%d", i/4)
			a.Request(t.Context(), askOne(id))
			a.Describe(t.Context())
			a.Status(t.Context(), providers.StatusIn{RequestIDs: []string{id}})
			a.List(t.Context())
		})
	}
	all.Wait()
	expectPart(t, log.String(), "two at once", false)
	s, err := loadState(spec.State, spec.Name)
	if err != nil || len(s.Requests) != 4 {
		t.Fatalf("%v, %+v", err, s)
	}
	for id, r := range s.Requests {
		if len(r.Theirs) != 1 {
			t.Errorf("%s was asked %d times", id, len(r.Theirs))
		}
	}
}

func TestNothingIsPolledFasterThanTheInterval(t *testing.T) {
	f := newFake(t)
	statusOfAcquired(f, func(id string, _ int) object {
		return object{"requestId": id, "status": running, "machines": []object{}}
	})
	a := f.adapter()
	a.Request(t.Context(), askOne("host/small-1"))
	for range 120 {
		f.wait(cluster.Second)
		a.Status(t.Context(), providers.StatusIn{RequestIDs: []string{"host/small-1"}})
		a.Describe(t.Context())
	}
	if n := f.countCalls(getStatus); n != 4 {
		t.Errorf("%d polls in 2 minutes", n)
	}
}

func TestARequestThatIsGivenUpIsFollowedToItsEnd(t *testing.T) {
	f := newFake(t)
	statusOfAcquired(f, func(id string, poll int) object {
		if poll < 6 {
			return object{"requestId": id, "status": running, "machines": []object{}}
		}
		return f.status(id)
	})
	a := f.adapter()
	a.Request(t.Context(), askOne("host/small-1"))
	if out := f.back(a, "host/small-1", cluster.Minute); out.Status != providers.StatusPending {
		t.Fatalf("%+v", out)
	}
	for range 10 {
		f.wait(cluster.Minute)
		a.Describe(t.Context()) // nobody returns it any more
	}
	if left := f.runningIDs(); len(left) > 0 {
		t.Errorf("running: %q", left)
	}
	if out := f.back(a, "host/small-1", 0); out.Status != providers.StatusOK {
		t.Errorf("%+v", out)
	}
}

// TestAMachineThatComesTooLateGoesBack: no host could join with it, and nobody asks any more.
func TestAMachineThatComesTooLateGoesBack(t *testing.T) {
	f := newFake(t)
	statusOfAcquired(f, func(id string, poll int) object {
		if f.clock < cluster.TimeOf(askOne("").Join.Deadline)+cluster.Time(10*cluster.Minute) {
			return object{"requestId": id, "status": running, "machines": results(f.acquired[id][:min(1, poll/20)], executing, fail)}
		}
		return f.status(id)
	})
	f.made = 2
	a := f.adapter()
	a.Request(t.Context(), askOne("host/small-1"))
	if state := f.settled(a, "host/small-1", 2*cluster.Hour); state.Status != providers.StateRefused || state.Reason != providers.ReasonCapacity {
		t.Errorf("%+v", state)
	}
	for range 40 {
		f.wait(cluster.Minute)
		a.Describe(t.Context())
	}
	if left := f.runningIDs(); len(left) > 0 || len(f.returnedIDs()) != 2 {
		t.Errorf("running %q, returned %q", left, f.returnedIDs())
	}
}

// TestAnErrorThatLooksLikeTheEndIsSurvived: a plug-in without its backend says complete_with_error, which is
// believed at last; the machine that was made all the same shows up when the backend is back.
func TestAnErrorThatLooksLikeTheEndIsSurvived(t *testing.T) {
	f := newFake(t)
	down := f.clock.Add(40 * cluster.Minute)
	statusOfAcquired(f, func(id string, _ int) object {
		if f.clock < down {
			return object{"requestId": id, "status": completeWithError, "message": "connection lost", "machines": []object{}}
		}
		return f.status(id)
	})
	a := f.adapter()
	a.Request(t.Context(), askOne("host/small-1"))
	if state := f.settled(a, "host/small-1", cluster.Hour); state.Status != providers.StateRefused {
		t.Errorf("%+v", state)
	}
	for range 60 {
		f.wait(cluster.Minute)
		a.Describe(t.Context())
	}
	if left := f.runningIDs(); len(left) > 0 {
		t.Errorf("running: %q", left)
	}
	if n := f.countCalls(getStatus); n > 30 {
		t.Errorf("%d polls in an hour", n)
	}
}

// TestAMachineOfAnotherRequestIsNotGrantedTwice: a plug-in lists the machine of one request under another.
func TestAMachineOfAnotherRequestIsNotGrantedTwice(t *testing.T) {
	f := newFake(t)
	a := f.with(1)
	f.bend(requestMachines, func(map[string]any) (string, int) {
		f.acquired["again"] = f.machines[:1]
		return `{"requestId":"again"}`, 0
	})
	a.Request(t.Context(), askOne("host/small-2"))
	if state := f.settled(a, "host/small-2", cluster.Hour); state.Status != providers.StateRefused {
		t.Errorf("%+v", state)
	}
	if len(f.returnedIDs()) > 0 || len(f.runningIDs()) != 1 {
		t.Errorf("returned %q, running %q", f.returnedIDs(), f.runningIDs())
	}
}

func TestPartOfARequestGoesBack(t *testing.T) {
	f := newFake(t)
	a := f.adapter()
	in := askOne("host/small-1")
	in.Units = 3
	a.Request(t.Context(), in)
	got := f.settled(a, in.RequestID, cluster.Hour).Instances
	back := providers.ReturnIn{RequestID: in.RequestID, Units: 1, Remaining: 2, Instances: got[:1]}
	var out providers.ReturnOut
	for range 4 {
		out, _ = a.Return(t.Context(), back)
		f.wait(cluster.Minute)
	}
	if out.Status != providers.StatusOK || out.Remaining != 2 || !slices.Equal(f.returnedIDs(), []string{got[0].ID}) {
		t.Errorf("%+v, returned %q", out, f.returnedIDs())
	}
}

func TestRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	f := newFake(t)
	a := f.with(1)
	changes := map[string]func(*providers.RequestIn){
		"no id":            func(in *providers.RequestIn) { in.RequestID = "" },
		"a resource":       func(in *providers.RequestIn) { in.Template, in.Resource = "", "vcs" },
		"no units":         func(in *providers.RequestIn) { in.Units = 0 },
		"too many units":   func(in *providers.RequestIn) { in.Units = 1001 },
		"a bad token":      func(in *providers.RequestIn) { in.Join.Token = "two words" },
		"another template": func(in *providers.RequestIn) { in.RequestID, in.Template = "host/small-1", "large" },
	}
	for name, change := range changes {
		in := askOne("host/small-9")
		change(&in)
		if _, outcome := a.Request(t.Context(), in); outcome.Status != providers.StatusRefused || outcome.Reason != providers.ReasonInvalid {
			t.Errorf("%s: %+v", name, outcome)
		}
	}
	if f.countCalls(requestMachines) != 1 {
		t.Errorf("%q", f.calls)
	}
	out, _ := a.Status(t.Context(), providers.StatusIn{RequestIDs: []string{"host/never-1"}})
	if out.Requests[0].Status != providers.StateUnknown {
		t.Errorf("%+v", out)
	}
	if back, _ := a.Return(t.Context(), providers.ReturnIn{RequestID: "host/never-1"}); back.Status != providers.StatusOK {
		t.Errorf("%+v", back)
	}
	if _, outcome := a.Request(t.Context(), askOne("host/never-1")); outcome.Status != providers.StatusRefused {
		t.Errorf("a request after its cancel: %+v", outcome)
	}
	if _, outcome := a.Observe(t.Context()); outcome.Status != providers.StatusRefused {
		t.Errorf("%+v", outcome)
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
}
