package report

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

func saved(t testing.TB, r *simulation.Result) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := JSON(&text, r); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// sameResult compares what a result shows; series have a place for their next point, too.
func sameResult(t testing.TB, got, want *simulation.Result) {
	t.Helper()
	a, b := asPlain(got), asPlain(want)
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("read again it is\n%+v\nwant\n%+v", a, b)
	}
}

func asPlain(r *simulation.Result) simulation.Result {
	p := *r
	p.Jobs, p.Hosts, p.Resources = plainSeries(r.Jobs), plainSeries(r.Hosts), nil
	for _, res := range r.Resources {
		res.Series = plainSeries(res.Series)
		p.Resources = append(p.Resources, res)
	}
	return p
}

func plainSeries(s *series.Series) *series.Series {
	if s == nil {
		return nil
	}
	plain := &series.Series{Columns: s.Columns, Integral: s.Integral, Max: s.Max, End: s.End, Width: s.Width}
	for i := range s.Len() {
		p := s.Point(i)
		plain.Append(p.At, p.Values...)
	}
	return plain
}

func TestASavedRunIsReadAgainAsItWas(t *testing.T) {
	r := sample(300, 2)
	r.Label, r.Seed, r.Stopped = "max_borrowed=30", 1<<64-1, true
	r.Trace.Jobs[3].Name, r.Trace.Jobs[299].Name = "4103947_[9-11]", "<script>"
	r.Trace.Jobs[5].Shape = nil
	r.Outcomes[7] = simulation.Outcome{State: simulation.Waiting, Cause: 2, Requeues: 255}
	r.Outcomes[8] = simulation.Outcome{State: simulation.Running, Start: r.Outcomes[8].Start}
	again, err := ReadJSON(bytes.NewReader(saved(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	sameResult(t, again, r)
	if again.Trace.Jobs[0].Shape != again.Trace.Jobs[alike(again, 0)].Shape {
		t.Error("jobs that are alike do not share a shape")
	}
	if !bytes.Equal(saved(t, again), saved(t, r)) {
		t.Error("saved again it is not the same")
	}
}

// alike answers another job of the same queue.
func alike(r *simulation.Result, i int) int {
	for k := range r.Trace.Jobs {
		if k != i && queue(&r.Trace.Jobs[k]) == queue(&r.Trace.Jobs[i]) {
			return k
		}
	}
	return i
}

func TestRunsOfManyBlocksAndOfNoneAreReadAgain(t *testing.T) {
	for _, jobs := range []int{0, 1, blockSize, blockSize + 1} {
		r := sample(jobs, 2)
		again, err := ReadJSON(bytes.NewReader(saved(t, r)))
		if err != nil {
			t.Fatal(err)
		}
		sameResult(t, again, r)
	}
	again, err := ReadJSON(bytes.NewReader(saved(t, &simulation.Result{})))
	if err != nil {
		t.Fatal(err)
	}
	sameResult(t, again, &simulation.Result{})
}

func TestDrawnRunsAreReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawResult(t)
		var text bytes.Buffer
		if err := JSON(&text, r); err != nil {
			t.Fatal(err)
		}
		again, err := ReadJSON(&text)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(asPlain(again), asPlain(r)) {
			t.Fatalf("read again it is\n%+v\nwant\n%+v", asPlain(again), asPlain(r))
		}
	})
}

func TestAFileIsPackedWhereItsNameSaysSo(t *testing.T) {
	r, folder := sample(2000, 2), t.TempDir()
	sizes := map[string]int{}
	for _, name := range []string{"run.json", "run.json.gz"} {
		path := filepath.Join(folder, name)
		if err := Save(path, r); err != nil {
			t.Fatal(err)
		}
		again, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		sameResult(t, again, r)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = len(text)
	}
	if sizes["run.json.gz"]*2 > sizes["run.json"] {
		t.Errorf("packed it has %d bytes, not packed %d", sizes["run.json.gz"], sizes["run.json"])
	}
	if err := Save(filepath.Join(folder, "none", "run.json"), r); err == nil {
		t.Error("a file in no folder was written")
	}
}

func TestWhatIsNoSavedRunIsRefusedWithItsPlace(t *testing.T) {
	good := string(saved(t, sample(3, 2)))
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "unexpected EOF"},
		"cut":           {good[:len(good)/2], "unexpected"},
		"a list":        {"[]", "where { should be"},
		"other JSON":    {"{}", "it does not begin as one"},
		"newer":         {strings.Replace(good, `"version": 1`, `"version": 2`, 1), "version: version 2 cannot be read"},
		"field":         {strings.Replace(good, `"sessions": `, `"seasons": `, 1), "seasons: there is no such field"},
		"column":        {strings.Replace(good, `"state":[4,`, `"state":[`, 1), "jobs: [0]: a column has 2 numbers where there are 3 jobs"},
		"state":         {strings.Replace(good, `"state":[4,`, `"state":[9,`, 1), "state 9"},
		"shape":         {strings.Replace(good, `"shape":[1,`, `"shape":[7,`, 1), "shape[0]: there is no shape 7"},
		"cause":         {strings.Replace(good, `["nothing","hosts","tokens of vcs","tokens of spice","priority","provisioning"]`, `["nothing"]`, 1), "there is no cause"},
		"story":         {strings.Replace(good, `{"job":0,`, `{"job":99,`, 1), "there is no job 99"},
		"series":        {strings.Replace(good, `"columns":["waiting","running"]`, `"columns":["waiting"]`, 1), "queue: there are not 2 columns"},
		"points":        {strings.Replace(good, `"values":{"0":[0,`, `"values":{"0":[`, 1), "queue: values.0: there are"},
		"behind it":     {good + "{}", "something stands behind its end"},
		"broken gzip":   {"\x1f\x8bnonsense", "gzip"},
		"seed":          {strings.Replace(good, `"seed": "2"`, `"seed": 2`, 1), "seed: "},
		"money as text": {strings.Replace(good, `"bought_unit_ms":0`, `"bought_unit_ms":"0"`, 1), "resources: [0]: "},
	} {
		_, err := ReadJSON(strings.NewReader(c.text))
		if err == nil {
			t.Errorf("%s: it was read", name)
			continue
		}
		if c.text == good || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "`xce-elastic simulate`") {
			t.Errorf("%s: %v, want %q and a remedy", name, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("no file was read")
	}
}

func FuzzReadJSON(f *testing.F) {
	r := sample(3, 2)
	r.Machines, r.Loans, r.Changes = r.Machines[:1], r.Loans[:2], r.Changes[:1]
	f.Add(saved(f, r))
	f.Add(saved(f, &simulation.Result{Trace: &trace.Trace{}}))
	f.Add([]byte(`{"format": "xce-elastic simulation", "version": 1, "worst": [{"job":0}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ReadJSON(bytes.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer // whatever is read can be shown
		if err := HTML(&out, r, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := Terminal(&out, r, 80); err != nil {
			t.Fatal(err)
		}
		if err := CSV(func(string) (io.WriteCloser, error) { return nothing{}, nil }, r); err != nil {
			t.Fatal(err)
		}
	})
}

// nothing takes what is written nowhere.
type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

func (nothing) Close() error { return nil }
