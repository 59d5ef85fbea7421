package scheduling

import "slices"

// makeItems merges the admitted jobs of all classes by what they need of hosts.
func (s *session) makeItems(classes []*class) {
	s.supply.items = slices.Grow(s.supply.items, len(classes))
	s.parts = slices.Grow(s.parts, len(classes))
	for _, c := range classes {
		if rest := c.pass.admitted - c.pass.onReal; rest > 0 {
			s.addItem(c, rest, c.nodes > 1)
		}
	}
	s.supply.merge()
}

func (s *session) addItem(c *class, count int64, onReal bool) {
	set, wide := s.supply.usable(c.templates), s.supply.usable(c.wide)
	if c.pass.quiet {
		set, wide = s.supply.nothing, s.supply.nothing
	}
	s.parts = append(s.parts, part{c, count})
	last := len(s.parts)
	s.supply.items = append(s.supply.items, item{
		need: c.need, nodes: c.nodes, use: c.use(), kinds: c.kinds, set: set, wide: wide, onReal: onReal && s.fitsNow(c),
		size: c.size, count: count, left: count, parts: s.parts[last-1 : last : last],
	})
}

// merge makes one item of those with the same needs.
func (sp *supply) merge() {
	order := sp.packOrder()
	merged := sp.merged[:0]
	for _, i := range order {
		x := &sp.items[i]
		if n := len(merged) - 1; n >= 0 && merged[n].like(x) {
			merged[n].count += x.count
			merged[n].left += x.left
			merged[n].use = max(merged[n].use, x.use)
			merged[n].parts = append(merged[n].parts, x.parts...)
			continue
		}
		merged = append(merged, *x)
	}
	sp.items, sp.merged = merged, sp.items
}

func (x *item) like(y *item) bool {
	return x.set == y.set && x.nodes == 1 && y.nodes == 1 && x.onReal == y.onReal &&
		slices.Equal(x.need, y.need) && slices.Equal(x.kinds, y.kinds)
}

// fitsNow tells whether any real host has free what a job of the class needs of
// it, whatever is promised to others: those may get something better.
func (s *session) fitsNow(c *class) bool {
	return slices.ContainsFunc(c.kinds, func(k int32) bool { return s.e.shelves[k].bins.first(c.need, 0) >= 0 })
}

// place places one more job of an item, on hosts that are there already, coming
// or about to be made, else on new ones.
func (sp *supply) place(it int32) bool {
	item := &sp.items[it]
	item.count++
	item.left++
	item.parts[0].count++
	if sp.placeOne(it) {
		return true
	}
	item.count--
	item.left--
	item.parts[0].count--
	return false
}

func (sp *supply) placeOne(it int32) bool {
	item := &sp.items[it]
	if item.nodes == 1 {
		sp.open(it, func(sh *shelf) bool {
			item.left -= sp.fill(sh, it, 1)
			return item.left > 0
		})
		if item.left == 0 {
			return true
		}
	} else if sp.placeJob(it, nil) {
		return true
	}
	templates := sp.openOrder(item)
	if item.nodes > 1 {
		return sp.placeJob(it, templates)
	}
	for _, t := range templates {
		if sp.available(t) > 0 {
			item.left -= sp.fillNew(sp.shelfOf(t), it, 1, 1, func(n int64) { sp.charge(t, n) })
			sp.planned[t]--
			return true
		}
	}
	return false
}

// openOrder answers the templates of which a job of the item gets a new host:
// those first that were chosen when all jobs were packed, then by cost.
func (sp *supply) openOrder(item *item) (order []int32) {
	sp.countFor(item.use)
	for _, planned := range []bool{true, false} {
		for _, t := range sp.byCost {
			if item.set.has(t) && sp.planned[t] > 0 == planned {
				order = append(order, t)
			}
		}
	}
	return order
}
