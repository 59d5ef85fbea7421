package backend

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// Guesses holds what our sessions said of waiting jobs against what the scheduler
// then did. Its zero value is ready.
type Guesses struct {
	mu    sync.Mutex
	last  map[Key]guess
	state supply
	tally map[Outcome]int64
}

// Key is a job: schedulers may use an id again.
type Key struct {
	ID        int64
	Submitted cluster.Time
}

// Outcome is one way in which a guess came out.
type Outcome struct {
	// What is one of the words below.
	What string `json:"what"`
	// Cause is the scheduler's reason where it did not start a job, and our code where it did.
	Cause string `json:"cause,omitempty"`
}

// Words for outcomes.
const (
	StartedAsGuessed = "started as guessed"
	WaitedAsGuessed  = "waited as guessed"
	NotStarted       = "was to start, and waits"
	Started          = "was to wait, and started"
)

// Count is how often an outcome was seen.
type Count struct {
	Outcome
	Times int64 `json:"times"`
}

// guess is what a session said of one job.
type guess struct {
	starts bool
	code   scheduling.Code
	since  cluster.Time // when it was first said that it starts
	told   bool         // how it came out so far has been counted
}

// supply is what jobs could have; where it changed since, a job may have
// started that could not before.
type supply struct {
	running map[int64]bool
	totals  map[string]int64
	hosts   int
}

// Check holds what the scheduler has now against what was guessed. A job that was to
// start and does not counts once it has waited for the grace.
func (g *Guesses) Check(v View, grace cluster.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		return
	}
	same := g.same(v)
	seen := make(map[Key]bool, len(g.last))
	for i := range v.Jobs {
		job := &v.Jobs[i]
		key := Key{job.ID, job.Submitted}
		said, guessed := g.last[key]
		if !guessed {
			continue
		}
		seen[key] = true
		g.last[key] = g.check(said, job, same, v.At, grace)
	}
	for key, said := range g.last { // it began and has ended already, or was withdrawn
		if !seen[key] && said.starts {
			g.count(StartedAsGuessed, "")
		}
	}
}

func (g *Guesses) check(said guess, job *cluster.Job, same bool, now cluster.Time, grace cluster.Duration) guess {
	started := job.State == cluster.JobRunning
	switch {
	case started && said.starts:
		g.count(StartedAsGuessed, "")
	case started && same: // nothing became free: it could have started before
		g.count(Started, string(said.code))
	case started:
	case said.starts && !said.told && now.Sub(said.since) >= grace:
		g.count(NotStarted, reason(job))
		said.told = true
	case !said.starts && !said.told:
		g.count(WaitedAsGuessed, "")
		said.told = true
	}
	return said
}

// reason answers the scheduler's reason without the hosts that it may name.
func reason(job *cluster.Job) string {
	if job.Told == nil {
		return ""
	}
	kind, _, _ := strings.Cut(job.Told.Reason, ",")
	return kind
}

// Forget drops what was guessed, as where others have held sessions since.
func (g *Guesses) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = nil
}

func (g *Guesses) count(what, cause string) {
	if g.tally == nil {
		g.tally = map[Outcome]int64{}
	}
	g.tally[Outcome{what, cause}]++
}

// Guess keeps what a session said, until the next reading.
func (g *Guesses) Guess(in scheduling.Input, result scheduling.Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.last
	g.last = make(map[Key]guess, len(in.Jobs))
	submitted := make(map[int64]cluster.Time, len(in.Jobs))
	for i := range in.Jobs {
		submitted[in.Jobs[i].ID] = in.Jobs[i].Submitted
	}
	for _, u := range result.Unplaced {
		for _, id := range u.Jobs {
			key := Key{id, submitted[id]}
			g.last[key] = guess{code: u.Code, told: before[key].told && !before[key].starts}
		}
	}
	for _, start := range result.Starts {
		key := Key{start.Job, submitted[start.Job]}
		said := guess{starts: true, since: in.Now}
		if old := before[key]; old.starts {
			said.since, said.told = old.since, old.told
		}
		g.last[key] = said
	}
	g.state = supplyOf(in)
}

func supplyOf(in scheduling.Input) supply {
	s := supply{running: make(map[int64]bool, len(in.Running)), totals: map[string]int64{}, hosts: len(in.Hosts)}
	for i := range in.Running {
		s.running[in.Running[i].ID] = true
	}
	for _, r := range in.Resources {
		s.totals[r.Name] = r.Total
	}
	return s
}

// same tells whether nothing became free since the guess, as far as it is seen.
func (g *Guesses) same(v View) bool {
	still := 0
	for i := range v.Jobs {
		if v.Jobs[i].State == cluster.JobRunning && g.state.running[v.Jobs[i].ID] {
			still++
		}
	}
	if still < len(g.state.running) {
		return false
	}
	for name, r := range v.Resources {
		if total, known := g.state.totals[name]; known && r.Ceiling-r.Withheld != total {
			return false
		}
	}
	ready := 0
	for i := range v.Hosts {
		if v.Hosts[i].State == HostReady || v.Hosts[i].State == HostClosed {
			ready++
		}
	}
	return ready <= g.state.hosts
}

// Tally answers how often each outcome was seen, the most frequent first.
func (g *Guesses) Tally() []Count {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := make([]Count, 0, len(g.tally))
	for outcome, times := range g.tally {
		counts = append(counts, Count{outcome, times})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.What, b.What), cmp.Compare(a.Cause, b.Cause))
	})
	return counts
}
