package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// noPlaceEver answers why no host that is there, expected or could be made would

func (s *session) noPlaceEver(c *class) verdict {
	if s.couldEver(c) || len(c.templates.list) > 0 {
		return verdict{}
	}
	var hosts int64
	for i := range s.e.expected {
		if x := &s.e.expected[i]; covers(x.size, c.need) && slices.Contains(c.kinds, x.kind) {
			hosts++
		}
	}
	if hosts >= c.nodes {
		return verdict{}
	}
	what := s.needText(c)
	if closed := s.closedFor(c); closed != "" {
		return verdict{WaitHosts, fmt.Sprintf("needs %s; %s", what, closed), "such a host must be opened or added"}
	}
	if len(s.e.sizes)+len(s.e.expected)+len(s.e.templates) == 0 {
		return verdict{WaitHosts, fmt.Sprintf("needs %s; no host is up", what), "a host must join"}
	}
	return verdict{Never, fmt.Sprintf("needs %s; %s", what, s.largestText(c)), "a larger host or a template of one must be added"}
}

// closedFor says which closed host would take the class; empty where none would.

func (s *session) closedFor(c *class) string {
	for i := range s.e.hosts {
		h := &s.e.hosts[i]
		if h.closed != "" && covers(h.size, c.need) && slices.Contains(c.kinds, h.kind) {
			return fmt.Sprintf("host %s has it, but takes no jobs: %s", h.name, h.closed)
		}
	}
	return ""
}

// largestText says what the hosts have at most.

func (s *session) largestText(c *class) string {
	most := make([]int64, s.e.dims.count())
	fit := 0
	see := func(size []int64) {
		for d, n := range size {
			most[d] = max(most[d], n)
		}
		if covers(size, c.need) {
			fit++
		}
	}
	for i := range s.e.sizes {
		see(s.e.sizes[i].size)
	}
	for i := range s.e.expected {
		see(s.e.expected[i].size)
	}
	for i := range s.e.templates {
		see(s.e.templates[i].size)
	}
	switch {
	case c.job.Constraint != "" && fit > 0:
		return fmt.Sprintf("no host and no template of that size satisfies %q", c.job.Constraint)
	case fit > 0 && c.nodes > 1:
		return fmt.Sprintf("there are not %d such hosts, and no template makes them", c.nodes)
	}
	return fmt.Sprintf("no host and no template has more than %s", s.e.dims.text(most))
}

// needText says what a job of the class needs of hosts.

func (s *session) needText(c *class) string {
	if c.words == "" {
		c.words = s.e.needText(c)
	}
	return c.words
}

func (e *Engine) needText(c *class) string {
	text := e.dims.text(c.need) + " on one host"
	if c.nodes > 1 {
		text = fmt.Sprintf("%s on each of %d hosts", e.dims.text(c.need), c.nodes)
	}
	if c.job.Exclusive {
		text += " for itself"
	}
	if c.job.Constraint != "" {
		text += " with " + c.job.Constraint
	}
	return text
}

// freeText says what the hosts that the class may use have free at most, after

func (s *session) freeText(c *class) string {
	most := make([]int64, s.e.dims.count())
	up := 0
	for _, k := range c.kinds {
		shelf := &s.supply.real[k]
		up += len(shelf.hosts)
		for d := range most {
			most[d] = max(most[d], shelf.bins.most[shelf.bins.dims+d])
		}
	}
	if up == 0 {
		return "no host that it may use is up"
	}
	return fmt.Sprintf("the most that earlier jobs leave free on any is %s", s.e.dims.text(most))
}

// lacksHosts explains a job that finds no host and can get none.

func (s *session) lacksHosts(c *class) verdict {
	v := verdict{WaitHosts, fmt.Sprintf("needs %s; %s", s.needText(c), s.freeText(c)), "running jobs must end"}
	if c.pass.quiet {
		return s.belowThreshold(c, v)
	}
	if len(c.templates.list) == 0 {
		return v
	}
	v.why += fmt.Sprintf(", and no more can be made of %s", s.templateNames(c.templates.list))
	v.change = "running jobs must end, or a provider must have more headroom: " + s.headroomText(c)
	return v
}

const named = 3

func (s *session) templateNames(list []int32) string {
	names := make([]string, 0, named)
	for _, t := range list[:min(len(list), named)] {
		names = append(names, s.e.templates[t].Name)
	}
	text := strings.Join(names, ", ")
	if len(list) > named {
		text += fmt.Sprintf(" and %d other templates", len(list)-named)
	}
	return text
}

// headroomText shows for the first templates of a class what limits them.

func (s *session) headroomText(c *class) string {
	var parts []string
	for _, t := range c.templates.list[:min(len(c.templates.list), named)] {
		tmpl := &s.e.templates[t]
		if s.now < tmpl.BackoffUntil {
			parts = append(parts, fmt.Sprintf("%s refused and is left alone until %s", tmpl.Name, tmpl.BackoffUntil.Stamp()))
			continue
		}
		part := fmt.Sprintf("%s had %d", tmpl.Name, tmpl.Headroom)
		for _, q := range tmpl.quotas {
			quota := &s.e.quotas[q]
			part += fmt.Sprintf(" within quota %s of %d %s, %d used, %d each", quota.Name, quota.Limit, quota.Counts, quota.Used, quota.charge(tmpl.size))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// placeText says where hosts come from; nothing of those that are there.

func (s *session) placeText(t tally) verdict {
	switch t.where {
	case onMade:
		tmpl := &s.e.templates[t.template]
		if tmpl.words.why == "" {
			tmpl.words = verdict{WaitMade, "to be made from " + tmpl.Name + " by " + tmpl.Provider, tmpl.Provider + " must make what it lacks"}
			if tmpl.Latency > 0 {
				tmpl.words.why += " in " + tmpl.Latency.String()
			}
		}
		return tmpl.words
	case onComing:
		return verdict{WaitComing, "expected by " + t.by.Stamp(), "what is expected must join"}
	}
	return verdict{}
}

// couldStart explains a job for which there is room now that is kept for others.

func (s *session) couldStart(c *class) verdict {
	if s.e.policy.reserves() == 0 {
		return behindHosts(s.hostWaiter)
	}
	return verdict{
		WaitBehind, fmt.Sprintf("needs %s; would delay jobs that have reservations", s.needText(c)),
		"those must start, or its time limit be shorter",
	}
}

func (s *session) reserved(c *class, p promise, lacks verdict) verdict {
	names := make([]string, 0, named)
	for _, h := range p.hosts[:min(len(p.hosts), named)] {
		names = append(names, s.e.hosts[h].name)
	}
	text := strings.Join(names, ", ")
	if len(p.hosts) > named {
		text += fmt.Sprintf(" and %d more", len(p.hosts)-named)
	}
	why := fmt.Sprintf("needs %s; starts on %s %s at the latest", s.needText(c), text, s.whenText(p.at))
	if p.at >= forever {
		return verdict{lacks.code, joined("; ", lacks.why, "jobs without a time limit hold "+text), lacks.change}
	}
	return verdict{WaitReserved, why, "the jobs that hold what it needs must end"}
}

// whenText says when a promise is due; without a time where it is due any moment,

func (s *session) whenText(t cluster.Time) string {
	if t <= s.now.Add(overtime) {
		return "any moment, once a job that is past its time limit has ended or what is late has come"
	}
	return "at " + t.Stamp()
}
