package simulation

import (
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/scheduling"
)

func (s *simulator) wantSession() { s.wanted = true }

// session runs a session, and carries out what it decides.
func (s *simulator) session() {
	vain := s.isVain()
	s.wanted, s.tick = false, 0
	s.result.Sessions++
	s.listen()
	s.refresh()
	s.wanted = false // by what it found of silent hosts itself
	if !s.elasticFarm && !s.due(s.engine.Waiting(), askPlain) {
		s.follow(s.engine.Place(s.now))
		return
	}
	s.settle()
	moved := !vain && s.decide()
	if !s.elasticFarm || s.due(s.engine.Waiting(), askElastic) {
		s.explain()
	}
	if s.elasticFarm {
		s.plan(moved)
	}
}

// decide has the engine decide, and tells whether anything is another than before.
func (s *simulator) decide() (moved bool) {
	var r scheduling.Result
	if s.engine.Waiting() > 0 {
		r = s.engine.Decide(s.now)
	} else {
		s.engine.Rest(s.now)
	}
	moved = s.keepIdle() || len(r.Starts) > 0
	s.follow(r.Starts)
	s.promised = r.Reservations
	return s.replaceDemand(r.Demand) || moved
}

// isVain tells that the session now would find what the last one did: nothing has happened since, and it was
// planned for the sake of hosts on which no job counts.
func (s *simulator) isVain() bool {
	return s.vain && !s.wanted && !s.unsettled && !s.options.Awake && !s.options.OneByOne
}

// unsettle notes that something may have become free.
func (s *simulator) unsettle() {
	s.unsettled = true
	s.planUnsettled(s.now)
}

// planUnsettled plans for a time at which something may have become free: promises, which only the conservative
// order keeps, are then made anew.
func (s *simulator) planUnsettled(t cluster.Time) {
	if s.elasticFarm && s.farm.Policy.Order == scheduling.Conservative && s.engine.Waiting() > 0 {
		s.planFor(t)
	}
}

// settle tells the engine whether anything may have become free since the last session. Without elasticity it
// knows best.
func (s *simulator) settle() {
	if !s.elasticFarm {
		return
	}
	for _, env := range s.inOrder {
		s.unsettled = s.unsettled || env.published()
	}
	s.engine.Settle(!s.unsettled)
	s.unsettled, s.sessionAt = false, s.now
}

// refresh tells the engine what has changed since the last session.
func (s *simulator) refresh() {
	for _, r := range s.resources {
		if r.changed {
			r.changed = false
			s.engine.SetResource(r.Name, r.account.Total(), r.account.Loans, r.idle)
		}
	}
	if s.catalogChanged || s.farm.Rules.Step.Hosts > 0 && len(s.intended) > 0 {
		s.catalogChanged = false
		templates, quotas, _ := policy.Limits(s.farm.Rules, s.hostCounts(), s.templates, s.now)
		for _, p := range s.farm.Providers {
			quotas = append(quotas, s.quotas[p.Name]...)
		}
		s.engine.SetCatalog(templates, quotas, s.offers)
	}
	if s.comingChanged {
		s.comingChanged = false
		s.firstComing = 0
		var expected []cluster.ExpectedHost
		for _, h := range s.open {
			if coming(h.row.State) {
				x := h.row.Expected()
				expected = append(expected, x)
				if s.firstComing == 0 || x.Expected < s.firstComing {
					s.firstComing = x.Expected
				}
			}
		}
		s.engine.SetExpected(expected)
	}
}

// hostCounts counts the elastic hosts that the cluster's limits are about.
func (s *simulator) hostCounts() policy.HostCounts {
	c := policy.HostCounts{Open: s.openHosts, Begun: s.begunHosts}
	clear(c.Open)
	clear(c.Begun)
	for _, h := range s.open {
		c.Open[h.row.Template]++
		if h.host != nil {
			c.Here++
			if h.row.Health != cluster.Well {
				c.Unhealthy++
			}
		}
	}
	if step := s.farm.Rules.Step; step.Hosts > 0 {
		since := s.now.Add(-step.Within)
		s.intended = slices.DeleteFunc(s.intended, func(h *elasticHost) bool { return h.row.Intended <= since })
		for _, h := range s.intended {
			if h.row.State != cluster.HostRefused {
				c.Begun[h.row.Template]++
			}
		}
	} else {
		s.intended = nil
	}
	return c
}

