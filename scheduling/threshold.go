package scheduling

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// scope is a queue or a resource for which there are thresholds.
type scope struct{ queue, resource string }

func (t Threshold) scope() scope { return scope{t.Queue, t.Resource} }

// scopesOf answers the scopes with thresholds in which a job counts.
func (e *Engine) scopesOf(job *cluster.Job) []scope {
	var scopes []scope
	for _, t := range e.thresholds {
		counts := t.Queue != "" && t.Queue == job.Queue || t.Resource != "" && needsResource(job, t.Resource)
		if counts && !slices.Contains(scopes, t.scope()) {
			scopes = append(scopes, t.scope())
		}
	}
	return scopes
}

func needsResource(job *cluster.Job, name string) bool {
	return job.Tokens[name] > 0 || slices.ContainsFunc(job.Alternatives, func(a map[string]int64) bool { return a[name] > 0 })
}

// metScopes answers whether a class may ask for more: in each scope in which it
// counts, one threshold is met by the jobs that wait.
func (s *session) metScopes() func(*class) bool {
	if len(s.e.thresholds) == 0 {
		return func(*class) bool { return true }
	}
	met := map[scope]bool{}
	s.waited = s.waited[:0]
	for _, t := range s.e.thresholds {
		n := s.waitingFor(t)
		s.waited = append(s.waited, n)
		met[t.scope()] = met[t.scope()] || n >= t.Jobs
	}
	return func(c *class) bool {
		return !slices.ContainsFunc(c.thresholds, func(sc scope) bool { return !met[sc] })
	}
}

// waitingFor counts the jobs in the scope of a threshold that have waited long enough.
func (s *session) waitingFor(t Threshold) (n int64) {
	for c := range s.e.lineup.all() {
		if !slices.Contains(c.thresholds, t.scope()) {
			continue
		}
		for _, e := range c.queue[c.head:] {
			if s.now.Sub(e.submitted) >= t.Wait {
				n += e.count
			}
		}
	}
	return n
}
