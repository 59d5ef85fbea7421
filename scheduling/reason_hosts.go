package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// noPlaceEver answers why no host that is there, expected or could be made would
// take a job of the class even if it were empty; no code means that one would.
func (s *session) noPlaceEver(c *class) verdict {
	if c.hadPlace == s.e.changes+1 {
		return verdict{}
	}
	v := s.findNoPlace(c)
	if v.code == "" {
		c.hadPlace = s.e.changes + 1
	}
	return v
}

func (s *session) findNoPlace(c *class) verdict {
	if s.couldEver(c) || len(c.templates.list) > 0 {
		return verdict{}
	}
	if s.hostsThatTake(c)+s.expectedThatTake(c) >= c.nodes {
		return verdict{}
	}
	closed, nothing := s.closedFor(c), len(s.e.sizes)+len(s.e.expected)+len(s.e.templates) == 0
	switch {
	case !s.words && (closed != nil || nothing):
		return codeOnly(WaitHosts)
	case !s.words:
		return codeOnly(Never)
	}
	what := s.needText(c)
	switch {
	case closed != nil:
		return verdict{code: WaitHosts, why: fmt.Sprintf("needs %s; %s", what, closed.closedText()), change: "host " + closed.name + " must be opened, or another be added"}
	case nothing:
		return verdict{code: WaitHosts, why: fmt.Sprintf("needs %s; no host is up", what), change: "a host must join"}
	}
	why, change := s.tooLarge(c)
	if broken, providers := s.brokenPromises(c); broken != "" {
		why, change = broken, providers+" must promise what it delivers, or be tried again, or "+change
	}
	return verdict{code: Never, why: fmt.Sprintf("needs %s; %s", what, why), change: change}
}

// brokenPromises tells of the templates that would take a job of the class if
// their hosts had what they say, and whose they are.
func (s *session) brokenPromises(c *class) (why, providers string) {
	constraint, err := cluster.ParseConstraint(c.constraint)
	for i := range s.e.templates {
		t := &s.e.templates[i]
		if err != nil || c.templates.has(int32(i)) || !covers(t.said, c.need) || !constraint.Holds(t.Has) {
			continue
		}
		why = joined("; ", why, s.brokenPromise(t, c.need))
		if !strings.Contains(providers, t.Provider) {
			providers = joined(" or ", providers, t.Provider)
		}
	}
	return why, providers
}

// brokenPromise says in numbers what the hosts of a template lack of a need.
func (s *session) brokenPromise(t *template, need []int64) string {
	said, had := slices.Clone(t.said), slices.Clone(t.size)
	for d, n := range need {
		if n <= had[d] {
			said[d], had[d] = -1, -1
		}
	}
	what := s.e.dims.text(said)
	if what == "" {
		return fmt.Sprintf("%s promises features that its last %d hosts had not", t.Name, t.Misses)
	}
	return fmt.Sprintf("%s promises %s, but its last %d hosts had %s", t.Name, what, t.Misses, atMost(s.e.dims.text(had)))
}

func atMost(what string) string {
	if what == "" {
		return "none of it"
	}
	return "at most " + what
}

// closedFor answers the first closed host that would take the class; nil where
// none would.
func (s *session) closedFor(c *class) *host {
	for _, i := range s.e.order {
		h := &s.e.hosts[i]
		if h.closed != "" && c.takes(h.kind, h.size) {
			return h
		}
	}
	return nil
}

func (h *host) closedText() string {
	return fmt.Sprintf("host %s has it, but takes no jobs: %s", h.name, h.closed)
}

// tooLarge answers why nothing that is configured takes a job of the class, and
// what would.
func (s *session) tooLarge(c *class) (why, change string) {
	most := make([]int64, s.e.dims.count())
	fit := 0
	s.e.eachSize(func(size []int64) {
		grow(most, size)
		if covers(size, c.need) {
			fit++
		}
	})
	switch {
	case c.constraint != "" && fit > 0:
		return fmt.Sprintf("no host and no template of that size satisfies %q", c.constraint), "a host or template that satisfies it must be added"
	case fit > 0 && c.nodes > 1:
		return fmt.Sprintf("there are not %d such hosts, and no template makes them", c.nodes), "more such hosts, or a template of them, must be added"
	}
	for d, n := range c.need { // only what is too large is told, if one thing is
		if n <= most[d] {
			most[d] = -1
		}
	}
	change = "a larger host or a template of one must be added"
	if text := s.e.dims.text(most); text != "" {
		return "no host and no template has more than " + text, change
	}
	return "no host and no template has all that together", change
}

