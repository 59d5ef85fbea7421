package simulation

import (
	"fmt"
	"slices"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation/model"
)

// Farm is the cluster that is simulated: its live configuration, and what stands in for the world.
type Farm struct {
	Name string
	// SessionInterval is the longest time between two sessions.
	SessionInterval cluster.Duration
	Resources       []cluster.SharedResource
	Rules           cluster.HostRules
	Policy          scheduling.Policy
	Thresholds      []scheduling.Threshold
	Providers       []Provider
	Settings
}

// Provider is how a provider is surveyed.
type Provider struct {
	Name                     string
	SurveyEvery, OrphanGrace cluster.Duration
}

// Settings are what a simulation needs beside the live configuration: its section `simulation`.
type Settings struct {
	// Seed is where all chance comes from.
	Seed int64 `json:"seed,omitempty"`
	// Zone is where days and hours are, by its IANA name: UTC unless given.
	Zone string `json:"zone,omitempty"`
	// Hosts are those that the cluster owns.
	Hosts []OwnedHosts `json:"hosts,omitempty"`
	Steps Steps        `json:"steps,omitzero"`
	// Providers are models of the providers of the configuration, under the same names.
	Providers []model.Provider `json:"providers,omitempty"`
	// Patience is how long nothing may happen to any job before the simulation ends with jobs that
	// still wait: two weeks unless given.
	Patience cluster.Duration `json:"patience,omitempty"`
	// Operator is what an operator does meanwhile, in order of time.
	Operator []Order `json:"operator,omitempty"`
}

