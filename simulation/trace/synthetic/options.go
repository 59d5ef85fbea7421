package synthetic

import (
	"cmp"
	"fmt"
	"strconv"

	"xce.internal/elastic/cluster"
)

// Kind is a kind of workload.
type Kind string

// Kinds of workloads.
const (
	Lublin    Kind = "lublin"
	EDA       Kind = "eda"
	Poisson   Kind = "poisson"
	LongQueue Kind = "long-queue"
)

// Kinds are all of them.
var Kinds = []Kind{Lublin, EDA, Poisson, LongQueue}

// Rhythm says which hours and days are busy; empty means the kind's own.
type Rhythm string

// Rhythms.
const (
	Even Rhythm = "even" // none: day and night alike
	Day  Rhythm = "day"  // busy hours, and days that are alike
	Week Rhythm = "week" // busy hours, and a quiet weekend
)

// Estimates says how time limits come about; empty means [Usual].
type Estimates string

// Estimates.
const (
	None   Estimates = "none"   // no time limits
	Exact  Estimates = "exact"  // the run times
	Factor Estimates = "factor" // between once and Options.LimitFactor times the run time, each alike
	Usual  Estimates = "usual"  // as Factor, and then up to a length that people write, such as 4h
)

// Options say what is to be made up. Of Jobs, Span and Load two at most are given, since
// they make the third; the zero value of each other one is the kind's own.
type Options struct {
	Kind Kind
	Seed uint64
	// Jobs is how many there are, and Span over how long they come.
	Jobs int64
	Span cluster.Duration
	// Load is the offered load: the work of all jobs, as a share of what
	// Processors could do over the span. The gaps are stretched to it; under poisson,
	// it sets the rate. 0 means as many jobs per hour as the kind has by itself.
	Load float64
	// Start is when the cluster is switched on. Busy hours are by UTC.
	Start cluster.Time
	// Processors are those of the machine; under eda they are only the measure of Load.
	Processors int64
	// HostCPUs splits jobs of more processors over hosts of so many cpus, in equal parts;
	// 0 leaves each job on one host.
	HostCPUs int64
	Rhythm   Rhythm
	// Together is how many like jobs are submitted at once on average; under eda and
	// long-queue the kind has its own way.
	Together int64
	// Users is how many there are, some of them busier than others; under eda the profile says it.
	Users int64
	// Queues take jobs by their time limits, under eda the profile says it.
	Queues    []Queue
	Estimates Estimates
	// LimitFactor is how many times the run time a limit is at most.
	LimitFactor int64

	// Classes are those of the Lublin model; none means the two published ones, sized for Processors.
	Classes []LublinClass
	// Profile is what an EDA farm does; nil means the built-in one.
	Profile *Profile
	// Rate is how many jobs come per hour and Run how long they run on average, under poisson.
	Rate float64
	Run  cluster.Duration
}

// Queue is a queue and the longest time limit that it takes; 0 is no limit.
type Queue struct {
	Name    string
	Longest cluster.Duration
}

// Limits of what is made up.
const (
	mostJobs       = 100_000_000
	mostProcessors = 10_000_000
	mostUsers      = 100_000
	mostTogether   = 100_000
	mostFactor     = 1000
	longestSpan    = 10 * 366 * dayLength
	// longestMade is over how long jobs come at most where no span is given.
	longestMade = 100 * 366 * dayLength
	// lastStart is in 2200, as far as times are read anywhere.
	lastStart = cluster.Time(230 * 366 * dayLength)
)

type problems struct{ cluster.Problems }

func (ps *problems) add(path, what, remedy string) {
	ps.Problems = append(ps.Problems, cluster.Problem{Path: path, What: what, Remedy: remedy})
}

func (ps *problems) within(path string, n, least, most int64) {
	if n < least || n > most {
		ps.add(path, fmt.Sprintf("%d is not possible", n), fmt.Sprintf("write a whole number from %d to %d", least, most))
	}
}

