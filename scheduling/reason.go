package scheduling

import (
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// verdict is why jobs wait, and what would have to change.
type verdict struct {
	code        Code
	why, change string
	resource    string // of which tokens lack, or are on their way
}

// codeOnly answers a verdict without words, for sessions that nobody asks why.
func codeOnly(code Code) verdict { return verdict{code: code} }

func unknownResource(name string) verdict {
	return verdict{
		code: Never, why: fmt.Sprintf("needs %s, which is no longer a shared resource", name),
		change: fmt.Sprintf("configure %s, or submit the job without it", name), resource: name,
	}
}

func overCeiling(r *Resource, units, ceiling int64) verdict {
	change := "own more " + r.Name
	if r.Elastic != nil {
		change += ", or raise its max_borrowed"
	}
	return verdict{Never, fmt.Sprintf("needs %d %s; the limits allow %d at most", units, r.Name, ceiling), change, r.Name}
}

func unknownCountable(name string, n int64) verdict {
	return verdict{
		code: Never, why: fmt.Sprintf("needs %d %s on each host; no host and no template has any", n, name),
		change: fmt.Sprintf("a host or template with %s must be added", name),
	}
}

func badConstraint(err error) verdict {
	return verdict{code: Never, why: "has a constraint that cannot be read: " + err.Error(), change: "submit it with another constraint"}
}

func waitsForJobs(ids []int64) verdict {
	return verdict{code: WaitJobs, why: "starts only after the end of " + jobList(ids), change: jobList(ids) + " must end"}
}

func waitsInRing(ids []int64) verdict {
	return verdict{
		code: Never, why: fmt.Sprintf("starts only after the end of %s, which %s, over others, for itself", jobList(ids), waits(ids)),
		change: "one of those jobs must be submitted without waiting",
	}
}

func waitsForStart(at cluster.Time) verdict {
	return verdict{code: WaitStart, why: "starts at " + at.String() + " at the earliest", change: "that time must come"}
}

// belowThreshold explains a job that asks for nothing yet: in each scope in which
// it counts, one threshold must be met.
func (s *session) belowThreshold(c *class, lacks verdict) verdict {
	if !s.words {
		return codeOnly(WaitMore)
	}
	change := ""
	for _, sc := range c.thresholds {
		if text, met := s.scopeText(sc); !met {
			change = joined(", and ", change, text)
		}
	}
	return verdict{WaitMore, lacks.why + "; more is asked for only when enough jobs have waited", change, lacks.resource}
}

// scopeText says what would meet one of the thresholds of a scope, and tells
// whether one is met.
func (s *session) scopeText(sc scope) (text string, met bool) {
	for i, t := range s.e.thresholds {
		if t.scope() != sc {
			continue
		}
		n := s.waited[i]
		met = met || n >= t.Jobs
		where := "for " + t.Resource
		if t.Queue != "" {
			where = "in queue " + t.Queue
		}
		jobs := fmt.Sprintf("%d jobs", t.Jobs)
		if t.Jobs == 1 {
			jobs = "1 job"
		}
		text = joined(", or ", text, fmt.Sprintf("%s must have waited %s %s (now %d)", jobs, t.Wait, where, n))
	}
	return text, met
}

func behindHosts(first int64) verdict {
	return verdict{code: WaitBehind, why: fmt.Sprintf("waits behind job %d, which waits for a host", first), change: fmt.Sprintf("job %d must start", first)}
}

// joined joins a and b, leaving out what is empty.
func joined(sign, a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + sign + b
}

func waits(jobs []int64) string {
	if len(jobs) == 1 {
		return "waits"
	}
	return "wait"
}

// jobList names the first jobs of a list in words.
func jobList(jobs []int64) string {
	const most = 5
	names := make([]string, 0, most)
	for _, id := range jobs[:min(len(jobs), most)] {
		names = append(names, fmt.Sprintf("%d", id))
	}
	switch {
	case len(jobs) == 1:
		return "job " + names[0]
	case len(jobs) > most:
		return fmt.Sprintf("jobs %s and %d more", strings.Join(names, ", "), len(jobs)-most)
	}
	return "jobs " + strings.Join(names, ", ")
}
