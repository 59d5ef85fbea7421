package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/lease"
)

// authority is a controller that gives leases, on the clock of the test. It can
// be cut off, and each of its answers can be late.
type authority struct {
	mu   sync.Mutex
	book lease.Book
	cut  bool
	late time.Duration
}

var shortRules = cluster.LeaseRules{TimeToLive: 15 * cluster.Second, Settle: cluster.Minute}

type caller struct {
	*authority
	name string
}

func (c caller) TendLeases(ctx context.Context, in api.TendLeases) (api.Tended, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return api.Tended{}, errors.New("cut off")
	}
	_, err := c.book.Tend(lease.Call{
		Name: c.name, Instance: in.Instance, Owns: in.Owns, Prefers: in.Prefers, Gives: in.Gives, Leaving: in.Leaving, Stops: in.Stops,
	}, cluster.TimeOf(time.Now()), shortRules)
	if err != nil {
		return api.Tended{}, err
	}
	out := api.Tended{TimeToLive: shortRules.TimeToLive}
	for _, l := range c.book.Held(c.name) {
		out.Leases = append(out.Leases, api.HeldLease{Provider: l.Provider, Epoch: l.Epoch, MoveTo: l.MoveTo})
	}
	time.Sleep(c.late) // the answer is under way
	return out, nil
}

// may tells whether the controller would let a change in under the claim.
func (a *authority) may(name string, claim api.Claim) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.book.Check(claim.Provider, name, claim.Epoch, cluster.TimeOf(time.Now()))
}

func (a *authority) setCut(cut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = cut
}

// station is a provisioner under test: it notes what it does under which lease.
type station struct {
	t *testing.T
	*tender
	name   string
	mu     sync.Mutex
	mans   []*held
	stop   func()
	leaves time.Duration // what a post takes to leave, if its lease lasts
}

// noGuard guards nothing.
type noGuard struct{}

func (noGuard) Hold(string, time.Duration) error { return nil }

func (noGuard) Run(string, int) (func(), error) { return func() {}, nil }

// brokenGuard cannot be told.
type brokenGuard struct{ noGuard }

func (brokenGuard) Hold(string, time.Duration) error { return errors.New("it has ended") }

func TestNothingMayRunWhereNothingGuardsIt(t *testing.T) {
	h := hold(api.Claim{Provider: "p", Epoch: 1}, time.Now().Add(time.Hour), brokenGuard{})
	defer h.timer.Stop()
	if h.Valid() {
		t.Error("something may be begun without a guard")
	}
}

type testPost struct {
	s     *station
	lease *held
}

func (p testPost) Leave() {
	select {
	case <-time.After(p.s.leaves):
	case <-p.lease.over.Done():
	}
}

func newStation(t *testing.T, a *authority, name string) *station {
	s := &station{t: t, name: name}
	s.tender = &tender{
		controller: caller{a, name}, guard: noGuard{}, instance: name + "-1", owns: a.book.Providers, log: slog.New(slog.DiscardHandler), changed: func() {},
		kick: make(chan struct{}, 1), posts: map[string]*manned{}, life: firstLife,
		man: func(lease *held) (post, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.mans = append(s.mans, lease)
			return testPost{s, lease}, nil
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(ctx)
	}()
	s.stop = func() { cancel(); <-done }
	return s
}

// acts answers the providers for which something may be begun now.
func (s *station) acts() (acts []api.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.mans {
		if h.Valid() {
			acts = append(acts, h.Claim)
		}
	}
	return acts
}

func (s *station) wants(want ...api.Claim) {
	s.t.Helper()
	if got := s.acts(); !slices.Equal(got, want) {
		s.t.Errorf("at %s %s acts under %v, want %v", time.Now().Format(time.TimeOnly), s.name, got, want)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestALeaseIsKeptAsLongAsTheControllerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{book: lease.Book{Providers: []string{"p"}}}
		s := newStation(t, a, "a")
		defer s.stop()
		pass(10 * time.Minute)
		s.wants(api.Claim{Provider: "p", Epoch: 1})
		if s.Ready() != nil || !s.Holds("p") {
			t.Errorf("ready: %v, holds: %t", s.Ready(), s.Holds("p"))
		}
	})
}

