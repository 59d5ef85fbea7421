package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

// written takes files into memory.
type written map[string]*bytes.Buffer

type inMemory struct{ *bytes.Buffer }

func (inMemory) Close() error { return nil }

func (w written) create(name string) (io.WriteCloser, error) {
	w[name] = &bytes.Buffer{}
	return inMemory{w[name]}, nil
}

func csvOf(t *testing.T, r *simulation.Result) written {
	t.Helper()
	w := written{}
	if err := CSV(w.create, r); err != nil {
		t.Fatal(err)
	}
	return w
}

// little is a result that can be written out by hand.
func little() *simulation.Result {
	s := &trace.Shape{User: "ada"}
	s.Queue, s.Nodes, s.CPUs = "fast, \"very\"", 2, 4
	r := &simulation.Result{
		Cluster: "c", Began: epoch, Ended: epoch + 90_000, Causes: []string{"nothing", "hosts"},
		Trace: &trace.Trace{Jobs: []trace.Job{{ID: 7, Submit: epoch, Shape: s}, {ID: 8, Name: "8_1", Submit: epoch + 1000, Shape: s}, {ID: 9, Submit: epoch + 2000}, {ID: 10, Submit: epoch + 3000, Shape: s}}},
		Outcomes: []simulation.Outcome{
			{Start: epoch + 30_000, End: epoch + 90_000, Cause: 1, State: simulation.Done, Requeues: 2},
			{Start: epoch + 60_500, Cause: 1, State: simulation.Running},
			{State: simulation.Waiting, Cause: 1},
			{State: simulation.Impossible},
		},
		Resources: []simulation.ResourceResult{{Name: "vcs", Series: series.New(simulation.ResourceColumns)}},
		Loans:     []simulation.LoanResult{{ID: "loan/vcs/p-1", Provider: "p", Resource: "vcs", Units: 4, Granted: 3, Requested: epoch, Committed: epoch + 5, Held: 12, Cost: 34, Why: "it\nis"}},
		Machines:  []simulation.HostResult{{ID: "host/s-1", Template: "s", Provider: "q", Name: "n1", Requested: epoch, Expected: epoch + 1, Joined: epoch + 2, Left: epoch + 3, Closed: epoch + 4, Busy: 5, Cost: 6, Why: "w"}},
		Orders:    []simulation.Ordered{{At: epoch + 1, Do: "drain", Subject: "host/s-1", Became: "drained"}},
		Changes:   []simulation.Change{{At: epoch, Subject: "vcs", Before: "5", After: "8", Cause: "loan/vcs/p-1"}},
	}
	r.Resources[0].Series.Note(epoch, 5, 3, 1, 6, 2)
	(&maker{r: r}).jobSeries()
	return r
}

