package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

func jsonOf(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestJSONLinesLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawTrace(t)
		var out bytes.Buffer
		if err := before.WriteJSONL(&out); err != nil {
			t.Fatal(err)
		}
		after, err := trace.ReadFrom(bytes.NewReader(out.Bytes()), "log", trace.Options{Names: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if len(after.Jobs) != len(before.Jobs) {
			t.Fatalf("%d jobs become %d", len(before.Jobs), len(after.Jobs))
		}
		for i := range before.Jobs {
			b, a := before.Jobs[i], after.Jobs[i]
			if !reflect.DeepEqual(b.Shape, a.Shape) {
				t.Fatalf("shape\n%+v becomes\n%+v", b.Shape, a.Shape)
			}
			if a.Shape = b.Shape; a != b {
				t.Fatalf("job\n%+v becomes\n%+v", b, a)
			}
		}
		repairs := slices.DeleteFunc(after.Repairs, func(r trace.Repair) bool { return r.Rule == "id-reused" })
		if !reflect.DeepEqual(repairs, before.Repairs) && len(before.Repairs)+len(repairs) > 0 || !strings.HasSuffix(after.Source, " (made from "+before.Source+")") {
			t.Fatalf("repairs %+v become %+v, and the source %q", before.Repairs, after.Repairs, after.Source)
		}
	})
}

func drawTrace(t *rapid.T) *trace.Trace {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab\"\\<&\n é\u2028\x01")), 0, 5, -1)
	name := rapid.SampledFrom([]string{"", "a", "night-1"})
	units := rapid.MapOfN(rapid.SampledFrom([]string{"vcs", "verdi"}), rapid.Int64Range(1, 9), 1, 2)
	var shapes []*trace.Shape
	for range rapid.IntRange(1, 4).Draw(t, "shapes") {
		s := &trace.Shape{User: name.Draw(t, "user"), Group: text.Draw(t, "group"), Application: text.Draw(t, "application")}
		s.Name, s.Directory, s.Queue = text.Draw(t, "name"), text.Draw(t, "directory"), name.Draw(t, "queue")
		s.Nodes, s.CPUs, s.MemoryMB = rapid.Int64Range(0, 3).Draw(t, "nodes"), rapid.Int64Range(1, 99).Draw(t, "cpus"), rapid.Int64Range(0, 99).Draw(t, "memory")
		s.Priority, s.Exclusive = rapid.Int64Range(-9, 9).Draw(t, "priority"), rapid.Bool().Draw(t, "exclusive")
		s.Constraint = rapid.SampledFrom([]string{"", "a & !b"}).Draw(t, "constraint")
		if rapid.Bool().Draw(t, "wants more") {
			s.Tokens, s.Countables = units.Draw(t, "tokens"), units.Draw(t, "countables")
			s.Alternatives = rapid.SliceOfN(units, 1, 2).Draw(t, "alternatives")
			s.After, s.Command = []int64{1, 7}, rapid.SliceOfN(text, 1, 3).Draw(t, "command")
		}
		shapes = append(shapes, s)
	}
	tr := &trace.Trace{Source: "drawn" + text.Draw(t, "source")}
	if rapid.Bool().Draw(t, "mended") {
		tr.Repairs = []trace.Repair{{Rule: "decimals", What: text.Draw(t, "what"), Count: 3, Places: []string{"a:1", text.Draw(t, "place")}}}
	}
	for i := range rapid.IntRange(0, 9).Draw(t, "jobs") {
		tr.Jobs = append(tr.Jobs, trace.Job{
			ID: rapid.SampledFrom([]int64{int64(i), -1, 1 << 40, 1<<63 - 1}).Draw(t, "id"), Name: text.Draw(t, "label"), Submit: cluster.Time(rapid.Int64Range(0, 1<<45).Draw(t, "submit")),
			Run: cluster.Duration(rapid.Int64Range(1, 1<<35).Draw(t, "run")), Limit: cluster.Duration(rapid.Int64Range(0, 1<<35).Draw(t, "limit")),
			Waited: cluster.Duration(rapid.Int64Range(-1, 1<<35).Draw(t, "waited")), TokensFor: cluster.Duration(rapid.Int64Range(0, 1<<35).Draw(t, "tokens for")),
			Shape: rapid.SampledFrom(shapes).Draw(t, "shape"),
		})
	}
	tr.Sort()
	return tr
}

