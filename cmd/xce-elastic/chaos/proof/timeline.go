package proof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

// entry is one line of a timeline.
type entry struct {
	at      cluster.Time
	subject string
	text    string
}

// Timeline tells what happened around a violation, in order: all that its subject went through, and of the rest
// what was within `around` of it.
func Timeline(e evidence.Evidence, v Violation, around cluster.Duration) (lines []string) {
	all := entries(e)
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	for _, t := range all {
		own := t.subject == v.Subject || strings.Contains(t.text, v.Subject+" ")
		near := t.at >= v.At.Add(-around) && t.at <= v.At.Add(around)
		if !own && !near {
			continue
		}
		mark := " "
		if own {
			mark = "*"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", mark, clock(t.at), t.text))
	}
	return lines
}

// entries are all that is known to have happened.
func entries(e evidence.Evidence) (all []entry) {
	add := func(at cluster.Time, subject, format string, args ...any) {
		all = append(all, entry{at, subject, fmt.Sprintf(format, args...)})
	}
	for _, f := range e.Faults {
		add(f.At, f.Target, "FAULT   %s", f.Text)
		if f.Until > 0 {
			add(f.Until, f.Target, "HEALED  %s", f.Text)
		}
	}
	for _, r := range e.Records {
		add(r.At, r.Subject, "LEDGER  %d %s %s by %s: %s%s", r.Revision, r.Kind, r.Subject, r.Actor, r.Why, columns(r))
	}
	for _, l := range e.Lenders {
		for _, line := range l.Lines {
			add(line.At, line.Request, "LENDER  %s %s %s: %d %s, %d free", l.Name, line.Change, line.Request, line.Units, line.Resource, line.Free)
		}
	}
	for _, m := range e.Makers {
		for _, line := range m.Lines {
			add(line.At, line.Request, "MAKER   %s %s %s: %s", m.Name, line.Change, line.Request, line.Instance)
		}
	}
	for _, m := range e.Marks {
		add(m.At, subject(m.Job), "JOB     %s %s (%s, requeued %d) on %s, tokens %v", subject(m.Job), m.What, m.Name, m.Requeues, m.Machine, m.Tokens)
	}
	return all
}

// columns shows what a record wrote.
func columns(r evidence.Record) string {
	switch {
	case r.Loan != nil:
		return fmt.Sprintf(" [%s: borrowed %d, recalled %d, fenced %d, returned %d; total %d > %d]",
			r.Loan.State, r.Loan.Borrowed, r.Loan.Recalled, r.Loan.Fenced, r.Loan.Returned, r.TotalBefore, r.TotalAfter)
	case r.Host != nil:
		return fmt.Sprintf(" [%s: %s]", r.Host.State, r.Host.Instance)
	case r.Job != nil:
		return fmt.Sprintf(" [%s on %q, requeued %d]", r.Job.State, r.Job.Host, r.Job.Requeues)
	case r.Lease != nil:
		return fmt.Sprintf(" [%s, epoch %d]", name(*r.Lease), r.Lease.Epoch)
	}
	return ""
}
