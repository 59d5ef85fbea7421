package scheduling

import "xce.internal/elastic/cluster"

// Like is what jobs have in common that differ only in their ids and in when they came.
// It spares an engine to find out anew for every one of many jobs which others it is
// like.
type Like struct {
	class *class
	entry entry
	job   *cluster.Job
}

// Like answers what a job has in common with its like, for SubmitLike.
func (e *Engine) Like(job cluster.Job) *Like { return &Like{entry: entryOf(&job), job: &job} }

// SubmitLike queues a job that is as l was made of, but for its id and when it came.
func (e *Engine) SubmitLike(l *Like, id int64, submitted cluster.Time) {
	if l.class == nil || l.class.forgotten || l.class.alone || len(e.promised) > 0 {
		l.job.ID, l.job.Submitted = id, submitted
		l.class = e.submit(l.job)
		return
	}
	if l.class.world != e.worldNow() {
		e.fit(l.class)
	}
	l.entry.id, l.entry.submitted = id, submitted
	e.join(l.class, l.entry)
}
