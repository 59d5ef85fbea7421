package trace_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/simulation/trace"
)

var update = flag.Bool("update", false, "write the expected readings anew")

// shared is where public traces lie; it is no part of the repository.
const shared = "../../../shared/traces"

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "200") // the command line may say otherwise
	os.Exit(m.Run())
}

// read reads a text that must be readable.
func read(t testing.TB, text string, o trace.Options) *trace.Trace {
	t.Helper()
	got, err := trace.ReadFrom(strings.NewReader(text), "log", o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// written is a trace as JSON lines: its head, and its jobs.
func written(t testing.TB, tr *trace.Trace) (head, jobs string) {
	t.Helper()
	var out bytes.Buffer
	if err := tr.WriteJSONL(&out); err != nil {
		t.Fatal(err)
	}
	head, jobs, _ = strings.Cut(out.String(), "\n")
	return head, jobs
}

// checkJobs demands jobs, as JSON lines.
func checkJobs(t testing.TB, tr *trace.Trace, want string) {
	t.Helper()
	if _, got := written(t, tr); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("read is\n%s\nwant\n%s", got, want)
	}
}

// checkRepairs demands the rules that were used, as in "decimals 2, zero-run 1".
func checkRepairs(t testing.TB, tr *trace.Trace, want string) {
	t.Helper()
	var got []string
	for _, r := range tr.Repairs {
		got = append(got, fmt.Sprintf("%s %d", r.Rule, r.Count))
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("mended is %q, want %q: %+v", strings.Join(got, ", "), want, tr.Repairs)
	}
}

// refused demands that a text is refused, with a part of the message.
func refused(t testing.TB, text string, o trace.Options, parts ...string) {
	t.Helper()
	got, err := trace.ReadFrom(strings.NewReader(text), "log", o)
	if err == nil {
		t.Fatalf("it is read as %d jobs, want a refusal with %q", len(got.Jobs), parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("it is refused with\n%v\nwant %q", err, part)
		}
	}
}

// TestSamplesAreReadAsTheyShould reads each file in testdata and compares what comes
// of it, and what was mended, with the file beside it.
func TestSamplesAreReadAsTheyShould(t *testing.T) {
	files, err := filepath.Glob("testdata/*.acct")
	if err != nil || len(files) < 6 {
		t.Fatalf("there are too few samples: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			tr, err := trace.Read([]string{file}, trace.Options{Names: true})
			if err != nil {
				t.Fatal(err)
			}
			head, jobs := written(t, tr)
			got := strings.ReplaceAll(head, `{"rule"`, "\n{\"rule\"") + "\n" + jobs
			want := strings.TrimSuffix(file, ".acct") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(data) {
				t.Errorf("it is read as\n%s\nwant\n%s", got, data)
			}
		})
	}
}
