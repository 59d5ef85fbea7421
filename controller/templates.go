package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/store"
)

// publishTemplates takes what a provider says it can make now in place of what
// it said before. What came of a template is kept, unless it promises something
// else now.
func (s *Service) publishTemplates(w *work, provider string, catalog api.Catalog) error {
	all, err := w.Templates()
	if err != nil {
		return err
	}
	for _, t := range catalog.Templates {
		i := slices.IndexFunc(all, func(old cluster.Template) bool { return old.Name == t.Name })
		if i >= 0 && all[i].Provider != provider {
			s.warnOnce(fmt.Sprintf("template %s of %s is left out, since %s has one of that name; rename one of them", t.Name, provider, all[i].Provider))
			continue
		}
		var old *cluster.Template
		if i >= 0 {
			old = &all[i]
		}
		if err := w.publishTemplate(t, provider, old); err != nil {
			return err
		}
	}
	for _, old := range all {
		if old.Provider == provider && !slices.ContainsFunc(catalog.Templates, func(t cluster.Template) bool { return t.Name == old.Name }) {
			if err := w.withdrawTemplate(old, fmt.Sprintf("%s makes no %s any more", provider, old.Name)); err != nil {
				return err
			}
		}
	}
	return w.ReplaceQuotas(provider, judge.Quotas(catalog.Quotas, provider, w.now))
}

// publishTemplate keeps one template, and records it where it differs in more
// than its age.
func (w *work) publishTemplate(t cluster.Template, provider string, old *cluster.Template) error {
	t, news := judge.Template(t, provider, old, w.now)
	var before any
	if old != nil {
		before = *old
	}
	if err := w.SaveTemplate(t); err != nil || !news {
		return err
	}
	why := fmt.Sprintf("%s can make %d %s", t.Provider, t.Headroom, t.Name)
	return w.record(api.Change{Kind: api.KindTemplate, Subject: t.Name, Why: why}, before, t)
}

func (w *work) withdrawTemplate(t cluster.Template, why string) error {
	if err := w.DeleteTemplate(t.Name); err != nil {
		return err
	}
	return w.record(api.Change{Kind: api.KindTemplate, Subject: t.Name, Why: why}, t, nil)
}

// forgetTemplates drops the templates of providers that are gone from the
// configuration.
func (s *Service) forgetTemplates(w *work) error {
	templates, err := w.Templates()
	if err != nil {
		return err
	}
	hosts, err := w.ElasticHosts("")
	if err != nil {
		return err
	}
	for _, h := range hosts {
		if !slices.Contains(s.config.Providers, h.Provider) {
			return fmt.Errorf("provider %s is gone from the configuration but host %s of it is %s: put it back, wait until none is left (`xce-elastic hosts`), then remove it", h.Provider, h.ID, h.State)
		}
	}
	for _, t := range templates {
		if slices.Contains(s.config.Providers, t.Provider) {
			continue
		}
		if err := w.withdrawTemplate(t, t.Provider+" is gone from the configuration"); err != nil {
			return err
		}
		if err := w.ReplaceQuotas(t.Provider, nil); err != nil {
			return err
		}
	}
	return nil
}

// warnOnce logs what is wrong with a configuration, once.
func (s *Service) warnOnce(text string) {
	s.warnedMu.Lock()
	defer s.warnedMu.Unlock()
	if !s.warned[text] {
		s.warned[text] = true
		s.log.Warn(text)
	}
}

// viewHosts fills in what a provider's hosts are decided upon.
func (w *work) viewHosts(v *api.ProviderView) error {
	templates, err := w.Templates()
	if err != nil {
		return err
	}
	v.Hosts.Demand = []cluster.Demand{}
	v.Hosts.Templates = slices.DeleteFunc(templates, func(t cluster.Template) bool { return t.Provider != v.Provider })
	for _, d := range v.Demand {
		if d.Template != "" {
			d.Jobs = d.Jobs[:min(len(d.Jobs), judge.MostNamedJobs)]
			v.Hosts.Demand = append(v.Hosts.Demand, d)
		}
	}
	v.Demand = slices.DeleteFunc(v.Demand, func(d cluster.Demand) bool { return d.Template != "" })
	names := []string{}
	for _, t := range v.Hosts.Templates {
		names = append(names, t.Name)
	}
	v.Hosts.Made, err = w.CountElasticHosts(names)
	return err
}

// limited answers templates and quotas with the cluster's own limits, and what those were judged on.
func (s *Service) limited(w *work, hosts []store.Host) (limits judge.Limits, of judge.Limited, err error) {
	if limits, err = s.hostCounts(w, hosts); err != nil {
		return limits, of, err
	}
	if limits.Templates, err = w.Templates(); err != nil {
		return limits, of, err
	}
	limits.Said, err = s.providerQuotas(w)
	return limits, limits.Judge(w.now), err
}

