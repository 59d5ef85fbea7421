package hostfactory

import (
	"context"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// mostAtOnce is how many requests one call asks for.
const mostAtOnce = 100

// look asks the plug-in for what is due: the requests of the caller, and with them all others. What it
// could not tell together with others is asked for alone; of that, only what the caller wants is asked for
// in any case, the rest until the time is over.
func (t *turn) look(ctx context.Context, wanted []string, until cluster.Time) {
	var first, others [][]string // what is asked for with one call each
	var together []string
	for _, id := range append(slices.Clone(wanted), t.ids()...) {
		r := t.Requests[id]
		if r == nil {
			continue
		}
		for _, theirs := range t.due(r) {
			switch {
			case !t.alone[theirs]:
				together = once(together, theirs)
			case slices.Contains(wanted, id):
				first = append(first, []string{theirs})
			default:
				others = append(others, []string{theirs})
			}
		}
	}
	batches := slices.Collect(slices.Chunk(together, mostAtOnce))
	if len(batches) > 0 {
		first = append(first, batches[0])
		others = append(batches[1:], others...)
	}
	for i, ids := range append(first, others...) {
		if ctx.Err() == nil && (i < len(first) || t.now() < until) {
			t.ask(ctx, ids)
		}
	}
	t.each(t.settle)
	t.each(t.endReturns)
}

func once(ids []string, id string) []string {
	if slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

// due are the ids of a request's asking and giving back that want a look now.
func (t *turn) due(r *request) (ids []string) {
	for _, a := range r.Theirs {
		if t.watches(r, a) && t.rested(a.ID, t.pace(r, a)) {
			ids = append(ids, a.ID)
		}
	}
	for _, m := range r.Machines {
		if b := m.Back; m.State == leaving && b != nil && b.ID != "" && !b.Ended && t.rested(b.ID, t.poll()) {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// rested tells whether an id was not asked for lately. A clock that was set back must not stop us.
func (t *turn) rested(id string, interval cluster.Duration) bool {
	since := t.now().Sub(t.Polled[id])
	return since < 0 || since >= interval
}

// pace is how often an id is asked for: rarely once the plug-in has long said that it is over and it is only
// watched for what comes late. An error of the plug-in may have looked like its end.
func (t *turn) pace(r *request, a *asked) cluster.Duration {
	busy := slices.ContainsFunc(r.Machines, func(m *machine) bool { return m.From == a.ID && (m.State == leaving || m.State == coming) })
	if busy || r.Decided == 0 && !r.GivenUp || a.Ended == 0 || t.now().Sub(a.Ended) <= t.settleTime() {
		return t.poll()
	}
	return max(t.poll(), t.settleTime())
}

// watches tells whether an answer to one of their ids may still matter.
func (t *turn) watches(r *request, a *asked) bool {
	of := func(states ...machineState) bool {
		return slices.ContainsFunc(r.Machines, func(m *machine) bool { return m.From == a.ID && slices.Contains(states, m.State) })
	}
	switch {
	case of(leaving), r.Decided == 0 && of(coming):
		return true
	case t.overdue(r):
		return false
	}
	return a.Ended == 0 || r.count((*machine).granted) < r.Units
}

func (a *Adapter) settleTime() cluster.Duration { return cluster.DurationOf(a.spec.Settle) }

// overdue tells whether a request that nobody waits for, or of which nothing can be known, has been watched
// for long enough.
func (t *turn) overdue(r *request) bool {
	if r.Decided == 0 && !r.GivenUp && !r.unknown() {
		return false
	}
	return t.now().Sub(max(r.Asked, r.Decided)) > cluster.DurationOf(t.spec.Watch)
}

// ask asks for some of their ids with one call. Those that got no answer are asked for alone from then on.
func (t *turn) ask(ctx context.Context, ids []string) {
	answer := t.call(ctx, getStatus, askFor(ids))
	if answer.run.Err != nil && ctx.Err() != nil {
		return // the caller went away: that says nothing of the plug-in
	}
	entries := slices.DeleteFunc(readStatus(answer.docs, ids), func(e requestEntry) bool { return !credible(e, answer) })
	for _, id := range ids {
		t.Polled[id] = t.now()
		if slices.ContainsFunc(entries, func(e requestEntry) bool { return e.id == id }) {
			delete(t.alone, id)
			continue
		}
		t.alone[id] = true
		t.silent(id)
	}
	for _, e := range entries {
		t.each(func(_ string, r *request) { t.takeUpReturns(r, e) })
	}
	for _, e := range entries {
		t.each(func(_ string, r *request) { t.takeUp(r, e) })
	}
	t.adopt(entries, ids)
	t.codes(answer, entries)
}

// credible tells whether an entry is to be taken at its word. That a call failed must not end a request: an
// end without machines counts only if the plug-in itself is well, or names the reason by a code.
func credible(e requestEntry, answer reply) bool {
	end := e.terminal() && len(e.machines) == 0
	return !end || answer.run.Exit == 0 || codeIn(e.message+" "+messages(answer.docs)) != ""
}

// takeUp takes what an answer says of a request that was asked for. Where several of ours have one id of
// theirs, the first that wants a machine gets it.
func (t *turn) takeUp(r *request, e requestEntry) {
	for _, a := range r.Theirs {
		if a.ID != e.id {
			continue
		}
		a.Silent = 0
		t.takeUpEnd(a, e)
		if e.nameless > 0 {
			t.log.Warn("machines without id and name cannot be given back", "request", e.id, "machines", e.nameless)
		}
		for _, entry := range e.machines {
			t.takeMachine(r, a, entry)
		}
		for _, m := range r.Machines {
			if m.From == a.ID {
				m.verify(e)
			}
		}
		if e.message != "" && e.terminal() {
			r.Message = clip(e.message)
		}
	}
}

func (t *turn) takeUpEnd(a *asked, e requestEntry) {
	switch {
	case e.terminal() && a.Ended == 0:
		a.Ended, a.Says, a.WithError = t.now(), 1, e.status == completeWithError
	case e.terminal():
		a.Says++
		a.WithError = e.status == completeWithError
	case e.status == running:
		a.Ended, a.Says = 0, 0
	}
}

// takeMachine takes up one entry of an answer.
func (t *turn) takeMachine(r *request, a *asked, entry machineEntry) {
	i := slices.IndexFunc(r.Machines, func(m *machine) bool { return m.is(entry) && (m.From == a.ID || m.exists()) })
	var m *machine
	switch {
	case i >= 0:
		m = r.Machines[i]
	case t.live(entry, r):
		t.log.Warn("an entry of a machine that another request has is not taken", "request", a.ID, "machine", entry.id, "name", entry.name)
		return
	case t.others(r, a.ID, entry):
		return
	default:
		m = &machine{From: a.ID, State: coming}
		r.Machines = append(r.Machines, m)
	}
	m.update(entry, t.now())
	t.advance(r, m)
}

// others tells whether a machine belongs to another of our requests with the same id of theirs: one that
// had it, or one that comes first and has not got all yet.
func (t *turn) others(r *request, theirs string, entry machineEntry) bool {
	for _, id := range t.ids() {
		o := t.Requests[id]
		if o == r || !slices.ContainsFunc(o.Theirs, func(a *asked) bool { return a.ID == theirs }) {
			continue
		}
		if slices.ContainsFunc(o.Machines, func(m *machine) bool { return m.is(entry) }) {
			return true
		}
		full := r.GivenUp || r.count((*machine).exists) >= r.Units
		if full && !o.GivenUp && o.Decided == 0 && o.count((*machine).exists) < o.Units {
			return true
		}
	}
	return false
}

func (m *machine) isFailed() bool { return m.State == failed }

// update takes an entry's facts. A name may change until the machine is there, and even after.
func (m *machine) update(entry machineEntry, now cluster.Time) {
	const mostNames = 4
	if m.ID == "" {
		m.ID = entry.id
	}
	if entry.name != "" && entry.name != m.Name {
		if m.Name != "" {
			m.Former = append(m.Former, m.Name)
			m.Former = m.Former[max(0, len(m.Former)-mostNames):]
		}
		m.Name = entry.name
	}
	if entry.launched != 0 {
		m.Launched = entry.launched
	}
	if entry.message != "" {
		m.Message = clip(entry.message)
	}
	m.Result, m.Seen = entry.result, now
}

// advance moves a machine on after an entry: its result alone decides. One without a name is not ready.
func (t *turn) advance(r *request, m *machine) {
	switch {
	case m.State == held && m.Result == fail && m.Recall == nil:
		m.Recall = &recall{Seen: t.now(), Until: t.now(), Confirmed: true}
	case m.State != coming && m.State != failed:
	case m.Result == fail:
		m.State = failed
		if m.Message != "" {
			r.Message = m.Message
		}
	case m.Result != succeed || m.Name == "":
		m.State = coming // settle decides whether it is still wanted
	case r.GivenUp || r.Decided != 0 || r.count((*machine).granted) >= r.Units:
		m.State = leaving
	default:
		m.State, m.Instance = held, m.ID
		if m.ID == "" {
			m.Instance = m.Name
		}
		delete(t.Holds, r.Template)
		if r.count((*machine).granted) == r.Units {
			r.Decided = t.now()
		}
	}
}

// silent notes that a poll told nothing of an id.
func (t *turn) silent(id string) {
	t.each(func(_ string, r *request) {
		for _, a := range r.Theirs {
			if a.ID == id {
				a.Silent++
			}
		}
		for _, m := range r.Machines {
			if m.From == id && m.State == leaving && m.Back != nil && m.Back.Ended {
				m.Back.Unshown++
			}
		}
	})
}

// settle decides what a request gets, once the plug-in has said so for good.
func (t *turn) settle(_ string, r *request) {
	if r.Phase != accepted {
		return
	}
	if r.Decided == 0 && !r.GivenUp && (t.final(r) || t.late(r)) {
		r.Decided = t.now()
		if r.count((*machine).granted) == 0 {
			r.Reason = providers.ReasonCapacity
			if r.Message == "" {
				r.Message = "the plug-in has made no machine in time"
			}
		}
	}
	for _, m := range r.Machines {
		if m.State == coming && (r.GivenUp || r.Decided != 0) {
			m.State = leaving
		}
	}
}

// late tells whether a host could no longer join.
func (t *turn) late(r *request) bool { return r.Deadline != 0 && t.now() > r.Deadline }

// final tells whether nothing more will come.
func (t *turn) final(r *request) bool {
	if !r.ended() {
		return false
	}
	last, certain := cluster.Time(0), true
	for _, a := range r.Theirs {
		last = max(last, a.Ended)
		certain = certain && a.WithError && (a.Says >= 2 || r.Held)
	}
	if t.now().Sub(last) >= t.settleTime() {
		return true
	}
	if r.count(func(m *machine) bool { return m.State == coming }) > 0 {
		return false
	}
	return certain || r.count((*machine).isFailed) >= r.Units
}

// adopt gives a request of unknown outcome what the plug-in tells unasked: an id of theirs that nobody
// knows, with machines that began after the intent. It must be clear of which template.
func (t *turn) adopt(entries []requestEntry, ids []string) {
	var doubtful []*request
	t.each(func(_ string, r *request) {
		if r.unknown() {
			doubtful = append(doubtful, r)
		}
	})
	for _, e := range entries {
		if len(doubtful) == 0 || slices.Contains(ids, e.id) || t.knows(e.id) || len(e.machines) == 0 {
			continue
		}
		r := doubtful[0]
		for _, d := range doubtful {
			if d.Template != r.Template {
				return
			}
		}
		if slices.ContainsFunc(e.machines, func(m machineEntry) bool { return m.launched < r.Asked.Add(-cluster.Minute) || t.live(m, nil) }) {
			continue
		}
		t.log.Warn("a request of unknown outcome is found again", "request", e.id, "template", r.Template)
		r.Phase, r.Theirs = accepted, []*asked{{ID: e.id}}
		t.takeUp(r, e)
		doubtful = doubtful[1:]
	}
}

// knows tells whether an id of theirs is or was one of ours.
func (t *turn) knows(id string) bool {
	for _, c := range t.Closed {
		if slices.Contains(c.Theirs, id) {
			return true
		}
	}
	for _, r := range t.Requests {
		if slices.ContainsFunc(r.Theirs, func(a *asked) bool { return a.ID == id }) ||
			slices.ContainsFunc(r.Machines, func(m *machine) bool { return m.Back != nil && m.Back.ID == id }) {
			return true
		}
	}
	return false
}

// codes puts templates on hold for error codes. A code of the whole call is of those requests that have
// come to nothing.
func (t *turn) codes(answer reply, entries []requestEntry) {
	for _, e := range entries {
		whole := ""
		if e.terminal() || len(e.machines) > 0 || len(entries) == 1 {
			whole = codeIn(messages(answer.docs))
		}
		t.each(func(_ string, r *request) {
			if r.Decided == 0 && slices.ContainsFunc(r.Theirs, func(a *asked) bool { return a.ID == e.id }) {
				if code := codeOf(e, whole); code != "" {
					t.hold(r, code)
				}
			}
		})
	}
}

// codeOf answers the code that an entry of an answer has, or that of the whole answer if it may be meant.
func codeOf(e requestEntry, whole string) string {
	if code := codeIn(e.message); code != "" {
		return code
	}
	nothing := true
	for _, m := range e.machines {
		if code := codeIn(m.message); code != "" && m.result == fail {
			return code
		}
		nothing = nothing && m.result == fail
	}
	if nothing {
		return whole
	}
	return ""
}