func TestJobsAreSortedByArrivalAndThenByPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := &trace.Trace{}
		for i, at := range rapid.SliceOfN(rapid.Int64Range(0, 9), 0, 40).Draw(t, "arrivals") {
			tr.Jobs = append(tr.Jobs, trace.Job{ID: int64(i), Submit: cluster.Time(at)})
		}
		want := slices.Clone(tr.Jobs)
		slices.SortStableFunc(want, func(a, b trace.Job) int { return int(a.Submit - b.Submit) })
		if tr.Sort(); !slices.Equal(tr.Jobs, want) {
			t.Fatalf("sorted is %+v, want %+v", tr.Jobs, want)
		}
	})
}

func TestALineOfJSONIsTakenInAnyOrderOfKeys(t *testing.T) {
	const want = `{"id":1,"submit_ms":5,"run_ms":7,"waited_ms":0,"user":"a","cpus":2}`
	for _, line := range []string{
		want,
		`{"user":"a","cpus":2,"run_ms":7,"waited_ms":0,"submit_ms":5,"id":1}`,
		` { "id" : 1 , "submit_ms" : 5, "run_ms": 7, "waited_ms": 0, "cpus": 2, "user": "a" } `,
		`{"id":9,"submit_ms":5,"run_ms":7,"user":"a","cpus":2,"id":1,"waited_ms":0}`,
	} {
		checkJobs(t, read(t, want+"\n"+line+"\n", trace.Options{}), want+"\n"+want)
	}
}

func TestAFaultyLineOfJSONIsRefusedAndNotMended(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":1,"submit_ms":0,"run_ms":1}`:                                     "log:2 cpus: 0 cpus cannot be; write a number from 1",
		`{"id":1,"submit_ms":0,"run_ms":0,"cpus":1}`:                            "log:2: run_ms: 0 cannot be; write a number from 1 to",
		`{"id":1,"submit_ms":-1,"run_ms":1,"cpus":1}`:                           "log:2: submit_ms: -1 cannot be; write a number from 0",
		`{"id":1,"submit_ms":0,"run_ms":1,"waited_ms":-2,"cpus":1}`:             "log:2: waited_ms: -2 cannot be",
		`{"id":1,"submit_ms":0,"run_ms":1,"cpus":1,"token":{"vcs":1}}`:          `log:2: unknown field "token"; write one object a line`,
		`{"id":1,"submit_ms":0,"run_ms":1,"cpus":1} {}`:                         "log:2: there is more behind the object",
		`{"id":1,"submit_ms":0,"run_ms":1,"cpus":1`:                             "log:2: unexpected EOF",
		`{"id":01,"submit_ms":0,"run_ms":1,"cpus":1}`:                           "log:2: invalid character",
		`{"id":1.5,"submit_ms":0,"run_ms":1,"cpus":1}`:                          "log:2: ",
		`{"id":1,"submit_ms":0,"run_ms":1,"cpus":1,"tokens":{"vcs":0}}`:         "log:2 tokens.vcs: 0 units cannot be taken",
		`{"id":1,"submit_ms":0,"run_ms":1,"cpus":1,"alternatives":[{"a b":1}]}`: `log:2 tokens: name "a b" is not valid`,
		`{"id":1,"submit_ms":0,"run_ms":1,"cpus":1,"queue":"a b"}`:              `log:2 queue: name "a b" is not valid`,
		`{"id":1,"submit_ms":0,"run_ms":1,"cpus":1,"constraint":"a &"}`:         "log:2 constraint: ",
		`{"id":1,"submit_ms":0,"run_ms":1,"cpus":1000000,"nodes":1000000}`:      "log:2 cpus: 1000000 cpus cannot be",
		`{"job_number":1,"start_time":"2026-01-01"}`:                            `log:2: unknown field "job_number"`,
		`{"xce_trace":1}`: `log:2: unknown field "xce_trace"`,
	} {
		refused(t, `{"id":1,"submit_ms":0,"run_ms":1,"cpus":1}`+"\n"+line+"\n", trace.Options{}, want)
	}
	refused(t, `{"xce_trace":2}`, trace.Options{}, "log:1: the trace is of version 2; write it anew, as version 1")
}

