package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// lsfRecord is the end of a job that wished for resources, and ran 100 s on one host.
func lsfRecord(wish string) string {
	return fmt.Sprintf(`"JOB_FINISH" "10.108" 1767600110 1 1001 33554434 1 1767600000 0 0 1767600010 "ann" "day" "%s" "" "" "h" "/w" "" "" "" "f" 0 1 "h1" 64 15.0 "" "vcs" `+
		`0.1 0.2 10 0 -1 0 0 1 0 0 0 8 -1 0 0 0 1 2 -1 "" "chip" 0 1 "" "" 0 0 0 "" "" "" "" 0 "" 0 "" -1 "" "" "" ""`+"\n", wish)
}

func TestTokensAreHeldForTheJobOrForTheDuration(t *testing.T) {
	tests := []struct {
		wish, tokens string
		held         int64 // in seconds, where the duration counts; 0 to the end
		mended       string
	}{
		{"rusage[vcs=1]", `{"vcs":1}`, 0, ""},
		{"rusage[vcs=2:duration=1]", `{"vcs":2}`, 60, ""},
		{"rusage[vcs=2:duration=30s:decay=0]", `{"vcs":2}`, 30, ""},
		{"rusage[vcs=9.00:duration=5]", `{"vcs":9}`, 0, ""}, // longer than the job
		{"rusage[vcs=1.5]", `{"vcs":2}`, 0, ""},
		{"rusage[mem=500:duration=10s,vcs=1:duration=20s]", `{"vcs":1}`, 20, ""},
		{"rusage[vcs=1:duration=20s,verdi=1:duration=30s]", `{"vcs":1,"verdi":1}`, 30, "durations-differ 1"},
		{"rusage[vcs=1:duration=20s,verdi=1]", `{"vcs":1,"verdi":1}`, 0, "durations-differ 1"},
		{"select[type == any] rusage[vcs=1] span[hosts=1] rusage[vcs=1]", `{"vcs":2}`, 0, ""},
		{"rusage[]", "null", 0, ""},
		{"rusage[vcs=0]", "null", 0, ""},
		{"rusage[vcs=x,verdi=1]", `{"verdi":1}`, 0, "bad-text 1"},
		{"rusage[vcs=1:duration=soon]", `{"vcs":1}`, 0, "bad-text 1"},
		{"rusage[vcs=1", `{"vcs":1}`, 0, "bad-text 1"},
		{"rusage[a/b=1]", `{"a_b":1}`, 0, "bad-name 1"},
	}
	for _, test := range tests {
		t.Run(test.wish, func(t *testing.T) {
			for _, counts := range []bool{true, false} {
				tr := read(t, lsfRecord(test.wish), trace.Options{TokensForDuration: counts})
				want := cluster.Duration(0)
				if counts {
					want = cluster.Duration(test.held) * cluster.Second
					checkRepairs(t, tr, test.mended)
				}
				if j := tr.Jobs[0]; jsonOf(t, j.Shape.Tokens) != test.tokens || j.TokensFor != want {
					t.Errorf("it takes %s for %s, want %s for %s", jsonOf(t, j.Shape.Tokens), j.TokensFor, test.tokens, want)
				}
			}
		})
	}
}

func TestTokensOfOneToolOrAnotherAreAlternatives(t *testing.T) {
	tr := read(t, lsfRecord("rusage[mem=100,vcs=1 || xcelium=2]"), trace.Options{Strict: true})
	if s := tr.Jobs[0].Shape; jsonOf(t, s.Alternatives) != `[{"vcs":1},{"xcelium":2}]` || s.MemoryMB != 100 || len(s.Tokens) > 0 {
		t.Errorf("it asks for %+v", s)
	}
}

func TestTheUnitOfLSFsMemoryCanBeSaid(t *testing.T) {
	for unit, want := range map[string]int64{"": 6_291_456, "MB": 6_291_456, "KB": 6144, "kb": 6144} {
		tr := read(t, lsfRecord("rusage[mem=6291456.00]"), trace.Options{LSFMemory: unit})
		if got := tr.Jobs[0].Shape.MemoryMB; got != want {
			t.Errorf("in %q it is %d MB, want %d", unit, got, want)
		}
	}
	if got := read(t, lsfRecord("rusage[mem=6G]"), trace.Options{LSFMemory: "KB"}).Jobs[0].Shape.MemoryMB; got != 6144 {
		t.Errorf("with a unit of its own it is %d MB", got)
	}
}

func TestARecordOfLSFThatEndsTooSoonIsNamedByItsField(t *testing.T) {
	record := lsfRecord("")
	for part, want := range map[string]string{
		record[:30]: "log:1 job id: the record ends before it",
		record[:65]: "log:1 start time: the record ends before it",
		record[:78]: "log:1 user: its quotes do not end",
		strings.Replace(record, "1767600010", "noon", 1): `log:1 start time: "noon" is not a number`,
		strings.Replace(record, `0 1 "h1"`, `0 -1`, 1):   "log:1 hosts: -1 cannot be",
		strings.Replace(record, "1767600000", "0", 1):    "log:1 submit time: it is submitted at 0",
	} {
		refused(t, part, trace.Options{Format: trace.LSF}, want)
	}
}

// A short list of hosts names each once, however many slots the job has there.
func TestAJobHasAtLeastTheSlotsThatItAskedFor(t *testing.T) {
	record := strings.Replace(lsfRecord(""), " 33554434 1 ", " 33554434 12 ", 1)
	tr := read(t, strings.Replace(record, `0 1 "h1"`, `0 3 "h1" "h2" "h3"`, 1), trace.Options{Strict: true})
	if s := tr.Jobs[0].Shape; s.Nodes != 3 || s.CPUs != 4 {
		t.Errorf("it runs on %d hosts with %d cpus each", s.Nodes, s.CPUs)
	}
}

// lsfLater are the fields of newer records behind those of lsfRecord, up to the run time.
const lsfLater = `-1 "" "" 0 "" 0 "" "" 0 0 -1 0 0 "" "" -1 "" -1 0 "" 0 0 "" `

func TestAStartThatIsMissingIsWorkedOutFromTheRunTime(t *testing.T) {
	record := strings.Replace(strings.TrimSpace(lsfRecord("")), "0 0 1767600010", "0 0 0", 1) + " " + lsfLater
	tr := read(t, record+"90\n", trace.Options{})
	checkRepairs(t, tr, "no-start 1")
	if j := tr.Jobs[0]; j.Run != 90*cluster.Second || j.Waited != 20*cluster.Second {
		t.Errorf("it waited %s and ran %s", j.Waited, j.Run)
	}
	for _, ran := range []string{"0", "111", "-1", "x", ""} { // it would have started before it was submitted
		checkRepairs(t, read(t, record+ran+"\n", trace.Options{}), "never-started 1")
	}
}
