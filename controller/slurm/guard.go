package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// smallFall is the least fall of what comes and goes all day, such as running jobs, that is doubted.
const smallFall = 3

// Facts are what of a reading tells whether Slurm has lost its memory.
type Facts struct {
	Booted  cluster.Time
	Running int64
	Nodes   int64
	// Total and Used are those of licences, by Slurm's names. One that is not in Total is gone.
	Total, Used map[string]int64
}

// factsOf answers the facts of a reading.
func factsOf(s Settings, jobs []Job, nodes []Node, licences map[string]Licence) Facts {
	f := Facts{Booted: s.Booted, Nodes: int64(len(nodes)), Total: make(map[string]int64, len(licences)), Used: make(map[string]int64, len(licences))}
	for i := range jobs {
		if holdsHosts[jobs[i].State] {
			f.Running++
		}
	}
	for name, l := range licences {
		f.Total[name], f.Used[name] = l.Total, l.Used
	}
	return f
}

// Guard decides which readings may be acted upon. Right after a start slurmctld does
// not have its jobs back yet, and a fault or a mistake can take licences and nodes
// away in one moment; what is bought or given back on such a reading is wrong. The
// zero Guard has seen nothing.
type Guard struct {
	seen bool
	// base is what was last acted upon, last what was last read.
	base, last Facts
}

// Judge takes the next reading. It answers the guard that has seen it, and a
// [*backend.NotYet] where the reading must not be acted upon: the first one after a start,
// ours or slurmctld's, and one with a sudden fall that the reading before did not show
// too. A fall is doubted
//   - of running jobs, and of used tokens of a licence: by at least 3, and by more than half,
//   - of nodes, and of the total of a licence: the same, or to zero, or the licence is gone.
func (g Guard) Judge(now Facts) (Guard, error) {
	if !g.seen {
		return Guard{seen: true, base: now, last: now}, &backend.NotYet{Why: "this is the first reading; the next one is acted upon"}
	}
	last := g.last
	g.last = now
	if now.Booted != last.Booted {
		return g, &backend.NotYet{Why: "slurmctld has started at " + now.Booted.String() + "; the next reading is acted upon"}
	}
	before, again := fallsFrom(g.base, last), fallsFrom(last, now)
	var doubts []string
	falls := fallsFrom(g.base, now)
	for _, what := range slices.Sorted(maps.Keys(falls)) {
		if _, confirmed := before[what]; !confirmed || again[what] != "" {
			doubts = append(doubts, what+" "+falls[what])
		}
	}
	if len(doubts) > 0 {
		return g, &backend.NotYet{Why: "a sudden fall waits for the next reading to confirm it: " + strings.Join(doubts, ", ")}
	}
	g.base = now
	return g, nil
}

// fallsFrom answers what fell suddenly between two readings, and how far.
func fallsFrom(from, to Facts) map[string]string {
	falls := map[string]string{}
	add := func(what string, fell bool, a, b int64) {
		if fell {
			falls[what] = fmt.Sprintf("from %d to %d", a, b)
		}
	}
	add("running jobs", plunged(from.Running, to.Running), from.Running, to.Running)
	add("nodes", plunged(from.Nodes, to.Nodes) || from.Nodes > 0 && to.Nodes == 0, from.Nodes, to.Nodes)
	for name, total := range from.Total {
		now, there := to.Total[name]
		if !there {
			falls["licence "+name] = "is gone"
			continue
		}
		add("the total of licence "+name, plunged(total, now) || total > 0 && now == 0, total, now)
		add("the used tokens of licence "+name, plunged(from.Used[name], to.Used[name]), from.Used[name], to.Used[name])
	}
	return falls
}

// plunged tells of a fall by at least 3 and by more than half.
func plunged(from, to int64) bool { return from-to >= smallFall && to < from-to }
