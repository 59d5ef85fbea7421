package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
)

// hostEntry is one write to an elastic host's row in progress.
type hostEntry struct {
	*work
	rules cluster.HostRules
	books ledger.Host
	// demand is what is left of it for the template, where the write is an intent.
	demand cluster.Demand
}

// WriteHost applies one change of a host's workflow to the host's row, and what
// the change brings with it, all or nothing.
func (s *Service) WriteHost(ctx context.Context, actor string, in api.WriteHost) (api.HostWritten, error) {
	var written api.HostWritten
	err := s.update(ctx, actor, func(w *work) error {
		e, err := w.hostEntry(in, s.config.Hosts)
		if err != nil {
			return err
		}
		change, err := e.change(in)
		if err != nil {
			return err
		}
		after, event, err := e.books.Write(in.Host, in.Step, change, w.now)
		written.Host = after
		if written.Refusal = refusalOf(err); written.Refusal != nil {
			return nil
		}
		if err != nil || event.Kind == "" {
			return err
		}
		return e.keep(in, event)
	})
	return written, err
}

// hostEntry reads the books around one host.
func (w *work) hostEntry(in api.WriteHost, rules cluster.HostRules) (*hostEntry, error) {
	e := &hostEntry{work: w, rules: rules}
	var err error
	if e.books.Row, _, err = w.ElasticHost(in.Host); err != nil {
		return nil, err
	}
	if e.books.Row.State.Here() {
		jobs, err := w.HostJobs(e.books.Row.Name)
		if err != nil {
			return nil, err
		}
		e.books.Jobs = int64(len(jobs))
	}
	if in.Intend != nil {
		e.demand, err = w.demandFor("", in.Intend.Template, in.Intend.Provider)
		e.books.Demanded = e.demand.Units
	}
	return e, err
}

// change answers the ledger's form of what the workflow writes.
func (e *hostEntry) change(in api.WriteHost) (ledger.HostChange, error) {
	row := e.books.Row
	switch {
	case in.Intend != nil:
		return e.intend(*in.Intend)
	case in.Expect != nil:
		name, err := e.nameFor(in.Expect.Name)
		return ledger.ExpectHost{Instance: in.Expect.Instance, Name: name}, err
	case in.Refuse != nil:
		return ledger.RefuseHost{Why: in.Refuse.Why}, nil
	case in.Lapse != nil:
		return ledger.LapseHost{Why: in.Lapse.Why}, nil
	case in.Drain != nil:
		return ledger.DrainHost{Drain: *in.Drain}, nil
	case in.Undrain != nil:
		return ledger.UndrainHost{By: in.Undrain.By}, nil
	case in.Keep != nil:
		return ledger.KeepHost{Keep: *in.Keep}, nil
	case in.Release != nil:
		return ledger.ReleaseHost{By: in.Release.By}, nil
	case in.StopJobs != nil:
		return ledger.StopJobs{Why: in.StopJobs.Why}, nil
	case in.Fence:
		return e.fence(row)
	case in.Confirm:
		return ledger.ConfirmHost{}, nil
	case in.Gone != nil:
		return ledger.LoseHost{Why: in.Gone.Why}, nil
	}
	return nil, refuse(http.StatusUnprocessableEntity, "the write to host %s has no change; set exactly one", in.Host)
}

// intend makes a request one of the template as it is now. Where the template is
// gone, nothing is demanded of it any more.
func (e *hostEntry) intend(r cluster.HostRequest) (ledger.HostChange, error) {
	t, found, err := e.template(r.Template, r.Provider)
	if !found {
		e.books.Demanded = 0
	}
	return ledger.IntendHost{HostRequest: r, Capacity: t.Believed(), Terms: e.rules.Terms(t)}, err
}

func (w *work) template(name, provider string) (cluster.Template, bool, error) {
	templates, err := w.Templates()
	i := slices.IndexFunc(templates, func(t cluster.Template) bool { return t.Name == name && t.Provider == provider })
	if i < 0 {
		return cluster.Template{}, false, err
	}
	return templates[i], true, err
}

// nameFor answers what the host is called in the cluster: as its provider calls
// the machine, or where another has that name, or none is given, by its id.
func (e *hostEntry) nameFor(machine string) (string, error) {
	if cluster.ValidName(machine) {
		if free, err := e.isFree(machine); free || err != nil {
			return machine, err
		}
	}
	name := e.books.Row.DefaultName()
	for n := 2; ; n++ {
		if free, err := e.isFree(name); free || err != nil {
			return name, err
		}
		name = fmt.Sprintf("%s.%d", e.books.Row.DefaultName(), n)
	}
}

