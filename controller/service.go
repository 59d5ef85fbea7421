// Package controller is the authority of a cluster: it keeps hosts, jobs, the
// ledger, the catalog and demand, runs the sessions of the builtin backend, and
// says over its API who may change what.
//
// [Service] is what it does, [Server] is how it is reached. Every change is one
// transaction that also appends an audit record, which clients can await.
package controller

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/scheduling"
)

// Config says what cluster a controller is the authority of.
type Config struct {
	Cluster         string
	SessionInterval cluster.Duration
	Resources       []cluster.SharedResource
	Providers       []string
	Policy          scheduling.Policy
	Thresholds      []scheduling.Threshold
	Hosts           cluster.HostRules
	// Leases say for how long provisioners hold leases; none are the usual rules.
	Leases cluster.LeaseRules
	// Authority makes the certificates of elastic hosts; nil where there are none.
	Authority Authority
	// Record takes down what is decided; nil where no one wants that.
	Record Record

	// Name and Release are those of this controller, of those that share the state.
	Name, Release string
	// SessionLease is for how long a controller that gives no sign keeps the right
	// to run sessions; 0 is the usual time.
	SessionLease cluster.Duration
	// Backend schedules the jobs; nil where this controller does.
	Backend Backend
}

// Record takes down what the controller decides. It must not make the controller wait.
type Record interface {
	Note(e record.Entry)
}

// Authority makes certificates.
type Authority interface {
	// SignRequest answers the certificate of a peer for the key of a PEM request.
	SignRequest(request []byte, peer pki.Peer) ([]byte, error)
}

// Service is the controller without its network.
type Service struct {
	config Config
	store  *store.Store
	// now is the time by the given clock, or, where there is none, that of the state
	// as far as it can be told without asking.
	now   func() cluster.Time
	given bool
	log   *slog.Logger
	watch *watch
	// kick asks for a session; it holds at most one request.
	kick chan struct{}

	seenMu sync.Mutex
	heard  map[string]bool         // those of seen that were heard of since the start
	seen   map[string]cluster.Time // hosts, when they were last heard of
	// untold are those heard of here of which the other controllers do not know yet;
	// lastBeat is when they were told last, and learnedUpTo until when what they heard is known.
	untold      map[string]cluster.Time
	lastBeat    time.Time
	learnedUpTo cluster.Time

	warnedMu sync.Mutex
	warned   map[string]bool         // what was warned of already
	reported map[string]cluster.Time // hosts, when it was written down last that they were refused

	// last is what the last session since the start came to.
	last atomic.Pointer[api.Session]
	// freed tells that something may have become free since then.
	freed atomic.Bool

	// instance names this process among the controllers that share the state.
	instance string
	// leads tells that it had the right to run sessions last; led is until when
	// another has it at least.
	leads atomic.Bool
	led   atomic.Pointer[time.Time]
	// settledAt is the transaction before the last session that came to an end here.
	settledAt atomic.Int64
	// toldSession is the last session that the others know of.
	toldSession *api.Session

	// reading is what the backend has, where there is one, as it was read last, with what
	// the session found of it; trouble is why it is not read.
	reading atomic.Pointer[reading]
	trouble trouble
	// unsettled is what the backend was asked to change and did not.
	unsettled trouble
	// guesses are held against what the backend then does; closing is what fences that are
	// under way keep from jobs.
	guesses backend.Guesses
	closing *closing
}

// self is the actor of what the controller does by itself.
const self = "controller/session"

