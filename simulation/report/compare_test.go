package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
)

func TestARunIsTheSameAsItself(t *testing.T) {
	c := Compare(sample(100, 1), sample(100, 1))
	if c.Jobs.Same != 100 || c.Jobs.Earlier+c.Jobs.Later+c.Jobs.OnlyA+c.Jobs.OnlyB != 0 || !c.Changes.Identical {
		t.Errorf("%+v, %+v", c.Jobs, c.Changes)
	}
	for _, d := range c.Figures {
		if d.Change != 0 || d.A != d.B {
			t.Errorf("%+v", d)
		}
	}
	var text bytes.Buffer
	if err := c.Terminal(&text, 80); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "All figures are the same.") || !strings.Contains(text.String(), "identical (40 changes)") {
		t.Error(text.String())
	}
}

func TestEarlierAndLaterStartsAreToldWithTheirJobs(t *testing.T) {
	a, b := sample(100, 1), sample(100, 1)
	for i := range 20 { // job 1 starts a second later, job 2 two seconds earlier, and so on
		more := cluster.Time(1000 * (i + 1))
		if i%2 > 0 {
			more = -more
		}
		b.Outcomes[i].Start += more
	}
	b.Outcomes[30] = simulation.Outcome{State: simulation.Waiting}
	a.Outcomes[31] = simulation.Outcome{State: simulation.Impossible}
	a.Outcomes[32], b.Outcomes[32] = simulation.Outcome{}, simulation.Outcome{}
	j := Compare(a, b).Jobs
	if j.Later != 10 || j.LaterMS != 100_000 || j.Earlier != 10 || j.EarlierMS != 110_000 || j.Same != 77 || j.OnlyStartedA != 1 || j.OnlyStartedB != 1 || j.NeverStarted != 1 {
		t.Errorf("%+v", j)
	}
	if len(j.Largest) != 10 || j.Largest[0].ID != "20" || j.Largest[0].MoreMS != -20_000 || j.Largest[1].MoreMS != 19_000 || j.Largest[9].MoreMS != 11_000 {
		t.Errorf("%+v", j.Largest)
	}
	if want := "77 jobs started at the same time, 10 earlier in B (1m50s together), 10 later in B (1m40s together), 1 started only in A, 1 started only in B, 1 in neither."; j.String() != want {
		t.Errorf("%q, want %q", j.String(), want)
	}
}

func TestTheLargestChangesAreFoundAmongMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sample(200, 1), sample(200, 1)
		var all []int64
		for i := range b.Outcomes {
			more := rapid.Int64Range(-9, 9).Draw(t, "more")
			b.Outcomes[i].Start += cluster.Time(more)
			if more != 0 {
				all = append(all, max(more, -more))
			}
		}
		slices.Sort(all)
		slices.Reverse(all)
		j := Compare(a, b).Jobs
		for i, l := range j.Largest {
			if max(l.MoreMS, -l.MoreMS) != all[i] || int64(l.StartB-l.StartA) != l.MoreMS {
				t.Fatalf("place %d: %+v, want %d", i, l, all[i])
			}
		}
		if len(j.Largest) != min(len(all), 10) {
			t.Fatalf("there are %d", len(j.Largest))
		}
	})
}

func TestJobsOfOneTraceAloneAreCountedAndTheOthersFound(t *testing.T) {
	a, b := sample(50, 1), sample(50, 1)
	a.Trace.Jobs, a.Outcomes = slices.Delete(a.Trace.Jobs, 3, 5), slices.Delete(a.Outcomes, 3, 5)
	b.Trace.Jobs, b.Outcomes = slices.Delete(b.Trace.Jobs, 10, 11), slices.Delete(b.Outcomes, 10, 11)
	j := Compare(a, b).Jobs
	if j.OnlyA != 1 || j.OnlyB != 2 || j.Same != 47 {
		t.Errorf("%+v", j)
	}
	twice := sample(2, 1)
	twice.Trace.Jobs[1] = twice.Trace.Jobs[0]
	if j := Compare(twice, sample(2, 1)).Jobs; j.OnlyA != 1 || j.OnlyB != 1 {
		t.Errorf("of two alike, one is there: %+v", j)
	}
}

func TestTheFirstChangeThatDiffersIsShown(t *testing.T) {
	a, b := sample(10, 1), sample(10, 1)
	b.Changes[5].After = "25"
	f := Compare(a, b).Changes
	if f.Identical || f.Place != 6 || f.A.After != "24" || f.B.After != "25" {
		t.Errorf("%+v", f)
	}
	b.Changes = b.Changes[:5]
	f = Compare(a, b).Changes
	if f.Place != 6 || f.B != nil || f.CountB != 5 || !strings.HasSuffix(f.String(), "; B has ended.") {
		t.Errorf("%+v: %s", f, f)
	}
}

func TestFiguresOfOneRunAloneAreZeroInTheOther(t *testing.T) {
	a, b := sample(100, 1), sample(100, 1)
	b.Resources[0].Name, b.Resources[1].Name = "aaa", "vcs"
	found := map[string]Difference{}
	for _, d := range Compare(a, b).Figures {
		found[d.Name] = d
	}
	if d := found["resource.spice.utilisation"]; d.A == 0 || d.B != 0 || d.Change != -d.A {
		t.Errorf("%+v", d)
	}
	if d := found["resource.aaa.utilisation"]; d.A != 0 || d.B == 0 || d.ChangeText() != "+"+fixed(ratio(d.B, 1, 10), 1)+" points" || d.Relative() != "" {
		t.Errorf("%+v", d)
	}
}

func TestSavedRunsCompareAsTheRunsThemselves(t *testing.T) {
	a, b := sample(300, 1), sample(300, 2)
	again := func(r *simulation.Result) *simulation.Result {
		read, err := ReadJSON(bytes.NewReader(saved(t, r)))
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	want, err := json.Marshal(Compare(a, b))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(Compare(again(a), again(b)))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
