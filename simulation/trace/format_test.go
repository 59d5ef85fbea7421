package trace_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/simulation/trace"
)

func sample(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func compressed(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFormatsAreFoundOutAndCompressionIsSeenThrough(t *testing.T) {
	for name, format := range map[string]trace.Format{
		"swf.acct": trace.SWF, "sacct.acct": trace.Sacct, "lsf.acct": trace.LSF, "ge.acct": trace.GridEngine, "pbs.acct": trace.PBS, "jsonl.acct": trace.JSONL,
	} {
		text := sample(t, name)
		_, want := written(t, read(t, text, trace.Options{Format: format}))
		for how, text := range map[string]string{
			"as it is": text, "compressed": compressed(t, text), "with a byte order mark": "\ufeff" + text, "with ends of lines of Windows": strings.ReplaceAll(text, "\n", "\r\n"),
		} {
			if _, got := written(t, read(t, text, trace.Options{})); got != want || len(got) == 0 {
				t.Errorf("%s %s is read as\n%s\nwant\n%s", name, how, got, want)
			}
		}
	}
}

func TestWhatIsNoTraceIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "log: the file is empty; name one that has jobs",
		" \n\n":                  "log: the file is empty",
		"Dear all,\nhello\n":     `log:1: no format is like this: "Dear all,"; name the format with --format, one of swf, sacct`,
		"1 2 3\n":                `no format is like this: "1 2 3"`,
		"\x1f\x8b rest":          "log: ",
		"a|b|c\n":                "no format is like this",
		"JobID|State\n1|FAILED":  "log:1: there is no column Submit; list the jobs with `sacct -P --format=JobID,JobIDRaw,",
		"JobID|Submit|NCPUS\n":   "log:1: there is no column Elapsed; list",
		"JobID|Submit|Elapsed\n": "log:1: there is no column NCPUS; list",
		"\"JOB_NEW\" \"10.1\" 1": "log: none of its 1 records is JOB_FINISH; name an lsb.acct",
	} {
		refused(t, text, trace.Options{}, want)
	}
	refused(t, "a|b|c\n", trace.Options{Format: trace.Sacct}, "log:1: there is no header line that names the columns; list the jobs with `sacct -P` without --noheader")
	refused(t, "x", trace.Options{Format: "csv"}, `there is no format "csv"; use one of swf, sacct, lsf, sge, pbs, jsonl`)
	cut := compressed(t, strings.Repeat("1 0 0 10 1 -1 -1 1 10\n", 1000))
	refused(t, cut[:len(cut)-20], trace.Options{}, "the file is damaged or cut off")
	if _, err := trace.Read([]string{"testdata"}, trace.Options{}); err == nil || !strings.Contains(err.Error(), "testdata is a folder; name the files in it") {
		t.Errorf("a folder is read: %v", err)
	}
}

func TestSeveralFilesAreOneTrace(t *testing.T) {
	tr, err := trace.Read([]string{"testdata/pbs.acct", "testdata/lsf.acct"}, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if tr.Source != "testdata/pbs.acct (pbs), testdata/lsf.acct (lsf)" || len(tr.Jobs) != 12 {
		t.Errorf("%d jobs come from %s", len(tr.Jobs), tr.Source)
	}
	for i := 1; i < len(tr.Jobs); i++ {
		if tr.Jobs[i].Submit < tr.Jobs[i-1].Submit {
			t.Errorf("job %d comes before the one in front of it", i)
		}
	}
}

func TestALaterFileMayBeginBeforeTheEndOfAnEarlierOne(t *testing.T) {
	folder := t.TempDir()
	files := []string{filepath.Join(folder, "a.swf"), filepath.Join(folder, "b.swf")}
	for i, text := range []string{"1 50 0 10 1 -1 -1 1 10\n", "2 20 0 10 1 -1 -1 1 10\n"} {
		if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := trace.Read(files, trace.Options{Strict: true})
	if err != nil || tr.Jobs[0].ID != 2 {
		t.Errorf("%+v, %v", tr, err)
	}
}
