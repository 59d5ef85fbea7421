package report

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
)

func terminalOf(t *testing.T, r *simulation.Result, width int) string {
	t.Helper()
	var text bytes.Buffer
	if err := Terminal(&text, r, width); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestTheTerminalShowsTheSummary(t *testing.T) {
	r := sample(60, 1)
	r.Outcomes[59] = simulation.Outcome{State: simulation.Impossible}
	(&maker{r: r}).jobSeries() // the counts without it
	want, err := os.ReadFile("testdata/terminal.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := terminalOf(t, r, 80); got != string(want) {
		t.Errorf("it shows\n%s\nwant\n%s", got, want)
	}
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	r := sample(400, 1)
	r.Label, r.Resources[1].Name = strings.Repeat("long ", 60), strings.Repeat("x", 60)
	for i := range r.Causes {
		r.Causes[i] = "tokens of " + strings.Repeat("y", 50) + r.Causes[i]
	}
	for _, width := range []int{80, 100, 132} {
		for line := range strings.Lines(terminalOf(t, r, width)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d signs on a terminal of %d: %s", n, width, line)
			}
		}
	}
	if text := terminalOf(t, r, 0); !strings.Contains(text, strings.Repeat("y", 50)+"hosts") {
		t.Error("a name is cut where there is no limit")
	}
}

func TestNothingSteersTheTerminal(t *testing.T) {
	r := sample(40, 1)
	r.Cluster, r.Causes[1], r.Resources[0].Name, r.Providers[0].Refusals[0].Name = "a\x1b[2J", "b\x1b[1m", "c\x9b", "d\u202e"
	r.Changes[0].Subject = "e\x1b"
	text := terminalOf(t, r, 80)
	c := Compare(r, sample(40, 2))
	var compared, runs bytes.Buffer
	if err := c.Terminal(&compared, 80); err != nil {
		t.Fatal(err)
	}
	if err := FrontierTerminal(&runs, []Run{{Label: "f\x1b", Settings: []Setting{{"g\x1b", "h\x1b"}}, Summary: Summarize(r)}}, 80); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{text, compared.String(), runs.String()} {
		if strings.ContainsAny(text, "\x1b\u009b\u202e") || !utf8.ValidString(text) {
			t.Errorf("%q", text)
		}
	}
	if !strings.Contains(text, "cluster a·[2J") {
		t.Error("the name is not shown")
	}
}

func TestManyQueuesAreCutToTheLargest(t *testing.T) {
	var groups []Group
	for i := range 50 {
		groups = append(groups, Group{Name: "q" + number(int64(10+i)), Jobs: JobFigures{Total: int64(i % 25)}})
	}
	c := &columns{}
	groupTable(c, "QUEUE", groups, "")
	text := c.text.String()
	if n := strings.Count(text, "\n"); n != 1+mostGroups+1+1 || !strings.Contains(text, "(and 30 more)") || !strings.Contains(text, "q34 ") || strings.Contains(text, "q10 ") {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

func TestLengthsOfTimeHaveTwoUnitsAtMost(t *testing.T) {
	for d, want := range map[cluster.Duration]string{
		0: "0s", 1: "1ms", 999: "999ms", 1000: "1s", 12_345: "12.3s", 59_949: "59.9s", 59_950: "1m", 61_000: "1m1s", 3_599_499: "59m59s", 3_599_500: "1h",
		3_660_000: "1h1m", 86_369_999: "23h59m", 86_370_000: "1d", 90_000_000: "1d1h", 8_640_000_000: "100d", -1500: "-1.5s",
	} {
		if got := short(d); got != want {
			t.Errorf("%d ms is %q, want %q", d, got, want)
		}
	}
}

func TestNumbersAreShownRounded(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{money(1_234_567), "1.23"},
		{money(-5_000), "-0.01"},
		{money(0), "0.00"},
		{hours(5_400_000), "1.5"},
		{hours(-179_999), "0.0"},
		{hours(-180_000), "-0.1"},
		{factor(1000), "1.00"},
		{factor(9_994), "9.99"},
		{factor(9_995), "10.0"},
		{factor(99_950), "100"},
		{factor(-32_150), "-32.2"},
		{percent(8_765), "87.7 %"},
		{shareText(1, 0), "-"},
		{shareText(1, 3), "33.3 %"},
		{plural(1, "job"), "1 job"},
		{plural(2, "job"), "2 jobs"},
		{clip("abcdefgh", 5), "ab..."},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestParagraphsAreWrapped(t *testing.T) {
	c := &columns{width: 10}
	c.paragraph("aaa bbb ccc ddd eeeeeeeeeeeeeee f")
	if want := "aaa bbb\n  ccc ddd\n  eeeeeeeeeeeeeee\n  f\n"; c.text.String() != want {
		t.Errorf("%q, want %q", c.text.String(), want)
	}
}
