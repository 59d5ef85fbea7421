package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// endings are what is given back of one host or one pool, in the order of time. Each is a
// time and then its units. Of several that give back the same at one time, which one is
// taken out makes no difference.
type endings struct{ rows []int64 }

// row is where the i-th is, of so many units.
func (all *endings) row(i, dims int) []int64 { return all.rows[i*(dims+1) : (i+1)*(dims+1)] }

// count answers how many there are.
func (all *endings) count(dims int) int { return len(all.rows) / (dims + 1) }

// at answers when the i-th gives back.
func (all *endings) at(i, dims int) cluster.Time { return cluster.Time(all.rows[i*(dims+1)]) }

// of answers what the i-th gives back.
func (all *endings) of(i, dims int) []int64 { return all.row(i, dims)[1:] }

// append adds one that is not before any other.
func (all *endings) append(at cluster.Time, units []int64) {
	all.rows = append(append(all.rows, int64(at)), units...)
}

// add puts one where it belongs, after those of the same time.
func (all *endings) add(at cluster.Time, units []int64) {
	dims := len(units)
	i := all.from(at+1, dims)
	all.append(at, units)
	if last := all.count(dims) - 1; i < last {
		copy(all.rows[(i+1)*(dims+1):], all.rows[i*(dims+1):last*(dims+1)])
		all.rows[i*(dims+1)] = int64(at)
		copy(all.of(i, dims), units)
	}
}

// from answers the first one at or after t.
func (all *endings) from(t cluster.Time, dims int) int {
	i, j := 0, all.count(dims)
	for i < j {
		if m := (i + j) / 2; all.at(m, dims) < t {
			i = m + 1
		} else {
			j = m
		}
	}
	return i
}

// remove takes one out, and tells whether it was there.
func (all *endings) remove(at cluster.Time, units []int64) bool {
	dims := len(units)
	for i := all.from(at, dims); i < all.count(dims) && all.at(i, dims) == at; i++ {
		if slices.Equal(all.of(i, dims), units) {
			all.delete(i, dims)
			return true
		}
	}
	return false
}

// delete takes the i-th out.
func (all *endings) delete(i, dims int) {
	all.rows = append(all.rows[:i*(dims+1)], all.rows[(i+1)*(dims+1):]...)
}

// clear takes all out.
func (all *endings) clear() { all.rows = all.rows[:0] }

// listEndings lists anew what all running jobs will give back.
func (e *Engine) listEndings() {
	for i := range e.hosts {
		e.hosts[i].ends.clear()
	}
	e.uses = make([]endings, len(e.resources))
	runs := make([]*run, len(e.running.all))
	for i := range runs {
		runs[i] = &e.running.all[i]
	}
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Compare(a.ends, b.ends) })
	for _, r := range runs {
		for _, h := range r.hosts {
			e.hosts[h].ends.append(r.ends, r.need)
		}
		for _, n := range r.tokens() {
			e.uses[n.pool].append(r.ends, n.one)
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