// NewService brings the store in line with the configuration. It refuses one
// that no longer has a resource of which units are borrowed, lent or in use. Without
// a clock, the time is that of the state.
func NewService(ctx context.Context, config Config, st *store.Store, now func() cluster.Time, log *slog.Logger) (*Service, error) {
	s := &Service{
		config: config, store: st, now: now, given: now != nil, log: log, instance: rand.Text(), untold: map[string]cluster.Time{},
		watch: newWatch(), kick: make(chan struct{}, 1), seen: map[string]cluster.Time{}, heard: map[string]bool{}, warned: map[string]bool{}, reported: map[string]cluster.Time{},
		closing: newClosing(),
	}
	if config.Backend != nil {
		s.reading.Store(newReading(backend.View{}))
	}
	if now == nil {
		s.now = st.Now
	}
	if err := s.configure(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// at answers the time of a transaction: that of the state, which is the same at
// all controllers, unless a clock was given.
func (s *Service) at(tx *store.Tx) cluster.Time {
	if s.given {
		return s.now()
	}
	return tx.Now()
}

// work is one change in progress: a transaction, who wants it, and when.
type work struct {
	*store.Tx
	actor string
	now   cluster.Time
	// acting is the provisioner that calls; nil for anyone else.
	acting *acting
	// reading is what the backend has; nil for the builtin one, of which the store knows all.
	// counted is what it was just asked for of what is in use.
	reading *reading
	counted map[string]int64
	// revision is that of the last record; 0 while nothing was recorded.
	revision int64
	// assigned are the hosts of which the jobs changed, or that are gone.
	assigned []string
	// decisions are for the record, once all else is done.
	decisions []record.Entry
}

// decided tells what was decided.
func (w *work) decided(e record.Entry) {
	e.At = w.now
	w.decisions = append(w.decisions, e)
}

// takeDown has the record take down what was decided. It is called before the transaction ends, in which no one
// else decides anything, so that the record has the order of the decisions.
func (s *Service) takeDown(w *work) {
	if s.config.Record == nil {
		return
	}
	for _, e := range w.decisions {
		s.config.Record.Note(e)
	}
}

// assign tells that the jobs of a host changed.
func (w *work) assign(host string) error {
	w.assigned = append(w.assigned, host)
	return w.MarkAssigned(host, w.revision)
}

// update runs one change in one transaction, and tells those who wait.
func (s *Service) update(ctx context.Context, actor string, fn func(w *work) error) error {
	s.freed.Store(true)
	return s.add(ctx, actor, func(w *work) error {
		w.Frees()
		return fn(w)
	})
}

// add is update for what makes nothing free.
func (s *Service) add(ctx context.Context, actor string, fn func(w *work) error) error {
	var w *work
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		w = s.work(tx, actor)
		w.acting = actingOf(ctx)
		if err := fn(w); err != nil {
			return err
		}
		w.Announce(store.News{Revision: w.revision, Hosts: w.assigned})
		s.takeDown(w)
		return nil
	})
	if err != nil {
		return err
	}
	if w.revision > 0 {
		s.watch.advance(w.revision, w.assigned)
		s.wantSession()
	}
	return nil
}

// record appends an audit record; before and after may be nil.
func (w *work) record(c api.Change, before, after any) error {
	c.At, c.Actor = w.now, w.actor
	for _, side := range []struct {
		to   *json.RawMessage
		from any
	}{{&c.Before, before}, {&c.After, after}} {
		if side.from == nil {
			continue
		}
		data, err := json.Marshal(side.from)
		if err != nil {
			return fmt.Errorf("record change of %s: %w", c.Subject, err)
		}
		*side.to = data
	}
	revision, err := w.Append(c)
	w.revision = revision
	return err
}

// configure brings the resources in line with the configuration.
func (s *Service) configure(ctx context.Context) error {
	return s.update(ctx, "controller/configuration", func(w *work) error {
		if err := s.claim(w); err != nil {
			return err
		}
		stored, err := w.Resources()
		if err != nil {
			return err
		}
		for _, old := range stored {
			if !slices.ContainsFunc(s.config.Resources, func(r cluster.SharedResource) bool { return r.Name == old.Name }) {
				if err := w.removeResource(old); err != nil {
					return err
				}
			}
		}
		for _, r := range s.config.Resources {
			i := slices.IndexFunc(stored, func(old store.Resource) bool { return old.Name == r.Name })
			if i < 0 {
				err = w.addResource(r)
			} else {
				err = w.changeResource(stored[i], r)
			}
			if err != nil {
				return err
			}
		}
		return s.forgetOffers(w)
	})
}

