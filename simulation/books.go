package simulation

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/ledger"
)

// books are what a controller keeps in its store, in memory.
type books struct {
	resources     []*resource // by name
	resourceIndex map[string]*resource
	closedLoans   map[string]cluster.Loan
	loansEver     map[string]map[string]int64 // by provider and resource

	elastic map[string]*elasticHost // every one that ever was, by id
	// open are those that stand for something, by id.
	open     []*elasticHost
	bearers  map[string]*elasticHost // who had a name last
	made     map[string]int64        // by template: how many there ever were
	intended []*elasticHost          // of late, for the limit of a step

	templates []cluster.Template // by name
	quotas    map[string][]cluster.Quota
	offers    []cluster.Offer // by provider and resource
	demand    []cluster.Demand
	// spareTemplates and spareOffers are where the next ones are put together.
	spareTemplates []cluster.Template
	spareOffers    []cluster.Offer
	// openHosts and begunHosts are where hosts are counted by template.
	openHosts, begunHosts map[string]int64
}

// resource is a shared resource with its books.
type resource struct {
	cluster.SharedResource
	account ledger.Account
	// borrowed is the sum of the account's loans.
	borrowed int64
	idle     cluster.IdleClock
	// waiting is how many units waiting jobs ask for.
	waiting int64
	// changed tells that sessions do not know the last write yet.
	changed bool
	tally   *tally
}

// elasticHost is the row of an elastic host, and what is known of it beside.
type elasticHost struct {
	row cluster.ElasticHost
	// host is what it is in the cluster; nil where it is not.
	host *host
	// silent is since when it does not answer; 0 for one that does.
	silent cluster.Time
	// story is its own, once that has slept.
	story *hostEnv
}

func newBooks(farm *Farm) books {
	b := books{
		resourceIndex: map[string]*resource{}, closedLoans: map[string]cluster.Loan{}, loansEver: map[string]map[string]int64{},
		elastic: map[string]*elasticHost{}, bearers: map[string]*elasticHost{}, made: map[string]int64{}, quotas: map[string][]cluster.Quota{},
		openHosts: map[string]int64{}, begunHosts: map[string]int64{},
	}
	for _, r := range farm.Resources {
		kept := &resource{SharedResource: r, account: ledger.Account{Resource: r.Name, Owned: r.Owned}}
		if r.Elastic != nil {
			kept.account.MaxBorrowed = r.Elastic.MaxBorrowed
		}
		b.resources = append(b.resources, kept)
		b.resourceIndex[r.Name] = kept
	}
	slices.SortFunc(b.resources, func(x, y *resource) int { return cmp.Compare(x.Name, y.Name) })
	return b
}

// demandFor answers what is demanded of an offer or a template.
func (b *books) demandFor(of cluster.Demand) *cluster.Demand {
	i := slices.IndexFunc(b.demand, func(d cluster.Demand) bool { return cluster.CompareDemand(d, of) == 0 })
	if i < 0 {
		return &cluster.Demand{}
	}
	return &b.demand[i]
}

func (b *books) template(name, provider string) *cluster.Template {
	i := slices.IndexFunc(b.templates, func(t cluster.Template) bool { return t.Name == name && t.Provider == provider })
	if i < 0 {
		return nil
	}
	return &b.templates[i]
}

func (b *books) offer(provider, resource string) *cluster.Offer {
	i := slices.IndexFunc(b.offers, func(o cluster.Offer) bool { return o.Provider == provider && o.Resource == resource })
	if i < 0 {
		return nil
	}
	return &b.offers[i]
}

// writeLoan writes one change of a loan's story.
func (s *simulator) writeLoan(w judge.LoanWrite) api.Written {
	s.unsettle()
	r := s.resourceIndex[w.At().Resource]
	answer, err := s.loanBooks(r, w).Write(w, s.now)
	if err != nil || answer.Refusal != nil || answer.Event.Kind == "" {
		return answer.Written
	}
	if answer.Idle != nil {
		r.idle = *answer.Idle
	}
	if answer.Demand != nil {
		*s.demandFor(*answer.Demand) = *answer.Demand
	}
	if answer.Offer != nil {
		*s.offer(answer.Offer.Provider, answer.Offer.Resource) = *answer.Offer
		s.catalogChanged = true
	}
	r.put(answer.Event.After)
	s.loanChanged(r, answer.Event)
	return answer.Written
}

