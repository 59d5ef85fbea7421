package simulation

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/workflows"
)

// host is a host that is in the cluster.
type host struct {
	name    string
	elastic *elasticHost // nil for one that the cluster owns
	jobs    []*running
	counted int // the column of the series in which it is counted
}

// writeHost writes one change of a host's story to its row as of a time, and what it brings.
func (s *simulator) writeHost(in api.WriteHost, at cluster.Time) api.HostWritten {
	s.unsettle()
	h := s.elastic[in.Host]
	if h == nil {
		h = &elasticHost{}
	}
	answer, err := s.hostBooks(in, h).Write(in, at)
	if err != nil || answer.Refusal != nil || answer.Event.Kind == "" {
		return answer.HostWritten
	}
	if answer.Demand != nil {
		*s.demandFor(*answer.Demand) = *answer.Demand
	}
	if answer.Template != nil {
		*s.template(answer.Template.Name, answer.Template.Provider) = *answer.Template
		s.catalogChanged = true
	}
	if in.Intend != nil {
		s.elastic[in.Host] = h
		s.made[answer.Host.Template]++
		if answer.Host.State.Open() {
			s.insertOpen(h, answer.Host)
		}
	}
	s.keepHost(h, answer.Event)
	s.bring(in, h, answer.Event)
	return answer.HostWritten
}

// hostBooks reads what a write to a host's row is judged on.
func (s *simulator) hostBooks(in api.WriteHost, h *elasticHost) judge.HostBooks {
	b := judge.HostBooks{Row: h.row}
	if h.host != nil && h.row.State.Here() {
		b.Jobs = int64(len(h.host.jobs))
	}
	switch {
	case in.Intend != nil:
		b.Demand = *s.demandFor(cluster.Demand{Template: in.Intend.Template, Provider: in.Intend.Provider})
		b.Rules, b.Template = &s.farm.Rules, s.template(in.Intend.Template, in.Intend.Provider)
	case in.Expect != nil:
		b.Name = s.nameFor(h, in.Expect.Name)
	case in.Refuse != nil || in.Lapse != nil || in.Gone != nil:
		b.Template = s.template(h.row.Template, h.row.Provider)
	case in.Fence && h.host != nil:
		b.IdleSince = s.engine.IdleSince(h.host.name)
	}
	return b
}

func (s *simulator) insertOpen(h *elasticHost, row cluster.ElasticHost) {
	i, _ := slices.BinarySearchFunc(s.open, row.ID, func(h *elasticHost, id string) int { return cmp.Compare(h.row.ID, id) })
	s.open = slices.Insert(s.open, i, h)
	s.intended = append(s.intended, h)
}

// keepHost keeps a row after a write or a fact, and tells sessions of it.
func (s *simulator) keepHost(h *elasticHost, event ledger.HostEvent) {
	h.row = event.After
	if h.row.Name != "" {
		s.bearers[h.row.Name] = h
	}
	if !h.row.State.Open() {
		s.open = slices.DeleteFunc(s.open, func(other *elasticHost) bool { return other == h })
	}
	if h.row.State.Here() && h.host != nil {
		s.closeHost(h)
	}
	if event.Material() {
		s.providers[h.row.Provider].changed()
		s.catalogChanged = s.catalogChanged || s.limited() || len(s.silent) > 0
		s.comingChanged = s.comingChanged || coming(event.Before.State) || coming(h.row.State)
		s.wantSession()
	}
	s.recordHost(h, event)
}

// limited tells whether the cluster's own limits depend on what hosts there are.
func (s *simulator) limited() bool {
	r := &s.farm.Rules
	return r.Max > 0 || r.Step.Hosts > 0 || len(r.Limits) > 0
}

// coming tells whether sessions expect a host in a state.
func coming(state cluster.HostState) bool {
	return state == cluster.HostRequested || state == cluster.HostExpected
}

// closeHost has sessions know whether a host takes jobs.
func (s *simulator) closeHost(h *elasticHost) {
	why := ""
	switch {
	case h.row.Health != cluster.Well:
		why = "it was last heard of at " + h.silent.Stamp()
	case h.row.Drain != nil:
		why = "it drains: " + h.row.Drain.Why
	}
	s.engine.Close(h.host.name, why)
}

// bring carries out what a change means for others than the row.
func (s *simulator) bring(in api.WriteHost, h *elasticHost, event ledger.HostEvent) {
	switch {
	case in.StopJobs != nil:
		s.stopJobs(h)
	case in.Gone != nil:
		s.requeueAll(h)
		s.leave(h)
	case h.row.State == cluster.HostLeaving && event.Before.State.Here():
		s.leave(h)
	}
	if !h.row.State.Open() {
		s.tellChanged(h.row.Provider)
	}
}

