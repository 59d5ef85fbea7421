package controller

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
)

// hostsJoinThere is what an agent is told where another schedules the jobs.
const hostsJoinThere = "hosts join it, and run no agent"

// Join takes a host with a certificate into the cluster, or takes over what it
// says of itself anew. An elastic host, which its certificate names by id, must be
// one that is here or expected.
func (s *Service) Join(ctx context.Context, peer pki.Peer, join api.JoinHost) error {
	if err := s.scheduledElsewhere(hostsJoinThere); err != nil {
		return err
	}
	if err := join.Capacity().Validate("").Err(); err != nil {
		return err
	}
	err := s.update(ctx, peer.String(), func(w *work) error {
		id, err := w.elasticID(peer)
		if err != nil {
			return err
		}
		if id != "" {
			_, err := s.admit(w, id, join)
			return err
		}
		return s.joinOwned(w, peer.Name, join)
	})
	if peer.ID != "" {
		return err // its own, which has been given up and is told to go
	}
	return s.report(ctx, peer.Name, err)
}

// elasticID answers which elastic host a peer is; empty for one that the cluster
// owns. A name that a provider's machine had is no one else's.
func (w *work) elasticID(peer pki.Peer) (string, error) {
	if peer.ID != "" {
		return peer.ID, nil
	}
	row, found, err := w.ElasticHostNamed(peer.Name)
	if err != nil || !found {
		return "", err
	}
	if !row.State.Open() {
		coming, err := w.ComingHosts()
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(coming, func(h cluster.ElasticHost) bool {
			return h.Provider == row.Provider && h.State == cluster.HostRequested
		}) {
			return "", refuse(http.StatusServiceUnavailable, "host %s is not expected yet; %s has not answered", peer.Name, row.Provider)
		}
		return "", refuse(http.StatusGone, "host %s was one of %s and is %s; it cannot join again", peer.Name, row.Provider, row.State)
	}
	return row.ID, nil
}

func (s *Service) joinOwned(w *work, name string, join api.JoinHost) error {
	if err := s.sameAgent(w, name, "", join.Instance); err != nil {
		return err
	}
	old, known, err := w.Host(name)
	if err != nil {
		return err
	}
	s.heardOf(name, w.now)
	next := store.Host{Name: name, Host: cluster.Host{Name: name, Capacity: join.Capacity(), Instance: join.Instance, Joined: w.now}}
	var before any
	if known {
		before, next.Assigned, next.Host.Joined = old.Host, old.Assigned, old.Host.Joined
	}
	if err := w.SaveHost(next); err != nil {
		return err
	}
	return w.record(api.Change{Kind: api.KindHost, Subject: name, Why: fmt.Sprintf("joined with %d cpus and %d MB", join.CPUs, join.MemoryMB)}, before, next.Host)
}

// Assignments answers the jobs that a host should run, as soon as they changed
// after the revision `after`, or when ctx ends. Asking is the host's sign of life.
func (s *Service) Assignments(ctx, wait context.Context, peer pki.Peer, after int64) (api.Assignments, error) {
	host := peer.Name
	var a api.Assignments
	next := func() <-chan struct{} { return s.watch.nextOf(host) }
	err := poll(wait, next, func() (bool, error) {
		err := s.store.Read(ctx, func(tx *store.Tx) error {
			h, joined, err := tx.Host(host)
			if err != nil {
				return err
			}
			if !joined || h.Host.ID != peer.ID && peer.ID != "" {
				return refuse(http.StatusNotFound, "host %s has not joined", host)
			}
			s.heardOf(host, s.at(tx))
			a.Revision = h.Assigned
			a.Jobs, err = tx.HostJobs(host)
			return err
		})
		return a.Revision != after, err
	})
	return a, err
}

func (s *Service) heardOf(host string, at cluster.Time) {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	s.seen[host], s.heard[host] = at, true
	if s.store.Shared() {
		s.untold[host] = at
	}
}

// forget drops what is remembered of hosts that are gone.
func (s *Service) forget(hosts []store.Host) {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	s.doubt()
	if len(s.seen) <= 2*len(hosts)+100 {
		return
	}
	here := map[string]bool{}
	for _, h := range hosts {
		here[h.Name] = true
	}
	maps.DeleteFunc(s.seen, func(name string, _ cluster.Time) bool { return !here[name] })
	maps.DeleteFunc(s.heard, func(name string, _ bool) bool { return !here[name] })
}

// wasHeard tells whether a host was heard of since the controller started.
func (s *Service) wasHeard(host string) bool {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	return s.heard[host]
}

// lastSeen answers when a host was last heard of. A controller that has just
// started gives every host it knows the benefit of the doubt.
func (s *Service) lastSeen(host string) cluster.Time {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	if _, known := s.seen[host]; !known {
		s.seen[host] = s.now()
	}
	return s.seen[host]
}

func (s *Service) isUp(host string, now cluster.Time) bool {
	return now.Sub(s.lastSeen(host)) < s.silence()
}