// loanBooks reads what a write to a loan's row is judged on.
func (s *simulator) loanBooks(r *resource, w judge.LoanWrite) judge.LoanBooks {
	id := w.At().Loan
	b := judge.LoanBooks{Resource: r.SharedResource, InUse: r.account.InUse, Loans: r.account.Loans, Lendings: r.account.Lendings, Idle: r.idle}
	row, open := r.account.Loan(id)
	if closed, was := s.closedLoans[id]; was && !open {
		i, _ := r.find(id)
		b.Loans = slices.Insert(slices.Clone(b.Loans), i, closed)
	}
	switch {
	case w.Intend != nil:
		b.Demand = *s.demandFor(cluster.Demand{Resource: r.Name, Provider: w.Intend.Request.Provider})
	case w.Commit != nil || w.Refuse != nil:
		b.Offer = s.offer(row.Provider, r.Name)
	}
	return b
}

func (r *resource) find(id string) (int, bool) {
	return slices.BinarySearchFunc(r.account.Loans, id, func(l cluster.Loan, id string) int { return cmp.Compare(l.ID, id) })
}

// put keeps a loan's row; one that is closed is no longer among the open ones.
func (r *resource) put(row cluster.Loan) {
	i, known := r.find(row.ID)
	switch {
	case known && !row.State.Open():
		r.account.Loans = slices.Delete(r.account.Loans, i, i+1)
	case known:
		r.account.Loans[i] = row
	case row.State.Open():
		r.account.Loans = slices.Insert(r.account.Loans, i, row)
	}
	r.borrowed, r.tally.dirty = r.account.Borrowed(), true
}

// loanChanged carries on what one write changed.
func (s *simulator) loanChanged(r *resource, event ledger.Event) {
	if event.Material() {
		s.providers[event.After.Provider].changed()
	}
	if !event.After.State.Open() {
		s.closedLoans[event.After.ID] = event.After
	}
	if event.Kind == "intend" {
		ever := s.loansEver[event.After.Provider]
		if ever == nil {
			ever = map[string]int64{}
			s.loansEver[event.After.Provider] = ever
		}
		ever[r.Name]++
	}
	s.recordLoan(r, event)
	if event.Material() {
		r.changed = true
		s.wantSession()
	}
}

// publish takes what a provider says that it can give now. Where that is as before, no session is wanted; but the
// next one may find more to be had, since what was asked for meanwhile is known to be in it.
func (s *simulator) publish(provider string, c api.Catalog) {
	s.unsettle()
	asked := s.askedSince(provider)
	news := s.publishOffers(provider, c.Offers)
	switch {
	case s.publishTemplates(provider, c) || news:
		s.wantSession()
	case asked && s.engine.Waiting() > 0:
		s.planFor(s.now)
	}
	s.catalogChanged = true
}

// askedSince tells whether anything that is open was asked of a provider since it said what it can give.
func (s *simulator) askedSince(provider string) bool {
	for i := range s.offers {
		o := &s.offers[i]
		if o.Provider == provider && slices.ContainsFunc(s.resourceIndex[o.Resource].account.Loans, func(l cluster.Loan) bool {
			return l.Provider == provider && l.Intended > o.Published
		}) {
			return true
		}
	}
	return slices.ContainsFunc(s.open, func(h *elasticHost) bool {
		t := s.template(h.row.Template, provider)
		return t != nil && h.row.Intended > t.Published
	})
}

func (s *simulator) publishOffers(provider string, offers []cluster.Offer) (news bool) {
	kept := slices.DeleteFunc(append(s.spareOffers[:0], s.offers...), func(o cluster.Offer) bool { return o.Provider == provider })
	for _, o := range offers {
		if s.resourceIndex[o.Resource] == nil {
			continue
		}
		o, other := judge.Offer(o, provider, s.offer(provider, o.Resource), s.now)
		news = news || other
		kept = append(kept, o)
	}
	slices.SortStableFunc(kept, func(a, b cluster.Offer) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Resource, b.Resource))
	})
	news = news || len(kept) != len(s.offers)
	s.offers, s.spareOffers = kept, s.offers
	return news
}

