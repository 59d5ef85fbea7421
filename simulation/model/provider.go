package model

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// Provider is how a provider is believed to behave. Percentages are of calls or requests.
type Provider struct {
	Name string `json:"name"`
	// Answer is how long a call takes, Decide how long a request then stays pending, and
	// Returning how long a return does.
	Answer    Delay `json:"answer,omitzero"`
	Decide    Delay `json:"decide,omitzero"`
	Returning Delay `json:"returning,omitzero"`
	// PollInterval is how often it wants to be asked about the same thing.
	PollInterval cluster.Duration `json:"poll_interval,omitempty"`
	// RetryAfter is what a refusal advises; 0 for no advice.
	RetryAfter cluster.Duration `json:"retry_after,omitempty"`
	// Partial requests get half, Refused ones nothing, though there is enough; of Unknown calls
	// no answer comes, whether they were heard or not.
	Partial int64 `json:"partial_percent,omitempty"`
	Refused int64 `json:"refused_percent,omitempty"`
	Unknown int64 `json:"unknown_percent,omitempty"`
	// WholeReturn tells that no part of a loan can go back before the rest.
	WholeReturn bool `json:"whole_return,omitempty"`
	// StockOut is when there is nothing to be had, and Outage when nothing is answered.
	StockOut Spell `json:"stock_out,omitzero"`
	Outage   Spell `json:"outage,omitzero"`

	Templates []Template `json:"templates,omitempty"`
	Offers    []Offer    `json:"offers,omitempty"`
}

// Spell is something that comes now and then, by chance: Every so long on average, and then for a
// time of that average. Times are those of which it is certain.
type Spell struct {
	Every cluster.Duration `json:"every,omitempty"`
	Lasts cluster.Duration `json:"lasts,omitempty"`
	Times []Period         `json:"times,omitempty"`
}

// Period is from so long after the simulation's beginning, for so long.
type Period struct {
	After cluster.Duration `json:"after"`
	Lasts cluster.Duration `json:"lasts"`
}

// Template is a kind of host that the provider makes.
type Template struct {
	Template string `json:"template"`
	CPUs     int64  `json:"cpus"`
	MemoryMB int64  `json:"memory_mb"`
	// Countables has lines NAME=COUNT; Features has features, and attributes as NAME=VALUE.
	Countables []string `json:"countables,omitempty"`
	Features   []string `json:"features,omitempty"`
	//lint:ignore SA5008 the configuration's decoder knows squash
	Supply `json:",squash"`
	// Latency is how long the provider says that a host takes until it has joined; the median
	// of Boot where it is not given.
	Latency    cluster.Duration `json:"latency,omitempty"`
	Preference int64            `json:"preference,omitempty"`
	// Boot is how long a machine takes from being made until it joins; so many percent never do.
	Boot       Delay `json:"boot,omitzero"`
	NeverJoins int64 `json:"never_joins_percent,omitempty"`
	// Dies and Reclaimed are means: after what time a machine is no more without a word, and after
	// what time the provider takes it back, with a word Grace before.
	Dies      cluster.Duration `json:"dies_after,omitempty"`
	Reclaimed cluster.Duration `json:"reclaimed_after,omitempty"`
	Grace     cluster.Duration `json:"grace,omitempty"`
}

// Offer is what the provider lends of one resource.
type Offer struct {
	Resource string `json:"resource"`
	//lint:ignore SA5008 the configuration's decoder knows squash
	Supply     `json:",squash"`
	MaxRequest int64 `json:"max_request,omitempty"`
	MaxOpen    int64 `json:"max_open,omitempty"`
	// Recalled is a mean: after what time the lender wants a loan back.
	Recalled cluster.Duration `json:"recalled_after,omitempty"`
}

// Supply is how much there is of something over the time, and on what terms.
type Supply struct {
	// Capacity is how many there are at once, and Price what one costs for an hour, in millionths
	// of a currency unit: outside all windows and before the first step.
	Capacity    int64            `json:"capacity"`
	Price       int64            `json:"price,omitempty"`
	MinimumHold cluster.Duration `json:"minimum_hold,omitempty"`
	BillingStep cluster.Duration `json:"billing_step,omitempty"`
	// Windows repeat by day and week; of several at once the last counts. Steps come once.
	Windows []Window `json:"windows,omitempty"`
	Steps   []Step   `json:"steps,omitempty"`
}

// Most is how many there ever are at once.
func (s Supply) Most() int64 {
	most := s.Capacity
	for _, w := range s.Windows {
		if w.Capacity != nil {
			most = max(most, *w.Capacity)
		}
	}
	for _, step := range s.Steps {
		if step.Capacity != nil {
			most = max(most, *step.Capacity)
		}
	}
	return most
}

// Window is a time of the day on some days of the week, in the simulation's time zone.
type Window struct {
	// Days are as in "mon-fri" or "sat,sun"; empty for all. From and To are as in "08:00"; a
	// window whose end is not after its beginning ends on the next day.
	Days     string `json:"days,omitempty"`
	From     string `json:"from"`
	To       string `json:"to"`
	Capacity *int64 `json:"capacity,omitempty"`
	Price    *int64 `json:"price,omitempty"`
}

// Step is a change for good, so long after the simulation's beginning.
type Step struct {
	After    cluster.Duration `json:"after"`
	Capacity *int64           `json:"capacity,omitempty"`
	Price    *int64           `json:"price,omitempty"`
}

