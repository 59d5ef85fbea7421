package scheduling

import "xce.internal/elastic/cluster"

// Like is what jobs have in common that differ only in their ids, in when they came and in how
// long they may run. It spares an engine to find out anew for every one of many jobs which
// others it is like.
type Like struct {
	spec  *cluster.JobSpec
	class *class // of the last one
	key   classKey
	entry entry
}

// Like answers what waiting jobs have in common for SubmitLike, which are as spec says but for their
// time limits. It reads spec as long as such jobs are submitted.
func (e *Engine) Like(spec *cluster.JobSpec) *Like { return &Like{spec: spec} }

// SubmitLike queues a job that is as l says, with its id, its time limit and when it came.
func (e *Engine) SubmitLike(l *Like, id int64, submitted cluster.Time, limit cluster.Duration) {
	if len(e.promised) > 0 || !l.knows(limit) {
		job := l.job(id, submitted, limit)
		if len(e.promised) > 0 || mayNotStart(&job) {
			e.submit(&job)
			return
		}
		l.meet(e, &job)
	}
	if l.class.world != e.worldNow() {
		e.fit(l.class)
	}
	l.entry.id, l.entry.submitted = id, submitted
	e.join(l.class, l.entry)
}

// knows tells whether the class of the last one is that of one with a time limit.
func (l *Like) knows(limit cluster.Duration) bool {
	return l.class != nil && l.key.limit == limit && !l.class.forgotten
}

// job answers one of the jobs.
func (l *Like) job(id int64, submitted cluster.Time, limit cluster.Duration) cluster.Job {
	job := cluster.Job{ID: id, JobSpec: *l.spec, State: cluster.JobWaiting, Submitted: submitted}
	job.TimeLimit = limit
	return job
}

// meet finds the class of the next one.
func (l *Like) meet(e *Engine, job *cluster.Job) {
	if l.class == nil || l.key.footprint.forgotten {
		l.key, l.entry = e.keyOf(job), entryOf(job)
	}
	l.key.limit = job.TimeLimit
	l.class = e.classBy(l.key, job)
}
