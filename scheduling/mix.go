package scheduling

import (
	"cmp"
	"slices"
)

// mix fills new hosts one after the other, each with jobs of which some need
// most of one thing and some of another, so that all that a host has is used up
// alike. Its memory is used again.
type mix struct {
	sp    *supply
	size  []int64
	group []int32
	left  []int64 // jobs that have no place yet, by place in the group
	used  []int64 // jobs on the host at hand, likewise
	// lists are the items by what they need most of; order is the dimensions with
	// a list, those first of which most is left of the host.
	lists []mixList
	order []int32
	most  []int32 // in which list an item is, by place in the group; else noList
	at    []int32 // and where in it
	total []int64 // of all jobs, in shares of a host, by dimension
	rest  []int64 // of the host at hand
	share []int64 // the same in millionths of what it had
	want  []int64 // reused
	// pattern is the items that are on the host at hand.
	pattern []int32
}

// mixList is items in packing order. As bins with their needs negated, the first
// one that fits what is left is found as fast as the first host that fits.
type mixList struct {
	needs bins
	items []int32 // places in the group
}

const (
	noList = -1
	// none is the negated need of an item that is used up: it fits nothing.
	none = -1 << 62
)

// fill places jobs of the group on up to n new hosts of the shelf's template, and
// calls opened with how many it used. left has, by place in the group, how many
// jobs there are, and afterwards how many have no place.
func (m *mix) fill(sp *supply, sh *shelf, group []int32, left []int64, n int64, opened func(n int64)) {
	m.begin(sp, sp.e.templates[sh.template].size, group, left)
	for n > 0 {
		m.fillHost()
		if len(m.pattern) == 0 {
			return
		}
		times := n
		for _, k := range m.pattern {
			times = min(times, m.left[k]/m.used[k])
		}
		g := sh.addGroup(m.size, times)
		for _, k := range m.pattern {
			sp.lay(sh, g, group[k], noJob, m.used[k])
			if m.left[k] -= times * m.used[k]; m.left[k] == 0 {
				m.drop(k)
			}
			m.used[k] = 0
		}
		n -= times
		opened(times)
	}
}

// begin sorts the items into lists.
func (m *mix) begin(sp *supply, size []int64, group []int32, left []int64) {
	dims := len(size)
	m.sp, m.size, m.group, m.left = sp, size, group, left
	for len(m.lists) < dims {
		m.lists = append(m.lists, mixList{})
	}
	m.rest, m.share, m.want = sized(m.rest, dims), sized(m.share, dims), sized(m.want, dims)
	m.used, m.most, m.at = sized(m.used, len(group)), m.most[:0], m.at[:0]
	m.measure()
	for d := range m.lists {
		m.lists[d].items = m.lists[d].items[:0]
	}
	for k, it := range group {
		item := &sp.items[it]
		if m.left[k] == 0 || item.nodes > 1 || !covers(size, item.need) {
			m.most, m.at = append(m.most, noList), append(m.at, 0)
			continue
		}
		d := m.mostOf(item.need)
		m.most, m.at = append(m.most, d), append(m.at, int32(len(m.lists[d].items)))
		m.lists[d].items = append(m.lists[d].items, int32(k))
	}
	m.order = m.order[:0]
	for d := range m.lists[:dims] {
		if len(m.lists[d].items) > 0 {
			m.order = append(m.order, int32(d))
			m.buildList(&m.lists[d])
		}
	}
}

// sized answers a slice of n zeros, in the memory of s where that does.
func sized(s []int64, n int) []int64 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// measure works out how much all jobs need of each dimension.
func (m *mix) measure() {
	m.total = sized(m.total, len(m.size))
	for k, it := range m.group {
		for d, n := range m.sp.items[it].need {
			m.total[d] += n * m.left[k]
		}
	}
	for d := range m.total {
		m.total[d] = mulDiv(m.total[d], million, max(m.size[d], 1))
	}
}

// mostOf answers of which dimension a need takes the largest share of a host;
// of several, the one that all jobs together need most of.
func (m *mix) mostOf(need []int64) (most int32) {
	largest := int64(-1)
	for d, n := range need {
		share := mulDiv(n, million, max(m.size[d], 1))
		if share > largest || share == largest && m.total[d] > m.total[most] {
			largest, most = share, int32(d)
		}
	}
	return most
}

func (m *mix) buildList(l *mixList) {
	l.needs.reset(len(m.size), len(l.items))
	for i := range l.needs.most {
		l.needs.most[i] = none
	}
	for _, k := range l.items {
		for d, n := range m.sp.items[m.group[k]].need {
			m.want[d] = -n
		}
		l.needs.push(m.want)
	}
	l.needs.build()
}

// drop takes an item out of its list.
func (m *mix) drop(k int32) {
	l := &m.lists[m.most[k]]
	gone := l.needs.free(int(m.at[k]))
	for d := range gone {
		gone[d] = none
	}
	l.needs.changed(int(m.at[k]))
}

// fillHost finds what goes onto the next host.
func (m *mix) fillHost() {
	copy(m.rest, m.size)
	m.pattern = m.pattern[:0]
	for {
		k := m.next()
		if k < 0 {
			break
		}
		if m.used[k] == 0 {
			m.pattern = append(m.pattern, k)
		}
		need := m.sp.items[m.group[k]].need
		n := m.howMany(k, need)
		for d, x := range need {
			m.rest[d] -= n * x
		}
		if m.used[k] += n; m.used[k] == m.left[k] {
			m.drop(k)
		}
	}
}

// next answers the item of which jobs go onto the host next: the first that fits
// of those that need most of what most is left of. -1 means that none fits.
func (m *mix) next() int32 {
	for d, n := range m.size {
		m.share[d] = mulDiv(m.rest[d], million, max(n, 1))
		m.want[d] = -m.rest[d]
	}
	slices.SortFunc(m.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.share[b], m.share[a]), cmp.Compare(m.total[b], m.total[a]), cmp.Compare(a, b))
	})
	for _, d := range m.order {
		if i := m.lists[d].needs.first(m.want, 0); i >= 0 {
			return m.lists[d].items[i]
		}
	}
	return -1
}

// howMany answers how many jobs of an item go onto the host before another list
// is due, because less is left of this one's dimension.
func (m *mix) howMany(k int32, need []int64) int64 {
	n := min(perHost(m.rest, need), m.left[k]-m.used[k])
	d := m.most[k]
	for _, o := range m.order {
		if o != d && m.lists[o].needs.most[len(m.size)] > none {
			each := max(mulDiv(need[d], million, m.size[d]), 1)
			n = min(n, max((m.share[d]-m.share[o])/each, 1))
		}
	}
	return n
}
