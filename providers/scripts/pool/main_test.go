package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/providers"
)

// TestMain lets the test binary stand for the program itself.
func TestMain(m *testing.M) {
	if os.Getenv("XCE_TEST_POOL") != "" {
		main()
	}
	os.Exit(m.Run())
}

// command runs the program in a process of its own.
func command(file, cluster string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "XCE_TEST_POOL=1", "GORACE=atexit_sleep_ms=0", "XCE_POOL_FILE="+file, "XCE_POOL_CLUSTER="+cluster)
	return cmd
}

// call runs the program in this process, and answers what it printed.
func call(t *testing.T, stdin string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	exit = run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return exit, out.String(), errs.String()
}

func newFile(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pool.json")
	if exit, _, stderr := call(t, "", append([]string{"init", "--file", file, "--resource", "vcs=8"}, args...)...); exit != 0 {
		t.Fatal(stderr)
	}
	t.Setenv("XCE_POOL_FILE", file)
	t.Setenv("XCE_POOL_CLUSTER", "east")
	return file
}

func read(t *testing.T, file string) *pool {
	t.Helper()
	p, err := poolFile{file}.read()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestInit(t *testing.T) {
	file := newFile(t, "--resource", "xcelium=2", "--price", "vcs=250000", "--hold", "vcs=8", "--billing-step", "vcs=60", "--share", "vcs:west=4")
	want := []resource{
		{Name: "vcs", Capacity: 8, Price: 250000, MinimumHold: 8, BillingStep: 60, Shares: map[string]int64{"west": 4}},
		{Name: "xcelium", Capacity: 2},
	}
	if got := read(t, file).Resources; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	_, stdout, _ := call(t, "{}", "describe")
	description, outcome := providers.ClassifyDescribe(providers.Execution{Stdout: []byte(stdout)})
	if outcome.Status != providers.StatusOK || len(description.Offers) != 2 || description.Offers[0].Price != 250000 {
		t.Errorf("describe: %s (%+v)", stdout, outcome)
	}
}

func TestInitRefuses(t *testing.T) {
	file := newFile(t)
	before, _ := os.ReadFile(file)
	fresh := filepath.Join(t.TempDir(), "new.json")
	tests := [][]string{
		{"init", "--file", file, "--resource", "vcs=9"},
		{"init", "--file", fresh},
		{"init", "--resource", "vcs=9"},
		{"init", "--file", fresh, "--resource", "vcs=-1"},
		{"init", "--file", fresh, "--resource", "vcs=many"},
		{"init", "--file", fresh, "--resource", "vcs=1", "--resource", "vcs=2"},
		{"init", "--file", fresh, "--resource", "vcs=1", "--price", "vcx=2"},
		{"init", "--file", fresh, "--resource", "vcs=1", "--share", "vcs=2"},
		{"init", "--file", fresh, "--resource", "vcs=1", "extra"},
	}
	for _, args := range tests {
		if exit, _, stderr := call(t, "", args...); exit == 0 || stderr == "" {
			t.Errorf("%v: exit status %d, %q", args, exit, stderr)
		}
	}
	if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
		t.Error("the old pool was changed")
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a refused init left a file")
	}
}

