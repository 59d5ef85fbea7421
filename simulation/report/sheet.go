package report

import (
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
)

// sheet is a table of a page. Columns after so many texts are numbers.
type sheet struct {
	ID, Title, Note string
	Head            []string
	// Texts are how many columns at the left are texts, Tail how many at the right.
	Texts, Tail int
	Rows        [][]string
	More        string
}

// Left tells whether a column is text.
func (s sheet) Left(column int) bool { return column < s.Texts || column >= len(s.Head)-s.Tail }

// sheets answers the tables with something in them, in the order of the page.
func sheets(r *simulation.Result, s *Summary, rows int) []sheet {
	all := []sheet{
		summarySheet(s), groupSheet("queues", "By queue", "queue", s.Queues, noQueue), groupSheet("causes", "By what was waited for longest", "waited for", s.Causes, "nothing"),
		costSheet(s), providerSheet(s), loanSheet(r, rows), machineSheet(r, rows), orderSheet(r), repairSheet(r),
	}
	return slices.DeleteFunc(all, func(s sheet) bool { return len(s.Rows) == 0 })
}

func summarySheet(s *Summary) sheet {
	t := sheet{ID: "summary", Title: "Summary", Head: []string{"figure", "value"}, Texts: 1}
	general := append(s.jobFigures(), s.waitFigures()...)
	general = append(append(general, s.hostFigures()...), s.callFigures()...)
	for _, f := range general {
		if f.Value != 0 || f.Name == "jobs" || f.Name == "wait_mean" || f.Name == "cost_total" {
			t.Rows = append(t.Rows, []string{f.Label, f.Text()})
		}
	}
	return t
}

func groupSheet(id, title, head string, groups []Group, none string) sheet {
	t := sheet{
		ID: id, Title: title, Texts: 1,
		Head: []string{head, "jobs", "ended", "waiting", "impossible", "job-hours waited", "mean wait", "median", "95 %", "99 %", "max", "mean slowdown", "median", "95 %", "processor-hours"},
	}
	for _, g := range groups {
		row := []string{named(g.Name, none), number(g.Jobs.Total), number(g.Jobs.Ended()), number(g.Jobs.Waiting), number(g.Jobs.Impossible), hours(g.Wait.Sum)}
		for _, v := range []int64{g.Wait.Mean, g.Wait.Median, g.Wait.P95, g.Wait.P99, g.Wait.Max} {
			row = append(row, spreadCell(g.Wait, Millis, v))
		}
		for _, v := range []int64{g.Slowdown.Mean, g.Slowdown.Median, g.Slowdown.P95} {
			row = append(row, spreadCell(g.Slowdown, Thousandths, v))
		}
		t.Rows = append(t.Rows, append(row, hours(g.Jobs.WorkMS)))
	}
	return t
}

func costSheet(s *Summary) sheet {
	t := sheet{
		ID: "cost", Title: "Cost", Texts: 1, Note: "Hours are host-hours and token-hours. Bought is what was paid for, used what jobs took of it.",
		Head: []string{"what", "asked for", "granted", "joined", "hours owned", "of these used", "hours bought", "of these used", "idle", "used", "cost"},
	}
	h := s.Hosts
	if owned := h.OwnedBusyMS + h.OwnedIdleMS; owned > 0 {
		t.Rows = append(t.Rows, []string{"hosts of the cluster", "", "", "", hours(owned), hours(h.OwnedBusyMS), "", "", "", shareText(h.OwnedBusyMS, owned), ""})
	}
	for _, f := range h.Templates {
		t.Rows = append(t.Rows, []string{
			"hosts of template " + f.Name, number(f.Requested), number(f.Made), number(f.Joined), "", "",
			hours(f.BoughtMS), hours(f.UsedMS), hours(f.BoughtMS - f.UsedMS), shareText(f.UsedMS, f.BoughtMS), money(f.Cost),
		})
	}
	for _, f := range s.Resources {
		t.Rows = append(t.Rows, []string{
			"tokens of " + f.Name, number(f.UnitsAsked), number(f.UnitsGranted), "", hours(f.OwnedMS), hours(f.InUseMS - f.UsedMS),
			hours(f.BoughtMS), hours(f.UsedMS), hours(f.BoughtMS - f.UsedMS), shareText(f.InUseMS, f.TotalMS()), money(f.Cost),
		})
	}
	if len(t.Rows) > 0 {
		t.Rows = append(t.Rows, []string{"all", "", "", "", "", "", "", "", "", "", money(s.Cost.Total)})
	}
	return t
}

func providerSheet(s *Summary) sheet {
	t := sheet{
		ID: "providers", Title: "Providers", Texts: 1, Tail: 1,
		Note: "Unknown are outcomes that were not known at first; flaps are requests soon after the like was given back.",
		Head: []string{"provider", "requests", "granted", "in part", "refused", "unknown", "flaps", "cost of hosts", "cost of tokens", "refusals by reason"},
	}
	for _, p := range s.Providers {
		t.Rows = append(t.Rows, []string{
			p.Name, number(p.Requests), number(p.Granted), number(p.Partial), number(p.Refused), number(p.Unknown), number(p.Flaps),
			money(p.HostCost), money(p.TokenCost), named(p.refusalText(), "-"),
		})
	}
	return t
}