// providerQuotas answers what limits the providers have, in their order.
func (s *Service) providerQuotas(w *work) ([]cluster.Quota, error) {
	byProvider, err := w.Quotas()
	quotas := []cluster.Quota{}
	for _, name := range s.config.Providers {
		quotas = append(quotas, byProvider[name]...)
	}
	return quotas, err
}

// hostCounts counts the elastic hosts that the cluster's limits are about.
func (s *Service) hostCounts(w *work, hosts []store.Host) (counts judge.Limits, err error) {
	counts.Rules = s.config.Hosts
	if counts.Open, err = w.CountOpenHosts(); err != nil {
		return counts, err
	}
	if step := s.config.Hosts.Step; step.Hosts > 0 {
		if counts.Begun, err = w.CountIntended(w.now.Add(-step.Within)); err != nil {
			return counts, err
		}
	}
	for _, h := range hosts {
		if h.Host.ID == "" {
			continue
		}
		counts.Here++
		if h.Host.Health != cluster.Well {
			counts.Unhealthy++
		}
	}
	return counts, nil
}

// limits answers the cluster's own limits on elastic hosts, and why no more are
// asked for, where that is so.
func (s *Service) limits(w *work, hosts []store.Host) ([]cluster.Quota, string, error) {
	counts, err := s.hostCounts(w, hosts)
	of := counts.Judge(w.now)
	return of.Quotas, of.Halt, err
}

// Catalog answers what providers can give now, with what we know of it.
func (s *Service) Catalog(ctx context.Context) (api.CatalogView, error) {
	v := api.CatalogView{Templates: []api.TemplateStatus{}}
	err := s.store.Read(ctx, func(tx *store.Tx) error {
		v.Now = s.at(tx)
		w := s.work(tx, "")
		offers, err := w.Offers()
		if err != nil {
			return err
		}
		v.Offers = offers
		here, err := w.Hosts()
		if err != nil {
			return err
		}
		if v.Limits, v.Halt, err = s.limits(w, here); err != nil {
			return err
		}
		if v.Quotas, err = s.providerQuotas(w); err != nil {
			return err
		}
		templates, err := w.Templates()
		if err != nil {
			return err
		}
		hosts, err := w.ElasticHosts("")
		for _, t := range templates {
			v.Templates = append(v.Templates, statusOfTemplate(t, hosts))
		}
		return err
	})
	return v, err
}

func statusOfTemplate(t cluster.Template, hosts []cluster.ElasticHost) api.TemplateStatus {
	st := api.TemplateStatus{Template: t}
	for _, h := range hosts {
		switch {
		case h.Template != t.Name:
		case h.State == cluster.HostRequested:
			st.Requested++
		case h.State == cluster.HostExpected:
			st.Expected++
		case h.State == cluster.HostLeaving:
			st.Leaving++
		default:
			st.Joined++
		}
	}
	return st
}

// RetryProvider forgets a provider's refusals, so that it is asked again at once.
func (s *Service) RetryProvider(ctx context.Context, actor, provider string) error {
	if !slices.Contains(s.config.Providers, provider) {
		return refuse(http.StatusNotFound, "provider %q is not in the controller's configuration", provider)
	}
	return s.update(ctx, actor, func(w *work) error {
		templates, err := w.Templates()
		if err != nil {
			return err
		}
		for _, t := range templates {
			if t.Provider != provider || t.Refusals == 0 && t.Misses == 0 {
				continue
			}
			next := t
			next.Refusals, next.BackoffUntil, next.Delivered, next.Misses = 0, 0, nil, 0
			if err := w.SaveTemplate(next); err != nil {
				return err
			}
			if err := w.record(api.Change{Kind: api.KindTemplate, Subject: t.Name, Why: "to be tried again"}, t, next); err != nil {
				return err
			}
		}
		return w.retryOffers(provider)
	})
}

func (w *work) retryOffers(provider string) error {
	offers, err := w.Offers()
	if err != nil {
		return err
	}
	for _, o := range offers {
		if o.Provider != provider || o.Refusals == 0 {
			continue
		}
		next := o
		next.Refusals, next.BackoffUntil = 0, 0
		if err := w.SaveOffer(next); err != nil {
			return err
		}
		if err := w.record(api.Change{Kind: api.KindCatalog, Subject: provider, Why: "to be tried again"}, o, next); err != nil {
			return err
		}
	}
	return nil
}
