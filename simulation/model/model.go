package model

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// World is what a model has of the world around it.
type World struct {
	Now func() cluster.Time
	// At has something done at a time; never before now.
	At func(cluster.Time, func())
	// Began is the beginning of the simulation, and Zone where its days and hours are.
	Began cluster.Time
	Zone  *time.Location
	// Made sees a machine that was made, with when it joins (0 for never) and what it then has; Dead
	// sees one that is no more, whoever ended it. Changed is told that the provider would describe
	// itself or list otherwise than before. Each may be nil.
	Made    func(m Machine, joins cluster.Time, has cluster.Capacity)
	Dead    func(m Machine)
	Changed func()
}

// Machine is one machine of a request.
type Machine struct {
	providers.Instance
	Request, Template string
}

// Model answers the verbs of a provider script as the provider is believed to. It serves one caller.
type Model struct {
	Provider
	world  World
	chance Chance

	templates []*shelf
	offers    []*shelf
	stockOut  spells
	outage    spells
	out, mute bool // whether stock is out, and nothing is answered, now

	requests map[string]*request
	given    []*request // those that have something, in the order in which they got it
	machines int
	calls    map[call]int
}

// shelf is what there is of one thing.
type shelf struct {
	supply Supply
	has    cluster.Capacity // of one host
	terms
	taken int64
}

func (s *shelf) free() int64 { return max(s.capacity-s.taken, 0) }

// request is one request id, from the first word about it.
type request struct {
	providers.RequestIn
	shelf   *shelf
	state   providers.State
	reason  providers.Reason
	granted int64
	held    int64 // now
	decided cluster.Time
	// Of hosts.
	machine   Machine
	instances []providers.Instance // the machine
	returning bool
	reclaimed cluster.Time // when the provider takes it; 0 for not announced
	// Of loans.
	recalled bool
}

// call is what calls are counted by: so chance does not depend on the order of all.
type call struct {
	verb    providers.Verb
	request string
}

// New makes a model. Its chance comes from the seed and the provider's name.
func New(p Provider, seed uint64, w World) *Model {
	m := &Model{Provider: p, world: w, chance: Chance(seed), requests: map[string]*request{}, calls: map[call]int{}}
	m.stockOut = spells{Spell: p.StockOut, chance: m.chance, purpose: p.Name + " stock out"}
	m.outage = spells{Spell: p.Outage, chance: m.chance, purpose: p.Name + " outage"}
	for _, t := range p.Templates {
		m.templates = append(m.templates, &shelf{supply: t.Supply, has: t.Has()})
	}
	for _, o := range p.Offers {
		m.offers = append(m.offers, &shelf{supply: o.Supply})
	}
	m.look()
	return m
}

// look takes what the provider is like now, and is called again when that changes.
func (m *Model) look() {
	now := m.world.Now()
	var next cluster.Time
	at := func(t cluster.Time) {
		if t > 0 && (next == 0 || t < next) {
			next = t
		}
	}
	for _, s := range slices.Concat(m.templates, m.offers) {
		s.terms = s.supply.at(now, m.world.Began, m.world.Zone)
		at(s.until)
	}
	var change cluster.Time
	m.out, change = m.stockOut.look(now, m.world.Began)
	at(change)
	m.mute, change = m.outage.look(now, m.world.Began)
	at(change)
	if next > 0 {
		m.world.At(next, func() { m.look(); m.changed() })
	}
}

func (m *Model) changed() {
	if m.world.Changed != nil {
		m.world.Changed()
	}
}

// Restless tells that the next survey may find something else than the last, though nothing changed
// meanwhile: while nothing is answered, or something is wanted back.
func (m *Model) Restless() bool {
	return m.mute || slices.ContainsFunc(m.given, func(r *request) bool { return r.recalled || r.reclaimed > 0 })
}

// Latency answers how long the next call takes.
func (m *Model) Latency(verb providers.Verb, id string) cluster.Duration {
	if id == "" {
		return m.Answer.Typical()
	}
	return m.Answer.drawn(m.chance, m.Name, "answer", string(verb), id, strconv.Itoa(m.calls[call{verb, id}]))
}

// lost tells whether a call finds no answer, and whether it is carried out all the same.
func (m *Model) lost(verb providers.Verb, id string) (lost, done bool) {
	if m.mute {
		return true, false
	}
	if id == "" || m.Unknown == 0 {
		return false, true
	}
	c := call{verb, id}
	n := m.calls[c]
	m.calls[c]++
	source := rand.New(m.chance.draw(m.Name, "lost", string(verb), id, strconv.Itoa(n)))
	if source.Int64N(100) >= m.Unknown {
		return false, true
	}
	return true, source.Int64N(2) == 0
}

// answer answers a call, unless no answer comes.
func answer[O any](m *Model, verb providers.Verb, id string, do func() (O, providers.Outcome)) (O, providers.Outcome) {
	lost, done := m.lost(verb, id)
	if !lost {
		return do()
	}
	if done {
		do()
	}
	var none O
	return none, providers.Outcome{Status: providers.StatusUnknown, Message: "no answer came"}
}

