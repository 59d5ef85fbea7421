package controller

import (
	"context"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/store"
)

// lendBehind lends units behind the backend: like what goes back to a lender, they are kept
// from jobs before they leave the total.
func (s *Service) lendBehind(ctx context.Context, actor, id string, lend api.LendUnits) error {
	f := fence{resource: lend.Resource}
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, "")
		r, err := w.resource(lend.Resource)
		if err == nil {
			f.units, err = w.leaves(r, id, lend)
		}
		return err
	})
	if err != nil {
		return err
	}
	end, err := s.closeTokens(ctx, f, f.units > 0)
	if err != nil {
		return err
	}
	err = s.lend(ctx, actor, id, lend)
	end()
	s.settleSoon(ctx, lend.Resource)
	return err
}

// leaves answers how many units a lending takes out of the total: less than none where units come back.
func (w *work) leaves(r store.Resource, id string, lend api.LendUnits) (int64, error) {
	before, after, err := w.lend(r, cluster.Lending{ID: id, Resource: r.Name, Units: lend.Units, To: lend.To})
	w.decisions = nil // it is judged again
	return before.Total() - after.Total(), err
}

// recountLending counts anew what is in use, where a lending takes units out of the total.
func (s *Service) recountLending(ctx context.Context, w *work, r store.Resource, id string, lend api.LendUnits) error {
	if s.config.Backend == nil {
		return nil
	}
	units, err := w.leaves(r, id, lend)
	if err != nil || units <= 0 {
		return err
	}
	return s.recount(ctx, w, r.Name, units)
}
