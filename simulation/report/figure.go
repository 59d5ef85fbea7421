package report

import (
	"strconv"

	"xce.internal/elastic/cluster"
)

// Unit says what a figure is a number of.
type Unit string

// Units of figures.
const (
	Number      Unit = "count"
	Millis      Unit = "ms"
	Thousandths Unit = "thousandths"
	UnitMillis  Unit = "unit_ms"      // host-, token-, job- or processor-milliseconds
	Percentage  Unit = "percent_x100" // hundredths of a percent
	Money       Unit = "millionths"   // of a currency unit
)

// Figure is one number of a summary: its name is stable, its label is for people.
type Figure struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Unit  Unit   `json:"unit"`
	Value int64  `json:"value"`
}

// Text answers the value as tables have it.
func (f Figure) Text() string { return f.Unit.text(f.Value) }

func (u Unit) text(n int64) string {
	switch u {
	case Millis:
		return short(cluster.Duration(n))
	case Thousandths:
		return factor(n)
	case UnitMillis:
		return hours(n) + " h"
	case Percentage:
		return percent(n)
	case Money:
		return money(cluster.Price(n))
	}
	return strconv.FormatInt(n, 10)
}

// Figures answers all numbers of s in one list, the general ones first; resources, queues and
// causes have theirs under their names, as in "resource.vcs.bought".
func (s *Summary) Figures() []Figure {
	list := append(s.jobFigures(), s.waitFigures()...)
	list = append(list, s.hostFigures()...)
	list = append(list, s.callFigures()...)
	for _, r := range s.Resources {
		list = append(list, r.figures()...)
	}
	for _, g := range s.Queues {
		list = append(list, g.figures("queue", "queue "+named(g.Name, noQueue))...)
	}
	for _, g := range s.Causes {
		list = append(list, g.figures("cause", "waited for "+g.Name)...)
	}
	return list
}

// noQueue stands for the queue of jobs that name none.
const noQueue = "(none)"

func (s *Summary) jobFigures() []Figure {
	return []Figure{
		{"jobs", "jobs", Number, s.Jobs.Total},
		{"jobs_done", "jobs done", Number, s.Jobs.Done},
		{"jobs_timed_out", "jobs ended by their limit", Number, s.Jobs.TimedOut},
		{"jobs_running", "jobs still running", Number, s.Jobs.Running},
		{"jobs_waiting", "jobs still waiting", Number, s.Jobs.Waiting},
		{"jobs_impossible", "jobs that can never run", Number, s.Jobs.Impossible},
		{"jobs_absent", "jobs that had not arrived", Number, s.Jobs.Absent},
		{"requeues", "requeues", Number, s.Jobs.Requeues},
		{"work", "processor time of jobs", UnitMillis, s.Jobs.WorkMS},
		{"duration", "from the first arrival to the end", Millis, int64(s.Ended.Sub(s.Began))},
	}
}

func (s *Summary) waitFigures() []Figure {
	return []Figure{
		{"wait_mean", "mean wait", Millis, s.Wait.Mean},
		{"wait_median", "median wait", Millis, s.Wait.Median},
		{"wait_p95", "95 % waited at most", Millis, s.Wait.P95},
		{"wait_p99", "99 % waited at most", Millis, s.Wait.P99},
		{"wait_max", "longest wait", Millis, s.Wait.Max},
		{"wait_so_far_max", "longest wait of who still waits", Millis, s.WaitSoFar.Max},
		{"slowdown_mean", "mean bounded slowdown", Thousandths, s.Slowdown.Mean},
		{"slowdown_median", "median bounded slowdown", Thousandths, s.Slowdown.Median},
		{"slowdown_p95", "95 % were slowed at most", Thousandths, s.Slowdown.P95},
		{"slowdown_p99", "99 % were slowed at most", Thousandths, s.Slowdown.P99},
		{"slowdown_max", "largest bounded slowdown", Thousandths, s.Slowdown.Max},
	}
}

func (s *Summary) hostFigures() []Figure {
	h := s.Hosts
	return []Figure{
		{"hosts_utilisation", "utilisation of hosts", Percentage, h.Utilisation},
		{"hosts_owned_utilisation", "utilisation of owned hosts", Percentage, h.OwnedUtilisation},
		{"hosts_requested", "elastic hosts asked for", Number, h.Requested},
		{"hosts_made", "elastic hosts made", Number, h.Made},
		{"hosts_joined", "elastic hosts joined", Number, h.Joined},
		{"hosts_bought", "host time bought", UnitMillis, h.BoughtMS},
		{"hosts_used", "host time used", UnitMillis, h.UsedMS},
		{"hosts_idle", "host time bought and idle", UnitMillis, h.BoughtMS - h.UsedMS},
		{"cost_hosts", "cost of hosts", Money, int64(s.Cost.Hosts)},
		{"cost_tokens", "cost of tokens", Money, int64(s.Cost.Tokens)},
		{"cost_total", "cost", Money, int64(s.Cost.Total)},
	}
}

func (s *Summary) callFigures() []Figure {
	c := s.called()
	return []Figure{
		{"requests", "requests to providers", Number, c.Requests},
		{"requests_granted", "requests granted whole", Number, c.Granted},
		{"requests_partial", "requests granted in part", Number, c.Partial},
		{"requests_refused", "requests refused", Number, c.Refused},
		{"requests_unknown", "requests with unknown outcome at first", Number, c.Unknown},
		{"flaps", "flaps", Number, c.Flaps},
		{"changes", "changes of totals and hosts", Number, s.Changes},
		{"sessions", "sessions", Number, s.Sessions},
		{"repairs", "repairs of the trace", Number, s.Repairs},
	}
}

func (f ResourceFigures) figures() []Figure {
	name, text := "resource."+f.Name+".", f.Name+": "
	return []Figure{
		{name + "utilisation", text + "utilisation", Percentage, f.Utilisation},
		{name + "most_borrowed", text + "most borrowed at once", Number, f.MostBorrowed},
		{name + "most_waiting", text + "most waited for at once", Number, f.MostWaiting},
		{name + "waiting", text + "token time waited for", UnitMillis, f.WaitingMS},
		{name + "loans", text + "loans", Number, f.Loans},
		{name + "units_granted", text + "units granted", Number, f.UnitsGranted},
		{name + "bought", text + "token time bought", UnitMillis, f.BoughtMS},
		{name + "used", text + "token time used", UnitMillis, f.UsedMS},
		{name + "idle", text + "token time bought and idle", UnitMillis, f.BoughtMS - f.UsedMS},
		{name + "cost", text + "cost", Money, int64(f.Cost)},
	}
}

func (g Group) figures(kind, text string) []Figure {
	name := kind + "." + g.Name + "."
	text += ": "
	return []Figure{
		{name + "jobs", text + "jobs", Number, g.Jobs.Total},
		{name + "jobs_waiting", text + "jobs still waiting", Number, g.Jobs.Waiting},
		{name + "wait_sum", text + "time waited", UnitMillis, g.Wait.Sum},
		{name + "wait_mean", text + "mean wait", Millis, g.Wait.Mean},
		{name + "wait_p95", text + "95 % waited at most", Millis, g.Wait.P95},
		{name + "slowdown_mean", text + "mean bounded slowdown", Thousandths, g.Slowdown.Mean},
	}
}
