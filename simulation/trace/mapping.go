package trace

import (
	"maps"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// Mapping says what jobs ask for that their records do not tell: tokens, memory,
// features. The first rule that matches a job is used, and the defaults where
// neither it nor the record says anything.
type Mapping struct {
	rules    []mappingRule
	defaults wishes
	// resources are tokens by the names that they have in records; without a
	// name of their own they are left out.
	resources map[string]string
}

// mappingRule says of which jobs, and what.
type mappingRule struct {
	user, group, queue, application, command, name globs
	least, most                                    int64 // processors
	set                                            wishes
}

// wishes are what a rule, or the defaults, say of jobs; what is nil or 0 is not said.
type wishes struct {
	tokens               map[string]int64
	alternatives         []map[string]int64
	memory, memoryEach   int64 // of the job, and of each of its processors
	constraint           string
	queue, application   string
	priority             *int64
	countables           map[string]int64
	exclusive            *bool
	timeLimit, tokensFor cluster.Duration
	perHost              int64
}

// globs are patterns of which one has to match; none match everything.
type globs []string

func (g globs) match(text string) bool {
	return len(g) == 0 || slices.ContainsFunc(g, func(pattern string) bool { return glob(pattern, text) })
}

// glob tells whether a text is like a pattern, in which * stands for any signs
// and ? for any one.
func glob(pattern, text string) bool {
	star, from := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0: // let the last star stand for one sign more
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

func (m *mappingRule) match(r *record) bool {
	procs := r.processors()
	return procs >= m.least && (m.most == 0 || procs <= m.most) &&
		m.user.match(r.ask.User) && m.group.match(r.ask.Group) && m.queue.match(r.ask.Queue) &&
		m.application.match(r.ask.Application) && m.name.match(r.ask.Name) && m.command.match(r.command)
}

// processors are those of the job, also where only its shape says them.
func (r *record) processors() int64 {
	if r.procs > 0 {
		return r.procs
	}
	return r.ask.Processors()
}

// apply adds what the mapping says of a job.
func (m *Mapping) apply(r *record, f *finished) {
	m.rename(r)
	i := slices.IndexFunc(m.rules, func(rule mappingRule) bool { return rule.match(r) })
	f.unmapped = i < 0
	if i >= 0 {
		m.rules[i].set.over(r, f)
	}
	m.defaults.under(r, f)
}

// rename gives tokens the names that they have in the cluster.
func (m *Mapping) rename(r *record) {
	r.ask.Tokens = m.renamed(r.ask.Tokens, r.resources)
	for i, a := range r.ask.Alternatives {
		r.ask.Alternatives[i] = m.renamed(a, nil)
	}
	r.ask.Alternatives = slices.DeleteFunc(r.ask.Alternatives, func(a map[string]int64) bool { return len(a) == 0 })
}

func (m *Mapping) renamed(tokens, resources map[string]int64) (out map[string]int64) {
	for name, n := range tokens {
		to, known := m.resources[name]
		if !known {
			to = name
		}
		if to != "" {
			setCount(&out, to, n)
		}
	}
	for name, n := range resources {
		if to := m.resources[name]; to != "" {
			setCount(&out, to, n)
		}
	}
	return out
}

// over sets what is said over what the record says.
func (w *wishes) over(r *record, f *finished) {
	s := &r.ask
	if len(w.tokens) > 0 {
		s.Tokens = maps.Clone(s.Tokens)
		if s.Tokens == nil {
			s.Tokens = map[string]int64{}
		}
		maps.Copy(s.Tokens, w.tokens)
		maps.DeleteFunc(s.Tokens, func(_ string, n int64) bool { return n == 0 })
	}
	if len(w.alternatives) > 0 {
		s.Alternatives = w.alternatives
	}
	if len(w.countables) > 0 {
		s.Countables = w.countables
	}
	for _, text := range [...]struct {
		to *string
		is string
	}{{&s.Constraint, w.constraint}, {&s.Queue, w.queue}, {&s.Application, w.application}} {
		if text.is != "" {
			*text.to = text.is
		}
	}
	if w.priority != nil {
		s.Priority = *w.priority
	}
	if w.exclusive != nil {
		s.Exclusive = *w.exclusive
	}
	f.limit, f.tokensFor = w.timeLimit, w.tokensFor
	w.spread(r)
	w.remember(r)
}

// spread divides the job among hosts of which each runs so many of its processors.
func (w *wishes) spread(r *record) {
	if w.perHost == 0 {
		return
	}
	if r.procs == 0 { // the shape says all
		r.procs, r.memoryMB = r.ask.Processors(), r.ask.MemoryMB*max(r.ask.Nodes, 1)
	}
	r.hosts = ceil(r.procs, w.perHost)
}

// remember sets the job's memory.
func (w *wishes) remember(r *record) {
	memory := w.memory
	if w.memoryEach > 0 {
		memory = w.memoryEach * r.processors()
	}
	switch {
	case memory == 0:
	case r.procs > 0:
		r.memoryMB = min(memory, mostMB)
	default:
		r.ask.MemoryMB = ceil(min(memory, mostMB), max(r.ask.Nodes, 1))
	}
}

// under sets what is said where nothing is known yet.
func (w *wishes) under(r *record, f *finished) {
	s, rest := &r.ask, *w
	if len(s.Tokens)+len(s.Alternatives) > 0 {
		rest.tokens, rest.alternatives = nil, nil
	}
	if len(s.Countables) > 0 {
		rest.countables = nil
	}
	if s.Constraint != "" {
		rest.constraint = ""
	}
	if s.Queue != "" {
		rest.queue = ""
	}
	if s.Application != "" {
		rest.application = ""
	}
	if s.Priority != 0 {
		rest.priority = nil
	}
	if s.Exclusive {
		rest.exclusive = nil
	}
	if r.memoryMB > 0 || s.MemoryMB > 0 {
		rest.memory, rest.memoryEach = 0, 0
	}
	if r.hosts > 1 || s.Nodes > 1 {
		rest.perHost = 0
	}
	limit, tokensFor := f.limit, f.tokensFor
	rest.over(r, f)
	f.unlimited, f.limit = f.limit, limit
	if tokensFor > 0 {
		f.tokensFor = tokensFor
	}
}
