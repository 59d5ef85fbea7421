package synthetic

import (
	"fmt"
	"strconv"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// farm is an EDA farm as its profile has it: each submission is of one need, more
// often of those that have many jobs, and follows the hours of that need.
type farm struct {
	seed  seed
	needs []need
	// choice is which need a submission is of.
	choice urn
	// gap is the mean time between submissions in milliseconds.
	gap, last float64
}

// need is a Need made ready.
type need struct {
	*Need
	people, asks urn
	hours        *cycle
	// shapes are by ask and user.
	shapes map[[2]int64]*trace.Shape
	number int64
}

func newFarm(o *Options) *farm {
	profile := o.Profile
	if profile == nil {
		profile = builtIn()
	}
	m := &farm{seed: seed(o.Seed)}
	var jobs, submissions float64
	var weights []float64
	for i := range profile.Needs {
		n := &profile.Needs[i]
		asks := make([]float64, len(n.Asks))
		for k, a := range n.Asks {
			asks[k] = float64(a.Weight)
		}
		m.needs = append(m.needs, need{
			Need: n, people: people(n.Users), asks: newUrn(asks), hours: n.cycle(), shapes: map[[2]int64]*trace.Shape{}, number: int64(i),
		})
		often := float64(n.Weight) / float64(n.Together)
		weights = append(weights, often)
		jobs, submissions = jobs+float64(n.Weight), submissions+often
	}
	m.choice = newUrn(weights)
	m.gap = float64(dayLength) / float64(profile.JobsPerDay) * (jobs / submissions)
	return m
}

// builtIn answers the profile that is built in, which a test reads too.
func builtIn() *Profile {
	p, err := ReadProfile("built-in profile", edaProfile)
	if err != nil {
		panic(fmt.Sprintf("the built-in profile: %v", err))
	}
	return p
}

// cycle answers the busy hours and days of a need.
func (n *Need) cycle() *cycle {
	var slots [slotsOfDay]float64
	for i := range slots {
		slots[i] = float64(n.Otherwise)
	}
	for _, h := range n.Hours {
		from, _ := halfHour(h.From)
		to, _ := halfHour(h.To)
		if to <= from {
			to += slotsOfDay
		}
		for i := from; i < to; i++ {
			slots[i%slotsOfDay] = float64(h.Weight)
		}
	}
	weekend := float64(n.WeekendPercent) / 100
	return newCycle(slots, [7]float64{1, 1, 1, 1, 1, weekend, weekend})
}

func (m *farm) next(number, first int64) submission {
	gap, draw, who := m.seed.of(forGap, number), m.seed.of(forSubmission, number), m.seed.of(forUser, number)
	m.last += float64(gap.exponential() * m.gap)
	s := submission{number: number, first: first, at: m.last, class: m.choice.draw(&draw)}
	n := &m.needs[s.class]
	s.user, s.spacing = int64(n.people.draw(&who)), n.Spacing
	s.count = min(draw.several(n.Together), n.MostTogether)
	s.shape = n.shape(int64(n.asks.draw(&draw)), s.user)
	s.limitless = n.LimitFactor == 0 || draw.below(100) < n.NoLimitPercent
	if s.habit = n.Habit; n.Habit {
		habit := m.seed.of(forHabit, -1-(n.number<<32|s.user))
		s.share = habit.uniform()
	}
	return s
}

// several answers how many jobs are submitted at once: half to one and a half times as many
// as usual, each alike, where they are many, and any number where they are few.
func (s *stream) several(usual int64) int64 {
	if usual >= 100 {
		return usual/2 + s.below(usual+1)
	}
	return s.geometric(float64(usual))
}

func (n *need) shape(ask, user int64) *trace.Shape {
	key := [2]int64{ask, user}
	if s := n.shapes[key]; s != nil {
		return s
	}
	a := &n.Asks[ask]
	s := &trace.Shape{
		User: n.Team + strconv.FormatInt(user+1, 10), Group: n.Team, Application: n.Name,
		JobSpec: cluster.JobSpec{
			Name: n.Name, Queue: n.Queue, Priority: n.Priority, CPUs: a.CPUs, MemoryMB: a.MemoryMB, Countables: a.Countables,
			Constraint: a.Constraint, Tokens: a.Tokens, Alternatives: a.Alternatives,
		},
	}
	n.shapes[key] = s
	return s
}

func (m *farm) job(s *submission, number int64, j *trace.Job) {
	n, draw := &m.needs[s.class], m.seed.of(forRun, number)
	j.Run, j.Shape = n.Run.draw(&draw), s.shape
	if !s.limitless {
		j.Limit = limit(m.seed.of(forLimit, number), Usual, j.Run, n.LimitFactor)
	}
}

// draw answers a run time. Beyond its bounds it is drawn anew, a few times.
func (r RunTime) draw(draw *stream) cluster.Duration {
	d := cluster.Duration(0)
	for range 20 {
		d = whole(draw.lognormal(float64(r.Median), r.Spread))
		if d >= r.Shortest && d <= r.Longest {
			return d
		}
	}
	return max(r.Shortest, min(d, r.Longest))
}

func (m *farm) cycle(class int) *cycle { return m.needs[class].hours }
