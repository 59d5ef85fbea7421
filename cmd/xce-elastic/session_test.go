package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/snapshot"
)

// typed runs the program as if it was typed, and answers what it printed.
func typed(t *testing.T, in string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(in))
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// prints demands that a command succeeds and prints what the patterns say.
func prints(t *testing.T, args []string, patterns ...string) string {
	t.Helper()
	out, _, err := typed(t, "", args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(out) {
			t.Errorf("%q prints\n%s\nwant %s", args, out, p)
		}
	}
	return out
}

// refuses demands that a command fails and says what the patterns say.
func refuses(t *testing.T, args []string, patterns ...string) {
	t.Helper()
	out, _, err := typed(t, "", args...)
	if err == nil {
		t.Fatalf("%q succeeds: %s", args, out)
	}
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(err.Error()) {
			t.Errorf("%q says %v, want %s", args, err, p)
		}
	}
}

const full = "../../scheduling/snapshot/testdata/full.json"

func TestASessionIsShownFromASnapshot(t *testing.T) {
	t.Chdir(t.TempDir()) // there is no configuration here
	t.Setenv("XCE_CONFIG", "")
	file := saved(t, farmState())
	prints(t, []string{"session", "--snapshot", file},
		`session of farm at Jan 1 00:00:00 UTC under fcfs: 1 start, 42 wait`,
		`STARTS +ON +WITH ALTERNATIVE\n1 +h1 +2\n`,
		`WANTED +OF +FROM +TOTAL PRICE/H +FOR JOBS +WHY\n`,
		`3 +vcs +pool +0\.75 +3 +jobs 2, 3, 4 .*3 .*vcs`,
		`nothing lies idle|IDLE +OF`,
		`\n\nWAITING\nborrowing  3 jobs wait: 2, 3, 4\n  needs 1 vcs; (.|\n)*\n  to change: pool .*\nnever  39 jobs`,
		`\nnever  39 jobs wait: 5, 6, 7, 8, 9 and 34 more\n  needs 1 gpu.*\n  to change: `,
	)
	prints(t, []string{"demand", "--snapshot", file}, `^WANTED +OF`, `3 +vcs +pool`)
	var session api.Session
	if err := json.Unmarshal([]byte(prints(t, []string{"session", "--snapshot", file, "-o", "json"})), &session); err != nil || len(session.Starts) != 1 || len(session.Unplaced) != 2 {
		t.Errorf("%v: %+v", err, session)
	}
	var demand []cluster.Demand
	if err := json.Unmarshal([]byte(prints(t, []string{"demand", "--snapshot", file, "-o", "json"})), &demand); err != nil || len(demand) != 1 || demand[0].Units != 3 {
		t.Errorf("%v: %+v", err, demand)
	}
}

// farmState is one in which one job starts, three want tokens, and many can never run.
func farmState() scheduling.Input {
	in := scheduling.Input{
		Now: 1_767_225_600_000, Hosts: []scheduling.Host{{Name: "h1", Capacity: cluster.Capacity{CPUs: 8}}, {Name: "h2", Capacity: cluster.Capacity{CPUs: 2}, Closed: "drained"}},
		Resources: []scheduling.Resource{{
			SharedResource: cluster.SharedResource{Name: "vcs", Owned: 1, Elastic: &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: 8}}, Total: 1,
		}, {SharedResource: cluster.SharedResource{Name: "zebu"}}},
		Offers: []cluster.Offer{{Provider: "pool", Resource: "vcs", Headroom: 5, Price: 250_000}},
	}
	for id := range int64(43) {
		job := cluster.Job{ID: id + 1, State: cluster.JobWaiting, JobSpec: cluster.JobSpec{Command: []string{"true"}, CPUs: 1}}
		switch {
		case id == 0:
			job.Alternatives = []map[string]int64{{"zebu": 1}, {"vcs": 1}}
		case id < 4:
			job.Tokens = map[string]int64{"vcs": 1}
		default:
			job.Countables = map[string]int64{"gpus": 1}
		}
		in.Jobs = append(in.Jobs, job)
	}
	return in
}

