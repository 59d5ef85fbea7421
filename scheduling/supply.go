package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// where says what kind of host a waiting job has a place on.
type where int8

const (
	onReal   where = iota // free now
	onComing              // expected
	onMade                // to be made from a template
)

// shelf is hosts of one kind with what is free on them: groups of like hosts,
// one for each bin.
type shelf struct {
	bins     bins
	groups   []group
	where    where
	template int32            // of hosts to be made
	use      cluster.Duration // of those: how long the jobs on them run
	hosts    []int32          // by bin: which real or expected host it is
}

// group is like hosts with a like load.
type group struct {
	count int64
	load  int32        // the last in supply.loads, or noLoad
	set   *templateSet // what the hosts may be made from, for all that is on them
	taken bool         // a real host that a job has a place on; see session.placeOnReal
}

// load is jobs of one item on each host of a group.
type load struct {
	item int32
	job  int32 // which of the item's jobs, where they run on several hosts; else noJob
	per  int64
	prev int32
}

const (
	noLoad = -1
	noJob  = -1
)

// supply is all that waiting jobs could get beside what they can take now: what
// is left of real hosts for those that lack tokens, expected hosts, and hosts
// that could be made.
type supply struct {
	e      *Engine
	real   []shelf // by kind
	coming []shelf // by kind
	made   []shelf // one for each template that is used, in the order of choice
	left   bool    // that hosts are left alone
	loads  []load
	items  []item
	merged []item  // reused
	order  []int32 // reused
	// canMake is which templates hosts could be made of as the pass began, and
	// usables the sets without the others.
	canMake []uint64
	usables map[*templateSet]*templateSet
	nothing *templateSet
	// planned is how many hosts of each template the packing of all jobs chose.
	planned []int64
	// headroom and quota are what is left of them, by template and by quota.
	headroom, quota []int64
	trial           shelf // reused
	mix             mix   // reused
	// use is how long the jobs at hand are counted to run; byCost are all
	// templates in the order of what one host costs for that long, costs by template.
	use    cluster.Duration
	costs  []int64
	byCost []int32
}

// item is jobs with like needs of hosts.
type item struct {
	need  []int64
	nodes int64
	use   cluster.Duration // how long the longest of them is counted to run
	kinds []int32
	// set is the templates that take them; wide also has those that are too small.
	set, wide *templateSet
	// onReal tells that real hosts are tried for them too.
	onReal bool
	size   int64 // for the order; see sizeOf
	count  int64
	left   int64 // not placed yet
	parts  []part
	tally  []tally
	jobs   [][]tally // where they run on several hosts: for each job
}

// part is the jobs of one class in an item.
type part struct {
	class *class
	count int64
}

// tally counts places of one kind.
type tally struct {
	where    where
	template int32
	n        int64
	by       cluster.Time // for expected hosts: when the last one should be there
}

// reset makes sp the supply that is left after the real pass.
func (sp *supply) reset(s *session) {
	sp.e = s.e
	sp.headroom = s.e.headrooms(sp.headroom, s.now)
	sp.quota = s.e.quotasLeft(sp.quota)
	sp.made, sp.items, sp.use, sp.planned = sp.made[:0], sp.items[:0], 0, sp.planned[:0]
	sp.findUsable()
}

// findUsable finds the templates of which hosts could be made as the pass begins.
func (sp *supply) findUsable() {
	sp.canMake = sp.canMake[:0]
	for range (len(sp.headroom) + 63) / 64 {
		sp.canMake = append(sp.canMake, 0)
	}
	clear(sp.usables)
	if sp.usables == nil {
		sp.usables = map[*templateSet]*templateSet{}
	}
	sp.nothing = sp.e.setOf(sp.canMake)
	for t, n := range sp.headroom {
		if n > 0 {
			sp.canMake[t/64] |= 1 << (t % 64)
		}
	}
}

// usable answers those of a set, so that templates of no use tell no jobs apart.
func (sp *supply) usable(set *templateSet) *templateSet {
	if usable, known := sp.usables[set]; known {
		return usable
	}
	bits := append(sp.e.setBits[:0], set.bits...)
	for i := range bits {
		bits[i] &= sp.canMake[i]
	}
	sp.e.setBits = bits
	sp.usables[set] = sp.e.setOf(bits)
	return sp.usables[set]
}

