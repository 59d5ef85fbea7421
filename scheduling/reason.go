package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// verdict is why jobs wait, and what would have to change.
type verdict struct {
	code        Code
	why, change string
}

func unknownResource(name string) verdict {
	return verdict{
		Never, fmt.Sprintf("needs %s, which is no longer a shared resource", name),
		fmt.Sprintf("configure %s, or submit the job without it", name),
	}
}

func overCeiling(name string, units, ceiling int64) verdict {
	return verdict{
		Never, fmt.Sprintf("needs %d %s; the limits allow %d at most", units, name, ceiling),
		fmt.Sprintf("own more %s, or raise its max_borrowed", name),
	}
}

func unknownCountable(name string, n int64) verdict {
	return verdict{
		Never, fmt.Sprintf("needs %d %s on each host; no host and no template has any", n, name),
		fmt.Sprintf("a host or template with %s must be added", name),
	}
}

func badConstraint(err error) verdict {
	return verdict{Never, "has a constraint that cannot be read: " + err.Error(), "submit it with another constraint"}
}

func waitsForJob(id int64) verdict {
	return verdict{WaitJobs, fmt.Sprintf("starts only after job %d has ended", id), fmt.Sprintf("job %d must end", id)}
}

func waitsForStart(at cluster.Time) verdict {
	return verdict{WaitStart, "starts at " + at.Stamp() + " at the earliest", "that time must come"}
}

// noPlaceEver answers why no host that is there, expected or could be made would
// take a job of the class even if it were empty; no code means that one would.
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
// what earlier jobs take.
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

// belowThreshold explains a job that asks for nothing yet.
func (s *session) belowThreshold(c *class, lacks verdict) verdict {
	var parts []string
	for _, t := range s.e.thresholds {
		if slices.Contains(c.thresholds, t.scope()) {
			parts = append(parts, fmt.Sprintf("%d must have waited for %s in %s (%d have)", t.Jobs, t.Wait, cmp.Or(t.Queue, t.Resource), s.waitingFor(t)))
		}
	}
	return verdict{WaitMore, lacks.why + "; more is asked for only when enough jobs have waited", strings.Join(parts, ", or ")}
}

func behindHosts(first int64) verdict {
	return verdict{WaitBehind, fmt.Sprintf("waits behind job %d, which waits for a host", first), fmt.Sprintf("job %d must start", first)}
}

// lacksTokens explains a job whose tokens no one can lend.
func (s *session) lacksTokens(c *class, choice int) verdict {
	shares := s.shares[choice]
	if !slices.ContainsFunc(shares, func(sh share) bool { return sh.lacking > 0 }) {
		return behindTokens(shares)
	}
	var parts []string
	change := "running jobs must give tokens back"
	for i := range shares {
		if sh := &shares[i]; sh.lacking > 0 {
			parts = append(parts, fmt.Sprintf("%s, %d coming, %d can be borrowed%s%s", sh.whatIsFree(), sh.coming, sh.fromHeadroom, sh.inTime(), s.whyNoMore(c, sh.pool)))
			if sh.pool.resource.Elastic != nil {
				change = "running jobs must give tokens back, or a lender must have more"
			}
		}
	}
	v := verdict{WaitTokens, strings.Join(parts, "; "), change}
	if len(c.choices) > 1 {
		v.why += fmt.Sprintf("; so are the other %d alternatives", len(c.choices)-1)
	}
	if c.pass.quiet {
		return s.belowThreshold(c, v)
	}
	return v
}

// behindTokens explains a job that could have its tokens if none waited before it.
func behindTokens(shares []share) verdict {
	i := slices.IndexFunc(shares, func(sh share) bool { return sh.pool.waiter != 0 })
	p := shares[i].pool
	return verdict{
		WaitBehind, fmt.Sprintf("needs %d %s; waits behind job %d, which waits for %s too", shares[i].need, p.resource.Name, p.waiter, p.resource.Name),
		fmt.Sprintf("job %d must start", p.waiter),
	}
}

// inTime says from whom and how soon what can be borrowed would come.
func (sh *share) inTime() string {
	text := ""
	for i, n := range sh.borrowed {
		if n > 0 {
			text += " from " + sh.pool.sources[i].text()
		}
	}
	return text
}

func (src *source) text() string {
	if src.offer.Latency == 0 {
		return src.offer.Provider
	}
	return fmt.Sprintf("%s in %s", src.offer.Provider, src.offer.Latency)
}

// whatIsFree says what a job needs and what there is of it.
func (sh *share) whatIsFree() string {
	text := fmt.Sprintf("needs %d %s; %d free", sh.need, sh.pool.resource.Name, max(sh.free, 0))
	switch {
	case sh.free < 0:
		text += fmt.Sprintf(" and %d too few for what is in use and kept back", -sh.free)
	case sh.reserved && sh.free < sh.need:
		text += ", the rest reserved for earlier jobs"
	}
	return text
}

