package cluster

import (
	"fmt"
	"slices"
)

// HostRules is what a cluster demands of its elastic hosts, as it is configured.
type HostRules struct {
	// Max limits the elastic hosts that are asked for or there; 0 means no limit.
	Max int64 `json:"max,omitempty"`
	// IdleTime is how long a host lies idle before it is given back.
	IdleTime Duration `json:"idle_time"`
	// JoinWithin is how long a host may take to join once it is made.
	JoinWithin Duration `json:"join_within"`
	// MaxLifetime is how long after its joining a host is drained; 0 means never.
	MaxLifetime Duration `json:"max_lifetime,omitempty"`
	// SuspectAfter is for how long a host may be silent before it gets no new jobs.
	SuspectAfter Duration `json:"suspect_after"`
	// LostAfter is for how long a host may be silent before it counts as lost.
	LostAfter Duration `json:"lost_after"`
	// ReturnLost gives a lost host back even if jobs are on it.
	ReturnLost bool `json:"return_lost,omitempty"`
	// Step limits how many hosts are asked for within a time; 0 means no limit.
	Step HostStep `json:"step,omitzero"`
	// Halt stops asking for hosts while too many are unhealthy.
	Halt HostHalt `json:"halt"`
	// Limits are those of templates, alone and in groups.
	Limits []HostLimit `json:"limits,omitempty"`
}

// HostStep is at most so many hosts within a time.
type HostStep struct {
	Hosts  int64    `json:"hosts"`
	Within Duration `json:"within"`
}

// HostHalt says when too many hosts are unhealthy, suspect or lost: from so many
// on, and from a percentage of those that are here on.
type HostHalt struct {
	Hosts   int64 `json:"hosts"`
	Percent int64 `json:"percent"`
}

// HostLimit limits the hosts of some templates together; a Max of 0 lets none be made.
type HostLimit struct {
	Name      string   `json:"name"`
	Max       int64    `json:"max"`
	Templates []string `json:"templates"`
}

// DefaultHostRules is what holds where the configuration says nothing.
func DefaultHostRules() HostRules {
	return HostRules{
		IdleTime: 10 * Minute, JoinWithin: 15 * Minute, SuspectAfter: 45 * Second, LostAfter: 5 * Minute,
		Halt: HostHalt{Hosts: 3, Percent: 33},
	}
}

// leastSilence is how long a host that is well may be silent.
const leastSilence = 20 * Second

// Validate checks the rules. Paths begin with "hosts".
func (r HostRules) Validate(sessionInterval Duration) Problems {
	var ps Problems
	ps.count("hosts.max", r.Max, mostUnits)
	if 0 <= r.IdleTime && r.IdleTime < sessionInterval {
		ps.add("hosts.idle_time", fmt.Sprintf("%s is shorter than the session interval %s, so no session could see the host used again", r.IdleTime, sessionInterval),
			fmt.Sprintf("write at least %s", sessionInterval))
	}
	if r.JoinWithin == 0 {
		ps.add("hosts.join_within", fmt.Sprintf("%s leaves no time to join", r.JoinWithin), "write a length of time such as 15m")
	}
	if r.LostAfter == 0 {
		ps.add("hosts.lost_after", fmt.Sprintf("%s counts every host as lost", r.LostAfter), "write a length of time such as 5m")
	}
	if r.SuspectAfter < leastSilence {
		ps.add("hosts.suspect_after", fmt.Sprintf("%s is too short: hosts are heard of every 15 seconds", r.SuspectAfter), fmt.Sprintf("write at least %s", leastSilence))
	}
	ps.length("hosts.join_within", r.JoinWithin)
	ps.length("hosts.idle_time", r.IdleTime)
	ps.length("hosts.max_lifetime", r.MaxLifetime)
	ps.length("hosts.lost_after", r.LostAfter)
	ps.step(r.Step)
	ps.count("hosts.halt.hosts", r.Halt.Hosts, mostUnits)
	if r.Halt.Percent < 0 || r.Halt.Percent > 100 {
		ps.add("hosts.halt.percent", fmt.Sprintf("%d is no percentage", r.Halt.Percent), "write 0 to 100")
	}
	for i, l := range r.Limits {
		ps.hostLimit(fmt.Sprintf("hosts.limits[%d]", i), l, r.Limits[:i])
	}
	return ps
}

func (ps *Problems) step(s HostStep) {
	ps.count("hosts.step.hosts", s.Hosts, mostUnits)
	ps.length("hosts.step.within", s.Within)
	if (s.Hosts > 0) != (s.Within > 0) {
		ps.add("hosts.step", "hosts and within say only together how fast hosts may be asked for", "write both, as in {hosts: 20, within: 5m}, or neither")
	}
}

func (ps *Problems) hostLimit(at string, l HostLimit, before []HostLimit) {
	ps.name(at+".name", l.Name)
	if slices.ContainsFunc(before, func(b HostLimit) bool { return b.Name == l.Name }) {
		ps.add(at+".name", fmt.Sprintf("limit %q is already defined", l.Name), "give each limit one entry")
	}
	ps.count(at+".max", l.Max, mostUnits)
	if len(l.Templates) == 0 {
		ps.add(at+".templates", "the limit names no template", "name those that it limits together")
	}
	for i, name := range l.Templates {
		path := fmt.Sprintf("%s.templates[%d]", at, i)
		ps.name(path, name)
		if slices.Contains(l.Templates[:i], name) {
			ps.add(path, fmt.Sprintf("template %q is named twice", name), "name each once")
		}
	}
}

// Terms are the conditions of a host of a template: the provider's and the cluster's own.
func (r HostRules) Terms(t Template) HostTerms {
	return HostTerms{
		Price: t.Price, MinimumHold: t.MinimumHold, BillingStep: t.BillingStep, Latency: t.Latency, PollInterval: t.PollInterval,
		JoinWithin: r.JoinWithin, IdleTime: r.IdleTime, MaxLifetime: r.MaxLifetime, ReturnLost: r.ReturnLost,
	}
}

// HealthAfter answers how a host stands that has been silent for so long.
func (r HostRules) HealthAfter(silence Duration) Health {
	suspect := r.SuspectAfter
	if suspect == 0 {
		suspect = DefaultHostRules().SuspectAfter
	}
	switch {
	case silence >= max(r.LostAfter, suspect):
		return Lost
	case silence >= suspect:
		return Suspect
	}
	return Well
}
