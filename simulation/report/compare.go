package report

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// Comparison is what differs between two runs, A and B. Every difference is B's figure less A's.
type Comparison struct {
	A       RunName      `json:"a"`
	B       RunName      `json:"b"`
	Figures []Difference `json:"figures"`
	Jobs    JobChanges   `json:"jobs"`
	Changes FirstChange  `json:"changes"`
}

// RunName says which run it is.
type RunName struct {
	Cluster string `json:"cluster"`
	Label   string `json:"label,omitempty"`
	Source  string `json:"source"`
	Seed    uint64 `json:"seed,string"`
}

// Difference is one figure of both runs. A figure that a run does not have is 0 there.
type Difference struct {
	Name   string `json:"name"`
	Label  string `json:"label"`
	Unit   Unit   `json:"unit"`
	A      int64  `json:"a"`
	B      int64  `json:"b"`
	Change int64  `json:"change"`
}

// JobChanges are the changes of the jobs' starts.
type JobChanges struct {
	// OnlyA and OnlyB count the jobs of one trace alone.
	OnlyA int64 `json:"only_a"`
	OnlyB int64 `json:"only_b"`
	// Same, Earlier and Later count the jobs that started in both; OnlyStartedA and OnlyStartedB
	// those that started in one; NeverStarted those that started in none.
	Same         int64 `json:"same"`
	Earlier      int64 `json:"earlier"`
	Later        int64 `json:"later"`
	OnlyStartedA int64 `json:"only_started_a"`
	OnlyStartedB int64 `json:"only_started_b"`
	NeverStarted int64 `json:"never_started"`
	// EarlierMS and LaterMS are by how much, together.
	EarlierMS int64 `json:"earlier_ms"`
	LaterMS   int64 `json:"later_ms"`
	// Largest are the largest changes.
	Largest []JobChange `json:"largest"`
}

// JobChange is the change of one job's start; less than 0 is earlier.
type JobChange struct {
	ID     string       `json:"id"`
	Queue  string       `json:"queue"`
	Submit cluster.Time `json:"submit"`
	StartA cluster.Time `json:"start_a"`
	StartB cluster.Time `json:"start_b"`
	MoreMS int64        `json:"more_ms"`
}

// mostChanged is how many of the largest changes are listed.
const mostChanged = 10

// FirstChange is where the sequences of changes of totals and hosts part.
type FirstChange struct {
	CountA int64 `json:"count_a"`
	CountB int64 `json:"count_b"`
	// Identical tells that they do not; else Place is the first, from 1, that differs, and A and B
	// are what stands there; none where the sequence has ended.
	Identical bool         `json:"identical"`
	Place     int64        `json:"place,omitempty"`
	A         *savedChange `json:"a,omitempty"`
	B         *savedChange `json:"b,omitempty"`
}

// Compare answers what differs between two runs.
func Compare(a, b *simulation.Result) Comparison {
	x, y := Summarize(a), Summarize(b)
	return Comparison{A: x.name(), B: y.name(), Figures: differences(x.Figures(), y.Figures()), Jobs: jobChanges(a, b), Changes: firstChange(a.Changes, b.Changes)}
}

func (s *Summary) name() RunName {
	return RunName{Cluster: s.Cluster, Label: s.Label, Source: s.Source, Seed: s.Seed}
}

// differences puts the figures side by side, in A's order; those of B alone stand at the end.
func differences(a, b []Figure) []Difference {
	list, places := make([]Difference, 0, len(a)), map[string]int{}
	for _, f := range a {
		places[f.Name] = len(list)
		list = append(list, Difference{Name: f.Name, Label: f.Label, Unit: f.Unit, A: f.Value})
	}
	for _, f := range b {
		at, known := places[f.Name]
		if !known {
			at = len(list)
			list = append(list, Difference{Name: f.Name, Label: f.Label, Unit: f.Unit})
		}
		list[at].B = f.Value
	}
	for i := range list {
		list[i].Change = list[i].B - list[i].A
	}
	return list
}

// jobKey is what tells a job in two traces; ids alone occur twice in some.
type jobKey struct {
	id     int64
	name   string
	submit cluster.Time
}

func keyOf(j *trace.Job) jobKey { return jobKey{j.ID, j.Name, j.Submit} }

func jobChanges(a, b *simulation.Result) JobChanges {
	var c JobChanges
	pairs := pairing(jobsOf(a), jobsOf(b))
	seen := int64(0)
	for i, at := range pairs {
		if at < 0 {
			c.OnlyA++
			continue
		}
		seen++
		c.take(&jobsOf(a)[i], &a.Outcomes[i], &b.Outcomes[at])
	}
	c.OnlyB = int64(len(jobsOf(b))) - seen
	c.keepLargest()
	return c
}

// pairing answers, by place in a, where the same job is in b; -1 where it is not.
func pairing(a, b []trace.Job) []int32 {
	pairs := make([]int32, len(a))
	if slices.EqualFunc(a, b, func(x, y trace.Job) bool { return keyOf(&x) == keyOf(&y) }) {
		for i := range pairs {
			pairs[i] = int32(i)
		}
		return pairs
	}
	places := map[jobKey][]int32{}
	for i := range b {
		places[keyOf(&b[i])] = append(places[keyOf(&b[i])], int32(i))
	}
	for i := range a {
		key := keyOf(&a[i])
		at := places[key]
		if len(at) == 0 {
			pairs[i] = -1
			continue
		}
		pairs[i], places[key] = at[0], at[1:]
	}
	return pairs
}

func (c *JobChanges) take(j *trace.Job, a, b *simulation.Outcome) {
	switch inA, inB := started(a.State), started(b.State); {
	case !inA && !inB:
		c.NeverStarted++
		return
	case !inB:
		c.OnlyStartedA++
		return
	case !inA:
		c.OnlyStartedB++
		return
	}
	more := int64(b.Start.Sub(a.Start))
	switch {
	case more == 0:
		c.Same++
		return
	case more < 0:
		c.Earlier++
		c.EarlierMS -= more
	default:
		c.Later++
		c.LaterMS += more
	}
	c.Largest = append(c.Largest, JobChange{ID: label(j), Queue: queue(j), Submit: j.Submit, StartA: a.Start, StartB: b.Start, MoreMS: more})
	if len(c.Largest) >= 4096 {
		c.keepLargest()
	}
}

// keepLargest drops all but the largest changes; of equal ones the first stay.
func (c *JobChanges) keepLargest() {
	slices.SortStableFunc(c.Largest, func(a, b JobChange) int { return cmp.Compare(magnitude(b.MoreMS), magnitude(a.MoreMS)) })
	c.Largest = c.Largest[:min(len(c.Largest), mostChanged)]
}

func firstChange(a, b []simulation.Change) FirstChange {
	f := FirstChange{CountA: int64(len(a)), CountB: int64(len(b))}
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	if f.Identical = at == len(a) && at == len(b); f.Identical {
		return f
	}
	f.Place = int64(at) + 1
	f.A, f.B = changeAt(a, at), changeAt(b, at)
	return f
}

func changeAt(changes []simulation.Change, at int) *savedChange {
	if at >= len(changes) {
		return nil
	}
	c := savedChange(changes[at])
	return &c
}