// eachSize calls see with the size of every host that is there, expected or that
// could be made, sizes alike once.
func (e *Engine) eachSize(see func(size []int64)) {
	for i := range e.sizes {
		see(e.sizes[i].size)
	}
	for i := range e.expected {
		see(e.expected[i].size)
	}
	for i := range e.templates {
		see(e.templates[i].size)
	}
}

// needText says what a job of the class needs of hosts.
func (s *session) needText(c *class) string {
	if c.words == "" {
		c.words = s.e.needText(c)
	}
	return c.words
}

func (e *Engine) needText(c *class) string {
	text := e.dims.appendText(e.words[:0], c.need)
	if c.nodes > 1 {
		text = fmt.Appendf(text, " on each of %d hosts", c.nodes)
	} else {
		text = append(text, " on one host"...)
	}
	if c.spec.Exclusive {
		text = append(text, " for itself"...)
	}
	if c.constraint != "" {
		text = append(append(text, " with "...), c.constraint...)
	}
	e.words = text
	return string(text)
}

// leftText says what of the needs of a class is left on the hosts that it may
// use, after what earlier jobs take.
func (s *session) leftText(c *class) string {
	most := make([]int64, s.e.dims.count())
	up, fit := 0, int64(0)
	for _, k := range c.kinds {
		shelf := &s.supply.real[k]
		up += len(shelf.hosts)
		fit += shelf.room(c.need, c.nodes)
		grow(most, shelf.bins.most[shelf.bins.dims:2*shelf.bins.dims])
	}
	switch last := len(most) - 1; {
	case up == 0:
		if closed := s.closedFor(c); closed != nil {
			return closed.closedText()
		}
		return "no host that could take it is up"
	case fit > 0:
		return fmt.Sprintf("only %d of %d hosts have that left", fit, up)
	case most[last] < c.need[last] && c.spec.Exclusive:
		return hostsHave(up) + " jobs already"
	case most[last] < c.need[last]:
		return hostsHave(up) + " a job that shares with no other"
	}
	for d, n := range c.need { // only what lacks is told, if one thing does
		if n <= most[d] {
			most[d] = -1
		}
	}
	if text := s.e.dims.text(most); text != "" {
		return fmt.Sprintf("%s at most %s left", hostsHave(up), text)
	}
	return hostsHave(up) + " not all of that left together"
}

// hostsHave begins a sentence about the hosts that could take a job.
func hostsHave(n int) string {
	if n == 1 {
		return "the 1 host that could take it has"
	}
	return fmt.Sprintf("the %d hosts that could take it have", n)
}

// lacksHosts explains a job that finds no host and can get none.
func (s *session) lacksHosts(c *class) verdict {
	if s.e.policy.reserves() > 0 && c.nodes == 1 && s.fitsNow(c) {
		return s.couldStart(c) // it is others' reservations that keep it
	}
	if !s.words {
		if c.pass.quiet && len(c.templates.list) > 0 {
			return codeOnly(WaitMore)
		}
		return codeOnly(WaitHosts)
	}
	v := verdict{code: WaitHosts, why: fmt.Sprintf("needs %s; %s", s.needText(c), s.leftText(c)), change: "running jobs must end"}
	if broken, _ := s.brokenPromises(c); broken != "" {
		v.why += "; " + broken
	}
	if len(c.templates.list) == 0 {
		v.why += s.tokensNotKept(c)
		return v
	}
	if c.pass.quiet {
		return s.belowThreshold(c, v)
	}
	enough := "no more"
	if slices.ContainsFunc(c.templates.list, func(t int32) bool { return s.supply.available(t) > 0 }) {
		enough = "not enough"
	}
	v.why += fmt.Sprintf(", and %s can be made of %s (%s)", enough, s.templateNames(c.templates.list), s.headroomText(c))
	v.why += s.tokensNotKept(c)
	v.change = s.whatLimits(c)
	if s.couldEver(c) {
		v.change = "running jobs must end, or " + v.change
	} else if closed := s.closedFor(c); closed != nil {
		v.change = "host " + closed.name + " must be opened, or " + v.change
	}
	return v
}

