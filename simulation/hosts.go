package simulation

import (
	"cmp"
	"errors"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/workflows"
)

// host is a host that is in the cluster.
type host struct {
	name    string
	elastic *elasticHost // nil for one that the cluster owns
	jobs    []*running
	// idleSince is since when the last session found it idle; 0 where it did not.
	idleSince cluster.Time
	counted   int // the column of the series in which it is counted
}

// writeHost writes one change of a host's story to its row, and what it brings.
func (s *simulator) writeHost(in api.WriteHost) (w api.HostWritten) {
	h := s.elastic[in.Host]
	if h == nil {
		h = &elasticHost{}
	}
	around := ledger.Host{Row: h.row}
	if h.host != nil && h.row.State.Here() {
		around.Jobs = int64(len(h.host.jobs))
	}
	var demand *cluster.Demand
	if in.Intend != nil {
		demand = s.demandFor(cluster.Demand{Template: in.Intend.Template, Provider: in.Intend.Provider})
		around.Demanded = demand.Units
	}
	change := s.hostChange(in, h, &around)
	after, event, err := around.Write(in.Host, in.Step, change, s.now)
	w.Host = after
	if w.Refusal = refusalOf(err); w.Refusal != nil || event.Kind == "" {
		return w
	}
	if in.Intend != nil {
		s.elastic[in.Host] = h
		s.made[after.Template]++
		if after.State.Open() {
			demand.Units--
			s.insertOpen(h, after)
		}
	}
	s.keepHost(h, event)
	s.bring(in, h, event)
	return w
}

// hostChange answers the ledger's form of what a story writes.
func (s *simulator) hostChange(in api.WriteHost, h *elasticHost, around *ledger.Host) ledger.HostChange {
	switch {
	case in.Intend != nil:
		t := s.template(in.Intend.Template, in.Intend.Provider)
		if t == nil {
			around.Demanded = 0
			t = &cluster.Template{}
		}
		return ledger.IntendHost{HostRequest: *in.Intend, Capacity: t.Believed(), Terms: s.farm.Rules.Terms(*t)}
	case in.Expect != nil:
		return ledger.ExpectHost{Instance: in.Expect.Instance, Name: s.nameFor(h, in.Expect.Name)}
	case in.Refuse != nil:
		return ledger.RefuseHost{Why: in.Refuse.Why}
	case in.Lapse != nil:
		return ledger.LapseHost{Why: in.Lapse.Why}
	case in.Drain != nil:
		return ledger.DrainHost{Drain: *in.Drain}
	case in.Undrain != nil:
		return ledger.UndrainHost{By: in.Undrain.By}
	case in.Keep != nil:
		return ledger.KeepHost{Keep: *in.Keep}
	case in.Release != nil:
		return ledger.ReleaseHost{By: in.Release.By}
	case in.StopJobs != nil:
		return ledger.StopJobs{Why: in.StopJobs.Why}
	case in.Confirm:
		return ledger.ConfirmHost{}
	case in.Gone != nil:
		return ledger.LoseHost{Why: in.Gone.Why}
	}
	return s.fenceHost(h)
}

func (s *simulator) fenceHost(h *elasticHost) ledger.HostChange {
	var since cluster.Time
	if h.host != nil {
		since = h.host.idleSince
	}
	idle, again := policy.ReturnHost(h.row, since, s.now)
	why := "idle"
	if h.row.Drain != nil {
		why = "empty, and drained: " + h.row.Drain.Why
	}
	return ledger.FenceHost{Idle: idle, AskAgain: again, Why: why}
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
	s.providers[h.row.Provider].changed()
	if h.row.State.Here() && h.host != nil {
		s.closeHost(h)
	}
	if event.Material() || event.Before.State == "" {
		s.catalogChanged, s.comingChanged = true, true
		s.wantSession()
	}
	s.recordHost(h, event)
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
	case in.Refuse != nil:
		s.letBe(h.row, in.Refuse.Ours, in.Refuse.RetryAfter)
	case in.Lapse != nil:
		s.letBe(h.row, !in.Lapse.Late, 0)
	case in.StopJobs != nil:
		s.stopJobs(h)
	case in.Gone != nil:
		s.requeueAll(h)
		s.leave(h)
		s.letBe(h.row, event.Before.State != cluster.HostExpected, 0)
	case h.row.State == cluster.HostLeaving && event.Before.State.Here():
		s.leave(h)
	}
	if !h.row.State.Open() {
		s.tellChanged(h.row.Provider)
	}
}

func (s *simulator) letBe(row cluster.ElasticHost, ours bool, retryAfter cluster.Duration) {
	if t := s.template(row.Template, row.Provider); t != nil && !ours {
		*t = policy.RefusedTemplate(*t, retryAfter, s.now)
		s.catalogChanged = true
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
		s.at(s.now.Add(s.farm.Steps.Stop), func() {
			if r.run == n && !r.over {
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

// knockAgain is how long a host waits that is not expected yet.
const knockAgain = 5 * cluster.Second

// join takes a machine into the cluster, if it is awaited.
func (s *simulator) join(m model.Machine, has cluster.Capacity) {
	h := s.elastic[m.Request]
	if h == nil || s.models[h.row.Provider].Held(m.Request) == 0 {
		return
	}
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
		t.Refusals, t.BackoffUntil = 0, 0
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
		r.dead = true // it runs no more, and nobody says so
	}
	s.silent = append(s.silent, h)
}

// listen notes how hosts stand that have fallen silent.
func (s *simulator) listen() {
	s.silent = slices.DeleteFunc(s.silent, func(h *elasticHost) bool { return h.host == nil || !h.row.State.Here() })
	for _, h := range s.silent {
		health := s.farm.Rules.HealthAfter(s.now.Sub(h.silent))
		if health == h.row.Health {
			continue
		}
		_, event, err := ledger.Host{Row: h.row}.Note(ledger.Seen{Health: health, Why: "last heard of at " + h.silent.Stamp()}, s.now)
		var refusal *ledger.Refusal
		if errors.As(err, &refusal) || event.Kind == "" {
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
	after, event, err := ledger.Host{Row: h.elastic.row}.Note(ledger.Load{Jobs: int64(len(h.jobs))}, s.now)
	if err != nil || event.Kind == "" {
		return
	}
	h.elastic.row = after
	if event.Kind == "emptied" && after.Drain != nil {
		s.news(after.ID, workflows.Message{Emptied: true})
	}
}
