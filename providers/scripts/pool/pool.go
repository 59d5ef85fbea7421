package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/dialogue"
	"xce.internal/elastic/providers/scripts/statefile"
)

const (
	poolVersion = 1

	// What is closed is remembered, so that a late or repeated request never grants anew. A grant's
	// number is never used again, but a refusal comes with every poll of a busy pool, so it is
	// forgotten sooner.
	rememberClosed  = 30 * 24 * time.Hour
	rememberRefused = 24 * time.Hour

	retryAfter = 30 // seconds; what a refusal for want of tokens advises
	maxOpen    = 16

	// Reading a file is cheap, but whoever polls pays for more than the reading.
	pollInterval = 2 // seconds
)

// state is how a request stands in the pool.
type state string

const (
	pending   state = "pending" // its units are reserved
	granted   state = "granted"
	returned  state = "returned"
	cancelled state = "cancelled" // given back before it was granted
	refused   state = "refused"
)

// pool is the content of the pool file. Its methods are the rules of lending: pure functions of the pool
// and the time, which never touch a file.
type pool struct {
	Version   int        `json:"version"`
	Calls     int64      `json:"calls,omitempty"`
	Resources []resource `json:"resources"`
	Grants    []grant    `json:"grants"`
	statefile.Changes[change]
}

type resource struct {
	Name        string           `json:"name"`
	Capacity    int64            `json:"capacity"`
	Price       int64            `json:"price"`          // millionths of a currency unit per token and hour
	MinimumHold int64            `json:"minimum_hold_s"` // seconds
	BillingStep int64            `json:"billing_step_s"` // seconds
	Shares      map[string]int64 `json:"shares,omitempty"`
}

// grant is one request of one cluster, from the first word about it until it is forgotten. Request ids
// are unique within a cluster only.
type grant struct {
	Cluster   string           `json:"cluster"`
	RequestID string           `json:"request_id"`
	Resource  string           `json:"resource"`
	State     state            `json:"state"`
	Requested int64            `json:"requested"`
	Granted   int64            `json:"granted"` // what it got at first
	Units     int64            `json:"units"`   // what is lent, or reserved, now
	Recalled  int64            `json:"recalled,omitempty"`
	Reason    providers.Reason `json:"reason,omitempty"`
	Since     time.Time        `json:"since"`
	Ready     time.Time        `json:"ready,omitzero"`  // when a pending one is granted
	Closed    time.Time        `json:"closed,omitzero"` // when nothing of it was left
}

// change is one line of the journal. Units: for reserved, granted and returned those that became so; for
// capacity the new one; for recalled those wanted back; for refused those asked for; for cancelled those
// that were reserved. Free is what is left of the resource after it.
type change struct {
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time"`
	Cluster  string    `json:"cluster,omitempty"`
	Request  string    `json:"request,omitempty"`
	Resource string    `json:"resource,omitempty"`
	Change   string    `json:"change"`
	Units    int64     `json:"units"`
	Free     int64     `json:"free"`
}

// Number of the change, as the journal counts.
func (c change) Number() int64 { return c.Sequence }

