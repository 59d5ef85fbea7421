package controller

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/ledger"
)

// Status answers the cluster as it is now.
func (s *Service) Status(ctx context.Context) (api.Status, error) {
	st := api.Status{Cluster: s.config.Cluster, Resources: []api.ResourceStatus{}, Hosts: []api.HostStatus{}}
	err := s.store.Read(ctx, func(tx *store.Tx) (err error) {
		st.Now = s.at(tx)
		w := s.work(tx, "")
		st.Backend = s.backendStatus(w)
		if st.Revision, err = w.Revision(); err != nil {
			return err
		}
		if st.Offers, err = w.Offers(); err != nil {
			return err
		}
		if st.Demand, err = w.Demand(); err != nil {
			return err
		}
		running, err := w.Jobs(cluster.JobRunning)
		if err != nil {
			return err
		}
		counts, err := w.CountJobs()
		if err != nil {
			return err
		}
		st.Jobs = api.JobCounts{
			Waiting: counts[cluster.JobWaiting], Running: counts[cluster.JobRunning], Done: counts[cluster.JobDone],
			Failed: counts[cluster.JobFailed] + counts[cluster.JobTimeout],
		}
		return errors.Join(w.resourceStatus(&st), s.hostStatus(w, &st, running), w.controllerStatus(&st))
	})
	return st, err
}

func (w *work) resourceStatus(st *api.Status) error {
	resources, err := w.Resources()
	if err != nil {
		return err
	}
	observations, err := w.Observations()
	if err != nil {
		return err
	}
	for _, r := range resources {
		account, err := w.account(r)
		if err != nil {
			return err
		}
		row := statusOf(r, account)
		for _, o := range observations {
			if o.Resource == r.Name {
				row.Observed = append(row.Observed, api.ObservedStatus{Observation: o, Age: w.now.Sub(o.At)})
			}
		}
		st.Resources = append(st.Resources, row)
	}
	return nil
}

func statusOf(r store.Resource, a ledger.Account) api.ResourceStatus {
	var returning int64
	for _, l := range a.Loans {
		returning += l.Fenced
	}
	return api.ResourceStatus{
		SharedResource: r.Resource, Total: a.Total(), Borrowed: a.Borrowed(), Lent: a.Lent(), Requested: a.Requested(),
		Returning: returning, InUse: a.InUse, Overdraft: a.Overdraft(), Idle: r.Idle.Units(), IdleSince: r.Idle.Since(),
	}
}

func (s *Service) hostStatus(w *work, st *api.Status, running []cluster.Job) error {
	hosts, err := w.Hosts()
	if err != nil {
		return err
	}
	idle, err := w.IdleHosts()
	if err != nil {
		return err
	}
	elastic, err := w.ElasticHosts("")
	if err != nil {
		return err
	}
	rows := map[string]*cluster.ElasticHost{}
	for i := range elastic {
		rows[elastic[i].ID] = &elastic[i]
	}
	if _, st.Halt, err = s.limits(w, hosts); err != nil {
		return err
	}
	for _, h := range hosts {
		row := api.HostStatus{Elastic: rows[h.Host.ID], Host: h.Host, FreeCPUs: h.Host.CPUs, FreeMemoryMB: h.Host.MemoryMB, FreeCountables: maps.Clone(h.Host.Countables), IdleSince: idle[h.Name]}
		row.LastSeen, row.Up = s.lastSeen(h.Name), s.isUp(h.Name, w.now)
		for _, job := range running {
			if job.Host != h.Name && !slices.Contains(job.Hosts, h.Name) {
				continue
			}
			row.Jobs++
			row.FreeCPUs -= job.CPUs
			row.FreeMemoryMB -= job.MemoryMB
			for name, n := range job.Countables {
				if row.FreeCountables != nil {
					row.FreeCountables[name] -= n
				}
			}
		}
		st.Hosts = append(st.Hosts, row)
	}
	return nil
}

// mostChanges is how many audit records one call answers.
const mostChanges = 500