// OwnedHosts are hosts that are alike. Of several each is called NAME-N, from 1.
type OwnedHosts struct {
	Name     string `json:"name"`
	Count    int64  `json:"count,omitempty"` // 0 means 1
	CPUs     int64  `json:"cpus"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
	// Countables has lines NAME=COUNT; Features has features, and attributes as NAME=VALUE.
	Countables []string `json:"countables,omitempty"`
	Features   []string `json:"features,omitempty"`
}

func (o OwnedHosts) capacity() cluster.Capacity {
	c, _ := cluster.ReadCapacity("", o.CPUs, o.MemoryMB, o.Countables, o.Features)
	return c
}

// hosts answers the hosts one by one.
func (o OwnedHosts) hosts() (all []scheduling.Host) {
	for n := range max(o.Count, 1) {
		h := scheduling.Host{Name: o.Name, Capacity: o.capacity()}
		if o.Count > 1 {
			h.Name = fmt.Sprintf("%s-%d", o.Name, n+1)
		}
		all = append(all, h)
	}
	return all
}

// Steps is how long things take that are no provider's.
type Steps struct {
	// Controller is how long a write to the controller takes, and News how long until a story
	// hears what the controller saw.
	Controller cluster.Duration `json:"controller,omitempty"`
	News       cluster.Duration `json:"news,omitempty"`
	// Stop is how long jobs take to stop that are told to.
	Stop cluster.Duration `json:"stop,omitempty"`
}

// Order is an operator's order, so long after the beginning.
type Order struct {
	After cluster.Duration `json:"after"`
	// Do is "return", "drain", "undrain", "hold", "release", "gone", "believe", "own" or "lend"; Subject is a
	// loan's or a host's id, a provider to believe, or for the last two a resource.
	Do      string `json:"do"`
	Subject string `json:"subject"`
	// Units are those to return (0 for all), to own from now on, or to lend in all.
	Units int64 `json:"units,omitempty"`
	// Within and Requeue are those of a drain.
	Within  cluster.Duration `json:"within,omitempty"`
	Requeue bool             `json:"requeue,omitempty"`
	Why     string           `json:"why,omitempty"`
}

// orders are the words of an operator.
var orders = []string{"return", "drain", "undrain", "hold", "release", "gone", "believe", "own", "lend"}

const (
	defaultController = 20 * cluster.Millisecond
	defaultNews       = 50 * cluster.Millisecond
	defaultStop       = cluster.Second
	defaultPatience   = 14 * 24 * cluster.Hour
)

// complete fills in what is not given.
func (s *Settings) complete() {
	if s.Steps == (Steps{}) {
		s.Steps = Steps{Controller: defaultController, News: defaultNews, Stop: defaultStop}
	}
	if s.Patience == 0 {
		s.Patience = defaultPatience
	}
}

func (s Settings) zone() (*time.Location, error) {
	if s.Zone == "" {
		return time.UTC, nil
	}
	return time.LoadLocation(s.Zone)
}

// Validate checks what a farm is simulated with. Paths begin with at.
func (f Farm) Validate(at string) cluster.Problems {
	var providers, resources []string
	for _, p := range f.Providers {
		providers = append(providers, p.Name)
	}
	for _, r := range f.Resources {
		resources = append(resources, r.Name)
	}
	return f.Settings.Validate(at, providers, resources)
}

// ValidateModels finds what would not be there in a simulation: providers without a model, and lenders that offer
// nothing of what they are to lend.
func (f Farm) ValidateModels(at string) (ps cluster.Problems) {
	offers := map[string]bool{}
	for _, p := range f.Settings.Providers {
		for _, o := range p.Offers {
			offers[p.Name+" "+o.Resource] = true
		}
	}
	for _, p := range f.Providers {
		if !slices.ContainsFunc(f.Settings.Providers, func(m model.Provider) bool { return m.Name == p.Name }) {
			ps = append(ps, cluster.Problem{Path: at + ".providers", What: fmt.Sprintf("there is no model of provider %s", p.Name), Remedy: "say how it behaves, with at least its templates or offers"})
		}
	}
	for _, r := range f.Resources {
		if r.Elastic == nil || len(ps) > 0 {
			continue
		}
		for _, lender := range r.Elastic.Lenders {
			if !offers[lender+" "+r.Name] {
				ps = append(ps, cluster.Problem{Path: at + ".providers", What: fmt.Sprintf("%s is to lend %s and offers none", lender, r.Name), Remedy: "add an offer to its model"})
			}
		}
	}
	return ps
}

// Validate checks the settings. Paths begin with at; providers and resources are the configuration's.
func (s Settings) Validate(at string, providers, resources []string) (ps cluster.Problems) {
	add := func(key, what, remedy string) {
		ps = append(ps, cluster.Problem{Path: at + "." + key, What: what, Remedy: remedy})
	}
	if _, err := s.zone(); err != nil {
		add("zone", fmt.Sprintf("there is no time zone %q", s.Zone), "write a name such as Europe/Berlin, or UTC")
	}
	if s.Seed < 0 {
		add("seed", "it is negative", "write 0 or more")
	}
	for _, d := range []struct {
		key string
		d   cluster.Duration
	}{{"steps.controller", s.Steps.Controller}, {"steps.news", s.Steps.News}, {"steps.stop", s.Steps.Stop}, {"patience", s.Patience}} {
		if d.d < 0 {
			add(d.key, d.d.String()+" is negative", "write a length of time such as 20ms")
		}
	}
	names := map[string]string{}
	for i, h := range s.Hosts {
		path := fmt.Sprintf("hosts[%d]", i)
		if !cluster.ValidName(h.Name) {
			add(path+".name", fmt.Sprintf("name %q is not valid", h.Name), "use letters, digits, '.', '_' or '-'")
		}
		if h.Count < 0 || h.Count > 1_000_000 {
			add(path+".count", fmt.Sprintf("%d is no number of hosts", h.Count), "write 1 to 1000000")
			continue
		}
		_, wrong := cluster.ReadCapacity(at+"."+path+".", h.CPUs, h.MemoryMB, h.Countables, h.Features)
		ps = append(append(ps, wrong...), h.capacity().Validate(at+"."+path+".")...)
		for _, one := range h.hosts() {
			if other, twice := names[one.Name]; twice {
				add(path+".name", fmt.Sprintf("there is a host %s already, by %s", one.Name, other), "give the hosts another name")
				break
			}
			names[one.Name] = path
		}
	}
	ps = append(ps, s.validateProviders(at, providers, resources)...)
	return append(ps, s.validateOrders(at)...)
}

func (s Settings) validateProviders(at string, known, resources []string) (ps cluster.Problems) {
	modelled := map[string]bool{}
	makers := map[string]string{}
	for i, p := range s.Providers {
		path := fmt.Sprintf("%s.providers[%d]", at, i)
		switch {
		case !slices.Contains(known, p.Name):
			ps = append(ps, cluster.Problem{Path: path + ".name", What: fmt.Sprintf("%q is not a provider", p.Name), Remedy: "name one of the section providers, or add it there"})
		case modelled[p.Name]:
			ps = append(ps, cluster.Problem{Path: path + ".name", What: fmt.Sprintf("there is a model of %s already", p.Name), Remedy: "give each provider one model"})
		}
		modelled[p.Name] = true
		ps = append(ps, p.Validate(path)...)
		for j, o := range p.Offers {
			if cluster.ValidName(o.Resource) && !slices.Contains(resources, o.Resource) {
				ps = append(ps, cluster.Problem{Path: fmt.Sprintf("%s.offers[%d].resource", path, j), What: fmt.Sprintf("there is no shared resource %q", o.Resource), Remedy: "name one of the section resources"})
			}
		}
		for j, t := range p.Templates {
			if other, twice := makers[t.Template]; twice {
				ps = append(ps, cluster.Problem{
					Path: fmt.Sprintf("%s.templates[%d].template", path, j), What: fmt.Sprintf("%s has a template %s already", other, t.Template), Remedy: "give each template a name of its own",
				})
			}
			makers[t.Template] = p.Name
		}
	}
	return ps
}

func (s Settings) validateOrders(at string) (ps cluster.Problems) {
	for i, o := range s.Operator {
		path := fmt.Sprintf("%s.operator[%d]", at, i)
		if !slices.Contains(orders, o.Do) {
			ps = append(ps, cluster.Problem{Path: path + ".do", What: fmt.Sprintf("%q is no order", o.Do), Remedy: fmt.Sprintf("write one of %v", orders)})
		}
		if o.After < 0 || i > 0 && o.After < s.Operator[i-1].After {
			ps = append(ps, cluster.Problem{Path: path + ".after", What: "it comes before the order above it", Remedy: "order them by time"})
		}
		if o.Units < 0 || o.Within < 0 {
			ps = append(ps, cluster.Problem{Path: path, What: "units or within is negative", Remedy: "write 0 or more"})
		}
		if o.Subject == "" {
			ps = append(ps, cluster.Problem{Path: path + ".subject", What: "there is none", Remedy: "name a loan, a host, a provider or a resource"})
		}
	}
	return ps
}
