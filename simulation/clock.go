package simulation

import "xce.internal/elastic/cluster"

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
	if e.at != other.at {
		return e.at < other.at
	}
	if e.rank != other.rank {
		return e.rank < other.rank
	}
	return e.seq < other.seq
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
	i := len(all) - 1
	for ; i > 0 && e.before(&all[(i-1)/4]); i = (i - 1) / 4 {
		all[i] = all[(i-1)/4]
	}
	all[i] = e
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
	moved := all[last]
	all[last] = event{}
	all = all[:last]
	a.events = all
	i := 0
	for 4*i+1 < len(all) {
		least := 4*i + 1
		for child := least + 1; child <= 4*i+4 && child < len(all); child++ {
			if all[child].before(&all[least]) {
				least = child
			}
		}
		if !all[least].before(&moved) {
			break
		}
		all[i] = all[least]
		i = least
	}
	if last > 0 {
		all[i] = moved
	}
	return first
}
