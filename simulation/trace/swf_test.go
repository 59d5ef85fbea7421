package trace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/simulation/trace"
)

func TestJobsOfTheStandardWorkloadFormatAreCleaned(t *testing.T) {
	const rest = " -1 1 1 1 1 -1 -1 -1 -1"
	const told = `,"waited_ms":3000,"user":"1","group":"1","application":"1","cpus":`
	tests := []struct{ name, line, want, mended string }{
		{"as it should be", "7 10 3 100 4 -1 -1 4 200" + rest, `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":200000` + told + `4}`, ""},
		{"without an estimate", "7 10 3 100 4 -1 -1 4 -1" + rest, `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":100000` + told + `4}`, "no-estimate 1"},
		{"longer than its estimate", "7 10 3 100 4 -1 -1 4 60" + rest, `{"id":7,"submit_ms":10000,"run_ms":60000,"limit_ms":100000` + told + `4}`, "run-over-estimate 1"},
		{"larger than the machine", "7 10 3 100 400 -1 -1 4 200" + rest, `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":200000` + told + `8}`, "too-large 1"},
		{"never ran", "7 10 3 -1 4 -1 -1 4 200" + rest, `{"id":7,"submit_ms":10000,"run_ms":1000,"limit_ms":1000` + told + `4}`, "zero-run 1"},
		{"got no processors", "7 10 3 100 -1 -1 -1 4 200" + rest, `{"id":7,"submit_ms":10000,"run_ms":1000,"limit_ms":1000` + told + `1}`, "no-processors 1"},
		{"came before the log", "7 -5 3 100 4 -1 -1 4 200" + rest, `{"id":7,"submit_ms":1000,"run_ms":1000,"limit_ms":1000` + told + `4}`, "before-start 1"},
		{"came with the log", "7 0 3 100 4 -1 -1 4 200" + rest, `{"id":7,"submit_ms":0,"run_ms":100000,"limit_ms":200000` + told + `4}`, ""},
		{"decimals", "7 10.9 3 100.5 4 7.38 -1 4 200.0" + rest, `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":200000` + told + `4}`, "decimals 2"},
		{"19 fields, blanks and tabs", "\t 7  10 3\t100 4 -1 -1 4 200" + rest + " 0\r", `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":200000` + told + `4}`, "extra-fields 1"},
		{"21 fields", "7 10 3 100 4 -1 -1 4 200" + rest + " 1 2 x", `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":200000` + told + `4}`, "extra-fields 1"},
		{"9 fields", "7 10 3 100 4 -1 -1 4 200", `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":200000,"waited_ms":3000,"cpus":4}`, ""},
		{"a wait that is not known", "7 10 -1 100 4 -1 -1 4 200", `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":200000,"cpus":4}`, ""},
		{"memory for each processor", "7 10 -1 100 4 -1 -1 4 200 1000 1 2 3 -1 4", `{"id":7,"submit_ms":10000,"run_ms":100000,"limit_ms":200000,"user":"2","group":"3","queue":"4","cpus":4,"memory_mb":4}`, ""},
		{"longer than ten years", "7 10 3 400000000 4 -1 -1 4 500000000" + rest, `{"id":7,"submit_ms":10000,"run_ms":316224000000,"limit_ms":316224000000` + told + `4}`, "too-long 2"},
		{"a comment", "; 7 10", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := read(t, test.line+"\n", trace.Options{Format: trace.SWF, Procs: 8})
			checkJobs(t, tr, test.want)
			checkRepairs(t, tr, test.mended)
		})
	}
}

func TestOrderAndNumbersOfJobsAreMended(t *testing.T) {
	tr := read(t, "1 30 0 10 1 -1 -1 1 10\n2 20 0 10 1 -1 -1 1 10\n1 20 0 11 1 -1 -1 1 11\n", trace.Options{})
	checkRepairs(t, tr, "id-reused 1, out-of-order 1")
	checkJobs(t, tr, `{"id":2,"submit_ms":20000,"run_ms":10000,"limit_ms":10000,"waited_ms":0,"cpus":1}
{"id":1,"submit_ms":20000,"run_ms":11000,"limit_ms":11000,"waited_ms":0,"cpus":1}
{"id":1,"submit_ms":30000,"run_ms":10000,"limit_ms":10000,"waited_ms":0,"cpus":1}`)
}

func TestTimesOfTheCalendarComeWithTheHeader(t *testing.T) {
	const text = "; UnixStartTime: 843480031\n1 30 0 10 1 -1 -1 1 10\n"
	for calendar, want := range map[bool]int64{false: 30_000, true: 843_480_061_000} {
		if got := read(t, text, trace.Options{Calendar: calendar}); int64(got.Jobs[0].Submit) != want {
			t.Errorf("with calendar %t it arrives at %d, want %d", calendar, got.Jobs[0].Submit, want)
		}
	}
}

