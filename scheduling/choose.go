package scheduling

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// mostTried is how many templates, the most promising by a rough count, are packed
// to find the best.
const mostTried = 8

// pack places all items, and tells whether every job found a place: first those
// that few templates allow, among them first the large ones; first on hosts that
// are there, coming or chosen already, then on new ones.
func (sp *supply) pack(order []int32) bool {
	all := true
	for len(order) > 0 {
		n := 1
		for n < len(order) && sp.items[order[n]].wide == sp.items[order[0]].wide {
			n++
		}
		all = sp.packGroup(order[:n]) && all
		order = order[n:]
	}
	return all
}

// packGroup places items that the same templates allow.
func (sp *supply) packGroup(group []int32) bool {
	use := cluster.Duration(0)
	for _, it := range group {
		sp.placeOpen(it)
		use = max(use, sp.items[it].use)
	}
	sp.countFor(use)
	for {
		group = slices.DeleteFunc(slices.Clone(group), func(it int32) bool { return sp.items[it].left == 0 })
		if len(group) == 0 {
			return true
		}
		b, ok := sp.choose(group)
		if !ok || !sp.packOn(b, group) {
			return false
		}
	}
}

// packOn places the items on new hosts in the way of a bid, and tells whether
// any found a place.
func (sp *supply) packOn(b bid, group []int32) (any bool) {
	t := b.template
	if b.mixed {
		left := sp.leftOf(group)
		sp.mix.fill(sp, sp.shelfOf(t), group, left, sp.available(t), func(n int64) { sp.charge(t, n) })
		for k, it := range group {
			any = any || left[k] < sp.items[it].left
			sp.items[it].left = left[k]
		}
	}
	for _, it := range group {
		item := &sp.items[it]
		before := item.left
		if item.nodes > 1 {
			for templates := sp.firstAmong(t, item.set); item.left > 0 && sp.placeJob(it, templates); {
			}
		} else if item.set.has(t) {
			item.left -= sp.fill(sp.shelfOf(t), it, item.left)
			item.left -= sp.fillNew(sp.shelfOf(t), it, item.left, sp.available(t), func(n int64) { sp.charge(t, n) })
		}
		any = any || item.left < before
	}
	return any
}

// leftOf answers for items how many of their jobs have no place.
func (sp *supply) leftOf(group []int32) []int64 {
	left := make([]int64, len(group))
	for k, it := range group {
		left[k] = sp.items[it].left
	}
	return left
}

// firstAmong answers the templates of a set by cost, but t first if it is there.
func (sp *supply) firstAmong(t int32, set *templateSet) (list []int32) {
	if set.has(t) {
		list = append(list, t)
	}
	for _, u := range sp.byCost {
		if u != t && set.has(u) {
			list = append(list, u)
		}
	}
	return list
}

// fillNew places up to m jobs on up to n new hosts.
func (sp *supply) fillNew(sh *shelf, it int32, m, n int64, opened func(n int64)) (placed int64) {
	size := sp.e.templates[sh.template].size
	per := perHost(size, sp.items[it].need)
	if m == 0 || n == 0 {
		return 0
	}
	if full := min(m/per, n); full > 0 {
		sp.lay(sh, sh.addGroup(size, full), it, noJob, per)
		placed, n = full*per, n-full
		opened(full)
	}
	if rest := m - placed; rest > 0 && n > 0 {
		sp.lay(sh, sh.addGroup(size, 1), it, noJob, rest)
		placed += rest
		opened(1)
	}
	return placed
}

// bid is how a template would do for the jobs at hand, in one of two ways to fill
// its hosts: the largest jobs first, or mixed.
type bid struct {
	template int32
	mixed    bool
	missing  int64 // of the jobs' sizes, what finds no place
	cost     int64 // of all the hosts that are needed
	waste    int64 // what stays unused, in millionths of a host
}

func compareBids(a, b bid) int {
	return cmp.Or(cmp.Compare(a.missing, b.missing), cmp.Compare(a.cost, b.cost), cmp.Compare(a.waste, b.waste), cmp.Compare(a.template, b.template))
}