// Validate checks the model. Paths begin with at.
func (p Provider) Validate(at string) (ps cluster.Problems) {
	add := func(key, what, remedy string) {
		ps = append(ps, cluster.Problem{Path: at + "." + key, What: what, Remedy: remedy})
	}
	p.Answer.validate(&ps, at+".answer")
	p.Decide.validate(&ps, at+".decide")
	p.Returning.validate(&ps, at+".returning")
	for key, n := range map[string]int64{"partial_percent": p.Partial, "refused_percent": p.Refused, "unknown_percent": p.Unknown} {
		if n < 0 || n > 100 {
			add(key, fmt.Sprintf("%d is no percentage", n), "write 0 to 100")
		}
	}
	if p.Unknown > 90 {
		add("unknown_percent", fmt.Sprintf("%d leaves hardly an answer", p.Unknown), "write at most 90; outage has times without any")
	}
	p.StockOut.validate(&ps, at+".stock_out")
	p.Outage.validate(&ps, at+".outage")
	for i, t := range p.Templates {
		t.validate(&ps, fmt.Sprintf("%s.templates[%d]", at, i))
	}
	for i, o := range p.Offers {
		path := fmt.Sprintf("%s.offers[%d]", at, i)
		if !cluster.ValidName(o.Resource) {
			add(fmt.Sprintf("offers[%d].resource", i), fmt.Sprintf("name %q is not valid", o.Resource), "name a shared resource")
		}
		o.Supply.validate(&ps, path)
		positive(&ps, path+".recalled_after", int64(o.Recalled))
		positive(&ps, path+".max_request", o.MaxRequest)
		positive(&ps, path+".max_open", o.MaxOpen)
	}
	sortProblems(ps)
	return ps
}

func (t Template) validate(ps *cluster.Problems, at string) {
	if !cluster.ValidName(t.Template) {
		*ps = append(*ps, cluster.Problem{Path: at + ".template", What: fmt.Sprintf("name %q is not valid", t.Template), Remedy: "use letters, digits, '.', '_' or '-'"})
	}
	c, wrong := cluster.ReadCapacity(at+".", t.CPUs, t.MemoryMB, t.Countables, t.Features)
	*ps = append(append(*ps, wrong...), c.Validate(at+".")...)
	t.Supply.validate(ps, at)
	t.Boot.validate(ps, at+".boot")
	for _, d := range []struct {
		key string
		n   int64
	}{{"latency", int64(t.Latency)}, {"dies_after", int64(t.Dies)}, {"reclaimed_after", int64(t.Reclaimed)}, {"grace", int64(t.Grace)}} {
		positive(ps, at+"."+d.key, d.n)
	}
	if t.NeverJoins < 0 || t.NeverJoins > 100 {
		*ps = append(*ps, cluster.Problem{Path: at + ".never_joins_percent", What: fmt.Sprintf("%d is no percentage", t.NeverJoins), Remedy: "write 0 to 100"})
	}
}

// Has is what a host of the template has.
func (t Template) Has() cluster.Capacity {
	c, _ := cluster.ReadCapacity("", t.CPUs, t.MemoryMB, t.Countables, t.Features)
	return c
}

func (s Supply) validate(ps *cluster.Problems, at string) {
	for _, n := range []struct {
		key string
		n   int64
	}{{"capacity", s.Capacity}, {"price", s.Price}, {"minimum_hold", int64(s.MinimumHold)}, {"billing_step", int64(s.BillingStep)}} {
		positive(ps, at+"."+n.key, n.n)
	}
	if s.Capacity > providers.MostUnits {
		*ps = append(*ps, cluster.Problem{Path: at + ".capacity", What: fmt.Sprintf("%d is too many", s.Capacity), Remedy: "write what there could be"})
	}
	if s.Price > mostPrice {
		*ps = append(*ps, cluster.Problem{Path: at + ".price", What: fmt.Sprintf("%d is too much to add up", s.Price), Remedy: fmt.Sprintf("write at most %d millionths an hour", int64(mostPrice))})
	}
	for i, w := range s.Windows {
		if _, err := w.parse(); err != nil {
			*ps = append(*ps, cluster.Problem{Path: fmt.Sprintf("%s.windows[%d]", at, i), What: err.Error(), Remedy: `write days as in "mon-fri" and times as in "08:00"`})
		}
	}
	for i := range s.Steps {
		if i > 0 && s.Steps[i].After <= s.Steps[i-1].After || s.Steps[i].After < 0 {
			*ps = append(*ps, cluster.Problem{Path: fmt.Sprintf("%s.steps[%d].after", at, i), What: "it does not come after the one before", Remedy: "order the steps by time"})
		}
	}
}

// mostPrice keeps sums of money whole numbers: a million currency units an hour.
const mostPrice = 1_000_000_000_000

func (s Spell) validate(ps *cluster.Problems, at string) {
	positive(ps, at+".every", int64(s.Every))
	positive(ps, at+".lasts", int64(s.Lasts))
	if (s.Every > 0) != (s.Lasts > 0) {
		*ps = append(*ps, cluster.Problem{Path: at, What: "one of every and lasts is missing", Remedy: "give both, or neither"})
	}
	for i, p := range s.Times {
		if p.After < 0 || p.Lasts <= 0 {
			*ps = append(*ps, cluster.Problem{Path: fmt.Sprintf("%s.times[%d]", at, i), What: "it is no period", Remedy: "give after and lasts, as in {after: 2h, lasts: 10m}"})
		}
	}
}

func positive(ps *cluster.Problems, at string, n int64) {
	if n < 0 {
		*ps = append(*ps, cluster.Problem{Path: at, What: "it is negative", Remedy: "write 0 or more"})
	}
}
