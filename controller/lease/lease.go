// Package lease decides which provisioner acts for which provider: pure rules
// from (book, call, now) to (book, what the caller holds).
//
// A lease stays where it is as long as its holder is heard of. One that is free
// goes to who prefers it, then to who has the fewest; one that is held is moved
// only where an operator, a preference or a plain imbalance asks for it, one at
// a time, and by way of its holder, which first ends what it does.
package lease

import (
	"cmp"
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
)

// Book is who is there and who holds what.
type Book struct {
	// Providers are those of the configuration.
	Providers []string
	// Provisioners are in the order of their names, Leases in that of their providers.
	Provisioners []cluster.Provisioner
	Leases       []cluster.Lease
}

// Call is what a provisioner says of itself, again and again.
type Call struct {
	Name     string
	Instance string
	Owns     []string
	Prefers  []string
	// Gives are providers for which it acts no more.
	Gives []string
	// Leaving tells that it is to get no more, Stops that it acts for none any more.
	Leaving, Stops bool
}

// Change is what became of a lease, and why.
type Change struct {
	Before, After cluster.Lease
	Why           string
}

// Refusal is a call or wish that cannot be granted now.
type Refusal struct{ Text string }

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Tend takes down what a provisioner says of itself, ends the leases of those
// who are not heard of, and gives the caller what it should have.
func (b *Book) Tend(call Call, now cluster.Time, rules cluster.LeaseRules) ([]Change, error) {
	w := work{Book: b, now: now, rules: rules}
	w.bury()
	if err := w.enter(call); err != nil {
		return w.changes, err
	}
	for _, provider := range call.Gives {
		if l := w.lease(provider); l != nil && l.Holder == call.Name {
			w.end(l, call.Name+" gave it up")
		}
	}
	if call.Stops {
		w.leave(call.Name, "stopped")
		return w.changes, nil
	}
	w.mend()
	w.hand(call)
	w.balance()
	return w.changes, nil
}

// Move has the lease of a provider go to a provisioner, and stay there.
func (b *Book) Move(provider, to string, now cluster.Time) ([]Change, error) {
	w := work{Book: b, now: now}
	w.bury()
	l := w.lease(provider)
	if l == nil {
		return nil, &Refusal{fmt.Sprintf("there is no provider %q; `xce-elastic leases` lists them", provider)}
	}
	p, there := w.provisioner(to)
	switch {
	case !there:
		return nil, &Refusal{fmt.Sprintf("there is no provisioner %q now; `xce-elastic leases` lists them", to)}
	case p.Leaving:
		return nil, &Refusal{fmt.Sprintf("provisioner %s is about to stop", to)}
	case !p.MayOwn(provider):
		return nil, &Refusal{fmt.Sprintf("provisioner %s may not act for %s: its pools lack provider:%[2]s", to, provider)}
	}
	after := *l
	if after.MoveTo, after.Pinned = to, true; l.Holder == to {
		after.MoveTo = ""
	}
	w.put(l, after, "an operator wants it at "+to)
	return w.changes, nil
}

// Held answers the leases of a provisioner.
func (b *Book) Held(name string) (held []cluster.Lease) {
	for _, l := range b.Leases {
		if l.Holder == name {
			held = append(held, l)
		}
	}
	return held
}

// Check answers why a provisioner may not act under an epoch for a provider now;
// nil where it may.
func (b *Book) Check(provider, name string, epoch int64, now cluster.Time) error {
	l := (&work{Book: b}).lease(provider)
	if l == nil || l.Holder == "" {
		return &Refusal{fmt.Sprintf("no one holds the lease of %s now", provider)}
	}
	p, there := (&work{Book: b}).provisioner(l.Holder)
	switch {
	case l.Holder != name || l.Epoch != epoch:
		return &Refusal{fmt.Sprintf("%s acts for %s under epoch %d; it is %s's under epoch %d", name, provider, epoch, l.Holder, l.Epoch)}
	case !there || p.Until <= now:
		return &Refusal{fmt.Sprintf("%s's lease of %s ended at %s; it was not renewed in time", name, provider, p.Until.Stamp())}
	}
	return nil
}

// work is one call being carried out.
type work struct {
	*Book
	now     cluster.Time
	rules   cluster.LeaseRules
	changes []Change
}

// lease finds a provider's lease; one that is new in the configuration gets its row.
func (w *work) lease(provider string) *cluster.Lease {
	i, found := slices.BinarySearchFunc(w.Leases, provider, func(l cluster.Lease, p string) int { return cmp.Compare(l.Provider, p) })
	if !found {
		if !slices.Contains(w.Providers, provider) {
			return nil
		}
		w.Leases = slices.Insert(w.Leases, i, cluster.Lease{Provider: provider, Since: w.now})
	}
	return &w.Leases[i]
}

func (w *work) provisioner(name string) (cluster.Provisioner, bool) {
	i, found := w.find(name)
	if !found {
		return cluster.Provisioner{}, false
	}
	return w.Provisioners[i], true
}

func (w *work) find(name string) (int, bool) {
	return slices.BinarySearchFunc(w.Provisioners, name, func(p cluster.Provisioner, n string) int { return cmp.Compare(p.Name, n) })
}

// bury takes out those who are not heard of.
func (w *work) bury() {
	for _, p := range slices.Clone(w.Provisioners) {
		if p.Until <= w.now {
			w.leave(p.Name, "was not heard of in time")
		}
	}
}

