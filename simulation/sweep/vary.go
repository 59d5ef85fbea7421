// Package sweep runs a farm in many variants of its settings, and beside them the baselines that say how
// far a policy is from both ends: nothing elastic, everything elastic, and everything at once.
package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/model"
)

// Axis is one setting that is varied, and what it is set to.
type Axis struct {
	Key    string
	Values []string
}

// Setting is one setting with its value.
type Setting struct{ Key, Value string }

// String is the setting as the command line has it.
func (s Setting) String() string { return s.Key + "=" + s.Value }

// ParseAxis reads KEY=VALUE,VALUE.
func ParseAxis(text string) (Axis, error) {
	key, list, ok := strings.Cut(text, "=")
	if !ok || key == "" || list == "" {
		return Axis{}, fmt.Errorf("%q is not KEY=VALUE,VALUE; write as in idle_time=5m,15m,1h", text)
	}
	values := strings.Split(list, ",")
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
		if values[i] == "" || slices.Contains(values[:i], values[i]) {
			return Axis{}, fmt.Errorf("%q has a value that is empty or there twice; write each once", text)
		}
	}
	return Axis{Key: strings.TrimSpace(key), Values: values}, nil
}

// Combinations are all settings of the axes together, the last axis going first.
func Combinations(axes []Axis) [][]Setting {
	all := [][]Setting{nil}
	for _, axis := range axes {
		var next [][]Setting
		for _, before := range all {
			for _, v := range axis.Values {
				next = append(next, append(slices.Clone(before), Setting{axis.Key, v}))
			}
		}
		all = next
	}
	return all
}

// Apply answers the farm with settings changed.
func Apply(farm simulation.Farm, settings []Setting) (simulation.Farm, error) {
	farm = clone(farm)
	for _, s := range settings {
		if err := apply(&farm, s); err != nil {
			return farm, err
		}
	}
	return farm, nil
}

// clone answers a farm of which everything that can be varied is its own.
func clone(farm simulation.Farm) simulation.Farm {
	farm.Resources = slices.Clone(farm.Resources)
	for i, r := range farm.Resources {
		if r.Elastic != nil {
			elastic := *r.Elastic
			farm.Resources[i].Elastic = &elastic
		}
	}
	farm.Settings.Providers = slices.Clone(farm.Settings.Providers)
	for i := range farm.Settings.Providers {
		p := &farm.Settings.Providers[i]
		p.Templates, p.Offers = slices.Clone(p.Templates), slices.Clone(p.Offers)
	}
	each(&farm, func(s *model.Supply) { s.Windows, s.Steps = slices.Clone(s.Windows), slices.Clone(s.Steps) })
	return farm
}

// knob sets one thing in a farm.
type knob struct {
	name, what string
	// Of the following one is there: of the farm, of a resource, of a template, of an offer.
	farm     func(*simulation.Farm, string) error
	resource func(*cluster.SharedResource, string) error
	template func(*model.Template, string) error
	offer    func(*model.Offer, string) error
}

// knobs are what can be varied. A name alone sets it wherever it is found; behind the name of a resource or a
// template and a dot it sets that one's.
var knobs = []knob{
	{name: "idle_time", what: "how long tokens lie idle before they go back", resource: elasticOf(func(e *cluster.Elastic, v string) error { return length(&e.IdleTime, v) })},
	{name: "max_borrowed", what: "how many tokens may be borrowed; 0 for none", resource: setMaxBorrowed},
	{name: "minimum_hold", what: "how long a loan is kept at least", resource: elasticOf(func(e *cluster.Elastic, v string) error { return length(&e.MinimumHold, v) })},
	{name: "owned", what: "how many tokens the cluster owns", resource: func(r *cluster.SharedResource, v string) error { return count(&r.Owned, v) }},
	{name: "capacity", what: "how many hosts of a template there can be", template: func(t *model.Template, v string) error { return count(&t.Capacity, v) }},
	{name: "offered", what: "how many tokens a pool has", offer: func(o *model.Offer, v string) error { return count(&o.Capacity, v) }},
	{name: "price", what: "what a host costs for an hour, in millionths", template: func(t *model.Template, v string) error { return count(&t.Price, v) }},
	{name: "token_price", what: "what a token costs for an hour, in millionths", offer: func(o *model.Offer, v string) error { return count(&o.Price, v) }},
	{name: "boot", what: "how long a host takes to join", template: func(t *model.Template, v string) error { t.Boot = model.Delay{}; return length(&t.Boot.Fixed, v) }},
	{name: "host_idle_time", what: "how long a host lies idle before it goes back", farm: func(f *simulation.Farm, v string) error { return length(&f.Rules.IdleTime, v) }},
	{name: "max_hosts", what: "how many elastic hosts there may be; 0 for no limit", farm: func(f *simulation.Farm, v string) error { return count(&f.Rules.Max, v) }},
	{name: "max_lifetime", what: "after what time a host is drained; 0s for never", farm: func(f *simulation.Farm, v string) error { return length(&f.Rules.MaxLifetime, v) }},
	{name: "order", what: "fcfs, easy or conservative", farm: setOrder},
	{name: "seed", what: "where chance comes from", farm: func(f *simulation.Farm, v string) error { return count(&f.Seed, v) }},
}

