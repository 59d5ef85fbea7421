package controller

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
)

// JoinToken makes the one-time token with which a host that was asked for joins.
// Only its hash is kept; an earlier token of the host is good no more.
func (s *Service) JoinToken(ctx context.Context, id string) (api.JoinToken, error) {
	token := api.JoinToken{Token: rand.Text()}
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		w := s.work(tx, "")
		w.acting = actingOf(ctx)
		row, found, err := w.ElasticHost(id)
		if err != nil {
			return err
		}
		if err := w.fenced(row.Provider); err != nil {
			return err
		}
		if !found || row.State != cluster.HostRequested {
			return refuse(http.StatusConflict, "host %s is not asked for now, so that no token is made for it", id)
		}
		token.Deadline = w.now.Add(row.Latency + row.JoinWithin + longestPending)
		return w.SaveJoinToken(store.JoinToken{Host: id, Hash: hashOf(token.Token)})
	})
	return token, err
}

// longestPending is how long a provider may take to decide before a host that it
// has made gives up. When it must have joined is the row's to say.
const longestPending = cluster.Hour

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// JoinWithToken takes an elastic host into the cluster and answers its
// certificate. The same host may ask again, as when the answer was lost; anyone
// else, too late or unknown, is refused, and that is written down.
func (s *Service) JoinWithToken(ctx context.Context, in api.JoinRequest) (api.Joined, error) {
	if err := s.scheduledElsewhere(hostsJoinThere); err != nil {
		return api.Joined{}, err
	}
	if name, named := strings.CutPrefix(in.Host, "host/"); !named || !cluster.ValidName(name) {
		return api.Joined{}, refuse(http.StatusUnprocessableEntity, "host is no id of a host; it is host/NAME, as the provider was given it")
	}
	if err := in.Capacity().Validate("").Err(); err != nil {
		return api.Joined{}, err
	}
	if s.config.Authority == nil {
		return api.Joined{}, refuse(http.StatusConflict, "this controller makes no certificates; set controller.ca_key to the key of its authority")
	}
	var joined api.Joined
	err := s.known(ctx, in)
	if err != nil {
		return joined, s.report(ctx, in.Host, err)
	}
	key, err := pki.RequestKey([]byte(in.Request))
	if err != nil {
		return joined, refuse(http.StatusUnprocessableEntity, "the certificate request cannot be read: %v", err)
	}
	err = s.update(ctx, in.Host, func(w *work) error {
		if err := w.useToken(in, key); err != nil {
			return err
		}
		row, err := s.admit(w, in.Host, in.JoinHost)
		if err != nil {
			return err
		}
		certificate, err := s.config.Authority.SignRequest([]byte(in.Request), pki.Peer{Role: string(api.HostRole), Name: row.Name, ID: row.ID})
		joined = api.Joined{Name: row.Name, Certificate: string(certificate)}
		return err
	})
	return joined, s.report(ctx, in.Host, err)
}

// reportEvery is how often at most it is written down that a host was refused:
// everyone may knock, as often as they like.
const reportEvery = cluster.Minute

// report writes down that a host was refused, if it is one that stands for something.
func (s *Service) report(ctx context.Context, host string, err error) error {
	var refused *Refused
	if !errors.As(err, &refused) || refused.Status == http.StatusServiceUnavailable {
		return err // or it will ask again
	}
	return errors.Join(err, s.add(ctx, host, func(w *work) error {
		row, known, err := w.ElasticHost(host)
		if err == nil && !known {
			row, known, err = w.ElasticHostNamed(host)
		}
		if err != nil || !known || !row.State.Open() || !s.mayReport(host, w.now) {
			return err
		}
		s.log.Warn("a host was not let in", "host", host, "why", refused.Text)
		return w.record(api.Change{Kind: api.KindRefused, Subject: host, Why: refused.Text}, nil, nil)
	}))
}

// mayReport tells whether the last report of a host is old enough for another.
func (s *Service) mayReport(host string, now cluster.Time) bool {
	s.warnedMu.Lock()
	defer s.warnedMu.Unlock()
	if last, before := s.reported[host]; before && now.Sub(last) < reportEvery {
		return false
	}
	s.reported[host] = now
	return true
}

