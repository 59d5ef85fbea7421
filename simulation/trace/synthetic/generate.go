package synthetic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// submission is like jobs that one user submits together.
type submission struct {
	// number counts the submissions, and first the jobs before it.
	number, first int64
	// at is when, in milliseconds of the model's own clock since the start.
	at    float64
	count int64
	// class says which of the model's cycles the submission follows.
	class int
	user  int64
	// size is the number of processors of each job.
	size int64
	// typical is what the jobs' run times are spread around, in milliseconds; 0 where
	// each has one of its own.
	typical float64
	// shape is that of all the jobs, where they have one.
	shape *trace.Shape
	// limitless tells that the jobs have no time limit.
	limitless bool
	// habit tells that its user has such things done at the same time every day: when share of
	// the day's are done.
	habit bool
	share float64
	// spacing is the mean time between two of the jobs.
	spacing cluster.Duration
}

// model makes submissions one after the other, in the order of its own clock, and their jobs.
type model interface {
	// next answers the submission with that number, of which first jobs come before it.
	next(number, first int64) submission
	// job fills in run time, limit and shape of the job with that number.
	job(s *submission, number int64, j *trace.Job)
	// cycle maps the own clock of a class onto the real one.
	cycle(class int) *cycle
}

// Generate makes up a workload. Wrong options are answered as [cluster.Problems].
func Generate(o Options) (*trace.Trace, error) {
	if err := o.Validate().Err(); err != nil {
		return nil, err
	}
	source := o.source()
	o = o.Completed()
	m := newModel(&o)
	g := generation{Options: o, model: m, seed: seed(o.Seed)}
	if err := g.collect(); err != nil {
		return nil, err
	}
	if err := g.spread(); err != nil {
		return nil, err
	}
	g.place()
	return &trace.Trace{Source: source, Jobs: g.arrived()}, nil
}

func newModel(o *Options) model {
	switch o.Kind {
	case EDA:
		return newFarm(o)
	case Poisson:
		return newPoisson(o)
	case LongQueue:
		return newCampaigns(o)
	}
	return newLublin(o)
}

// placing is what of a submission says when it is.
type placing struct {
	at, share float64
	number    int64
	class     int32
	habit     bool
}

// generation is a trace that is being made.
type generation struct {
	Options
	model
	seed        seed
	submissions []placing
	jobs        []trace.Job // Submit is the time since the submission until they are placed
	// work is in processor seconds.
	work float64
	// upcoming is the submission whose jobs are made.
	upcoming submission
	// horizon is where the model's own clock stands at the end of the span: at the next
	// submission, or at the last one where the load makes the span.
	horizon float64
	// last is when the last job comes at the latest.
	last cluster.Time
}

// stretched tells whether the gaps are stretched to a span.
func (g *generation) stretched() bool {
	return g.Jobs > 0 && g.Span > 0 || g.Load > 0 && g.Kind != Poisson
}

// end answers when the span is over.
func (g *generation) end() cluster.Time { return g.Start.Add(g.Span) }

// enough tells whether there are all jobs.
func (g *generation) enough() bool {
	n := int64(len(g.jobs))
	return g.Jobs > 0 && n >= g.Jobs ||
		g.Jobs == 0 && g.stretched() && g.work >= g.target()
}

// collect makes submissions and jobs until there are enough, or the span is over.
func (g *generation) collect() error {
	if g.Jobs > 0 {
		g.jobs = make([]trace.Job, 0, g.Jobs)
	}
	for number := int64(0); ; number++ {
		g.upcoming = g.next(number, int64(len(g.jobs)))
		s := placing{g.upcoming.at, g.upcoming.share, number, int32(g.upcoming.class), g.upcoming.habit}
		if g.enough() || g.over(s.at) {
			if g.Span > 0 {
				g.horizon = s.at // the last gap is in the span too
			}
			return nil
		}
		g.horizon = s.at
		if !g.stretched() && g.Span > 0 && g.moment(&s, 1) >= g.end() {
			continue // another class has time left
		}
		g.submissions = append(g.submissions, s)
		g.fill()
		if n := g.foreseen(); n > mostJobs {
			return cluster.Problems{{
				Path: "span", What: fmt.Sprintf("some %.0f jobs would come in %s, and %d are possible", n, g.Span, mostJobs),
				Remedy: "make it shorter, or give fewer processors, less load or a lower rate",
			}}
		}
	}
}

// foreseen answers how many jobs there will be, where only the span says it, going by those
// that there are.
func (g *generation) foreseen() float64 {
	n := float64(len(g.jobs))
	switch {
	case g.Jobs > 0 || n < 100_000:
		return n
	case g.stretched():
		return n * max(1, g.target()/g.work)
	}
	return n * max(1, float64(g.Span)/g.horizon)
}

