package scheduling

import (
	"cmp"
	"encoding/binary"
	"slices"

	"xce.internal/elastic/cluster"
)

// template is a kind of host that a provider can make.
type template struct {
	cluster.Template
	size     []int64 // what one is believed to have
	said     []int64 // what the template says of it
	features []string
	quotas   []int32 // places in Engine.quotas
	words    verdict // for jobs that get hosts of it
}

// quota is a limit that several templates share, and which dimension it counts;
// hosts where that is negative.
type quota struct {
	cluster.Quota
	dim int
}

const countHosts = -1

// charge is what one host of the size takes of the quota.
func (q quota) charge(size []int64) int64 {
	if q.dim == countHosts {
		return 1
	}
	return size[q.dim]
}

// expected is a host that was asked for.
type expected struct {
	cluster.ExpectedHost
	kind int32
	size []int64 // what jobs may count on
	said []int64 // what it is charged as
	ends endings // that it joins, as if a job ended that takes all of it
}

// templateSet is the templates that a class may use.
type templateSet struct {
	list []int32
	bits []uint64
	key  string
	// largest is the most that any of them has, by dimension.
	largest []int64
}

func (ts *templateSet) has(t int32) bool { return ts.bits[t/64]>>(t%64)&1 == 1 }

// both answers the templates that are in a and in b.
func (e *Engine) both(a, b *templateSet) *templateSet {
	if a == b {
		return a
	}
	bits := slices.Clone(a.bits)
	for i := range bits {
		bits[i] &= b.bits[i]
	}
	return e.setOf(bits)
}

// setOf answers the one set with these bits.
func (e *Engine) setOf(bits []uint64) *templateSet {
	e.setKey = e.setKey[:0]
	for _, word := range bits {
		e.setKey = binary.BigEndian.AppendUint64(e.setKey, word)
	}
	if ts, known := e.templateSets[string(e.setKey)]; known {
		return ts
	}
	ts := &templateSet{bits: slices.Clone(bits), key: string(e.setKey), largest: make([]int64, e.dims.count())}
	for t := range e.templates {
		if ts.has(int32(t)) {
			ts.list = append(ts.list, int32(t))
			grow(ts.largest, e.templates[t].size)
		}
	}
	e.templateSets[ts.key] = ts
	return ts
}

// grow makes a as large as b in every dimension.
func grow(a, b []int64) {
	for d, n := range b {
		a[d] = max(a[d], n)
	}
}

// wideFor answers the templates that the constraint allows and that have some of
// everything that is needed, if perhaps too little.
func (e *Engine) wideFor(text string, constraint cluster.Constraint, need []int64) *templateSet {
	e.setKey = append(e.setKey[:0], text...)
	for _, n := range need {
		e.setKey = append(e.setKey, byte(min(n, 1)))
	}
	if wide, known := e.wides[string(e.setKey)]; known {
		return wide
	}
	key, bits := string(e.setKey), make([]uint64, (len(e.templates)+63)/64)
	for t := range e.templates {
		tmpl := &e.templates[t]
		if hasSome(tmpl.size, need) && constraint.Holds(tmpl.hasFeature) {
			bits[t/64] |= 1 << (t % 64)
		}
	}
	e.wides[key] = e.setOf(bits)
	return e.wides[key]
}

// hasSome tells whether a has something of all that is needed.
func hasSome(a, need []int64) bool {
	for d, n := range need {
		if n > 0 && a[d] == 0 {
			return false
		}
	}
	return true
}

// largeEnough answers the templates of a set that are large enough.
func (e *Engine) largeEnough(wide *templateSet, need []int64) *templateSet {
	e.setBits = append(e.setBits[:0], wide.bits...)
	for _, t := range wide.list {
		if !covers(e.templates[t].size, need) {
			e.setBits[t/64] &^= 1 << (t % 64)
		}
	}
	return e.setOf(e.setBits)
}

// covers tells whether a has at least b of everything.
func covers(a, b []int64) bool {
	for d, n := range b {
		if a[d] < n {
			return false
		}
	}
	return true
}

// takeCatalog takes over what providers can make.
func (e *Engine) takeCatalog(templates []cluster.Template, quotas []cluster.Quota) {
	before := e.templates
	e.quotas, e.templates, e.spareTemplates = e.quotas[:0], e.spareTemplates[:0], before
	for _, q := range quotas {
		dim, known := e.dims.index[q.Counts]
		if !known {
			dim = countHosts // nothing else is counted by a name that nothing has
		}
		e.quotas = append(e.quotas, quota{Quota: q, dim: dim})
	}
	slices.SortFunc(e.quotas, func(a, b quota) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range templates {
		taken := e.templateOf(t, before)
		for i := range e.quotas {
			if slices.Contains(t.Quotas, e.quotas[i].Name) {
				taken.quotas = append(taken.quotas, int32(i))
			}
		}
		e.templates = append(e.templates, taken)
	}
	slices.SortFunc(e.templates, func(a, b template) int {
		return cmp.Or(cmp.Compare(a.Preference, b.Preference), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Provider, b.Provider))
	})
	clear(e.templateIndex)
	for i := range e.templates {
		e.templateIndex[e.templates[i].Name] = int32(i)
	}
}

