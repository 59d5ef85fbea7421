package policy

import (
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
)

// HostCounts is how many elastic hosts there are, read at one moment.
type HostCounts struct {
	// Open counts those that stand for something by template, and Begun those
	// that were asked for within the step's time.
	Open, Begun map[string]int64
	// Here counts those that have joined, and Unhealthy those of them that do not
	// answer.
	Here, Unhealthy int64
}

// Names of the cluster's own limits, as sessions tell of them.
const (
	limitMax  = "hosts.max"
	limitStep = "hosts.step"
	limitHalt = "hosts.halt"
)

// Limits answers the cluster's own limits on elastic hosts in the form in which
// sessions keep to limits, and the templates with those that concern them: the same ones where there are none. It
// also answers why no more hosts are asked for, where too many are unhealthy.
func Limits(rules cluster.HostRules, counts HostCounts, templates []cluster.Template, now cluster.Time) (limited []cluster.Template, limits []cluster.Quota, halt string) {
	limits = []cluster.Quota{}
	add := func(name string, limit, used int64) {
		limits = append(limits, cluster.Quota{Name: name, Counts: "hosts", Limit: limit, Used: used, Published: now})
	}
	if rules.Max > 0 {
		add(limitMax, rules.Max, sum(counts.Open, nil))
	}
	if rules.Step.Hosts > 0 {
		add(limitStep, rules.Step.Hosts, sum(counts.Begun, nil))
	}
	if halt = halted(rules.Halt, counts); halt != "" {
		add(limitHalt, 0, 0)
		limits[len(limits)-1].Why = halt
	}
	if len(limits)+len(rules.Limits) == 0 {
		return templates, limits, ""
	}
	general := len(limits)
	for _, l := range rules.Limits {
		add("hosts.limits."+l.Name, l.Max, sum(counts.Open, l.Templates))
	}
	limited = slices.Clone(templates)
	for i := range limited {
		t := &limited[i]
		t.Quotas = slices.Clone(t.Quotas)
		for _, q := range limits[:general] {
			t.Quotas = append(t.Quotas, q.Name)
		}
		for j, l := range rules.Limits {
			if slices.Contains(l.Templates, t.Name) {
				t.Quotas = append(t.Quotas, limits[general+j].Name)
			}
		}
	}
	return limited, limits, halt
}

// halted answers why no more hosts are asked for. Hosts that were never made or
// never joined do not count: they make their template be let alone.
func halted(h cluster.HostHalt, c HostCounts) string {
	if h.Hosts == 0 || c.Unhealthy < h.Hosts || c.Unhealthy*100 < h.Percent*c.Here {
		return ""
	}
	return fmt.Sprintf("%d of %d elastic hosts do not answer", c.Unhealthy, c.Here)
}

// sum adds up the counts of the named templates, or of all for nil.
func sum(counts map[string]int64, names []string) (n int64) {
	if names == nil {
		for _, k := range counts {
			n += k
		}
		return n
	}
	for _, name := range names {
		n += counts[name]
	}
	return n
}
