package synthetic

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// campaigns is users of a large machine, each of whom has few kinds of jobs and submits hundreds
// or thousands of one at once. Some submissions are of a single job.
type campaigns struct {
	plain
	last float64
}

const (
	// singles is the share of submissions that are one job.
	singles = 0.3
	// shapesOfUser is how many kinds of jobs a user has at most.
	shapesOfUser = 8
	// The sizes of submissions of several jobs.
	usualCampaign  = 140
	campaignSpread = 3.2
	mostCampaign   = 4000
	// mostOfMachine is for how long a submission would fill the whole machine at most.
	mostOfMachine = 24 * cluster.Hour
	// The run times that kinds of jobs have typically.
	usualRun    = 90 * cluster.Minute
	runSpread   = 3.0
	longestRun  = 72 * cluster.Hour
	campaignGap = 2 * cluster.Hour // mean between submissions where no load says it
	largestLog2 = 10               // log2 of the largest size
)

func newCampaigns(o *Options) *campaigns {
	m := &campaigns{plain: newPlain(o, "campaign")}
	m.cycles = []*cycle{newCycle(o.Rhythm.slots(), o.Rhythm.days())}
	return m
}

func (m *campaigns) next(number, first int64) submission {
	gap, draw := m.seed.of(forGap, number), m.seed.of(forSubmission, number)
	m.last += float64(gap.exponential() * float64(campaignGap))
	s := submission{number: number, first: first, at: m.last, count: 1, user: m.user(number), spacing: cluster.Second / 2}
	several := draw.uniform() >= singles
	kind := m.seed.of(forShapes, s.user*shapesOfUser+draw.below(shapesOfUser))
	s.size, s.typical = m.size(&kind), kind.lognormalUpTo(float64(usualRun), runSpread, float64(longestRun))
	if several {
		count := draw.lognormalUpTo(usualCampaign, campaignSpread, mostCampaign)
		fill := float64(m.Processors) * float64(mostOfMachine) / (float64(s.size) * s.typical)
		s.count = max(1, int64(min(count, fill)))
	}
	return s
}

// lognormalUpTo draws until the number is not over the most.
func (s *stream) lognormalUpTo(median, spread, most float64) float64 {
	for {
		if x := s.lognormal(median, spread); x <= most {
			return x
		}
	}
}

// size answers a power of two, the small ones more often.
func (m *campaigns) size(kind *stream) int64 {
	size := int64(1) << min(int64(kind.exponential()*2.6), largestLog2)
	return min(size, max(m.Processors/4, 1))
}

func (m *campaigns) job(s *submission, number int64, j *trace.Job) {
	draw := m.seed.of(forRun, number)
	run := min(alike(&draw, s.typical, 1.5), whole(2*float64(longestRun)))
	m.ask(s, number, run, j)
}
