package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// ending is what is given back at a time.
type ending struct {
	at    cluster.Time
	units []int64
}

// endings are those of one host or one pool, in the order of time.
type endings []ending

// add puts one where it belongs, after those of the same time.
func (all *endings) add(at cluster.Time, units []int64) {
	i, j := 0, len(*all)
	for i < j {
		if m := (i + j) / 2; (*all)[m].at <= at {
			i = m + 1
		} else {
			j = m
		}
	}
	*all = slices.Insert(*all, i, ending{at, units})
}

// remove takes one out, and tells whether it was there. Of several that give back the
// same, which one makes no difference.
func (all *endings) remove(at cluster.Time, units []int64) bool {
	i, _ := slices.BinarySearchFunc(*all, at, func(e ending, at cluster.Time) int { return cmp.Compare(e.at, at) })
	for ; i < len(*all) && (*all)[i].at == at; i++ {
		if &(*all)[i].units[0] == &units[0] {
			*all = slices.Delete(*all, i, i+1)
			return true
		}
	}
	return false
}

// listEndings lists anew what all running jobs will give back.
func (e *Engine) listEndings() {
	for i := range e.hosts {
		e.hosts[i].ends = nil
	}
	e.uses = make([]endings, len(e.resources))
	for i := range e.runs {
		r := &e.runs[i]
		for _, h := range r.hosts {
			e.hosts[h].ends = append(e.hosts[h].ends, ending{r.ends, r.need})
		}
		for _, n := range r.tokens() {
			e.uses[n.pool] = append(e.uses[n.pool], ending{r.ends, n.one})
		}
	}
	byTime := func(a, b ending) int { return cmp.Compare(a.at, b.at) }
	for i := range e.hosts {
		slices.SortFunc(e.hosts[i].ends, byTime)
	}
	for i := range e.uses {
		slices.SortFunc(e.uses[i], byTime)
	}
}

// tokens answers what a running job has of pools.
func (r *run) tokens() []tokenNeed {
	if int(r.choice) < len(r.choices) {
		return r.choices[r.choice]
	}
	return nil
}
