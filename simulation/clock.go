package simulation

import (
	"cmp"

	"xce.internal/elastic/cluster"
)

// rank orders what happens at one instant.
type rank uint8

const (
	ending    rank = iota // jobs end
	happening             // stories and providers go on; arrivals come between the two
	hearing               // after the session: stories are told what it found
)

// event is one thing to happen.
type event struct {
	at   cluster.Time
	rank rank
	seq  uint64
	// Of an end the job that ends, of a pause's end the story that goes on; else what is to be done.
	job   *running
	story *story
	pause uint64
	do    func()
}

func (e *event) before(other *event) bool {
	return cmp.Or(cmp.Compare(e.at, other.at), cmp.Compare(e.rank, other.rank), cmp.Compare(e.seq, other.seq)) < 0
}

// agenda is what is to happen, a heap of four branches: the next thing is the first.
type agenda struct {
	events []event
	seq    uint64
}

// turn answers the next place in the order of what happens at one instant.
func (a *agenda) turn() uint64 {
	a.seq++
	return a.seq
}

func (a *agenda) add(e event) {
	if e.seq == 0 {
		e.seq = a.turn()
	}
	a.events = append(a.events, e)
	all := a.events
	for i := len(all) - 1; i > 0; {
		parent := (i - 1) / 4
		if !all[i].before(&all[parent]) {
			return
		}
		all[i], all[parent] = all[parent], all[i]
		i = parent
	}
}

func (a *agenda) next() *event {
	if len(a.events) == 0 {
		return nil
	}
	return &a.events[0]
}

func (a *agenda) pop() event {
	all := a.events
	first, last := all[0], len(all)-1
	all[0] = all[last]
	all[last] = event{}
	all = all[:last]
	a.events = all
	for i := 0; ; {
		least := i
		for child := 4*i + 1; child <= 4*i+4 && child < len(all); child++ {
			if all[child].before(&all[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}
