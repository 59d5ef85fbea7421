package controller

import (
	"context"
	"errors"
	"time"

	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/store"
)

// turnLimit is how long the backend may take to answer while others wait for their turn.
const turnLimit = 3 * time.Second

// withhold has the backend let jobs use so many units of a resource and no more. It is
// called in the turn of a transaction, so that no two are told one after the other what
// is true of different totals.
func (s *Service) withhold(ctx context.Context, resource string, usable int64) (backend.Resource, error) {
	within, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	counted, err := s.config.Backend.Withhold(within, resource, usable)
	if err != nil {
		s.closing.forget(resource)
		if isUnknown(err) {
			s.away(ctx, err)
		}
		return counted, err
	}
	s.closing.keeps(resource, usable, counted.Ceiling-counted.Before, time.Now())
	return counted, nil
}

// settleSoon has the backend let jobs use what the books say of a resource, now that
// they have changed. Where that does not come about, the next session sees to it.
func (s *Service) settleSoon(ctx context.Context, resource string) {
	if s.mayFence() != nil {
		return // the one that leads has been told
	}
	if _, err := s.settleResource(ctx, resource); err != nil && ctx.Err() == nil {
		s.log.Debug("the backend's tokens are settled after the next session", "resource", resource, "error", err)
		s.wantSession()
	}
}

// settleResource has the backend let jobs use just what the books say of a resource, and answers how much that is.
func (s *Service) settleResource(ctx context.Context, name string) (usable int64, err error) {
	err = s.store.Update(ctx, func(tx *store.Tx) error {
		total, err := s.total(s.work(tx, self), name)
		if err != nil {
			return err
		}
		usable = s.closing.usable(name, total)
		_, err = s.withhold(ctx, name, usable)
		return err
	})
	return usable, err
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
	return errors.Join(err, s.settleResources(ctx, wrong))
}

// settleAllTokens does so for each resource.
func (s *Service) settleAllTokens(ctx context.Context) error {
	names := make([]string, len(s.config.Resources))
	for i, r := range s.config.Resources {
		names[i] = r.Name
	}
	return s.settleResources(ctx, names)
}

func (s *Service) settleResources(ctx context.Context, names []string) (errs error) {
	for _, name := range names {
		_, err := s.settleResource(ctx, name)
		if errs = errors.Join(errs, err); isUnknown(err) {
			return errs // it is away, and each call would wait for it
		}
	}
	return errs
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
