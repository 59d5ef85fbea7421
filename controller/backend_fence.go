package controller

import (
	"context"
	"net/http"
	"sync"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/store"
)

// A fence behind another's scheduler has two steps. First the tokens are withheld, or
// the host is drained, and that is let lie until the scheduler cannot forget it any
// more, even if it is killed. Then, in one transaction, what is in use is counted anew,
// and only what nobody can use any more leaves the books.

// closing is what is kept from jobs on behalf of fences that are under way.
type closing struct {
	mu     sync.Mutex
	fences map[*fence]bool
	tokens map[string][]withheld // by resource; each is later than the one before it, and less is usable
}

// fence is one fence under way: of units that leave the total of a resource, and are not usable meanwhile, or of a host.
type fence struct {
	resource string
	units    int64
	host     string
}

// withheld is since when jobs cannot use more of a resource.
type withheld struct {
	usable int64
	since  time.Time
}

func newClosing() *closing {
	return &closing{fences: map[*fence]bool{}, tokens: map[string][]withheld{}}
}

// begin puts a fence under way, until the answered function is called.
func (c *closing) begin(f *fence) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fences[f] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.fences, f)
	}
}

// usable answers how many units of a resource jobs may use, of a total.
func (c *closing) usable(resource string, total int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.fences {
		if f.resource == resource {
			total -= f.units
		}
	}
	return max(total, 0)
}

// closes tells whether a fence of the host is under way.
func (c *closing) closes(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.fences {
		if f.host == host && host != "" {
			return true
		}
	}
	return false
}

// keeps notes that jobs can use so many units of a resource from now on and no more, and how many they could use
// before. Where that is more than was known nothing is known any more of what they could use earlier.
func (c *closing) keeps(resource string, usable, before int64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.tokens[resource]
	if n := len(all); n > 0 && before > all[n-1].usable {
		all = nil
	}
	next := withheld{usable, now}
	for n := len(all); n > 0 && all[n-1].usable <= usable; n-- { // since then it was never more than it is now
		next.since, all = all[n-1].since, all[:n-1]
	}
	c.tokens[resource] = append(all, next)
}

// since answers since when jobs can use no more than so many units of a resource.
func (c *closing) since(resource string, usable int64, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.tokens[resource] {
		if w.usable <= usable {
			return w.since
		}
	}
	return now
}

// forget drops since when jobs cannot use more of a resource: a change of which nobody knows
// what became is news.
func (c *closing) forget(resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, resource)
}

// fenceLoan fences units of a loan behind the backend.
func (s *Service) fenceLoan(ctx context.Context, actor string, in judge.LoanWrite) (api.Written, error) {
	most, f, err := s.foresee(ctx, in)
	if err != nil {
		return api.Written{}, err
	}
	end, err := s.closeTokens(ctx, f, most > 0)
	if err != nil {
		return api.Written{}, err
	}
	written, err := s.writeLoan(ctx, actor, in, most)
	end()
	s.settleSoon(ctx, in.At().Resource)
	return written, err
}

// foresee answers how many units of the loan a fence would take, recalled ones too, which have left the total.
func (s *Service) foresee(ctx context.Context, in judge.LoanWrite) (taken int64, f fence, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, "")
		w.acting = actingOf(ctx)
		_, books, err := w.loanBooks(in)
		if err != nil {
			return err
		}
		answer, err := books.Write(in, w.now)
		taken, f = unitsTaken(answer), fence{resource: books.Resource.Name, units: unitsLeaving(answer)}
		return err
	})
	return taken, f, err
}

// unitsTaken answers how many units a fence takes out of use.
func unitsTaken(a judge.LoanAnswer) int64 {
	if a.Refusal != nil {
		return 0
	}
	return a.Event.After.Fenced - a.Event.Before.Fenced
}

// unitsLeaving answers how many units it takes out of the total.
func unitsLeaving(a judge.LoanAnswer) int64 { return a.Event.TotalBefore - a.Event.TotalAfter }

