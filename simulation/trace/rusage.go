package trace

import (
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// rusage is what a resource requirement of LSF reserves.
type rusage struct {
	// choices are the tokens of each part that stands between ||; mostly there is one.
	choices  [][]held
	memoryMB int64 // on each host
	unit     float64
}

// held is units of a shared resource that a job takes.
type held struct {
	name string
	n    int64
	// duration is for how long, 0 to the end.
	duration cluster.Duration
}

// ownResources are what hosts have by themselves, so not tokens.
var ownResources = map[string]bool{
	"mem": true, "swp": true, "tmp": true, "maxmem": true, "maxswp": true, "maxtmp": true, "r15s": true, "r1m": true, "r15m": true, "ut": true, "pg": true,
	"io": true, "ls": true, "it": true, "cpu": true, "slots": true, "ncpus": true, "ngpus": true, "ngpus_physical": true, "ngpus_shared": true, "ngpus_excl_p": true,
	"ngpus_excl_t": true, "gmem": true, "nodes": true, "core": true,
}

// rusageOf reads the rusage sections of a resource requirement, such as
// "select[...] rusage[mem=500:duration=1h, vcs=2:duration=5]". A duration without a
// unit counts minutes. It answers false where it leaves out a part that it does not
// understand. Memory without a unit counts so many bytes.
func rusageOf(text string, unit float64) (all rusage, ok bool) {
	all.unit, ok = unit, true
	for {
		_, rest, found := strings.Cut(text, "rusage[")
		if !found {
			break
		}
		inside, after, closed := strings.Cut(rest, "]")
		ok = ok && closed
		text = after
		for i, part := range strings.Split(inside, "||") {
			if len(all.choices) <= i {
				all.choices = append(all.choices, nil)
			}
			ok = all.part(i, part) && ok
		}
	}
	return all, ok
}

// part reads what stands between two ||.
func (all *rusage) part(choice int, text string) (ok bool) {
	ok = true
	for item := range strings.SplitSeq(strings.Trim(text, " ()"), ",") {
		understood := all.item(choice, strings.TrimSpace(item))
		ok = ok && understood
	}
	return ok
}

// item reads one item, such as "vcs=2:duration=5" or "mem=500:vcs=1".
func (all *rusage) item(choice int, text string) bool {
	duration, ok := cluster.Duration(0), true
	var own []held
	for term := range strings.SplitSeq(text, ":") {
		name, value, _ := strings.Cut(strings.TrimSpace(term), "=")
		name, value = strings.Trim(name, " ()"), strings.Trim(value, " ()")
		switch {
		case name == "":
		case name == "duration":
			d, understood := lsfDuration(value)
			duration, ok = d, ok && understood
		case name == "decay" || name == "threshold":
		case name == "mem":
			mb, understood := memory(value, all.unit)
			all.memoryMB, ok = max(all.memoryMB, min(mb, mostMB)), ok && understood
		case ownResources[name]:
		default:
			n, err := strconv.ParseFloat(value, 64)
			if err != nil || !(n >= 0 && n <= mostProcs) {
				ok = false
			} else if units := int64(n); n > 0 {
				if float64(units) < n {
					units++
				}
				own = append(own, held{name: name, n: units})
			}
		}
	}
	for i := range own {
		own[i].duration = duration
	}
	all.choices[choice] = append(all.choices[choice], own...)
	return ok
}

// duration answers for how long tokens are held, the longest where they differ.
func (all *rusage) duration() (longest cluster.Duration, differ bool) {
	first, any := cluster.Duration(0), false
	for _, choice := range all.choices {
		for _, t := range choice {
			differ = differ || any && t.duration != first
			if !any {
				first, any = t.duration, true
				longest = t.duration
			}
			if longest == 0 || t.duration == 0 {
				longest = 0
			} else {
				longest = max(longest, t.duration)
			}
		}
	}
	return longest, differ
}

// lsfDuration reads a duration such as 5, 90s, 1m or 2h.
func lsfDuration(text string) (cluster.Duration, bool) {
	unit := cluster.Minute
	switch {
	case strings.HasSuffix(text, "s"):
		unit = cluster.Second
	case strings.HasSuffix(text, "h"):
		unit = cluster.Hour
	}
	n, ok := integer([]byte(strings.TrimRight(text, "smh")))
	if !ok || n < 0 || n > 1_000_000_000 {
		return 0, false
	}
	return min(cluster.Duration(n)*unit, longestRun), true
}