func (m *Model) template(name string) int {
	return slices.IndexFunc(m.Templates, func(t Template) bool { return t.Template == name })
}

func (m *Model) offer(resource string) int {
	return slices.IndexFunc(m.Offers, func(o Offer) bool { return o.Resource == resource })
}

// decide answers what becomes of a new request.
func (m *Model) decide(in providers.RequestIn) *request {
	r := &request{RequestIn: in, state: providers.StateRefused, reason: providers.ReasonInvalid}
	if i := m.template(in.Template); in.Template != "" && i >= 0 {
		r.shelf = m.templates[i]
	} else if i := m.offer(in.Resource); in.Resource != "" && i >= 0 {
		r.shelf = m.offers[i]
	} else {
		return r
	}
	r.reason = providers.ReasonCapacity
	free := min(r.shelf.free(), in.Units)
	if m.out || free == 0 || in.Template != "" && free < in.Units || m.chance.percent(m.Refused, m.Name, "refused", in.RequestID) {
		return r
	}
	if in.Units > 1 && m.chance.percent(m.Partial, m.Name, "partial", in.RequestID) {
		free = min(free, (in.Units+1)/2)
	}
	r.reason, r.granted = "", free
	r.shelf.taken += free
	if wait := m.Decide.drawn(m.chance, m.Name, "decide", in.RequestID); wait > 0 {
		r.state, r.decided = providers.StatePending, m.world.Now().Add(wait)
		m.world.At(r.decided, func() { m.settle(r) })
		return r
	}
	m.grant(r)
	return r
}

// settle grants a pending request, if it has not been cancelled.
func (m *Model) settle(r *request) {
	if r.state == providers.StatePending {
		m.grant(r)
		m.changed()
	}
}

func (m *Model) grant(r *request) {
	r.state, r.held = providers.StateGranted, r.granted
	m.given = append(m.given, r)
	if r.Template == "" {
		m.lend(r)
		return
	}
	m.make(r)
}

// lend plans when the lender wants units back.
func (m *Model) lend(r *request) {
	o := m.Offers[m.offer(r.Resource)]
	if o.Recalled == 0 {
		return
	}
	m.world.At(m.world.Now().Add(m.chance.exponential(o.Recalled, m.Name, "recalled", r.RequestID)), func() {
		if r.held > 0 {
			r.recalled = true
			m.changed()
		}
	})
}

// make makes the machine of a request, and plans what becomes of it.
func (m *Model) make(r *request) {
	t, now := m.Templates[m.template(r.Template)], m.world.Now()
	m.machines++
	r.machine = Machine{Instance: providers.Instance{ID: m.Name + "-i-" + strconv.Itoa(m.machines)}, Request: r.RequestID, Template: r.Template}
	r.instances = []providers.Instance{r.machine.Instance}
	joins := now.Add(t.Boot.drawn(m.chance, m.Name, "boot", r.RequestID))
	if m.chance.percent(t.NeverJoins, m.Name, "never joins", r.RequestID) {
		joins = 0
	}
	if m.world.Made != nil {
		m.world.Made(r.machine, joins, r.shelf.has)
	}
	if t.Dies > 0 {
		m.world.At(now.Add(m.chance.exponential(t.Dies, m.Name, "dies", r.RequestID)), func() { m.end(r) })
	}
	if t.Reclaimed > 0 {
		at := now.Add(m.chance.exponential(t.Reclaimed, m.Name, "reclaimed", r.RequestID))
		m.world.At(at, func() { m.reclaim(r, t.Grace) })
	}
}

// reclaim takes a machine back, with a word before.
func (m *Model) reclaim(r *request, grace cluster.Duration) {
	if r.held == 0 {
		return
	}
	r.reclaimed = m.world.Now().Add(grace)
	m.changed()
	m.world.At(r.reclaimed, func() { m.end(r) })
}

// end ends what a request has, all of it.
func (m *Model) end(r *request) {
	if r.held == 0 {
		return
	}
	m.take(r, r.held)
	m.changed()
}

// take takes units of a request back.
func (m *Model) take(r *request, units int64) {
	r.held -= units
	r.shelf.taken -= units
	if r.held > 0 {
		return
	}
	r.recalled, r.reclaimed, r.returning = false, 0, false
	m.given = slices.DeleteFunc(m.given, func(other *request) bool { return other == r })
	if r.Template != "" && m.world.Dead != nil {
		m.world.Dead(r.machine)
	}
}

func seconds(d cluster.Duration) int64 { return int64(d / cluster.Second) }

// pollInterval is how often the provider wants to be asked.
func (m *Model) pollInterval() int64 {
	return seconds(max(cmp.Or(m.PollInterval, 10*cluster.Second), cluster.Second))
}