// keepIdle keeps what the session found idle, and tells whether anything was not before, or is not now.
func (s *simulator) keepIdle() (moved bool) {
	for _, r := range s.resources {
		if clock := s.engine.IdleClock(r.Name); !slices.Equal(clock, r.idle) {
			r.idle, moved = append(r.idle[:0], clock...), true
		}
	}
	before := s.idleChanges
	s.idleChanges = s.engine.IdleChanges()
	return moved || s.idleChanges != before
}

// replaceDemand puts the demand of this session in place of what is left of the last one's, and has those
// told whom it concerns. It answers whether anything is another than before.
func (s *simulator) replaceDemand(demand []cluster.Demand) (moved bool) {
	for i := range demand {
		demand[i].Jobs = demand[i].Jobs[:min(len(demand[i].Jobs), judge.MostDemandJobs)]
	}
	for _, old := range s.demand {
		if !slices.ContainsFunc(demand, func(d cluster.Demand) bool { return cluster.CompareDemand(d, old) == 0 }) && old.Units > 0 {
			s.tellDemand(old.Provider)
			moved = true
		}
	}
	for _, d := range demand {
		i := slices.IndexFunc(s.demand, func(old cluster.Demand) bool { return cluster.CompareDemand(d, old) == 0 })
		if i < 0 || !s.demand[i].Same(d) {
			s.tellDemand(d.Provider)
			moved = true
		}
	}
	s.demand = demand
	return moved
}

// plan finds the next instant at which a session would find something else only since time has passed: the first
// of those that come in the session's interval which is not before it. The one after a session that moved anything
// may move more: what is kept for whom depends on what has just been started.
func (s *simulator) plan(moved bool) {
	var next cluster.Time
	at := func(t cluster.Time) {
		if t > s.now && (next == 0 || t < next) {
			next = t
		}
	}
	soon := s.now.Add(1)
	if len(s.silent) > 0 || len(s.demand) > 0 {
		at(soon)
	}
	if s.engine.Waiting() > 0 {
		if moved || len(s.farm.Thresholds) > 0 {
			at(soon)
		}
		s.planPromises(at)
		for i := range s.offers {
			at(s.offers[i].BackoffUntil)
		}
		for i := range s.templates {
			at(s.templates[i].BackoffUntil)
		}
		if step := s.farm.Rules.Step; step.Hosts > 0 {
			for _, h := range s.intended {
				at(h.row.Intended.Add(step.Within))
			}
		}
	}
	if next > 0 {
		s.planFor(next)
	}
	s.planComing(max(s.firstComing, soon))
	for _, env := range s.inOrder {
		if env.asleep {
			s.planUnsettled(env.publishes(s.now))
		}
	}
}

// planComing plans for when a host that is coming may be there, or is overdue: the promises of jobs on several hosts
// count on it. Where no such job waits, that session is held in vain.
func (s *simulator) planComing(t cluster.Time) {
	if s.farm.Policy.Order != scheduling.EASY || s.firstComing == 0 || s.engine.Waiting() == 0 {
		return
	}
	if before := s.tick; before == 0 || s.boundary(t) < before {
		s.planFor(t)
		s.vain = s.farm.Rules.Step.Hosts == 0 && !s.engine.WaitsForSeveral()
	}
}

// planPromises plans for when promises are due, and for when anything new would come too late for them: what comes
// before it can come is not asked for. A promise that relies on what may come any moment is always due.
func (s *simulator) planPromises(at func(cluster.Time)) {
	for i := range s.promised {
		due := s.promised[i].At
		if due <= s.now.Add(cluster.Second) {
			at(s.now + 1)
			return
		}
		at(due)
		for t := range s.templates {
			at(due.Add(-s.templates[t].Latency))
		}
	}
}

// planFor plans a session for the first instant in the session's interval that is not before t.
func (s *simulator) planFor(t cluster.Time) {
	if tick := s.boundary(t); s.tick == 0 || tick <= s.tick {
		s.tick, s.vain = tick, false
	}
}

// boundary answers the first instant in the session's interval that is not before t.
func (s *simulator) boundary(t cluster.Time) cluster.Time {
	interval := s.farm.SessionInterval
	return s.began.Add((t.Sub(s.began) + interval - 1) / interval * interval)
}

// follow carries out the starts of a session.
func (s *simulator) follow(starts []scheduling.Start) {
	for i := range starts {
		s.start(&starts[i])
	}
}
