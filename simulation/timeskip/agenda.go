package timeskip

import (
	"container/heap"
	"time"
)

// An entry is one thing to do at one virtual instant.
type entry struct {
	at         time.Time
	do         func()
	background bool // does not keep the run going
	armed      bool
}

// The agenda holds all instants of the harness in one heap, and keeps only the
// next one as a timer of the environment: that one searches all its timers at each
// step, and cannot take more than a thousand before its loop runs.
//
// No two entries share an instant. Timers that fire together would run in an order
// that the environment does not define.
type agenda struct {
	entries    entryHeap
	taken      map[int64]bool
	foreground int
}

func newAgenda() *agenda {
	return &agenda{taken: make(map[int64]bool)}
}

// add puts e at its instant, or at the next free one.
func (a *agenda) add(e *entry) {
	for a.taken[e.at.UnixNano()] {
		e.at = e.at.Add(1)
	}
	a.taken[e.at.UnixNano()] = true
	if !e.background {
		a.foreground++
	}
	heap.Push(&a.entries, e)
}

// next is the first entry, or nil.
func (a *agenda) next() *entry {
	if len(a.entries) == 0 {
		return nil
	}
	return a.entries[0]
}

// due takes the first entry if its time has come.
func (a *agenda) due(now time.Time) *entry {
	if e := a.next(); e == nil || e.at.After(now) {
		return nil
	}
	e := heap.Pop(&a.entries).(*entry)
	delete(a.taken, e.at.UnixNano())
	if !e.background {
		a.foreground--
	}
	return e
}

type entryHeap []*entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entryHeap) Push(x any)        { *h = append(*h, x.(*entry)) }

func (h *entryHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
