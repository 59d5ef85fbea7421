package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/scheduling"
)

// hostSilence is how long a host may be silent before it gets no new jobs.
const hostSilence = 45 * cluster.Second

// wantSession asks for a session soon.
func (s *Service) wantSession() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// RunSessions runs a session after every change and at every session interval,
// until ctx ends.
func (s *Service) RunSessions(ctx context.Context) {
	tick := time.NewTicker(s.config.SessionInterval.Std())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		case <-tick.C:
		}
		if err := s.Session(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("session failed", "error", err)
		}
	}
}

// Session runs one session on the state as it is, and keeps what it decides:
// starts, demand, idle clocks and the reasons for waiting, all or nothing.
func (s *Service) Session(ctx context.Context) error {
	var w *work
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		w = &work{Tx: tx, actor: self, now: s.now()}
		in, resources, err := s.sessionInput(w)
		if err != nil {
			return err
		}
		return w.apply(in, scheduling.Run(in), resources)
	})
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	if w.revision > 0 {
		s.watch.advance(w.revision)
	}
	return nil
}

// sessionInput reads what a session judges.
func (s *Service) sessionInput(w *work) (in scheduling.Input, resources []store.Resource, err error) {
	in.Now = w.now
	if in.Jobs, err = w.Jobs(cluster.JobWaiting); err != nil {
		return in, nil, err
	}
	running, err := w.Jobs(cluster.JobRunning)
	if err != nil {
		return in, nil, err
	}
	hosts, err := w.Hosts()
	if err != nil {
		return in, nil, err
	}
	for _, h := range hosts {
		if s.isUp(h.Name, w.now) {
			in.Hosts = append(in.Hosts, free(h.Host, running))
		}
	}
	if in.Offers, err = w.Offers(); err != nil {
		return in, nil, err
	}
	if resources, err = w.Resources(); err != nil {
		return in, nil, err
	}
	for _, r := range resources {
		account, err := w.account(r)
		if err != nil {
			return in, nil, err
		}
		in.Resources = append(in.Resources, scheduling.Resource{
			SharedResource: r.Resource, Total: account.Total(), InUse: account.InUse, Loans: account.Loans, Idle: r.Idle,
		})
	}
	return in, resources, nil
}

func free(h cluster.Host, running []cluster.Job) scheduling.Host {
	left := scheduling.Host{Name: h.Name, CPUs: h.CPUs, MemoryMB: h.MemoryMB, AllCPUs: h.CPUs, AllMemoryMB: h.MemoryMB}
	for _, job := range running {
		if job.Host == h.Name {
			left.CPUs -= job.CPUs
			left.MemoryMB -= job.MemoryMB
		}
	}
	return left
}

// jobOf finds one of a session's waiting jobs, which are ordered by id.
func jobOf(in scheduling.Input, id int64) cluster.Job {
	i, _ := slices.BinarySearchFunc(in.Jobs, id, func(j cluster.Job, id int64) int { return cmp.Compare(j.ID, id) })
	return in.Jobs[i]
}

// apply keeps a session's result.
func (w *work) apply(in scheduling.Input, result scheduling.Result, resources []store.Resource) error {
	for _, start := range result.Starts {
		if err := w.startJob(jobOf(in, start.Job), start.Host); err != nil {
			return err
		}
	}
	for _, u := range result.Unplaced {
		if job := jobOf(in, u.Job); job.Why != u.Why {
			job.Why = u.Why
			if err := w.SaveJob(job); err != nil {
				return err
			}
		}
	}
	for _, r := range resources {
		if clock := result.Clocks[r.Name]; !slices.Equal(clock, r.Idle) {
			r.Idle = clock
			if err := w.SaveResource(r); err != nil {
				return err
			}
		}
	}
	return w.replaceDemand(result.Demand)
}

func (w *work) startJob(job cluster.Job, host string) error {
	before := job
	job.State, job.Host, job.Started, job.Why = cluster.JobRunning, host, w.now, ""
	if err := w.SaveJob(job); err != nil {
		return err
	}
	if err := w.record(jobChange(job, "placed on "+host), before, job); err != nil {
		return err
	}
	return w.MarkAssigned(host, w.revision)
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
		var before any
		if i := slices.IndexFunc(old, func(o cluster.Demand) bool { return cluster.CompareDemand(d, o) == 0 }); i >= 0 {
			if old[i].Units == d.Units && slices.Equal(old[i].Jobs, d.Jobs) {
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
