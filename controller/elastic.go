package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/ledger"
)

// hostEntry is one write to an elastic host's row in progress.
type hostEntry struct {
	*work
	books judge.HostBooks
}

// WriteHost applies one change of a host's workflow to the host's row, and what
// the change brings with it, all or nothing.
func (s *Service) WriteHost(ctx context.Context, actor string, in api.WriteHost) (api.HostWritten, error) {
	if s.config.Backend != nil && (in.Fence || in.Lapse != nil) {
		return s.fenceHost(ctx, actor, in)
	}
	return s.writeHost(ctx, actor, in)
}

func (s *Service) writeHost(ctx context.Context, actor string, in api.WriteHost) (api.HostWritten, error) {
	var written api.HostWritten
	err := s.update(ctx, actor, func(w *work) error {
		e, err := w.hostEntry(in, s.config.Hosts)
		if err != nil {
			return err
		}
		if s.config.Backend != nil && (in.Fence || in.Lapse != nil) {
			if err := e.clear(ctx, s.config.Backend, in); err != nil {
				return err
			}
		}
		answer, err := e.books.Write(in, w.now)
		written = answer.HostWritten
		switch {
		case errors.Is(err, judge.ErrNoChange):
			return refuse(http.StatusUnprocessableEntity, "the write to host %s has no change; set exactly one", in.Host)
		case err != nil:
			return err
		}
		w.decided(record.Entry{Host: &record.HostEntry{Books: e.books, Write: in, Answer: answer}})
		if answer.Event.Kind == "" {
			return nil
		}
		return e.keep(in, answer)
	})
	if err == nil && in.StopJobs != nil && s.config.Backend != nil {
		err = s.requeueOn(ctx, written.Host.Name)
	}
	return written, err
}

// hostEntry reads the books around one host.
func (w *work) hostEntry(in api.WriteHost, rules cluster.HostRules) (*hostEntry, error) {
	e := &hostEntry{work: w}
	var err error
	if e.books.Row, _, err = w.ElasticHost(in.Host); err != nil {
		return nil, err
	}
	row := e.books.Row
	provider := row.Provider
	if row.ID == "" && in.Intend != nil {
		provider = in.Intend.Provider
	}
	if err := w.fenced(provider); err != nil {
		return nil, err
	}
	if row.State.Here() {
		jobs, err := w.HostJobs(row.Name)
		if err != nil {
			return nil, err
		}
		e.books.Jobs = int64(len(jobs))
	}
	switch {
	case in.Intend != nil:
		e.books.Rules = &rules
		e.books.Demand, err = w.demandFor("", in.Intend.Template, in.Intend.Provider)
		err = errors.Join(err, e.readTemplate(in.Intend.Template, in.Intend.Provider))
	case in.Expect != nil:
		e.books.Name, err = e.nameFor(in.Expect.Name)
	case in.Fence:
		e.books.IdleSince, err = w.IdleSince(row.Name)
	case in.Refuse != nil || in.Lapse != nil || in.Gone != nil:
		err = e.readTemplate(row.Template, row.Provider)
	}
	return e, err
}

func (e *hostEntry) readTemplate(name, provider string) error {
	t, found, err := e.template(name, provider)
	if found {
		e.books.Template = &t
	}
	return err
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
	if e.isTheBackends(name) {
		return false, nil
	}
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
	noted, err := e.note(row, judge.Fact{Join: &host.Host.Capacity})
	if err != nil {
		return err
	}
	if noted.Refusal != nil {
		return &ledger.Refusal{Code: ledger.Code(noted.Refusal.Code), Text: noted.Refusal.Text}
	}
	host.Host.ID, host.Host.Template = row.ID, row.Template
	return errors.Join(e.SaveHost(host), e.saveElastic(noted.Host), e.learn(noted.Host), e.recordHost(noted.Event), e.loaded(row.Name))
}

// note judges what is seen of a host.
func (w *work) note(row cluster.ElasticHost, fact judge.Fact) (judge.FactAnswer, error) {
	answer, err := judge.Note(row, fact, w.now)
	if err == nil && (answer.Event.Kind != "" || answer.Refusal != nil) {
		w.decided(record.Entry{Fact: &record.FactEntry{Row: row, Fact: fact, Answer: answer}})
	}
	return answer, err
}

// keep stores the row, the audit record, and what the change brings with it.
func (e *hostEntry) keep(in api.WriteHost, answer judge.HostAnswer) error {
	if err := e.saveElastic(answer.Event.After); err != nil {
		return err
	}
	if err := e.recordHost(answer.Event); err != nil {
		return err
	}
	if answer.Demand != nil {
		if err := e.SaveDemand(*answer.Demand); err != nil {
			return err
		}
	}
	if err := e.bring(in, answer.Event); err != nil || answer.Template == nil {
		return err
	}
	return e.SaveTemplate(*answer.Template)
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
	case in.Expect != nil:
		return e.adopt(row)
	case in.Refuse != nil || in.Lapse != nil:
		return e.DeleteJoinToken(row.ID)
	case in.StopJobs != nil:
		return e.stopJobs(row)
	case in.Gone != nil:
		return errors.Join(e.requeueAll(row), e.leave(row), e.DeleteJoinToken(row.ID))
	case row.State == cluster.HostLeaving && event.Before.State.Here():
		return errors.Join(e.leave(row), e.DeleteJoinToken(row.ID))
	}
	return nil
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
	closed := drains(row)
	if host.Host.Closed == closed && host.Host.Health == row.Health {
		return nil
	}
	host.Host.Closed, host.Host.Health = closed, row.Health
	return w.SaveHost(host)
}

// drains says why an elastic host takes no new jobs; empty where it does.
func drains(row cluster.ElasticHost) string {
	if row.Drain == nil {
		return ""
	}
	return "it drains: " + row.Drain.Why
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
	if w.reading != nil {
		return nil // the backend is asked for it
	}
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
	if err != nil || !here || w.reading != nil { // a backend finds out by itself
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
	load := int64(len(jobs))
	noted, err := w.note(row, judge.Fact{Load: &load})
	after, event := noted.Host, noted.Event
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
		if err := w.noteHealth(h.Host.ID, judge.Seen{Health: health, Why: "last heard of at " + last.Stamp()}); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) noteHealth(id string, seen judge.Seen) error {
	row, _, err := w.ElasticHost(id)
	if err != nil {
		return err
	}
	noted, err := w.note(row, judge.Fact{Seen: &seen})
	if err != nil || noted.Event.Kind == "" {
		return err
	}
	if err := w.saveElastic(noted.Host); err != nil {
		return err
	}
	return w.recordHost(noted.Event)
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
