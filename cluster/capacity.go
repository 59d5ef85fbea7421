package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of what one host, or one host of a template, can say of itself.
const (
	// MostCountables is how many different countables one cluster can have.
	MostCountables = 64
	mostFeature    = 200 // bytes
)

// Capacity is what a host has for jobs.
type Capacity struct {
	CPUs     int64 `json:"cpus"`
	MemoryMB int64 `json:"memory_mb"`
	// Countables are what jobs can take beside cpus and memory, such as gpus.
	Countables map[string]int64 `json:"countables,omitempty"`
	// Features are what constraints of jobs ask for, such as "avx512"; an
	// attribute k with the value v counts as the feature "k=v".
	Features   []string          `json:"features,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Has tells whether a constraint finds the feature: one of Features, or an
// attribute with its value, as in "site=z1".
func (c Capacity) Has(feature string) bool {
	if slices.Contains(c.Features, feature) {
		return true
	}
	name, value, ok := strings.Cut(feature, "=")
	has, known := c.Attributes[name]
	return ok && known && has == value
}

// FeatureNames answers every feature that Has knows, sorted.
func (c Capacity) FeatureNames() []string {
	names := slices.Clone(c.Features)
	for name, value := range c.Attributes {
		names = append(names, name+"="+value)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// equal tells whether two capacities say the same in the same words.
func (c Capacity) equal(other Capacity) bool {
	return c.CPUs == other.CPUs && c.MemoryMB == other.MemoryMB && maps.Equal(c.Countables, other.Countables) &&
		slices.Equal(c.Features, other.Features) && maps.Equal(c.Attributes, other.Attributes)
}

// Covers tells whether c has at least as much of everything that is counted as d.
func (c Capacity) Covers(d Capacity) bool {
	return c.CPUs >= d.CPUs && c.MemoryMB >= d.MemoryMB && c.covers(d.Countables)
}

// Least answers c with nothing that d has not, and no more of anything than d has.
func (c Capacity) Least(d Capacity) Capacity {
	c.CPUs, c.MemoryMB = min(c.CPUs, d.CPUs), min(c.MemoryMB, d.MemoryMB)
	c.Countables = maps.Clone(c.Countables)
	for name, n := range c.Countables {
		c.Countables[name] = min(n, d.Countables[name])
	}
	c.Features = slices.DeleteFunc(slices.Clone(c.Features), func(f string) bool { return !d.Has(f) })
	c.Attributes = maps.Clone(c.Attributes)
	maps.DeleteFunc(c.Attributes, func(name, value string) bool { return !d.Has(name + "=" + value) })
	return c
}

// most answers c with all that d has, and no less of anything than d has.
func (c Capacity) most(d Capacity) Capacity {
	c.CPUs, c.MemoryMB = max(c.CPUs, d.CPUs), max(c.MemoryMB, d.MemoryMB)
	c.Countables = maps.Clone(c.Countables)
	for name, n := range d.Countables {
		if c.Countables[name] < n {
			c.Countables = with(c.Countables, name, n)
		}
	}
	c.Features = slices.Clone(c.Features)
	for _, f := range d.Features {
		if !c.Has(f) {
			c.Features = append(c.Features, f)
		}
	}
	c.Attributes = maps.Clone(c.Attributes)
	for name, value := range d.Attributes {
		c.Attributes = with(c.Attributes, name, value)
	}
	return c
}

// with answers the map with one entry more.
func with[V any](m map[string]V, name string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	return m
}

// hasAll tells whether constraints find every feature that d has on c too.
func (c Capacity) hasAll(d Capacity) bool {
	return !slices.ContainsFunc(d.FeatureNames(), func(f string) bool { return !c.Has(f) })
}

// Validate checks what a host says of itself. Paths begin with `at`, such as
// "hosts[2].", which may be empty.
func (c Capacity) Validate(at string) Problems {
	var ps Problems
	ps.count(at+"cpus", c.CPUs, mostUnits)
	ps.count(at+"memory_mb", c.MemoryMB, mostUnits)
	ps.countables(at+"countables", c.Countables)
	for i, f := range c.Features {
		ps.feature(fmt.Sprintf("%sfeatures[%d]", at, i), "feature", f)
		if slices.Contains(c.Features[:i], f) {
			ps.add(fmt.Sprintf("%sfeatures[%d]", at, i), fmt.Sprintf("feature %q is named twice", f), "name each once")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		path := at + "attributes." + name
		if strings.Contains(name, "=") {
			ps.add(path, fmt.Sprintf("attribute %q has an equals sign in its name", name), "write the name without it")
		}
		ps.feature(path, "attribute", name)
		ps.feature(path, "value", c.Attributes[name])
	}
	return ps
}

// feature refuses what no constraint could ask for.
func (ps *Problems) feature(path, what, text string) {
	if text == "" || len(text) > mostFeature || strings.ContainsAny(text, constraintSigns) || strings.ContainsFunc(text, isControl) {
		ps.add(path, fmt.Sprintf("%s %q cannot be asked for in a constraint", what, text),
			fmt.Sprintf("use 1 to %d bytes without blanks and without & | ! ( )", mostFeature))
	}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// ownNames are what hosts have beside countables, so that no countable can be
// called that.
var ownNames = []string{"cpus", "memory_mb", "hosts"}

func (ps *Problems) countables(path string, countables map[string]int64) {
	if len(countables) > MostCountables {
		ps.add(path, fmt.Sprintf("there are %d countables", len(countables)), fmt.Sprintf("name at most %d", MostCountables))
	}
	for _, name := range slices.Sorted(maps.Keys(countables)) {
		at := path + "." + name
		ps.name(at, name)
		if slices.Contains(ownNames, name) {
			ps.add(at, fmt.Sprintf("a countable cannot be called %q", name), "give cpus and memory_mb beside the countables, or use another name")
		}
		ps.count(at, countables[name], mostUnits)
	}
}

// same tells whether two capacities are alike, in whatever order and form a script
// prints them.
func (c Capacity) same(other Capacity) bool {
	return c.Covers(other) && other.Covers(c) && slices.Equal(c.FeatureNames(), other.FeatureNames())
}
