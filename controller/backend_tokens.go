package controller

import (
	"context"
	"errors"
	"time"

	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/store"
)

// settleSoon has the backend let jobs use what the books say of a resource, now that
// they have changed. Where that does not come about, the next session sees to it.
func (s *Service) settleSoon(ctx context.Context, resource string) {
	if s.mustLead() != nil {
		return // the one that does has been told
	}
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
		usable := s.closing.usable(name, total)
		counted, err := s.config.Backend.Withhold(ctx, name, usable)
		if err == nil {
			s.closing.keeps(name, usable, counted.Changed, time.Now())
		}
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
			if counted.Withheld != withheldFor(counted, s.closing.usable(r.Name, total)) {
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

// settleAllTokens has the backend let jobs use just what the books say of each resource.
func (s *Service) settleAllTokens(ctx context.Context) {
	for _, r := range s.config.Resources {
		err := s.settleResource(ctx, r.Name)
		var unknown *backend.Unknown
		if errors.As(err, &unknown) {
			return // it is away, and each call would wait for it
		}
		if err != nil {
			s.log.Debug("the backend's tokens are not settled", "resource", r.Name, "error", err)
		}
	}
}