// clearHosts puts all hosts back as they were, without what was placed on them.
func (sp *supply) clearHosts(s *session) {
	if len(s.starts) > 0 {
		s.e.shelve() // as the next session will find them
	}
	sp.left = false
	kinds := len(s.e.kinds.all)
	sp.loads = sp.loads[:0]
	sp.real = resized(sp.real, kinds)
	sp.coming = resized(sp.coming, kinds)
	for k := range kinds {
		from, to := &s.e.shelves[k], &sp.real[k]
		to.bins.copyFrom(&from.bins)
		to.hosts, to.where = from.hosts, onReal
		to.groups = to.groups[:0]
		for range from.hosts {
			to.groups = append(to.groups, group{count: 1, load: noLoad})
		}
		sp.coming[k].clear(s.e.dims.count(), onComing)
	}
	for i := range s.e.expected {
		x := &s.e.expected[i]
		shelf := &sp.coming[x.kind]
		shelf.bins.add(x.size)
		shelf.hosts = append(shelf.hosts, int32(i))
		shelf.groups = append(shelf.groups, group{count: 1, load: noLoad})
	}
}

// leaveHosts leaves all hosts alone: nobody can have any of them.
func (sp *supply) leaveHosts(s *session) {
	sp.left, sp.loads, sp.items = true, sp.loads[:0], sp.items[:0]
	sp.real, sp.coming = resized(sp.real, len(s.e.kinds.all)), resized(sp.coming, len(s.e.kinds.all))
	for k := range sp.real {
		sp.real[k].groups, sp.coming[k].groups = sp.real[k].groups[:0], sp.coming[k].groups[:0]
	}
}

// plan takes back the hosts that were chosen, and remembers how many of each
// template they were: jobs that come one by one get those first.
func (sp *supply) plan() {
	sp.planned = sized(sp.planned, len(sp.e.templates))
	for i := range sp.made {
		sh := &sp.made[i]
		for _, g := range sh.groups {
			sp.planned[sh.template] += g.count
			sp.charge(sh.template, -g.count)
		}
	}
	sp.made = sp.made[:0]
}

func resized(shelves []shelf, n int) []shelf {
	for len(shelves) < n {
		shelves = append(shelves, shelf{})
	}
	return shelves[:n]
}

func (sh *shelf) clear(dims int, w where) {
	sh.bins.reset(dims, 4)
	sh.groups, sh.hosts, sh.where = sh.groups[:0], sh.hosts[:0], w
}

func (sh *shelf) addGroup(free []int64, count int64) int {
	sh.groups = append(sh.groups, group{count: count, load: noLoad})
	return sh.bins.add(free)
}

// split leaves n hosts in group i, and makes the others a group of their own.
func (sh *shelf) split(i int, n int64) {
	g := &sh.groups[i]
	if g.count == n {
		return
	}
	rest := *g
	rest.count -= n
	g.count = n
	sh.bins.add(sh.bins.free(i))
	sh.groups = append(sh.groups, rest)
}

// perHost answers how many times the need fits into what is free.
func perHost(free, need []int64) int64 {
	per := int64(wholeHost)
	for d, n := range need {
		if n > 0 {
			per = min(per, free[d]/n)
		}
	}
	return per
}

// fill places up to m jobs of an item that run on one host each, and answers how many.
func (sp *supply) fill(sh *shelf, it int32, m int64) (placed int64) {
	need := sp.items[it].need
	for i := sh.bins.first(need, 0); i >= 0 && placed < m; i = sh.bins.first(need, i+1) {
		per, n, rest := perHost(sh.bins.free(i), need), sh.groups[i].count, m-placed
		switch {
		case rest/n >= per: // all of them are filled up
		case rest >= per:
			n = rest / per
		default:
			n, per = 1, rest
		}
		sh.split(i, n)
		sp.lay(sh, i, it, noJob, per)
		placed += n * per
	}
	return placed
}