// TestBadFile: what cannot be read or written is never written over, and the answer is unknown.
func TestBadFile(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, file string)
		want  string
	}{
		{"half", func(t *testing.T, file string) { truncate(t, file, 50) }, "corrupt"},
		{"empty", func(t *testing.T, file string) { truncate(t, file, 0) }, "corrupt"},
		{"field of a later version", func(t *testing.T, file string) { substitute(t, file, `"version"`, `"season": 1, "version"`) }, "corrupt"},
		{"two documents", func(t *testing.T, file string) { substitute(t, file, `{`, `{} {`) }, "corrupt"},
		{"edited badly", func(t *testing.T, file string) { substitute(t, file, `"capacity": 8`, `"capacity": -8`) }, "corrupt"},
		{"read-only", func(t *testing.T, file string) { chmod(t, file, 0o444) }, "chmod"},
		{"missing", func(t *testing.T, file string) { remove(t, file) }, "pool init"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := newFile(t)
			test.spoil(t, file)
			before, _ := os.ReadFile(file)
			exit, stdout, stderr := call(t, `{"request_id":"a","resource":"vcs","units":1}`, "request")
			if exit != 1 || !strings.Contains(stderr, file) || !strings.Contains(stderr, test.want) {
				t.Errorf("exit status %d: %s", exit, stderr)
			}
			in := providers.RequestIn{RequestID: "a", Resource: "vcs", Units: 1}
			_, outcome := providers.ClassifyRequest(in, providers.Execution{Stdout: []byte(stdout), Exit: exit})
			if outcome.Status != providers.StatusUnknown || !strings.Contains(outcome.Message, test.want) {
				t.Errorf("answered %s", stdout)
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func truncate(t *testing.T, file string, size int64) {
	t.Helper()
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
}

func substitute(t *testing.T, file, old, replacement string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(text, []byte(old), []byte(replacement), 1), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, file string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func TestReadOnlyPoolCanBeRead(t *testing.T) {
	file := newFile(t)
	chmod(t, file, 0o444)
	if exit, stdout, stderr := call(t, "{}", "list"); exit != 0 || !strings.Contains(stdout, `"grants":[]`) {
		t.Errorf("exit status %d: %s%s", exit, stdout, stderr)
	}
}

// TestLinkStaysALink: the pool behind it is changed, and keeps its mode.
func TestLinkStaysALink(t *testing.T) {
	file := newFile(t)
	chmod(t, file, 0o660)
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XCE_POOL_FILE", link)
	call(t, `{"request_id":"a","resource":"vcs","units":1}`, "request")
	if len(read(t, file).Grants) != 1 {
		t.Error("the pool was not changed")
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o660 {
		t.Error("the mode was changed")
	}
}

func TestSettings(t *testing.T) {
	newFile(t)
	for name, value := range map[string]string{
		"XCE_POOL_FILE": "", "XCE_POOL_CLUSTER": "", "XCE_POOL_FAIL": "often",
		"XCE_POOL_LATENCY_MS": "-1", "XCE_POOL_PENDING_MS": "1.5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if exit, stdout, stderr := call(t, "{}", "list"); exit != 1 || !strings.Contains(stderr, name) || !strings.Contains(stdout, "unknown") {
				t.Errorf("exit status %d: %s%s", exit, stdout, stderr)
			}
		})
	}
}

// TestFail: the Nth call acts, and says nothing.
func TestFail(t *testing.T) {
	file := newFile(t)
	t.Setenv("XCE_POOL_FAIL", "2")
	for i := range 4 {
		exit, stdout, _ := call(t, fmt.Sprintf(`{"request_id":"r%d","resource":"vcs","units":1}`, i), "request")
		if fails := i%2 == 1; fails != (exit == 1) || fails != (stdout == "") {
			t.Errorf("call %d: exit status %d, %q", i, exit, stdout)
		}
	}
	if got := len(read(t, file).Grants); got != 4 {
		t.Errorf("%d grants, want 4", got)
	}
}

func TestLatency(t *testing.T) {
	newFile(t)
	t.Setenv("XCE_POOL_LATENCY_MS", "60")
	begin := time.Now()
	call(t, "{}", "list")
	if time.Since(begin) < 60*time.Millisecond {
		t.Error("answered too early")
	}
}

func TestObserve(t *testing.T) {
	newFile(t)
	if exit, stdout, _ := call(t, "{}", "observe"); exit != 2 || !strings.Contains(stdout, `"refused"`) {
		t.Errorf("without a file: exit status %d, %s", exit, stdout)
	}
	counts := filepath.Join(t.TempDir(), "counts.json")
	if err := os.WriteFile(counts, []byte(`{"vcs":{"in_use":3},"other":{"in_use":1}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(counts, start, start); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XCE_POOL_OBSERVE_FILE", counts)
	_, stdout, _ := call(t, "{}", "observe")
	out, outcome := providers.ClassifyObserve(providers.Execution{Stdout: []byte(stdout)})
	want := []providers.Observation{{Resource: "vcs", InUse: 3, At: start}}
	if outcome.Status != providers.StatusOK || !reflect.DeepEqual(out.Observations, want) {
		t.Errorf("%s (%+v)", stdout, outcome)
	}
	if _, stdout, _ := call(t, "{}", "describe"); !strings.Contains(stdout, `"observe":true`) {
		t.Errorf("describe: %s", stdout)
	}
}

func TestOperatorVerbs(t *testing.T) {
	file := newFile(t)
	call(t, `{"request_id":"loan/vcs/pool-1","resource":"vcs","units":6}`, "request")
	steps := []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"recall", "--file", file, "--cluster", "east", "--request", "loan/vcs/pool-1", "--units", "2"}, 0, "recalled"},
		{[]string{"recall", "--file", file, "--cluster", "west", "--request", "loan/vcs/pool-1", "--units", "2"}, 1, "pool show"},
		{[]string{"set", "--file", file, "--capacity", "vcs=4"}, 0, "OVER-LENT"},
		{[]string{"set", "--file", file, "--capacity", "nope=4"}, 1, "nope"},
		{[]string{"set", "--file", file}, 1, "--capacity"},
		{[]string{"show", "--file", file}, 0, "loan/vcs/pool-1"},
		{[]string{"show", "--file", file, "-o", "json"}, 0, `"over_lent": 2`},
		{[]string{"show", "--file", file, "-o", "xml"}, 1, "table or json"},
		{[]string{"show", "--nonsense"}, 2, "nonsense"},
		{[]string{"help"}, 2, "usage"},
		{[]string{"lend"}, 2, `"refused"`},
	}
	for _, step := range steps {
		exit, stdout, stderr := call(t, "{}", step.args...)
		if exit != step.exit || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%v: exit status %d, want %d\n%s%s", step.args, exit, step.exit, stdout, stderr)
		}
	}
	if _, stdout, _ := call(t, "{}", "describe"); !strings.Contains(stdout, `"recalls":[{"request_id":"loan/vcs/pool-1","units":2}]`) {
		t.Errorf("describe: %s", stdout)
	}
}

// TestJournalAfterACrash: a killed process may leave half a line, or a change without its line.
func TestJournalAfterACrash(t *testing.T) {
	file := newFile(t)
	call(t, `{"request_id":"a","resource":"vcs","units":6}`, "request")
	journal := file + ".log"
	whole, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for size := range len(whole) + 1 {
		if err := os.WriteFile(journal, whole[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		p := read(t, file)
		if err := (poolFile{file}).file().AppendJournal(p); err != nil {
			t.Fatal(err)
		}
		// The pool file holds the last change only; an earlier one is lost only when a person cuts the journal.
		after, _ := os.ReadFile(journal)
		if size > bytes.IndexByte(whole, '\n') && !bytes.Equal(after, whole) {
			t.Fatalf("cut at %d of %d:\n%s", size, len(whole), after)
		}
		if !bytes.HasSuffix(after, whole[bytes.IndexByte(whole, '\n')+1:]) {
			t.Fatalf("cut at %d of %d: the last change is missing:\n%s", size, len(whole), after)
		}
	}
}

// TestNextChangeMendsTheJournal: and it writes over what a killed process left of a new file.
func TestNextChangeMendsTheJournal(t *testing.T) {
	file := newFile(t)
	call(t, `{"request_id":"a","resource":"vcs","units":3}`, "request")
	whole, err := os.ReadFile(file + ".log")
	if err != nil {
		t.Fatal(err)
	}
	truncate(t, file+".log", int64(len(whole)-20))
	if err := os.WriteFile(file+".new", []byte("half"), 0o400); err != nil {
		t.Fatal(err)
	}
	if exit, _, stderr := call(t, `{"request_id":"b","resource":"vcs","units":3}`, "request"); exit != 0 {
		t.Fatal(stderr)
	}
	checkSums(t, file)
}

func TestJournalOfAnotherPool(t *testing.T) {
	file := newFile(t)
	call(t, `{"request_id":"a","resource":"vcs","units":6}`, "request")
	remove(t, file)
	if exit, _, stderr := call(t, "", "init", "--file", file, "--resource", "vcs=8"); exit != 1 || !strings.Contains(stderr, "move it away") {
		t.Errorf("init over an old journal: exit status %d, %s", exit, stderr)
	}
	if err := os.WriteFile(file+".log", []byte(`{"sequence":99}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (poolFile{file}).file().AppendJournal(newPool()); err == nil {
		t.Error("a journal that is ahead of the pool was continued")
	}
}

// TestKilledProcesses: 8 processes draw on one pool and are killed at any moment. Afterwards the file is
// whole, no more is lent than there is, and its journal tells the same story.
func TestKilledProcesses(t *testing.T) {
	file := newFile(t, "--share", "vcs:west=4")
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() { hammer(t, file, worker) })
	}
	all.Wait()
	// One undisturbed change lets the pool put right what the last killed one left.
	if out, err := input(command(file, "east", "return"), `{"request_id":"last","units":0,"remaining":0}`).Output(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	checkSums(t, file)
}

func hammer(t *testing.T, file string, worker int) {
	random := rand.New(rand.NewPCG(1, uint64(worker)))
	cluster := []string{"east", "west"}[worker%2]
	for i := range 20 {
		id := fmt.Sprintf("w%d-%d", worker, random.IntN(4))
		var cmd *exec.Cmd
		if i%3 < 2 {
			cmd = input(command(file, cluster, "request"), fmt.Sprintf(`{"request_id":%q,"resource":"vcs","units":%d}`, id, 1+random.IntN(4)))
		} else {
			cmd = input(command(file, cluster, "return"), fmt.Sprintf(`{"request_id":%q,"units":1,"remaining":0}`, id))
		}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		if random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
			_ = cmd.Process.Kill() // it may have ended already
		}
		_ = cmd.Wait() // killed, refused or ok: only the file counts
	}
}

func input(cmd *exec.Cmd, text string) *exec.Cmd {
	cmd.Stdin = strings.NewReader(text)
	return cmd
}

func checkSums(t *testing.T, file string) {
	t.Helper()
	p := read(t, file)
	if free := p.free(&p.Resources[0]); free < 0 || p.room(&p.Resources[0], "west") < 0 {
		t.Errorf("%d free, %d left of west's share", free, p.room(&p.Resources[0], "west"))
	}
	journal, err := os.Open(file + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	said, last := map[string]int64{}, change{}
	for lines := bufio.NewScanner(journal); lines.Scan(); {
		var entry change
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatalf("journal: %q: %v", lines.Text(), err)
		}
		if entry.Sequence != last.Sequence+1 {
			t.Fatalf("change %d follows %d", entry.Sequence, last.Sequence)
		}
		last = entry
		replay(said, entry)
	}
	held := map[string]int64{}
	for _, g := range p.Grants {
		if g.Units > 0 {
			held[g.Cluster+" "+g.RequestID] = g.Units
		}
	}
	if last.Sequence != p.Sequence || !reflect.DeepEqual(said, held) {
		t.Errorf("the journal says %v at %d, the pool %v at %d", said, last.Sequence, held, p.Sequence)
	}
	t.Logf("%d changes, %d requests held", p.Sequence, len(held))
}