// Changes answers what came after a revision. Where nothing did, it waits until
// something does or `wait` ends. A revision from a state that was lost is
// answered at once, with the newest one there is.
func (s *Service) Changes(ctx, wait context.Context, after int64) (api.Changes, error) {
	changes := api.Changes{Revision: after}
	err := poll(wait, s.watch.next, func() (bool, error) {
		err := s.store.Read(ctx, func(tx *store.Tx) (err error) {
			if changes.Changes, err = tx.Changes(after, mostChanges); err != nil {
				return err
			}
			if n := len(changes.Changes); n > 0 {
				changes.Revision = changes.Changes[n-1].Revision
				return nil
			}
			newest, err := tx.Revision()
			changes.Revision = min(after, newest)
			return err
		})
		return changes.Revision != after, err
	})
	return changes, err
}

// SetOwned changes how many units of a resource the cluster owns. It may fall
// below what is in use: that overdraft blocks new starts and hurts no job.
func (s *Service) SetOwned(ctx context.Context, actor, name string, owned api.Owned) error {
	if owned.Owned < 0 {
		return refuse(http.StatusUnprocessableEntity, "%s: owned %d is negative; write 0 or more", name, owned.Owned)
	}
	err := s.update(ctx, actor, func(w *work) error {
		r, err := w.resource(name)
		if err != nil || r.Resource.Owned == owned.Owned {
			return err
		}
		next := r
		next.Resource.Owned = owned.Owned
		return w.replaceResource(r, next, owned.Why)
	})
	if err == nil && s.config.Backend != nil {
		s.settleSoon(ctx, name)
	}
	return err
}

// Lend opens, resizes or closes the row of units lent to another cluster.
func (s *Service) Lend(ctx context.Context, actor, id string, lend api.LendUnits) error {
	if s.config.Backend != nil {
		return s.lendBehind(ctx, actor, id, lend)
	}
	return s.lend(ctx, actor, id, lend)
}

func (s *Service) lend(ctx context.Context, actor, id string, lend api.LendUnits) error {
	return s.update(ctx, actor, func(w *work) error {
		r, err := w.resource(lend.Resource)
		if err != nil {
			return err
		}
		if err := s.recountLending(ctx, w, r, id, lend); err != nil {
			return err
		}
		before, after, err := w.lend(r, cluster.Lending{ID: id, Resource: r.Name, Units: lend.Units, To: lend.To})
		if err != nil || slices.Equal(before.Lendings, after.Lendings) {
			return err
		}
		if err := w.ReplaceLendings(r.Name, after.Lendings); err != nil {
			return err
		}
		change := api.Change{
			Kind: api.KindLending, Subject: id, Resource: r.Name, Why: "lent to " + lend.To,
			TotalBefore: before.Total(), TotalAfter: after.Total(),
		}
		if lend.Units == 0 {
			change.Why = "taken back from " + lend.To
		}
		return w.record(change, lendingIn(before, id), lendingIn(after, id))
	})
}

// lendingIn answers a lending's row for the audit record, or nil.
func lendingIn(a ledger.Account, id string) any {
	for _, l := range a.Lendings {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// lend answers the books before and after a lending.
func (w *work) lend(r store.Resource, lending cluster.Lending) (before, after ledger.Account, err error) {
	all, err := w.Lendings("")
	if err != nil {
		return before, after, err
	}
	for _, l := range all {
		if l.ID == lending.ID && l.Resource != r.Name {
			return before, after, refuse(http.StatusConflict, "lending %s is one of %s, not of %s; choose another id", l.ID, l.Resource, r.Name)
		}
	}
	if before, err = w.account(r); err != nil {
		return before, after, err
	}
	after = before
	books := judge.LoanBooks{Resource: r.Resource, InUse: before.InUse, Loans: before.Loans, Lendings: before.Lendings}
	answer, err := books.Lend(lending, w.now)
	if answer.Refusal != nil {
		return before, after, refuse(http.StatusConflict, "%s", answer.Refusal.Text)
	}
	w.decided(record.Entry{Lend: &record.LendEntry{Books: books, Lending: lending, Answer: answer}})
	after.Lendings = answer.Lendings
	return before, after, err
}