func (p *pool) resource(name string) *resource {
	i := slices.IndexFunc(p.Resources, func(r resource) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Resources[i]
}

func (p *pool) find(cluster, requestID string) *grant {
	i := slices.IndexFunc(p.Grants, func(g grant) bool { return g.Cluster == cluster && g.RequestID == requestID })
	if i < 0 {
		return nil
	}
	return &p.Grants[i]
}

// out sums what is lent or reserved of a resource; to one cluster, or to all when cluster is empty.
func (p *pool) out(name, cluster string) int64 {
	var units int64
	for _, g := range p.Grants {
		if g.Resource == name && (cluster == "" || g.Cluster == cluster) {
			units += g.Units
		}
	}
	return units
}

// free may be negative: a pool that shrank below what is lent is over-lent until enough comes back.
func (p *pool) free(r *resource) int64 { return r.Capacity - p.out(r.Name, "") }

// room is what a cluster's share still allows.
func (p *pool) room(r *resource, cluster string) int64 {
	share, limited := r.Shares[cluster]
	if !limited {
		share = r.Capacity
	}
	return share - p.out(r.Name, cluster)
}

func (p *pool) headroom(r *resource, cluster string) int64 {
	return max(0, min(p.free(r), p.room(r, cluster)))
}

func (p *pool) log(now time.Time, g *grant, what string, units int64) {
	p.Sequence++
	entry := change{
		Sequence: p.Sequence, Time: now, Cluster: g.Cluster, Request: g.RequestID, Resource: g.Resource,
		Change: what, Units: units,
	}
	if r := p.resource(g.Resource); r != nil {
		entry.Free = p.free(r)
	}
	p.Unlogged = append(p.Unlogged, entry)
}

// advance grants what has been pending long enough, and forgets what has been closed long enough.
func (p *pool) advance(now time.Time) {
	for i := range p.Grants {
		if g := &p.Grants[i]; g.State == pending && !now.Before(g.Ready) {
			g.State, g.Since, g.Ready = granted, g.Ready, time.Time{}
			p.log(now, g, string(granted), g.Units)
		}
	}
	p.Grants = slices.DeleteFunc(p.Grants, func(g grant) bool { return g.forgotten(now) })
}

func (g *grant) forgotten(now time.Time) bool {
	switch g.State {
	case refused:
		return now.Sub(g.Closed) > rememberRefused
	case returned, cancelled:
		return now.Sub(g.Closed) > rememberClosed
	}
	return false
}

// describe answers for one cluster.
func (p *pool) describe(cluster string) providers.Description {
	description := providers.Description{
		Contract: providers.ContractVersion, Name: "pool", Kinds: []providers.Kind{providers.KindTokens},
		Idempotent: true, PartialReturn: true, Concurrent: true, PollInterval: pollInterval,
		Offers: []providers.Offer{},
	}
	for i := range p.Resources {
		description.Offers = append(description.Offers, p.offer(&p.Resources[i], cluster))
	}
	for _, g := range p.Grants {
		if g.Cluster == cluster && g.Recalled > 0 {
			description.Recalls = append(description.Recalls, providers.Recall{RequestID: g.RequestID, Units: g.Recalled})
		}
	}
	return description
}

func (p *pool) offer(r *resource, cluster string) providers.Offer {
	return providers.Offer{
		Resource: r.Name, Headroom: p.headroom(r, cluster), Price: r.Price,
		MinimumHold: r.MinimumHold, BillingStep: r.BillingStep, MaxOpen: maxOpen,
	}
}

// request lends what it can, at once or after the delay. The same request gets the same answer.
func (p *pool) request(cluster string, in providers.RequestIn, now time.Time, delay time.Duration) (providers.RequestOut, error) {
	if known := p.find(cluster, in.RequestID); known != nil {
		return known.repeated(in)
	}
	r := p.resource(in.Resource)
	if r == nil {
		return providers.RequestOut{}, dialogue.Refusef("resource %q is not in this pool; describe lists what is", in.Resource)
	}
	g := grant{Cluster: cluster, RequestID: in.RequestID, Resource: in.Resource, Requested: in.Units, Since: now}
	units := min(in.Units, p.headroom(r, cluster))
	switch {
	case units == 0:
		g.State, g.Reason, g.Closed = refused, p.whyNot(r, cluster), now
		p.record(now, g, in.Units)
	case delay > 0:
		g.State, g.Granted, g.Units, g.Ready = pending, units, units, now.Add(delay)
		p.record(now, g, units)
	default:
		g.State, g.Granted, g.Units = granted, units, units
		p.record(now, g, units)
	}
	return g.answer(), nil
}

func (p *pool) whyNot(r *resource, cluster string) providers.Reason {
	if _, limited := r.Shares[cluster]; limited && p.room(r, cluster) <= 0 {
		return providers.ReasonQuota
	}
	return providers.ReasonCapacity
}

func (p *pool) record(now time.Time, g grant, units int64) {
	p.Grants = append(p.Grants, g)
	what := string(g.State)
	if g.State == pending {
		what = "reserved"
	}
	p.log(now, &g, what, units)
}

func (g *grant) repeated(in providers.RequestIn) (providers.RequestOut, error) {
	switch {
	case g.State == returned || g.State == cancelled:
		return providers.RequestOut{}, dialogue.Refusef("request %s was %s already: ask under a new id", g.RequestID, g.State)
	case g.Resource != in.Resource || g.Requested != in.Units:
		return providers.RequestOut{}, dialogue.Refusef("request %s asked for %d %s before: ask under a new id", g.RequestID, g.Requested, g.Resource)
	}
	return g.answer(), nil
}

func (g *grant) answer() providers.RequestOut {
	out := providers.RequestOut{RequestID: g.RequestID}
	switch {
	case g.State == refused:
		out.Status, out.Reason, out.RetryAfter, out.Message = providers.StatusRefused, g.Reason, retryAfter, g.explain()
	case g.State == pending:
		out.Status, out.RetryAfter = providers.StatusPending, 1
	case g.Granted < g.Requested:
		out.Status, out.Granted = providers.StatusPartial, g.Granted
	default:
		out.Status, out.Granted = providers.StatusOK, g.Granted
	}
	return out
}

func (g *grant) explain() string {
	switch {
	case g.State == returned:
		return "all of it was returned"
	case g.State == cancelled:
		return "it was given back before it was granted"
	case g.Reason == providers.ReasonQuota:
		return fmt.Sprintf("the share of cluster %s in %s is used up", g.Cluster, g.Resource)
	}
	return "no " + g.Resource + " is free"
}

func (p *pool) status(cluster string, in providers.StatusIn) providers.StatusOut {
	out := providers.StatusOut{Requests: make([]providers.RequestState, 0, len(in.RequestIDs))}
	for _, id := range in.RequestIDs {
		request := providers.RequestState{RequestID: id, Status: providers.StateUnknown}
		if g := p.find(cluster, id); g != nil {
			request = g.standing()
		}
		out.Requests = append(out.Requests, request)
	}
	return out
}

func (g *grant) standing() providers.RequestState {
	out := providers.RequestState{RequestID: g.RequestID}
	switch g.State {
	case pending:
		out.Status, out.RetryAfter = providers.StatePending, 1
	case granted:
		out.Status, out.Granted = providers.StateGranted, g.Granted
	case refused:
		out.Status, out.Reason, out.RetryAfter, out.Message = providers.StateRefused, g.Reason, retryAfter, g.explain()
	case returned, cancelled:
		out.Status, out.Reason, out.Message = providers.StateRefused, providers.ReasonInvalid, g.explain()
	}
	return out
}

// giveBack takes units back until no more than the target is lent. It never lends more: a late repeated
// return finds less lent than its target and changes nothing.
func (p *pool) giveBack(cluster string, in providers.ReturnIn, now time.Time) (providers.ReturnOut, error) {
	g := p.find(cluster, in.RequestID)
	if (g == nil || g.State == pending) && in.Remaining > 0 {
		return providers.ReturnOut{}, dialogue.Refusef("request %s is not granted, so %d cannot remain: remaining 0 cancels it", in.RequestID, in.Remaining)
	}
	switch {
	case g == nil:
		p.record(now, grant{Cluster: cluster, RequestID: in.RequestID, State: cancelled, Since: now, Closed: now}, 0)
		return providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK}, nil
	case g.State == pending:
		units := g.Units
		g.State, g.Granted, g.Units, g.Ready, g.Closed = cancelled, 0, 0, time.Time{}, now
		p.log(now, g, string(cancelled), units)
	case g.State == refused && in.Remaining == 0:
		g.State, g.Closed = cancelled, now
		p.log(now, g, string(cancelled), 0)
	case g.Units > in.Remaining:
		p.takeBack(g, g.Units-in.Remaining, now)
	}
	return providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK, Remaining: g.Units}, nil
}

