package record

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/scheduling"
)

const begun = cluster.Time(1_767_225_600_000)

// log keeps what is logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWriter(folder string, most int64) (*Writer, *log) {
	l := &log{}
	return NewWriter(Options{
		Folder: folder, Cluster: "test", Release: "1", Most: most, Now: func() cluster.Time { return begun }, Log: slog.New(slog.NewTextHandler(l, nil)),
	}), l
}

// fact is an entry that does not compress well.
func fact(n int) Entry {
	load := int64(n)
	id := fmt.Sprintf("host/small-%d", n*7919%100_003)
	return Entry{At: begun.Add(cluster.Duration(n)), Fact: &FactEntry{Row: cluster.ElasticHost{ID: id}, Fact: judge.Fact{Load: &load}}}
}

// read reads all files of a folder.
func read(t *testing.T, folder string) (entries []Entry) {
	t.Helper()
	files, err := Files(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		head, cut, err := Read(path, func(_ Place, e Entry) error {
			entries = append(entries, e)
			return nil
		})
		if err != nil || cut || head.Cluster != "test" {
			t.Fatalf("%s: head %+v, cut %v, error %v", path, head, cut, err)
		}
	}
	return entries
}

func TestDecisionsAreReadInTheirOrder(t *testing.T) {
	folder := t.TempDir()
	for range 2 { // a controller that is started again goes on in another file
		w, _ := newWriter(folder, 0)
		for n := range 500 {
			w.Note(fact(n))
		}
		w.Close()
	}
	entries := read(t, folder)
	if len(entries) != 1000 {
		t.Fatalf("%d entries are read, want 1000", len(entries))
	}
	for i, e := range entries {
		if want := fact(i % 500); !reflect.DeepEqual(e, want) {
			t.Fatalf("entry %d is %+v, want %+v", i, e, want)
		}
	}
}

func TestARecordKeepsToItsLimitAndLosesTheOldest(t *testing.T) {
	folder := t.TempDir()
	const most, all = 100_000, 25_000
	w, _ := newWriter(folder, most)
	for n := range all {
		for len(w.entries) > mostWaiting/2 {
			time.Sleep(time.Millisecond)
		}
		w.Note(fact(n))
	}
	w.Close()
	files, err := Files(folder)
	if err != nil {
		t.Fatal(err)
	}
	var whole int64
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		whole += info.Size()
	}
	entries := read(t, folder)
	if whole > most || whole < most/2 || len(files) < 4 {
		t.Errorf("%d files have %d bytes, the limit is %d", len(files), whole, most)
	}
	if last := entries[len(entries)-1]; *last.Fact.Fact.Load != all-1 || len(entries) >= all {
		t.Errorf("%d entries are left, the last is %+v", len(entries), last)
	}
}

func TestARecordThatCannotBeWrittenIsLoggedOnceAndHoldsNoOneUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, l := newWriter(filepath.Join(file, "below"), 0)
	for n := range 3 * mostWaiting {
		w.Note(fact(n))
	}
	w.Close()
	w.Note(fact(0)) // as a controller may that is being stopped
	if n := strings.Count(l.String(), "decisions are not recorded"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, l)
	}
	if w.missed.Load() == 0 {
		t.Error("nothing is missed")
	}
}

func TestWhatAWriterCannotKeepUpWithIsCounted(t *testing.T) {
	folder := t.TempDir()
	w, _ := newWriter(folder, 0)
	const all = 5 * mostWaiting
	for n := range all {
		w.Note(fact(n))
	}
	w.Close()
	var missed, written int64
	for _, e := range read(t, folder) {
		missed += e.Missed
		if e.Fact != nil {
			written++
		}
	}
	if written+missed != all || missed == 0 {
		t.Errorf("%d are written and %d missed of %d", written, missed, all)
	}
}

// session is one of so many jobs, of which the first runs out.
func session(jobs, first int64) Entry {
	in := scheduling.Input{Now: begun.Add(cluster.Duration(first)), Resources: []scheduling.Resource{{SharedResource: cluster.SharedResource{Name: "vcs"}, Total: first}}}
	result := scheduling.Result{Unplaced: []scheduling.Unplaced{{Code: scheduling.WaitHosts, Count: first}}}
	for id := first; id < first+jobs; id++ {
		in.Jobs = append(in.Jobs, cluster.Job{ID: id, JobSpec: cluster.JobSpec{CPUs: 1 + id%7, Tokens: map[string]int64{"vcs": id}}})
	}
	if first%5 == 4 {
		in.Jobs, in.Resources = nil, nil
	}
	return Entry{At: in.Now, Session: &SessionEntry{Input: in, Result: result}}
}

func TestSessionsAreReadAsTheyWereThoughOnlyChangesAreWritten(t *testing.T) {
	folder := t.TempDir()
	w, _ := newWriter(folder, 0)
	for n := range int64(20) {
		w.Note(session(300, n))
	}
	w.Close()
	entries := read(t, folder)
	if len(entries) != 20 {
		t.Fatalf("%d entries are read, want 20", len(entries))
	}
	for i, e := range entries {
		if want := session(300, int64(i)); !reflect.DeepEqual(e.Session.Input.Jobs, want.Session.Input.Jobs) ||
			!reflect.DeepEqual(e.Session.Result, want.Session.Result) || len(e.Session.Input.Resources) != len(want.Session.Input.Resources) {
			t.Errorf("session %d is %+v\nwant %+v", i, e.Session, want.Session)
		}
	}
	files, _ := Files(folder)
	info, err := os.Stat(files[0])
	if err != nil || info.Size() > 20_000 {
		t.Errorf("20 sessions of 300 jobs that are nearly alike take %d bytes", info.Size())
	}
}

func BenchmarkNote(b *testing.B) {
	w, _ := newWriter(b.TempDir(), 0)
	defer w.Close()
	e := fact(7)
	b.ReportAllocs()
	for b.Loop() {
		w.Note(e)
	}
}

// BenchmarkSession writes sessions of 20,000 jobs of which one changes.
func BenchmarkSession(b *testing.B) {
	w, _ := newWriter(b.TempDir(), 0)
	defer w.Close()
	n := int64(0)
	for b.Loop() {
		n += 5
		w.Note(session(20_000, n))
		for w.rows.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// broken is a disk that is full.
type broken struct{ full bool }

func (b *broken) Write(p []byte) (int, error) {
	if b.full {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}

func (b *broken) Close() error { return nil }

func TestAWriterGoesOnOnceThereIsRoomAgain(t *testing.T) {
	folder := t.TempDir()
	l := &log{}
	w := &Writer{Options: Options{Folder: folder, Cluster: "test", Most: DefaultMost, Now: func() cluster.Time { return begun }, Log: slog.New(slog.NewTextHandler(l, nil))}, discretion: newDiscretion()}
	w.take(fact(1))
	w.file.to = &broken{full: true}
	w.flush()
	w.take(fact(2))
	w.tryAgain = time.Time{}
	w.take(fact(3))
	w.finish()
	var loads, missed int64
	files, err := Files(folder)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, e := range read(t, folder) {
		if missed += e.Missed; e.Fact != nil {
			loads += *e.Fact.Fact.Load
		}
	}
	if loads != 3 || missed != 1 || !strings.Contains(l.String(), "recorded again") {
		t.Errorf("read are loads of %d, missed are %d, the log is\n%s", loads, missed, l)
	}
}
