package simulation

import (
	"iter"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/workflows"
)

// story is a workflow's story on the virtual clock: a coroutine that runs until it waits.
type story struct {
	s  *simulator
	id string

	inbox  []workflows.Message
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	// waits tells that the story waits for a message, and woken numbers its wake-ups, so that a timer
	// that is overtaken by a message wakes nobody.
	waits bool
	woken uint64
	// asOf, where it is set, is the time at which the story believes to be: the begin of a survey that
	// it would be making now.
	asOf cluster.Time
}

// stopped is thrown through a story that the simulation has no time for any more.
type stopped struct{}

// begin starts a story, and runs it until it waits.
func (s *simulator) begin(id string, live func(*story)) {
	st := &story{s: s, id: id}
	s.stories[id] = st
	st.resume, st.stop = iter.Pull(func(yield func(struct{}) bool) {
		st.yield = yield
		defer func() {
			if thrown := recover(); thrown != nil && thrown != (stopped{}) {
				panic(thrown)
			}
		}()
		live(st)
	})
	st.run()
}

// run lets the story go on until it waits again, or is over.
func (st *story) run() {
	if _, more := st.resume(); !more {
		delete(st.s.stories, st.id)
	}
}

// pause waits until the story is run again.
func (st *story) pause() {
	if !st.yield(struct{}{}) {
		panic(stopped{})
	}
}

// tell puts a message in, and wakes a story that waits for one.
func (st *story) tell(m workflows.Message) {
	st.inbox = append(st.inbox, m)
	if st.waits {
		st.wake(st.s.now)
	}
}

// wake has the story go on at a time, unless it is woken before.
func (st *story) wake(at cluster.Time) {
	st.woken++
	n := st.woken
	st.s.at(at, func() {
		if st.waits && st.woken == n {
			st.run()
		}
	})
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
	if len(st.inbox) == 0 && (until == 0 || until > st.s.now) {
		st.waits = true
		if until > 0 {
			st.wake(until)
		} else {
			st.woken++
		}
		st.pause()
		st.waits = false
	}
	if len(st.inbox) == 0 {
		return workflows.Message{}, false
	}
	m := st.inbox[0]
	st.inbox = st.inbox[1:]
	return m, true
}

// Full implements workflows.Env: a story on this clock has no history that could grow long.
func (st *story) Full() bool { return false }

// Show implements workflows.Env: nobody looks.
func (st *story) Show(func() workflows.Summary) {}

// step lets a step take its time, with its effect half way.
func (st *story) step(takes cluster.Duration, effect func()) {
	if takes <= 0 {
		effect()
		return
	}
	began := st.Now()
	st.asOf = 0
	st.s.at(began.Add(takes/2), effect)
	st.s.at(began.Add(takes), st.run)
	st.pause()
}
