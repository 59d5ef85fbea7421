package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ReadCapacity answers the capacity that lines say: countables as NAME=COUNT, features as they are, and
// attributes among them as NAME=VALUE. Paths of problems begin with at.
func ReadCapacity(at string, cpus, memoryMB int64, countables, features []string) (Capacity, Problems) {
	c := Capacity{CPUs: cpus, MemoryMB: memoryMB}
	var ps Problems
	for i, line := range countables {
		ps = append(ps, addCountable(&c, fmt.Sprintf("%scountables[%d]", at, i), line)...)
	}
	for i, line := range features {
		ps = append(ps, addFeature(&c, fmt.Sprintf("%sfeatures[%d]", at, i), line)...)
	}
	return c, ps
}

// addCountable adds a line NAME=COUNT.
func addCountable(c *Capacity, at, line string) Problems {
	name, text, ok := strings.Cut(line, "=")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return Problems{{Path: at, What: fmt.Sprintf("%q is not NAME=COUNT", line), Remedy: "write a name and a whole number, as in gpus=2"}}
	}
	if _, twice := c.Countables[name]; twice {
		return twiceAt(at, name)
	}
	if c.Countables == nil {
		c.Countables = map[string]int64{}
	}
	c.Countables[name] = n
	return moved(Capacity{Countables: map[string]int64{name: n}}.Validate(""), at)
}

// addFeature adds a feature, or an attribute as NAME=VALUE.
func addFeature(c *Capacity, at, line string) Problems {
	name, value, attribute := strings.Cut(line, "=")
	if !attribute {
		if slices.Contains(c.Features, line) {
			return twiceAt(at, line)
		}
		c.Features = append(c.Features, line)
		return moved(Capacity{Features: []string{line}}.Validate(""), at)
	}
	if _, twice := c.Attributes[name]; twice {
		return twiceAt(at, name)
	}
	if c.Attributes == nil {
		c.Attributes = map[string]string{}
	}
	c.Attributes[name] = value
	return moved(Capacity{Attributes: map[string]string{name: value}}.Validate(""), at)
}

func twiceAt(at, name string) Problems {
	return Problems{{Path: at, What: fmt.Sprintf("%q is there already", name), Remedy: "name each once"}}
}

// moved answers problems at another place.
func moved(ps Problems, at string) Problems {
	for i := range ps {
		ps[i].Path = at
	}
	return ps
}
