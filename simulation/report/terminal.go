package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
)

// Terminal prints the summary of a result for a terminal of so many columns; 0 means that there is no
// limit.
func Terminal(w io.Writer, r *simulation.Result, width int) error {
	s := Summarize(r)
	return s.Terminal(w, width)
}

// Terminal prints the summary for a terminal of so many columns; 0 means that there is no limit.
func (s *Summary) Terminal(w io.Writer, width int) error {
	c := &columns{width: width}
	c.paragraph(s.headline())
	if s.Stopped {
		c.paragraph("STOPPED before its end: what follows is how far it came.")
	}
	c.gap()
	s.jobTable(c)
	s.waitTable(c)
	groupTable(c, "QUEUE", s.Queues, noQueue)
	groupTable(c, "WAITED FOR", s.Causes, "nothing")
	s.hostTable(c)
	s.tokenTable(c)
	s.providerTable(c)
	c.paragraph(s.costLine())
	c.paragraph("Little's law " + s.Little.String() + ".")
	if s.Repairs > 0 {
		c.paragraph(fmt.Sprintf("The trace was mended in %s; the report lists them.", plural(s.Repairs, "place")))
	}
	return c.writeTo(w)
}

// headline says what was simulated.
func (s *Summary) headline() string {
	text := "cluster " + named(s.Cluster, "(no name)")
	if s.Label != "" {
		text += ", " + s.Label
	}
	text += fmt.Sprintf(": %s from %s, seed %d", plural(s.Jobs.Total, "job"), named(s.Source, "no trace"), s.Seed)
	if s.Ended > s.Began {
		text += fmt.Sprintf("; %s to %s UTC (%s), %s", moment(s.Began), moment(s.Ended), short(s.Ended.Sub(s.Began)), plural(s.Sessions, "session"))
	}
	return text
}

func (s *Summary) jobTable(c *columns) {
	j := s.Jobs
	c.row("JOBS", "DONE", "TIMED OUT", "RUNNING", "WAITING", "IMPOSSIBLE", "ABSENT", "REQUEUES")
	c.row(number(j.Total), number(j.Done), number(j.TimedOut), number(j.Running), number(j.Waiting), number(j.Impossible), number(j.Absent), number(j.Requeues))
	c.end()
}

func (s *Summary) waitTable(c *columns) {
	c.row("", "JOBS", "MEAN", "MEDIAN", "95 %", "99 %", "MAX")
	c.row(spreadCells("wait", s.Wait, Millis)...)
	if s.WaitSoFar.Count > 0 {
		c.row(spreadCells("wait so far", s.WaitSoFar, Millis)...)
	}
	c.row(spreadCells("bounded slowdown", s.Slowdown, Thousandths)...)
	c.end()
}

func spreadCells(name string, s Spread, u Unit) []string {
	cells := []string{name, number(s.Count)}
	for _, v := range []int64{s.Mean, s.Median, s.P95, s.P99, s.Max} {
		cells = append(cells, spreadCell(s, u, v))
	}
	return cells
}

// spreadCell shows one number of a spread; "-" where there are none.
func spreadCell(s Spread, u Unit, v int64) string {
	if s.Count == 0 {
		return "-"
	}
	return u.text(v)
}

// mostGroups is how many queues or causes a terminal shows.
const mostGroups = 20

func groupTable(c *columns, head string, groups []Group, none string) {
	if len(groups) == 0 {
		return
	}
	c.row(head, "JOBS", "WAITING", "MEAN", "MEDIAN", "95 %", "MAX", "SLOWDOWN", "95 %")
	shown := slices.Clone(groups)
	if len(shown) > mostGroups { // the largest, in their order
		least := slices.SortedFunc(slices.Values(groups), func(a, b Group) int { return int(b.Jobs.Total - a.Jobs.Total) })[mostGroups-1].Jobs.Total
		shown = slices.DeleteFunc(shown, func(g Group) bool { return g.Jobs.Total < least })
		shown = shown[:min(len(shown), mostGroups)]
	}
	for _, g := range shown {
		c.row(named(g.Name, none), number(g.Jobs.Total), number(g.Jobs.Waiting),
			spreadCell(g.Wait, Millis, g.Wait.Mean), spreadCell(g.Wait, Millis, g.Wait.Median), spreadCell(g.Wait, Millis, g.Wait.P95), spreadCell(g.Wait, Millis, g.Wait.Max),
			spreadCell(g.Slowdown, Thousandths, g.Slowdown.Mean), spreadCell(g.Slowdown, Thousandths, g.Slowdown.P95))
	}
	if more := len(groups) - len(shown); more > 0 {
		c.row(fmt.Sprintf("(and %d more)", more))
	}
	c.end()
}

