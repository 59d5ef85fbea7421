package report

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
)

// Little is the check of Little's law: what the counts of jobs add up to over the time must be what
// the jobs themselves add up to. All sums are in job-milliseconds.
//
// A job's wait goes to its last start, so the earlier runs of one that was requeued count as waiting
// in WaitSum and as running in RunningIntegral; the sums of both must be equal all the same.
type Little struct {
	WaitingIntegral int64 `json:"waiting_integral"`
	WaitSum         int64 `json:"wait_sum"`
	RunningIntegral int64 `json:"running_integral"`
	RunSum          int64 `json:"run_sum"`
	Requeued        int64 `json:"requeued"` // jobs
	Holds           bool  `json:"holds"`
}

func littleOf(r *simulation.Result) Little {
	l := Little{WaitingIntegral: integral(r.Jobs, 0), RunningIntegral: integral(r.Jobs, 1)}
	end, jobs := horizon(r), jobsOf(r)
	for i := range jobs {
		o := &r.Outcomes[i]
		if !tookPart(o.State) {
			continue
		}
		here, run := lives(jobs[i].Submit, o, end)
		l.RunSum += int64(run)
		l.WaitSum += int64(here - run)
		if o.Requeues > 0 {
			l.Requeued++
		}
	}
	waits, runs := l.WaitSum-l.WaitingIntegral, l.RunSum-l.RunningIntegral
	l.Holds = waits+runs == 0 && (waits == 0 || l.Requeued > 0 && waits > 0)
	return l
}

// lives answers how long a job was in the cluster, and how long its last run took.
func lives(submit cluster.Time, o *simulation.Outcome, end cluster.Time) (here, run cluster.Duration) {
	last := end
	if ended(o.State) {
		last = o.End
	}
	if started(o.State) {
		run = last.Sub(o.Start)
	}
	return last.Sub(submit), run
}

// String says whether the law holds, or what the difference is.
func (l Little) String() string {
	if l.Holds && l.Requeued == 0 {
		return fmt.Sprintf("holds: %s job-hours waited and %s run, by counts and by jobs alike", hours(l.WaitSum), hours(l.RunSum))
	}
	if l.Holds {
		return fmt.Sprintf("holds: %s job-hours in the cluster, by counts and by jobs alike (%s of them are earlier runs of %s)",
			hours(l.WaitSum+l.RunSum), hours(l.WaitSum-l.WaitingIntegral), plural(l.Requeued, "requeued job"))
	}
	return fmt.Sprintf("does NOT hold: waiting is %s job-hours by counts and %s by jobs (%d ms apart), running %s and %s (%d ms apart); the simulator is wrong, please report it",
		hours(l.WaitingIntegral), hours(l.WaitSum), l.WaitSum-l.WaitingIntegral, hours(l.RunningIntegral), hours(l.RunSum), l.RunSum-l.RunningIntegral)
}
