package synthetic

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"xce.internal/elastic/cluster"
)

// Profile is what an EDA farm does. [ReadProfile] reads it from YAML.
type Profile struct {
	// JobsPerDay is how many jobs come on average on a day of the week; Options may say otherwise.
	JobsPerDay int64 `yaml:"jobs_per_day"`
	// Needs are the kinds of things that users need.
	Needs []Need `yaml:"needs"`
}

// Need is one kind of thing that users need, such as regressions.
type Need struct {
	Name string `yaml:"name"`
	// Weight is how many of all jobs are of this kind, as a share of the sum of weights.
	Weight int64 `yaml:"weight"`
	// Team is the group of its users, and Users how many of the team have the need; the
	// first users of a team are its busiest.
	Team  string `yaml:"team"`
	Users int64  `yaml:"users"`
	Queue string `yaml:"queue"`
	// Priority is the jobs' own.
	Priority int64 `yaml:"priority"`
	// Together is how many like jobs are submitted at once on average, MostTogether how many at most, and
	// Spacing the mean time between two of them.
	Together     int64            `yaml:"together"`
	MostTogether int64            `yaml:"most_together"`
	Spacing      cluster.Duration `yaml:"spacing"`
	// Hours are those that are busy, by UTC, and Otherwise is the weight of the others.
	Hours     []Hours `yaml:"hours"`
	Otherwise int64   `yaml:"otherwise"`
	// WeekendPercent is how much comes on a day of the weekend, of what comes on a working day.
	WeekendPercent int64 `yaml:"weekend_percent"`
	// Habit has each user submit at the same time every day, as timers do.
	Habit bool    `yaml:"habit"`
	Run   RunTime `yaml:"run"`
	// LimitFactor is how many times the run time a time limit is at most; then it is rounded up to
	// a length that people write. 0 means no limits.
	LimitFactor float64 `yaml:"limit_factor"`
	// NoLimitPercent of the submissions have none.
	NoLimitPercent int64 `yaml:"no_limit_percent"`
	// Asks are what the jobs ask for, one of them for a whole submission.
	Asks []Ask `yaml:"asks"`
}

// Hours are busy hours of the day, as "09:00"; they may go over midnight.
type Hours struct {
	From   string `yaml:"from"`
	To     string `yaml:"to"`
	Weight int64  `yaml:"weight"`
}

// RunTime is a lognormal distribution that is cut off.
type RunTime struct {
	Median cluster.Duration `yaml:"median"`
	// Spread is the factor of the median within which two of three run times are.
	Spread   float64          `yaml:"spread"`
	Shortest cluster.Duration `yaml:"shortest"`
	Longest  cluster.Duration `yaml:"longest"`
}

// Ask is what a job asks for.
type Ask struct {
	Weight       int64              `yaml:"weight"`
	CPUs         int64              `yaml:"cpus"`
	MemoryMB     int64              `yaml:"memory_mb"`
	Countables   map[string]int64   `yaml:"countables"`
	Constraint   string             `yaml:"constraint"`
	Tokens       map[string]int64   `yaml:"tokens"`
	Alternatives []map[string]int64 `yaml:"alternatives"`
}

//go:embed eda.yaml
var edaProfile []byte

// EDAProfile answers the built-in profile as text, to begin an own one with.
func EDAProfile() []byte { return slices.Clone(edaProfile) }

// Limits of a profile.
const (
	mostWeight     = 1_000_000
	mostJobsPerDay = 100_000_000
	mostPriority   = 1_000_000_000
	mostSpread     = 100
	mostCPUs       = 1_000_000
	mostMemoryMB   = 1_000_000_000
	mostTokens     = 1_000_000_000
)

// Validate names all that is wrong with the profile.
func (p *Profile) Validate() cluster.Problems {
	var ps problems
	ps.within("jobs_per_day", p.JobsPerDay, 1, mostJobsPerDay)
	if len(p.Needs) == 0 {
		ps.add("needs", "there are none", "write at least one kind of need")
	}
	seen := map[string]bool{}
	for i := range p.Needs {
		n, at := &p.Needs[i], fmt.Sprintf("needs[%d]", i)
		if seen[n.Name] {
			ps.add(at+".name", fmt.Sprintf("there are two of name %q", n.Name), "give each its own")
		}
		seen[n.Name] = true
		n.validate(&ps, at)
	}
	return ps.Problems
}