// target is the work that the load is of the span, in processor seconds.
func (g *generation) target() float64 {
	return g.Load * float64(g.Processors) * (float64(g.Span) / 1000)
}

// over tells whether no submission from there on is within the span, whatever its cycle.
func (g *generation) over(at float64) bool {
	return !g.stretched() && g.Span > 0 && at > float64(g.Span)+2*float64(weekLength)
}

// fill makes the jobs of the submission that was added last.
func (g *generation) fill() {
	s, after := &g.upcoming, 0.0
	for k := range s.count {
		number := s.first + k
		g.jobs = append(g.jobs, trace.Job{})
		j := &g.jobs[len(g.jobs)-1]
		g.job(s, number, j)
		if k > 0 {
			draw := g.seed.of(forSpacing, number)
			after += float64(draw.exponential() * float64(s.spacing))
		}
		j.Submit, j.Waited = cluster.Time(after), -1
		// The place in submissions, until jobs are placed.
		j.ID = int64(len(g.submissions)) - 1
		g.work += float64(float64(j.Shape.Processors()) * (float64(j.Run) / 1000))
		if g.enough() {
			return
		}
	}
}

// moment answers when a submission is, if the model's own clock is stretched so.
func (g *generation) moment(s *placing, stretch float64) cluster.Time {
	c := g.cycle(int(s.class))
	return max(c.time(c.clock(g.Start)+float64(s.at*stretch)), g.Start)
}

// spread finds the span where the load makes it, and until when jobs come at the latest.
func (g *generation) spread() error {
	length := g.horizon
	g.last = cluster.Time(math.MaxInt64)
	switch {
	case g.Span > 0:
		g.last = max(g.Start, g.end()-1)
		return nil
	case g.stretched():
		length = g.work / (g.Load * float64(g.Processors)) * 1000
	}
	if length > float64(longestMade) {
		return cluster.Problems{{
			Path: "jobs", What: fmt.Sprintf("they would come over more than %s", longestMade), Remedy: "ask for fewer jobs, more load or a higher rate",
		}}
	}
	if g.stretched() {
		g.Span = max(cluster.Duration(length), cluster.Second)
	}
	return nil
}

// place gives the submissions their times.
func (g *generation) place() {
	times := make([]cluster.Time, len(g.submissions))
	for i := range g.submissions {
		s := &g.submissions[i]
		stretch := 1.0
		if g.stretched() {
			stretch = g.cycle(int(s.class)).between(g.Start, g.end()) / g.horizon
		}
		times[i] = g.usual(s, g.moment(s, stretch))
		if g.stretched() {
			// Where nothing comes at the end, its moment is as well when something comes again.
			times[i] = min(times[i], g.end())
		}
	}
	for i := range g.jobs {
		j := &g.jobs[i]
		at := min(times[j.ID].Add(cluster.Duration(j.Submit)), g.last)
		if g.Kind != Poisson {
			at -= (at - g.Start) % cluster.Time(cluster.Second)
		}
		j.Submit = at
	}
}

// usual moves a submission to the time of the day at which its user has such things
// done, if he has a habit, and leaves some minutes of chance.
func (g *generation) usual(s *placing, at cluster.Time) cluster.Time {
	if !s.habit {
		return at
	}
	c, midnight := g.cycle(int(s.class)), at-(at-weekStart)%cluster.Time(dayLength)
	from, to := max(midnight, g.Start), midnight.Add(dayLength)
	if g.Span > 0 {
		to = min(to, g.end())
	}
	draw := g.seed.of(forHabit, s.number)
	late := cluster.Duration(draw.exponential() * float64(3*cluster.Minute))
	// Where nothing comes before some hour, rounding could answer the evening before.
	return max(c.time(c.clock(from)+float64(s.share*c.between(from, to))), from).Add(late)
}

// arrival is a job's time and its place among those that were made.
type arrival struct {
	at cluster.Time
	i  int
}

// arrived answers the jobs in the order of their times, numbered from 1.
func (g *generation) arrived() []trace.Job {
	byTime := func(a, b *trace.Job) bool { return a.Submit <= b.Submit }
	sorted := true
	for i := 1; i < len(g.jobs) && sorted; i++ {
		sorted = byTime(&g.jobs[i-1], &g.jobs[i])
	}
	jobs := g.jobs
	if !sorted {
		jobs = g.sorted()
	}
	for i := range jobs {
		jobs[i].ID = int64(i) + 1
	}
	return jobs
}

func (g *generation) sorted() []trace.Job {
	order := make([]arrival, len(g.jobs))
	for i := range g.jobs {
		order[i] = arrival{g.jobs[i].Submit, i}
	}
	slices.SortFunc(order, func(a, b arrival) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.i, b.i)) })
	jobs := make([]trace.Job, len(order))
	for i, a := range order {
		jobs[i] = g.jobs[a.i]
	}
	return jobs
}