// saved saves a state as a snapshot.
func saved(t *testing.T, in scheduling.Input) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.json")
	if err := save(snapshot.Of("farm", in), path, false); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatLiesIdleIsShownFromASnapshot(t *testing.T) {
	in := farmState()
	in.Jobs = nil
	in.Resources[0].Idle = cluster.IdleClock{{Units: 1, Since: in.Now - 90_000}}
	in.Hosts[0].IdleSince = in.Now - 3_600_500
	file := saved(t, in)
	out := prints(t, []string{"idle", "--snapshot", file}, `^IDLE +OF +TEMPLATE +SINCE +FOR\n1 +vcs +- +\S+ \d+ [\d:]+ UTC +1m30s\n1 +host h1 +- +\S+ \d+ [\d:]+ UTC +1h0m0s\n$`)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if piped, _, err := typed(t, string(data), "idle", "--snapshot", "-"); err != nil || piped != out {
		t.Errorf("from standard input: %v\n%s", err, piped)
	}
	prints(t, []string{"session", "--snapshot", file}, `0 start, 0 wait`, `nothing is wanted`, `no job waits`, `1 +host h1`)
	in.Resources, in.Offers, in.Hosts = nil, nil, nil
	prints(t, []string{"idle", "--snapshot", saved(t, in)}, `^nothing lies idle\n$`)
}

func TestWhatIsHereForJobsThatWaitForTheRestIsShown(t *testing.T) {
	in := farmState()
	in.Jobs = []cluster.Job{{ID: 7, State: cluster.JobWaiting, JobSpec: cluster.JobSpec{Command: []string{"true"}, CPUs: 16, Tokens: map[string]int64{"vcs": 1}}}}
	in.Templates = []cluster.Template{{Name: "small", Provider: "cloud", Capacity: cluster.Capacity{CPUs: 16}, Headroom: 1, Latency: 3 * cluster.Minute, Published: in.Now}}
	prints(t, []string{"session", "--snapshot", saved(t, in)}, `\n\nKEPT +OF +FOR +AWAITING\n1 +vcs +job 7 +host to be made from small by cloud.*\n\nWAITING\n`)
	in.Jobs[0].Tokens, in.Jobs[0].CPUs = map[string]int64{"vcs": 3}, 8
	prints(t, []string{"session", "--snapshot", saved(t, in)}, `\n1 +host h1 +job 7 +vcs to be borrowed from pool`)
	in.Jobs = nil
	file := saved(t, in)
	if out := prints(t, []string{"session", "--snapshot", file}); strings.Contains(out, "AWAITING") {
		t.Errorf("got\n%s", out)
	}
	prints(t, []string{"session", "--snapshot", file, "--json"}, `"halves": \[\]`)
}