func (p *pool) takeBack(g *grant, units int64, now time.Time) {
	g.Units -= units
	g.Recalled = max(0, g.Recalled-units)
	if g.Units == 0 {
		g.State, g.Closed = returned, now
	}
	p.log(now, g, string(returned), units)
}

func (p *pool) list(cluster string) providers.ListOut {
	out := providers.ListOut{Grants: []providers.Grant{}}
	for _, g := range p.Grants {
		if g.Cluster == cluster && g.State == granted {
			out.Grants = append(out.Grants, providers.Grant{
				RequestID: g.RequestID, Resource: g.Resource, Units: g.Units, Since: g.Since,
			})
		}
	}
	return out
}

// recall marks units of one grant as wanted back. Nothing is taken: the borrower returns them.
func (p *pool) recall(cluster, requestID string, units int64, now time.Time) error {
	g := p.find(cluster, requestID)
	if g == nil || g.State != granted {
		return fmt.Errorf("cluster %q holds no grant %q: pool show lists the grants", cluster, requestID)
	}
	if units < 1 || units > g.Units {
		return fmt.Errorf("%d units of %s cannot be recalled: give 1 to %d", units, requestID, g.Units)
	}
	g.Recalled = units
	p.log(now, g, "recalled", units)
	return nil
}

func (p *pool) setCapacity(name string, capacity int64, now time.Time) error {
	r := p.resource(name)
	if r == nil {
		return fmt.Errorf("resource %q is not in this pool: pool show lists what is", name)
	}
	if capacity < 0 || capacity > providers.MostUnits {
		return fmt.Errorf("capacity %d of %s: give 0 to %d", capacity, name, int64(providers.MostUnits))
	}
	r.Capacity = capacity
	p.log(now, &grant{Resource: name}, "capacity", capacity)
	return nil
}