func (ps *problems) number(path string, x, least, most float64) {
	if !(x >= least && x <= most) {
		ps.add(path, fmt.Sprintf("%s is not possible", number(x)), fmt.Sprintf("write a number from %s to %s", number(least), number(most)))
	}
}

func (ps *problems) name(path, name string) {
	if !cluster.ValidName(name) {
		ps.add(path, fmt.Sprintf("name %q is not valid", name), "use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit")
	}
}

func (ps *problems) length(path string, d, longest cluster.Duration) {
	if d < 0 || d > longest {
		ps.add(path, fmt.Sprintf("%s is not possible", d), fmt.Sprintf("write a length of time up to %s", longest))
	}
}

// oneOf demands one of some words; empty is the kind's own.
func oneOf[T ~string](ps *problems, path string, word T, known ...T) {
	for _, k := range known {
		if word == k || word == "" {
			return
		}
	}
	ps.add(path, fmt.Sprintf("there is no %q", word), fmt.Sprintf("write one of %s", list(known)))
}

func list[T ~string](words []T) string {
	text := ""
	for i, w := range words {
		if i > 0 {
			text += ", "
		}
		text += string(w)
	}
	return text
}

// Validate names all that is wrong with the options, by the names of the flags.
func (o Options) Validate() cluster.Problems {
	var ps problems
	if o.Kind == "" {
		ps.add("kind", "there is none", "write one of "+list(Kinds))
	}
	oneOf(&ps, "kind", o.Kind, Kinds...)
	oneOf(&ps, "rhythm", o.Rhythm, Even, Day, Week)
	oneOf(&ps, "estimates", o.Estimates, None, Exact, Factor, Usual)
	ps.within("jobs", o.Jobs, 0, mostJobs)
	ps.length("span", o.Span, longestSpan)
	ps.within("processors", o.Processors, 0, mostProcessors)
	ps.within("host-cpus", o.HostCPUs, 0, mostProcessors)
	ps.within("users", o.Users, 0, mostUsers)
	ps.within("together", o.Together, 0, mostTogether)
	ps.within("limit-factor", o.LimitFactor, 0, mostFactor)
	ps.length("run", o.Run, 366*dayLength)
	if o.Start < 0 || o.Start > lastStart {
		ps.add("start", "the time is before 1970 or after 2200", "write a time such as 2026-01-05")
	}
	o.extent(&ps)
	o.queues(&ps)
	o.elsewhere(&ps)
	for i, class := range o.Classes {
		class.validate(&ps, fmt.Sprintf("classes[%d]", i))
	}
	if o.Profile != nil {
		ps.Problems = append(ps.Problems, o.Profile.Validate()...)
	}
	return ps.Problems
}

// extent checks how many jobs there are over how long.
func (o Options) extent(ps *problems) {
	ps.number("load", o.Load, 0, 100)
	ps.number("rate", o.Rate, 0, 1e9)
	switch {
	case o.Load > 0 && o.Rate > 0:
		ps.add("load", "the rate is given too, and each makes the other", "give one of them")
	case o.Load > 0 && o.Jobs > 0 && o.Span > 0:
		ps.add("load", "jobs and span are given too, and make it", "give two of jobs, span and load")
	case o.Rate > 0 && o.Jobs > 0 && o.Span > 0:
		ps.add("rate", "jobs and span are given too, and make it", "give two of jobs, span and rate")
	case o.Load > 0 && o.Processors == 0 && o.Kind == EDA:
		ps.add("processors", "there are none, and load is a share of them", "say how many cpus the farm has")
	}
}

func (o Options) queues(ps *problems) {
	for i, q := range o.Queues {
		at := fmt.Sprintf("queue[%d]", i)
		ps.name(at, q.Name)
		ps.length(at, q.Longest, longestSpan)
		last := i == len(o.Queues)-1
		switch {
		case last && q.Longest > 0:
			ps.add(at, "the last queue has a longest time limit, and longer jobs have no queue", "add a queue without one")
		case !last && (q.Longest == 0 || i > 0 && q.Longest <= o.Queues[i-1].Longest):
			ps.add(at, "no job would ever come to a later queue", "order them by their longest time limits, the one without last")
		}
	}
}