// whyNoMore says what keeps jobs of the class from borrowing more of the pool.
func (s *session) whyNoMore(c *class, p *pool) string {
	if c.pass.quiet {
		return ""
	}
	e := p.resource.Elastic
	switch {
	case e == nil:
		return " (the resource is not elastic)"
	case p.limited():
		return fmt.Sprintf(" (max borrowed is %d)", e.MaxBorrowed)
	}
	return fmt.Sprintf(" (%s)", strings.Join(p.noMore, "; "))
}

// tokenOutcome is how the tokens of a job are had, in words and as a code; no
// code means that they are free.
type tokenOutcome struct {
	numbers []int64
	code    Code
	why     string
	change  string
}

// noteTokens records how the job that was just admitted has its tokens. Most
// jobs have them like the one before, which costs no words.
func (s *session) noteTokens(c *class, choice int) {
	n := append(s.numbers[:0], int64(choice))
	shares := s.shares[choice]
	for i := range shares {
		sh := &shares[i]
		n = append(n, sh.free, sh.coming, int64(boolCompare(sh.reserved, true)))
		n = append(n, sh.borrowed...)
	}
	s.numbers = n
	if last := len(c.pass.tokens) - 1; last >= 0 && slices.Equal(s.outcomes[c.pass.tokens[last].outcome].numbers, n) {
		c.pass.tokens[last].count++
		return
	}
	o := tokenOutcome{numbers: slices.Clone(n)}
	o.describe(shares)
	s.outcomes = append(s.outcomes, o)
	c.pass.tokens = append(c.pass.tokens, tokenSpan{count: 1, outcome: int32(len(s.outcomes) - 1)})
}

func (o *tokenOutcome) describe(shares []share) {
	var parts, changes []string
	for i := range shares {
		sh := &shares[i]
		text := sh.whatIsFree()
		if sh.coming > 0 {
			text += fmt.Sprintf(", %d requested and coming", sh.coming)
			changes = append(changes, fmt.Sprintf("%d %s must arrive", sh.coming, sh.pool.resource.Name))
			if o.code == "" {
				o.code = WaitComing
			}
		}
		for j, n := range sh.borrowed {
			if n > 0 {
				text += fmt.Sprintf(", %d to be borrowed from %s", n, sh.pool.sources[j].text())
				changes = append(changes, fmt.Sprintf("%s must grant %d %s", sh.pool.sources[j].offer.Provider, n, sh.pool.resource.Name))
				o.code = WaitBorrow
			}
		}
		parts = append(parts, text)
	}
	o.why, o.change = strings.Join(parts, "; "), strings.Join(changes, ", ")
}

// served explains jobs that have their tokens as o says and their hosts as the
// places say.
func (s *session) served(c *class, o tokenOutcome, places []tally) verdict {
	v := verdict{o.code, o.why, o.change}
	hosts, change := "", ""
	for _, t := range places {
		p := s.placeText(t)
		if v.code == "" || p.code == WaitMade {
			v.code = p.code
		}
		hosts, change = joined(" and ", hosts, p.why), joined(", ", change, p.change)
	}
	switch {
	case v.code == "":
		return s.couldStart(c)
	case hosts == "":
		return v
	case c.nodes > 1:
		hosts = fmt.Sprintf("%d hosts %s", c.nodes, hosts)
	default:
		hosts = "host " + hosts
	}
	v.why = joined("; ", v.why, "needs "+s.needText(c)+"; "+hosts)
	v.change = joined(", ", v.change, change)
	return v
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

// joined joins a and b, leaving out what is empty.
func joined(sign, a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + sign + b
}

// reserved explains a job that has a reservation.
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
// so that the words stay the same from session to session.
func (s *session) whenText(t cluster.Time) string {
	if t <= s.now.Add(overtime) {
		return "any moment, once a job that is past its time limit has ended or what is late has come"
	}
	return "at " + t.Stamp()
}

func waits(jobs []int64) string {
	if len(jobs) == 1 {
		return "waits"
	}
	return "wait"
}

// jobList names the first jobs of a list in words.
func jobList(jobs []int64) string {
	const most = 5
	names := make([]string, 0, most)
	for _, id := range jobs[:min(len(jobs), most)] {
		names = append(names, fmt.Sprintf("%d", id))
	}
	switch {
	case len(jobs) == 1:
		return "job " + names[0]
	case len(jobs) > most:
		return fmt.Sprintf("jobs %s and %d more", strings.Join(names, ", "), len(jobs)-most)
	}
	return "jobs " + strings.Join(names, ", ")
}
