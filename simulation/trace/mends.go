package trace

import (
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// Limits of what is listed: of a rule's places, and of the faults for which a
// trace is refused.
const (
	mostPlaces = 5
	mostFaults = 20
	mostQuoted = 60 // bytes of a text that is quoted
)

// Refused is why a trace was not taken: its first faults, and how many more there are.
type Refused struct {
	Problems cluster.Problems
	More     int64
}

// Error lists the faults, a line each.
func (r *Refused) Error() string {
	text := "the trace is refused:\n  " + strings.ReplaceAll(r.Problems.Error(), "\n", "\n  ")
	if r.More > 0 {
		text += fmt.Sprintf("\n  and %d more", r.More)
	}
	return text
}

// mends counts what was mended, and collects what is refused.
type mends struct {
	file    string // that is read now
	refuse  [ruleCount]bool
	repairs [ruleCount]Repair
	// broken are the first records that could not be read, in case that none can be.
	broken, refused cluster.Problems
	more            int64
}

func newMends(o Options) (*mends, error) {
	m := &mends{}
	for i, r := range rules {
		m.repairs[i] = Repair{Rule: r.Name, What: r.Found + ": " + r.Done}
		m.refuse[i] = o.Strict
	}
	for _, name := range o.Refuse {
		r, err := ruleOf(name)
		if err != nil {
			return nil, err
		}
		m.refuse[r] = true
	}
	return m, nil
}

// mend counts a mended field of the record at a line. It makes no garbage once
// enough places are known.
func (m *mends) mend(r rule, line int64, field string, text []byte) {
	m.mendMany(r, 1, line, field, text)
}

// mendMany is mend where one record stands for many jobs.
func (m *mends) mendMany(r rule, n, line int64, field string, text []byte) {
	repair := &m.repairs[r]
	repair.Count += n
	if m.refuse[r] {
		m.fault(r, line, field, rules[r].Found, text)
	}
	if len(repair.Places) < mostPlaces {
		repair.Places = append(repair.Places, m.place(line, field)+quoted(text))
	}
}

// breakRow counts a record that cannot be read, and says why.
func (m *mends) breakRow(line int64, field, why, remedy string) {
	repair := &m.repairs[brokenRow]
	repair.Count++
	problem := cluster.Problem{Path: m.place(line, field), What: why, Remedy: remedy}
	if len(m.broken) < mostFaults {
		m.broken = append(m.broken, problem)
	}
	if m.refuse[brokenRow] {
		m.reject(problem)
	}
	if len(repair.Places) < mostPlaces {
		repair.Places = append(repair.Places, problem.Path+": "+why)
	}
}

func (m *mends) fault(r rule, line int64, field, why string, text []byte) {
	if len(m.refused) == mostFaults { // and no garbage
		m.more++
		return
	}
	m.reject(cluster.Problem{Path: m.place(line, field) + quoted(text), What: fmt.Sprintf("%s (%s)", why, rules[r].Name), Remedy: rules[r].Remedy})
}

func (m *mends) reject(p cluster.Problem) {
	if len(m.refused) == mostFaults {
		m.more++
		return
	}
	m.refused = append(m.refused, p)
}

func (m *mends) place(line int64, field string) string {
	at := fmt.Sprintf("%s:%d", m.file, line)
	if field != "" {
		at += " " + field
	}
	return at
}

func quoted(text []byte) string {
	switch {
	case len(text) == 0:
		return ""
	case len(text) > mostQuoted:
		return fmt.Sprintf(" %q...", text[:mostQuoted])
	}
	return fmt.Sprintf(" %q", text)
}

// result answers what was mended, or why the trace is refused.
func (m *mends) result(jobs int) ([]Repair, error) {
	if len(m.refused) > 0 {
		return nil, &Refused{Problems: m.refused, More: m.more}
	}
	if broken := m.repairs[brokenRow].Count; jobs == 0 && broken > 0 {
		return nil, &Refused{Problems: m.broken, More: broken - int64(len(m.broken))}
	}
	var found []Repair
	for _, r := range m.repairs {
		if r.Count > 0 {
			found = append(found, r)
		}
	}
	return found, nil
}
