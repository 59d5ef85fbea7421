package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// Capacity answers what the machine has for jobs, and the faults of what is
// said of it; their paths begin with "agent.".
func (a Agent) Capacity() (cluster.Capacity, cluster.Problems) {
	c := cluster.Capacity{CPUs: a.CPUs, MemoryMB: a.MemoryMB}
	var ps cluster.Problems
	for i, line := range a.Countables {
		ps = append(ps, addCountable(&c, fmt.Sprintf("agent.countables[%d]", i), line)...)
	}
	for i, line := range a.Features {
		ps = append(ps, addFeature(&c, fmt.Sprintf("agent.features[%d]", i), line)...)
	}
	return c, ps
}

// addCountable adds a line NAME=COUNT.
func addCountable(c *cluster.Capacity, at, line string) cluster.Problems {
	name, text, ok := strings.Cut(line, "=")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return cluster.Problems{{Path: at, What: fmt.Sprintf("%q is not NAME=COUNT", line), Remedy: "write a name and a whole number, as in gpus=2"}}
	}
	if _, twice := c.Countables[name]; twice {
		return twiceAt(at, name)
	}
	if c.Countables == nil {
		c.Countables = map[string]int64{}
	}
	c.Countables[name] = n
	return moved(cluster.Capacity{Countables: map[string]int64{name: n}}.Validate(""), at)
}

// addFeature adds a feature, or an attribute as NAME=VALUE.
func addFeature(c *cluster.Capacity, at, line string) cluster.Problems {
	name, value, attribute := strings.Cut(line, "=")
	if !attribute {
		if slices.Contains(c.Features, line) {
			return twiceAt(at, line)
		}
		c.Features = append(c.Features, line)
		return moved(cluster.Capacity{Features: []string{line}}.Validate(""), at)
	}
	if _, twice := c.Attributes[name]; twice {
		return twiceAt(at, name)
	}
	if c.Attributes == nil {
		c.Attributes = map[string]string{}
	}
	c.Attributes[name] = value
	return moved(cluster.Capacity{Attributes: map[string]string{name: value}}.Validate(""), at)
}

func twiceAt(at, name string) cluster.Problems {
	return cluster.Problems{{Path: at, What: fmt.Sprintf("%q is there already", name), Remedy: "name each once"}}
}

// moved answers problems at another place.
func moved(ps cluster.Problems, at string) cluster.Problems {
	for i := range ps {
		ps[i].Path = at
	}
	return ps
}

// Override takes countables and features of the command line in place of the
// file's, each list where it has any.
func (a *Agent) Override(countables, features []string) error {
	if len(countables) > 0 {
		a.Countables = countables
	}
	if len(features) > 0 {
		a.Features = features
	}
	_, ps := a.Capacity()
	for i := range ps {
		ps[i].Path = strings.NewReplacer("agent.countables", "--countable", "agent.features", "--feature").Replace(ps[i].Path)
	}
	return ps.Err()
}
