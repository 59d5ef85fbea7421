package replay_test

import (
	"strings"
	"testing"

	"xce.internal/elastic/scheduling/replay"
)

func TestTracesAreReadAndCleaned(t *testing.T) {
	const rest = " -1 1 1 1 1 -1 -1 -1 -1"
	tests := []struct{ name, line, want string }{
		{"as it should be", "7 10 3 100 4 -1 -1 4 200" + rest, "7 10 0 100 4 200"},
		{"without an estimate", "7 10 3 100 4 -1 -1 4 -1" + rest, "7 10 0 100 4 100"},
		{"longer than its estimate", "7 10 3 100 4 -1 -1 4 60" + rest, "7 10 0 60 4 100"},
		{"larger than the machine", "7 10 3 100 400 -1 -1 4 200" + rest, "7 10 0 100 8 200"},
		{"never ran", "7 10 3 -1 4 -1 -1 4 200" + rest, "7 10 0 1 4 1"},
		{"got no processors", "7 10 3 100 -1 -1 -1 4 200" + rest, "7 10 0 1 1 1"},
		{"came before the log", "7 -5 3 100 4 -1 -1 4 200" + rest, "7 1 0 1 4 1"},
		{"came with the log", "7 0 3 100 4 -1 -1 4 200" + rest, "7 0 0 100 4 200"},
		{"decimals", "7 10.9 3 100.5 4 7.38 -1 4 200.0" + rest, "7 10 0 100 4 200"},
		{"blanks, tabs and a field too many", "\t 7  10 3\t100 4 -1 -1 4 200" + rest + " 0\r", "7 10 0 100 4 200"},
		{"a comment", "; 7 10", ""},
		{"nothing", "  ", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			trace, err := replay.ReadSWF(strings.NewReader(test.line+"\n"), 8)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, j := range trace.Jobs {
				got = append(got, replay.Row{ID: j.ID, Submit: j.Submit, Run: j.Run, Procs: j.Procs, Estimate: j.Estimate}.String())
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTracesThatCannotBeReadAreRefusedWithTheLine(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"too few fields", "; a log\n1 2 3\n", "line 2: there are 3 fields; write the 18"},
		{"a word", "1 0 0 ten 1 -1 -1 1 10\n", `line 1: field 4: "ten" is not a number`},
		{"half a number", "1 0 0 1.x 1 -1 -1 1 10\n", `field 4: "1.x" is not a number`},
		{"too large", "1 0 0 10 1 -1 -1 1 9000000000000\n", "line 1: field 9: 9000000000000 is too large to count with"},
		{"too long a line", strings.Repeat("1 ", 1<<20), "after 0 jobs: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			trace, err := replay.ReadSWF(strings.NewReader(test.text), 8)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if len(trace.Jobs) > 0 {
				t.Errorf("%d jobs were read", len(trace.Jobs))
			}
		})
	}
}

func FuzzTracesAreReadOrRefused(f *testing.F) {
	for _, seed := range []string{"; a log\n7 10 3 100 4 7.38 -1 4 200 -1\n", "7 -5 3 -1 400 -1 -1 4 -1\n", "1 2 3\n", "1 0 0 1e9 1 -1 -1 1 10\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := replay.ReadSWF(strings.NewReader(text), 8)
		if err != nil && len(trace.Jobs) > 0 {
			t.Fatalf("%d jobs were read, and %v", len(trace.Jobs), err)
		}
		for _, j := range trace.Jobs {
			if j.Submit < 0 || j.Run < 1 || j.Run > j.Estimate || j.Procs < 1 || j.Procs > 8 {
				t.Fatalf("%q is read as %+v", text, j)
			}
		}
	})
}