// choose answers the template and the way in which the jobs at hand are placed
// cheapest.
func (sp *supply) choose(group []int32) (best bid, ok bool) {
	rest := sp.total(group)
	rough := sp.roughOrder(group, rest)
	bids := make([]bid, 0, len(rough))
	for _, t := range rough {
		if n := sp.available(t); n > 0 {
			bids = append(bids, sp.rough(t, n, rest, rough))
		}
	}
	slices.SortFunc(bids, compareBids)
	for _, b := range bids[:min(mostTried, len(bids))] {
		for _, mixed := range []bool{false, true} {
			if b := sp.try(b.template, mixed, group, rough); !ok || compareBids(b, best) < 0 {
				best, ok = b, true
			}
			if best.missing == 0 && best.cost <= bids[0].cost && (len(bids) == 1 || bids[1].cost > best.cost) {
				return best, ok // it is as cheap as if jobs could be divided, and no other is
			}
			if len(group) == 1 {
				break // there is nothing to mix
			}
		}
	}
	return best, ok
}

// total answers the sum of what the jobs at hand need.
func (sp *supply) total(group []int32) []int64 {
	sum := make([]int64, sp.e.dims.count())
	for _, it := range group {
		item := &sp.items[it]
		for d, n := range item.need {
			sum[d] += n * item.left * item.nodes
		}
	}
	return sum
}

// roughOrder answers the templates that take the first of the jobs at hand, which
// must have one of them in any case, by what it would cost to divide the jobs freely over their hosts.
func (sp *supply) roughOrder(group []int32, rest []int64) []int32 {
	order := slices.Clone(sp.items[group[0]].set.list)
	share := make([]int64, len(sp.e.templates))
	for _, t := range order {
		share[t] = mulDiv(sp.costs[t], fraction(rest, sp.e.templates[t].size), million)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(share[a], share[b]), cmp.Compare(a, b)) })
	return order
}

const million = 1_000_000

// fraction answers how many hosts of a size the need takes if it can be divided
// freely, in millionths.
func fraction(need, size []int64) (most int64) {
	for d, n := range need {
		if n > 0 && size[d] > 0 {
			most = max(most, mulDiv(n, million, size[d]))
		}
	}
	return most
}

// mulDiv answers a*b/c, for numbers that are not negative; the largest number
// where it is larger than that.
func mulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return 1<<63 - 1
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(min(quotient, 1<<63-1))
}

// rough counts with jobs that can be divided freely over whole hosts.
func (sp *supply) rough(t int32, available int64, rest []int64, order []int32) bid {
	hosts := (fraction(rest, sp.e.templates[t].size) + million - 1) / million
	if hosts <= available {
		return bid{template: t, cost: hosts * sp.costs[t]}
	}
	b := bid{template: t, cost: available * sp.costs[t]}
	left := slices.Clone(rest)
	for d, n := range sp.e.templates[t].size {
		left[d] = max(left[d]-available*n, 0)
	}
	sp.complete(&b, left, order, available)
	return b
}

// complete adds to a bid what the other templates would cost for what is left
// after `taken` hosts of its own.
func (sp *supply) complete(b *bid, left []int64, order []int32, taken int64) {
	sp.charge(b.template, taken)
	defer sp.charge(b.template, -taken)
	type charged struct {
		t int32
		n int64
	}
	var charges []charged
	for _, t := range order {
		size := sp.e.templates[t].size
		need := (fraction(left, size) + million - 1) / million
		n := min(need, sp.available(t))
		if n == 0 {
			continue
		}
		sp.charge(t, n)
		charges = append(charges, charged{t, n})
		b.cost += n * sp.costs[t]
		for d := range left {
			left[d] = max(left[d]-n*size[d], 0)
		}
		if n == need {
			break
		}
	}
	for _, c := range charges {
		sp.charge(c.t, -c.n)
	}
	for d, n := range left {
		if n > 0 {
			b.missing = max(b.missing, mulDiv(n, million, max(sp.e.templates[b.template].size[d], 1)))
		}
	}
}