func TestRowsThatCannotBeReadAreLeftOutWithTheirPlaces(t *testing.T) {
	tests := []struct{ name, row, place string }{
		{"too few fields", "1 2 3", "log:2: there are 3 fields"},
		{"a word", "1 0 0 ten 1 -1 -1 1 10", `log:2 field 4 (run time): "ten" is not a number`},
		{"half a number", "1 0 0 1.x 1 -1 -1 1 10", `log:2 field 4 (run time): "1.x" is not a number`},
		{"an exponent", "1 0 0 1e3 1 -1 -1 1 10", `log:2 field 4 (run time): "1e3" is not a number`},
		{"too large", "1 0 0 10 1 -1 -1 1 9000000000000", "log:2 field 9 (requested time): 9000000000000 is too large to count with"},
		{"too many digits", "1 0 0 10 1 -1 -1 1 9000000000000000000", `log:2 field 9 (requested time): "9000000000000000000" is not a number`},
		{"too long a line", strings.Repeat("x", 1<<21), "log:2 field 1 (job number): \"xxx"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			const good = "2 0 0 10 1 -1 -1 1 10\n"
			tr := read(t, good+test.row+"\n"+strings.Replace(good, "2", "3", 1), trace.Options{Format: trace.SWF})
			checkRepairs(t, tr, "broken-row 1")
			if places := tr.Repairs[0].Places; len(tr.Jobs) != 2 || len(places) != 1 || !strings.HasPrefix(places[0], test.place) {
				t.Errorf("%d jobs, left out is %.100q, want %q", len(tr.Jobs), places, test.place)
			}
			place := strings.Replace(strings.TrimSuffix(test.place, `"xxx`), "log:2", "log:1", 1)
			refused(t, test.row+"\n", trace.Options{Format: trace.SWF}, place) // nothing is left
			refused(t, good+test.row+"\n", trace.Options{Format: trace.SWF, Refuse: []string{"broken-row"}}, strings.TrimSuffix(test.place, `"xxx`))
		})
	}
}

func TestEachRuleCanBeRefusedAlone(t *testing.T) {
	const text = "1 0 0 10 1 -1 -1 1 -1\n2 0 0 0 1 -1 -1 1 10\n"
	o := trace.Options{Refuse: []string{"no-estimate"}}
	refused(t, text, o, `log:1 requested time "-1": there is no time limit (no-estimate); write the time limit that the job asked for`)
	o.Refuse = []string{"zero-run"}
	refused(t, text, o, `log:2 run time "0": the run time is 0 or not known (zero-run); write how long the job ran`)
	o.Refuse = []string{"too-large", "steps"}
	checkRepairs(t, read(t, text, o), "zero-run 1, no-estimate 1")
	refused(t, text, trace.Options{Refuse: []string{"zero"}}, `there is no rule "zero"; use one of broken-row, joined-row`)
	refused(t, text, trace.Options{Strict: true}, "log:1 ", "log:2 ")
}

func TestARefusalListsItsFirstFaultsAndCountsTheOthers(t *testing.T) {
	text := strings.Repeat("1 0 0 10 1 -1 -1 1 -1\n", 30)
	_, err := trace.ReadFrom(strings.NewReader(text), "log", trace.Options{Refuse: []string{"no-estimate"}})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 22 || lines[21] != "  and 10 more" {
		t.Errorf("%d lines: %v", len(lines), err)
	}
}

// A mended record keeps few places, however often it is mended.
func TestPlacesAreTheFirstFew(t *testing.T) {
	tr := read(t, strings.Repeat("1 0 0 10 1 -1 -1 1 -1\n", 30), trace.Options{})
	for _, r := range tr.Repairs {
		if len(r.Places) != 5 || !strings.HasPrefix(r.Places[0], "log:1 ") && !strings.HasPrefix(r.Places[0], "log:2 ") {
			t.Errorf("%s has places %q", r.Rule, r.Places)
		}
	}
	checkRepairs(t, tr, "no-estimate 30, id-reused 29")
}

func TestALaterFileIsExpectedToBringAsManyJobsAsItHas(t *testing.T) {
	const jobs = 40_000
	var files []string
	for _, name := range []string{"first", "second"} {
		file := filepath.Join(t.TempDir(), name+".swf")
		if err := os.WriteFile(file, []byte(manyLines(jobs)), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	all, err := trace.Read(files, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Jobs) != 2*jobs || cap(all.Jobs) > 4*jobs {
		t.Errorf("there are %d jobs, and room for %d", len(all.Jobs), cap(all.Jobs))
	}
}
