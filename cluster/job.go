package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xce.internal/elastic/cluster/plain"
)

// JobState says where a job is in its life.
type JobState string

// States of a job.
const (
	JobWaiting JobState = "waiting"
	JobRunning JobState = "running"
	JobDone    JobState = "done"    // ended with exit status 0
	JobFailed  JobState = "failed"  // ended with another status, or could not be started
	JobTimeout JobState = "timeout" // ended by its own time limit
)

// Ended tells whether a job in state s will never run again.
func (s JobState) Ended() bool { return s == JobDone || s == JobFailed || s == JobTimeout }

// JobSpec is what a user asks for.
type JobSpec struct {
	Name    string   `json:"name,omitempty"`
	Command []string `json:"command"`
	// Directory is where the command runs; empty means the agent's job folder.
	Directory string `json:"directory,omitempty"`
	Queue     string `json:"queue,omitempty"`
	// Nodes is on how many hosts at once the job runs; 0 means 1. CPUs,
	// MemoryMB and Countables are what it takes of each of them.
	Nodes      int64            `json:"nodes,omitempty"`
	CPUs       int64            `json:"cpus"`
	MemoryMB   int64            `json:"memory_mb"`
	Countables map[string]int64 `json:"countables,omitempty"`
	// Exclusive jobs share their hosts with no other job.
	Exclusive bool `json:"exclusive,omitempty"`
	// Constraint says over the features of a host whether the job may run
	// there, as in "avx512 & (rhel8 | rhel9) & !old"; see Constraint.
	Constraint string `json:"constraint,omitempty"`
	// Tokens maps shared resources to units; a job takes all its tokens or none.
	Tokens map[string]int64 `json:"tokens,omitempty"`
	// Alternatives are tokens of which the job takes one entry beside Tokens,
	// the first that can be had: tool A or tool B.
	Alternatives []map[string]int64 `json:"alternatives,omitempty"`
	Priority     int64              `json:"priority"`
	// TimeLimit ends the job; 0 means none.
	TimeLimit Duration `json:"time_limit,omitempty"`
	// After are the jobs that must have ended before this one may start.
	After []int64 `json:"after,omitempty"`
	// NotBefore is the earliest start; 0 means at once.
	NotBefore Time `json:"not_before,omitempty"`
	// Array is how many like elements the job has, each a job of its own to the
	// session; 0 means that it is not an array.
	Array int64 `json:"array,omitempty"`
}

// Job is a job and what has become of it.
type Job struct {
	ID int64 `json:"id"`
	JobSpec
	User  string   `json:"user"`
	State JobState `json:"state"`
	Host  string   `json:"host,omitempty"`
	// Hosts are all the hosts of a job that runs on several; Host is the first.
	Hosts []string `json:"hosts,omitempty"`
	// Alternative is which of the alternatives the job took, from 1; 0 means none.
	Alternative int64 `json:"alternative,omitempty"`
	// Element is which element of its array a running job is, from 1; Begun is
	// how many elements of a waiting array have begun already.
	Element   int64 `json:"element,omitempty"`
	Begun     int64 `json:"begun,omitempty"`
	Submitted Time  `json:"submitted"`
	Started   Time  `json:"started,omitempty"`
	Ended     Time  `json:"ended,omitempty"`
	// Stopping tells that a running job is being stopped so that it can wait
	// again, and Requeues how often that has happened.
	Stopping bool  `json:"stopping,omitempty"`
	Requeues int64 `json:"requeues,omitempty"`
	ExitCode int64 `json:"exit_code"`
	// Why says in one sentence what a waiting job waits for, or how it ended.
	Why string `json:"why,omitempty"`
	// Code is the kind of reason for which a job waits, and Change what would
	// have to change for it to start; see package scheduling.
	Code   string `json:"code,omitempty"`
	Change string `json:"change,omitempty"`
	// Told is what the scheduler says of the job, where another schedules it than the controller.
	Told *Told `json:"told,omitempty"`
}

// Told is what a scheduler of another make says of a job.
type Told struct {
	// Name is how it calls the job, as in 1234_[2-100], where that is not its id.
	Name string `json:"name,omitempty"`
	// Reason is its own word for why the job waits, as in Licenses.
	Reason string `json:"reason,omitempty"`
	// Barred says why more hosts and tokens would not let the job start, as in "its
	// user holds it"; it raises no demand. Empty where they would.
	Barred string `json:"barred,omitempty"`
	// Expected is when the scheduler expects to start it; 0 where it does not say.
	Expected Time `json:"expected,omitempty"`
}

// TokenNames answers the resources a job needs, sorted.
func (s JobSpec) TokenNames() []string {
	if len(s.Tokens) == 0 {
		return nil
	}
	names := slices.AppendSeq(make([]string, 0, len(s.Tokens)), maps.Keys(s.Tokens))
	slices.Sort(names)
	return names
}

