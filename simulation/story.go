package simulation

import (
	"cmp"
	"iter"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/workflows"
)

// story is a workflow's story on the virtual clock, which a teller tells until it waits.
type story struct {
	s      *simulator
	id     string
	live   func(*story)
	teller *teller

	// mail is what the story was told since it looked last, and inbox what it has still to hear of before. As
	// in a workflow, mail is read kind by kind, and what operators want goes straight to the inbox.
	mail, inbox []workflows.Message
	// pauses numbers the story's pauses, so that a timer that a message has overtaken wakes nobody. In one it waits for
	// a message, or is in the midst of a step.
	pauses uint64
	waits  bool
	// refuses answers at a glance why an operator's wish is not taken up; nil where it is. May be nil.
	refuses func(workflows.Message) error
	// told, where set, is called before the story is told something.
	told func()
	// asOf, where it is set, is the time up to which the story has come in a survey that began before now.
	asOf cluster.Time
}

// stopped is thrown through a story that the simulation has no time for any more.
type stopped struct{}

// begin starts a story, and runs it until it waits.
func (s *simulator) begin(id string, live func(*story)) {
	st := &story{s: s, id: id, live: live, teller: s.takeTeller()}
	s.stories[id], st.teller.story = st, st
	st.run()
}

// run lets the story go on until it waits again, or is over.
func (st *story) run() {
	if over, _ := st.teller.resume(); !over {
		return
	}
	delete(st.s.stories, st.id)
	st.s.tellers = append(st.s.tellers, st.teller)
	for _, m := range st.inbox {
		answerWish(m, "it is over")
	}
}

// pause waits until the story is run again.
func (st *story) pause() {
	if !st.teller.yield(false) {
		panic(stopped{})
	}
}

// teller is a coroutine that tells one story after the other: its stack has grown once for all of them. It answers
// whether the story is over.
type teller struct {
	story  *story
	resume func() (over, more bool)
	stop   func()
	yield  func(over bool) bool
}

// takeTeller answers a teller that has nothing to tell, or a new one.
func (s *simulator) takeTeller() *teller {
	if last := len(s.tellers) - 1; last >= 0 {
		t := s.tellers[last]
		s.tellers = s.tellers[:last]
		return t
	}
	t := &teller{}
	t.resume, t.stop = iter.Pull(t.tell)
	return t
}

// tell tells stories until it is stopped.
func (t *teller) tell(yield func(over bool) bool) {
	defer func() {
		if thrown := recover(); thrown != nil && thrown != (stopped{}) {
			panic(thrown)
		}
	}()
	t.yield = yield
	for more := true; more; more = yield(true) {
		t.story.live(t.story)
		t.story = nil
	}
}

// tell tells a story something. One that waits goes on at once.
func (st *story) tell(m workflows.Message) {
	if st.told != nil {
		st.told()
	}
	if !isWish(m) {
		st.mail = append(st.mail, m)
	} else if !st.takes(m) {
		return
	}
	if st.waits {
		st.run()
	}
}

// takes takes an operator's wish up, unless it can be refused at a glance.
func (st *story) takes(m workflows.Message) bool {
	if st.refuses != nil {
		if err := st.refuses(m); err != nil {
			answerWish(m, err.Error())
			return false
		}
	}
	st.inbox = append(st.inbox, m)
	return true
}

func isWish(m workflows.Message) bool { return m.Return != nil || m.Wish != nil }

// answerWish answers an operator's wish that is not carried out.
func answerWish(m workflows.Message, refused string) {
	switch {
	case m.Return != nil:
		m.Return.Answer(workflows.ReturnAnswer{Refused: refused})
	case m.Wish != nil:
		m.Wish.Answer(workflows.HostAnswer{Refused: refused})
	}
}

// kindOf orders messages as a workflow reads them that was told of several things.
func kindOf(m workflows.Message) int {
	kinds := []bool{
		m.Joined != nil, m.Emptied, m.Health != nil, m.Reclaimed != nil, m.Recalled != nil, m.Check, // loans and hosts
		m.Demand, m.Believe, m.Changed != nil, // providers
	}
	return slices.Index(kinds, true)
}

// read moves the mail into the inbox.
func (st *story) read() {
	if len(st.mail) > 1 {
		slices.SortStableFunc(st.mail, func(a, b workflows.Message) int { return cmp.Compare(kindOf(a), kindOf(b)) })
	}
	st.inbox = append(st.inbox, st.mail...)
	st.mail = st.mail[:0]
}

// Now implements workflows.Env.
func (st *story) Now() cluster.Time {
	if st.asOf > 0 {
		return st.asOf
	}
	return st.s.now
}

// Receive implements workflows.Env.
func (st *story) Receive(until cluster.Time) (workflows.Message, bool) {
	if st.read(); len(st.inbox) == 0 && (until == 0 || until > st.s.now) {
		st.await(until)
		st.read()
	}
	if len(st.inbox) == 0 {
		return workflows.Message{}, false
	}
	m := st.inbox[0]
	st.inbox = slices.Delete(st.inbox, 0, 1)
	return m, true
}

// await waits for a message, or until a time; 0 is for ever.
func (st *story) await(until cluster.Time) {
	st.waits = true
	st.pauses++
	if until > 0 {
		st.wakeAt(until)
	}
	st.pause()
	st.waits = false
}

// wakeAt has a story that pauses go on at a time, unless it has gone on before.
func (st *story) wakeAt(t cluster.Time) { st.wakeInTurn(t, 0) }

// wakeInTurn is wakeAt in a turn that was kept.
func (st *story) wakeInTurn(t cluster.Time, turn uint64) {
	st.s.agenda.add(event{at: max(t, st.s.now), rank: happening, seq: turn, story: st, pause: st.pauses})
}

// goOn ends a pause.
func (st *story) goOn(pause uint64) {
	if pause == st.pauses {
		st.run()
	}
}

// Full implements workflows.Env: a story on this clock has no history that could grow long.
func (st *story) Full() bool { return false }

// Show implements workflows.Env: nobody looks.
func (st *story) Show(func() workflows.Summary) {}

// step lets a step take its time, with its effect half way. Where a survey is caught up with, what was
// half way before now has no effect any more, and before tells what it found.
func (st *story) step(takes cluster.Duration, effect, before func()) {
	began := st.Now()
	half, end := began.Add(takes/2), began.Add(takes)
	past := st.asOf > 0
	st.asOf = 0
	switch {
	case past && end < st.s.now:
		before()
		st.asOf = end
		return
	case past && half < st.s.now:
		before()
	case takes <= 0:
		effect()
		return
	default:
		st.pauseUntil(half)
		effect()
	}
	st.pauseUntil(end)
}

// pauseUntil pauses until a time, whatever the story is told.
func (st *story) pauseUntil(t cluster.Time) {
	st.pauses++
	st.wakeAt(t)
	st.pause()
}
