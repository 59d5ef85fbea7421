package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/scheduling"
)

// recorded answers the folder of a farm's record.
func recorded(t *testing.T) string {
	t.Helper()
	f := newFarm(t)
	f.live()
	f.record.Close()
	return f.folder
}

func replayed(t *testing.T, folder string, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text answers all lines of a record's only file.
func text(t *testing.T, folder string) (path string, lines []string) {
	t.Helper()
	files, err := record.Files(folder)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	packed, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	zip, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return files[0], strings.SplitAfter(strings.TrimSuffix(string(plain), "\n"), "\n")
}

// put writes lines in place of a file's.
func put(t *testing.T, path string, lines []string) {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := io.WriteString(zip, strings.Join(lines, ""))
	if err := errors.Join(err, zip.Close(), os.WriteFile(path, packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestEveryDecisionOfALiveControllerIsTheOneThatIsMadeAnew(t *testing.T) {
	r := replayed(t, recorded(t), Options{})
	for _, d := range append(r.Differences, r.Rewordings...) {
		t.Errorf("%+v", d)
	}
	for name, least := range map[string]int64{kindSessions: 12, kindLoans: 9, kindHosts: 9, kindFacts: 5, kindLendings: 1} {
		if k := r.kind(name); k.Same != k.Replayed || k.Same < least {
			t.Errorf("%+v, want at least %d", k, least)
		}
	}
	if r.Missed != 0 || r.CutOff != 0 || len(r.Releases) != 1 || r.Releases[0] != "1.2.3" || r.From == 0 || r.To <= r.From {
		t.Errorf("the report is %+v", r)
	}
}

func TestARecordTellsNoNamesAndNoSentencesOfPeople(t *testing.T) {
	_, lines := text(t, recorded(t))
	all := strings.Join(lines, "")
	for _, told := range []string{"ann", "eve", "hunter2", "/tools/run", "/home", "chip7", "4711", "has them all"} {
		if at := strings.Index(all, told); at >= 0 {
			t.Errorf("it tells %q: ...%s...", told, all[max(at-60, 0):min(at+60, len(all))])
		}
	}
}

func TestASessionThatFindsNothingNewIsNotRecorded(t *testing.T) {
	f := newFarm(t)
	f.must(f.Service.Join(t.Context(), f.peer(ownHost), api.JoinHost{CPUs: 8, MemoryMB: 1000}))
	f.publish()
	f.submit(cluster.JobSpec{CPUs: 16})
	for range 5 {
		f.Session()
	}
	f.record.Close()
	if k := replayed(t, f.folder, Options{}).kind(kindSessions); k.Replayed != 1 {
		t.Errorf("%d sessions were recorded, want 1", k.Replayed)
	}
}

func TestADecisionThatWouldBeMadeOtherwiseIsNamedWithItsPlace(t *testing.T) {
	folder := recorded(t)
	for name, test := range map[string]struct {
		judges     Judges
		kind, path string
	}{
		"a session": {Judges{Session: func(in scheduling.Input) scheduling.Result {
			r := scheduling.Run(in)
			if len(r.Starts) > 0 {
				r.Starts = r.Starts[1:]
			}
			return r
		}}, kindSessions, "starts"},
		"a limit": {Judges{Limits: func(l judge.Limits, now cluster.Time) judge.Limited {
			l.Rules.Max = 0
			return l.Judge(now)
		}}, kindSessions, "limits.quotas"},
		"when a loan is asked about again": {Judges{Loan: func(b judge.LoanBooks, w judge.LoanWrite, now cluster.Time) (judge.LoanAnswer, error) {
			a, err := b.Write(w, now)
			if w.Fence != nil && w.Fence.Units == 0 {
				a.Loan.AskAgain++
			}
			return a, err
		}}, kindLoans, "loan.ask_again"},
		"who is lent something": {Judges{Lend: func(b judge.LoanBooks, l cluster.Lending, now cluster.Time) (judge.LendAnswer, error) {
			l.Units++
			return b.Lend(l, now)
		}}, kindLendings, "lendings[0].units"},
		"how long a host is kept": {Judges{Host: func(b judge.HostBooks, w api.WriteHost, now cluster.Time) (judge.HostAnswer, error) {
			if b.Template != nil {
				t := *b.Template
				t.MinimumHold++
				b.Template = &t
			}
			return b.Write(w, now)
		}}, kindHosts, "host.minimum_hold"},
		"what is made of a silent host": {Judges{Fact: func(row cluster.ElasticHost, f judge.Fact, now cluster.Time) (judge.FactAnswer, error) {
			a, err := judge.Note(row, f, now)
			if f.Seen != nil {
				a.Host.Health = cluster.Well
			}
			return a, err
		}}, kindFacts, "host.health"},
		"a program that stops": {Judges{Fact: func(cluster.ElasticHost, judge.Fact, cluster.Time) (judge.FactAnswer, error) {
			panic("no such host")
		}}, kindFacts, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := replayed(t, folder, Options{Judges: test.judges})
			if r.Different() == 0 || r.kind(test.kind).Different != r.Different() || len(r.Differences) == 0 {
				t.Fatalf("the report is %+v", r)
			}
			d := r.Differences[0]
			if d.Path != test.path && !strings.HasPrefix(d.Path, test.path+"[") || !strings.Contains(d.Where, "decisions-000001.jsonl.gz:") || d.Live == d.Now {
				t.Errorf("the first difference is %+v", d)
			}
		})
	}
}

func TestAChangedRecordIsNamedWithItsLine(t *testing.T) {
	folder := recorded(t)
	path, lines := text(t, folder)
	for i, line := range lines {
		if strings.Contains(line, `"granted":4`) {
			lines[i] = strings.Replace(line, `"borrowed":4`, `"borrowed":5`, 1)
			put(t, path, lines)
			r := replayed(t, folder, Options{})
			want := Difference{Where: record.Place{File: path, Line: int64(i + 1)}.String(), What: "write to " + aLoan, Path: "loan.borrowed", Live: "5", Now: "4"}
			if r.Different() != 1 || r.Differences[0] != want {
				t.Errorf("the differences are %+v, want %+v", r.Differences, want)
			}
			return
		}
	}
	t.Error("no grant was recorded")
}

func TestOtherWordsAreNoOtherDecision(t *testing.T) {
	r := replayed(t, recorded(t), Options{Judges: Judges{Session: func(in scheduling.Input) scheduling.Result {
		r := scheduling.Run(in)
		for i := range r.Unplaced {
			r.Unplaced[i].Why += ", alas"
		}
		return r
	}}})
	k := r.kind(kindSessions)
	if r.Different() != 0 || k.Reworded == 0 || k.Same != k.Replayed || !strings.HasSuffix(r.Rewordings[0].Now, `, alas"`) {
		t.Errorf("the report is %+v", r)
	}
}

func TestARecordWhoseWriterWasKilledIsReadAsFarAsItIsWhole(t *testing.T) {
	folder := recorded(t)
	path, lines := text(t, folder)
	whole := replayed(t, folder, Options{}).replayed()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int{len(packed) - 3, len(packed) / 2, 200, 15, 0} {
		if err := os.WriteFile(path, packed[:left], 0o600); err != nil {
			t.Fatal(err)
		}
		if r := replayed(t, folder, Options{}); r.CutOff != 1 || r.Different() != 0 || r.replayed() > whole || left == len(packed)-3 && r.replayed() < whole-1 {
			t.Errorf("of %d bytes of %d: %+v", left, len(packed), r)
		}
	}
	last := len(lines) - 1
	lines[last] = lines[last][:len(lines[last])/2]
	put(t, path, lines)
	if r := replayed(t, folder, Options{}); r.CutOff != 1 || r.replayed() != whole-1 || r.Different() != 0 {
		t.Errorf("with half of the last line: %+v", r)
	}
}

func TestARecordThatIsNotKnownIsRefusedWithItsPlaceAndARemedy(t *testing.T) {
	folder := recorded(t)
	path, lines := text(t, folder)
	for name, test := range map[string]struct {
		change func([]string) []string
		want   string
	}{
		"a newer format": {func(l []string) []string {
			l[0] = strings.Replace(l[0], `"version":1`, `"version":2`, 1)
			return l
		}, path + ":1: the record has format 2, and this program knows format 1; replay it with release 1.2.3"},
		"something else": {func(l []string) []string { return append([]string{"{}\n"}, l...) }, path + ":1: it is no record of decisions; take it out"},
		"a key that is not known": {func(l []string) []string {
			l[1] = strings.Replace(l[1], `{"now":`, `{"later":1,"now":`, 1)
			l[1] = strings.Replace(l[1], `"state":{`, `"state":{"later":1,`, 1)
			return l
		}, path + `:2: it cannot be read (json: unknown field "later"); where another release wrote it`},
		"a line that is no JSON":     {func(l []string) []string { l[3] = "{]\n"; return l }, path + ":4: it cannot be read"},
		"a list that was not before": {func(l []string) []string { l[1] = `{"session":{"state":{"jobs":[[0,3]]}}}` + "\n"; return l }, path + ":2: it cannot be read (jobs goes on from items 0 to 3 of a list of 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, path, test.change(append([]string{}, lines...)))
			if _, err := Run(t.Context(), folder, Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the answer is %v\nwant %s", err, test.want)
			}
		})
	}
	if _, err := Run(t.Context(), t.TempDir(), Options{}); err == nil || !strings.Contains(err.Error(), "has no record: name the folder in controller.record") {
		t.Errorf("of an empty folder: %v", err)
	}
	if _, err := Run(t.Context(), filepath.Join(folder, "none"), Options{}); err == nil {
		t.Error("a folder that is not there was replayed")
	}
}

func TestTheSameRecordGivesTheSameReport(t *testing.T) {
	folder := recorded(t)
	texts := map[string]bool{}
	for range 3 {
		text, err := json.Marshal(replayed(t, folder, Options{Judges: Judges{Session: func(scheduling.Input) scheduling.Result { return scheduling.Result{} }}}))
		if err != nil {
			t.Fatal(err)
		}
		texts[string(text)] = true
	}
	if len(texts) != 1 {
		t.Errorf("there are %d reports", len(texts))
	}
}
