package report

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

// leastRun is the run time below which a slowdown is not divided by it: short jobs would have them
// without bound.
const leastRun = 10 * cluster.Second

// jobsOf answers the jobs with an outcome.
func jobsOf(r *simulation.Result) []trace.Job {
	if r.Trace == nil {
		return nil
	}
	return r.Trace.Jobs[:min(len(r.Trace.Jobs), len(r.Outcomes))]
}

// horizon is until when is known what happened.
func horizon(r *simulation.Result) cluster.Time {
	if r.Jobs != nil && r.Jobs.Len() > 0 {
		return r.Jobs.End
	}
	return r.Ended
}

func started(s simulation.State) bool { return s >= simulation.Running }

func ended(s simulation.State) bool { return s == simulation.Done || s == simulation.TimedOut }

// tookPart tells whether the cluster ever had the job.
func tookPart(s simulation.State) bool { return s >= simulation.Waiting }

// waitOf answers how long a job waited, if it has started.
func waitOf(j *trace.Job, o *simulation.Outcome) (int64, bool) {
	return int64(o.Start.Sub(j.Submit)), started(o.State)
}

// slowdownOf answers the bounded slowdown of a job in thousandths, if it has ended.
func slowdownOf(j *trace.Job, o *simulation.Outcome) (int64, bool) {
	if !ended(o.State) {
		return 0, false
	}
	run := o.End.Sub(o.Start)
	return max(1000, ratio(int64(o.End.Sub(j.Submit)), 1000, int64(max(run, leastRun)))), true
}

// procs is how many processors a job takes.
func procs(j *trace.Job) int64 {
	if j.Shape == nil {
		return 0
	}
	return max(j.Shape.Nodes, 1) * j.Shape.CPUs
}

func queue(j *trace.Job) string {
	if j.Shape == nil {
		return ""
	}
	return j.Shape.Queue
}

func user(j *trace.Job) string {
	if j.Shape == nil {
		return ""
	}
	return j.Shape.User
}

// causeName answers the text of a cause.
func causeName(r *simulation.Result, cause uint16) string {
	if int(cause) < len(r.Causes) {
		return r.Causes[cause]
	}
	return "nothing"
}

// division puts each job into one of some groups.
type division struct {
	names []string
	of    []int32 // by job
}

// byQueue divides the jobs by their queue, in the order of the queues' names.
func byQueue(r *simulation.Result) division {
	jobs := jobsOf(r)
	d := division{of: make([]int32, len(jobs))}
	groups, shapes := map[string]int32{}, map[*trace.Shape]int32{}
	for i := range jobs {
		if i > 0 && jobs[i].Shape == jobs[i-1].Shape {
			d.of[i] = d.of[i-1]
			continue
		}
		g, known := shapes[jobs[i].Shape]
		if !known {
			name := queue(&jobs[i])
			if g, known = groups[name]; !known {
				g = int32(len(d.names))
				groups[name] = g
				d.names = append(d.names, name)
			}
			shapes[jobs[i].Shape] = g
		}
		d.of[i] = g
	}
	return d.sorted()
}

// sorted brings the groups into the order of their names.
func (d division) sorted() division {
	order := make([]int32, len(d.names))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(d.names[a], d.names[b]) })
	names, place := make([]string, len(order)), make([]int32, len(order))
	for to, from := range order {
		names[to], place[from] = d.names[from], int32(to)
	}
	for i, g := range d.of {
		d.of[i] = place[g]
	}
	d.names = names
	return d
}

// byCause divides the jobs by what they waited for longest, in the order of Result.Causes.
func byCause(r *simulation.Result) division {
	jobs := jobsOf(r)
	d := division{names: r.Causes, of: make([]int32, len(jobs))}
	if len(d.names) == 0 {
		d.names = []string{"nothing"}
	}
	for i := range jobs {
		if c := int32(r.Outcomes[i].Cause); int(c) < len(d.names) {
			d.of[i] = c
		}
	}
	return d
}

// measure is a number that some jobs have.
type measure func(*trace.Job, *simulation.Outcome) (int64, bool)

// parts answers the numbers of the jobs by group, as parts of the buffer, which has room for all: one behind
// the other.
func (d division) parts(r *simulation.Result, m measure, buffer []int64) [][]int64 {
	begins := make([]int, len(d.names)+1)
	for _, g := range d.of {
		begins[g+1]++
	}
	for g := range d.names {
		begins[g+1] += begins[g]
	}
	ends := slices.Clone(begins)
	jobs := jobsOf(r)
	for i := range jobs {
		if v, has := m(&jobs[i], &r.Outcomes[i]); has {
			buffer[ends[d.of[i]]] = v
			ends[d.of[i]]++
		}
	}
	return d.together(buffer, begins, ends)
}

// together moves the parts of a buffer together, one behind the other.
func (d division) together(buffer []int64, begins, ends []int) [][]int64 {
	parts, at := make([][]int64, len(d.names)), 0
	for g := range parts {
		n := copy(buffer[at:], buffer[begins[g]:ends[g]])
		parts[g] = buffer[at : at+n]
		at += n
	}
	return parts
}

// integral answers the sum of a column over the time; 0 where there is none.
func integral(s *series.Series, column int) int64 {
	if s == nil || column >= len(s.Integral) {
		return 0
	}
	return s.Integral[column]
}

func most(s *series.Series, column int) int64 {
	if s == nil || column >= len(s.Max) {
		return 0
	}
	return s.Max[column]
}