// leave takes a host out of the cluster.
func (s *simulator) leave(h *elasticHost) {
	if h.host == nil {
		return
	}
	s.engine.Leave(h.host.name)
	delete(s.hosts, h.host.name)
	s.count(h.host, -1)
	h.host = nil
}

// stopJobs stops the jobs on a host, so that they wait again.
func (s *simulator) stopJobs(h *elasticHost) {
	if h.host == nil {
		return
	}
	for _, r := range slices.Clone(h.host.jobs) {
		n := r.run
		r.known = true
		s.at(s.now.Add(s.farm.Steps.Stop), func() {
			if r.run == n && !r.over && !r.dead { // or no agent is there to stop it
				s.requeue(r)
			}
		})
	}
}

func (s *simulator) requeueAll(h *elasticHost) {
	if h.host == nil {
		return
	}
	for _, r := range slices.Clone(h.host.jobs) {
		s.requeue(r)
	}
}

// madeMachine sees a machine that its provider has made, and has it join in time.
func (s *simulator) madeMachine(m model.Machine, joins cluster.Time, has cluster.Capacity) {
	if joins > 0 {
		s.at(joins, func() { s.join(m, has) })
	}
}

// knockAgain is how long the agent of a host waits that is not expected yet.
const knockAgain = cluster.Second

// join takes a machine into the cluster, if it is awaited.
func (s *simulator) join(m model.Machine, has cluster.Capacity) {
	h := s.elastic[m.Request]
	if h == nil || s.models[h.row.Provider].Held(m.Request) == 0 {
		return
	}
	s.unsettle()
	if h.row.State == cluster.HostRequested {
		s.at(s.now.Add(knockAgain), func() { s.join(m, has) })
		return
	}
	after, event, err := ledger.Host{Row: h.row}.Note(ledger.Join{Capacity: has}, s.now)
	if err != nil || event.Kind == "" || h.row.Instance != m.ID {
		return
	}
	h.host = &host{name: after.Name, elastic: h, counted: -1}
	s.hosts[after.Name] = h.host
	s.engine.Join(scheduling.Host{Name: after.Name, Capacity: has, Template: after.Template})
	s.learn(after)
	s.keepHost(h, event)
	s.count(h.host, 1)
	s.news(h.row.ID, workflows.Message{Joined: &workflows.HostJoined{At: after.Joined}})
}

// learn has the template know what came of it, and forget its refusals.
func (s *simulator) learn(row cluster.ElasticHost) {
	if t := s.template(row.Template, row.Provider); t != nil {
		*t = t.Learn(row.Capacity)
		s.catalogChanged = true
	}
}

// deadMachine sees a machine that is no more. Where its host did not leave before, it falls silent.
func (s *simulator) deadMachine(m model.Machine) {
	h := s.elastic[m.Request]
	if h == nil || h.host == nil || h.row.Instance != m.ID || !h.row.State.Here() {
		return
	}
	h.silent = s.now
	for _, r := range h.host.jobs {
		s.strand(r)
	}
	s.silent = append(s.silent, h)
	s.planFor(s.now + 1) // sessions notice silence
}

// listen notes how hosts stand that have fallen silent.
func (s *simulator) listen() {
	s.silent = slices.DeleteFunc(s.silent, func(h *elasticHost) bool { return h.host == nil || !h.row.State.Here() })
	for _, h := range s.silent {
		health := s.farm.Rules.HealthAfter(s.now.Sub(h.silent))
		if health == h.row.Health {
			continue
		}
		s.wake(h)
		_, event, err := ledger.Host{Row: h.row}.Note(ledger.Seen{Health: health, Why: "last heard of at " + h.silent.Stamp()}, s.now)
		if err != nil || event.Kind == "" {
			continue
		}
		s.keepHost(h, event)
		s.news(h.row.ID, workflows.Message{Health: &workflows.HostHealth{Health: health}})
	}
}

// loaded notes on an elastic host how many jobs it has now.
func (s *simulator) loaded(h *host) {
	s.recount(h)
	if h.elastic == nil || len(h.jobs) > 1 {
		return
	}
	if len(h.jobs) == 0 {
		s.wake(h.elastic)
	}
	after, event, err := ledger.Host{Row: h.elastic.row}.Note(ledger.Load{Jobs: int64(len(h.jobs))}, s.now)
	if err != nil || event.Kind == "" {
		return
	}
	h.elastic.row = after
	if event.Kind == "emptied" && after.Drain != nil {
		s.news(after.ID, workflows.Message{Emptied: true})
	}
}
