package simulation

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
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
}

// resource is a shared resource with its books.
type resource struct {
	cluster.SharedResource
	account ledger.Account
	idle    cluster.IdleClock
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
}

func newBooks(farm *Farm) books {
	b := books{
		resourceIndex: map[string]*resource{}, closedLoans: map[string]cluster.Loan{}, loansEver: map[string]map[string]int64{},
		elastic: map[string]*elasticHost{}, bearers: map[string]*elasticHost{}, made: map[string]int64{}, quotas: map[string][]cluster.Quota{},
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

func refusalOf(err error) *api.Refusal {
	var refusal *ledger.Refusal
	if !errors.As(err, &refusal) {
		return nil
	}
	return &api.Refusal{Code: string(refusal.Code), Text: refusal.Text}
}

// writeLoan writes one change of a loan's story.
func (s *simulator) writeLoan(at api.LedgerWrite, change func(r *resource, row cluster.Loan) ledger.Change, then func(r *resource, after cluster.Loan)) (w api.Written) {
	r := s.resourceIndex[at.Resource]
	row, found := r.account.Loan(at.Loan)
	if !found {
		if row, found = s.closedLoans[at.Loan]; found {
			w.Loan, w.Refusal = row, &api.Refusal{Code: string(ledger.Closed), Text: "loan " + at.Loan + " is closed"}
			return w
		}
	}
	after, event, err := r.account.Write(at.Loan, at.Step, change(r, row), s.now)
	w.Loan = after
	if w.Refusal = refusalOf(err); w.Refusal != nil || event.Kind == "" {
		return w
	}
	if fenced := event.Before.Borrowed - event.After.Borrowed; fenced > 0 && event.Kind == "fence" {
		r.idle = r.idle.Take(fenced)
	}
	if then != nil {
		then(r, after)
	}
	s.loanChanged(r, event)
	return w
}

// loanChanged carries on what one write changed.
func (s *simulator) loanChanged(r *resource, event ledger.Event) {
	s.providers[event.After.Provider].changed()
	if !event.After.State.Open() {
		s.closedLoans[event.After.ID] = event.After
		r.account.Loans = slices.DeleteFunc(r.account.Loans, func(l cluster.Loan) bool { return l.ID == event.After.ID })
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

func (s *simulator) intendLoan(in api.IntendLoan) api.Written {
	demand := s.demandFor(cluster.Demand{Resource: in.Resource, Provider: in.Request.Provider})
	return s.writeLoan(in.LedgerWrite, func(*resource, cluster.Loan) ledger.Change {
		return ledger.Intend{LoanRequest: in.Request, Demanded: demand.Units}
	}, func(_ *resource, after cluster.Loan) { demand.Units -= after.Units })
}

func (s *simulator) commitLoan(in api.CommitLoan) api.Written {
	return s.writeLoan(in.LedgerWrite, func(r *resource, row cluster.Loan) ledger.Change {
		return ledger.Commit{Granted: in.Granted, HoldUntil: policy.HoldUntil(row.Terms, r.MinimumHold(), s.now)}
	}, func(r *resource, after cluster.Loan) {
		s.changeOffer(after, func(o cluster.Offer) cluster.Offer { o.Refusals, o.BackoffUntil = 0, 0; return o })
	})
}

func (s *simulator) refuseLoan(in api.RefuseLoan) api.Written {
	return s.writeLoan(in.LedgerWrite, func(*resource, cluster.Loan) ledger.Change {
		return ledger.Refuse{Why: in.Why}
	}, func(r *resource, after cluster.Loan) {
		s.changeOffer(after, func(o cluster.Offer) cluster.Offer { return policy.RefusedOffer(o, in.RetryAfter, s.now) })
	})
}

// changeOffer changes the offer that a loan came from, if it still stands.
func (s *simulator) changeOffer(row cluster.Loan, change func(cluster.Offer) cluster.Offer) {
	if o := s.offer(row.Provider, row.Resource); o != nil {
		if next := change(*o); next != *o {
			*o = next
			s.catalogChanged = true
		}
	}
}

func (s *simulator) fenceLoan(in api.FenceLoan) api.Written {
	return s.writeLoan(in.LedgerWrite, func(r *resource, row cluster.Loan) ledger.Change {
		units, again := policy.ReturnUnits(r.account.Loans, r.idle, r.IdleTime(), row, s.now)
		if in.Units > 0 {
			return ledger.Fence{Units: in.Units, Exact: true, AskAgain: again, Why: in.Why}
		}
		why := "idle"
		if row.Recalled > 0 {
			why = "recalled"
		}
		return ledger.Fence{Units: units, AskAgain: again, Why: why}
	}, nil)
}

func (s *simulator) recallLoan(in api.RecallLoan) api.Written {
	return s.writeLoan(in.LedgerWrite, func(*resource, cluster.Loan) ledger.Change { return ledger.Recall{Units: in.Units, Why: in.Why} }, nil)
}

func (s *simulator) confirmLoan(in api.ConfirmLoan) api.Written {
	return s.writeLoan(in.LedgerWrite, func(*resource, cluster.Loan) ledger.Change { return ledger.Confirm{Units: in.Units} }, nil)
}

// publish takes what a provider says that it can give now.
func (s *simulator) publish(provider string, c api.Catalog) {
	s.publishOffers(provider, c.Offers)
	s.publishTemplates(provider, c)
	s.catalogChanged = true
	s.wantSession()
}

func (s *simulator) publishOffers(provider string, offers []cluster.Offer) {
	kept := slices.DeleteFunc(slices.Clone(s.offers), func(o cluster.Offer) bool { return o.Provider == provider })
	for _, o := range offers {
		if s.resourceIndex[o.Resource] == nil {
			continue
		}
		o.Provider, o.Published = provider, s.now
		if old := s.offer(provider, o.Resource); old != nil {
			o = o.After(*old)
		}
		kept = append(kept, o)
	}
	slices.SortStableFunc(kept, func(a, b cluster.Offer) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Resource, b.Resource))
	})
	s.offers = kept
}

func (s *simulator) publishTemplates(provider string, c api.Catalog) {
	kept := slices.DeleteFunc(slices.Clone(s.templates), func(t cluster.Template) bool { return t.Provider == provider })
	for _, t := range c.Templates {
		t.Provider, t.Published, t.Quotas = provider, s.now, qualified(provider, t.Quotas)
		if old := s.template(t.Name, provider); old != nil {
			t = t.After(*old)
		}
		kept = append(kept, t)
	}
	slices.SortStableFunc(kept, func(a, b cluster.Template) int { return cmp.Compare(a.Name, b.Name) })
	s.templates = kept
	quotas := slices.Clone(c.Quotas)
	for i := range quotas {
		quotas[i].Name, quotas[i].Published = provider+"."+quotas[i].Name, s.now
	}
	s.quotas[provider] = quotas
}

func qualified(provider string, quotas []string) []string {
	names := slices.Clone(quotas)
	for i := range names {
		names[i] = provider + "." + names[i]
	}
	return names
}

// mostNamedJobs is how many jobs a host is said to be for.
const mostNamedJobs = 20

// view answers what a provider's loans and hosts are decided upon.
func (s *simulator) view(provider string, ask []string) (v api.ProviderView) {
	v.Provider, v.Room, v.Weights = provider, map[string]int64{}, map[string]int64{}
	v.Loans = map[string]int64{}
	for name, n := range s.loansEver[provider] {
		v.Loans[name] = n
	}
	v.Hosts.Made = map[string]int64{}
	for _, r := range s.resources {
		v.Weights[r.Name] = r.Weight()
		v.Room[r.Name] = r.account.MaxBorrowed - r.account.Borrowed() - r.account.Requested()
		for _, l := range r.account.Loans {
			if l.Provider == provider {
				v.Open = append(v.Open, l)
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
			d.Jobs = d.Jobs[:min(len(d.Jobs), mostNamedJobs)]
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
