package synthetic

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// lublin is the model of Lublin and Feitelson: "The workload on parallel supercomputers: modeling
// the characteristics of rigid jobs", J. Parallel and Distributed Computing 63, 2003.
// Each class has arrivals of its own; the next job is of the class whose next arrival is first.
type lublin struct {
	plain
	classes []LublinClass
	// upcoming is when the next of each class comes, and gaps how many gaps are drawn.
	upcoming []float64
	gaps     []int64
}

func newLublin(o *Options) *lublin {
	classes := o.Classes
	if len(classes) == 0 {
		classes = []LublinClass{LublinBatch(o.Processors), LublinInteractive(o.Processors)}
	}
	var names []string
	for _, c := range classes {
		names = append(names, c.Name)
	}
	m := &lublin{plain: newPlain(o, names...), classes: classes, upcoming: make([]float64, len(classes)), gaps: make([]int64, len(classes))}
	for i, c := range classes {
		slots := even()
		if o.Rhythm != Even {
			slots = c.slots()
		}
		m.cycles = append(m.cycles, newCycle(slots, o.Rhythm.days()))
		m.pass(i)
	}
	return m
}

// pass goes to the next arrival of a class.
func (m *lublin) pass(class int) {
	draw := m.seed.of(forGap, m.gaps[class]<<8|int64(class))
	m.gaps[class]++
	gap := draw.gammaUpTo(m.classes[class].Gap, longestLogGap)
	m.upcoming[class] += float64(exp(gap) * float64(cluster.Second) * float64(m.Together))
}

// gammaUpTo draws until the number is not over the longest.
func (s *stream) gammaUpTo(g Gamma, longest float64) float64 {
	for {
		if x := s.gamma(g.Shape, g.Scale); x <= longest {
			return x
		}
	}
}

func (m *lublin) next(number, first int64) submission {
	class := 0
	for i, at := range m.upcoming {
		if at < m.upcoming[class] {
			class = i
		}
	}
	s := submission{
		number: number, first: first, at: m.upcoming[class], count: m.together(number),
		class: class, user: m.user(number), size: m.size(class, number), spacing: cluster.Second,
	}
	if s.count > 1 {
		s.typical = m.run(class, s.size, m.seed.of(forShapes, number))
	}
	m.pass(class)
	return s
}

// size answers how many processors the jobs of a submission have.
func (m *lublin) size(class int, number int64) int64 {
	c, draw := &m.classes[class], m.seed.of(forSize, number)
	kind, part, place := draw.uniform(), draw.uniform(), draw.uniform()
	if kind < c.Serial {
		return 1
	}
	log2 := c.Low + float64(place*(c.Medium-c.Low))
	if part >= c.MediumShare {
		log2 = c.Medium + float64(place*(c.High-c.Medium))
	}
	if kind < c.Serial+c.Power2 {
		log2 = round(log2)
	}
	return max(1, min(int64(round(pow2(log2))), m.Processors))
}

// run answers a run time in milliseconds.
func (m *lublin) run(class int, size int64, draw stream) float64 {
	c := &m.classes[class]
	g := c.Long
	if draw.uniform() < float64(c.MixSlope*float64(size))+c.Mix {
		g = c.Short
	}
	return float64(exp(draw.gammaUpTo(g, longestLogRun)) * float64(cluster.Second))
}

func (m *lublin) job(s *submission, number int64, j *trace.Job) {
	draw := m.seed.of(forRun, number)
	if s.typical > 0 {
		m.ask(s, number, alike(&draw, s.typical, 1.3), j)
		return
	}
	m.ask(s, number, whole(m.run(s.class, s.size, draw)), j)
}
