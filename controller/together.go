package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/store"
)

// Where several controllers share a state, each serves the API, and one runs the
// sessions. What they know besides the state they tell each other: which hosts
// they have heard of, what the last session came to, and that they are there.

const (
	// beatEvery is how often a controller tells the others what it knows.
	beatEvery = time.Second
	// presentWithin is how long ago a controller that is there may have been seen.
	presentWithin = 10 * cluster.Second
	// doubtAfter is for how long a controller may hear nothing from the others before
	// it believes no more what it knows of hosts: as after a start.
	doubtAfter = 10 * time.Second
	// overlap has a beat look at what was written before the last one but came to be
	// seen after it.
	overlap = 5 * cluster.Second
	// handOverWithin limits how long a controller that stops takes leave.
	handOverWithin = 3 * time.Second
	// DefaultSessionLease is for how long a controller that gives no sign keeps the
	// right to run sessions, where nothing else is said.
	DefaultSessionLease = 5 * cluster.Second
)

func (s *Service) sessionLease() cluster.Duration {
	if ttl := s.config.SessionLease; ttl > 0 {
		return ttl
	}
	return DefaultSessionLease
}

// Follow keeps the controller in step with the others, until ctx ends. Where
// there can be no others, it ends at once.
func (s *Service) Follow(ctx context.Context) {
	if !s.store.Shared() {
		return
	}
	listens := make(chan struct{})
	go func() {
		defer close(listens)
		s.store.Listen(ctx, s.log, s.told)
	}()
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for fine := true; ; {
		err := s.beat(ctx)
		if fine != (err == nil) && ctx.Err() == nil {
			if fine = err == nil; fine {
				s.log.Info("in step with the other controllers again")
			} else {
				s.log.Warn("out of step with the other controllers; trying again every second", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			<-listens
			s.leave(ctx)
			return
		case <-tick.C:
		}
	}
}

// leave tells the others that this controller stops.
func (s *Service) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverWithin)
	defer cancel()
	if err := s.store.Leave(ctx, s.instance); err != nil {
		s.log.Warn("the other controllers do not know yet that this one stops", "error", err)
	}
}

// told takes note of what another controller has changed.
func (s *Service) told(n store.News) {
	if n.Lead || n.All && n.Revision == 0 {
		s.led.Store(nil)
	}
	switch {
	case n.All:
		s.watch.all(n.Revision)
	case n.Revision > 0:
		s.watch.advance(n.Revision, n.Hosts)
	}
	s.wantSession()
}

// beat tells the others what this controller has heard since the last beat, and
// learns what they have.
func (s *Service) beat(ctx context.Context) error {
	b := store.Beat{Instance: s.instance, Name: s.config.Name, Release: s.config.Release}
	b.Heard, b.After = s.news()
	last := s.last.Load()
	if last != nil && last != s.toldSession {
		text, err := json.Marshal(last)
		if err != nil {
			return fmt.Errorf("encode the last session: %w", err)
		}
		b.Session, b.SessionAt = text, last.At
	}
	pulse, err := s.store.Beat(ctx, b)
	if err != nil {
		s.notTold(b.Heard)
		return err
	}
	s.toldSession = last
	s.learned(pulse)
	return nil
}

// news answers which hosts were heard of since the last beat, and since when
// to ask what others have heard.
func (s *Service) news() (heard map[string]cluster.Time, after cluster.Time) {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	s.doubt()
	heard, s.untold = s.untold, map[string]cluster.Time{}
	if s.learnedUpTo == 0 {
		return heard, s.now().Add(-s.silence()) // what is older may be our own silence, not the host's
	}
	return heard, s.learnedUpTo.Add(-overlap)
}

// notTold keeps what the others could not be told.
func (s *Service) notTold(heard map[string]cluster.Time) {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	for host, at := range heard {
		s.untold[host] = max(at, s.untold[host])
	}
}

func (s *Service) learned(pulse store.Pulse) {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	s.lastBeat, s.learnedUpTo = time.Now(), pulse.Now
	for host, at := range pulse.Heard {
		s.seen[host], s.heard[host] = max(at, s.seen[host]), true
	}
}

// doubt forgets which hosts were heard of where this controller was cut off from
// the others, or stopped, or the state was away: then it is no wonder that nothing
// was heard, and each host is given the time that it has after a start.
func (s *Service) doubt() {
	if !s.store.Shared() || s.lastBeat.IsZero() || time.Since(s.lastBeat) < doubtAfter {
		return
	}
	clear(s.seen)
	clear(s.heard)
	s.lastBeat, s.learnedUpTo = time.Time{}, 0
}