// What the format cannot say is told in its header; what it can comes back.
func TestATraceIsWrittenInTheStandardWorkloadFormat(t *testing.T) {
	tr := read(t, `{"id":7,"submit_ms":1767600000000,"run_ms":1500,"limit_ms":60000,"waited_ms":2000,"user":"ann","group":"g","application":"vcs","queue":"day","nodes":2,"cpus":4,"memory_mb":10}
{"id":8,"submit_ms":1767600001000,"run_ms":1000,"user":"ben","cpus":1,"tokens":{"vcs":1}}`, trace.Options{})
	var out bytes.Buffer
	if err := tr.WriteSWF(&out); err != nil {
		t.Fatal(err)
	}
	const want = `; Version: 2.2
; MaxJobs: 2
; MaxRecords: 2
; UnixStartTime: 1767600000
; TimeZoneString: UTC
; MaxNodes: 2
; MaxProcs: 8
; Note: made from log (jsonl)
; Note: 2 jobs ask for tokens, features, hosts or priorities, which this format cannot say
; User: 1 ann
; User: 2 ben
; Group: 1 g
; Application: 1 vcs
; Queue: 1 day
7 0 2 2 8 -1 -1 8 60 2560 1 1 1 1 1 -1 -1 -1
8 1 -1 1 1 -1 -1 1 -1 -1 1 2 -1 -1 -1 -1 -1 -1
`
	if out.String() != want {
		t.Errorf("written is\n%s\nwant\n%s", out.String(), want)
	}
	checkJobs(t, read(t, out.String(), trace.Options{Calendar: true}), `{"id":7,"submit_ms":1767600000000,"run_ms":2000,"limit_ms":60000,"waited_ms":2000,"user":"1","group":"1","application":"1","queue":"1","cpus":8,"memory_mb":20}
{"id":8,"submit_ms":1767600001000,"run_ms":1000,"limit_ms":1000,"user":"2","cpus":1}`)
}

// A log that has been read and written is read as before.
func TestALogIsWrittenAsItWas(t *testing.T) {
	before := read(t, sample(t, "swf.acct"), trace.Options{})
	var out bytes.Buffer
	if err := before.WriteSWF(&out); err != nil {
		t.Fatal(err)
	}
	_, want := written(t, before)
	// What is planned with a longer time than it runs for has no mark of that.
	checkJobs(t, read(t, out.String(), trace.Options{}), want)
	for _, user := range []string{"3", "4", "5"} {
		if strings.Contains(out.String(), fmt.Sprintf("User: 1 %s", user)) {
			t.Errorf("user %s gets another number", user)
		}
	}
}

func TestOnlyJobsThatAreAlikeShareAShape(t *testing.T) {
	parts := []string{
		``, `,"nodes":2`, `,"memory_mb":2`, `,"priority":2`, `,"priority":-2`, `,"user":"a"`, `,"group":"a"`, `,"application":"a"`, `,"queue":"a"`, `,"constraint":"a"`,
		`,"exclusive":true`, `,"countables":{"a":1}`, `,"tokens":{"a":1}`, `,"tokens":{"a":2}`, `,"tokens":{"b":1}`, `,"tokens":{"a":1,"b":1}`, `,"alternatives":[{"a":1}]`,
		`,"alternatives":[{"a":1},{"b":1}]`, `,"alternatives":[{"a":1,"b":1}]`, `,"after":[1]`, `,"after":[1,2]`, `,"name":"a"`, `,"directory":"a"`, `,"command":["a"]`, `,"command":["a","b"]`, `,"command":["ab"]`,
	}
	var text strings.Builder
	for i := range 2 * len(parts) { // the second time with another order of keys, so that each line is decoded anew
		if part := parts[i%len(parts)]; i < len(parts) {
			fmt.Fprintf(&text, `{"id":%d,"submit_ms":0,"run_ms":1,"cpus":2%s}`+"\n", i, part)
		} else {
			fmt.Fprintf(&text, `{"cpus":2,"submit_ms":0,"run_ms":1,"id":%d%s}`+"\n", i, part)
		}
	}
	tr := read(t, text.String(), trace.Options{Names: true})
	for i := range parts {
		for j := range parts {
			if same := tr.Jobs[i].Shape == tr.Jobs[len(parts)+j].Shape; same != (i == j) {
				t.Errorf("%q and %q share a shape: %t", parts[i], parts[j], same)
			}
		}
	}
}
