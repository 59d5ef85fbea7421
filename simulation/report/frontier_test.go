package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

// sampleRuns makes runs as a sweep has them, with baselines: in the fourth a job fewer ends.
func sampleRuns() []Run {
	var runs []Run
	base := Summarize(sample(300, 3))
	add := func(label string, baseline bool, wait, cost int64, settings ...Setting) {
		s := base
		s.Wait.Mean, s.Wait.P95, s.Cost.Total = wait*int64(cluster.Minute), 4*wait*int64(cluster.Minute), cluster.Price(cost*1_000_000)
		runs = append(runs, Run{Label: label, Baseline: baseline, Settings: settings, Summary: s})
	}
	for i, idle := range []string{"5m", "15m", "1h"} {
		for k, most := range []string{"0", "10", "30"} {
			add("", false, int64(400/(1+3*k)-10*i), int64(k*400+k*i*170), Setting{"idle_time", idle}, Setting{"max_borrowed", most})
		}
	}
	runs[3].Summary.Jobs.Done--
	add("no elasticity", true, 420, 0)
	add("unlimited", true, 30, 2600)
	add("oracle", true, 5, 1900)
	return runs
}

func TestTheFrontierIsWhomNobodyBeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := make([]Run, rapid.IntRange(0, 12).Draw(t, "runs"))
		for i := range runs {
			runs[i].Baseline = rapid.IntRange(0, 4).Draw(t, "baseline") == 0
			runs[i].Summary.Wait.Mean = rapid.Int64Range(0, 5).Draw(t, "wait")
			runs[i].Summary.Cost.Total = cluster.Price(rapid.Int64Range(0, 5).Draw(t, "cost"))
			runs[i].Summary.Jobs.Done = rapid.Int64Range(9, 10).Draw(t, "done")
		}
		most := int64(0)
		for _, r := range runs {
			if !r.Baseline {
				most = max(most, r.Summary.Jobs.Done)
			}
		}
		for i, on := range Unbeaten(runs) {
			want := !runs[i].Baseline && runs[i].Summary.Jobs.Done == most
			for _, o := range runs {
				a, b := o.Summary, runs[i].Summary
				if !o.Baseline && a.Jobs.Done == most && a.Wait.Mean <= b.Wait.Mean && a.Cost.Total <= b.Cost.Total && (a.Wait.Mean != b.Wait.Mean || a.Cost.Total != b.Cost.Total) {
					want = false
				}
			}
			if on != want {
				t.Fatalf("run %d: on the frontier %v, want %v", i, on, want)
			}
		}
		var out bytes.Buffer // any runs can be shown
		if err := Frontier(&out, runs); err != nil {
			t.Fatal(err)
		}
		if err := FrontierTerminal(&out, runs, 60); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheFrontierPageHasEveryRun(t *testing.T) {
	var out bytes.Buffer
	if err := Frontier(&out, sampleRuns()); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for want, n := range map[string]int{
		"<title>": 1 + 2*12, `<circle class="best"`: 2*7 + 1, `<path class="base" t`: 2 * 3, `<path class="fewer" t`: 2, "mean wait (s, m, h, d; logarithmic)": 2,
		"cost (currency units)": 2, ">idle_time</th>": 1, ">oracle</td>": 1, "idle_time=1h max_borrowed=30: mean wait 37m, cost 1480.00": 2,
	} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%q is there %d times, want %d", want, got, n)
		}
	}
}

func TestPlacesOnALogarithmicAxisRise(t *testing.T) {
	a := axis{low: 1000, high: 100_000_000, log: true}
	last := int64(-1)
	for v := int64(1000); v <= a.high; v += v / 3 {
		if p := a.place(v, 1_000_000); p <= last {
			t.Fatalf("%d is at %d, the one before at %d", v, p, last)
		} else {
			last = p
		}
	}
	if a.place(1000, 500) != 0 || a.place(100_000_000, 500) != 500 {
		t.Error("the ends are not at the ends")
	}
}

func TestANarrowTerminalShowsWhatMattersOfTheRuns(t *testing.T) {
	runs := sampleRuns()
	runs[0].Label = "idle_time=5m max_borrowed=0"
	show := func(width int) string {
		var out bytes.Buffer
		if err := FrontierTerminal(&out, runs, width); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	wide, narrow := show(0), show(80)
	for _, want := range []string{"RUN ", "IDLE_TIME", "MAX_BORROWED", "ENDED", "WAITING", "MEAN WAIT", "95 %", "SLOWDOWN", "HOSTS USED", "COST", "MARK"} {
		if !strings.Contains(wide, want) {
			t.Errorf("there is no %s in\n%s", want, wide)
		}
	}
	if strings.Contains(narrow, "HOSTS USED") || !strings.Contains(narrow, "MEAN WAIT") || !strings.Contains(narrow, "COST") {
		t.Error(narrow)
	}
	for line := range strings.Lines(narrow) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("too wide: %s", line)
		}
	}
	if !strings.HasPrefix(strings.Split(narrow, "\n")[1], "run 1 ") || !strings.Contains(narrow, "no elasticity") {
		t.Error(narrow)
	}
}
