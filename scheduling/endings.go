package scheduling

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// endings are what is given back of one host or one pool, in the order of time. Each is a
// row: a time and then its units. The rows stand in blocks, so that one more or less moves
// few others. Of several that give back the same at one time, which one is taken out makes
// no difference.
type endings struct {
	dims   int
	blocks [][]int64 // none is empty but an only one
}

// mostEndings is when a block is divided.
const mostEndings = 128

// place is where a row begins in a block, or the end where there is none.
type place struct{ block, row int }

// width is how many numbers a row has.
func (all *endings) width() int { return all.dims + 1 }

// has tells whether the place is not the end.
func (all *endings) has(p place) bool { return p.block < len(all.blocks) }

// at answers when the one at a place gives back.
func (all *endings) at(p place) cluster.Time { return cluster.Time(all.blocks[p.block][p.row]) }

// units answers what it gives back.
func (all *endings) units(p place) []int64 {
	return all.blocks[p.block][p.row+1 : p.row+all.width()]
}

// begin answers the place of the first.
func (all *endings) begin() place { return all.settled(place{}) }

// end answers the place behind the last.
func (all *endings) end() place { return place{block: len(all.blocks)} }

// next answers the place after one.
func (all *endings) next(p place) place {
	p.row += all.width()
	return all.settled(p)
}

// settled answers the begin of the next block in place of the end of one.
func (all *endings) settled(p place) place {
	if all.has(p) && p.row == len(all.blocks[p.block]) {
		return place{block: p.block + 1}
	}
	return p
}

// from answers the place of the first one at or after t.
func (all *endings) from(t cluster.Time) place { return all.settled(all.behind(t)) }

// behind answers the place behind all that are before t, in the last block that has one.
func (all *endings) behind(t cluster.Time) place {
	i, j := 1, len(all.blocks)
	for i < j { // the first block, but for the very first, that does not begin before t
		if m := (i + j) / 2; all.at(place{block: m}) < t {
			i = m + 1
		} else {
			j = m
		}
	}
	p := place{block: i - 1}
	if !all.has(p) {
		return p
	}
	b, n := all.blocks[p.block], all.width()
	i, j = 0, len(b)/n
	for i < j { // its first row that is not before t
		if m := (i + j) / 2; cluster.Time(b[m*n]) < t {
			i = m + 1
		} else {
			j = m
		}
	}
	p.row = i * n
	return p
}

// add puts one where it belongs, after those of the same time.
func (all *endings) add(at cluster.Time, units []int64) {
	all.dims = len(units)
	if len(all.blocks) == 0 {
		all.blocks = append(all.blocks, nil)
	}
	p, n := all.behind(at+1), all.width()
	b := append(append(all.blocks[p.block], int64(at)), units...)
	if p.row < len(b)-n {
		copy(b[p.row+n:], b[p.row:])
		b[p.row] = int64(at)
		copy(b[p.row+1:p.row+n], units)
	}
	all.blocks[p.block] = b
	if len(b) > mostEndings*n {
		half := mostEndings / 2 * n
		all.blocks = slices.Insert(all.blocks, p.block+1, slices.Clone(b[half:]))
		all.blocks[p.block] = b[:half]
	}
}

// remove takes one out, and tells whether it was there.
func (all *endings) remove(at cluster.Time, units []int64) bool {
	for p := all.from(at); all.has(p) && all.at(p) == at; p = all.next(p) {
		if slices.Equal(all.units(p), units) {
			all.delete(p)
			return true
		}
	}
	return false
}

// delete takes the one at a place out.
func (all *endings) delete(p place) {
	b, n := all.blocks[p.block], all.width()
	all.blocks[p.block] = append(b[:p.row], b[p.row+n:]...)
	if len(b) == n && len(all.blocks) > 1 {
		all.blocks = slices.Delete(all.blocks, p.block, p.block+1)
	}
}

// clear takes all out.
func (all *endings) clear() {
	if len(all.blocks) > 0 {
		all.blocks[0] = all.blocks[0][:0]
		all.blocks = all.blocks[:1]
	}
}

// listEndings lists anew what all running jobs will give back.
func (e *Engine) listEndings() {
	for i := range e.hosts {
		e.hosts[i].ends.clear()
	}
	e.uses = make([]endings, len(e.resources))
	for i := range e.running.all {
		r := &e.running.all[i]
		for _, h := range r.hosts {
			e.hosts[h].ends.add(r.ends, r.need)
		}
		for _, n := range r.tokens() {
			e.uses[n.pool].add(r.ends, n.one)
		}
	}
}

// tokens answers what a running job has of pools.
func (r *run) tokens() []tokenNeed {
	if int(r.choice) < len(r.choices) {
		return r.choices[r.choice]
	}
	return nil
}