// isFree tells whether the host may be called so.
func (e *hostEntry) isFree(name string) (bool, error) {
	bearer, joined, err := e.Host(name)
	if err != nil || joined && !e.adoptable(bearer.Host) {
		return false, err
	}
	other, found, err := e.ElasticHostNamed(name)
	return !found || !other.State.Open() || other.ID == e.books.Row.ID, err
}

// adoptable tells whether a host that has joined by a certificate of its own is
// the machine that was asked for: it was faster than its provider's answer.
func (e *hostEntry) adoptable(h cluster.Host) bool {
	return h.ID == "" && h.Joined >= e.books.Row.Intended
}

// adopt takes a host that has joined already for the one that is expected now.
func (e *hostEntry) adopt(row cluster.ElasticHost) error {
	host, joined, err := e.Host(row.Name)
	if err != nil || !joined || !e.adoptable(host.Host) {
		return err
	}
	after, event, err := ledger.Host{Row: row}.Note(ledger.Join{Capacity: host.Host.Capacity}, e.now)
	if err != nil {
		return err
	}
	host.Host.ID, host.Host.Template = row.ID, row.Template
	return errors.Join(e.SaveHost(host), e.saveElastic(after), e.learn(after), e.recordHost(event), e.loaded(row.Name))
}

// fence decides whether the host may go: empty it must be in any case.
func (e *hostEntry) fence(row cluster.ElasticHost) (ledger.HostChange, error) {
	since, err := e.IdleSince(row.Name)
	idle, again := policy.ReturnHost(row, since, e.now)
	why := fmt.Sprintf("idle for %s since %s", row.IdleTime, since)
	if row.Drain != nil {
		why = "empty, and drained: " + row.Drain.Why
	}
	return ledger.FenceHost{Idle: idle, AskAgain: again, Why: why}, err
}

// keep stores the row, the audit record, and what the change brings with it.
func (e *hostEntry) keep(in api.WriteHost, event ledger.HostEvent) error {
	if err := e.saveElastic(event.After); err != nil {
		return err
	}
	if err := e.recordHost(event); err != nil {
		return err
	}
	return e.bring(in, event)
}

// recordHost appends the audit record of an event that is worth one.
func (w *work) recordHost(event ledger.HostEvent) error {
	if !event.Material() {
		return nil
	}
	var before any
	if event.Before.State != "" {
		before = event.Before
	}
	return w.record(api.Change{Kind: api.KindHostWrite + event.Kind, Subject: event.After.ID, Why: event.After.Why}, before, event.After)
}

// bring carries out what a change means for others than the row.
func (e *hostEntry) bring(in api.WriteHost, event ledger.HostEvent) error {
	row := event.After
	switch {
	case in.Intend != nil && row.State.Open():
		e.demand.Units--
		return e.SaveDemand(e.demand)
	case in.Expect != nil:
		return e.adopt(row)
	case in.Refuse != nil:
		return errors.Join(e.DeleteJoinToken(row.ID), e.letBe(row, in.Refuse.Ours, in.Refuse.RetryAfter))
	case in.Lapse != nil:
		return errors.Join(e.DeleteJoinToken(row.ID), e.letBe(row, !in.Lapse.Late, 0))
	case in.StopJobs != nil:
		return e.stopJobs(row)
	case in.Gone != nil:
		neverJoined := event.Before.State == cluster.HostExpected
		return errors.Join(e.requeueAll(row), e.leave(row), e.DeleteJoinToken(row.ID), e.letBe(row, !neverJoined, 0))
	case row.State == cluster.HostLeaving && event.Before.State.Here():
		return errors.Join(e.leave(row), e.DeleteJoinToken(row.ID))
	}
	return nil
}

// letBe lets a template be for a while after a refusal that was not ours.
func (w *work) letBe(row cluster.ElasticHost, ours bool, retryAfter cluster.Duration) error {
	t, found, err := w.template(row.Template, row.Provider)
	if err != nil || !found || ours {
		return err
	}
	return w.SaveTemplate(policy.RefusedTemplate(t, retryAfter, w.now))
}

// saveElastic writes a host's row, and what sessions are to know of it.
func (w *work) saveElastic(row cluster.ElasticHost) error {
	if err := w.SaveElasticHost(row); err != nil {
		return err
	}
	if !row.State.Here() {
		return nil
	}
	host, here, err := w.hostOf(row)
	if err != nil || !here {
		return err
	}
	closed := ""
	if row.Drain != nil {
		closed = "it drains: " + row.Drain.Why
	}
	if host.Host.Closed == closed && host.Host.Health == row.Health {
		return nil
	}
	host.Host.Closed, host.Host.Health = closed, row.Health
	return w.SaveHost(host)
}

