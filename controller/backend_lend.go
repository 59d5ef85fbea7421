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
	var out leaving
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, "")
		r, err := w.resource(lend.Resource)
		if err == nil {
			out, err = w.afterLending(r, id, lend)
		}
		return err
	})
	if err != nil {
		return err
	}
	end, err := s.closeTokens(ctx, out, out.units > 0)
	if err != nil {
		return err
	}
	err = s.lend(ctx, actor, id, lend)
	end()
	s.settleSoon(ctx, lend.Resource)
	return err
}

// afterLending answers what a lending takes out of the total, which is less than none where units come back.
func (w *work) afterLending(r store.Resource, id string, lend api.LendUnits) (leaving, error) {
	before, after, err := w.lend(r, cluster.Lending{ID: id, Resource: r.Name, Units: lend.Units, To: lend.To})
	w.decisions = nil // it is judged again
	return leaving{resource: r.Name, units: before.Total() - after.Total(), total: after.Total()}, err
}

// recountLending counts anew what is in use, where a lending takes units out of the total.
func (s *Service) recountLending(ctx context.Context, w *work, r store.Resource, id string, lend api.LendUnits) error {
	if s.config.Backend == nil {
		return nil
	}
	out, err := w.afterLending(r, id, lend)
	if err != nil || out.units <= 0 {
		return err
	}
	return s.recount(ctx, w, r.Name, out.total)
}