func TestWhoIsCutOffStopsBeforeTheControllerGivesItsLeaseToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{book: lease.Book{Providers: []string{"p"}}, late: 2 * time.Second}
		s := newStation(t, a, "a")
		defer s.stop()
		pass(time.Minute)
		a.setCut(true)
		for range 40 {
			pass(500 * time.Millisecond)
			for _, claim := range s.acts() {
				if err := a.may("a", claim); err != nil {
					t.Errorf("it acts although its lease is over: %v", err)
				}
			}
		}
		s.wants()
		if s.Ready() == nil {
			t.Error("who is cut off counts as ready")
		}
		a.setCut(false)
		pass(20 * time.Second)
		s.wants(api.Claim{Provider: "p", Epoch: 2})
	})
}

// A process that is stopped for longer than its lease sees, before anything else,
// that it may not act: no timer has run, but the clock has.
func TestWhoSleptThroughItsLeaseBeginsNothing(t *testing.T) {
	h := hold(api.Claim{Provider: "p", Epoch: 1}, time.Now().Add(-time.Millisecond), noGuard{})
	h.timer.Stop()
	if h.Valid() || h.renew(time.Now().Add(time.Hour)) {
		t.Error("a lease that is over is used, or renewed")
	}
	if !errors.Is(context.Cause(h.over), errLeaseOver) {
		t.Errorf("what runs under it goes on: %v", context.Cause(h.over))
	}
}

func TestALeaseThatIsToMoveIsGivenUpOnceNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{book: lease.Book{Providers: []string{"p"}}}
		s := newStation(t, a, "a")
		defer s.stop()
		pass(time.Second)
		other := newStation(t, a, "b")
		defer other.stop()
		pass(time.Second)
		s.leaves = 25 * time.Second
		a.mu.Lock()
		_, err := a.book.Move("p", "b", cluster.TimeOf(time.Now()))
		a.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		pass(20 * time.Second)
		s.wants(api.Claim{Provider: "p", Epoch: 1}) // what runs is renewed meanwhile
		other.wants()
		pass(20 * time.Second)
		s.wants()
		other.wants(api.Claim{Provider: "p", Epoch: 2})
	})
}

func TestWhoStopsEndsWhatRunsAndGivesItsLeasesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{book: lease.Book{Providers: []string{"p", "q"}}}
		s := newStation(t, a, "a")
		pass(time.Second)
		s.leaves = 40 * time.Second
		s.stop()
		began := time.Now()
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.finish(limit)
		if took := time.Since(began); took < 40*time.Second || took > 45*time.Second {
			t.Errorf("it took %s to end what took 40s", took)
		}
		for _, l := range a.book.Leases {
			if l.Holder != "" {
				t.Errorf("a lease is left behind: %+v", l)
			}
		}
		s.wants()
	})
}

func TestAStopThatTakesTooLongEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{book: lease.Book{Providers: []string{"p"}}}
		s := newStation(t, a, "a")
		pass(time.Second)
		s.leaves = time.Hour
		s.stop()
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.finish(limit)
		s.wants()
		synctest.Wait()
		if len(a.book.Provisioners) != 0 {
			t.Errorf("who stopped is still there: %+v", a.book.Provisioners)
		}
	})
}

func TestARefusedChangeEndsTheLeaseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{book: lease.Book{Providers: []string{"p"}}}
		s := newStation(t, a, "a")
		defer s.stop()
		pass(time.Second)
		s.mans[0].lose()
		pass(time.Second) // nothing runs any more, so it may act anew, under another epoch
		s.wants(api.Claim{Provider: "p", Epoch: 2})
	})
}
