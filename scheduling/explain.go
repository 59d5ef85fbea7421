package scheduling

import "iter"

// Explain answers why jobs wait, and what is kept for them, as Session would have: the
// second half of the last session is held once more, with words. Nothing may have
// changed since then.
func (e *Engine) Explain() Result {
	s := &e.scratch
	s.words = true
	for _, p := range s.pools {
		p.putBack()
	}
	s.pass++
	s.hostWaiter, s.hosts, s.classes = s.realWaiter, nil, s.classes[:0]
	s.outcomes, s.verdicts, s.parts = s.outcomes[:0], s.verdicts[:0], s.parts[:0]
	s.holdBack()
	s.placeVirtual()
	s.tellAll()
	return Result{Halves: s.tellHalves(), Unplaced: s.unplaced()}
}

// Cause is why a job waits: the kind of reason, and the tokens that lack or are on
// their way, where it is those.
type Cause struct {
	Job      int64
	Code     Code
	Resource string
	// Count is how many elements of the job, if it is an array, wait for that.
	Count int64
}

// Causes answers of every job that waits after the last session why it does, until
// something changes; an array has one for each reason that its elements have. After
// Place it knows only of jobs that may not start yet. The order is the same every time, but tells nothing.
func (e *Engine) Causes() iter.Seq[Cause] {
	s := &e.scratch
	return func(see func(Cause) bool) {
		for i := range s.heldBack {
			h := &s.heldBack[i]
			if !see(Cause{Job: h.first.id, Code: h.why.code, Count: h.first.count}) {
				return
			}
		}
		for c := range e.lineup.all() {
			if c.judged == s.pass && !s.causesOf(c, see) {
				return
			}
		}
	}
}

// causesOf calls see for every job of a class, until it answers false.
func (s *session) causesOf(c *class, see func(Cause) bool) bool {
	at := cursor{entry: c.head}
	for _, sp := range c.pass.spans {
		v := &s.verdicts[sp.verdict]
		for left := sp.count; left > 0; {
			n := min(left, c.queue[at.entry].count-at.element)
			if !see(Cause{c.queue[at.entry].id, v.code, v.resource, n}) {
				return false
			}
			at, left = c.skip(at, n), left-n
		}
	}
	return true
}