// Limits of what one job can ask for.
const (
	mostConstraint   = 1000 // bytes
	mostLabel        = 256  // bytes
	mostAlternatives = 64
	mostAfter        = 10_000
	mostNodes        = 1_000_000
	mostElements     = 10_000_000
	// longestTime keeps sums of times, and of money over them, whole numbers.
	longestTime = 10 * 366 * 24 * Hour
)

// ConstraintRemedy is what to do about a constraint that cannot be read.
const ConstraintRemedy = `write features joined by & | ! and parentheses, as in "avx512 & !old"`

// Validate checks s by itself and against the resources and hosts it would
// have to run on: what can never run is refused, naming the limit.
func (s JobSpec) Validate(resources []SharedResource, hosts []Host) Problems {
	var ps Problems
	if len(s.Command) == 0 || s.Command[0] == "" {
		ps.add("command", "there is no command", "say what to run")
	}
	ps.label("name", s.Name)
	if s.Queue != "" {
		ps.name("queue", s.Queue)
	}
	if s.CPUs < 1 {
		ps.add("cpus", fmt.Sprintf("%d cpus cannot run a job", s.CPUs), "ask for at least 1")
	}
	if len(ps) > 0 {
		return append(append(ps, s.ValidateShape("")...), s.tokenProblems(resources)...)
	}
	return s.ValidateFit(resources, hosts)
}

// label checks a name that people chose freely.
func (ps *Problems) label(path, text string) {
	switch {
	case len(text) > mostLabel:
		ps.add(path, fmt.Sprintf("the name has %d bytes", len(text)), fmt.Sprintf("write at most %d", mostLabel))
	case strings.ContainsFunc(text, plain.Steers):
		ps.add(path, fmt.Sprintf("%q has signs in it that nobody sees, or that steer a terminal", text), "remove them")
	}
}

// ValidateFit checks s against the resources and hosts it would have to run on, as
// it is done for jobs of other clusters too.
func (s JobSpec) ValidateFit(resources []SharedResource, hosts []Host) Problems {
	ps := s.ValidateShape("")
	if len(ps) == 0 {
		ps.fits(s, hosts)
	}
	return append(ps, s.tokenProblems(resources)...)
}

// ValidateShape checks the numbers and the constraint of s by themselves, as it
// is done for jobs of other clusters too. Paths begin with `at`.
func (s JobSpec) ValidateShape(at string) Problems {
	var ps Problems
	ps.count(at+"nodes", s.Nodes, mostNodes)
	ps.count(at+"cpus", max(s.CPUs, 0), mostUnits)
	ps.count(at+"memory_mb", s.MemoryMB, mostUnits)
	ps.countables(at+"countables", s.Countables)
	if len(s.Constraint) > mostConstraint {
		ps.add(at+"constraint", fmt.Sprintf("the constraint has %d bytes", len(s.Constraint)), fmt.Sprintf("write at most %d", mostConstraint))
	} else if _, err := ParseConstraint(s.Constraint); err != nil {
		ps.add(at+"constraint", err.Error(), ConstraintRemedy)
	}
	if len(s.Alternatives) > mostAlternatives {
		ps.add(at+"alternatives", fmt.Sprintf("there are %d alternatives", len(s.Alternatives)), fmt.Sprintf("give at most %d", mostAlternatives))
	}
	ps.length(at+"time_limit", s.TimeLimit)
	ps.after(at+"after", s.After)
	if s.NotBefore < 0 {
		ps.add(at+"not_before", "the time is before 1970", "write a time such as 2026-01-31T08:00:00Z")
	}
	ps.count(at+"array", s.Array, mostElements)
	return ps
}

func (ps *Problems) length(path string, d Duration) {
	switch {
	case d < 0:
		ps.add(path, fmt.Sprintf("%s is negative", d), "write a length of time such as 30m, or leave it out")
	case d > longestTime:
		ps.add(path, fmt.Sprintf("%s is longer than %s", d, longestTime), "write less, or leave it out")
	}
}

func (ps *Problems) after(path string, after []int64) {
	if len(after) > mostAfter {
		ps.add(path, fmt.Sprintf("there are %d jobs to wait for", len(after)), fmt.Sprintf("name at most %d", mostAfter))
		return
	}
	seen := map[int64]bool{}
	for i, id := range after {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case id < 1:
			ps.add(at, fmt.Sprintf("%d is no job id", id), "name jobs by their numbers, from 1")
		case seen[id]:
			ps.add(at, fmt.Sprintf("job %d is named twice", id), "name each job once")
		}
		seen[id] = true
	}
}

// tokenProblems checks what the job takes of shared resources.
func (s JobSpec) tokenProblems(resources []SharedResource) Problems {
	var ps Problems
	for _, name := range s.TokenNames() {
		ps.tokens("tokens."+name, name, s.Tokens[name], 0, resources)
	}
	for i, alternative := range s.Alternatives {
		at := fmt.Sprintf("alternatives[%d]", i)
		if len(alternative) == 0 {
			ps.add(at, "the alternative has no tokens", "name a resource and its units, or remove it")
		}
		for _, name := range slices.Sorted(maps.Keys(alternative)) {
			ps.tokens(at+"."+name, name, alternative[name], s.Tokens[name], resources)
		}
	}
	return ps
}

