package controller

import (
	"context"
	"fmt"
	"net/http"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/store"
)

// Join takes a host into the cluster, or takes over what it says of itself anew.
// A second agent under the name of one that is up is refused: it would run the
// same jobs once more.
func (s *Service) Join(ctx context.Context, actor, name string, join api.JoinHost) error {
	host := cluster.Host{
		Name: name, Capacity: cluster.Capacity{CPUs: join.CPUs, MemoryMB: join.MemoryMB, Countables: join.Countables, Features: join.Features, Attributes: join.Attributes}, Instance: join.Instance,
	}
	if err := host.Capacity.Validate("").Err(); err != nil {
		return err
	}
	return s.update(ctx, actor, func(w *work) error {
		old, known, err := w.Host(name)
		if err != nil {
			return err
		}
		if known && old.Host.Instance != join.Instance && s.isUp(name, w.now) {
			return refuse(http.StatusConflict, "host %s is here already, with an agent that has another folder and was heard of at %s; give this one a name of its own, or stop the other and wait %s",
				name, s.lastSeen(name).Stamp(), hostSilence)
		}
		s.heardOf(name)
		host.Joined = w.now
		next := store.Host{Name: name, Host: host}
		var before any
		if known {
			before, next.Assigned = old.Host, old.Assigned
		}
		if err := w.SaveHost(next); err != nil {
			return err
		}
		return w.record(api.Change{Kind: api.KindHost, Subject: name, Why: fmt.Sprintf("joined with %d cpus and %d MB", join.CPUs, join.MemoryMB)}, before, next.Host)
	})
}

// Assignments answers the jobs that a host should run, as soon as they changed
// after the revision `after`, or when ctx ends. Asking is the host's sign of life.
func (s *Service) Assignments(ctx, wait context.Context, host string, after int64) (api.Assignments, error) {
	s.heardOf(host)
	defer s.heardOf(host)
	var a api.Assignments
	err := s.watch.poll(wait, func() (bool, error) {
		err := s.store.Read(ctx, func(tx *store.Tx) error {
			h, joined, err := tx.Host(host)
			if err != nil {
				return err
			}
			if !joined {
				return refuse(http.StatusNotFound, "host %s has not joined", host)
			}
			a.Revision = h.Assigned
			a.Jobs, err = tx.HostJobs(host)
			return err
		})
		return a.Revision != after, err
	})
	return a, err
}

func (s *Service) heardOf(host string) {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	s.seen[host] = s.now()
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
	return now.Sub(s.lastSeen(host)) < hostSilence
}