// ledElsewhere answers for how long at least another controller runs the
// sessions; 0 where that is not known.
func (s *Service) ledElsewhere() time.Duration {
	if until := s.led.Load(); until != nil {
		return max(time.Until(*until), 0)
	}
	return 0
}

// askWhoLeads asks who runs the sessions, without waiting for anyone.
func (s *Service) askWhoLeads(ctx context.Context) error {
	return s.store.Read(ctx, func(tx *store.Tx) error {
		lead, err := tx.Lead()
		if err == nil && lead.Instance != s.instance {
			s.follows(lead, tx.Now())
		}
		return err
	})
}

// follows notes that another controller runs the sessions.
func (s *Service) follows(lead store.Lead, now cluster.Time) {
	s.leads.Store(false)
	until := time.Now().Add(lead.Until.Sub(now).Std())
	s.led.Store(&until)
}

// mayLead takes or keeps the right to run sessions, in the transaction of one.
func (s *Service) mayLead(tx *store.Tx) (bool, error) {
	if !s.store.Shared() {
		return true, nil
	}
	lead, err := tx.TakeLead(s.instance, s.config.Name, s.sessionLease())
	if err != nil {
		return false, err
	}
	if lead.Instance != s.instance {
		s.follows(lead, tx.Now())
		return false, nil
	}
	if !s.leads.Swap(true) {
		s.log.Info("this controller runs the sessions now", "epoch", lead.Epoch)
	}
	return true, nil
}

// keepLead keeps the right to run sessions while there is none to run.
func (s *Service) keepLead(ctx context.Context) {
	if !s.leads.Load() {
		return
	}
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		_, err := s.mayLead(tx)
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the right to run sessions was not prolonged", "error", err)
	}
}

// prolong has the right to run sessions end no sooner than its time after the
// session's end, however long that took.
func (s *Service) prolong(tx *store.Tx) error {
	if !s.store.Shared() {
		return nil
	}
	return tx.ProlongLead(s.sessionLease())
}

// HandOver lets another controller run the sessions, as this one stops.
func (s *Service) HandOver(ctx context.Context) {
	if !s.leads.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverWithin)
	defer cancel()
	err := s.store.Update(ctx, func(tx *store.Tx) error { return tx.GiveUpLead(s.instance) })
	if err != nil {
		s.log.Warn("the right to run sessions was not given up; it ends by itself", "error", err)
	}
}

// settled tells whether nothing may have become free since this controller's last session.
func (s *Service) settled(tx *store.Tx, here bool) bool {
	_, freed := tx.Turn()
	return here && freed <= s.settledAt.Load()
}

// controllerStatus answers the controllers that are there.
func (w *work) controllerStatus(st *api.Status) error {
	if !w.Shared() {
		return nil
	}
	lead, err := w.Lead()
	if err != nil {
		return err
	}
	rows, err := w.Controllers()
	now := w.Now() // as they said it, whatever clock the work has
	for _, c := range rows {
		if now.Sub(c.Seen) > presentWithin {
			continue
		}
		st.Controllers = append(st.Controllers, api.ControllerStatus{
			Name: c.Name, Release: c.Release, Since: c.Since, Seen: c.Seen, Leads: c.Instance == lead.Instance && lead.Until > now,
		})
	}
	return err
}

// claim refuses the state of another cluster.
func (s *Service) claim(w *work) error {
	owner, err := w.Claim(s.config.Cluster)
	if err == nil && owner != s.config.Cluster {
		err = fmt.Errorf("the state in controller.state is that of cluster %s, not of %s; name another database or schema", owner, s.config.Cluster)
	}
	return err
}

// lastToldSession answers what the last session came to that another controller
// told of, if it is newer than one of our own.
func lastToldSession(tx *store.Tx, own api.Session) (api.Session, error) {
	if !tx.Shared() {
		return own, nil
	}
	at, text, err := tx.LastSession()
	if err != nil || text == nil || at <= own.At {
		return own, err
	}
	var told api.Session
	if err := json.Unmarshal(text, &told); err != nil {
		return own, errors.Join(errors.New("the last session that another controller told of cannot be read"), err)
	}
	return told, nil
}
