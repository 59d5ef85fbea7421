package trace

import (
	"cmp"
	"maps"
	"slices"

	"xce.internal/elastic/cluster"
)

// Summary is what a trace has in it.
type Summary struct {
	Source string `json:"source"`
	Jobs   int64  `json:"jobs"`
	// Shapes is how many different wishes they have.
	Shapes int64 `json:"shapes"`
	// First and Last are the first and the last arrival.
	First cluster.Time     `json:"first"`
	Last  cluster.Time     `json:"last"`
	Span  cluster.Duration `json:"span"`
	// Processors is the most that one job takes, Hosts on how many at once; MemoryMB
	// the most on one host.
	Processors     int64         `json:"processors"`
	Hosts          int64         `json:"hosts"`
	MemoryMB       int64         `json:"memory_mb"`
	ProcessorHours int64         `json:"processor_hours"`
	Unlimited      int64         `json:"unlimited"`
	Users          int64         `json:"users"`
	Groups         int64         `json:"groups"`
	Queues         []QueueCount  `json:"queues"`
	Tokens         []TokensAsked `json:"tokens"`
	Repairs        []Repair      `json:"repairs"`
}

// QueueCount is how many jobs go through a queue.
type QueueCount struct {
	Name string `json:"name"`
	Jobs int64  `json:"jobs"`
}

// TokensAsked is what is asked for of one shared resource.
type TokensAsked struct {
	Resource string `json:"resource"`
	Jobs     int64  `json:"jobs"`
	// Most is the most that one job takes, UnitHours how long all are held.
	Most      int64 `json:"most"`
	UnitHours int64 `json:"unit_hours"`
}

// ofShape is what is counted for each shape first, since there are few.
type ofShape struct{ jobs, run, held, unlimited int64 }

// Summary answers what the trace has in it.
func (t *Trace) Summary() Summary {
	s := Summary{Source: t.Source, Jobs: int64(len(t.Jobs)), Queues: []QueueCount{}, Tokens: []TokensAsked{}, Repairs: t.Repairs}
	if s.Repairs == nil {
		s.Repairs = []Repair{}
	}
	if len(t.Jobs) > 0 {
		s.First, s.Last = t.Jobs[0].Submit, t.Jobs[len(t.Jobs)-1].Submit
		s.Span = s.Last.Sub(s.First)
	}
	counts := map[*Shape]*ofShape{}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		c := counts[j.Shape]
		if c == nil {
			c = &ofShape{}
			counts[j.Shape] = c
		}
		c.add(j)
	}
	s.sum(counts)
	return s
}

func (c *ofShape) add(j *Job) {
	c.jobs++
	c.run += int64(j.Run) / 1000 // in seconds, so that sums stay whole numbers
	held := j.Run
	if j.TokensFor > 0 {
		held = min(held, j.TokensFor)
	}
	c.held += int64(held) / 1000
	if j.Limit == 0 {
		c.unlimited++
	}
}

func (s *Summary) sum(counts map[*Shape]*ofShape) {
	users, groups, queues := map[string]bool{}, map[string]bool{}, map[string]int64{}
	tokens := map[string]*TokensAsked{}
	for shape, c := range counts { // sums and maxima are the same in any order
		s.Shapes++
		s.Processors, s.Hosts, s.MemoryMB = max(s.Processors, shape.Processors()), max(s.Hosts, shape.Nodes, 1), max(s.MemoryMB, shape.MemoryMB)
		s.ProcessorHours += c.run * shape.Processors()
		s.Unlimited += c.unlimited
		users[shape.User], groups[shape.Group] = true, true
		queues[shape.Queue] += c.jobs
		for name, n := range shape.TokensTaken(min(int64(len(shape.Alternatives)), 1)) {
			asked := tokens[name]
			if asked == nil {
				asked = &TokensAsked{Resource: name}
				tokens[name] = asked
			}
			asked.Jobs += c.jobs
			asked.Most = max(asked.Most, n)
			asked.UnitHours += c.held * n
		}
	}
	s.ProcessorHours /= 3600
	delete(users, "")
	delete(groups, "")
	s.Users, s.Groups = int64(len(users)), int64(len(groups))
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		s.Queues = append(s.Queues, QueueCount{name, queues[name]})
	}
	slices.SortStableFunc(s.Queues, func(a, b QueueCount) int { return cmp.Compare(b.Jobs, a.Jobs) })
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		tokens[name].UnitHours /= 3600
		s.Tokens = append(s.Tokens, *tokens[name])
	}
}