// known turns away, with as little effort as can be, whoever has no good token.
func (s *Service) known(ctx context.Context, in api.JoinRequest) error {
	return s.store.Read(ctx, func(tx *store.Tx) error {
		_, err := tokenOf(tx, in)
		return err
	})
}

func tokenOf(tx *store.Tx, in api.JoinRequest) (store.JoinToken, error) {
	token, found, err := tx.JoinToken(in.Host)
	if err == nil && (!found || subtle.ConstantTimeCompare([]byte(token.Hash), []byte(hashOf(in.Token))) != 1) {
		err = refuse(http.StatusForbidden, "the token is not one of host %s, or is good no more", in.Host)
	}
	return token, err
}

// useToken binds the token to the key of who used it first.
func (w *work) useToken(in api.JoinRequest, key string) error {
	token, err := tokenOf(w.Tx, in)
	if err != nil {
		return err
	}
	if token.Key != "" && token.Key != key {
		return refuse(http.StatusForbidden, "the token of host %s has been used by another", in.Host)
	}
	token.Key = key
	return w.SaveJoinToken(token)
}

// admit notes in an elastic host's row that it is there, and lists it among the
// hosts. What it has corrects what is believed of its template.
func (s *Service) admit(w *work, id string, join api.JoinHost) (cluster.ElasticHost, error) {
	row, found, err := w.ElasticHost(id)
	if err != nil || !found {
		return row, errors.Join(err, refuse(http.StatusNotFound, "no host %s was asked for", id))
	}
	if row.State == cluster.HostRequested {
		return row, refuse(http.StatusServiceUnavailable, "host %s was faster than its provider's answer; it is expected in a moment", id)
	}
	if err := s.sameAgent(w, row.Name, id, join.Instance); err != nil {
		return row, err
	}
	capacity := join.Capacity()
	noted, err := w.note(row, judge.Fact{Join: &capacity})
	if err != nil {
		return row, err
	}
	if noted.Refusal != nil {
		return row, refuse(http.StatusGone, "%s", noted.Refusal.Text)
	}
	after, event := noted.Host, noted.Event
	if err := s.enlist(w, after, join); err != nil || event.Kind == "" {
		return after, err
	}
	if err := w.saveElastic(after); err != nil {
		return after, err
	}
	if err := w.learn(after); err != nil {
		return after, err
	}
	return after, w.recordHost(event)
}

// sameAgent refuses a second agent under the name of a host that is up: it would
// run the same jobs once more.
func (s *Service) sameAgent(w *work, name, id, instance string) error {
	old, known, err := w.Host(name)
	if err != nil || !known {
		return err
	}
	if old.Host.ID != id {
		return refuse(http.StatusConflict, "the name %s is that of another host; wait until it is gone", name)
	}
	if old.Host.Instance != instance && s.isUp(name, w.now) {
		return refuse(http.StatusConflict, "host %s is here already, with an agent that has another folder and was heard of at %s; give this one a name of its own, or stop the other and wait %s",
			name, s.lastSeen(name).Stamp(), s.silence())
	}
	return nil
}

// enlist writes an elastic host among the hosts.
func (s *Service) enlist(w *work, row cluster.ElasticHost, join api.JoinHost) error {
	old, _, err := w.Host(row.Name)
	if err != nil {
		return err
	}
	s.heardOf(row.Name, w.now)
	next := store.Host{Name: row.Name, Assigned: old.Assigned, Host: cluster.Host{
		Name: row.Name, ID: row.ID, Template: row.Template, Capacity: join.Capacity(), Instance: join.Instance,
		Joined: row.Joined, Closed: old.Host.Closed, Health: old.Host.Health,
	}}
	return w.SaveHost(next)
}

// learn has the template know what came of it, and forget its refusals.
func (w *work) learn(row cluster.ElasticHost) error {
	t, found, err := w.template(row.Template, row.Provider)
	if err != nil || !found {
		return err
	}
	next := t.Learn(row.Capacity)
	if err := w.SaveTemplate(next); err != nil || next.Misses == t.Misses {
		return err
	}
	why := fmt.Sprintf("%s joined with what %s says", row.Name, t.Name)
	if next.Misses > 0 {
		why = fmt.Sprintf("%s joined with less than %s says, as %d hosts in a row now", row.Name, t.Name, next.Misses)
	}
	return w.record(api.Change{Kind: api.KindTemplate, Subject: t.Name, Why: why}, t, next)
}
