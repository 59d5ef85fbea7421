package trace_test

import (
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/simulation/trace"
)

const sacctHead = "JobID|JobName|Submit|Start|End|Elapsed|State|NCPUS|ReqMem\n"

func TestLocalTimesAreThoseOfTheZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("there are no time zones here")
	}
	for text, want := range map[string]int64{
		"2026-01-05T08:00:00":       1_767_596_400_000, // an hour before UTC
		"2026-07-05T08:00:00":       1_783_231_200_000, // two
		"2026-01-05T08:00:00+03:00": 1_767_589_200_000,
		"2026-01-05T08:00:00+0000":  1_767_600_000_000,
		"2026-01-05 08:00:00Z":      1_767_600_000_000,
		"1767600000":                1_767_600_000_000,
	} {
		tr := read(t, sacctHead+"1|a|"+text+"|"+text+"|Unknown|00:01:00|COMPLETED|1|1G\n", trace.Options{Zone: berlin})
		if len(tr.Jobs) != 1 || int64(tr.Jobs[0].Submit) != want {
			t.Errorf("%s is %d, want %d", text, tr.Jobs[0].Submit, want)
		}
	}
}

func TestLengthsOfTimeHaveManyForms(t *testing.T) {
	for text, want := range map[string]int64{
		"00:00:07": 7_000, "01:02:03": 3_723_000, "1-00:00:00": 86_400_000, "10-23:59:59": 950_399_000, "05:06": 306_000, "05:06.789": 306_789, "1-12": 129_600_000, "1-12:30": 131_400_000, "100:00:00": 360_000_000,
	} {
		tr := read(t, sacctHead+"1|a|2026-01-05T08:00:00|2026-01-05T08:00:00|Unknown|"+text+"|COMPLETED|1|1G\n", trace.Options{})
		if got := int64(tr.Jobs[0].Run); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
}

func TestMemoryIsOfTheJobTheHostOrTheProcessor(t *testing.T) {
	for text, want := range map[string]int64{"4G": 4096, "2000M": 2000, "4Gc": 32768, "2Tn": 2_097_152, "0n": 0, "": 0, "1.5G": 1536, "512K": 1, "3000": 3000} {
		tr := read(t, sacctHead+"1|a|2026-01-05T08:00:00|2026-01-05T08:00:00|Unknown|00:01:00|COMPLETED|8|"+text+"\n", trace.Options{Strict: true})
		if got := tr.Jobs[0].Shape.MemoryMB; got != want {
			t.Errorf("%q is %d MB, want %d", text, got, want)
		}
	}
}

func TestAListingWithoutHeaderIsTakenForXDMoDs(t *testing.T) {
	const row = "17_3|19|big|day|normal|chip|staff|500|ann|1001|2026-01-05T08:00:00|2026-01-05T08:00:00|2026-01-05T08:00:30|2026-01-05T08:10:30|00:10:00|0:0|COMPLETED|1|4|4|1000Mc|cpu=4,mem=9G,node=1||01:00:00|n1|a name|with bars\n"
	tr := read(t, row, trace.Options{Names: true})
	checkJobs(t, tr, `{"id":19,"label":"17_3","submit_ms":1767600000000,"run_ms":600000,"limit_ms":3600000,"waited_ms":30000,"user":"ann","group":"chip","queue":"day","cpus":4,"memory_mb":9216,"name":"a name|with bars"}`)
	checkRepairs(t, tr, "joined-row 1")
}

func TestTheColumnLicensesGivesTokensToo(t *testing.T) {
	const head = "JobID|Submit|Start|Elapsed|State|NCPUS|Licenses\n"
	tr := read(t, head+"1|2026-01-05T08:00:00|2026-01-05T08:00:00|00:01:00|COMPLETED|1|vcs:2,verdi@server,tool=3\n", trace.Options{Strict: true})
	checkJobs(t, tr, `{"id":1,"submit_ms":1767600000000,"run_ms":60000,"waited_ms":0,"cpus":1,"tokens":{"tool":3,"vcs":2,"verdi":1}}`)
}

// A row whose end is missing takes no other with it, however many follow.
func TestARowWithoutEndIsBrokenAlone(t *testing.T) {
	const good = "2|b|2026-01-05T08:00:00|2026-01-05T08:00:00|Unknown|00:01:00|COMPLETED|1|1G\n"
	for _, broken := range []string{"1|a|2026-01-05T08:0\n", "1|a\n\n", "1|a|2026\nx|y\n"} {
		tr := read(t, sacctHead+good+broken+strings.Replace(good, "2|b", "3|b", 1)+strings.Replace(good, "2|b", "4|b", 1), trace.Options{})
		checkRepairs(t, tr, "broken-row 1")
		if len(tr.Jobs) != 3 {
			t.Errorf("behind %q, %d jobs are read", broken, len(tr.Jobs))
		}
	}
	tr := read(t, sacctHead+good+"1|a|2026\n", trace.Options{}) // also at the end
	checkRepairs(t, tr, "broken-row 1")
}

func TestAnEndedListingMayHaveATrailingSeparator(t *testing.T) {
	const head = "JobID|Submit|Start|Elapsed|State|NCPUS|\n"
	tr := read(t, head+"1|2026-01-05T08:00:00|2026-01-05T08:00:00|00:01:00|COMPLETED|3|\n", trace.Options{Strict: true})
	if len(tr.Jobs) != 1 || tr.Jobs[0].Shape.CPUs != 3 {
		t.Errorf("read is %+v", tr.Jobs)
	}
}

// Slurm plans a start for jobs that wait, and lists it.
func TestAJobThatWaitsHasNotStartedWhateverIsPlanned(t *testing.T) {
	tr := read(t, sacctHead+"1|a|2026-01-05T08:00:00|2026-01-06T08:00:00|Unknown|00:01:00|PENDING|1|1G\n", trace.Options{})
	checkRepairs(t, tr, "never-started 1")
}
