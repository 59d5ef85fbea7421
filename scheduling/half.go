package scheduling

import (
	"cmp"
	"maps"
	"slices"

	"xce.internal/elastic/cluster"
)

// halves is what is kept for jobs that wait for the rest of what they need, as it
// is found: by pool, and by host.
type halves struct {
	pools, hosts map[int32]*half
}

// half is what is kept of one pool, or one host.
type half struct {
	units  int64
	jobs   []entry // counted as often as they are elements of arrays that wait
	count  int64
	awaits []string
}

// heldUnits is free units of a pool that are kept for each of several like jobs.
type heldUnits struct{ pool, units int64 }

// keptHost is a host that is kept for a job of a class: which of those admitted.
type keptHost struct {
	job  int64
	host int32
}

func (hs *halves) reset() {
	hs.pools, hs.hosts = map[int32]*half{}, map[int32]*half{}
}

// of answers the half of a pool or a host, and makes it where there is none.
func of(all map[int32]*half, i int32) *half {
	if all[i] == nil {
		all[i] = &half{}
	}
	return all[i]
}

// keep adds that the jobs from `at` to `end` of a class wait for something.
func (h *half) keep(c *class, at, end cursor, awaits []string) {
	for i := at.entry; i < end.entry || i == end.entry && end.element > 0; i++ {
		e, from, to := c.queue[i], int64(0), c.queue[i].count
		if i == at.entry {
			from = at.element
		}
		if i == end.entry {
			to = end.element
		}
		h.count += to - from
		h.jobs = append(h.jobs, e)
	}
	for _, text := range awaits {
		if !slices.Contains(h.awaits, text) {
			h.awaits = append(h.awaits, text)
		}
	}
}

// keepHalves notes what is here already for n admitted jobs of a class, from the
// one numbered `from` on, which have their tokens as o says and their hosts as the
// places say; nothing where they wait for nothing that comes.
func (s *session) keepHalves(c *class, from, n int64, o tokenOutcome, places []tally) {
	awaits := o.awaits
	for _, t := range places {
		if text := s.awaitsHost(t); text != "" {
			awaits = append(slices.Clone(awaits), text)
		}
	}
	if len(awaits) == 0 {
		return
	}
	at := c.skip(cursor{entry: c.head}, c.pass.skipped+from)
	for _, held := range o.held {
		h := of(s.halves.pools, int32(held.pool))
		h.units += n * held.units
		h.keep(c, at, c.skip(at, n), awaits)
	}
	i, _ := slices.BinarySearchFunc(c.pass.kept, from, func(k keptHost, job int64) int { return cmp.Compare(k.job, job) })
	for ; i < len(c.pass.kept) && c.pass.kept[i].job < from+n; i++ {
		s.keepHost(c, c.pass.kept[i].host, c.skip(at, c.pass.kept[i].job-from), awaits)
	}
}

// keepHost notes that a host is kept for the job at a place, if it has no job yet.
func (s *session) keepHost(c *class, host int32, at cursor, awaits []string) {
	if s.e.hosts[host].jobs == 0 {
		h := of(s.halves.hosts, host)
		h.units = 1
		h.keep(c, at, c.skip(at, 1), awaits)
	}
}

// keepPromised notes what is here already for the i-th reservation of a class,
// where that counts on tokens which were requested, or on hosts that are expected;
// held is what is free of tokens.
func (s *session) keepPromised(c *class, i int64, held []heldUnits) {
	p, awaits := c.promises[i], []string(nil)
	for _, n := range c.choices[p.choice] {
		if pool := s.pools[n.pool]; pool.free < n.units && len(pool.arrivals) > 0 {
			awaits = append(awaits, pool.awaitsComing())
		}
	}
	hosts, coming := s.hereAndComing(p.hosts)
	for _, x := range coming {
		awaits = append(awaits, s.awaitsHost(tally{where: onComing, by: s.e.expected[x].Expected}))
	}
	if len(awaits) == 0 {
		return
	}
	at := c.skip(cursor{entry: c.head}, i)
	for _, h := range held {
		kept := of(s.halves.pools, int32(h.pool))
		kept.units += h.units
		kept.keep(c, at, c.skip(at, 1), awaits)
	}
	for _, host := range hosts {
		s.keepHost(c, host, at, awaits)
	}
}

// awaitsHost says which host is not there yet; nothing of those that are.
func (s *session) awaitsHost(t tally) string {
	switch {
	case t.where == onReal:
		return ""
	case t.where == onComing && t.by <= s.now:
		return "host that " + s.placeText(t).why
	}
	return "host " + s.placeText(t).why
}

func (p *pool) awaitsComing() string { return p.resource.Name + " that were requested" }

// findKept finds for the classes which hosts are kept for which of their jobs,
// beside those that it was noted of already as the jobs took them.
func (s *session) findKept() {
	sp := &s.supply
	told := map[int32]int64{}
	for _, k := range s.e.kindsByHost() {
		for i, g := range sp.real[k].groups {
			for l := g.load; l != noLoad; l = sp.loads[l].prev {
				load := sp.loads[l]
				c := sp.items[load.item].parts[0].class // no other has jobs of the item on real hosts
				if c.nodes == 1 && !c.hasTokens() {
					continue // they wait for nothing that comes
				}
				first, n := int64(load.job), int64(1)
				if load.job == noJob {
					first, n = told[load.item], load.per
					told[load.item] += n
				}
				for j := range n {
					c.pass.kept = append(c.pass.kept, keptHost{c.pass.onReal + first + j, sp.real[k].hosts[i]})
				}
			}
		}
	}
	for _, c := range s.classes {
		slices.SortStableFunc(c.pass.kept, func(a, b keptHost) int { return cmp.Compare(a.job, b.job) })
	}
}

// mostNamed is how many of the jobs that something is kept for are named.
const mostNamed = 20

// tellHalves answers what is kept for jobs that wait for the rest.
func (s *session) tellHalves() (told []cluster.Half) {
	for _, i := range slices.Sorted(maps.Keys(s.halves.pools)) {
		told = append(told, s.halves.pools[i].tell(cluster.Half{Resource: s.pools[i].resource.Name}))
	}
	byName := func(a, b int32) int { return cmp.Compare(s.e.hosts[a].rank, s.e.hosts[b].rank) }
	for _, i := range slices.SortedFunc(maps.Keys(s.halves.hosts), byName) {
		told = append(told, s.halves.hosts[i].tell(cluster.Half{Host: s.e.hosts[i].name, Template: s.e.hosts[i].template}))
	}
	return told
}

func (h *half) tell(t cluster.Half) cluster.Half {
	slices.SortFunc(h.jobs, compareEntries)
	slices.Sort(h.awaits)
	t.Units, t.Count, t.Awaits = h.units, h.count, h.awaits
	for _, e := range h.jobs {
		if last := len(t.Jobs) - 1; last < 0 || t.Jobs[last] != e.id {
			t.Jobs = append(t.Jobs, e.id)
		}
		if len(t.Jobs) == mostNamed {
			break
		}
	}
	return t
}
