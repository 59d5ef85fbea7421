package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/store"
)

// PublishCatalog takes what a provider says it can lend now in place of what it
// said before. Offers of resources that the cluster does not have are left out;
// what earlier refusals taught is kept.
func (s *Service) PublishCatalog(ctx context.Context, actor, provider string, catalog api.Catalog) error {
	if !slices.Contains(s.config.Providers, provider) {
		return refuse(http.StatusNotFound, "provider %q is not in the controller's configuration", provider)
	}
	return s.update(ctx, actor, func(w *work) error {
		if err := w.fenced(provider); err != nil {
			return err
		}
		resources, err := w.Resources()
		if err != nil {
			return err
		}
		has := func(name string) bool {
			return slices.ContainsFunc(resources, func(r store.Resource) bool { return r.Name == name })
		}
		old, err := w.Offers()
		if err != nil {
			return err
		}
		old = slices.DeleteFunc(old, func(o cluster.Offer) bool { return o.Provider != provider })
		for _, o := range catalog.Offers {
			if !has(o.Resource) {
				continue
			}
			if err := w.publishOffer(o, provider, old); err != nil {
				return err
			}
		}
		for _, o := range old {
			if !slices.ContainsFunc(catalog.Offers, func(n cluster.Offer) bool { return n.Resource == o.Resource }) {
				if err := w.withdrawOffer(o, fmt.Sprintf("%s lends %s no more", provider, o.Resource)); err != nil {
					return err
				}
			}
		}
		for _, o := range catalog.Observations {
			if o.Provider = provider; has(o.Resource) {
				if err := w.SaveObservation(o); err != nil {
					return err
				}
			}
		}
		return s.publishTemplates(w, provider, catalog)
	})
}

// publishOffer keeps one offer, and records it where it differs in more than its age.
func (w *work) publishOffer(o cluster.Offer, provider string, old []cluster.Offer) error {
	var before any
	var previous *cluster.Offer
	if i := slices.IndexFunc(old, func(p cluster.Offer) bool { return p.Resource == o.Resource }); i >= 0 {
		previous, before = &old[i], old[i]
	}
	o, news := judge.Offer(o, provider, previous, w.now)
	if err := w.SaveOffer(o); err != nil || !news {
		return err
	}
	why := fmt.Sprintf("%s can lend %d %s", o.Provider, o.Headroom, o.Resource)
	return w.record(api.Change{Kind: api.KindCatalog, Subject: o.Provider, Why: why}, before, o)
}

func (w *work) withdrawOffer(o cluster.Offer, why string) error {
	if err := w.DeleteOffer(o.Provider, o.Resource); err != nil {
		return err
	}
	return w.record(api.Change{Kind: api.KindCatalog, Subject: o.Provider, Why: why}, o, nil)
}

// ProviderView answers what borrowing from a provider is decided upon. It also
// tells which of the loans `ask` are closed.
func (s *Service) ProviderView(ctx context.Context, provider string, ask []string) (api.ProviderView, error) {
	var v api.ProviderView
	v.Provider, v.Room, v.Weights = provider, map[string]int64{}, map[string]int64{}
	v.Open, v.Closed = []cluster.Loan{}, []string{}
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, "")
		demand, err := w.Demand()
		if err != nil {
			return err
		}
		v.Demand = slices.DeleteFunc(demand, func(d cluster.Demand) bool { return d.Provider != provider })
		offers, err := w.Offers()
		if err != nil {
			return err
		}
		v.Offers = slices.DeleteFunc(offers, func(o cluster.Offer) bool { return o.Provider != provider })
		if v.Loans, err = w.CountLoans(provider); err != nil {
			return err
		}
		if err := errors.Join(w.viewRoom(&v), w.viewHosts(&v)); err != nil {
			return err
		}
		for _, id := range ask {
			closed, err := w.closed(id)
			if err != nil {
				return err
			}
			if closed {
				v.Closed = append(v.Closed, id)
			}
		}
		return nil
	})
	return v, err
}

// closed tells whether an id is that of a loan or a host that is closed.
func (w *work) closed(id string) (bool, error) {
	loan, found, err := w.Loan(id)
	if err != nil || found {
		return found && !loan.State.Open(), err
	}
	host, found, err := w.ElasticHost(id)
	return found && !host.State.Open(), err
}

// viewRoom fills in open loans, room and weights.
func (w *work) viewRoom(v *api.ProviderView) error {
	resources, err := w.Resources()
	if err != nil {
		return err
	}
	for _, r := range resources {
		account, err := w.account(r)
		if err != nil {
			return err
		}
		v.Weights[r.Name] = r.Resource.Weight()
		v.Room[r.Name] = account.MaxBorrowed - account.Borrowed() - account.Requested()
		for _, l := range account.Loans {
			if l.Provider == v.Provider {
				v.Open = append(v.Open, l)
			}
		}
	}
	return nil
}

// ReportStray records something a provider lists that no open loan stands for.
func (s *Service) ReportStray(ctx context.Context, actor string, stray api.Stray) error {
	return s.update(ctx, actor, func(w *work) error {
		if err := w.fenced(stray.Provider); err != nil {
			return err
		}
		return w.record(api.Change{Kind: api.KindStray, Subject: stray.Request, Why: stray.What}, nil, stray)
	})
}
