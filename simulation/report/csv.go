package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"xce.internal/elastic/cluster/plain"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
)

// Create makes the file of that name.
type Create func(name string) (io.WriteCloser, error)

// Into answers files in a folder, which must be there.
func Into(folder string) Create {
	return func(name string) (io.WriteCloser, error) { return os.Create(filepath.Join(folder, name)) }
}

// csvFile is a file of CSV: its columns, and what puts its rows out.
type csvFile struct {
	name    string
	columns []string
	rows    func(put func(cells ...string))
}

// CSV writes the result as the files that the package's doc lists.
func CSV(create Create, r *simulation.Result) error {
	s := Summarize(r)
	return s.CSV(create, r)
}

// CSV writes the result that the summary is of.
func (s *Summary) CSV(create Create, r *simulation.Result) error {
	for _, f := range s.csvFiles(r) {
		if err := f.write(create); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (f csvFile) write(create Create) (err error) {
	file, err := create(f.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := csv.NewWriter(file)
	_ = w.Write(f.columns) // w keeps its first error
	f.rows(func(cells ...string) {
		for i := range cells {
			cells[i] = plain.Cell(cells[i])
		}
		_ = w.Write(cells)
	})
	w.Flush()
	return w.Error()
}

func (s *Summary) csvFiles(r *simulation.Result) []csvFile {
	return []csvFile{
		{"summary.csv", []string{"name", "unit", "value"}, s.rows},
		{"jobs.csv", []string{"id", "submit", "start", "end", "wait_ms", "run_ms", "procs", "queue", "user", "state", "cause", "requeues"}, func(put func(...string)) { jobRows(r, put) }},
		{"resources.csv", []string{"resource", "time", "time_ms", "total", "owned", "borrowed", "lent", "in_use", "waiting"}, func(put func(...string)) { resourceRows(r, put) }},
		{"hosts.csv", []string{"time", "time_ms", "owned_busy", "owned_idle", "requested", "expected", "busy", "idle", "draining", "leaving"}, func(put func(...string)) { seriesRows(r.Hosts, put) }},
		{"queue.csv", []string{"time", "time_ms", "waiting", "running"}, func(put func(...string)) { seriesRows(r.Jobs, put) }},
		{"loans.csv", []string{"id", "provider", "resource", "units", "granted", "requested", "committed", "closed", "held_unit_ms", "cost_millionths", "why"}, func(put func(...string)) { loanRows(r, put) }},
		{"machines.csv", []string{"id", "template", "provider", "name", "requested", "expected", "joined", "left", "closed", "busy_ms", "cost_millionths", "why"}, func(put func(...string)) { machineRows(r, put) }},
		{"orders.csv", []string{"time", "do", "subject", "became"}, func(put func(...string)) { orderRows(r, put) }},
		{"changes.csv", []string{"time", "time_ms", "subject", "before", "after", "cause"}, func(put func(...string)) { changeRows(r, put) }},
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func (s *Summary) rows(put func(...string)) {
	for _, f := range s.Figures() {
		put(f.Name, string(f.Unit), number(f.Value))
	}
}

// stateNames are the names of the states of jobs, by state.
var stateNames = []string{"absent", "impossible", "waiting", "running", "done", "timed out"}

func stateName(s simulation.State) string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "state " + strconv.Itoa(int(s))
}

// jobRows leaves a wait or a run empty that has not ended.
func jobRows(r *simulation.Result, put func(...string)) {
	jobs := jobsOf(r)
	for i := range jobs {
		j, o := &jobs[i], &r.Outcomes[i]
		wait, run := "", ""
		if w, has := waitOf(j, o); has {
			wait = number(w)
		}
		if ended(o.State) {
			run = number(int64(o.End.Sub(o.Start)))
		}
		put(label(j), j.Submit.String(), o.Start.String(), o.End.String(), wait, run, number(procs(j)),
			queue(j), user(j), stateName(o.State), causeName(r, o.Cause), strconv.Itoa(int(o.Requeues)))
	}
}

func resourceRows(r *simulation.Result, put func(...string)) {
	for _, res := range r.Resources {
		if res.Series == nil {
			continue
		}
		for i := range res.Series.Len() {
			p := res.Series.Point(i)
			v := p.Values
			put(res.Name, p.At.String(), number(int64(p.At)), number(v[0]+v[1]-v[2]), number(v[0]), number(v[1]), number(v[2]), number(v[3]), number(v[4]))
		}
	}
}

func seriesRows(s *series.Series, put func(...string)) {
	if s == nil {
		return
	}
	for i := range s.Len() {
		p := s.Point(i)
		cells := []string{p.At.String(), number(int64(p.At))}
		for _, v := range p.Values {
			cells = append(cells, number(v))
		}
		put(cells...)
	}
}

func loanRows(r *simulation.Result, put func(...string)) {
	for _, l := range r.Loans {
		put(l.ID, l.Provider, l.Resource, number(l.Units), number(l.Granted), l.Requested.String(), l.Committed.String(), l.Closed.String(),
			number(l.Held), number(int64(l.Cost)), l.Why)
	}
}

func machineRows(r *simulation.Result, put func(...string)) {
	for _, m := range r.Machines {
		cells := []string{m.ID, m.Template, m.Provider, m.Name}
		for _, t := range []cluster.Time{m.Requested, m.Expected, m.Joined, m.Left, m.Closed} {
			cells = append(cells, t.String())
		}
		put(append(cells, number(m.Busy), number(int64(m.Cost)), m.Why)...)
	}
}

func orderRows(r *simulation.Result, put func(...string)) {
	for _, o := range r.Orders {
		put(o.At.String(), o.Do, o.Subject, o.Became)
	}
}

func changeRows(r *simulation.Result, put func(...string)) {
	for _, c := range r.Changes {
		put(c.At.String(), number(int64(c.At)), c.Subject, c.Before, c.After, c.Cause)
	}
}
