package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// verdict is why jobs wait, and what would have to change.
type verdict struct {
	code        Code
	why, change string
}

func unknownResource(name string) verdict {
	return verdict{
		Never, fmt.Sprintf("needs %s, which is no longer a shared resource", name),
		fmt.Sprintf("configure %s, or submit the job without it", name),
	}
}

func overCeiling(name string, units, ceiling int64) verdict {
	return verdict{
		Never, fmt.Sprintf("needs %d %s; the limits allow %d at most", units, name, ceiling),
		fmt.Sprintf("own more %s, or raise its max_borrowed", name),
	}
}

func unknownCountable(name string, n int64) verdict {
	return verdict{
		Never, fmt.Sprintf("needs %d %s on each host; no host and no template has any", n, name),
		fmt.Sprintf("a host or template with %s must be added", name),
	}
}

func badConstraint(err error) verdict {
	return verdict{Never, "has a constraint that cannot be read: " + err.Error(), "submit it with another constraint"}
}

func waitsForJob(id int64) verdict {
	return verdict{WaitJobs, fmt.Sprintf("starts only after job %d has ended", id), fmt.Sprintf("job %d must end", id)}
}

func waitsForStart(at cluster.Time) verdict {
	return verdict{WaitStart, "starts at " + at.Stamp() + " at the earliest", "that time must come"}
}

// belowThreshold explains a job that asks for nothing yet.
func (s *session) belowThreshold(c *class, lacks verdict) verdict {
	var parts []string
	for _, t := range s.e.thresholds {
		if slices.Contains(c.thresholds, t.scope()) {
			where := "for " + t.Resource
			if t.Queue != "" {
				where = "in queue " + t.Queue
			}
			parts = append(parts, fmt.Sprintf("%d jobs must have waited %s %s (now %d)", t.Jobs, t.Wait, where, s.waitingFor(t)))
		}
	}
	return verdict{WaitMore, lacks.why + "; more is asked for only when enough jobs have waited", strings.Join(parts, ", or ")}
}

func behindHosts(first int64) verdict {
	return verdict{WaitBehind, fmt.Sprintf("waits behind job %d, which waits for a host", first), fmt.Sprintf("job %d must start", first)}
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
