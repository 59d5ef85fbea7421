package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/snapshot"
)

// silence is how long a host may be silent before it gets no new jobs.
func (s *Service) silence() cluster.Duration {
	if d := s.config.Hosts.SuspectAfter; d > 0 {
		return d
	}
	return cluster.DefaultHostRules().SuspectAfter
}

// wantSession asks for a session soon.
func (s *Service) wantSession() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// RunSessions runs a session after every change and at every session interval,
// until ctx ends. After a session there is none for as long as it took, so that in
// a large cluster, where changes never cease, they do not take all there is; for
// how long it waited for its turn does not count.
func (s *Service) RunSessions(ctx context.Context) {
	defer s.HandOver(ctx)
	tick := time.NewTicker(s.config.SessionInterval.Std())
	defer tick.Stop()
	keep := time.NewTicker(s.sessionLease().Std() / 3)
	defer keep.Stop()
	for failed := false; ; {
		var free <-chan time.Time // when another controller's right to run sessions ends
		if wait := s.ledElsewhere(); wait > 0 {
			free = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		case <-tick.C:
		case <-free:
		case <-keep.C:
			if !failed { // else another may have more luck
				s.keepLead(ctx)
			}
			continue
		}
		took, err := s.trySession(ctx)
		var told *unread
		if failed = err != nil; failed && ctx.Err() == nil && !errors.As(err, &told) {
			s.log.Error("session failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(took):
		}
	}
}

// Session runs one session on the state as it is, and keeps what it decides:
// starts, demand, idle clocks and the reasons for waiting, all or nothing. Where
// another controller runs the sessions, nothing is done.
func (s *Service) Session(ctx context.Context) error {
	_, err := s.trySession(ctx)
	return err
}

// trySession also answers how long the session took, once it had its turn.
func (s *Service) trySession(ctx context.Context) (took time.Duration, err error) {
	if s.store.Shared() && !s.leads.Load() && s.ledElsewhere() == 0 {
		if err := s.askWhoLeads(ctx); err != nil {
			return 0, err
		}
	}
	if s.ledElsewhere() > 0 {
		s.onlyLook(ctx)
		return 0, nil
	}
	began := time.Now()
	if s.config.Backend != nil {
		err = s.backendSession(ctx)
	} else {
		err = s.session(ctx, &began, nil)
	}
	return time.Since(began), err
}

// session runs a session, on what was read of the backend where there is one; it sets
// when it began.
func (s *Service) session(ctx context.Context, began *time.Time, of *reading) error {
	var w *work
	var session api.Session
	var before int64
	settled := !s.freed.Swap(false)
	led := false
	err := s.store.Update(ctx, func(tx *store.Tx) (err error) {
		*began = time.Now()
		if led, err = s.mayLead(tx); err != nil || !led {
			return err
		}
		before, _ = tx.Turn()
		w = s.work(tx, self)
		if of != nil {
			w.reading = of
			if err := s.mirror(w); err != nil {
				return err
			}
		}
		if err := s.listen(w); err != nil {
			return err
		}
		read, err := s.read(w)
		if err != nil {
			return err
		}
		read.in.Settled = s.settled(tx, settled)
		result := scheduling.Run(read.in)
		if of != nil {
			of.found = &found{read.in, result}
		}
		session = api.NewSession(s.config.Cluster, read.in, result)
		session.Unplaced = append(session.Unplaced, of.barred()...)
		w.decided(record.Entry{Session: &record.SessionEntry{Input: read.in, Limits: read.limits, Result: result}})
		if err := w.apply(read, result); err != nil {
			return err
		}
		w.Announce(store.News{Revision: w.revision, Hosts: w.assigned})
		s.takeDown(w)
		return s.prolong(tx)
	})
	if err != nil || !led {
		s.freed.Store(true)
	}
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	if !led {
		return nil
	}
	s.settledAt.Store(before)
	s.last.Store(&session)
	if w.revision > 0 {
		s.watch.advance(w.revision, w.assigned)
	}
	return nil
}

// LastSession answers what the last session came to, with what is left of its
// demand.
func (s *Service) LastSession(ctx context.Context) (api.Session, error) {
	session := api.NewSession(s.config.Cluster, scheduling.Input{Policy: s.config.Policy}, scheduling.Result{})
	if last := s.last.Load(); last != nil {
		session = *last
	}
	err := s.store.Read(ctx, func(tx *store.Tx) (err error) {
		if session, err = lastToldSession(tx, session); err != nil {
			return err
		}
		session.Demand, err = tx.Demand()
		return err
	})
	return session, err
}

// Snapshot answers the state that the next session would judge.
func (s *Service) Snapshot(ctx context.Context) (snapshot.Snapshot, error) {
	var state snapshot.Snapshot
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		read, err := s.read(s.work(tx, ""))
		read.in.Settled = s.settled(tx, !s.freed.Load())
		state = snapshot.Of(s.config.Cluster, read.in)
		return err
	})
	return state, err
}

