package sweep

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/model"
)

// Variant is a farm with a name.
type Variant struct {
	Name     string
	Settings []Setting
	Farm     simulation.Farm
	// Baseline tells that it is none that could be had.
	Baseline bool
}

// The baselines.
const (
	Nothing   = "nothing elastic"
	Unlimited = "everything elastic"
	Oracle    = "everything at once"
)

// plenty is more of anything than any workload asks for.
const plenty = 1_000_000

// Baselines are the ends between which a policy is: what jobs would wait if nothing could be had, if there were
// no limits to what can be had, on the same terms, and if it came and went at once for the time that it is used.
func Baselines(farm simulation.Farm) []Variant {
	return []Variant{
		{Name: Nothing, Farm: withoutSupply(farm), Baseline: true},
		{Name: Unlimited, Farm: unlimited(farm), Baseline: true},
		{Name: Oracle, Farm: atOnce(farm), Baseline: true},
	}
}

func withoutSupply(farm simulation.Farm) simulation.Farm {
	farm = clone(farm)
	for i := range farm.Resources {
		if e := farm.Resources[i].Elastic; e != nil {
			e.MaxBorrowed = 0
		}
	}
	each(&farm, func(s *model.Supply) { s.Capacity, s.Windows, s.Steps = 0, prices(s.Windows, 0), nil })
	return farm
}

// prices answers windows of price only.
func prices(windows []model.Window, capacity int64) []model.Window {
	kept := make([]model.Window, len(windows))
	for i, w := range windows {
		w.Capacity = &capacity
		kept[i] = w
	}
	return kept
}

func unlimited(farm simulation.Farm) simulation.Farm {
	farm = clone(farm)
	for i := range farm.Resources {
		if e := farm.Resources[i].Elastic; e != nil {
			e.MaxBorrowed = plenty
		}
	}
	farm.Rules.Max, farm.Rules.Step, farm.Rules.Limits = 0, cluster.HostStep{}, nil
	each(&farm, func(s *model.Supply) {
		s.Capacity, s.Windows = plenty, prices(s.Windows, plenty)
		for i := range s.Steps {
			s.Steps[i].Capacity = nil
		}
	})
	for i := range farm.Settings.Providers {
		p := &farm.Settings.Providers[i]
		p.StockOut = model.Spell{}
		for j := range p.Offers {
			p.Offers[j].MaxRequest, p.Offers[j].MaxOpen = 0, plenty
		}
	}
	return farm
}

// atOnce has everything come the moment that it is asked for, without any mishap, and go when it lies idle.
func atOnce(farm simulation.Farm) simulation.Farm {
	farm = unlimited(farm)
	for i := range farm.Resources {
		if e := farm.Resources[i].Elastic; e != nil {
			e.IdleTime, e.MinimumHold = farm.SessionInterval, 0
		}
	}
	farm.Rules.IdleTime, farm.Thresholds = farm.SessionInterval, nil
	farm.Steps = simulation.Steps{Controller: 0, News: 0, Stop: cluster.Second}
	each(&farm, func(s *model.Supply) { s.MinimumHold, s.BillingStep = 0, 0 })
	for i := range farm.Settings.Providers {
		p := &farm.Settings.Providers[i]
		*p = model.Provider{Name: p.Name, PollInterval: p.PollInterval, Templates: p.Templates, Offers: p.Offers}
		for j := range p.Templates {
			t := &p.Templates[j]
			t.Boot, t.Latency, t.NeverJoins, t.Dies, t.Reclaimed = model.Delay{}, 0, 0, 0, 0
		}
		for j := range p.Offers {
			p.Offers[j].Recalled = 0
		}
	}
	return farm
}

// each changes every supply of a farm that is a clone.
func each(farm *simulation.Farm, change func(*model.Supply)) {
	for i := range farm.Settings.Providers {
		p := &farm.Settings.Providers[i]
		for j := range p.Templates {
			change(&p.Templates[j].Supply)
		}
		for j := range p.Offers {
			change(&p.Offers[j].Supply)
		}
	}
}
