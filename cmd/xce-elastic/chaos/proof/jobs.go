package proof

import (
	"cmp"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// run is one run of a job by its own lines; an end of 0 stands for none that it wrote. Stopped is when its host told
// that it had stopped it so that it can wait again: such a job writes no end.
type run struct {
	job, requeues int64
	begin, end    cluster.Time
	stopped       cluster.Time
	machine       string
	tokens        map[string]int64
}

// runs joins the lines of jobs; those that make no sense are for jobs to tell.
func (c *court) runs() (runs []run) {
	for _, m := range c.Marks {
		i := slices.IndexFunc(runs, func(r run) bool {
			return r.job == m.Job && r.requeues == m.Requeues && r.machine == m.Machine && r.end == 0
		})
		switch {
		case m.What == "begin":
			runs = append(runs, run{job: m.Job, requeues: m.Requeues, begin: m.At, machine: m.Machine, tokens: m.Tokens})
		case i >= 0:
			runs[i].end = m.At
		}
	}
	stops := c.stops()
	for i, r := range runs {
		if r.end == 0 {
			runs[i].stopped = stops[stop{r.job, r.requeues}]
		}
	}
	return runs
}

// stop names a run that was stopped.
type stop struct{ job, requeues int64 }

// stops answers when hosts told that they had stopped jobs.
func (c *court) stops() map[stop]cluster.Time {
	stops := map[stop]cluster.Time{}
	for _, r := range c.Records {
		if r.Job != nil && r.Job.State == "waiting" && r.Job.Requeues > 0 && strings.HasPrefix(r.Actor, "host/") {
			stops[stop{r.Job.ID, r.Job.Requeues - 1}] = r.At
		}
	}
	return stops
}

// jobs checks that each job that was handed in ran to its end exactly once, and before that only where it is
// marked as requeued and its machine is no more.
func (c *court) jobs() {
	named := map[string]int{}
	rows := map[int64]int64{}
	for _, j := range c.Jobs {
		named[j.Name]++
		rows[j.ID] = j.Requeues
		if j.State != "done" {
			c.violated(Jobs, c.Ended, subject(j.ID), "it is %s: %s", j.State, j.Why)
		}
	}
	for _, s := range c.Submitted {
		if named[s.Name] != 1 {
			c.violated(Jobs, c.Ended, s.Name, "it was handed in once, and there are %d jobs of that name", named[s.Name])
		}
	}
	byJob := map[int64][]run{}
	for _, r := range c.runs() {
		byJob[r.job] = append(byJob[r.job], r)
	}
	for id, runs := range byJob {
		requeues, known := rows[id]
		if !known {
			c.violated(Jobs, runs[0].begin, subject(id), "it ran, and the controller does not know it")
			continue
		}
		c.history(id, requeues, runs)
	}
	for id := range rows {
		if len(byJob[id]) == 0 {
			c.violated(Jobs, c.Ended, subject(id), "it never ran")
		}
	}
}

// history checks the runs of one job.
func (c *court) history(id, requeues int64, runs []run) {
	gone := c.goneAt()
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.begin, b.begin) })
	times, ends := map[int64]int{}, 0
	for i, r := range runs {
		times[r.requeues]++
		switch {
		case times[r.requeues] > 1:
			c.violated(Jobs, r.begin, subject(id), "it ran again without being requeued, %d times so far", times[r.requeues])
		case r.requeues > requeues:
			c.violated(Jobs, r.begin, subject(id), "it ran as requeued %d times, and was requeued %d times", r.requeues, requeues)
		}
		if r.requeues == requeues && r.end > 0 {
			ends++
		}
		over := cmp.Or(r.end, r.stopped, gone[r.machine])
		switch {
		case over == 0:
			c.violated(Jobs, r.begin, subject(id), "it began on %s and never ended, and the machine was not ended", r.machine)
		case i+1 < len(runs) && runs[i+1].begin < over:
			c.violated(Jobs, runs[i+1].begin, subject(id), "it began on %s while it still ran on %s", runs[i+1].machine, r.machine)
		}
	}
	if ends != 1 {
		c.violated(Jobs, c.Ended, subject(id), "it was requeued %d times and ended %d times in its last run", requeues, ends)
	}
}

// usage holds what running jobs use of each resource, by their own lines, against what the cluster owns and its
// lenders lend, at every moment.
func (c *court) usage() {
	var events []event
	has, used, reserved := map[string]int64{}, map[string]int64{}, map[string]bool{}
	check := func(at cluster.Time, resource, about, after string) {
		if used[resource] > has[resource] {
			c.violated(Twice, at, about, "jobs use %d %s and %d are there, after %s", used[resource], resource, has[resource], after)
		}
	}
	owned := map[string]int64{}
	for _, r := range c.Records {
		if r.Shared != nil && r.Kind == "resource" {
			events = append(events, event{r.At, 0, func() {
				has[r.Subject] += r.Shared.Owned - owned[r.Subject]
				owned[r.Subject] = r.Shared.Owned
			}})
		}
	}
	for _, lender := range c.Lenders {
		for _, l := range lender.Lines {
			units, rank := given(l, reserved), 0
			if units < 0 {
				rank = 2
			}
			events = append(events, event{l.At, rank, func() {
				has[l.Resource] += units
				check(l.At, l.Resource, l.Request, lender.Name+" noted "+l.Change)
			}})
		}
	}
	gone := c.goneAt()
	for _, r := range c.runs() {
		over := cmp.Or(r.end, r.stopped, gone[r.machine], c.Ended)
		for resource, units := range r.tokens {
			events = append(events,
				event{r.begin, 3, func() {
					used[resource] += units
					check(r.begin, resource, subject(r.job), "it began")
				}},
				event{over, 1, func() { used[resource] -= units }})
		}
	}
	follow(events)
}
