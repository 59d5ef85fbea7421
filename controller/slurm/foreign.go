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
	said  map[string]bool
}

type note struct {
	backend.Resource
	at cluster.Time
}

// note keeps how a resource is counted after a change of ours.
func (o *changesOfOurs) note(resource string, r backend.Resource, at cluster.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known, o.said = map[string]note{}, map[string]bool{}
	}
	o.known[resource] = note{r, at}
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

// news answers what someone else has changed of a resource since our last change, as read at a moment.
func (o *changesOfOurs) news(resource string, r backend.Resource, at cluster.Time) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, found := o.known[resource]
	if !found || at <= known.at {
		return nil // our own change may not be in what was read
	}
	return Foreign(resource, known.Resource, r)
}

// first tells whether a sentence is said for the first time since it was forgotten.
func (o *changesOfOurs) first(sentence string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.said == nil {
		o.said = map[string]bool{}
	}
	was := o.said[sentence]
	o.said[sentence] = true
	return !was
}

// foreign answers, and logs once, what someone else has changed. Where that is respected, it
// is counted in the resources as theirs.
func (b *Backend) foreign(resources map[string]backend.Resource, at cluster.Time) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		r := resources[name]
		if b.Respect {
			r = asTheirs(r, b.ours.added(name, r))
			resources[name] = r
		}
		for _, sentence := range b.ours.news(name, r, at) {
			warnings = append(warnings, sentence)
			if b.ours.first(sentence) {
				b.Log.Warn("someone else changed what is ours in Slurm", "what", sentence)
			}
		}
	}
	return warnings
}
