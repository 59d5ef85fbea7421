package scheduling

import (
	"cmp"
	"slices"
)

// realShelf is the hosts of one kind that take jobs, the fullest first.
type realShelf struct {
	bins    bins
	hosts   []int32 // by leaf
	changed bool    // which hosts there are, since they were put in order
	moved   []int32 // those that have got or lost jobs since then
}

// note remembers that a host of the shelf has got or lost jobs.
func (sh *realShelf) note(i int32, h *host) {
	if !h.moved && h.closed == "" {
		h.moved = true
		sh.moved = append(sh.moved, i)
	}
}

// shelve orders the hosts of each kind as jobs try them: those that the cluster
// owns first, then the fullest, so that elastic ones fall idle. Kinds of which
// nothing has changed are as they were.
func (e *Engine) shelve() {
	for k := range e.shelves {
		sh := &e.shelves[k]
		switch {
		case sh.changed:
			sh.changed = false
			slices.SortFunc(sh.hosts, e.fuller)
			sh.bins.reset(e.dims.count(), len(sh.hosts))
			sh.bins.leaves = len(sh.hosts)
			e.fillBins(sh, 0, len(sh.hosts)-1)
		case len(sh.moved) > 0 && len(sh.hosts) == 1:
			e.fillBins(sh, 0, 0)
		case len(sh.moved) > 0:
			e.move(sh)
		}
		for _, i := range sh.moved {
			e.hosts[i].moved = false
		}
		sh.moved = sh.moved[:0]
	}
}

// fuller orders hosts as jobs try them.
func (e *Engine) fuller(a, b int32) int {
	x, y := &e.hosts[a], &e.hosts[b]
	return cmp.Or(boolCompare(x.template == "", y.template == ""), slices.Compare(x.free, y.free), cmp.Compare(x.rank, y.rank))
}

// move puts the hosts where they belong that have got or lost jobs.
func (e *Engine) move(sh *realShelf) {
	first, last := len(sh.hosts), 0
	for _, i := range sh.moved {
		at := int(e.hosts[i].leaf)
		first, last = min(first, at), max(last, at)
	}
	n := first
	for _, i := range sh.hosts[first:] {
		if !e.hosts[i].moved {
			sh.hosts[n] = i
			n++
		}
	}
	sh.hosts = sh.hosts[:n]
	for _, i := range sh.moved {
		at, _ := slices.BinarySearchFunc(sh.hosts, i, e.fuller)
		sh.hosts = slices.Insert(sh.hosts, at, i)
		first, last = min(first, at), max(last, at+len(sh.moved)) // those after it may move it on
	}
	e.fillBins(sh, first, min(last, len(sh.hosts)-1))
}

// fillBins tells the bins from first to last what is free on their hosts.
func (e *Engine) fillBins(sh *realShelf, first, last int) {
	for i := first; i <= last; i++ {
		h := &e.hosts[sh.hosts[i]]
		h.leaf = int32(i)
		copy(sh.bins.free(i), h.left())
	}
	sh.bins.buildOver(first, last)
}