func (w *work) leave(name, why string) {
	for i := range w.Leases {
		if l := &w.Leases[i]; l.Holder == name {
			w.end(l, name+" "+why)
		}
	}
	if i, found := w.find(name); found {
		w.Provisioners = slices.Delete(w.Provisioners, i, i+1)
	}
}

// enter takes down that the caller is there. Another process under its name is
// waited for: who knows what it is doing.
func (w *work) enter(call Call) error {
	next := cluster.Provisioner{
		Name: call.Name, Instance: call.Instance, Since: w.now, Until: w.now.Add(w.rules.TimeToLive), Owns: call.Owns, Prefers: call.Prefers, Leaving: call.Leaving,
	}
	i, found := w.find(call.Name)
	if !found {
		w.Provisioners = slices.Insert(w.Provisioners, i, next)
		return nil
	}
	old := w.Provisioners[i]
	if old.Instance != call.Instance {
		return &Refusal{fmt.Sprintf("another process is provisioner %s until %s at the least; wait, or give each its own certificate", call.Name, old.Until.Stamp())}
	}
	next.Since = old.Since
	w.Provisioners[i] = next
	return nil
}

// put writes a lease and takes down what changed.
func (w *work) put(l *cluster.Lease, after cluster.Lease, why string) {
	if *l != after {
		w.changes = append(w.changes, Change{Before: *l, After: after, Why: why})
		*l = after
	}
}

// end makes a lease free. Where it was to be moved, it still is.
func (w *work) end(l *cluster.Lease, why string) {
	after := *l
	after.Holder, after.Instance, after.Since = "", "", w.now
	if after.MoveTo == "" {
		after.Pinned = false
	}
	w.put(l, after, why)
}

// mend ends what cannot be any more: leases of providers that are gone or that
// their holder may not own now, and moves to who is not there.
func (w *work) mend() {
	for i := range w.Leases {
		l := &w.Leases[i]
		holder, held := w.provisioner(l.Holder)
		switch {
		case l.Holder == "":
		case !slices.Contains(w.Providers, l.Provider):
			w.end(l, "the configuration has the provider no more")
		case held && !holder.MayOwn(l.Provider):
			w.end(l, l.Holder+" may not act for it any more")
		}
		to, there := w.provisioner(l.MoveTo)
		if l.MoveTo != "" && (!there || to.Leaving || !to.MayOwn(l.Provider)) {
			after := *l
			after.MoveTo, after.Pinned = "", false
			w.put(l, after, l.MoveTo+", where it was to go, is not there for it")
		}
	}
}

// hand gives the caller the free leases that it should have.
func (w *work) hand(call Call) {
	load := w.load()
	for _, provider := range slices.Sorted(slices.Values(w.Providers)) {
		l := w.lease(provider)
		if l.Holder != "" {
			continue
		}
		next := cmp.Or(l.MoveTo, w.best(provider, load))
		if next == "" {
			continue
		}
		if l.MoveTo == "" {
			load[next]++
		}
		if next == call.Name {
			after := *l
			after.Holder, after.Instance, after.Epoch, after.Since, after.MoveTo = call.Name, call.Instance, l.Epoch+1, w.now, ""
			w.put(l, after, "acts for it from now on")
		}
	}
}

// load counts what each has, or is to have.
func (w *work) load() map[string]int {
	load := map[string]int{}
	for _, l := range w.Leases {
		if who := cmp.Or(l.MoveTo, l.Holder); who != "" {
			load[who]++
		}
	}
	return load
}

// best answers who should have a free lease.
func (w *work) best(provider string, load map[string]int) string {
	best, found := cluster.Provisioner{}, false
	for _, p := range w.Provisioners {
		if p.MayOwn(provider) && !p.Leaving && (!found || w.better(p, best, provider, load)) {
			best, found = p, true
		}
	}
	return best.Name
}

func (w *work) better(a, b cluster.Provisioner, provider string, load map[string]int) bool {
	if a.Favours(provider) != b.Favours(provider) {
		return a.Favours(provider)
	}
	return load[a.Name] < load[b.Name]
}

// balance moves one lease, where none is on the move: to who prefers it, else
// from who has at least two more than another.
func (w *work) balance() {
	if slices.ContainsFunc(w.Leases, func(l cluster.Lease) bool { return l.MoveTo != "" }) {
		return
	}
	load := w.load()
	var from *cluster.Lease
	to, most := "", 0
	for i := range w.Leases {
		l := &w.Leases[i]
		p, gain := w.gain(*l, load)
		if gain > most {
			from, to, most = l, p, gain
		}
	}
	if from == nil {
		return
	}
	after := *from
	after.MoveTo = to
	w.put(from, after, fmt.Sprintf("%s should have it rather than %s", to, from.Holder))
}

// preference is what being preferred weighs more than any imbalance.
const preference = 1 << 20

// gain answers to whom a lease could be moved with the most gain, of those who
// have settled; 0 is none.
func (w *work) gain(l cluster.Lease, load map[string]int) (to string, most int) {
	holder, held := w.provisioner(l.Holder)
	if !held || l.Pinned {
		return "", 0
	}
	for _, p := range w.Provisioners {
		if p.Name == l.Holder || !p.MayOwn(l.Provider) || p.Leaving || w.now.Sub(p.Since) < w.rules.Settle {
			continue
		}
		gain := load[l.Holder] - load[p.Name] - 1 // what stays an imbalance of one is left alone
		switch {
		case p.Favours(l.Provider) && !holder.Favours(l.Provider):
			gain += preference
		case holder.Favours(l.Provider) && !p.Favours(l.Provider):
			gain = 0
		}
		if gain > most {
			to, most = p.Name, gain
		}
	}
	return to, most
}