// spread places up to k of the hosts of one job, each on another host.
func (sp *supply) spread(sh *shelf, it, job int32, k int64) (placed int64) {
	need := sp.items[it].need
	for i := sh.bins.first(need, 0); i >= 0 && placed < k; i = sh.bins.first(need, i+1) {
		n := min(sh.groups[i].count, k-placed)
		sh.split(i, n)
		sp.lay(sh, i, it, job, 1)
		placed += n
	}
	return placed
}

// room answers on how many hosts of the shelf a job's need fits, up to k.
func (sh *shelf) room(need []int64, k int64) (n int64) {
	if k == 0 {
		return 0
	}
	for i := sh.bins.first(need, 0); i >= 0 && n < k; i = sh.bins.first(need, i+1) {
		n += sh.groups[i].count
	}
	return min(n, k)
}

// lay puts jobs of an item on each host of group i.
func (sp *supply) lay(sh *shelf, i int, it, job int32, per int64) {
	item := &sp.items[it]
	sh.bins.take(i, item.need, per)
	if sh == &sp.trial {
		return
	}
	g := &sh.groups[i]
	if sh.where == onMade {
		if g.set == nil {
			g.set = item.set
		}
		g.set = sp.e.both(g.set, item.set)
		sh.use = max(sh.use, item.use)
	}
	sp.loads = append(sp.loads, load{item: it, job: job, per: per, prev: g.load})
	g.load = int32(len(sp.loads) - 1)
}

// open calls use with the shelves that the item may use, in the order in which
// it tries them, until it answers false.
func (sp *supply) open(it int32, use func(*shelf) bool) {
	item := &sp.items[it]
	if item.onReal {
		for _, k := range item.kinds {
			if !use(&sp.real[k]) {
				return
			}
		}
	}
	for _, k := range item.kinds {
		if !use(&sp.coming[k]) {
			return
		}
	}
	for i := range sp.made {
		if item.set.has(sp.made[i].template) && !use(&sp.made[i]) {
			return
		}
	}
}

// placeOpen places as many jobs of the item as hosts that are there already, or
// chosen already, take.
func (sp *supply) placeOpen(it int32) {
	if sp.items[it].nodes > 1 {
		for sp.items[it].left > 0 && sp.placeJob(it, nil) {
		}
		return
	}
	sp.open(it, func(sh *shelf) bool {
		sp.items[it].left -= sp.fill(sh, it, sp.items[it].left)
		return sp.items[it].left > 0
	})
}

// placeJob places the next job of an item on several hosts: on open ones, and
// on new ones of the templates, the first ones first. It places all or nothing.
func (sp *supply) placeJob(it int32, templates []int32) bool {
	item := &sp.items[it]
	missing := item.nodes
	sp.open(it, func(sh *shelf) bool {
		missing -= sh.room(item.need, missing)
		return missing > 0
	})
	made, ok := sp.reserve(templates, missing)
	if !ok {
		return false
	}
	job, k := int32(item.count-item.left), item.nodes
	sp.open(it, func(sh *shelf) bool {
		k -= sp.spread(sh, it, job, k)
		return k > 0
	})
	for _, m := range made {
		if len(sp.planned) > 0 {
			sp.planned[m.template] -= m.count
		}
		sh := sp.shelfOf(m.template)
		sp.lay(sh, sh.addGroup(sp.e.templates[m.template].size, m.count), it, job, 1)
	}
	item.left--
	return true
}

// hasRoom tells whether the hosts that are there, coming or chosen take one more
// job of the class.
func (sp *supply) hasRoom(c *class) bool {
	missing := c.nodes
	for _, k := range c.kinds {
		missing -= sp.real[k].room(c.need, missing)
		missing -= sp.coming[k].room(c.need, missing)
	}
	for i := range sp.made {
		if c.templates.has(sp.made[i].template) {
			missing -= sp.made[i].room(c.need, missing)
		}
	}
	for t, n := range sp.planned {
		if n > 0 && missing > 0 && c.templates.has(int32(t)) {
			missing -= min(n, sp.available(int32(t)), missing)
		}
	}
	return missing == 0
}