// closeTokens keeps from jobs the units of a fence, and waits until that lasts. They are kept so
// until the answered function is called.
func (s *Service) closeTokens(ctx context.Context, f fence, needed bool) (end func(), err error) {
	if !needed {
		return func() {}, nil
	}
	if err := s.mayFence(); err != nil {
		return nil, err
	}
	end = s.closing.begin(&f)
	// So much is usable when those under way have taken theirs too, which they do before this one.
	usable, err := s.settleResource(ctx, f.resource)
	if err != nil {
		end()
		return nil, s.unknownOutcome("keep "+f.resource+" from jobs", err)
	}
	if err := s.lasts(ctx, s.closing.since(f.resource, usable, time.Now())); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// lasts waits until a change that was made then outlives any failure of the backend.
func (s *Service) lasts(ctx context.Context, since time.Time) error {
	wait := time.Until(since.Add(s.config.Backend.Lasting()))
	if wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}

// hasLasted tells whether jobs can use no more than so many units of a resource for so long that it outlives
// any failure of the backend.
func (s *Service) hasLasted(resource string, usable int64) bool {
	now := time.Now()
	return now.Sub(s.closing.since(resource, usable, now)) >= s.config.Backend.Lasting()
}

// recount has the backend say what is in use of a resource now that units of it cannot be used, in the
// transaction that takes them out of the books: what a job has taken at the last moment stays. What
// other fences keep from jobs stays so.
func (s *Service) recount(ctx context.Context, w *work, name string, units int64) error {
	if err := s.mustAnswer(); err != nil {
		return err
	}
	total, err := s.total(w, name)
	if err != nil {
		return err
	}
	after := total - units
	if !s.hasLasted(name, after) {
		return refuse(http.StatusServiceUnavailable, "%s changed while its units were about to be fenced; ask again", name)
	}
	counted, err := s.withhold(ctx, name, min(after, s.closing.usable(name, total)))
	if err != nil {
		return s.unknownOutcome("count "+name, err)
	}
	if !s.hasLasted(name, after) {
		return refuse(http.StatusServiceUnavailable, "%s had forgotten what is withheld of %s; ask again", s.config.Backend.Name(), name)
	}
	used, _ := w.reading.inUse(name)
	w.counted = map[string]int64{name: max(used, counted.Used) + counted.Reserved + counted.Elsewhere}
	return nil
}

// recountLoan does so for the fence of a loan, of which it takes no more than was foreseen.
func (s *Service) recountLoan(ctx context.Context, w *work, books *judge.LoanBooks, in judge.LoanWrite, most int64) error {
	if in.Fence == nil || s.config.Backend == nil {
		return nil
	}
	books.Most = &most
	foreseen, err := books.Write(in, w.now)
	if err != nil || unitsTaken(foreseen) == 0 {
		return nil
	}
	if err := s.recount(ctx, w, books.Resource.Name, unitsLeaving(foreseen)); err != nil {
		return err
	}
	books.InUse = w.counted[books.Resource.Name]
	return nil
}

// fenceHost fences a host behind the backend.
func (s *Service) fenceHost(ctx context.Context, actor string, in api.WriteHost) (api.HostWritten, error) {
	if err := s.mayFence(); err != nil {
		return api.HostWritten{}, err
	}
	end, err := s.closeHost(ctx, in)
	if err != nil {
		return api.HostWritten{}, err
	}
	written, err := s.writeHost(ctx, actor, in)
	end()
	if err == nil && written.Host.State == cluster.HostJoined {
		s.wantSession() // which opens it again
	}
	return written, err
}

// closeHost drains a host that a fence would take, and waits until that lasts.
func (s *Service) closeHost(ctx context.Context, in api.WriteHost) (end func(), err error) {
	var e *hostEntry
	leaves := false
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, "")
		w.acting = actingOf(ctx)
		read, err := w.hostEntry(in, s.config.Hosts)
		if err == nil {
			e, leaves = read, read.leaves(in)
		}
		return err
	})
	if err != nil || !leaves {
		return func() {}, err
	}
	host := e.books.Row.Name
	end = s.closing.begin(&fence{host: host})
	if err := s.config.Backend.Drain(ctx, host, "it is about to leave"); err != nil {
		end()
		return nil, s.unknownOutcome("drain "+host, err)
	}
	if err := s.lasts(ctx, time.Now()); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// leaves tells whether a fence would take the host out of the cluster.
func (e *hostEntry) leaves(in api.WriteHost) bool {
	foreseen, err := e.books.Write(in, e.now)
	return err == nil && foreseen.Refusal == nil && foreseen.Event.After.State == cluster.HostLeaving
}

// clear has the backend take a host out before the host is fenced, and counts anew
// what is on it: a host that got a job at the last moment stays.
func (e *hostEntry) clear(ctx context.Context, scheduler Backend, in api.WriteHost) error {
	if !e.leaves(in) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	busy, err := scheduler.Remove(ctx, e.books.Row.Name)
	if err != nil {
		return refuse(http.StatusServiceUnavailable, "take %s out of %s: nothing was decided: %v", e.books.Row.Name, scheduler.Name(), err)
	}
	if !busy {
		return nil
	}
	e.books.Jobs = max(e.books.Jobs, 1)
	if in.Lapse != nil {
		return refuse(http.StatusServiceUnavailable, "host %s has come after all, and jobs are on it; ask again once they have ended", e.books.Row.ID)
	}
	return nil
}
