package simulation

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// causes is why jobs wait: for each waiting job what it waits for now, and for how long it has waited for what.
type causes struct {
	names   []string
	numbers map[string]uint16
	waits   map[int]*wait // by place in the trace
	worst   []Story       // the longest waits so far, the longest first
	// rest counts down to the next session that is asked for reasons.
	rest int64
}

// wait is one job's.
type wait struct {
	cause uint16
	since cluster.Time
	why   string
	sums  []causeSum
	lines []StoryLine
}

type causeSum struct {
	cause uint16
	d     cluster.Duration
}

const (
	mostStories = 10
	mostLines   = 40
)

func newCauses() causes {
	return causes{names: []string{"nothing"}, numbers: map[string]uint16{}, waits: map[int]*wait{}}
}

func (c *causes) number(name string) uint16 {
	n, known := c.numbers[name]
	if !known {
		n = uint16(len(c.names))
		c.names = append(c.names, name)
		c.numbers[name] = n
	}
	return n
}

// explain takes why jobs wait, as the session says.
func (s *simulator) explain(unplaced []scheduling.Unplaced) {
	for i := range unplaced {
		u := &unplaced[i]
		cause := s.number(causeOf(u))
		for _, id := range u.Jobs {
			s.waitsFor(int(id)-1, cause, u.Why)
		}
	}
}

// causeOf answers what to call the reason for which jobs wait.
func causeOf(u *scheduling.Unplaced) string {
	switch u.Code {
	case scheduling.WaitTokens:
		return "tokens"
	case scheduling.WaitHosts:
		return "hosts"
	case scheduling.WaitBehind, scheduling.WaitReserved:
		return "priority"
	case scheduling.WaitComing, scheduling.WaitBorrow, scheduling.WaitMade:
		return "provisioning"
	}
	return string(u.Code)
}

func (s *simulator) waitsFor(job int, cause uint16, why string) {
	w := s.waits[job]
	if w == nil {
		w = &wait{since: s.jobs[job].Submit}
		s.waits[job] = w
	}
	if w.cause != cause || w.cause == 0 {
		w.add(s.now)
		w.cause, w.since = cause, s.now
	}
	if w.why != why {
		w.why = why
		if len(w.lines) < mostLines {
			w.lines = append(w.lines, StoryLine{s.now, why})
		}
	}
}

// add counts the time until now for what the job has waited for.
func (w *wait) add(now cluster.Time) {
	d := now.Sub(w.since)
	w.since = now
	if d == 0 {
		return
	}
	for i := range w.sums {
		if w.sums[i].cause == w.cause {
			w.sums[i].d += d
			return
		}
	}
	w.sums = append(w.sums, causeSum{w.cause, d})
}

// longest answers for what the job has waited longest.
func (w *wait) longest() uint16 {
	var most causeSum
	for _, sum := range w.sums {
		if sum.d > most.d {
			most = sum
		}
	}
	return most.cause
}

// waited keeps how a job waited that starts now.
func (s *simulator) waited(job int) {
	w := s.waits[job]
	if w == nil {
		s.outranked(job, nil)
		return
	}
	delete(s.waits, job)
	w.add(s.now)
	s.result.Outcomes[job].Cause = w.longest()
	s.outranked(job, w)
}

// outranked keeps the story of a job that waited longer than those whose stories are kept.
func (s *simulator) outranked(job int, w *wait) {
	waited := s.now.Sub(s.jobs[job].Submit)
	if waited == 0 || len(s.worst) == mostStories && waited <= s.worst[mostStories-1].Waited {
		return
	}
	story := Story{Job: job, Waited: waited}
	if w != nil {
		story.Lines = slices.Clone(w.lines)
	}
	s.worst = slices.DeleteFunc(s.worst, func(other Story) bool { return other.Job == job })
	i, _ := slices.BinarySearchFunc(s.worst, story, func(a, b Story) int { return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.Job, b.Job)) })
	s.worst = slices.Insert(s.worst, i, story)
	s.worst = s.worst[:min(len(s.worst), mostStories)]
}

// closeCauses keeps how those waited that still wait.
func (s *simulator) closeCauses() {
	var still []int
	for job := range s.waits {
		still = append(still, job)
	}
	slices.Sort(still)
	for _, job := range still {
		if s.result.Outcomes[job].State == Waiting {
			s.waited(job)
		}
	}
	s.result.Causes, s.result.Worst = s.names, s.worst
}

func sortCounts(counts []Count) {
	slices.SortFunc(counts, func(a, b Count) int { return cmp.Compare(a.Name, b.Name) })
}