// elsewhere refuses what the kind would not heed.
func (o Options) elsewhere(ps *problems) {
	unheeded := func(path string, given bool, kinds string) {
		if given {
			ps.add(path, fmt.Sprintf("kind %s does not heed it", o.Kind), "leave it out; it is for "+kinds)
		}
	}
	eda := o.Kind == EDA
	unheeded("profile", o.Profile != nil && !eda, "eda")
	unheeded("classes", len(o.Classes) > 0 && o.Kind != Lublin, "lublin")
	unheeded("rate", o.Rate != 0 && o.Kind != Poisson, "poisson")
	unheeded("run", o.Run != 0 && o.Kind != Poisson, "poisson")
	unheeded("together", o.Together != 0 && (eda || o.Kind == LongQueue), "lublin and poisson; a profile has it per kind of need")
	perNeed := "other kinds; a profile has it per kind of need"
	unheeded("users", eda && o.Users != 0, perNeed)
	unheeded("queue", eda && len(o.Queues) > 0, perNeed)
	unheeded("rhythm", eda && o.Rhythm != "", perNeed)
	unheeded("host-cpus", eda && o.HostCPUs != 0, perNeed)
	unheeded("estimates", eda && o.Estimates != "", perNeed)
	unheeded("limit-factor", eda && o.LimitFactor != 0, perNeed)
	unheeded("limit-factor", !eda && o.LimitFactor != 0 && (o.Estimates == None || o.Estimates == Exact), "estimates factor and usual")
}

// number answers a number as people write it.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Defaults of the options.
const (
	defaultJobs   = 10_000
	defaultSpan   = 14 * dayLength
	longQueueJobs = 450_000
	longQueueLoad = 0.88
	poissonLoad   = 0.8
	defaultUsers  = 50
	defaultFactor = 4
	defaultRun    = cluster.Hour
	lublinSize    = 128
	longQueueSize = 8192
	poissonSize   = 16
	defaultStart  = cluster.Time(1767571200000) // 2026-01-05, a Monday
)

// Completed answers the options with what the kind has by itself.
func (o Options) Completed() Options {
	o.Start = cmp.Or(o.Start, defaultStart)
	o.Users = cmp.Or(o.Users, defaultUsers)
	o.Estimates = cmp.Or(o.Estimates, Usual)
	o.LimitFactor = cmp.Or(o.LimitFactor, defaultFactor)
	o.Together = cmp.Or(o.Together, 1)
	both := o.Jobs > 0 && o.Span > 0
	jobs := int64(defaultJobs)
	switch o.Kind {
	case Lublin:
		o.Processors = cmp.Or(o.Processors, lublinSize)
		o.Rhythm = cmp.Or(o.Rhythm, Day)
	case Poisson:
		o.Processors = cmp.Or(o.Processors, poissonSize)
		o.Rhythm = cmp.Or(o.Rhythm, Even)
		o.Run = cmp.Or(o.Run, defaultRun)
		if o.Rate == 0 && !both {
			o.Load = cmp.Or(o.Load, poissonLoad)
		}
	case LongQueue:
		o.Processors = cmp.Or(o.Processors, longQueueSize)
		o.Rhythm = cmp.Or(o.Rhythm, Week)
		if !both {
			o.Load = cmp.Or(o.Load, longQueueLoad)
		}
		jobs = longQueueJobs
	}
	if o.Kind == EDA && o.Jobs == 0 {
		o.Span = cmp.Or(o.Span, defaultSpan)
	}
	if o.Span == 0 {
		o.Jobs = cmp.Or(o.Jobs, jobs)
	}
	return o
}
