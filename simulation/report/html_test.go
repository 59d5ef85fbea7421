package report

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
)

func htmlOf(t *testing.T, r *simulation.Result, o Options) string {
	t.Helper()
	var text bytes.Buffer
	if err := HTML(&text, r, o); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// outside are the ways in which a page could ask for something that is not in it.
var outside = regexp.MustCompile(`(?i)https?:|//|@import|url\(|\bsrc\s*=|<link|<iframe|<img|<object|<embed|\bfetch\(|XMLHttpRequest|WebSocket|import\(|\bhref="[^#]`)

func TestPagesAskForNothingOutsideThemselves(t *testing.T) {
	var frontier bytes.Buffer
	if err := Frontier(&frontier, sampleRuns()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"report": htmlOf(t, sample(300, 1), Options{}), "frontier": frontier.String()} {
		if found := outside.FindStringIndex(text); found != nil {
			t.Errorf("%s: %q", name, text[max(found[0]-40, 0):min(found[1]+40, len(text))])
		}
		if !strings.Contains(text, `content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"`) {
			t.Errorf("%s: nothing forbids the browser to ask", name)
		}
	}
	if !outside.MatchString(`<a href="https://example.org">`) || !outside.MatchString(`<script src=x>`) {
		t.Error("the check finds nothing")
	}
}

func TestWhatComesFromInputIsEscapedEverywhere(t *testing.T) {
	const evil = `<script>alert(1)</script><!--"'` + "`${x}`"
	r := sample(40, 1)
	r.Cluster, r.Label, r.Trace.Source = evil, evil, evil
	for i := range r.Causes {
		r.Causes[i] += evil
	}
	for i := range r.Trace.Jobs {
		r.Trace.Jobs[i].Name = evil
		r.Trace.Jobs[i].Shape.Queue, r.Trace.Jobs[i].Shape.User = evil, evil
		r.Trace.Jobs[i].Shape.Tokens = map[string]int64{evil: 1}
	}
	for i := range r.Worst {
		r.Worst[i].Lines[0].Why = evil
	}
	r.Resources[0].Name, r.Loans[0].Why, r.Machines[0].Name, r.Providers[0].Name = evil, evil, evil, evil
	r.Providers[0].Refusals[0].Name, r.Trace.Repairs[0].Places[0], r.Trace.Repairs[0].What = evil, evil, evil
	text := htmlOf(t, r, Options{Title: evil})
	plain := htmlOf(t, sample(40, 1), Options{})
	for _, sign := range []string{"<script", "</script", "<!--"} {
		if got, want := strings.Count(text, sign), strings.Count(plain, sign); got != want {
			t.Errorf("there are %d %s, want %d", got, sign, want)
		}
	}
	if n := strings.Count(text, "&lt;script&gt;alert(1)"); n < 20 {
		t.Errorf("only %d names are shown", n)
	}
	if n := strings.Count(text, `\u003cscript\u003ealert(1)`); n < 5 {
		t.Errorf("only %d names are in the charts' data", n)
	}
	runs := sampleRuns()
	runs[0].Label, runs[9].Label, runs[1].Settings[0].Value, runs[0].Summary.Cluster = evil, evil, evil, evil
	var frontier bytes.Buffer
	if err := Frontier(&frontier, runs); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(frontier.String(), "<script") || !strings.Contains(frontier.String(), "&lt;script&gt;") {
		t.Error("the frontier does not escape")
	}
}

func TestTheSameResultGivesTheSameBytes(t *testing.T) {
	for range 3 {
		a, b := sample(200, 9), sample(200, 9)
		if htmlOf(t, a, Options{}) != htmlOf(t, b, Options{}) {
			t.Error("the pages differ")
		}
		if !bytes.Equal(saved(t, a), saved(t, b)) {
			t.Error("the saved runs differ")
		}
		x, y := csvOf(t, a), csvOf(t, b)
		for name := range x {
			if x[name].String() != y[name].String() {
				t.Errorf("%s differs", name)
			}
		}
	}
}

func TestAResultWithoutAnythingHasItsPage(t *testing.T) {
	for name, r := range map[string]*simulation.Result{"zero": {}, "no jobs": sample(0, 1), "one job": sample(1, 1)} {
		text := htmlOf(t, r, Options{})
		for _, want := range []string{"<h2>Summary</h2>", "Little's law holds", "</html>"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no %s", name, want)
			}
		}
	}
}

