package controller

import (
	"context"
	"errors"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/store"
)

// isTheBackends tells whether the backend has a host of that name for good.
func (w *work) isTheBackends(name string) bool {
	if w.reading == nil {
		return false
	}
	h := w.reading.host(name)
	return h != nil && !h.Removable && !h.Ours
}

// settleHosts does what the backend's hosts lack to be as the rows say.
func (s *Service) settleHosts(ctx context.Context) error {
	var steps []backend.Step
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, self)
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
		err := s.take(ctx, step)
		if errs = append(errs, err); isUnknown(err) {
			break // it is away, and each call would wait for it
		}
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
		if open[h.Name] || !h.Removable && (!h.Ours || h.Drained || h.State == backend.HostAwaited) {
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
		return scheduler.Placeholder(ctx, step.Machine.Template, step.Machine)
	case backend.DoDropPlaceholder:
		return scheduler.DropPlaceholder(ctx, step.Machine.Template)
	}
	return s.store.Update(ctx, func(tx *store.Tx) error {
		row, found, err := tx.ElasticHostNamed(step.Host)
		if err != nil || !found || row.State != cluster.HostJoined || s.closing.closes(step.Host) {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, turnLimit)
		defer cancel()
		return scheduler.Open(ctx, step.Host)
	})
}
