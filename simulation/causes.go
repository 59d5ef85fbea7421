package simulation

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// causes is why jobs wait: for each waiting job what it waits for now, and for how long it has waited for what.
type causes struct {
	names      []string // the texts of causes
	known      map[reason]known
	whys       []string      // the words of reasons
	waits      map[int]*wait // by place in the trace
	spareWaits []*wait       // used again
	worst      []Story       // the longest waits so far, the longest first
	saved      int64         // see due
	// lastCause is what the job was told that was asked last.
	lastCause uint16
}

// known is a reason that was met before: its cause, and its words, by their places.
type known struct{ cause, why uint16 }

// wait is one job's.
type wait struct {
	cause uint16
	since cluster.Time
	why   uint16
	sums  []causeSum
	lines []line
}

// line is from when on a job waited for what: a place among the words of reasons.
type line struct {
	at  cluster.Time
	why uint16
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
	return causes{names: []string{"nothing", notAsked}, known: map[reason]known{}, whys: []string{""}, waits: map[int]*wait{}}
}

func (c *causes) number(r reason) known {
	k, met := c.known[r]
	if !met {
		cause := slices.Index(c.names, r.name())
		if cause < 0 {
			cause = len(c.names)
			c.names = append(c.names, r.name())
		}
		k = known{uint16(cause), uint16(len(c.whys))}
		c.whys = append(c.whys, r.words())
		c.known[r] = k
	}
	return k
}

// due tells whether jobs are asked why they wait, after this session. It costs what there are that wait, so that a
// long queue is asked less often: so many jobs a session on average.
func (c *causes) due(waiting int64, a asking) bool {
	c.saved += a.each
	if waiting == 0 || c.saved < waiting+a.least {
		return false
	}
	c.saved = 0
	return true
}

// asking is how many jobs a session are asked on average, and how many more must be saved before any is.
type asking struct{ each, least int64 }

var (
	// A session that looks at supply has done most of what it takes; one that does not must do it first, for which
	// few are worth it.
	askElastic = asking{each: 16}
	askPlain   = asking{each: 1, least: 48}
)

// explain takes why jobs wait, as the last session says.
func (s *simulator) explain() {
	for c := range s.engine.Causes() {
		s.waitsFor(int(c.Job)-1, s.number(reason{c.Code, c.Resource}))
	}
}

// reason is what jobs wait for: a code of the session, and tokens where it is those.
type reason struct {
	code     scheduling.Code
	resource string
}

// notAsked is what jobs waited for that began before they were asked; it is the second of all causes.
const (
	notAsked      = "not asked"
	notAskedCause = 1
)

// name is what the reason is called among causes.
func (r reason) name() string {
	switch r.code {
	case scheduling.WaitTokens:
		return "tokens of " + r.resource
	case scheduling.WaitHosts:
		return "hosts"
	case scheduling.WaitBehind, scheduling.WaitReserved:
		return "priority"
	case scheduling.WaitComing, scheduling.WaitBorrow, scheduling.WaitMade:
		return "provisioning"
	}
	return string(r.code)
}

// words says what the reason means.
func (r reason) words() string {
	of := ""
	if r.resource != "" {
		of = " (" + r.resource + ")"
	}
	switch r.code {
	case scheduling.WaitTokens:
		return "running jobs must give tokens of " + r.resource + " back: no one can lend what lacks"
	case scheduling.WaitHosts:
		return "a host must become free: no one can make one that it lacks"
	case scheduling.WaitBehind:
		return "an earlier job must start"
	case scheduling.WaitReserved:
		return "its reservation comes before anything new could"
	case scheduling.WaitMore:
		return "too few jobs have waited for too short a time to ask for more"
	case scheduling.WaitComing:
		return "what was asked for must arrive" + of
	case scheduling.WaitBorrow:
		return "tokens are about to be borrowed" + of
	case scheduling.WaitMade:
		return "hosts are about to be made" + of
	case scheduling.Never:
		return "nothing that is there could ever run it"
	}
	return string(r.code)
}

func (s *simulator) waitsFor(job int, k known) {
	w := s.waits[job]
	if w == nil {
		w = s.newWait(job, k.cause, s.jobs[job].Submit)
	}
	if w.cause != k.cause {
		w.add(s.now)
		w.cause = k.cause
	}
	s.lastCause = k.cause
	s.shapes[s.jobs[job].Shape].cause = k.cause
	if w.why != k.why {
		w.why = k.why
		w.lines = append(w.lines[:min(len(w.lines), mostLines-1)], line{s.now, k.why})
	}
}

// newWait begins to keep for what a job waits.
func (c *causes) newWait(job int, cause uint16, since cluster.Time) *wait {
	var w *wait
	if last := len(c.spareWaits) - 1; last < 0 {
		w = &wait{cause: cause, since: since}
	} else {
		w = c.spareWaits[last]
		c.spareWaits = c.spareWaits[:last]
		*w = wait{cause: cause, since: since, sums: w.sums[:0], lines: w.lines[:0]}
	}
	c.waits[job] = w
	return w
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

// waited keeps how a job of a shape waited that starts now.
func (s *simulator) waited(job int, sh *shape) {
	w := s.waits[job]
	if w == nil {
		if s.now > s.jobs[job].Submit {
			s.result.Outcomes[job].Cause = s.asItsLike(sh)
		}
		s.outranked(job, nil)
		return
	}
	w.add(s.now)
	s.result.Outcomes[job].Cause = w.longest()
	s.outranked(job, w)
	delete(s.waits, job)
	s.spareWaits = append(s.spareWaits, w)
}

// asItsLike answers the cause of a job that began before it was asked: what one of its shape was told last, or anyone.
func (s *simulator) asItsLike(sh *shape) uint16 {
	if sh.cause != 0 {
		return sh.cause
	}
	return max(s.lastCause, notAskedCause)
}

// outranked keeps the story of a job that waited longer than those whose stories are kept.
func (s *simulator) outranked(job int, w *wait) {
	waited := s.now.Sub(s.jobs[job].Submit)
	if waited == 0 || len(s.worst) == mostStories && waited <= s.worst[mostStories-1].Waited {
		return
	}
	story := Story{Job: job, Waited: waited}
	if w != nil {
		for _, l := range w.lines {
			story.Lines = append(story.Lines, StoryLine{l.at, s.whys[l.why]})
		}
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
			s.waited(job, s.shapes[s.jobs[job].Shape])
		}
	}
	s.result.Causes, s.result.Worst = s.names, s.worst
}

func sortCounts(counts []Count) {
	slices.SortFunc(counts, func(a, b Count) int { return cmp.Compare(a.Name, b.Name) })
}