func (s *Summary) hostTable(c *columns) {
	h := s.Hosts
	c.row("HOSTS", "ASKED", "MADE", "JOINED", "HOURS", "USED", "IDLE", "BUSY", "COST")
	owned := h.OwnedBusyMS + h.OwnedIdleMS
	if owned > 0 {
		c.row("owned", "", "", "", hours(owned), hours(h.OwnedBusyMS), hours(h.OwnedIdleMS), shareText(h.OwnedBusyMS, owned), "")
	}
	for _, t := range h.Templates {
		c.row(t.Name, number(t.Requested), number(t.Made), number(t.Joined), hours(t.BoughtMS), hours(t.UsedMS), hours(t.BoughtMS-t.UsedMS),
			shareText(t.UsedMS, t.BoughtMS), money(t.Cost))
	}
	if len(c.rows) == 1 {
		c.rows = nil
		return
	}
	if len(c.rows) > 2 {
		all, used := owned+h.BoughtMS, h.OwnedBusyMS+h.UsedMS
		c.row("all", number(h.Requested), number(h.Made), number(h.Joined), hours(all), hours(used), hours(all-used), shareText(used, all), money(s.Cost.Hosts))
	}
	c.end()
}

func (s *Summary) tokenTable(c *columns) {
	if len(s.Resources) == 0 {
		return
	}
	c.row("TOKENS", "LOANS", "UNITS", "PEAK", "HOURS", "USED", "IDLE", "IN USE", "COST")
	for _, f := range s.Resources {
		c.row(f.Name, number(f.Loans), number(f.UnitsGranted), number(f.MostBorrowed), hours(f.BoughtMS), hours(f.UsedMS), hours(f.BoughtMS-f.UsedMS),
			shareText(f.InUseMS, f.TotalMS()), money(f.Cost))
	}
	c.end()
}

func (s *Summary) providerTable(c *columns) {
	if len(s.Providers) == 0 {
		return
	}
	c.row("PROVIDER", "REQUESTS", "GRANTED", "PARTIAL", "REFUSED", "UNKNOWN", "FLAPS", "COST")
	for _, p := range s.Providers {
		c.row(p.Name, number(p.Requests), number(p.Granted), number(p.Partial), number(p.Refused), number(p.Unknown), number(p.Flaps), money(p.HostCost+p.TokenCost))
	}
	c.end()
	for _, p := range s.Providers {
		if len(p.Refusals) > 0 {
			c.paragraph(p.Name + " refused: " + p.refusalText())
		}
	}
	if c.refused(s) {
		c.gap()
	}
}

func (c *columns) refused(s *Summary) bool {
	return slices.ContainsFunc(s.Providers, func(p ProviderFigures) bool { return len(p.Refusals) > 0 })
}

// refusalText lists the refusals by reason.
func (p ProviderFigures) refusalText() string {
	parts := make([]string, len(p.Refusals))
	for i, r := range p.Refusals {
		parts[i] = fmt.Sprintf("%d for %s", r.Count, r.Reason)
	}
	return strings.Join(parts, ", ")
}

func (s *Summary) costLine() string {
	text := fmt.Sprintf("Cost %s: hosts %s, tokens %s", money(s.Cost.Total), money(s.Cost.Hosts), money(s.Cost.Tokens))
	if n := s.Jobs.Ended(); n > 0 {
		text += fmt.Sprintf("; %s a job that ended", money(cluster.Price(ratio(int64(s.Cost.Total), 1, n))))
	}
	return text + "."
}

// mostFigures is how many differences a terminal shows beyond those that every run has.
const mostFigures = 40