// state is what a session judges, and the rows that it was read from.
type state struct {
	in        scheduling.Input
	resources []store.Resource
	// limits are what the templates and quotas were limited by.
	limits judge.Limits
}

// read reads what a session judges.
func (s *Service) read(w *work) (read state, err error) {
	in := &read.in
	in.Now, in.Policy, in.Thresholds = w.now, s.config.Policy, s.config.Thresholds
	if in.Jobs, err = w.Jobs(cluster.JobWaiting); err != nil {
		return read, err
	}
	if in.Running, err = w.Jobs(cluster.JobRunning); err != nil {
		return read, err
	}
	if in.Reservations, err = w.Reservations(); err != nil {
		return read, err
	}
	if in.Offers, err = w.Offers(); err != nil {
		return read, err
	}
	hosts, err := w.Hosts()
	if err != nil {
		return read, err
	}
	if in.Hosts, err = s.readHosts(w, hosts); err != nil {
		return read, err
	}
	if err = s.readElastic(w, hosts, &read); err != nil {
		return read, err
	}
	if read.resources, err = w.Resources(); err != nil {
		return read, err
	}
	in.Resources = make([]scheduling.Resource, len(read.resources))
	for i, r := range read.resources {
		account, err := w.account(r)
		if err != nil {
			return read, err
		}
		in.Resources[i] = scheduling.Resource{
			SharedResource: r.Resource, Total: account.Total(), InUse: account.InUse, Loans: account.Loans, Idle: r.Idle,
		}
	}
	w.narrow(in)
	return read, nil
}

func (s *Service) readHosts(w *work, rows []store.Host) ([]scheduling.Host, error) {
	idle, err := w.IdleHosts()
	if err != nil {
		return nil, err
	}
	hosts := make([]scheduling.Host, len(rows))
	for i, h := range rows {
		hosts[i] = scheduling.Host{
			Name: h.Name, Capacity: h.Host.Capacity, Template: h.Host.Template, Closed: h.Host.Closed, IdleSince: idle[h.Name],
		}
		if !s.isUp(h.Name, w.now) || h.Host.Health != cluster.Well {
			hosts[i].Closed = "it was last heard of at " + s.lastSeen(h.Name).Stamp()
		}
	}
	return hosts, nil
}

// readElastic reads what hosts are coming, and which could be made.
func (s *Service) readElastic(w *work, hosts []store.Host, read *state) error {
	in := &read.in
	coming, err := w.ComingHosts()
	if err != nil {
		return err
	}
	for _, h := range coming {
		in.Expected = append(in.Expected, h.Expected())
	}
	var of judge.Limited
	read.limits, of, err = s.limited(w, hosts)
	in.Templates, in.Quotas = of.Templates, of.Quotas
	return err
}

// jobOf finds one of a session's waiting jobs, which are ordered by id.
func jobOf(in scheduling.Input, id int64) cluster.Job {
	i, _ := slices.BinarySearchFunc(in.Jobs, id, func(j cluster.Job, id int64) int { return cmp.Compare(j.ID, id) })
	return in.Jobs[i]
}