// reserve takes n hosts from what can be made of the templates, all or none.
func (sp *supply) reserve(templates []int32, n int64) (made []madeHosts, ok bool) {
	for _, t := range templates {
		if k := min(n, sp.available(t)); k > 0 {
			sp.charge(t, k)
			made = append(made, madeHosts{template: t, count: k})
			n -= k
		}
	}
	if n == 0 {
		return made, true
	}
	for _, m := range made {
		sp.charge(m.template, -m.count)
	}
	return nil, false
}

// available answers how many hosts of a template can still be made.
func (sp *supply) available(t int32) int64 {
	n := sp.headroom[t]
	for _, q := range sp.e.templates[t].quotas {
		if charge := sp.e.quotas[q].charge(sp.e.templates[t].said); charge > 0 {
			n = min(n, sp.quota[q]/charge)
		}
	}
	return n
}

// charge takes n hosts of a template from what can be made; n may be negative.
func (sp *supply) charge(t int32, n int64) {
	sp.headroom[t] -= n
	for _, q := range sp.e.templates[t].quotas {
		sp.quota[q] -= n * sp.e.quotas[q].charge(sp.e.templates[t].said)
	}
}

// shelfOf answers the shelf of the hosts that are to be made from a template.
func (sp *supply) shelfOf(t int32) *shelf {
	for i := range sp.made {
		if sp.made[i].template == t {
			return &sp.made[i]
		}
	}
	if n := len(sp.made); n < cap(sp.made) {
		sp.made = sp.made[:n+1] // with the memory of an earlier session
	} else {
		sp.made = append(sp.made, shelf{})
	}
	sh := &sp.made[len(sp.made)-1]
	sh.clear(sp.e.dims.count(), onMade)
	sh.template, sh.use = t, 0
	return sh
}

// countFor makes the costs those for jobs that run so long.
func (sp *supply) countFor(use cluster.Duration) {
	if sp.use == use {
		return
	}
	sp.use, sp.costs, sp.byCost = use, sp.costs[:0], sp.byCost[:0]
	for i := range sp.e.templates {
		t := &sp.e.templates[i]
		sp.costs = append(sp.costs, cost(t.Price, t.MinimumHold, t.BillingStep, use))
		sp.byCost = append(sp.byCost, int32(i))
	}
	slices.SortFunc(sp.byCost, func(a, b int32) int {
		return cmp.Or(cmp.Compare(sp.costs[a], sp.costs[b]), cmp.Compare(a, b))
	})
}

// madeHosts is hosts of one template that a session asks for.
type madeHosts struct {
	template int32
	count    int64
	load     int32
}

// shrink answers the hosts to be made, each from the cheapest template that
// takes what is on it.
func (sp *supply) shrink() (hosts []madeHosts) {
	for i := range sp.made {
		sh := &sp.made[i]
		sp.countFor(sh.use)
		size := sp.e.templates[sh.template].size
		for g := range sh.groups {
			hosts = sp.shrinkGroup(hosts, sh.template, sh.groups[g], minus(size, sh.bins.free(g)))
		}
	}
	return hosts
}

func (sp *supply) shrinkGroup(hosts []madeHosts, t int32, g group, taken []int64) []madeHosts {
	left := g.count
	for _, u := range sp.byCost {
		if left == 0 || sp.costs[u] >= sp.costs[t] {
			break
		}
		if !g.set.has(u) || !covers(sp.e.templates[u].size, taken) {
			continue
		}
		n := int64(0)
		for ; n < left && sp.exchange(t, u); n++ {
		}
		if n > 0 {
			hosts = append(hosts, madeHosts{u, n, g.load})
			left -= n
		}
	}
	if left > 0 {
		hosts = append(hosts, madeHosts{t, left, g.load})
	}
	return hosts
}

// exchange takes a host of u in place of one of t, if it can be made once that is
// not.
func (sp *supply) exchange(t, u int32) bool {
	sp.charge(t, -1)
	if sp.available(u) == 0 {
		sp.charge(t, 1)
		return false
	}
	sp.charge(u, 1)
	return true
}

func minus(a, b []int64) []int64 {
	d := make([]int64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}