// Terminal prints the comparison for a terminal of so many columns; 0 means that there is no limit.
func (x *Comparison) Terminal(w io.Writer, width int) error {
	c := &columns{width: width}
	c.paragraph("A: " + x.A.String())
	c.paragraph("B: " + x.B.String())
	c.gap()
	x.figureTable(c)
	x.Jobs.terminal(c)
	c.paragraph(x.Changes.String())
	return c.writeTo(w)
}

// String says which run it is.
func (n RunName) String() string {
	text := "cluster " + named(n.Cluster, "(no name)")
	if n.Label != "" {
		text += ", " + n.Label
	}
	return fmt.Sprintf("%s, %s, seed %d", text, named(n.Source, "no trace"), n.Seed)
}

func (x *Comparison) figureTable(c *columns) {
	c.row("FIGURE", "A", "B", "CHANGE", "")
	shown, more := 0, 0
	for _, d := range x.Figures {
		if d.Change == 0 {
			continue
		}
		if shown++; shown > mostFigures {
			more++
			continue
		}
		c.row(d.Label, d.Unit.text(d.A), d.Unit.text(d.B), d.ChangeText(), d.Relative())
	}
	if shown == 0 {
		c.rows = nil
		c.paragraph("All figures are the same.")
		c.gap()
		return
	}
	if more > 0 {
		c.row(fmt.Sprintf("(and %d more)", more))
	}
	c.end()
}

// ChangeText answers the change with its sign.
func (d Difference) ChangeText() string {
	if d.Unit == Percentage { // a difference of shares is none of their own size
		return signed(d.Change, fixed(ratio(d.Change, 1, 10), 1)+" points")
	}
	return signed(d.Change, d.Unit.text(d.Change))
}

func signed(n int64, text string) string {
	if n > 0 {
		return "+" + text
	}
	return text
}

// Relative answers the change in percent of A; empty where that says nothing.
func (d Difference) Relative() string {
	if d.A == 0 || d.Change == 0 || d.Unit == Percentage {
		return ""
	}
	return signed(d.Change, percent(share(d.Change, d.A)))
}

func (j *JobChanges) terminal(c *columns) {
	c.paragraph(j.String())
	c.gap()
	if len(j.Largest) == 0 {
		return
	}
	c.row("JOB", "QUEUE", "SUBMITTED", "STARTED IN A", "STARTED IN B", "CHANGE")
	for _, l := range j.Largest {
		c.row(l.ID, named(l.Queue, noQueue), moment(l.Submit), moment(l.StartA), moment(l.StartB), signed(l.MoreMS, short(cluster.Duration(l.MoreMS))))
	}
	c.end()
}

// String says in one sentence how the starts changed.
func (j *JobChanges) String() string {
	parts := []string{
		fmt.Sprintf("%s started at the same time", plural(j.Same, "job")),
		fmt.Sprintf("%d earlier in B (%s together)", j.Earlier, short(cluster.Duration(j.EarlierMS))),
		fmt.Sprintf("%d later in B (%s together)", j.Later, short(cluster.Duration(j.LaterMS))),
	}
	for _, rare := range []struct {
		n    int64
		text string
	}{
		{j.OnlyStartedA, "started only in A"},
		{j.OnlyStartedB, "started only in B"},
		{j.NeverStarted, "in neither"},
		{j.OnlyA, "are in A's trace alone"},
		{j.OnlyB, "are in B's trace alone"},
	} {
		if rare.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", rare.n, rare.text))
		}
	}
	return strings.Join(parts, ", ") + "."
}

// String says where the changes of totals and hosts part.
func (f FirstChange) String() string {
	if f.Identical {
		return fmt.Sprintf("The sequences of changes of totals and hosts are identical (%s).", plural(f.CountA, "change"))
	}
	return fmt.Sprintf("The sequences of changes of totals and hosts (%d in A, %d in B) part at change %d: A has %s; B has %s.",
		f.CountA, f.CountB, f.Place, f.A.text(), f.B.text())
}

func (s *savedChange) text() string {
	if s == nil {
		return "ended"
	}
	return fmt.Sprintf("%s: %s from %s to %s (%s)", moment(s.At), s.Subject, s.Before, s.After, s.Cause)
}