// try packs the jobs at hand on new hosts of a template, each shrunk to the
// cheapest that does, and answers what it comes to.
func (sp *supply) try(t int32, mixed bool, group, order []int32) bid {
	sh, size := &sp.trial, sp.e.templates[t].size
	sh.clear(sp.e.dims.count(), onMade)
	sh.template = t
	available, rest := sp.available(t), sp.leftOf(group)
	if mixed {
		sp.mix.fill(sp, sh, group, rest, available, func(n int64) { available -= n })
	}
	left := make([]int64, len(size))
	for k, it := range group {
		if item := &sp.items[it]; !mixed || item.nodes > 1 {
			rest[k] -= sp.tryItem(sh, it, &available)
		}
		for d, n := range sp.items[it].need {
			left[d] += n * rest[k] * sp.items[it].nodes
		}
	}
	b, opened := bid{template: t, mixed: mixed}, int64(0)
	for g := range sh.groups {
		count, taken := sh.groups[g].count, minus(size, sh.bins.free(g))
		u := sp.cheapest(t, sp.items[group[0]].wide, taken)
		b.cost += count * sp.costs[u]
		b.waste += count * waste(taken, sp.e.templates[u].size)
		opened += count
	}
	if fraction(left, size) > 0 {
		sp.complete(&b, left, order, opened)
	}
	return b
}

// tryItem places jobs of an item on the trial's hosts, and answers how many.
func (sp *supply) tryItem(sh *shelf, it int32, available *int64) (placed int64) {
	item := &sp.items[it]
	if !item.set.has(sh.template) {
		return 0
	}
	if item.nodes == 1 {
		placed = sp.fill(sh, it, item.left)
		return placed + sp.fillNew(sh, it, item.left-placed, *available, func(n int64) { *available -= n })
	}
	for ; placed < item.left; placed++ {
		missing := item.nodes - sh.room(item.need, item.nodes)
		if missing > *available {
			break
		}
		if k := item.nodes - sp.spread(sh, it, noJob, item.nodes); k > 0 {
			*available -= k
			sp.lay(sh, sh.addGroup(sp.e.templates[sh.template].size, k), it, noJob, 1)
		}
	}
	return placed
}

// cheapest answers the cheapest template of the set that takes what is taken of
// a host of template t.
func (sp *supply) cheapest(t int32, set *templateSet, taken []int64) int32 {
	for _, u := range sp.byCost {
		if sp.costs[u] >= sp.costs[t] {
			break
		}
		if set.has(u) && covers(sp.e.templates[u].size, taken) && sp.available(u) > 0 {
			return u
		}
	}
	return t
}

// waste is what stays unused of a host, each countable in millionths of what it
// has; what it does not have is not wasted.
func waste(taken, size []int64) (sum int64) {
	for d, n := range size[:len(size)-1] {
		if n > 0 {
			sum += million - mulDiv(taken[d], million, n)
		}
	}
	return sum
}

// sizeOf answers how large a need is: the largest share of what the largest
// hosts have that it may use.
func (e *Engine) sizeOf(c *class) int64 {
	if len(c.kinds) == 0 {
		return fraction(c.need, c.templates.largest)
	}
	largest := append(e.largest[:0], c.templates.largest...)
	e.largest = largest
	for _, k := range c.kinds {
		for _, s := range e.kinds.all[k].sizes {
			if covers(s.size, c.need) {
				grow(largest, s.size)
			}
		}
	}
	return fraction(c.need, largest)
}

// packOrder answers the items in the order in which they are packed.
func (sp *supply) packOrder() []int32 {
	order := slices.Grow(sp.order[:0], len(sp.items))[:len(sp.items)]
	sp.order = order
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &sp.items[a], &sp.items[b]
		if x.wide != y.wide {
			return cmp.Or(cmp.Compare(len(x.wide.list), len(y.wide.list)), strings.Compare(x.wide.key, y.wide.key))
		}
		return cmp.Or(cmp.Compare(y.size, x.size), cmp.Compare(y.nodes, x.nodes), slices.Compare(y.need, x.need), boolCompare(x.onReal, y.onReal), slices.CompareFunc(x.kinds, y.kinds, sp.e.kinds.compare))
	})
	return order
}

// boolCompare orders true before false.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
