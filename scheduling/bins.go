package scheduling

// bins is a row of hosts, or of groups of like hosts, and what is free on each,
// as a tournament tree: every node knows the most that is free of each
// dimension below it, so that the first that fits is found without looking at
// all of them.
type bins struct {
	dims   int
	leaves int
	size   int     // leaves that there is room for; a power of two
	most   []int64 // 2*size nodes of dims values; node 1 is the root
}

// reset empties b, with room for n.
func (b *bins) reset(dims, n int) {
	size := 1
	for size < n {
		size *= 2
	}
	b.dims, b.leaves, b.size = dims, 0, size
	if need := 2 * size * dims; cap(b.most) < need {
		b.most = make([]int64, need)
	} else {
		b.most = b.most[:need]
	}
	for i := range b.most {
		b.most[i] = -1 // fits nothing
	}
}

// copyFrom makes b a copy of a.
func (b *bins) copyFrom(a *bins) {
	most := append(b.most[:0], a.most...)
	*b = *a
	b.most = most
}

// push adds a bin without making it known to the nodes above; see build.
func (b *bins) push(free []int64) int {
	if b.leaves == b.size {
		b.grow()
	}
	i := b.leaves
	b.leaves++
	copy(b.free(i), free)
	return i
}

// add adds a bin.
func (b *bins) add(free []int64) int {
	i := b.push(free)
	b.changed(i)
	return i
}

func (b *bins) grow() {
	old, leaves := b.most[b.size*b.dims:], b.leaves
	b.most = nil
	b.reset(b.dims, 2*b.size)
	copy(b.most[b.size*b.dims:], old)
	b.leaves = leaves
	b.build()
}

// build works out all nodes from the leaves.
func (b *bins) build() {
	for node := b.size - 1; node > 0; node-- {
		b.settle(node)
	}
}

// buildOver works out the nodes above some leaves.
func (b *bins) buildOver(first, last int) {
	for from, to := (b.size+first)/2, (b.size+last)/2; from > 0; from, to = from/2, to/2 {
		for node := from; node <= to; node++ {
			b.settle(node)
		}
	}
}

// free is what is free in bin i. Whoever changes it calls changed.
func (b *bins) free(i int) []int64 {
	at := (b.size + i) * b.dims
	return b.most[at : at+b.dims : at+b.dims]
}

// take takes the need, so many times, from what is free in bin i.
func (b *bins) take(i int, need []int64, times int64) {
	free := b.free(i)
	for d, n := range need {
		free[d] -= times * n
	}
	b.changed(i)
}

// changed makes a new value of bin i known to the nodes above it.
func (b *bins) changed(i int) {
	for node := (b.size + i) / 2; node > 0; node /= 2 {
		if !b.settle(node) {
			return
		}
	}
}

// settle works out one node from its two children, and tells whether it changed.
func (b *bins) settle(node int) (changed bool) {
	d := b.dims
	at := b.most[node*d : node*d+d : node*d+d]
	left := b.most[2*node*d : 2*node*d+d : 2*node*d+d]
	right := b.most[2*node*d+d : 2*node*d+2*d : 2*node*d+2*d]
	for k := range at {
		if v := max(left[k], right[k]); v != at[k] {
			at[k] = v
			changed = true
		}
	}
	return changed
}

// first answers the first bin from `from` on that has the need free, or -1.
func (b *bins) first(need []int64, from int) int {
	if from >= b.leaves {
		return -1
	}
	node := b.size + from
	for {
		if !b.fits(node, need) {
			for node&1 == 1 { // the last child: its parent is done too
				node /= 2
			}
			if node == 0 {
				return -1
			}
			node++
			continue
		}
		if node >= b.size {
			return node - b.size
		}
		node *= 2
	}
}

func (b *bins) fits(node int, need []int64) bool {
	have := b.most[node*b.dims:]
	have = have[:len(need)]
	for k, n := range need {
		if have[k] < n {
			return false
		}
	}
	return true
}
