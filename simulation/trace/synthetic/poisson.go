package synthetic

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// poissonModel is arrivals of a Poisson process, and exponential run times of one processor.
type poissonModel struct {
	plain
	// gap is the mean time between two submissions in milliseconds.
	gap, last float64
}

func newPoisson(o *Options) *poissonModel {
	m := &poissonModel{plain: newPlain(o, string(Poisson))}
	m.cycles = []*cycle{newCycle(o.Rhythm.slots(), o.Rhythm.days())}
	gap := float64(cluster.Hour) // where it is stretched
	switch {
	case o.Rate > 0:
		gap = float64(cluster.Hour) / o.Rate
	case o.Load > 0:
		gap = float64(o.Run) / (o.Load * float64(o.Processors))
	}
	m.gap = gap * float64(o.Together)
	return m
}

// slots answers the busy hours of models that have none of their own.
func (r Rhythm) slots() [slotsOfDay]float64 {
	if r == Even {
		return even()
	}
	return office()
}

func (m *poissonModel) next(number, first int64) submission {
	draw := m.seed.of(forGap, number)
	m.last += float64(m.gap * draw.exponential())
	return submission{number: number, first: first, at: m.last, count: m.together(number), user: m.user(number), size: 1}
}

func (m *poissonModel) job(s *submission, number int64, j *trace.Job) {
	draw := m.seed.of(forRun, number)
	run := cluster.Duration(round(draw.exponential() * float64(m.Run)))
	m.ask(s, number, max(run, 1), j)
}