// templateOf answers a template with what its hosts have, which most often is what they had before.
func (e *Engine) templateOf(t cluster.Template, before []template) template {
	if i, known := e.templateIndex[t.Name]; known && before[i].SameHosts(t) {
		return template{Template: t, size: before[i].size, said: before[i].said, features: before[i].features}
	}
	believed := t.Believed()
	taken := template{Template: t, size: make([]int64, e.dims.count()), said: make([]int64, e.dims.count()), features: believed.FeatureNames()}
	e.dims.size(taken.said, t.Capacity)
	e.dims.size(taken.size, believed)
	return taken
}

// catalog answers what takeCatalog took over.
func (e *Engine) catalog() (templates []cluster.Template, quotas []cluster.Quota) {
	for i := range e.templates {
		templates = append(templates, e.templates[i].Template)
	}
	for i := range e.quotas {
		quotas = append(quotas, e.quotas[i].Quota)
	}
	return templates, quotas
}

func (t *template) hasFeature(name string) bool {
	_, has := slices.BinarySearch(t.features, name)
	return has
}

// takeExpected takes over the hosts that are coming. Jobs count on what is believed
// of their template where that is less; they are charged as what it says where that
// is more.
func (e *Engine) takeExpected(hosts []cluster.ExpectedHost) {
	e.expected = make([]expected, 0, len(hosts))
	for _, h := range hosts {
		x := expected{ExpectedHost: h, size: make([]int64, e.dims.count())}
		e.dims.size(x.size, h.Capacity)
		x.said = slices.Clone(x.size)
		if t, offered := e.templateIndex[h.Template]; offered {
			grow(x.said, e.templates[t].said)
			x.size = least(x.size, e.templates[t].size)
			h.Capacity = h.Capacity.Least(e.templates[t].Believed())
		}
		x.ends.add(x.Expected, x.size)
		x.kind = e.kindOf(x.size, h.Capacity)
		e.expected = append(e.expected, x)
	}
	// Jobs take the smallest that does.
	slices.SortFunc(e.expected, func(a, b expected) int { return cmp.Or(slices.Compare(a.size, b.size), cmp.Compare(a.ID, b.ID)) })
}

// dropExpected forgets hosts that are not expected any more.
func (e *Engine) dropExpected(hosts []expected) {
	for i := range hosts {
		e.kinds.drop(hosts[i].kind, hosts[i].size)
	}
}

// expectedHosts answers what takeExpected took over.
func (e *Engine) expectedHosts() (hosts []cluster.ExpectedHost) {
	for i := range e.expected {
		hosts = append(hosts, e.expected[i].ExpectedHost)
	}
	return hosts
}

// least answers the smaller one in every dimension.
func least(a, b []int64) []int64 {
	v := slices.Clone(a)
	for d, n := range b {
		v[d] = min(v[d], n)
	}
	return v
}

// headrooms answers how many hosts each template could give now: what was asked
// for since it was published has taken of it, and a provider that refused is
// left alone.
func (e *Engine) headrooms(into []int64, now cluster.Time) []int64 {
	into = into[:0]
	for i := range e.templates {
		t := &e.templates[i]
		if now < t.BackoffUntil {
			into = append(into, 0)
			continue
		}
		into = append(into, t.Headroom)
	}
	for i := range e.expected {
		x := &e.expected[i]
		if t, offered := e.templateIndex[x.Template]; offered && x.Requested > e.templates[t].Published {
			into[t] = max(into[t]-1, 0)
		}
	}
	return into
}

// quotasLeft answers what is left of each quota; what was asked for since it was
// published is charged as what it will have.
func (e *Engine) quotasLeft(into []int64) []int64 {
	into = into[:0]
	for i := range e.quotas {
		into = append(into, max(e.quotas[i].Limit-e.quotas[i].Used, 0))
	}
	for i := range e.expected {
		x := &e.expected[i]
		t, offered := e.templateIndex[x.Template]
		if !offered {
			continue
		}
		for _, q := range e.templates[t].quotas {
			if x.Requested > e.quotas[q].Published {
				into[q] = max(into[q]-e.quotas[q].charge(x.said), 0)
			}
		}
	}
	return into
}
