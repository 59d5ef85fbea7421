package simulation

import (
	"slices"
	"strconv"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

// record is what is kept for the result while the simulation runs.
type record struct {
	result *Result
	ended  int64
	causes
	inState     [8]int64 // hosts, by the columns of HostColumns
	hostsDirty  bool
	loanResults map[string]int          // places in Result.Loans
	hostResults map[string]int          // places in Result.Machines
	lastReturn  map[string]cluster.Time // by resource or template
}

// The places of HostColumns.
const (
	ownedBusy = iota
	ownedIdle
	requested
	expected
	busy
	idle
	draining
	leaving
)

// tally keeps the series of one resource, and for how long borrowed units were used.
type tally struct {
	result *ResourceResult
	dirty  bool
	values [5]int64
	since  cluster.Time
	bought int64
	used   int64
}

func (s *simulator) newRecord(jobs *trace.Trace) {
	s.record = record{
		result: &Result{
			Cluster: s.farm.Name, Label: s.options.Label, Seed: uint64(s.farm.Seed), Began: s.began, Trace: jobs,
			Outcomes: make([]Outcome, len(jobs.Jobs)), Jobs: series.New(JobColumns), Hosts: series.New(HostColumns),
		},
		loanResults: map[string]int{}, hostResults: map[string]int{}, lastReturn: map[string]cluster.Time{}, hostsDirty: true,
	}
	s.causes = newCauses()
	s.result.Resources = make([]ResourceResult, len(s.resources))
	for i, r := range s.resources {
		res := &s.result.Resources[i]
		res.Name, res.Series = r.Name, series.New(ResourceColumns)
		r.tally = &tally{result: res, dirty: true, since: s.began}
	}
}

// use counts units that jobs take, or (less than 0) give back.
func (r *resource) use(units int64) {
	r.account.InUse += units
	r.tally.dirty = true
}

// await counts units for which jobs wait, or (less than 0) wait no more.
func (r *resource) await(units int64) {
	r.waiting += units
	r.tally.dirty = true
}

// note notes all numbers at the end of an instant.
func (s *simulator) note() {
	s.result.Jobs.Note(s.now, s.engine.Waiting(), s.alive)
	for _, r := range s.resources {
		if r.tally.dirty {
			r.tally.note(s.now, [5]int64{r.account.Owned, r.borrowed, r.account.Lent(), r.account.InUse, r.waiting})
		}
	}
	if s.hostsDirty {
		s.hostsDirty = false
		s.result.Hosts.Note(s.now, s.inState[:]...)
	}
}

// note takes a resource's numbers from now on.
func (t *tally) note(now cluster.Time, values [5]int64) {
	t.dirty = false
	t.pass(now)
	t.values = values
	t.result.Series.Note(now, values[:]...)
}

// pass counts how long borrowed units were here, and how long they were used: those that are in use beyond
// what the cluster has of its own.
func (t *tally) pass(now cluster.Time) {
	d := int64(now.Sub(t.since))
	owned, borrowed, lent, inUse := t.values[0], t.values[1], t.values[2], t.values[3]
	t.bought += borrowed * d
	t.used += min(max(inUse-max(owned-lent, 0), 0), borrowed) * d
	t.since = now
}

// recordLoan keeps what one write to a loan's row changed.
func (s *simulator) recordLoan(r *resource, event ledger.Event) {
	row := event.After
	i, known := s.loanResults[row.ID]
	if !known {
		i = len(s.result.Loans)
		s.loanResults[row.ID] = i
		s.result.Loans = append(s.result.Loans, LoanResult{
			ID: row.ID, Provider: row.Provider, Resource: row.Resource, Units: row.Units, Requested: row.Intended,
		})
		s.flapped(row.Provider, row.Resource)
	}
	l := &s.result.Loans[i]
	l.Granted, l.Committed, l.Closed, l.Why = row.Granted(), row.Committed, row.Closed, row.Why
	if back := row.Returned - event.Before.Returned; back > 0 {
		s.charge(l, row, back)
		s.lastReturn[row.Resource] = s.now
	}
	if event.Before.State == cluster.LoanRequested && row.State != cluster.LoanRequested {
		s.providers[row.Provider].settled(row.ID, row.Granted(), row.Units)
	}
	s.totalChanged(r, event.TotalBefore, event.TotalAfter, event.Kind+" "+row.ID)
}

// totalChanged keeps a change of a resource's total.
func (s *simulator) totalChanged(r *resource, before, after int64, cause string) {
	if before != after {
		s.result.Changes = append(s.result.Changes, Change{
			At: s.now, Subject: r.Name, Before: strconv.FormatInt(before, 10), After: strconv.FormatInt(after, 10), Cause: cause,
		})
	}
}

// changeTotal tells sessions and the record of a total that an operator changed.
func (s *simulator) changeTotal(r *resource, before int64, cause string) {
	if before == r.account.Total() {
		return
	}
	s.totalChanged(r, before, r.account.Total(), cause)
	r.changed, r.tally.dirty = true, true
	s.wantSession()
}

// charge counts units that the lender has back.
func (s *simulator) charge(l *LoanResult, row cluster.Loan, units int64) {
	held := s.now.Sub(row.Committed)
	l.Held += units * int64(held)
	l.Cost += row.Price.For(held, row.BillingStep) * cluster.Price(units)
}

// flapSoon is how soon after the like was given back a request is a flap.
const flapSoon = 15 * cluster.Minute

func (s *simulator) flapped(provider, what string) {
	if last, before := s.lastReturn[what]; before && s.now.Sub(last) <= flapSoon {
		s.providers[provider].result.Flaps++
	}
}

// recordHost keeps what one write, or fact, changed in a host's row.
func (s *simulator) recordHost(h *elasticHost, event ledger.HostEvent) {
	row := event.After
	i, known := s.hostResults[row.ID]
	if !known {
		i = len(s.result.Machines)
		s.hostResults[row.ID] = i
		s.result.Machines = append(s.result.Machines, HostResult{
			ID: row.ID, Template: row.Template, Provider: row.Provider, Requested: row.Intended,
		})
		s.flapped(row.Provider, row.Template)
	}
	m := &s.result.Machines[i]
	m.Name, m.Expected, m.Joined, m.Left, m.Closed, m.Why = row.Name, row.Made, row.Joined, row.Fenced, row.Closed, row.Why
	if !row.State.Open() {
		m.Busy, m.Cost = int64(row.Used(s.now)), row.Cost(s.now)
		if row.Made > 0 {
			s.lastReturn[row.Template] = s.now
		}
	}
	if event.Before.State == cluster.HostRequested && row.State != cluster.HostRequested {
		made := int64(0)
		if row.Made > 0 {
			made = 1
		}
		s.providers[row.Provider].settled(row.ID, made, 1)
	}
	s.recountComing(event.Before, -1)
	s.recountComing(row, 1)
	if h.host != nil {
		s.recount(h.host)
	}
	if event.Before.State != row.State {
		before := string(event.Before.State)
		if before == "" {
			before = "none"
		}
		s.result.Changes = append(s.result.Changes, Change{At: s.now, Subject: row.ID, Before: before, After: string(row.State), Cause: event.Kind})
	}
}

// recountComing counts hosts that are not in the cluster: by state.
func (s *simulator) recountComing(row cluster.ElasticHost, by int64) {
	switch row.State {
	case cluster.HostRequested:
		s.inState[requested] += by
	case cluster.HostExpected:
		s.inState[expected] += by
	case cluster.HostLeaving:
		s.inState[leaving] += by
	default:
		return
	}
	s.hostsDirty = true
}

// count counts a host that comes into the cluster (by is 1), or leaves it (by is -1).
func (s *simulator) count(h *host, by int64) {
	if by < 0 {
		s.inState[h.counted]--
		h.counted = -1
		s.hostsDirty = true
		return
	}
	s.recount(h)
}

// recount counts a host where it belongs now.
func (s *simulator) recount(h *host) {
	column := ownedIdle
	switch {
	case h.elastic == nil && len(h.jobs) > 0:
		column = ownedBusy
	case h.elastic == nil:
	case h.elastic.row.State == cluster.HostDraining:
		column = draining
	case len(h.jobs) > 0:
		column = busy
	default:
		column = idle
	}
	if column == h.counted {
		return
	}
	if h.counted >= 0 {
		s.inState[h.counted]--
	}
	h.counted = column
	s.inState[column]++
	s.hostsDirty = true
}

// asked counts a request, and whether its outcome is unknown at first.
func (e *providerEnv) asked(g activities.Grant) {
	e.result.Requests++
	if g.Outcome.Status == providers.StatusUnknown {
		e.result.Unknown++
	}
}

// settled counts what became of a request, as its row has it.
func (e *providerEnv) settled(id string, granted, wanted int64) {
	r, reason := e.result, e.reasons[id]
	delete(e.reasons, id)
	switch {
	case granted >= wanted:
		r.Granted++
	case granted > 0:
		r.Partial++
	default:
		r.Refused++
		if reason == "" {
			reason = "cancelled" // since its outcome was unknown
		}
		i := slices.IndexFunc(r.Refusals, func(c Count) bool { return c.Name == reason })
		if i < 0 {
			i = len(r.Refusals)
			r.Refusals = append(r.Refusals, Count{Name: reason})
		}
		r.Refusals[i].N++
	}
}

// heard keeps why a request was refused, for when its row is closed.
func (e *providerEnv) heard(id string, g activities.Grant) activities.Grant {
	if g.Outcome.Status == providers.StatusRefused {
		e.reasons[id] = string(g.Outcome.Reason)
	}
	return g
}

// close puts the result together.
func (s *simulator) close() *Result {
	r := s.result
	r.Ended = s.now
	s.hostsDirty = true
	s.note()
	for _, res := range s.resources {
		t := res.tally
		t.pass(s.now)
		t.result.Series.Note(s.now, t.values[:]...)
		t.result.Bought, t.result.Used = t.bought, t.used
		for _, l := range res.account.Loans {
			if l.Committed > 0 {
				s.charge(&r.Loans[s.loanResults[l.ID]], l, l.Held())
			}
		}
	}
	for i := range r.Loans {
		s.resourceIndex[r.Loans[i].Resource].tally.result.Cost += r.Loans[i].Cost
	}
	for _, h := range s.open {
		m := &r.Machines[s.hostResults[h.row.ID]]
		m.Busy, m.Cost = int64(h.row.Used(s.now)), h.row.Cost(s.now)
	}
	for _, p := range s.farm.Providers {
		if env := s.providers[p.Name]; env != nil {
			sortCounts(env.result.Refusals)
			r.Providers = append(r.Providers, *env.result)
		}
	}
	s.closeCauses()
	for _, o := range s.farm.Operator {
		if at := s.began.Add(o.After); at > s.now {
			r.Orders = append(r.Orders, Ordered{At: at, Do: o.Do, Subject: o.Subject, Became: NotGiven})
		}
	}
	return r
}
