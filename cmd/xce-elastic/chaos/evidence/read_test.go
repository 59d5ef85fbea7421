package evidence

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"xce.internal/elastic/controller/api"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestALendersJournalIsReadWithWhatItsFileStillCarries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pool.json")
	write(t, file, `{"grants":[{"request_id":"loan/vcs/a-1","units":2},{"request_id":"loan/vcs/a-2","units":0}],
		"unlogged":[{"sequence":2,"time":"2026-01-01T00:00:01.5Z","change":"granted","units":2},{"sequence":3,"time":"2026-01-01T00:00:02Z","change":"returned","units":1}]}`)
	write(t, file+".log", `{"sequence":1,"time":"2026-01-01T00:00:00Z","change":"capacity","resource":"vcs","units":8,"free":8}
{"sequence":2,"time":"2026-01-01T00:00:01.5Z","change":"granted","units":2}
`)
	l, err := ReadLender("a", file)
	if err != nil || len(l.Lines) != 3 || l.Lines[2].Change != "returned" || l.Lines[1].At.Sub(l.Lines[0].At) != 1500 {
		t.Errorf("got %+v, %v", l, err)
	}
	if len(l.Open) != 1 || l.Open[0].Units != 2 {
		t.Errorf("open: %+v", l.Open)
	}
}

func TestAMakersJournalIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "local.json")
	write(t, file, `{"hosts":[{"instance":"i-1","state":"ending"},{"instance":"i-2","state":"returned"}]}`)
	write(t, file+".log", `{"sequence":1,"at_ms":1500,"request":"host/small-1","instance":"i-1","change":"granted"}`+"\n")
	m, err := ReadMaker("farm", file)
	if err != nil || len(m.Lines) != 1 || m.Lines[0].At != 1500 || m.Lines[0].Instance != "i-1" || len(m.Open) != 1 {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestAJobWritesItsOwnLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.txt")
	command := Script(file, "burst-1", "0", map[string]int64{"vcs": 3})
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "XCE_JOB_ID=17", "XCE_JOB_REQUEUES=2", "LOCAL_HOST=/somewhere/hosts/i-4")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	marks, err := ReadMarks(file)
	if err != nil || len(marks) != 2 {
		t.Fatalf("got %+v, %v", marks, err)
	}
	m := marks[0]
	if m.What != "begin" || m.Job != 17 || m.Requeues != 2 || m.Machine != "i-4" || m.Name != "burst-1" || m.Tokens["vcs"] != 3 || m.At == 0 {
		t.Errorf("got %+v", m)
	}
	if marks[1].What != "end" || marks[1].At < m.At {
		t.Errorf("got %+v", marks[1])
	}
}

func TestALineThatNoJobWroteIsRefused(t *testing.T) {
	for _, text := range []string{"begin 1 0 a", "begin x 0 a i-1 1", "begin 1 y a i-1 1", "begin 1 0 a i-1 z", "begin 1 0 a i-1 1 vcs=many"} {
		file := filepath.Join(t.TempDir(), "jobs.txt")
		write(t, file, text+"\n")
		if _, err := ReadMarks(file); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestRecordsAreReadByTheirKinds(t *testing.T) {
	read := func(kind, after string) Record {
		t.Helper()
		r, err := ReadRecord(api.Change{Revision: 1, Kind: kind, After: json.RawMessage(after)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := read("loan-commit", `{"provider":"a","borrowed":3}`); r.Loan == nil || r.Loan.Borrowed != 3 || r.Provider != "a" {
		t.Errorf("%+v", r)
	}
	if r := read("host-joined", `{"provider":"b","instance":"i-1"}`); r.Host == nil || r.Host.Instance != "i-1" || r.Provider != "b" {
		t.Errorf("%+v", r)
	}
	if r := read("job", `{"id":4,"state":"running","tokens":{"vcs":1}}`); r.Job == nil || r.Job.Tokens["vcs"] != 1 {
		t.Errorf("%+v", r)
	}
	if r := read("lease", `{"provider":"a","holder":"p1","epoch":4}`); r.Lease == nil || r.Lease.Epoch != 4 {
		t.Errorf("%+v", r)
	}
	if r := read("resource", `{"name":"vcs","owned":4}`); r.Shared == nil || r.Shared.Owned != 4 {
		t.Errorf("%+v", r)
	}
	if r := read("catalog", `null`); r.Shared != nil || r.Loan != nil {
		t.Errorf("%+v", r)
	}
}
