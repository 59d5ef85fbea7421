package trace_test

import (
	"bytes"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// tenYears is as long as a job can be.
const tenYears = 10 * 366 * 24 * cluster.Hour

// checkValid demands what every trace must be.
func checkValid(t testing.TB, tr *trace.Trace) {
	t.Helper()
	last := cluster.Time(0)
	for _, j := range tr.Jobs {
		s := j.Shape
		switch {
		case j.Submit < last || j.Submit > 253_402_300_799_000:
			t.Fatalf("job %d arrives at %d, the one before at %d", j.ID, j.Submit, last)
		case j.Run < 1 || j.Run > tenYears || j.Limit < 0 || j.Limit > tenYears || j.Waited < -1 || j.TokensFor < 0 || j.TokensFor > tenYears:
			t.Fatalf("job %d has the times %+v", j.ID, j)
		case s.CPUs < 1 || s.Nodes < 0 || s.MemoryMB < 0:
			t.Fatalf("job %d asks for %+v", j.ID, s)
		case s.User != "" && !cluster.ValidName(s.User), s.Queue != "" && !cluster.ValidName(s.Queue):
			t.Fatalf("job %d is of %q in %q", j.ID, s.User, s.Queue)
		case s.TimeLimit != 0 || s.NotBefore != 0 || s.Array != 0:
			t.Fatalf("the shape of job %d has what is its own: %+v", j.ID, s)
		}
		if ps := s.ValidateShape(""); len(ps) > 0 {
			t.Fatalf("job %d: %v", j.ID, ps)
		}
		for name, n := range s.Tokens {
			if !cluster.ValidName(name) || n < 1 {
				t.Fatalf("job %d takes %d of %q", j.ID, n, name)
			}
		}
		last = j.Submit
	}
}

// fuzz demands that any text is read as a valid trace, which can be written and read
// again, or refused.
func fuzz(f *testing.F, format trace.Format, file string) {
	text := sample(f, file)
	f.Add(text)
	for line := range strings.Lines(text) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := trace.ReadFrom(strings.NewReader(text), "log", trace.Options{Format: format, Names: true, TokensForDuration: true})
		if err != nil {
			return
		}
		checkValid(t, tr)
		if err := tr.WriteSWF(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		_, before := written(t, tr)
		again, err := trace.ReadFrom(strings.NewReader(before), "log", trace.Options{Format: trace.JSONL, Names: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, before)
		}
		if _, after := written(t, again); after != before {
			t.Fatalf("what is written as\n%s\nis read as\n%s", before, after)
		}
	})
}

func FuzzSWF(f *testing.F)        { fuzz(f, trace.SWF, "swf.acct") }
func FuzzSacct(f *testing.F)      { fuzz(f, trace.Sacct, "sacct.acct") }
func FuzzLSF(f *testing.F)        { fuzz(f, trace.LSF, "lsf.acct") }
func FuzzGridEngine(f *testing.F) { fuzz(f, trace.GridEngine, "ge.acct") }
func FuzzPBS(f *testing.F)        { fuzz(f, trace.PBS, "pbs.acct") }
func FuzzJSONL(f *testing.F)      { fuzz(f, trace.JSONL, "jsonl.acct") }
func FuzzAnyFormat(f *testing.F)  { fuzz(f, "", "pbs.acct") }

func FuzzMapping(f *testing.F) {
	f.Add("rules:\n- match: {user: [a, 'b*'], processors: 1-4}\n  set: {tokens: {vcs: 1}, processors_per_host: 2, time_limit: 1h}\n")
	f.Add("defaults: {memory_mb: 3, features: avx, queue: x}\nresources: {a: b}\n")
	f.Add("rules: &a\n- set: {alternatives: [{a: 1}]}\ndefaults: {constraint: 'a|b', priority: 3}\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := trace.ParseMapping("map.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, name := range []string{"jsonl.acct", "swf.acct", "lsf.acct"} {
			tr, err := trace.ReadFrom(strings.NewReader(sample(t, name)), "log", trace.Options{Mapping: m})
			if err != nil {
				t.Fatal(err)
			}
			checkValid(t, tr)
		}
	})
}
