package report

import (
	"bufio"
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"xce.internal/elastic/cluster"
)

// Run is one of several simulations of the same jobs.
type Run struct {
	// Label names the run; empty means that its settings do.
	Label string `json:"label"`
	// Settings are what was varied, in the same order in all runs.
	Settings []Setting `json:"settings"`
	// Baseline tells that it is there to be compared with, and is no choice.
	Baseline bool    `json:"baseline,omitempty"`
	Summary  Summary `json:"summary"`
}

// Setting is one thing that was varied.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// name answers the label, or the settings.
func (r *Run) name() string {
	return named(r.Label, r.settings())
}

func (r *Run) settings() string {
	parts := make([]string, len(r.Settings))
	for i, s := range r.Settings {
		parts[i] = s.Name + "=" + s.Value
	}
	return strings.Join(parts, " ")
}

// title answers the label where it says more than the settings do, which have columns of their own.
func (r *Run) title(place int) string {
	if r.Label == "" || r.Label == r.settings() {
		return fmt.Sprintf("run %d", place+1)
	}
	return r.Label
}

func (r *Run) setting(name string) string {
	for _, s := range r.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return "-"
}

// Unbeaten tells, by run, whether it is on the frontier: no other run that is a choice has both a mean wait
// and a cost as low, and one of them lower. Baselines are not on it; nor are runs in which fewer jobs ended
// than in others, because who has not started has no wait to count.
func Unbeaten(runs []Run) []bool {
	most := mostEnded(runs)
	choice := func(r *Run) bool { return !r.Baseline && r.Summary.Jobs.Ended() == most }
	unbeaten := make([]bool, len(runs))
	for i := range runs {
		unbeaten[i] = choice(&runs[i]) && !slices.ContainsFunc(runs, func(o Run) bool { return choice(&o) && beats(&o, &runs[i]) })
	}
	return unbeaten
}

// mostEnded is how many jobs ended in the run in which most did, baselines aside where there are others.
func mostEnded(runs []Run) (most int64) {
	for i := range runs {
		if !runs[i].Baseline {
			most = max(most, runs[i].Summary.Jobs.Ended())
		}
	}
	return most
}

func beats(a, b *Run) bool {
	waitA, waitB := a.Summary.Wait.Mean, b.Summary.Wait.Mean
	costA, costB := a.Summary.Cost.Total, b.Summary.Cost.Total
	return waitA <= waitB && costA <= costB && (waitA < waitB || costA < costB)
}

// settingNames answers the names of all settings, in the order in which they occur.
func settingNames(runs []Run) (names []string) {
	for _, r := range runs {
		for _, s := range r.Settings {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// FrontierTerminal prints the runs for a terminal of so many columns; 0 means that there is no limit.
func FrontierTerminal(w io.Writer, runs []Run, width int) error {
	c := &columns{width: width}
	t := frontierSheet(runs)
	rows := [][]string{nil}
	for _, h := range t.Head {
		rows[0] = append(rows[0], strings.ToUpper(h))
	}
	rows = append(rows, t.Rows...)
	drop(rows, 0) // the number is in the drawing alone
	for _, name := range []string{"HOSTS USED", "WAITING", "SLOWDOWN", "95 %"} {
		if at := slices.Index(rows[0], name); width > 0 && widthOf(rows) > width {
			drop(rows, at)
		}
	}
	for _, row := range rows {
		c.row(row...)
	}
	c.end()
	c.paragraph(frontierNote(runs))
	return c.writeTo(w)
}

// drop takes a column out.
func drop(rows [][]string, column int) {
	for i, row := range rows {
		rows[i] = slices.Delete(slices.Clone(row), column, column+1)
	}
}

// widthOf answers how many columns of a terminal the rows take.
func widthOf(rows [][]string) (all int) {
	for column := range rows[0] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(row[column]))
		}
		all += widest + 2
	}
	return all - 2
}

// Marks of runs.
const (
	markBest     = "*"
	markBaseline = "baseline"
	markFewer    = "fewer ended"
)

