package trace

import (
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
)

// liveRules are what is made of jobs that a live controller still has. They need no
// refusal: nothing is wrong with such jobs.
var liveRules = [...]Repair{
	{Rule: "running", What: "the job had not ended: taken as if it ended then"},
	{Rule: "waiting", What: "the job waits: taken as if it will run for its time limit"},
	{Rule: "no-run-time", What: "the job waits and has no time limit, so that it is not known how long it would run: left out"},
	{Rule: rules[neverStarted].Name, What: rules[neverStarted].Found + ": " + rules[neverStarted].Done},
}

const (
	liveRunning = iota
	liveWaiting
	liveUnknown
	liveNever
)

// OfJobs answers the history of a live controller as a trace: jobs that have
// ended ran as long as they did, those that run still as long as they have by now,
// and those that wait as long as their time limit allows. What a waiting job
// without limit would take is not known, so it is left out. Elements of an array
// that have not begun are jobs of their own.
func OfJobs(source string, jobs []cluster.Job, now cluster.Time) *Trace {
	t := &Trace{Source: source}
	l := &liveReader{t: t, now: now, repairs: liveRules}
	for i := range jobs {
		l.job(&jobs[i])
	}
	t.Sort()
	for _, r := range l.repairs {
		if r.Count > 0 {
			t.Repairs = append(t.Repairs, r)
		}
	}
	return t
}

type liveReader struct {
	t       *Trace
	now     cluster.Time
	shapes  shapeSet
	repairs [len(liveRules)]Repair
}

func (l *liveReader) note(rule int, n int64, job *cluster.Job) {
	r := &l.repairs[rule]
	r.Count += n
	if len(r.Places) < mostPlaces {
		r.Places = append(r.Places, fmt.Sprintf("job %d", job.ID))
	}
}

func (l *liveReader) job(job *cluster.Job) {
	j := Job{ID: job.ID, Submit: max(job.Submitted, job.NotBefore), Limit: job.TimeLimit, Waited: -1}
	if job.Element > 0 {
		j.Name = fmt.Sprintf("%d[%d]", job.ID, job.Element)
	}
	if job.Started > 0 {
		j.Waited = max(job.Started.Sub(j.Submit), 0)
	}
	switch {
	case job.State.Ended() && job.Started > 0:
		j.Run = job.Ended.Sub(job.Started)
	case job.State == cluster.JobRunning:
		j.Run = l.now.Sub(job.Started)
		l.note(liveRunning, 1, job)
	case job.State.Ended():
		l.note(liveNever, 1, job)
		return
	case job.TimeLimit == 0:
		l.note(liveUnknown, waitingElements(job), job)
		return
	default:
		l.waiting(job, j)
		return
	}
	j.Run = min(max(j.Run, 1), longestRun)
	l.add(job, j)
}

// waiting adds a job that waits, or each element of its array that does.
func (l *liveReader) waiting(job *cluster.Job, j Job) {
	l.note(liveWaiting, waitingElements(job), job)
	j.Run = min(job.TimeLimit, longestRun)
	for i := range waitingElements(job) {
		if job.Array > 0 {
			j.Name = fmt.Sprintf("%d[%d]", job.ID, job.Begun+i+1)
		}
		l.add(job, j)
	}
}

func waitingElements(job *cluster.Job) int64 {
	if job.Array == 0 {
		return 1
	}
	return max(job.Array-job.Begun, 0)
}

func (l *liveReader) add(job *cluster.Job, j Job) {
	s := Shape{JobSpec: job.JobSpec, User: job.User}
	s.TimeLimit, s.NotBefore, s.Array = 0, 0, 0
	s.After = slices.Clone(s.After)
	j.Shape = l.shapes.one(&s)
	l.t.Jobs = append(l.t.Jobs, j)
}