// tokensNotKept says what else a job needs that finds no host.
func (s *session) tokensNotKept(c *class) string {
	text := ""
	for _, n := range c.choices[c.firstChoice()] {
		if p := s.pools[n.pool]; p.resource.Elastic != nil {
			text = joined(" and ", text, fmt.Sprintf("%d %s", n.units, p.resource.Name))
		}
	}
	if text == "" {
		return ""
	}
	return "; without a host, the " + text + " that it needs too are not kept for it"
}

// whatLimits says what would let more hosts be made for a class.
func (s *session) whatLimits(c *class) string {
	for _, t := range c.templates.list {
		for _, q := range s.e.templates[t].quotas {
			if charge := s.e.quotas[q].charge(s.e.templates[t].said); charge > 0 && s.supply.quota[q]/charge < s.supply.headroom[t] {
				if s.e.quotas[q].Why != "" {
					return "the cause of quota " + s.e.quotas[q].Name + " be removed"
				}
				return "quota " + s.e.quotas[q].Name + " be raised"
			}
		}
	}
	again := cluster.Time(0)
	for _, t := range c.templates.list {
		if tmpl := &s.e.templates[t]; tmpl.Headroom > 0 && tmpl.BackoffUntil > s.now && (again == 0 || tmpl.BackoffUntil < again) {
			again = tmpl.BackoffUntil
		}
	}
	if again > 0 {
		return "a provider must make more, which is asked again at " + again.Stamp()
	}
	return "a provider must have more headroom"
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
		parts = append(parts, s.limitText(t))
	}
	return strings.Join(parts, "; ")
}

func (s *session) limitText(t int32) string {
	tmpl := &s.e.templates[t]
	if s.now < tmpl.BackoffUntil {
		return fmt.Sprintf("%s refused and is left alone until %s", tmpl.Name, tmpl.BackoffUntil.Stamp())
	}
	text := fmt.Sprintf("%s has headroom for %d", tmpl.Name, tmpl.Headroom)
	if tmpl.Headroom == 0 {
		text = tmpl.Name + " has no headroom"
	}
	if asked := tmpl.Headroom - s.supply.headroom[t]; asked > 0 {
		text += fmt.Sprintf(", %d asked for", asked)
	}
	for _, q := range tmpl.quotas {
		quota := &s.e.quotas[q]
		left := s.supply.quota[q]
		if quota.Why != "" {
			text += fmt.Sprintf("; quota %s allows %d %s, since %s", quota.Name, quota.Limit, quota.Counts, quota.Why)
			continue
		}
		text += fmt.Sprintf("; quota %s allows %d %s: %d used, %d asked for, %d left; a host of %s takes %d",
			quota.Name, quota.Limit, quota.Counts, quota.Used, max(quota.Limit-quota.Used-left, 0), left, tmpl.Name, quota.charge(tmpl.said))
	}
	return text
}

// served explains jobs that have their tokens as o says and their hosts as the
// places say.
func (s *session) served(c *class, o tokenOutcome, places []tally) verdict {
	v := verdict{o.code, o.why, o.change, o.resource}
	if !s.words {
		return s.servedCode(c, v, places)
	}
	hosts, change := "", ""
	if len(places) == 0 {
		places = []tally{{where: onReal, n: c.nodes}}
	}
	for _, t := range places {
		p := s.placeText(t)
		if p.why = cmp.Or(p.why, "free now"); c.nodes > 1 {
			p.why = fmt.Sprint(t.n) + " " + p.why
		}
		if v.code == "" || p.code == WaitMade {
			v.code = p.code
		}
		hosts = joined(", ", hosts, p.why)
		if !strings.Contains(change, p.change) {
			change = joined(", ", change, p.change)
		}
	}
	if v.code == "" {
		return s.couldStart(c)
	}
	kind := "; host "
	if c.nodes > 1 {
		kind = "; hosts: "
	}
	v.why = joined("; ", v.why, "needs "+s.needText(c)+kind+hosts)
	v.change = joined(", ", v.change, change)
	return v
}

