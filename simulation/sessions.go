package simulation

import (
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/scheduling"
)

func (s *simulator) wantSession() { s.wanted = true }

// session runs a session, and carries out what it decides.
func (s *simulator) session() {
	s.wanted, s.tick = false, 0
	s.result.Sessions++
	s.listen()
	s.refresh()
	s.wanted = false // by what it found of silent hosts itself
	if !s.elasticFarm {
		s.follow(s.engine.Place(s.now))
		return
	}
	r := s.engine.Session(s.now)
	for _, resource := range s.resources {
		resource.idle = r.Clocks[resource.Name]
	}
	s.markIdle(r.Idle)
	s.follow(r.Starts)
	s.replaceDemand(r.Demand)
	s.explain(r.Unplaced)
	s.plan()
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
		s.engine.SetCatalog(templates, quotas, slices.Clone(s.offers))
	}
	if s.comingChanged {
		s.comingChanged = false
		var coming []cluster.ExpectedHost
		for _, h := range s.open {
			if h.row.State == cluster.HostRequested || h.row.State == cluster.HostExpected {
				coming = append(coming, h.row.Expected())
			}
		}
		s.engine.SetExpected(coming)
	}
}

// hostCounts counts the elastic hosts that the cluster's limits are about.
func (s *simulator) hostCounts() policy.HostCounts {
	c := policy.HostCounts{Open: map[string]int64{}, Begun: map[string]int64{}}
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

// markIdle keeps since when hosts are idle.
func (s *simulator) markIdle(idle []cluster.IdleSupply) {
	for _, h := range s.idleHosts {
		h.idleSince = 0
	}
	s.idleHosts = s.idleHosts[:0]
	for i := range idle {
		if name := idle[i].Host; name != "" && idle[i].Template != "" {
			h := s.hosts[name]
			h.idleSince = idle[i].Since
			s.idleHosts = append(s.idleHosts, h)
		}
	}
}

// mostDemandJobs is how many jobs a row of demand names.
const mostDemandJobs = 200

// replaceDemand puts the demand of this session in place of what is left of the last one's, and has those
// told whom it concerns.
func (s *simulator) replaceDemand(demand []cluster.Demand) {
	for i := range demand {
		demand[i].Jobs = demand[i].Jobs[:min(len(demand[i].Jobs), mostDemandJobs)]
	}
	for _, old := range s.demand {
		if !slices.ContainsFunc(demand, func(d cluster.Demand) bool { return cluster.CompareDemand(d, old) == 0 }) && old.Units > 0 {
			s.tellDemand(old.Provider)
		}
	}
	for _, d := range demand {
		i := slices.IndexFunc(s.demand, func(old cluster.Demand) bool { return cluster.CompareDemand(d, old) == 0 })
		if i < 0 || s.demand[i].Units != d.Units || s.demand[i].Price != d.Price || !slices.Equal(s.demand[i].Jobs, d.Jobs) {
			s.tellDemand(d.Provider)
		}
	}
	s.demand = demand
}

// plan finds the next instant at which a session would find something else only since time has passed: the first
// of those that come in the session's interval which is not before it.
func (s *simulator) plan() {
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
		if len(s.farm.Thresholds) > 0 {
			at(soon)
		}
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
		interval := s.farm.SessionInterval
		past := next.Sub(s.began)
		s.tick = s.began.Add((past + interval - 1) / interval * interval)
	}
}

// follow carries out the starts of a session.
func (s *simulator) follow(starts []scheduling.Start) {
	for i := range starts {
		s.start(&starts[i])
	}
}