func TestThePageHasAllTables(t *testing.T) {
	text := htmlOf(t, sample(300, 1), Options{})
	for _, want := range []string{
		`<section id="charts">`, `<section id="summary">`, `<section id="queues">`, `<section id="causes">`, `<section id="cost">`, `<section id="providers">`,
		`<section id="loans">`, `<section id="machines">`, `<section id="orders">`, `<section id="repairs">`, `<section id="worst">`, `<section id="little">`, "<noscript>",
		"3 for capacity, 1 for quota", "tokens of vcs", "pool-a refused: capacity; the next request is after 10m", "no-estimate",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if n := strings.Count(text, "<details"); n != 10 {
		t.Errorf("there are %d stories", n)
	}
	if strings.Contains(text, "more are not shown") {
		t.Error("something is not shown")
	}
}

func TestLongListsAreCutAndSaySo(t *testing.T) {
	text := htmlOf(t, sample(300, 1), Options{Rows: 7})
	for _, want := range []string{"33 more are not shown; loans.csv has all.", "54 more are not shown; machines.csv has all."} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if strings.Contains(text, "host/small-8<") || !strings.Contains(text, "host/small-7<") {
		t.Error("other rows are shown than the first")
	}
}

// unpack is what the script does with a text of differences.
func unpack(t *testing.T, text string) (numbers []int64) {
	t.Helper()
	sum := int64(0)
	for part := range strings.SplitSeq(text, ",") {
		if part != "" {
			var n int64
			if err := json.Unmarshal([]byte(part), &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		numbers = append(numbers, sum)
	}
	return numbers
}

func TestChartsHaveAllPointsAndNames(t *testing.T) {
	r := sample(500, 1)
	drawn := map[string]*chart{}
	for _, c := range charts(r) {
		drawn[c.ID] = c
		if c.X == "" || c.Y == "" || c.Title == "" || len(c.Lines) == 0 {
			t.Errorf("%s: title %q, axes %q and %q, %d lines", c.ID, c.Title, c.X, c.Y, len(c.Lines))
		}
		looks := map[int]bool{}
		for _, l := range c.Lines {
			if l.Name == "" || looks[l.Look] && (l.Stack || !strings.HasPrefix(l.Name, "total")) {
				t.Errorf("%s: a line %q has the look %d that another has", c.ID, l.Name, l.Look)
			}
			looks[l.Look] = true
		}
	}
	jobs := drawn["jobs"]
	at, waiting := unpack(t, jobs.At), unpack(t, jobs.Lines[1].Y)
	if len(at) != r.Jobs.Len() || len(waiting) != len(at) {
		t.Fatalf("%d times and %d values, want %d", len(at), len(waiting), r.Jobs.Len())
	}
	for i := range r.Jobs.Len() {
		p := r.Jobs.Point(i)
		if at[i]*jobs.Tick != int64(p.At) || waiting[i] != p.Values[0] {
			t.Fatalf("point %d is %d at %d, want %d at %d", i, waiting[i], at[i]*jobs.Tick, p.Values[0], p.At)
		}
	}
	for _, id := range []string{"resource-0", "resource-1", "hosts", "cost", "wait-queue", "wait-cause", "slowdown-queue", "slowdown-cause"} {
		if drawn[id] == nil {
			t.Errorf("there is no chart %s", id)
		}
	}
}

func TestTheMoneySpentEndsAtTheWholeCost(t *testing.T) {
	r := sample(500, 1)
	c, has := costChart(r)
	if !has {
		t.Fatal("there is no chart")
	}
	cost := Summarize(r).Cost
	for i, want := range []cluster.Price{cost.Hosts, cost.Tokens} {
		spent := unpack(t, c.Lines[i].Y)
		if spent[0] != 0 || spent[len(spent)-1] != int64(want) || !slices.IsSorted(spent) {
			t.Errorf("%s: from %d to %d, want %d", c.Lines[i].Name, spent[0], spent[len(spent)-1], want)
		}
	}
}

func TestCurvesAreExactAtTheirPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int64{3000, 1 << 20, 1 << 62}).Draw(t, "most")
		edge := rapid.Custom(func(t *rapid.T) int64 { // where buckets end and begin
			power := rapid.IntRange(9, 61).Draw(t, "power")
			return rapid.Int64Range(32, 64).Draw(t, "steps")<<(power-5) + rapid.Int64Range(-1, 1).Draw(t, "beside")
		})
		values := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, most), rapid.Int64Range(floor-1, floor+1), edge), 1, 200).Draw(t, "values")
		c := curveOf("c", values)
		for i, x := range c.x {
			if i > 0 && x <= c.x[i-1] {
				t.Fatalf("%d follows %d", x, c.x[i-1])
			}
			n := int64(0)
			for _, v := range values {
				if v <= x {
					n++
				}
			}
			if c.y[i] != n {
				t.Fatalf("%d numbers are at most %d, want %d", c.y[i], x, n)
			}
		}
		if c.y[len(c.y)-1] != int64(len(values)) || c.count != int64(len(values)) {
			t.Fatalf("the curve ends at %d of %d", c.y[len(c.y)-1], len(values))
		}
	})
}

func TestManyGroupsShareTheLastCurve(t *testing.T) {
	r := sample(400, 1)
	d := byQueue(r)
	few := d.largest(3)
	if len(few.names) != 3 || few.names[2] != others {
		t.Fatalf("%q", few.names)
	}
	counts := make([]int, 3)
	for _, g := range few.of {
		counts[g]++
	}
	if counts[0]+counts[1]+counts[2] != 400 || few.of[0] != 2 && few.names[few.of[0]] != d.names[d.of[0]] {
		t.Errorf("%v", counts)
	}
}

// TestTheScriptDrawsInABrowser runs the page where there is a browser: every chart is drawn, nothing is
// complained about, and 100,000 points are read.
func TestTheScriptDrawsInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil || testing.Short() {
		t.Skip("there is no browser, or no time for one")
	}
	r := sample(120_000, 1)
	if r.Hosts.Len() < 50_000 {
		t.Fatalf("there are %d points only", r.Hosts.Len())
	}
	path := filepath.Join(t.TempDir(), "report.html")
	file, err := Into(filepath.Dir(path))("report.html")
	if err != nil {
		t.Fatal(err)
	}
	if err := HTML(file, r, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	var page, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--user-data-dir="+t.TempDir(), "--dump-dom", "file:"+path)
	cmd.Stdout, cmd.Stderr = &page, &log
	if err := cmd.Run(); err != nil {
		t.Skipf("the browser does not run here: %v", err)
	}
	if complaint := regexp.MustCompile(`.*CONSOLE.*`).FindString(log.String()); complaint != "" {
		t.Error(complaint)
	}
	text := page.String()
	if n, want := strings.Count(text, `<canvas class="front"`), len(charts(r)); n != want {
		t.Errorf("%d charts were drawn, want %d", n, want)
	}
	if !strings.Contains(text, `>2026-01-05 00:00:00 to `) {
		t.Error("no chart says from when to when it goes")
	}
}
