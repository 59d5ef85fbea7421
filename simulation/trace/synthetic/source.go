package synthetic

import (
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// source says how the same trace is made again: all options that were given.
func (o Options) source() string {
	parts := []string{fmt.Sprintf("generated: %s, seed %d", o.Kind, o.Seed)}
	add := func(given bool, format string, value any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(o.Jobs > 0, "%d jobs", o.Jobs)
	add(o.Span > 0, "span %s", o.Span)
	add(o.Load > 0, "load %s", number(o.Load))
	add(o.Start > 0, "start %s", o.Start)
	add(o.Processors > 0, "%d processors", o.Processors)
	add(o.HostCPUs > 0, "%d cpus per host", o.HostCPUs)
	add(o.Rhythm != "", "rhythm %s", o.Rhythm)
	add(o.Together > 0, "%d together", o.Together)
	add(o.Users > 0, "%d users", o.Users)
	add(len(o.Queues) > 0, "queues %s", queueList(o.Queues))
	add(o.Estimates != "", "estimates %s", o.Estimates)
	add(o.LimitFactor > 0, "limit factor %d", o.LimitFactor)
	var classes []string
	for _, c := range o.Classes {
		classes = append(classes, c.Name)
	}
	add(len(classes) > 0, "classes %s", strings.Join(classes, " and "))
	add(o.Profile != nil, "%s", "a profile of its own")
	add(o.Rate > 0, "%s jobs per hour", number(o.Rate))
	add(o.Run > 0, "mean run time %s", o.Run)
	return strings.Join(parts, ", ")
}

func queueList(queues []Queue) string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Name
		if q.Longest != cluster.Duration(0) {
			names[i] += " up to " + q.Longest.String()
		}
	}
	return strings.Join(names, " and ")
}
