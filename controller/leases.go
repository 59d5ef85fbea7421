package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/lease"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
)

// Tend takes down what a provisioner says of itself, and answers what it holds.
func (s *Service) Tend(ctx context.Context, peer pki.Peer, in api.TendLeases) (api.Tended, error) {
	if faults := s.strangers(in); len(faults) > 0 {
		return api.Tended{}, faults
	}
	rules := s.leaseRules()
	out := api.Tended{TimeToLive: rules.TimeToLive, Leases: []api.HeldLease{}}
	err := s.changeLeases(ctx, peer.String(), func(book *lease.Book, now cluster.Time) ([]lease.Change, error) {
		changes, err := book.Tend(lease.Call{
			Name: peer.Name, Instance: in.Instance, Owns: in.Owns, Prefers: in.Prefers, Gives: in.Gives, Leaving: in.Leaving, Stops: in.Stops,
		}, now, rules)
		for _, l := range book.Held(peer.Name) {
			out.Leases = append(out.Leases, api.HeldLease{Provider: l.Provider, Epoch: l.Epoch, MoveTo: l.MoveTo})
		}
		return changes, err
	})
	return out, err
}

// changeLeases has the book changed, and keeps what it is then. A refusal changes nothing.
func (s *Service) changeLeases(ctx context.Context, actor string, change func(*lease.Book, cluster.Time) ([]lease.Change, error)) error {
	return s.add(ctx, actor, func(w *work) error {
		book, err := s.book(w)
		if err != nil {
			return err
		}
		before := slices.Clone(book.Provisioners)
		changes, refusal := change(&book, w.now)
		if refusal != nil {
			return refuse(http.StatusConflict, "%v", refusal)
		}
		return errors.Join(w.keepProvisioners(before, book.Provisioners), w.keepLeases(changes))
	})
}

// strangers answers what a provisioner says of providers that the controller does not know.
func (s *Service) strangers(in api.TendLeases) cluster.Problems {
	return append(s.unknown("owns", in.Owns), s.unknown("prefers", in.Prefers)...)
}

func (s *Service) unknown(at string, providers []string) (faults cluster.Problems) {
	for i, name := range providers {
		if !slices.Contains(s.config.Providers, name) {
			faults = append(faults, cluster.Problem{
				Path: fmt.Sprintf("%s[%d]", at, i), What: fmt.Sprintf("provider %q is not in the controller's configuration", name),
				Remedy: "give the controller and the provisioners the same configuration",
			})
		}
	}
	return faults
}

// Leases answers who is there and who holds what.
func (s *Service) Leases(ctx context.Context) (api.Leases, error) {
	out := api.Leases{Leases: []cluster.Lease{}, Provisioners: []cluster.Provisioner{}}
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, "")
		book, err := s.book(w)
		out.Now = w.now
		out.Leases = append(out.Leases, book.Leases...)
		out.Provisioners = append(out.Provisioners, book.Provisioners...)
		return err
	})
	return out, err
}

// MoveLease has the lease of a provider go to a provisioner, and stay there.
func (s *Service) MoveLease(ctx context.Context, actor, provider string, in api.MoveLease) error {
	return s.changeLeases(ctx, actor, func(book *lease.Book, now cluster.Time) ([]lease.Change, error) {
		return book.Move(provider, in.To, now)
	})
}

func (s *Service) leaseRules() cluster.LeaseRules {
	if s.config.Leases == (cluster.LeaseRules{}) {
		return cluster.DefaultLeaseRules()
	}
	return s.config.Leases
}

// book reads who is there and who holds what.
func (s *Service) book(w *work) (lease.Book, error) {
	leases, err := w.Leases()
	if err != nil {
		return lease.Book{}, err
	}
	provisioners, err := w.Provisioners()
	return lease.Book{Providers: s.config.Providers, Leases: leases, Provisioners: provisioners}, err
}

// keepProvisioners writes who is there now.
func (w *work) keepProvisioners(before, after []cluster.Provisioner) error {
	for _, p := range before {
		if !slices.ContainsFunc(after, func(n cluster.Provisioner) bool { return n.Name == p.Name }) {
			if err := w.DeleteProvisioner(p.Name); err != nil {
				return err
			}
		}
	}
	for _, p := range after {
		i := slices.IndexFunc(before, func(o cluster.Provisioner) bool { return o.Name == p.Name })
		if i >= 0 && reflect.DeepEqual(before[i], p) {
			continue // only the caller said anything of itself
		}
		if err := w.SaveProvisioner(p); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) keepLeases(changes []lease.Change) error {
	for _, c := range changes {
		if err := w.SaveLease(c.After); err != nil {
			return err
		}
		if err := w.record(api.Change{Kind: api.KindLease, Subject: c.After.Provider, Why: c.Why}, c.Before, c.After); err != nil {
			return err
		}
	}
	return nil
}