func mark(r *Run, unbeaten bool, most int64) string {
	switch {
	case unbeaten:
		return markBest
	case r.Baseline:
		return markBaseline
	case r.Summary.Jobs.Ended() < most:
		return markFewer
	}
	return ""
}

// frontierSheet is the table of all runs.
func frontierSheet(runs []Run) sheet {
	names, unbeaten, most := settingNames(runs), Unbeaten(runs), mostEnded(runs)
	t := sheet{ID: "runs", Title: "Runs", Texts: 2, Tail: 1, Head: []string{"no", "run"}}
	t.Head = append(t.Head, names...)
	t.Head = append(t.Head, "ended", "waiting", "mean wait", "95 %", "slowdown", "hosts used", "cost", "mark")
	for i := range runs {
		r := &runs[i]
		s := &r.Summary
		row := []string{number(int64(i + 1)), r.title(i)}
		for _, name := range names {
			row = append(row, r.setting(name))
		}
		h := s.Hosts
		t.Rows = append(t.Rows, append(row, number(s.Jobs.Ended()), number(s.Jobs.Waiting), spreadCell(s.Wait, Millis, s.Wait.Mean), spreadCell(s.Wait, Millis, s.Wait.P95),
			spreadCell(s.Slowdown, Thousandths, s.Slowdown.Mean), shareText(h.OwnedBusyMS+h.UsedMS, h.OwnedBusyMS+h.OwnedIdleMS+h.BoughtMS), money(s.Cost.Total), mark(r, unbeaten[i], most)))
	}
	return t
}

func frontierNote(runs []Run) string {
	best, fewer, most := 0, 0, mostEnded(runs)
	for i, on := range Unbeaten(runs) {
		if on {
			best++
		}
		if !runs[i].Baseline && runs[i].Summary.Jobs.Ended() < most {
			fewer++
		}
	}
	text := fmt.Sprintf("%d of %s marked %s: no other has a mean wait and a cost that are both as low.", best, plural(int64(len(runs)), "run"), markBest)
	if best == 1 {
		text = strings.Replace(text, " marked", " is marked", 1)
	} else {
		text = strings.Replace(text, " marked", " are marked", 1)
	}
	if fewer > 0 {
		text += fmt.Sprintf(" In %s fewer jobs ended than in others, so that they cannot be compared.", plural(int64(fewer), "run"))
	}
	return text
}

// Frontier writes the runs as one page that needs nothing else.
func Frontier(w io.Writer, runs []Run) error {
	p := struct {
		Title, Facts, Note string
		Runs               sheet
		Wide, Narrow       scatter
		Style              template.CSS
	}{Title: "Wait against cost", Runs: frontierSheet(runs), Note: frontierNote(runs), Style: template.CSS(styleText)}
	if len(runs) > 0 {
		s := &runs[0].Summary
		p.Title = fmt.Sprintf("Wait against cost of %s", named(s.Cluster, "a cluster"))
		p.Facts = fmt.Sprintf("%s, %s, %s", plural(int64(len(runs)), "run"), plural(s.Jobs.Total, "job"), named(s.Source, "no trace"))
	}
	p.Wide, p.Narrow = scatterOf(runs, 1000, 440), scatterOf(runs, 470, 360)
	out := bufio.NewWriter(w)
	if err := frontierPage.Execute(out, p); err != nil {
		return err
	}
	return out.Flush()
}

// byCost answers the places of runs from the cheapest to the dearest.
func byCost(runs []Run, chosen []bool) (order []int) {
	for i := range runs {
		if chosen[i] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(runs[a].Summary.Cost.Total, runs[b].Summary.Cost.Total), cmp.Compare(runs[a].Summary.Wait.Mean, runs[b].Summary.Wait.Mean))
	})
	return order
}

func about(r *Run) string {
	return fmt.Sprintf("%s: mean wait %s, cost %s", r.name(), short(cluster.Duration(r.Summary.Wait.Mean)), money(r.Summary.Cost.Total))
}