func TestFilesOfCSVHaveTheirDocumentedColumns(t *testing.T) {
	w := csvOf(t, little())
	for name, want := range map[string]string{
		"jobs.csv": `id,submit,start,end,wait_ms,run_ms,procs,queue,user,state,cause,requeues
7,2026-01-05T00:00:00.000Z,2026-01-05T00:00:30.000Z,2026-01-05T00:01:30.000Z,30000,60000,8,"fast, ""very""",ada,done,hosts,2
8_1,2026-01-05T00:00:01.000Z,2026-01-05T00:01:00.500Z,,59500,,8,"fast, ""very""",ada,running,hosts,0
9,2026-01-05T00:00:02.000Z,,,,,0,,,waiting,hosts,0
10,2026-01-05T00:00:03.000Z,,,,,8,"fast, ""very""",ada,impossible,nothing,0
`,
		"resources.csv": `resource,time,time_ms,total,owned,borrowed,lent,in_use,waiting
vcs,2026-01-05T00:00:00.000Z,1767571200000,7,5,3,1,6,2
`,
		"hosts.csv": "time,time_ms,owned_busy,owned_idle,requested,expected,busy,idle,draining,leaving\n",
		"loans.csv": `id,provider,resource,units,granted,requested,committed,closed,held_unit_ms,cost_millionths,why
loan/vcs/p-1,p,vcs,4,3,2026-01-05T00:00:00.000Z,2026-01-05T00:00:00.005Z,,12,34,"it
is"
`,
		"machines.csv": `id,template,provider,name,requested,expected,joined,left,closed,busy_ms,cost_millionths,why
host/s-1,s,q,n1,2026-01-05T00:00:00.000Z,2026-01-05T00:00:00.001Z,2026-01-05T00:00:00.002Z,2026-01-05T00:00:00.003Z,2026-01-05T00:00:00.004Z,5,6,w
`,
		"orders.csv": "time,do,subject,became\n2026-01-05T00:00:00.001Z,drain,host/s-1,drained\n",
		"changes.csv": `time,time_ms,subject,before,after,cause
2026-01-05T00:00:00.000Z,1767571200000,vcs,5,8,loan/vcs/p-1
`,
		"queue.csv": `time,time_ms,waiting,running
2026-01-05T00:00:00.000Z,1767571200000,1,0
2026-01-05T00:00:01.000Z,1767571201000,2,0
2026-01-05T00:00:02.000Z,1767571202000,3,0
2026-01-05T00:00:30.000Z,1767571230000,2,1
2026-01-05T00:01:00.500Z,1767571260500,1,2
2026-01-05T00:01:30.000Z,1767571290000,1,1
`,
	} {
		if got := w[name].String(); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
	if len(w) != 9 {
		t.Errorf("there are %d files", len(w))
	}
}

func TestTheDocListsTheColumnsOfEachFile(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(doc), "//", " ")), " ")
	for _, f := range new(Summary).csvFiles(&simulation.Result{}) {
		if want := f.name + " " + strings.Join(f.columns, ", "); !strings.Contains(text, want) {
			t.Errorf("the doc does not say %q", want)
		}
	}
}

func TestTheSummaryAsCSVHasEveryFigureOnce(t *testing.T) {
	r := sample(100, 1)
	rows, err := csv.NewReader(csvOf(t, r)["summary.csv"]).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, row := range rows[1:] {
		if _, twice := values[row[0]]; twice {
			t.Errorf("%s is there twice", row[0])
		}
		values[row[0]] = row[2]
	}
	s := Summarize(r)
	for name, want := range map[string]int64{"jobs": 100, "wait_mean": s.Wait.Mean, "cost_total": int64(s.Cost.Total), "resource.vcs.bought": 400 * int64(cluster.Hour), "queue.long.wait_mean": s.Queues[1].Wait.Mean} {
		if values[name] != strconv.FormatInt(want, 10) {
			t.Errorf("%s is %q, want %d", name, values[name], want)
		}
	}
}

func TestFilesAreMadeInAFolder(t *testing.T) {
	folder := t.TempDir()
	if err := CSV(Into(folder), sample(5, 1)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.csv"))
	if err != nil || len(files) != 9 || !slices.Contains(files, filepath.Join(folder, "jobs.csv")) {
		t.Errorf("%v, %v", files, err)
	}
	if err := CSV(Into(filepath.Join(folder, "none")), sample(5, 1)); err == nil || !strings.HasPrefix(err.Error(), "summary.csv: ") {
		t.Errorf("in no folder: %v", err)
	}
}

// full fails as a full disk does.
type full struct{ closed *bool }

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func (f full) Close() error { *f.closed = true; return nil }

func TestAFullDiskIsToldAndTheFileClosed(t *testing.T) {
	closed := false
	err := CSV(func(string) (io.WriteCloser, error) { return full{&closed}, nil }, sample(5, 1))
	if !errors.Is(err, errFull) || !closed {
		t.Errorf("%v, closed: %v", err, closed)
	}
	for name, write := range map[string]func(io.Writer) error{
		"JSON":     func(w io.Writer) error { return JSON(w, sample(5, 1)) },
		"HTML":     func(w io.Writer) error { return HTML(w, sample(5, 1), Options{}) },
		"Terminal": func(w io.Writer) error { return Terminal(w, sample(5, 1), 80) },
		"Frontier": func(w io.Writer) error { return Frontier(w, sampleRuns()) },
	} {
		if err := write(full{&closed}); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
