package slurm

import (
	"maps"
	"slices"
	"sync"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// changesOfOurs is how Slurm counted each resource after our last change of it, so that what
// someone else changes since is told from that. Its zero value knows nothing.
type changesOfOurs struct {
	mu    sync.Mutex
	known map[string]note // by our name of the resource
	said  map[string][]string
}

type note struct {
	backend.Resource
	at cluster.Time
	// unsure tells that a change of ours is under way, or that nobody knows what became of it; Withheld is then the
	// most that may be ours.
	unsure bool
}

// note keeps how a resource is counted after a change of ours.
func (o *changesOfOurs) note(resource string, r backend.Resource, at cluster.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known, o.said = map[string]note{}, map[string][]string{}
	}
	o.known[resource] = note{Resource: r, at: at}
}

// about notes that a command of ours is about to keep back so many units, before it runs: so our own change
// never counts as someone else's, whatever becomes of the command and whoever reads meanwhile.
func (o *changesOfOurs) about(resource string, withheld int64, at cluster.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, found := o.known[resource]; found {
		known.Withheld, known.at, known.unsure = max(known.Withheld, withheld), at, true
		o.known[resource] = known
	}
}

// tells tells whether how a resource was counted at a moment can be told from changes of ours. What became of a change
// that nobody knows of is what is read [Durable] later.
func (o *changesOfOurs) tells(resource string, r backend.Resource, at cluster.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, found := o.known[resource]
	if !found || at <= known.at {
		return false
	}
	if known.unsure && at.Sub(known.at) > Durable {
		r.Withheld = min(r.Withheld, known.Withheld)
		known.Resource, known.unsure = r, false
		o.known[resource] = known
	}
	return !known.unsure
}

// added answers how many units someone else keeps back by our reservation, beside ours.
func (o *changesOfOurs) added(resource string, r backend.Resource) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, found := o.known[resource]
	if !found {
		return 0
	}
	// What was respected before is in Reserved of what is known.
	return max(r.Withheld-known.Withheld, 0)
}

// asTheirs counts units of our reservation as kept back by others.
func asTheirs(r backend.Resource, added int64) backend.Resource {
	r.Withheld -= added
	r.Reserved += added
	return r
}

// news answers what someone else has changed of a resource since our last change, and which of that was not said
// of the reading before.
func (o *changesOfOurs) news(resource string, r backend.Resource) (all, fresh []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all = Foreign(resource, o.known[resource].Resource, r)
	for _, sentence := range all {
		if !slices.Contains(o.said[resource], sentence) {
			fresh = append(fresh, sentence)
		}
	}
	o.said[resource] = all
	return all, fresh
}

// foreign answers, and logs once, what someone else has changed. Where that is respected, it
// is counted in the resources as theirs.
func (b *Backend) foreign(resources map[string]backend.Resource, at cluster.Time) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		r := resources[name]
		if !b.ours.tells(name, r, at) {
			continue // our own change may not be in what was read
		}
		if b.Respect {
			r = asTheirs(r, b.ours.added(name, r))
			resources[name] = r
		}
		all, fresh := b.ours.news(name, r)
		warnings = append(warnings, all...)
		for _, sentence := range fresh {
			b.Log.Warn("someone else changed what is ours in Slurm", "what", sentence)
		}
	}
	return warnings
}
