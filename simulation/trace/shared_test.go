package trace_test

import (
	"encoding/csv"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/simulation/trace"
)

// sharedFiles are all files of the public traces; without them, tests are skipped.
func sharedFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(shared, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !slices.Contains([]string{".csv", ".md"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Skip("there are no public traces beside the repository")
	}
	return files
}

// Of the public files, these are no accounting files; they must be refused with what
// to do.
var noTraces = map[string]string{
	"lsf/acct/lsb.acct":                   "no format is like this",
	"lsf/acct/lsb.acct.16":                "no format is like this",
	"lsf/accounting.lsb":                  "no format is like this",
	"lsf/lsb.events":                      "none of its 617 records is JOB_FINISH",
	"sacct_simple_formatted_expected.log": `:2 Elapsed: "0 days 23:33:25" cannot be`,
}

func TestPublicTracesAreReadOrRefusedWithWhatToDo(t *testing.T) {
	for _, file := range sharedFiles(t) {
		name, _ := filepath.Rel(shared, file)
		t.Run(name, func(t *testing.T) {
			tr, err := trace.Read([]string{file}, trace.Options{})
			if want, none := noTraces[name]; none {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("refused with %v, want %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkValid(t, tr)
			mended := int64(0)
			for _, r := range tr.Repairs {
				mended += r.Count
			}
			if len(tr.Jobs) == 0 && mended == 0 {
				t.Error("nothing is read, and nothing said")
			}
			if _, err := trace.Read([]string{file}, trace.Options{Strict: true}); (err != nil) != (mended > 0) {
				t.Errorf("%d places are mended, and strictly it says %v", mended, err)
			}
		})
	}
}

func TestPublicTracesHaveAsManyJobsAsTheirSourcesSay(t *testing.T) {
	sharedFiles(t)
	for file, want := range map[string]int{
		"KTH-SP2-1996-2.1-cln.swf.gz": 28476, "NASA-iPSC-1993-3.1-cln.swf.gz": 18239, "pyss-5K_sample.swf.gz": 4961,
		"cqgym-train.swf.gz": 3000, "lublin_256.swf.gz": 10000, "lsf/lsb.acct.16": 82,
	} {
		tr, err := trace.Read([]string{filepath.Join(shared, file)}, trace.Options{})
		if err != nil || len(tr.Jobs) != want {
			t.Errorf("%s: %d jobs, %v; want %d", file, len(tr.Jobs), err, want)
		}
	}
}

// Beside records of LSF lies what another reader made of them.
func TestRecordsOfLSFAreReadAsOthersDo(t *testing.T) {
	tables := 0
	for _, file := range sharedFiles(t) {
		if filepath.Base(filepath.Dir(filepath.Dir(file))) != "issues" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "exp_jobs.csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(data))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		tr, err := trace.Read([]string{file}, trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			tables++
			checkAgainst(t, file, tr, row)
		}
	}
	if tables < 15 {
		t.Errorf("only %d jobs are compared", tables)
	}
}

// checkAgainst looks for the job of a table's row: id, cores, memory, hosts, and times.
func checkAgainst(t *testing.T, file string, tr *trace.Trace, row []string) {
	t.Helper()
	id, err := strconv.ParseInt(row[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tr.Jobs, func(j trace.Job) bool { return j.ID == id })
	if i < 0 {
		if row[5] == row[6] {
			return // it never started, by its times
		}
		t.Errorf("%s: job %d is not read", file, id)
		return
	}
	j := tr.Jobs[i]
	start := j.Submit.Add(j.Waited).Std()
	end := start.Add(j.Run.Std())
	const layout = "2006-01-02T15:04:05"
	got := []string{fmt.Sprint(j.Shape.Processors()), fmt.Sprint(max(j.Shape.Nodes, 1)), j.Submit.Std().Format(layout), start.Format(layout), end.Format(layout)}
	want := []string{row[1], row[3], row[4], row[5], row[6]}
	if row[5] == row[6] { // no time at all is mended to a second
		want[4] = start.Add(time.Second).Format(layout)
	}
	if row[5] < row[4] {
		want[3] = row[4]
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: job %d is %v, want %v", file, id, got, want)
	}
}