func loanSheet(r *simulation.Result, rows int) sheet {
	t := sheet{
		ID: "loans", Title: "Loans", Texts: 3, Tail: 1,
		Head: []string{"loan", "resource", "provider", "units", "granted", "requested", "committed", "closed", "token-hours held", "cost", "why"},
	}
	for _, l := range r.Loans[:min(len(r.Loans), rows)] {
		t.Rows = append(t.Rows, []string{
			l.ID, l.Resource, l.Provider, number(l.Units), number(l.Granted), moment(l.Requested), moment(l.Committed), moment(l.Closed), hours(l.Held), money(l.Cost), l.Why,
		})
	}
	return t.rest(len(r.Loans), "loans.csv")
}

func machineSheet(r *simulation.Result, rows int) sheet {
	t := sheet{
		ID: "machines", Title: "Elastic hosts", Texts: 4, Tail: 1,
		Head: []string{"host", "name", "template", "provider", "requested", "made", "joined", "left", "closed", "hours with jobs", "cost", "why"},
	}
	for _, m := range r.Machines[:min(len(r.Machines), rows)] {
		t.Rows = append(t.Rows, []string{
			m.ID, m.Name, m.Template, m.Provider, moment(m.Requested), moment(m.Expected), moment(m.Joined), moment(m.Left), moment(m.Closed), hours(m.Busy), money(m.Cost), m.Why,
		})
	}
	return t.rest(len(r.Machines), "machines.csv")
}

// rest says how many rows of all are not there.
func (s sheet) rest(all int, file string) sheet {
	if n := all - len(s.Rows); n > 0 {
		s.More = fmt.Sprintf("%d more are not shown; %s has all.", n, file)
	}
	return s
}

func orderSheet(r *simulation.Result) sheet {
	t := sheet{ID: "orders", Title: "Orders of the operator", Texts: 4, Head: []string{"at", "order", "subject", "what became of it"}}
	for _, o := range r.Orders {
		t.Rows = append(t.Rows, []string{moment(o.At), o.Do, o.Subject, o.Became})
	}
	return t
}

func repairSheet(r *simulation.Result) sheet {
	t := sheet{
		ID: "repairs", Title: "Repairs of the trace", Texts: 1, Tail: 2, Note: "Nothing was changed silently. A rule's flag refuses such jobs instead.",
		Head: []string{"rule", "count", "what was found and done", "first places"},
	}
	if r.Trace == nil {
		return t
	}
	for _, x := range r.Trace.Repairs {
		t.Rows = append(t.Rows, []string{x.Rule, number(x.Count), x.What, strings.Join(x.Places, "; ")})
	}
	return t
}

// card is one of the figures at the head of a page.
type card struct{ Name, Value, Note string }

func cards(s *Summary) []card {
	j := s.Jobs
	all := []card{{"jobs ended", number(j.Ended()), "of " + number(j.Total) + leftText(j)}}
	wait := card{"mean wait", spreadCell(s.Wait, Millis, s.Wait.Mean), "no job has started"}
	slowed := card{"bounded slowdown", spreadCell(s.Slowdown, Thousandths, s.Slowdown.Mean), "no job has ended"}
	if s.Wait.Count > 0 {
		wait.Note = fmt.Sprintf("median %s, 95 %% at most %s", Millis.text(s.Wait.Median), Millis.text(s.Wait.P95))
	}
	if s.Slowdown.Count > 0 {
		slowed.Note = fmt.Sprintf("median %s, 95 %% at most %s", Thousandths.text(s.Slowdown.Median), Thousandths.text(s.Slowdown.P95))
	}
	all = append(all, wait, slowed)
	h := s.Hosts
	if whole := h.OwnedBusyMS + h.OwnedIdleMS + h.BoughtMS; whole > 0 {
		all = append(all, card{"hosts in use", percent(h.Utilisation), fmt.Sprintf("%s h of %s h", hours(h.OwnedBusyMS+h.UsedMS), hours(whole))})
	}
	if len(s.Resources) > 0 {
		all = append(all, tokenCard(s))
	}
	cost := card{"cost", money(s.Cost.Total), fmt.Sprintf("hosts %s, tokens %s", money(s.Cost.Hosts), money(s.Cost.Tokens))}
	little := card{"Little's law", "holds", "counts and jobs agree"}
	if !s.Little.Holds {
		little.Value, little.Note = "does not hold", "see below"
	}
	return append(all, cost, little)
}

// leftText says what became of the jobs that have not ended.
func leftText(j JobFigures) string {
	text := ""
	for _, x := range []struct {
		n    int64
		name string
	}{{j.TimedOut, "by their limit"}, {j.Waiting, "wait"}, {j.Running, "run"}, {j.Impossible, "impossible"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.name)
		}
	}
	return text
}

// tokenCard shows the resource that was used most of its total.
func tokenCard(s *Summary) card {
	busiest := s.Resources[0]
	for _, f := range s.Resources {
		if f.Utilisation > busiest.Utilisation {
			busiest = f
		}
	}
	c := card{"tokens in use", shareText(busiest.InUseMS, busiest.TotalMS()), busiest.Name}
	if n := len(s.Resources) - 1; n > 0 {
		c.Note = fmt.Sprintf("%s, the most of %d", busiest.Name, n+1)
	}
	return c
}

// span says from when to when the run went.
func span(s *Summary) string {
	if s.Ended <= s.Began {
		return ""
	}
	return fmt.Sprintf("%s to %s UTC, %s", moment(s.Began), moment(s.Ended), short(cluster.Duration(s.Ended-s.Began)))
}