// applyJobs keeps what a session's result is to the jobs.
func (w *work) applyJobs(read state, result scheduling.Result) error {
	if w.reading != nil {
		return nil // they are the backend's
	}
	for _, start := range result.Starts {
		if err := w.startJob(jobOf(read.in, start.Job), start); err != nil {
			return err
		}
	}
	for _, u := range result.Unplaced {
		for _, id := range u.Jobs {
			if err := w.keepWaiting(jobOf(read.in, id), u); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply keeps a session's result.
func (w *work) apply(read state, result scheduling.Result) error {
	if err := w.applyJobs(read, result); err != nil {
		return err
	}
	for i, r := range read.resources {
		if clock := w.idle(r.Name, result.Clocks[r.Name], read.in.Resources[i].Total); !slices.Equal(clock, r.Idle) {
			r.Idle = clock
			if err := w.SaveResource(r); err != nil {
				return err
			}
		}
	}
	if err := w.markIdle(read.in.Hosts, result.Idle); err != nil {
		return err
	}
	standing := result.Reservations
	if read.in.Policy.Order != scheduling.Conservative {
		standing = nil // the other orders promise anew each time
	}
	if err := w.replaceReservations(read.in.Reservations, standing); err != nil {
		return err
	}
	return w.replaceDemand(result.Demand)
}

// startJob starts a job. The backend's jobs run on one host each.
func (w *work) startJob(job cluster.Job, start scheduling.Start) error {
	before := job
	host := start.Hosts[0]
	job.State, job.Host, job.Alternative, job.Started = cluster.JobRunning, host, start.Alternative, w.now
	job.Why, job.Code, job.Change = "", "", ""
	if err := w.SaveJob(job); err != nil {
		return err
	}
	if err := w.record(jobChange(job, "placed on "+host), before, job); err != nil {
		return err
	}
	if err := w.loaded(host); err != nil {
		return err
	}
	return w.assign(host)
}

// keepWaiting keeps why a job waits, where that is another reason than before.
func (w *work) keepWaiting(job cluster.Job, u scheduling.Unplaced) error {
	if job.Why == u.Why && job.Code == string(u.Code) && job.Change == u.Change {
		return nil
	}
	job.Why, job.Code, job.Change = u.Why, string(u.Code), u.Change
	return w.SaveJob(job)
}

// markIdle keeps since when hosts are idle.
func (w *work) markIdle(hosts []scheduling.Host, idle []cluster.IdleSupply) error {
	since := map[string]cluster.Time{}
	for _, i := range idle {
		if i.Host != "" {
			since[i.Host] = i.Since
		}
	}
	for _, h := range hosts {
		if since[h.Name] != h.IdleSince {
			if err := w.MarkIdle(h.Name, since[h.Name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceReservations keeps the reservations that stand, by job.
func (w *work) replaceReservations(before, standing []scheduling.Reservation) error {
	old := map[int64]scheduling.Reservation{}
	for _, r := range before {
		old[r.Job] = r
	}
	for _, r := range standing {
		was, there := old[r.Job]
		delete(old, r.Job)
		if there && was.At == r.At && was.Alternative == r.Alternative && slices.Equal(was.Hosts, r.Hosts) {
			continue
		}
		if err := w.SaveReservation(r); err != nil {
			return err
		}
	}
	for job := range old {
		if err := w.DeleteReservation(job); err != nil {
			return err
		}
	}
	return nil
}

// replaceDemand keeps the demand of this session in place of what is left of
// the last one's. Only what changed is written and recorded.
func (w *work) replaceDemand(demand []cluster.Demand) error {
	old, err := w.Demand()
	if err != nil {
		return err
	}
	for _, d := range old {
		if !slices.ContainsFunc(demand, func(n cluster.Demand) bool { return cluster.CompareDemand(d, n) == 0 }) {
			d.Units, d.Jobs, d.Reason = 0, nil, "nothing waits for it any more"
			demand = append(demand, d)
		}
	}
	for _, d := range demand {
		d.Jobs = d.Jobs[:min(len(d.Jobs), judge.MostDemandJobs)]
		var before any
		if i := slices.IndexFunc(old, func(o cluster.Demand) bool { return cluster.CompareDemand(d, o) == 0 }); i >= 0 {
			if old[i].Same(d) {
				continue
			}
			before = old[i]
		}
		if err := w.SaveDemand(d); err != nil {
			return err
		}
		if err := w.record(api.Change{Kind: api.KindDemand, Subject: d.Provider, Why: d.Reason}, before, d); err != nil {
			return err
		}
	}
	return nil
}