// Keys says what can be varied, a line each.
func Keys() (lines []string) {
	for _, k := range knobs {
		of := ""
		switch {
		case k.resource != nil || k.offer != nil:
			of = "[RESOURCE.]"
		case k.template != nil:
			of = "[TEMPLATE.]"
		}
		lines = append(lines, fmt.Sprintf("%-28s %s", of+k.name, k.what))
	}
	return lines
}

func apply(farm *simulation.Farm, s Setting) error {
	of, name, named := strings.Cut(s.Key, ".")
	if !named {
		of, name = "", s.Key
	}
	i := slices.IndexFunc(knobs, func(k knob) bool { return k.name == name })
	if i < 0 {
		return fmt.Errorf("%s: there is nothing called %q to vary; there are:\n  %s", s, name, strings.Join(Keys(), "\n  "))
	}
	found, err := knobs[i].turn(farm, of, s.Value)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", s, err)
	case !found && of != "":
		return fmt.Errorf("%s: nothing called %q has that; name a resource or a template of the cluster file", s, of)
	case !found:
		return fmt.Errorf("%s: nothing in the cluster file has that", s)
	}
	return nil
}

// turn sets a knob wherever it is meant, and tells whether that is anywhere.
func (k knob) turn(farm *simulation.Farm, of, value string) (found bool, err error) {
	if k.farm != nil {
		return of == "", k.farm(farm, value)
	}
	set := func(name string, do func() error) {
		if of == "" || of == name {
			found, err = true, cmp.Or(err, do())
		}
	}
	for i := range farm.Resources {
		if r := &farm.Resources[i]; k.resource != nil && (of != "" || r.Elastic != nil) {
			set(r.Name, func() error { return k.resource(r, value) })
		}
	}
	for i := range farm.Settings.Providers {
		p := &farm.Settings.Providers[i]
		for j := range p.Templates {
			if k.template != nil {
				set(p.Templates[j].Template, func() error { return k.template(&p.Templates[j], value) })
			}
		}
		for j := range p.Offers {
			if k.offer != nil {
				set(p.Offers[j].Resource, func() error { return k.offer(&p.Offers[j], value) })
			}
		}
	}
	return found, err
}

func elasticOf(set func(*cluster.Elastic, string) error) func(*cluster.SharedResource, string) error {
	return func(r *cluster.SharedResource, value string) error {
		if r.Elastic == nil {
			return fmt.Errorf("resource %s is not elastic", r.Name)
		}
		return set(r.Elastic, value)
	}
}

// setMaxBorrowed also lets nothing be borrowed, which a cluster file says by leaving the section out.
func setMaxBorrowed(r *cluster.SharedResource, value string) error {
	if r.Elastic == nil {
		return fmt.Errorf("resource %s is not elastic", r.Name)
	}
	return count(&r.Elastic.MaxBorrowed, value)
}

func setOrder(f *simulation.Farm, value string) error {
	order := scheduling.Order(value)
	if !slices.Contains([]scheduling.Order{scheduling.FCFS, scheduling.EASY, scheduling.Conservative}, order) {
		return fmt.Errorf("%q is no order; write fcfs, easy or conservative", value)
	}
	f.Policy.Order = order
	return nil
}

func length(to *cluster.Duration, value string) error {
	if err := to.UnmarshalText([]byte(value)); err != nil {
		return err
	}
	if *to < 0 {
		return fmt.Errorf("%s is negative; write a length of time such as 30m", value)
	}
	return nil
}

func count(to *int64, value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a whole number of 0 or more", value)
	}
	*to = n
	return nil
}