// servedCode is served without words.
func (s *session) servedCode(c *class, v verdict, places []tally) verdict {
	for _, t := range places {
		switch {
		case t.where == onMade:
			v.code = WaitMade
		case t.where == onComing && v.code == "":
			v.code = WaitComing
		}
	}
	if v.code == "" {
		return s.couldStart(c)
	}
	return v
}

// placeText says where hosts come from; nothing of those that are there.
func (s *session) placeText(t tally) verdict {
	switch t.where {
	case onMade:
		tmpl := &s.e.templates[t.template]
		if tmpl.words.why == "" {
			tmpl.words = verdict{code: WaitMade, why: "to be made from " + tmpl.Name + " by " + tmpl.Provider, change: tmpl.Provider + " must make what it lacks"}
			if tmpl.Latency > 0 {
				tmpl.words.why += " in " + tmpl.Latency.String()
			}
		}
		return tmpl.words
	case onComing:
		if t.by <= s.now {
			return verdict{code: WaitComing, why: "was expected by " + t.by.Stamp() + " and is overdue", change: "what is expected must join"}
		}
		return verdict{code: WaitComing, why: "expected by " + t.by.Stamp(), change: "what is expected must join"}
	}
	return verdict{}
}

// couldStart explains a job for which there is room now that is kept for others.
func (s *session) couldStart(c *class) verdict {
	switch {
	case s.e.policy.reserves() == 0:
		return s.behindFirst(c)
	case !s.words:
		return codeOnly(WaitBehind)
	}
	return verdict{
		code: WaitBehind, why: fmt.Sprintf("needs %s; would delay jobs that have reservations", s.needText(c)),
		change: "those must start, or its time limit be shorter",
	}
}

// behindFirst explains a job that under fcfs one before it lets not pass.
func (s *session) behindFirst(c *class) verdict {
	for _, n := range c.choices[c.firstChoice()] {
		if p := s.pools[n.pool]; s.hostWaiter == 0 && p.keeper != 0 {
			if !s.words {
				return verdict{code: WaitBehind, resource: p.resource.Name}
			}
			return verdict{
				WaitBehind, fmt.Sprintf("needs %d %s; what is free is kept for job %d, which waits for tokens", n.units, p.resource.Name, p.keeper),
				fmt.Sprintf("job %d must start", p.keeper), p.resource.Name,
			}
		}
	}
	if !s.words {
		return codeOnly(WaitBehind)
	}
	return behindHosts(s.hostWaiter)
}

// reserved explains a job that has a reservation.
func (s *session) reserved(c *class, p promise, lacks verdict) verdict {
	switch {
	case !s.words && p.at >= forever:
		return lacks
	case !s.words:
		return codeOnly(WaitReserved)
	}
	names := make([]string, 0, named)
	for _, h := range p.hosts[:min(len(p.hosts), named)] {
		names = append(names, s.promisedName(h))
	}
	text := strings.Join(names, ", ")
	if len(p.hosts) > named {
		text += fmt.Sprintf(" and %d more", len(p.hosts)-named)
	}
	why := fmt.Sprintf("needs %s%s; starts on %s %s", s.needText(c), s.tokenText(c, p.choice), text, s.whenText(p.at))
	if p.at >= forever {
		return verdict{lacks.code, joined("; ", lacks.why, "runs on "+text+" once jobs without a time limit have ended"), lacks.change, lacks.resource}
	}
	change := "the jobs that hold what it needs must end"
	if _, coming := s.hereAndComing(p.hosts); len(coming) > 0 {
		change = "what is expected must join, and the jobs that hold what else it needs must end"
	}
	return verdict{code: WaitReserved, why: why, change: change}
}

// tokenText says what a choice needs of tokens, and what is free of them.
func (s *session) tokenText(c *class, choice int32) string {
	text := ""
	for _, n := range c.choices[choice] {
		p := s.pools[n.pool]
		text += fmt.Sprintf(" and %d %s (%d free)", n.units, p.resource.Name, max(p.free, 0))
	}
	return text
}

// whenText says when a promise is due; without a time where it is due any moment,
// so that the words stay the same from session to session.
func (s *session) whenText(t cluster.Time) string {
	if t <= s.now.Add(overtime) {
		return "any moment, once a job that is past its time limit has ended or what is late has come"
	}
	return "at " + t.Stamp() + " at the latest"
}
