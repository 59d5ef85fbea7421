package controller

import (
	"context"
	"errors"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/store"
)

// withhold has the backend keep from jobs what a fence would take out of the total,
// before that is written, and then counts anew what is in use: what a job has taken at
// the last moment stays in the total. It is done in the transaction of the fence, so
// that nothing else changes meanwhile what is withheld.
func (s *Service) withhold(ctx context.Context, books *judge.LoanBooks, in judge.LoanWrite, now cluster.Time) error {
	if in.Fence == nil || s.config.Backend == nil {
		return nil
	}
	foreseen, err := books.Write(in, now)
	if err != nil || foreseen.Refusal != nil || foreseen.Event.After.Fenced <= foreseen.Event.Before.Fenced {
		return nil // nothing would be fenced
	}
	counted, err := s.config.Backend.Withhold(ctx, books.Resource.Name, foreseen.Event.TotalAfter)
	if err != nil {
		return s.unknownOutcome("keep "+books.Resource.Name+" from jobs", err)
	}
	books.InUse = counted.Used + counted.Reserved
	return nil
}

// settleSoon has the backend let jobs use what the books say of a resource, now that
// they have changed. Where that does not come about, the next session sees to it.
func (s *Service) settleSoon(ctx context.Context, resource string) {
	if err := s.settleResource(ctx, resource); err != nil && ctx.Err() == nil {
		s.log.Debug("the backend's tokens are settled after the next session", "resource", resource, "error", err)
		s.wantSession()
	}
}

// settleResource has the backend let jobs use just what the books say of a resource.
func (s *Service) settleResource(ctx context.Context, name string) error {
	return s.store.Update(ctx, func(tx *store.Tx) error {
		total, err := s.total(s.work(tx, self), name)
		if err != nil {
			return err
		}
		_, err = s.config.Backend.Withhold(ctx, name, total)
		return err
	})
}

// settleTokens does so for each resource of which the last reading shows otherwise.
func (s *Service) settleTokens(ctx context.Context) error {
	var wrong []string
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, self)
		for _, r := range s.config.Resources {
			counted, found := w.reading.Resources[r.Name]
			if !found {
				continue
			}
			total, err := s.total(w, r.Name)
			if err != nil {
				return err
			}
			if counted.Withheld != withheldFor(counted, total) {
				wrong = append(wrong, r.Name)
			}
		}
		return nil
	})
	for _, name := range wrong {
		err = errors.Join(err, s.settleResource(ctx, name))
	}
	return err
}

// total answers how many units of a resource the cluster has.
func (s *Service) total(w *work, name string) (int64, error) {
	r, err := w.resource(name)
	if err != nil {
		return 0, err
	}
	account, err := w.account(r)
	return account.Total(), err
}

// withheldFor answers how many units must be withheld so that jobs can use the total.
func withheldFor(r backend.Resource, total int64) int64 {
	return min(max(r.Ceiling-total, 0), r.Ceiling)
}
