package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// The first dimensions of every vector; countables follow by name, and the last
// dimension is the host as a whole.
const (
	dimCPUs = iota
	dimMemory
	dimFirstCountable
)

// wholeHost is what a host has of the last dimension. Every job takes 1 of it
// and an exclusive job all, so that it finds only hosts without jobs, and no
// other job finds its hosts.
const wholeHost = 1 << 31

// dimensions are the countables of a cluster: what its hosts, expected hosts
// and templates have.
type dimensions struct {
	names []string // cpus, memory_mb, then countables by name; not the whole
	index map[string]int
}

func newDimensions(carriers map[string]int) dimensions {
	d := dimensions{names: append([]string{"cpus", "memory_mb"}, slices.Sorted(maps.Keys(carriers))...), index: map[string]int{}}
	for i, name := range d.names {
		d.index[name] = i
	}
	return d
}

// count is how many values a vector has.
func (d dimensions) count() int { return len(d.names) + 1 }

// size fills v with what a host or template has.
func (d dimensions) size(v []int64, c cluster.Capacity) {
	clear(v)
	v[dimCPUs], v[dimMemory] = c.CPUs, c.MemoryMB
	for name, n := range c.Countables {
		v[d.index[name]] = n
	}
	v[len(v)-1] = wholeHost
}

// text says a vector in words: what it has of each countable. What is 0 is left
// out, but for cpus; what is negative is always.
func (d dimensions) text(v []int64) string { return string(d.appendText(nil, v)) }

// appendText appends what text answers.
func (d dimensions) appendText(text []byte, v []int64) []byte {
	begin := len(text)
	last := -1
	for i := range d.names {
		if v[i] > 0 || i == dimCPUs && v[i] == 0 {
			last = i
		}
	}
	for i := 0; i <= last; i++ {
		if v[i] < 0 || v[i] == 0 && i != dimCPUs {
			continue
		}
		switch {
		case len(text) == begin:
		case i == last:
			text = append(text, " and "...)
		default:
			text = append(text, ", "...)
		}
		text = append(strconv.AppendInt(text, v[i], 10), ' ')
		switch i {
		case dimCPUs:
			text = append(text, "cpus"[:plural(v[i], 4)]...)
		case dimMemory:
			text = append(text, "MB"...)
		default:
			text = append(text, d.names[i]...)
		}
	}
	return text
}

// plural answers the length of a word that ends in an s for one or for several.
func plural(n int64, length int) int {
	if n == 1 {
		return length - 1
	}
	return length
}

// kind is what hosts have in common for constraints: the same features and
// attributes, and the same countables beside cpus and memory.
type kind struct {
	has      func(feature string) bool // one of the features
	features int                       // how many there are
	// countables tells which dimensions its hosts have.
	countables []bool
	sizes      []kindSize // those of its hosts, each once
	key        string
}

// kindSize is a size of hosts of a kind, and how many there are of it.
type kindSize struct {
	size  []int64
	count int
}

// kinds are the kinds of a cluster's hosts and expected hosts. Those that had hosts
// once and have none now take nothing.
type kinds struct {
	all   []kind
	index map[string]int32
	// version numbers the changes of what sizes there are.
	version uint64
}

// of counts a host, and answers its kind, by number.
func (ks *kinds) of(size []int64, c cluster.Capacity) int32 {
	n := ks.find(size, c.FeatureNames())
	k := &ks.all[n]
	if at := k.sized(size); at >= 0 {
		k.sizes[at].count++
		return n
	}
	k.sizes = append(k.sizes, kindSize{size, 1})
	ks.version++
	return n
}

// drop counts a host no more.
func (ks *kinds) drop(n int32, size []int64) {
	k := &ks.all[n]
	at := k.sized(size)
	if k.sizes[at].count--; k.sizes[at].count == 0 {
		k.sizes = slices.Delete(k.sizes, at, at+1)
		ks.version++
	}
}

// sized answers the place of a size, or -1.
func (k *kind) sized(size []int64) int {
	return slices.IndexFunc(k.sizes, func(s kindSize) bool { return slices.Equal(s.size, size) })
}

func (ks *kinds) find(size []int64, features []string) int32 {
	countables := make([]bool, len(size))
	var key strings.Builder
	for i := dimFirstCountable; i < len(size)-1; i++ {
		countables[i] = size[i] > 0
		fmt.Fprintf(&key, "%t,", countables[i])
	}
	for _, name := range features {
		fmt.Fprintf(&key, "%q,", name)
	}
	if k, known := ks.index[key.String()]; known {
		return k
	}
	has := map[string]bool{}
	for _, name := range features {
		has[name] = true
	}
	k := kind{has: func(name string) bool { return has[name] }, features: len(has), countables: countables, key: key.String()}
	ks.all = append(ks.all, k)
	ks.index[key.String()] = int32(len(ks.all) - 1)
	return int32(len(ks.all) - 1)
}

// open answers the kinds on which the constraint holds and that have hosts that
// are large enough, those first that have least of what the need does not ask for: a job
// that needs no gpu leaves hosts with gpus to others. It answers them in given memory.
func (ks *kinds) open(constraint cluster.Constraint, need []int64, into []int32) []int32 {
	open := into[:0]
	for i := range ks.all {
		if k := &ks.all[i]; k.takes(need) && constraint.Holds(k.has) {
			open = append(open, int32(i))
		}
	}
	if len(open) > 1 {
		ks.sort(open, need)
	}
	return open
}

// sort orders kinds by what they have that is not asked for.
func (ks *kinds) sort(open []int32, need []int64) {
	unasked := func(i int32) (n int) {
		for d, has := range ks.all[i].countables {
			if has && need[d] == 0 {
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(open, func(a, b int32) int {
		return cmp.Or(cmp.Compare(unasked(a), unasked(b)), cmp.Compare(ks.all[a].features, ks.all[b].features), strings.Compare(ks.all[a].key, ks.all[b].key))
	})
}

// compare orders kinds by what they are, not by their numbers, which depend on
// the names of hosts.
func (ks *kinds) compare(a, b int32) int { return strings.Compare(ks.all[a].key, ks.all[b].key) }

func (k *kind) takes(need []int64) bool {
	return slices.ContainsFunc(k.sizes, func(s kindSize) bool { return covers(s.size, need) })
}