func (s *simulator) publishTemplates(provider string, c api.Catalog) (news bool) {
	kept := slices.DeleteFunc(append(s.spareTemplates[:0], s.templates...), func(t cluster.Template) bool { return t.Provider == provider })
	for _, t := range c.Templates {
		t, other := judge.Template(t, provider, s.template(t.Name, provider), s.now)
		news = news || other
		kept = append(kept, t)
	}
	slices.SortStableFunc(kept, func(a, b cluster.Template) int { return cmp.Compare(a.Name, b.Name) })
	news = news || len(kept) != len(s.templates)
	s.templates, s.spareTemplates = kept, s.templates
	s.quotas[provider] = judge.Quotas(c.Quotas, provider, s.now)
	return news
}

// emptied answers a view that the provider's story has done with, to be filled again.
func emptied(v api.ProviderView) api.ProviderView {
	v.Open, v.Offers, v.Demand, v.Closed = v.Open[:0], v.Offers[:0], v.Demand[:0], nil
	v.Hosts.Templates, v.Hosts.Demand = v.Hosts.Templates[:0], v.Hosts.Demand[:0]
	for _, counts := range []*map[string]int64{&v.Room, &v.Weights, &v.Loans, &v.Hosts.Made} {
		if *counts == nil {
			*counts = map[string]int64{}
		}
		clear(*counts)
	}
	return v
}

// view answers what a provider's loans and hosts are decided upon, in the memory of an empty view.
func (s *simulator) view(v api.ProviderView, provider string, ask []string) api.ProviderView {
	v.Provider = provider
	maps.Copy(v.Loans, s.loansEver[provider])
	for _, r := range s.resources {
		v.Weights[r.Name] = r.Weight()
		v.Room[r.Name] = r.account.MaxBorrowed - r.account.Borrowed() - r.account.Requested()
		for i := range r.account.Loans {
			if l := &r.account.Loans[i]; l.Provider == provider {
				v.Open = append(v.Open, *l)
			}
		}
	}
	for _, o := range s.offers {
		if o.Provider == provider {
			v.Offers = append(v.Offers, o)
		}
	}
	for _, t := range s.templates {
		if t.Provider == provider {
			v.Hosts.Templates = append(v.Hosts.Templates, t)
			v.Hosts.Made[t.Name] = s.made[t.Name]
		}
	}
	for _, d := range s.demand {
		switch {
		case d.Provider != provider:
		case d.Template != "":
			d.Jobs = d.Jobs[:min(len(d.Jobs), judge.MostNamedJobs)]
			v.Hosts.Demand = append(v.Hosts.Demand, d)
		default:
			v.Demand = append(v.Demand, d)
		}
	}
	for _, id := range ask {
		_, loan := s.closedLoans[id]
		h, known := s.elastic[id]
		if loan || known && !h.row.State.Open() {
			v.Closed = append(v.Closed, id)
		}
	}
	return v
}

// machines answers what the inventory of a provider is compared with.
func (s *simulator) machines(provider string) (all []api.HostMachine) {
	for _, h := range s.open {
		if h.row.Provider == provider {
			all = append(all, api.HostMachine{ID: h.row.ID, Instance: h.row.Instance, State: h.row.State})
		}
	}
	return all
}

// nameFor answers what a host is called in the cluster.
func (s *simulator) nameFor(h *elasticHost, machine string) string {
	free := func(name string) bool {
		other := s.bearers[name]
		return s.hosts[name] == nil && (other == nil || other == h || !other.row.State.Open())
	}
	if cluster.ValidName(machine) && free(machine) {
		return machine
	}
	name := h.row.DefaultName()
	for n := 2; !free(name); n++ {
		name = h.row.DefaultName() + "." + strconv.Itoa(n)
	}
	return name
}