func TestJobsThatSomethingIsKeptForAreNamedInShort(t *testing.T) {
	for want, h := range map[string]cluster.Half{
		"job 7":                       {Count: 1, Jobs: []int64{7}},
		"jobs 7, 9":                   {Count: 2, Jobs: []int64{7, 9}},
		"30 jobs, first 1":            {Count: 30, Jobs: []int64{1}},
		"6 jobs, first 1, 2, 3, 4, 5": {Count: 6, Jobs: []int64{1, 2, 3, 4, 5, 6}},
	} {
		if got := keptFor(h); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLongListsAreCutInTheSessionOnly(t *testing.T) {
	in := farmState()
	in.Jobs = nil
	for i := range 30 {
		in.Hosts = append(in.Hosts, scheduling.Host{Name: fmt.Sprintf("n%d", i), Capacity: cluster.Capacity{CPUs: 1}})
		in.Jobs = append(in.Jobs, cluster.Job{ID: int64(i + 1), State: cluster.JobWaiting, JobSpec: cluster.JobSpec{Command: []string{"true"}, CPUs: 8 - int64(i)%8, TimeLimit: cluster.Duration(i+1) * cluster.Hour}})
	}
	in.Policy.Order = scheduling.Conservative
	file := saved(t, in)
	prints(t, []string{"session", "--snapshot", file}, `under conservative`, `and \d+ more; -o json lists them`, `RESERVED FOR +AT THE LATEST +ON\n\d+ +\S+ \d+ [\d:]+ UTC +h1\n`)
	in.Jobs = nil
	if out := prints(t, []string{"idle", "--snapshot", saved(t, in)}); strings.Count(out, "host ") != 31 {
		t.Errorf("not all idle hosts are listed:\n%s", out)
	}
}

func TestASnapshotThatIsNotTakenIsRefusedWithItsPlace(t *testing.T) {
	refuses(t, []string{"session", "--snapshot", "absent.json"}, `absent\.json`, "xce-elastic snapshot")
	refuses(t, []string{"idle", "--snapshot", ""}, `--snapshot`)
	refuses(t, []string{"session", "--snapshot", full, "-o", "xml"}, `use table, json or yaml`)
	path := filepath.Join(t.TempDir(), "bad.json")
	data, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(`"in_use": 3`), []byte(`"in_use": -3`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, []string{"demand", "--snapshot", path}, `bad\.json:22:\d+: state\.resources\[0\]\.in_use: -3 is negative; write 0`)
}

// live is a controller, and a configuration with which it is reached as an admin.
func live(t *testing.T) *controllertest.Controller {
	t.Helper()
	c := controllertest.Open(t, store.Memory, controllertest.Vcs(2, 10))
	c.Serve()
	configure(t, c, api.Admin)
	host := c.Client(api.HostRole, "h1")
	join := api.JoinHost{CPUs: 8, MemoryMB: 1000, Countables: map[string]int64{"gpus": 2}, Features: []string{"avx512"}, Attributes: map[string]string{"site": "z1"}}
	offer := api.Catalog{Offers: []cluster.Offer{{Resource: "vcs", Headroom: 10, MaxOpen: 1, Price: 250_000}}, Observations: []cluster.Observation{}}
	if err := host.Join(t.Context(), "h1", join); err != nil {
		t.Fatal(err)
	}
	if err := c.Client(api.Provisioner, "p").PublishCatalog(t.Context(), "pool", offer); err != nil {
		t.Fatal(err)
	}
	return c
}

// configure makes the program call the controller in a role.
func configure(t *testing.T, c *controllertest.Controller, role api.Role) {
	t.Helper()
	c.TLS(role, "you")
	path := filepath.Join(t.TempDir(), "xce-elastic.yaml")
	text := fmt.Sprintf("cluster: {name: test}\ncontroller: {address: 'https://%s'}\npeer: {ca: '%[2]s/ca.crt', cert: '%[2]s/%[3]s-you.crt', key: '%[2]s/%[3]s-you.key'}\n", c.Address, c.Certificates, role)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XCE_CONFIG", path)
}

func TestALiveClusterIsShownAndSaved(t *testing.T) {
	c := live(t)
	prints(t, []string{"session"}, `^no session has run in test since the controller started\n$`)
	prints(t, []string{"submit", "--token", "vcs=5", "--name", "chip", "--", "simulate", "--secret"}, `^job 1 is submitted\n$`)
	c.Session()
	prints(t, []string{"demand"}, `3 +vcs +pool +0\.75 +1 +job 1 .*3 .*vcs\n$`)
	prints(t, []string{"idle"}, `^nothing lies idle`)
	waits := `borrowing  1 job waits: 1\n  needs 5 vcs; 2 free, (.|\n)*\n  to change: pool .*\n`
	prints(t, []string{"session"}, `under fcfs: 0 start, 1 wait`, waits)
	prints(t, []string{"explain", "job", "1"}, `For it to start, pool .*\.`)
	prints(t, []string{"status"}, `h1 +true +joined +8 +8 +0 .* gpus=2 +avx512,site=z1\n`, `demand: 3 vcs from pool`)
	folder := t.TempDir()
	file := filepath.Join(folder, "state.json")
	prints(t, []string{"snapshot", "--out", file}, `state\.json has the state of test at .*: 1 job waits, 0 run\n$`)
	prints(t, []string{"session", "--snapshot", file}, waits)
	refuses(t, []string{"snapshot", "--out", file, "--hash"}, `state\.json is there already; name another file, or replace it with --force`)
	if text := read(t, file); !strings.Contains(text, `"--secret"`) || !strings.Contains(text, `"you"`) {
		t.Errorf("the refused call changed the file: %s", text)
	}
	prints(t, []string{"snapshot", "--out", file, "--hash", "--force"}, `has the state of test`)
	if text := read(t, file); strings.Contains(text, "secret") || strings.Contains(text, `"you"`) || strings.Contains(text, "chip") {
		t.Errorf("the file tells names: %s", text)
	}
	if printed := prints(t, []string{"snapshot"}); !strings.Contains(printed, `"format": "xce-snapshot"`) || !strings.Contains(printed, "--secret") {
		t.Errorf("printed is %s", printed)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("beside the file there are %v, %v", entries, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	refuses(t, []string{"snapshot", "--out", filepath.Join(folder, "absent", "x.json")}, `--out: .*absent`)
	configure(t, c, api.Viewer)
	refuses(t, []string{"snapshot"}, `viewer/you may not call snapshot`, `--hash`)
	prints(t, []string{"snapshot", "--hash"}, `"format": "xce-snapshot"`)
	prints(t, []string{"demand", "-o", "yaml"}, `resource: vcs\n`)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestASnapshotThatCouldNotBeReadIsSavedWithAWarning(t *testing.T) {
	c := live(t)
	offer := api.Catalog{Offers: []cluster.Offer{{Resource: "vcs", Headroom: -3, MaxOpen: 1}}, Observations: []cluster.Observation{}}
	if err := c.Client(api.Provisioner, "p").PublishCatalog(t.Context(), "pool", offer); err != nil {
		t.Fatal(err)
	}
	out, errs, err := typed(t, "", "snapshot")
	if err != nil || !strings.Contains(out, `"headroom": -3`) || !strings.Contains(errs, "state.offers[0].headroom: -3 is negative") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}

func TestWhereNothingCanBeAskedForTheWaitingJobsArePointedAt(t *testing.T) {
	in := farmState()
	in.Offers = nil
	file := saved(t, in)
	prints(t, []string{"demand", "--snapshot", file}, "^nothing can be asked for now; 42 jobs wait, see `xce-elastic session --snapshot .*state.json`\n$")
	out := prints(t, []string{"session", "--snapshot", file}, `\nnothing can be asked for now\n`)
	if strings.Contains(out, "see `") {
		t.Errorf("the session points at itself:\n%s", out)
	}
	in.Jobs = in.Jobs[:2]
	prints(t, []string{"demand", "--snapshot", saved(t, in)}, "1 job waits, see")
	in.Jobs = nil
	prints(t, []string{"demand", "--snapshot", saved(t, in)}, "^nothing is wanted\n$")
}

func TestJobsThatWaitAreListedWholeInJSON(t *testing.T) {
	in := farmState()
	in.Jobs[5].Array = 10
	file := saved(t, in)
	prints(t, []string{"session", "--snapshot", file}, `never  \d+ jobs wait, elements of arrays counted: `)
	if out := prints(t, []string{"session", "--snapshot", file, "-o", "json"}); !strings.Contains(out, "43\n") {
		t.Errorf("the last job is not there:\n%s", out)
	}
}

func TestASnapshotReplacesFilesOnly(t *testing.T) {
	c := live(t)
	c.Session()
	folder := t.TempDir()
	kept, link, fifo := filepath.Join(folder, "kept"), filepath.Join(folder, "link"), filepath.Join(folder, "fifo")
	if err := errors.Join(os.WriteFile(kept, []byte("kept"), 0o600), os.Symlink(kept, link), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link:        `^--out: .*link is a symbolic link; name a file itself, or leave out --out to print$`,
		fifo:        `^--out: .*fifo is no regular file; leave out --out to print$`,
		"/dev/full": `^--out: /dev/full is no regular file; leave out --out to print$`,
		folder:      `^--out: .* is a folder; name a file in it$`,
	} {
		refuses(t, []string{"snapshot", "--out", path}, want)
		refuses(t, []string{"snapshot", "--out", path, "--force"}, want)
		if err := save(snapshot.Of("farm", farmState()), path, true); err == nil {
			t.Errorf("%s is replaced", path)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 3 || read(t, kept) != "kept" {
		t.Errorf("in the folder are %v, %v", entries, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	t.Chdir(folder)
	prints(t, []string{"snapshot", "--out", "-"}, `^\{\n "format": "xce-snapshot"`)
	if _, err := os.Lstat("-"); err == nil {
		t.Error("a file is named -")
	}
	refuses(t, []string{"session", "--snapshot", folder}, `is a folder; name a file$`)
}

// TestTheSnapshotOfTheManualIsReadAndSaysWhatTheManualTells: whoever copies it has
// a file to begin with.
func TestTheSnapshotOfTheManualIsReadAndSaysWhatTheManualTells(t *testing.T) {
	manual := read(t, "../../docs/operate.md")
	_, rest, found := strings.Cut(manual, "```json\n")
	example, rest, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("the manual has no example")
	}
	for _, key := range []string{"templates", "quotas", "expected", "thresholds", "nodes", "price"} {
		if !strings.Contains(example, `"`+key+`": `) {
			t.Errorf("the example has no %s", key)
		}
	}
	out, _, err := typed(t, example, "session", "--snapshot", "-")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile(`(?m)(^    (WANTED|\d).*\n)+`).FindString(rest)
	if told = strings.ReplaceAll(told, "\n    ", "\n"); told == "" || !strings.Contains(out, strings.TrimPrefix(told, "    ")) {
		t.Errorf("got\n%s, and the manual tells\n%s", out, told)
	}
	for _, want := range []string{
		`provisioning  1 job waits: 21\n  needs 16 cpus and 32000 MB on each of 3 hosts; (.|\n)*gpu(.|\n)*small(.|\n)* 1\s+expected`,
		`threshold  1 job waits: 23\n  needs 3 vcs`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("got\n%s, want %s", out, want)
		}
	}
}
