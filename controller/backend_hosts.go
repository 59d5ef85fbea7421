package controller

import (
	"context"
	"errors"
	"net/http"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/store"
)

// clear has the backend take a host out before the host is fenced, and counts anew
// what is on it: a host that got a job at the last moment stays.
func (e *hostEntry) clear(ctx context.Context, scheduler Backend, in api.WriteHost) error {
	foreseen, err := e.books.Write(in, e.now)
	if err != nil || foreseen.Refusal != nil || foreseen.Event.After.State != cluster.HostLeaving {
		return nil // it would stay, whatever is on it
	}
	busy, err := scheduler.Remove(ctx, e.books.Row.Name)
	if err != nil {
		return refuse(http.StatusServiceUnavailable, "take %s out of %s: nothing was decided: %v", e.books.Row.Name, scheduler.Name(), err)
	}
	if !busy {
		return nil
	}
	e.books.Jobs = max(e.books.Jobs, 1)
	if e.books.Row.Drain != nil {
		return nil
	}
	return scheduler.Open(ctx, e.books.Row.Name)
}

// settleHosts does what the backend's hosts lack to be as the rows say.
func (s *Service) settleHosts(ctx context.Context) error {
	var steps []backend.Step
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, self)
		if w.reading == nil {
			return nil
		}
		rows, err := w.ElasticHosts("")
		if err != nil {
			return err
		}
		templates, err := w.Templates()
		if err != nil {
			return err
		}
		steps = backend.Arrange(rows, templates, w.reading.View)
		return w.leftOvers(rows, &steps)
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, step := range steps {
		errs = append(errs, s.take(ctx, step))
	}
	return errors.Join(errs...)
}

// leftOvers adds the hosts that the backend still has of rows that are closed.
func (w *work) leftOvers(rows []cluster.ElasticHost, steps *[]backend.Step) error {
	open := map[string]bool{}
	for _, row := range rows {
		open[row.Name] = true
	}
	for _, h := range w.reading.View.Hosts {
		if !h.Removable || open[h.Name] || h.State == backend.HostAwaited && h.Drained {
			continue
		}
		row, was, err := w.ElasticHostNamed(h.Name)
		if err != nil {
			return err
		}
		if was && !row.State.Open() {
			*steps = append(*steps, backend.Step{Do: backend.DoRemove, Host: h.Name, Why: row.ID + " is " + string(row.State)})
		}
	}
	return nil
}

// take takes one step. One that opens a host looks first, in the turn of those who
// fence, whether the host is still to be open.
func (s *Service) take(ctx context.Context, step backend.Step) error {
	scheduler := s.config.Backend
	switch step.Do {
	case backend.DoDeclare:
		return scheduler.Declare(ctx, step.Machine)
	case backend.DoDrain:
		return scheduler.Drain(ctx, step.Host, step.Why)
	case backend.DoRemove:
		_, err := scheduler.Remove(ctx, step.Host)
		return err
	case backend.DoPlaceholder:
		return scheduler.Placeholder(ctx, step.Machine)
	case backend.DoDropPlaceholder:
		return scheduler.DropPlaceholder(ctx, step.Machine.Template)
	}
	return s.store.Update(ctx, func(tx *store.Tx) error {
		row, found, err := tx.ElasticHostNamed(step.Host)
		if err != nil || !found || row.State != cluster.HostJoined && row.State != cluster.HostExpected {
			return err
		}
		return scheduler.Open(ctx, step.Host)
	})
}

// requeueOn has the backend stop the jobs of a host, so that they wait again. One
// that may not is left alone.
func (s *Service) requeueOn(ctx context.Context, host string) error {
	read := s.reading.Load()
	if read == nil {
		return nil
	}
	var errs []error
	for _, i := range read.byHost[host] {
		errs = append(errs, s.config.Backend.Requeue(ctx, read.View.Jobs[i].ID))
	}
	return errors.Join(errs...)
}