func (w *work) removeResource(old store.Resource) error {
	account, err := w.account(old)
	if err != nil {
		return err
	}
	if len(account.Loans) > 0 || len(account.Lendings) > 0 || account.InUse > 0 {
		return fmt.Errorf("resource %s is gone from the configuration but has %d open loans, %d lendings and %d units in use: put it back, wait until none is left, then remove it",
			old.Name, len(account.Loans), len(account.Lendings), account.InUse)
	}
	if err := w.DeleteResource(old.Name); err != nil {
		return err
	}
	return w.record(api.Change{Kind: api.KindResource, Subject: old.Name, Resource: old.Name, Why: "removed from the configuration", TotalBefore: account.Total()}, old.Resource, nil)
}

func (w *work) addResource(r cluster.SharedResource) error {
	if err := w.SaveResource(store.Resource{Name: r.Name, ConfiguredOwned: r.Owned, Resource: r, Idle: cluster.IdleClock{}}); err != nil {
		return err
	}
	return w.record(api.Change{Kind: api.KindResource, Subject: r.Name, Resource: r.Name, Why: "configured", TotalAfter: r.Owned}, nil, r)
}

// changeResource takes over a changed configuration. The owned number follows
// it only when the configuration's own number changed.
func (w *work) changeResource(old store.Resource, r cluster.SharedResource) error {
	next := old
	next.Resource, next.ConfiguredOwned = r, r.Owned
	if r.Owned == old.ConfiguredOwned {
		next.Resource.Owned = old.Resource.Owned
	}
	before, _ := json.Marshal(old.Resource)
	after, _ := json.Marshal(next.Resource)
	if string(before) == string(after) && old.ConfiguredOwned == r.Owned {
		return nil
	}
	return w.replaceResource(old, next, "the configuration changed")
}

func (w *work) replaceResource(old, next store.Resource, why string) error {
	account, err := w.account(old)
	if err != nil {
		return err
	}
	if err := w.SaveResource(next); err != nil {
		return err
	}
	change := api.Change{Kind: api.KindResource, Subject: old.Name, Resource: old.Name, Why: why, TotalBefore: account.Total()}
	account.Owned = next.Resource.Owned
	change.TotalAfter = account.Total()
	return w.record(change, old.Resource, next.Resource)
}

// forgetOffers drops the offers of providers that are gone from the configuration.
func (s *Service) forgetOffers(w *work) error {
	offers, err := w.Offers()
	for _, o := range offers {
		if !slices.Contains(s.config.Providers, o.Provider) {
			err = errors.Join(err, w.withdrawOffer(o, o.Provider+" is gone from the configuration"))
		}
	}
	return errors.Join(err, s.forgetTemplates(w))
}

// resource finds a shared resource by name.
func (w *work) resource(name string) (store.Resource, error) {
	all, err := w.Resources()
	if err != nil {
		return store.Resource{}, err
	}
	i := slices.IndexFunc(all, func(r store.Resource) bool { return r.Name == name })
	if i < 0 {
		return store.Resource{}, refuse(http.StatusNotFound, "there is no shared resource %q; `xce-elastic status` lists them", name)
	}
	return all[i], nil
}

// account reads the books of one resource, with what is in use now.
func (w *work) account(r store.Resource) (ledger.Account, error) {
	loans, err := w.OpenLoans(r.Name)
	if err != nil {
		return ledger.Account{}, err
	}
	lendings, err := w.Lendings(r.Name)
	if err != nil {
		return ledger.Account{}, err
	}
	inUse, err := w.InUse(r.Name)
	return judge.LoanBooks{Resource: r.Resource, Loans: loans, Lendings: lendings, InUse: inUse}.Account(), err
}

// Refused is a call that the controller understood and does not carry out.
type Refused struct {
	Status int // of HTTP
	Text   string
}

// Error implements error.
func (r *Refused) Error() string { return r.Text }

func refuse(status int, format string, args ...any) error {
	return &Refused{Status: status, Text: fmt.Sprintf(format, args...)}
}