// Check finds what no pool file may hold; such a file is never written over.
func (p *pool) Check() error {
	if p.Version != poolVersion {
		return fmt.Errorf("version %d, this program knows version %d", p.Version, poolVersion)
	}
	names := map[string]bool{}
	for _, r := range p.Resources {
		if err := r.check(); err != nil {
			return err
		}
		if names[r.Name] {
			return fmt.Errorf("resource %q stands there twice", r.Name)
		}
		names[r.Name] = true
	}
	return p.checkGrants(names)
}

func (r *resource) check() error {
	values := []int64{r.Capacity, r.Price, r.MinimumHold, r.BillingStep}
	for _, share := range r.Shares {
		values = append(values, share)
	}
	if r.Name == "" || slices.Min(values) < 0 || slices.Max(values) > providers.MostUnits {
		return fmt.Errorf("resource %q: capacity %d, price %d, minimum hold %d, billing step %d, shares %v: "+
			"a name and numbers from 0 to %d are needed",
			r.Name, r.Capacity, r.Price, r.MinimumHold, r.BillingStep, r.Shares, int64(providers.MostUnits))
	}
	return nil
}

func (p *pool) checkGrants(names map[string]bool) error {
	type key struct{ cluster, requestID string }
	seen := map[key]bool{}
	for _, g := range p.Grants {
		if seen[key{g.Cluster, g.RequestID}] {
			return fmt.Errorf("request %q of cluster %q stands there twice", g.RequestID, g.Cluster)
		}
		seen[key{g.Cluster, g.RequestID}] = true
		if err := g.check(names); err != nil {
			return fmt.Errorf("request %q of cluster %q: %w", g.RequestID, g.Cluster, err)
		}
	}
	return nil
}

func (g *grant) check(names map[string]bool) error {
	open := g.State == pending || g.State == granted
	closed := g.State == returned || g.State == cancelled || g.State == refused
	switch {
	case !open && !closed:
		return fmt.Errorf("state %q is none that this program knows", g.State)
	case open && !names[g.Resource]:
		return fmt.Errorf("resource %q is not in this pool", g.Resource)
	case open && (g.Units < 1 || g.Units > g.Granted), closed && g.Units != 0:
		return fmt.Errorf("%s with %d units of %d granted", g.State, g.Units, g.Granted)
	case g.Recalled < 0 || g.Recalled > g.Units:
		return fmt.Errorf("%d units recalled of %d", g.Recalled, g.Units)
	}
	return nil
}

// sorted makes the order of the file independent of the order of flags.
func sorted(resources []resource) []resource {
	slices.SortFunc(resources, func(a, b resource) int { return cmp.Compare(a.Name, b.Name) })
	return resources
}
