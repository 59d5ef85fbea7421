package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

const (
	// smallFall is the least fall of what comes and goes all day, such as running jobs, that is doubted.
	smallFall = 3
	// lastsFor is how long a fall must last until it is believed: two readings at once see the same moment.
	lastsFor = 2 * cluster.Second
)

// What is counted.
const (
	runningJobs = "running jobs"
	allNodes    = "nodes"
	ofTotal     = "the total"
	ofUsed      = "the used tokens"
)

// fact is what is counted, of the cluster or of one licence.
type fact struct{ what, licence string }

// String implements fmt.Stringer.
func (f fact) String() string {
	if f.licence == "" {
		return f.what
	}
	return f.what + " of licence " + f.licence
}

// Facts are what of a reading tells whether Slurm has lost its memory. A licence of which there is no total is gone.
type Facts struct {
	At, Booted cluster.Time
	counts     map[fact]int64
}

// factsOf answers the facts of a reading; of licences those of the names.
func factsOf(r reading, names []string) Facts {
	f := Facts{At: r.at, Booted: r.settings.Booted, counts: map[fact]int64{{what: allNodes}: int64(len(r.nodes))}}
	running := int64(0)
	for i := range r.jobs {
		if holdsHosts[r.jobs[i].State] {
			running++
		}
	}
	f.counts[fact{what: runningJobs}] = running
	for _, name := range names {
		if l, there := r.licences[name]; there {
			f.counts[fact{ofTotal, name}], f.counts[fact{ofUsed, name}] = l.Total, l.Used
		}
	}
	return f
}

// Guard decides which readings may be acted upon. Right after a start slurmctld does
// not have its jobs back yet, and a fault or a mistake can take licences and nodes
// away in one moment; what is bought or given back on such a reading is wrong. The
// zero Guard has seen nothing.
type Guard struct {
	seen bool
	// base is what was last believed, last what was last read.
	base, last Facts
	// doubts are what is not believed, since the reading that raised the doubt.
	doubts map[fact]cluster.Time
}

// Judge takes the next reading. It answers the guard that has seen it, why the counts of
// licences are doubted, by their names, and a [*backend.NotYet] where nothing of the reading must be acted upon: the first one
// after a start, ours or slurmctld's, and one in which running jobs or nodes are doubted. A sudden fall is
// doubted until it has lasted for two seconds, and anew when it falls on as suddenly:
//   - of running jobs, and of used tokens of a licence: by at least 3, and by more than half,
//   - of nodes, and of the total of a licence: the same, or to zero, or the licence is gone.
func (g Guard) Judge(now Facts) (next Guard, doubted map[string]string, err error) {
	if !g.seen {
		return Guard{seen: true, base: now, last: now}, nil, &backend.NotYet{Why: "this is the first reading; the next one is acted upon"}
	}
	falls, again := fallsFrom(g.base, now), fallsFrom(g.last, now)
	next = Guard{seen: true, base: g.base, last: now, doubts: map[fact]cluster.Time{}}
	var whole []string
	doubted = map[string]string{}
	for _, f := range slices.SortedFunc(maps.Keys(falls), compareFacts) {
		since, known := g.doubts[f]
		if !known || again[f] != "" {
			since = now.At
		}
		if next.doubts[f] = since; known && now.At.Sub(since) >= lastsFor {
			continue // it stays in doubts until the base has it
		}
		if why := f.String() + " " + falls[f]; f.licence == "" {
			whole = append(whole, why)
		} else if doubted[f.licence] == "" {
			doubted[f.licence] = "a sudden fall waits for a later reading to confirm it: " + why
		}
	}
	switch {
	case now.Booted != g.last.Booted:
		return next, nil, &backend.NotYet{Why: "slurmctld has started at " + now.Booted.String() + "; the next reading is acted upon"}
	case len(whole) > 0:
		return next, nil, &backend.NotYet{Why: "a sudden fall waits for a later reading to confirm it: " + strings.Join(whole, ", ")}
	}
	next.believe(now, doubted)
	return next, doubted, nil
}

// believe has the base be a reading, but for the licences that are doubted.
func (g *Guard) believe(now Facts, doubted map[string]string) {
	before := g.base.counts
	isDoubted := func(f fact, _ int64) bool { _, is := doubted[f.licence]; return is }
	g.base = Facts{At: now.At, Booted: now.Booted, counts: maps.Clone(now.counts)}
	maps.DeleteFunc(g.base.counts, isDoubted)
	for f, n := range before {
		if isDoubted(f, n) {
			g.base.counts[f] = n
		}
	}
	maps.DeleteFunc(g.doubts, func(f fact, _ cluster.Time) bool { return !isDoubted(f, 0) })
}

func compareFacts(a, b fact) int { return strings.Compare(a.String(), b.String()) }

// fallsFrom answers what fell suddenly between two readings, and how far.
func fallsFrom(from, to Facts) map[fact]string {
	falls := map[fact]string{}
	for f, before := range from.counts {
		now, there := to.counts[f]
		toZero := f.what != runningJobs && f.what != ofUsed && before > 0 && now == 0
		switch {
		case !there && f.what == ofTotal:
			falls[f] = "is gone with it"
		case there && (plunged(before, now) || toZero):
			falls[f] = fmt.Sprintf("fell from %d to %d", before, now)
		}
	}
	return falls
}

// plunged tells of a fall by at least 3 and by more than half.
func plunged(from, to int64) bool { return from-to >= smallFall && to < from-to }
