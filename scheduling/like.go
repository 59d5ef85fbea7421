package scheduling

import "xce.internal/elastic/cluster"

// Like is what jobs have in common that differ only in their ids and in when they came.
// It spares an engine to find out anew for every one of many jobs which others it is
// like.
type Like struct {
	class *class
	entry entry
	spec  *cluster.JobSpec
	limit cluster.Duration
}

// Like answers what waiting jobs have in common for SubmitLike, which are as spec says but for their
// time limit. It reads spec as long as such jobs are submitted.
func (e *Engine) Like(spec *cluster.JobSpec, limit cluster.Duration) *Like {
	return &Like{spec: spec, limit: limit}
}

// SubmitLike queues a job that is as l says, with its id and when it came.
func (e *Engine) SubmitLike(l *Like, id int64, submitted cluster.Time) {
	if l.class == nil || l.class.forgotten || l.class.alone || len(e.promised) > 0 {
		job := cluster.Job{ID: id, JobSpec: *l.spec, State: cluster.JobWaiting, Submitted: submitted}
		job.TimeLimit = l.limit
		l.class, l.entry = e.submit(&job), entryOf(&job)
		return
	}
	if l.class.world != e.worldNow() {
		e.fit(l.class)
	}
	l.entry.id, l.entry.submitted = id, submitted
	e.join(l.class, l.entry)
}