// tokens checks units of a resource that a job takes beside `more` of the same.
func (ps *Problems) tokens(path, name string, units, more int64, resources []SharedResource) {
	i := slices.IndexFunc(resources, func(r SharedResource) bool { return r.Name == name })
	if i < 0 {
		ps.add(path, fmt.Sprintf("there is no shared resource %q", name), "use one that `xce-elastic status` lists")
		return
	}
	if units < 1 {
		ps.add(path, fmt.Sprintf("%d units cannot be taken", units), "ask for at least 1, or leave the resource out")
		return
	}
	r := resources[i]
	if units > r.Ceiling()-max(more, 0) {
		borrowed := int64(0)
		if r.Elastic != nil {
			borrowed = r.Elastic.MaxBorrowed
		}
		beside := ""
		if more > 0 {
			beside = fmt.Sprintf(" beside %d in tokens", more)
		}
		ps.add(path, fmt.Sprintf("%d units%s can never be had: the limit is %d (owned %d + max borrowed %d - kept back %d)",
			units, beside, r.Ceiling(), r.Owned, borrowed, r.KeepBack), "ask for fewer, or raise the limit")
	}
}

// TokensTaken answers the tokens that a job takes with one of its alternatives
// (from 1; 0 for none): those of Tokens and of the alternative together.
func (s JobSpec) TokensTaken(alternative int64) map[string]int64 {
	if alternative < 1 || alternative > int64(len(s.Alternatives)) {
		return s.Tokens
	}
	taken := map[string]int64{}
	maps.Copy(taken, s.Tokens)
	for name, units := range s.Alternatives[alternative-1] {
		taken[name] += units
	}
	return taken
}

// fits refuses a job that no host, as large as it is now, could ever run.
// A cluster without hosts refuses nothing: they may still join.
func (ps *Problems) fits(s JobSpec, hosts []Host) {
	constraint, err := ParseConstraint(s.Constraint)
	if len(hosts) == 0 || err != nil {
		return
	}
	large, meets := false, false
	for i := range hosts {
		c := &hosts[i].Capacity
		holds, fits := constraint.holdsOn(c), c.CPUs >= s.CPUs && c.MemoryMB >= s.MemoryMB
		if holds && fits && c.covers(s.Countables) {
			return
		}
		large, meets = large || fits, meets || holds
	}
	var most Capacity
	most.Countables = map[string]int64{}
	for i := range hosts {
		c := &hosts[i].Capacity
		most.CPUs, most.MemoryMB = max(most.CPUs, c.CPUs), max(most.MemoryMB, c.MemoryMB)
		most.Features = append(most.Features, c.FeatureNames()...)
		for name, n := range c.Countables {
			most.Countables[name] = max(most.Countables[name], n)
		}
	}
	switch name := lacking(s.Countables, most.Countables); {
	case s.MemoryMB > most.MemoryMB && s.CPUs <= most.CPUs:
		ps.add("memory_mb", fmt.Sprintf("no host can ever give %d MB; the most on any is %d MB", s.MemoryMB, most.MemoryMB), "ask for what one host has")
	case !large:
		ps.add("cpus", fmt.Sprintf("no host can ever run %d cpus with %d MB; the largest have %d cpus and %d MB", s.CPUs, s.MemoryMB, most.CPUs, most.MemoryMB),
			"ask for what one host has")
	case name != "":
		ps.add("countables."+name, fmt.Sprintf("no host can ever give %d %s; the most on any is %d", s.Countables[name], name, most.Countables[name]),
			"ask for what one host has")
	case !meets:
		ps.add("constraint", fmt.Sprintf("no host meets %q; %s", s.Constraint, featureList(most.FeatureNames())), "ask for what one host has")
	default:
		ps.add("cpus", fmt.Sprintf("no one host has all of it: %s", s.wish()), "ask for what one host has")
	}
}

// covers tells whether c has at least so much of each countable.
func (c Capacity) covers(countables map[string]int64) bool {
	return lacking(countables, c.Countables) == ""
}

// lacking answers the first countable of which `have` has less than is needed.
func lacking(need, have map[string]int64) (first string) {
	for name, n := range need {
		if have[name] < n && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

func featureList(features []string) string {
	const shown = 20
	switch {
	case len(features) == 0:
		return "no host has features"
	case len(features) > shown:
		return fmt.Sprintf("the features of hosts are %s and %d more", strings.Join(features[:shown], ", "), len(features)-shown)
	}
	return "the features of hosts are " + strings.Join(features, ", ")
}

// wish says what s asks of one host.
func (s JobSpec) wish() string {
	parts := []string{fmt.Sprintf("%d cpus with %d MB", s.CPUs, s.MemoryMB)}
	for _, name := range slices.Sorted(maps.Keys(s.Countables)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Countables[name], name))
	}
	if s.Constraint != "" {
		parts = append(parts, fmt.Sprintf("the constraint %q", s.Constraint))
	}
	return strings.Join(parts, ", ")
}