// hostOf answers the host that an elastic host is in the cluster; here is false
// where it is not, or another has its name.
func (w *work) hostOf(row cluster.ElasticHost) (host store.Host, here bool, err error) {
	host, joined, err := w.Host(row.Name)
	return host, joined && host.Host.ID == row.ID, err
}

// leave takes a host out of the cluster.
func (w *work) leave(row cluster.ElasticHost) error {
	_, here, err := w.hostOf(row)
	if err != nil || !here {
		return err
	}
	w.assigned = append(w.assigned, row.Name)
	return w.DeleteHost(row.Name)
}

// stopJobs has the host stop its jobs, so that they wait again.
func (w *work) stopJobs(row cluster.ElasticHost) error {
	jobs, err := w.HostJobs(row.Name)
	if err != nil || len(jobs) == 0 {
		return err
	}
	for _, job := range jobs {
		before := job
		job.Stopping = true
		if err := w.SaveJob(job); err != nil {
			return err
		}
		if err := w.record(jobChange(job, "stopped to wait again: "+row.Drain.Why), before, job); err != nil {
			return err
		}
	}
	return w.assign(row.Name)
}

// requeueAll lets the jobs of a machine that is no more wait again.
func (w *work) requeueAll(row cluster.ElasticHost) error {
	_, here, err := w.hostOf(row)
	if err != nil || !here {
		return err
	}
	jobs, err := w.HostJobs(row.Name)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err := w.requeue(job, row.Why); err != nil {
			return err
		}
	}
	return nil
}

// requeue lets a running job wait again.
func (w *work) requeue(job cluster.Job, why string) error {
	before := job
	job.State, job.Host, job.Hosts, job.Alternative, job.Started, job.Stopping = cluster.JobWaiting, "", nil, 0, 0, false
	job.Requeues++
	job.Why = "waits again: " + why
	if err := w.SaveJob(job); err != nil {
		return err
	}
	return w.record(jobChange(job, job.Why), before, job)
}

// loaded notes on an elastic host how many jobs it has now. One that drains and
// is empty is told of.
func (w *work) loaded(name string) error {
	host, joined, err := w.Host(name)
	if err != nil || !joined || host.Host.ID == "" {
		return err
	}
	row, found, err := w.ElasticHost(host.Host.ID)
	if err != nil || !found {
		return err
	}
	jobs, err := w.HostJobs(name)
	if err != nil {
		return err
	}
	after, event, err := ledger.Host{Row: row}.Note(ledger.Load{Jobs: int64(len(jobs))}, w.now)
	if err != nil || event.Kind == "" {
		return err
	}
	if err := w.SaveElasticHost(after); err != nil || event.Kind != "emptied" || after.Drain == nil {
		return err
	}
	return w.record(api.Change{Kind: api.KindEmptied, Subject: after.ID, Why: "no job is on it any more"}, nil, after)
}

// listen notes which elastic hosts do not answer any more, or do again.
func (s *Service) listen(w *work) error {
	hosts, err := w.Hosts()
	if err != nil {
		return err
	}
	s.forget(hosts)
	for _, h := range hosts {
		if h.Host.ID == "" {
			continue
		}
		last := s.lastSeen(h.Name)
		health := s.config.Hosts.HealthAfter(w.now.Sub(last))
		if health == h.Host.Health || !s.wasHeard(h.Name) && h.Host.Health != cluster.Well && health != cluster.Lost {
			continue // a controller that has just started knows no better
		}
		if err := w.noteHealth(h.Host.ID, ledger.Seen{Health: health, Why: "last heard of at " + last.Stamp()}); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) noteHealth(id string, fact ledger.Seen) error {
	row, _, err := w.ElasticHost(id)
	if err != nil {
		return err
	}
	after, event, err := ledger.Host{Row: row}.Note(fact, w.now)
	var refusal *ledger.Refusal
	if errors.As(err, &refusal) || err == nil && event.Kind == "" {
		return nil
	}
	if err != nil {
		return err
	}
	if err := w.saveElastic(after); err != nil {
		return err
	}
	return w.recordHost(event)
}

// ElasticHosts lists elastic hosts: those that stand for something, or all.
func (s *Service) ElasticHosts(ctx context.Context, everything bool) (hosts []cluster.ElasticHost, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		if everything {
			hosts, err = tx.AllElasticHosts()
		} else {
			hosts, err = tx.ElasticHosts("")
		}
		return err
	})
	return hosts, err
}

// Machines answers what a provider's inventory is compared with.
func (s *Service) Machines(ctx context.Context, provider string) ([]api.HostMachine, error) {
	machines := []api.HostMachine{}
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		hosts, err := tx.ElasticHosts(provider)
		for _, h := range hosts {
			machines = append(machines, api.HostMachine{ID: h.ID, Instance: h.Instance, State: h.State})
		}
		return err
	})
	return machines, err
}