func (n *Need) validate(ps *problems, at string) {
	ps.name(at+".name", n.Name)
	ps.name(at+".team", n.Team)
	if n.Queue != "" {
		ps.name(at+".queue", n.Queue)
	}
	ps.within(at+".weight", n.Weight, 1, mostWeight)
	ps.within(at+".users", n.Users, 1, mostUsers)
	ps.within(at+".priority", n.Priority, -mostPriority, mostPriority)
	ps.within(at+".together", n.Together, 1, mostTogether)
	ps.within(at+".most_together", n.MostTogether, n.Together, mostTogether)
	ps.length(at+".spacing", n.Spacing, cluster.Hour)
	ps.within(at+".otherwise", n.Otherwise, 0, mostWeight)
	ps.within(at+".weekend_percent", n.WeekendPercent, 0, 1000)
	ps.within(at+".no_limit_percent", n.NoLimitPercent, 0, 100)
	if n.LimitFactor != 0 && !(n.LimitFactor >= 1 && n.LimitFactor <= mostFactor) {
		ps.add(at+".limit_factor", fmt.Sprintf("%s is not possible", number(n.LimitFactor)), "write a number from 1 to 1000, or 0 for no limits")
	}
	n.validateHours(ps, at)
	n.Run.validate(ps, at+".run")
	if len(n.Asks) == 0 {
		ps.add(at+".asks", "there are none", "write at least one, with cpus")
	}
	for i := range n.Asks {
		n.Asks[i].validate(ps, fmt.Sprintf("%s.asks[%d]", at, i))
	}
}

func (n *Need) validateHours(ps *problems, at string) {
	some := n.Otherwise > 0
	for i, h := range n.Hours {
		here := fmt.Sprintf("%s.hours[%d]", at, i)
		ps.halfHour(here+".from", h.From)
		ps.halfHour(here+".to", h.To)
		ps.within(here+".weight", h.Weight, 1, mostWeight)
		some = true
	}
	if !some {
		ps.add(at+".hours", "there is no hour at which anything comes", "write busy hours, or otherwise: 1")
	}
}

func (ps *problems) halfHour(path, text string) {
	if _, ok := halfHour(text); !ok {
		ps.add(path, fmt.Sprintf("%q is not a half hour of the day", text), `write a time such as "09:30", in quotes`)
	}
}

// halfHour reads a time of the day such as 09:30.
func halfHour(text string) (slot int, ok bool) {
	if len(text) != 5 || text[2] != ':' || text[3:] != "00" && text[3:] != "30" {
		return 0, false
	}
	tens, ones := int(text[0])-'0', int(text[1])-'0'
	if tens < 0 || tens > 2 || ones < 0 || ones > 9 || tens*10+ones > 24 {
		return 0, false
	}
	slot = (tens*10 + ones) * 2
	if text[3] == '3' {
		slot++
	}
	return slot, slot <= slotsOfDay
}

func (r RunTime) validate(ps *problems, at string) {
	if !(r.Spread >= 1 && r.Spread <= mostSpread) {
		ps.add(at+".spread", fmt.Sprintf("%s is not possible", number(r.Spread)), "write a factor from 1 to 100")
	}
	if r.Median < cluster.Second || r.Median > 366*dayLength {
		ps.add(at+".median", fmt.Sprintf("%s is not possible", r.Median), "write a length of time from 1s on, such as 5m")
	}
	if r.Shortest < 0 || r.Shortest > r.Median {
		ps.add(at+".shortest", fmt.Sprintf("%s is not possible", r.Shortest), "write a length of time up to the median")
	}
	if r.Longest < r.Median || r.Longest > 366*dayLength {
		ps.add(at+".longest", fmt.Sprintf("%s is not possible", r.Longest), "write a length of time from the median on")
	}
}

func (a *Ask) validate(ps *problems, at string) {
	ps.within(at+".weight", a.Weight, 1, mostWeight)
	ps.within(at+".cpus", a.CPUs, 1, mostCPUs)
	ps.within(at+".memory_mb", a.MemoryMB, 0, mostMemoryMB)
	shape := cluster.JobSpec{CPUs: a.CPUs, Constraint: a.Constraint, Countables: a.Countables, Alternatives: a.Alternatives}
	ps.Problems = append(ps.Problems, shape.ValidateShape(at+".")...)
	ps.tokens(at+".tokens", a.Tokens)
	for i, alternative := range a.Alternatives {
		here := fmt.Sprintf("%s.alternatives[%d]", at, i)
		if len(alternative) == 0 {
			ps.add(here, "it has no tokens", "name a resource and its units, or remove it")
		}
		ps.tokens(here, alternative)
	}
}

func (ps *problems) tokens(at string, tokens map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		ps.name(at+"."+name, name)
		ps.within(at+"."+name, tokens[name], 1, mostTokens)
	}
}
