package cluster

import (
	"cmp"
	"slices"
)

// Demand is what a session wanted and could not place on real capacity,
// addressed to one offer of tokens or to one template of hosts: it has a
// Resource or a Template. Loans and hosts that are intended upon it use it up;
// the next session replaces it.
type Demand struct {
	Resource string `json:"resource,omitempty"`
	Template string `json:"template,omitempty"`
	Provider string `json:"provider"`
	// Units are tokens of the resource, or hosts of the template.
	Units int64 `json:"units"`
	// Jobs are the ids of the waiting jobs that the units would let run.
	Jobs []int64 `json:"jobs"`
	// Price is that of all units together.
	Price  Price  `json:"price,omitempty"`
	Reason string `json:"reason"`
}

// What says of what Units are counted, in words: a resource, or hosts of a template.
func (d Demand) What() string {
	switch {
	case d.Resource != "":
		return d.Resource
	case d.Units == 1:
		return "host of " + d.Template
	}
	return "hosts of " + d.Template
}

// Same tells whether the same is demanded for the same jobs, of one offer or template;
// the reason is only words.
func (d Demand) Same(other Demand) bool {
	return d.Units == other.Units && d.Price == other.Price && slices.Equal(d.Jobs, other.Jobs)
}

// CompareDemand orders demand by resource, then template, then provider.
func CompareDemand(a, b Demand) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Template, b.Template), cmp.Compare(a.Provider, b.Provider))
}

// IdleSupply is what a session found unused: units of one resource that no
// running job uses, no waiting job reserves and that are not kept back; or one
// host that has no job and that no waiting job is about to get.
type IdleSupply struct {
	Resource string `json:"resource,omitempty"`
	Host     string `json:"host,omitempty"`
	// Template is that of the host; empty where the cluster owns it.
	Template string `json:"template,omitempty"`
	Units    int64  `json:"units"`
	// Since is when the unit that has been idle longest became so.
	Since Time `json:"since"`
}

// Half is supply that is here and is kept for waiting jobs until the rest of what
// they need has come: free units of one resource, or one host without a job. It
// is no idle supply, and becomes such as soon as the rest cannot be had any more.
type Half struct {
	Resource string `json:"resource,omitempty"`
	Host     string `json:"host,omitempty"`
	// Template is that of the host; empty where the cluster owns it.
	Template string `json:"template,omitempty"`
	Units    int64  `json:"units"`
	// Jobs are the ids of the first jobs that it is kept for, in the order in which
	// they are taken; Count counts all of them, elements of arrays one by one.
	Jobs  []int64 `json:"jobs"`
	Count int64   `json:"count"`
	// Awaits says in words, each thing once, what the jobs wait for.
	Awaits []string `json:"awaits"`
}

// IdleLot is a number of units that have been idle since one instant.
type IdleLot struct {
	Units int64 `json:"units"`
	Since Time  `json:"since"`
}

// IdleClock knows for each idle unit since when it is idle, as lots from the
// oldest to the youngest. Units are alike, so use takes the youngest and what
// has been idle longest stays so: that is what can be given back first.
type IdleClock []IdleLot

// Units answers how many units are idle.
func (c IdleClock) Units() int64 {
	var n int64
	for _, lot := range c {
		n += lot.Units
	}
	return n
}

// Since answers when the oldest idle unit became so; zero when none is idle.
func (c IdleClock) Since() Time {
	if len(c) == 0 {
		return 0
	}
	return c[0].Since
}

// Follow answers the clock after `units` were found idle at `now`. Where the
// time was set back, the new ones count as idle no longer than the youngest.
func (c IdleClock) Follow(units int64, now Time) IdleClock {
	next := slices.Clone(c)
	next.Keep(units, now)
	return next
}

// Keep makes the clock what Follow answers, in its own memory.
func (c *IdleClock) Keep(units int64, now Time) {
	change := max(units, 0) - c.Units()
	for change < 0 {
		youngest := &(*c)[len(*c)-1]
		taken := min(-change, youngest.Units)
		youngest.Units -= taken
		change += taken
		if youngest.Units == 0 {
			*c = (*c)[:len(*c)-1]
		}
	}
	if change == 0 {
		return
	}
	if n := len(*c); n > 0 && (*c)[n-1].Since >= now {
		(*c)[n-1].Units += change
		return
	}
	*c = append(*c, IdleLot{Units: change, Since: now})
}

// Take answers the clock after the oldest `units` were fenced.
func (c IdleClock) Take(units int64) IdleClock {
	next := slices.Clone(c)
	for units > 0 && len(next) > 0 {
		taken := min(units, next[0].Units)
		next[0].Units -= taken
		units -= taken
		if next[0].Units == 0 {
			next = next[1:]
		}
	}
	return next
}

// Ripe answers how many units have been idle for at least `age` at `now`.
func (c IdleClock) Ripe(age Duration, now Time) int64 {
	var n int64
	for _, lot := range c {
		if lot.Since.Add(age) <= now {
			n += lot.Units
		}
	}
	return n
}

// NextRipe answers when, after `now`, more units will have been idle for
// `age`: the earliest instant at which it is worth looking again. Where none of
// them has to lie idle first, that is a second later.
func (c IdleClock) NextRipe(age Duration, now Time) Time {
	for _, lot := range c {
		if ripe := lot.Since.Add(age); ripe > now {
			return ripe
		}
	}
	return now.Add(max(age, Second))
}
