package replay_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay"
)

func TestOnOneHostTheEngineDoesAsTheReference(t *testing.T) {
	for _, order := range orders {
		for _, mode := range modes {
			t.Run(fmt.Sprintf("%s %s", order, mode), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					machine := drawOneHost(t)
					trace := drawTrace(t, machine)
					got := replay.Run(trace, machine, scheduling.Policy{Order: order}, mode)
					want := expected(trace, machine, order, mode)
					checkRows(t, printed(t, got), printed(t, want))
				})
			})
		}
	}
}

func upTo(n int64) *rapid.Generator[int64] { return rapid.Int64Range(0, n) }

// seldom is true for few, and becomes false where a failure is made smaller.
func seldom(t *rapid.T, what string) bool { return rapid.IntRange(0, 19).Draw(t, what) >= 14 }

func drawOneHost(t *rapid.T) replay.Machine {
	m := replay.OneHost(rapid.SampledFrom([]int64{1, 4, 9, 12}).Draw(t, "cpus"))
	if rapid.Bool().Draw(t, "more than cpus") {
		m.Hosts[0].MemoryMB = rapid.Int64Range(1, 12).Draw(t, "memory")
		m.Hosts[0].Countables = map[string]int64{"gpus": upTo(3).Draw(t, "gpus")}
	}
	m.Resources = drawResources(t)
	return m
}

func drawResources(t *rapid.T) (resources []scheduling.Resource) {
	for i := range upTo(3).Draw(t, "resources") {
		resources = append(resources, resource(fmt.Sprintf("r%d", i), rapid.Int64Range(1, 5).Draw(t, "total")))
	}
	return resources
}

// drawTrace draws jobs of which many wait, and few can never run.
func drawTrace(t *rapid.T, m replay.Machine) replay.Trace {
	host := m.Hosts[0]
	return drawJobs(t, func(t *rapid.T, j *replay.Job) {
		j.Procs = rapid.Int64Range(1, host.CPUs).Draw(t, "procs")
		if host.Countables != nil {
			j.Spec.MemoryMB = upTo(host.MemoryMB).Draw(t, "memory")
			j.Spec.Countables = map[string]int64{"gpus": upTo(host.Countables["gpus"]).Draw(t, "gpus")}
		}
		if seldom(t, "too large") {
			j.Procs++
		}
		if seldom(t, "urgent") {
			j.Spec.Priority = 1
		}
		j.Spec.Tokens = drawTokens(t, m.Resources)
	})
}

// drawJobs draws jobs with times from so few that many fall together.
func drawJobs(t *rapid.T, more func(*rapid.T, *replay.Job)) (trace replay.Trace) {
	for i := range rapid.SampledFrom([]int64{3, 6, 12, 24, 40}).Draw(t, "jobs") {
		j := replay.Job{ID: i + 1, Submit: seconds(upTo(15).Draw(t, "submit"))}
		run, spare := rapid.Int64Range(1, 9).Draw(t, "run"), rapid.SampledFrom([]int64{0, 0, 1, 2, 5}).Draw(t, "spare")
		j.Run, j.Estimate = cluster.Duration(run*second), cluster.Duration((run+spare)*second)
		more(t, &j)
		trace.Jobs = append(trace.Jobs, j)
	}
	return trace
}

func drawTokens(t *rapid.T, resources []scheduling.Resource) map[string]int64 {
	tokens := map[string]int64{}
	for _, r := range resources {
		if rapid.Bool().Draw(t, "needed") {
			tokens[r.Name] = rapid.Int64Range(1, r.Total).Draw(t, "tokens")
		}
	}
	return tokens
}

// drawMachine draws several hosts that differ, and resources.
func drawMachine(t *rapid.T) (m replay.Machine) {
	for i := range rapid.SampledFrom([]int64{1, 2, 4}).Draw(t, "hosts") {
		h := scheduling.Host{Name: fmt.Sprintf("host%d", i)}
		h.CPUs, h.MemoryMB = rapid.Int64Range(3, 8).Draw(t, "cpus"), rapid.Int64Range(3, 8).Draw(t, "memory")
		if seldom(t, "has gpus") {
			h.Countables = map[string]int64{"gpus": 2}
		}
		h.Features = rapid.SampledFrom([][]string{nil, {"avx"}, {"avx", "old"}}).Draw(t, "features")
		m.Hosts = append(m.Hosts, h)
	}
	m.Resources = drawResources(t)
	return m
}

// drawSpec draws what may run on several hosts, and mostly can.
func drawSpec(t *rapid.T, resources []scheduling.Resource) (s cluster.JobSpec) {
	s.Nodes = rapid.SampledFrom([]int64{0, 1, 1, 1, 1, 2, 2, 3}).Draw(t, "nodes")
	s.CPUs, s.MemoryMB = rapid.Int64Range(1, 4).Draw(t, "cpus"), upTo(4).Draw(t, "memory")
	if seldom(t, "needs gpus") {
		s.Countables = map[string]int64{"gpus": rapid.Int64Range(1, 2).Draw(t, "gpus")}
	}
	s.Exclusive = seldom(t, "exclusive")
	if seldom(t, "constrained") {
		s.Constraint = rapid.SampledFrom([]string{"!old", "avx", "avx & !old"}).Draw(t, "constraint")
	}
	s.Tokens = drawTokens(t, resources)
	if len(resources) > 0 && seldom(t, "tool A or tool B") {
		s.Alternatives = []map[string]int64{drawTokens(t, resources), drawTokens(t, resources)}
	}
	return s
}

// observed is a replay of a mixed trace with all that its sessions said.
type observed struct {
	machine replay.Machine
	jobs    []replay.Job // by arrival: job n is at n-1
	placed  map[int64]placement
	// sessions are in order.
	sessions []sessionSeen
}

type placement struct {
	scheduling.Start
	from, until cluster.Time
}

type sessionSeen struct {
	now cluster.Time
	scheduling.Result
}

func observe(t *rapid.T, policy scheduling.Policy, mode replay.Mode) *observed {
	o := &observed{machine: drawMachine(t), placed: map[int64]placement{}}
	trace := drawJobs(t, func(t *rapid.T, j *replay.Job) { j.Spec = drawSpec(t, o.machine.Resources) })
	o.jobs = slices.Clone(trace.Jobs)
	slices.SortStableFunc(o.jobs, func(a, b replay.Job) int { return int(a.Submit - b.Submit) })
	seen := replay.Watch(trace, o.machine, policy, mode, func(now cluster.Time, r scheduling.Result) {
		o.sessions = append(o.sessions, sessionSeen{now, r})
		for _, s := range r.Starts {
			if _, twice := o.placed[s.Job]; twice {
				t.Fatalf("job %d starts twice", s.Job)
			}
			o.placed[s.Job] = placement{s, now, now.Add(o.jobs[s.Job-1].Run)}
		}
	})
	checkRows(t, printed(t, replay.Run(trace, o.machine, policy, mode)), printed(t, seen)) // whoever looks changes nothing
	return o
}

// eachReplay checks that something holds for every replay under every policy.
func eachReplay(t *testing.T, policies []scheduling.Policy, holds func(*rapid.T, *observed)) {
	for _, policy := range policies {
		for _, mode := range modes {
			t.Run(fmt.Sprintf("%s %d %s", policy.Order, policy.Depth, mode), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) { holds(t, observe(t, policy, mode)) })
			})
		}
	}
}

var (
	reserving = []scheduling.Policy{{Order: scheduling.EASY}, {Order: scheduling.Conservative}}
	all       = append([]scheduling.Policy{{Order: scheduling.FCFS}, {Order: scheduling.Conservative, Depth: 2}}, reserving...)
)

func TestCapacityIsNeverExceededAtAnyInstant(t *testing.T) {
	eachReplay(t, all, func(t *rapid.T, o *observed) {
		for _, p := range o.placed {
			o.checkHosts(t, p)
			o.checkCapacity(t, p.from)
		}
	})
}

// checkHosts checks that a job got hosts that it may use, each once.
func (o *observed) checkHosts(t *rapid.T, p placement) {
	spec := o.jobs[p.Job-1].Spec
	distinct := slices.Compact(slices.Sorted(slices.Values(p.Hosts)))
	if int64(len(p.Hosts)) != max(spec.Nodes, 1) || len(distinct) != len(p.Hosts) {
		t.Fatalf("job %d of %d nodes runs on %v", p.Job, spec.Nodes, p.Hosts)
	}
	constraint, err := cluster.ParseConstraint(spec.Constraint)
	for _, name := range p.Hosts {
		h := o.host(name)
		if err != nil || !constraint.Holds(func(f string) bool { return slices.Contains(h.Features, f) }) {
			t.Fatalf("job %d wants %q and runs on %s with %v", p.Job, spec.Constraint, name, h.Features)
		}
	}
}

func (o *observed) host(name string) scheduling.Host {
	return o.machine.Hosts[slices.IndexFunc(o.machine.Hosts, func(h scheduling.Host) bool { return h.Name == name })]
}

// checkCapacity adds up all that runs at an instant.
func (o *observed) checkCapacity(t *rapid.T, at cluster.Time) {
	used := map[string]int64{}
	alone := map[string]int64{}
	for _, p := range o.placed {
		if at < p.from || at >= p.until {
			continue
		}
		spec := o.jobs[p.Job-1].Spec
		for _, h := range p.Hosts {
			used[h+" cpus"] += spec.CPUs
			used[h+" memory"] += spec.MemoryMB
			used[h+" gpus"] += spec.Countables["gpus"]
			used[h+" jobs"]++
			if spec.Exclusive {
				alone[h]++
			}
		}
		for name, units := range o.tokens(p) {
			used[name] += units
		}
	}
	for _, h := range o.machine.Hosts {
		if used[h.Name+" cpus"] > h.CPUs || used[h.Name+" memory"] > h.MemoryMB || used[h.Name+" gpus"] > h.Countables["gpus"] ||
			alone[h.Name] > 0 && used[h.Name+" jobs"] > 1 {
			t.Fatalf("%+v is overfull at %d: %v, %d want it alone", h, at, used, alone[h.Name])
		}
	}
	for _, r := range o.machine.Resources {
		if used[r.Name] > r.Total {
			t.Fatalf("%d of %d %s are in use at %d", used[r.Name], r.Total, r.Name, at)
		}
	}
}

// tokens are those that a job took.
func (o *observed) tokens(p placement) map[string]int64 {
	return choices(o.jobs[p.Job-1].Spec)[max(p.Alternative-1, 0)]
}

// choices are all that a job could take.
func choices(spec cluster.JobSpec) (all []map[string]int64) {
	for _, alternative := range spec.Alternatives {
		both := maps.Clone(spec.Tokens)
		for name, units := range alternative {
			both[name] += units
		}
		all = append(all, both)
	}
	if len(all) == 0 {
		all = append(all, spec.Tokens)
	}
	return all
}

// firstOf answers the first of the choices that is no more than what there is.
func firstOf(choices []map[string]int64, there map[string]int64) (map[string]int64, bool) {
	for _, choice := range choices {
		enough := true
		for name, units := range choice {
			enough = enough && units <= there[name]
		}
		if enough {
			return choice, true
		}
	}
	return nil, false
}

func TestNoJobStartsLaterThanItWasEverPromised(t *testing.T) {
	eachReplay(t, reserving, func(t *rapid.T, o *observed) {
		promised := map[int64]cluster.Time{}
		for _, s := range o.sessions {
			for _, r := range s.Reservations {
				if before, again := promised[r.Job]; again && r.At > before {
					t.Fatalf("job %d was promised %d, and at %d it is %d", r.Job, before, s.now, r.At)
				}
				promised[r.Job] = r.At
			}
		}
		for job, at := range promised {
			if p, started := o.placed[job]; !started || p.from > at {
				t.Fatalf("job %d was promised %d, and starts at %d (%t)", job, at, p.from, started)
			}
		}
	})
}

// What can run on an empty machine runs at some time; so nothing is forgotten.
func TestOnlyWhatCanNeverRunNeverStarts(t *testing.T) {
	eachReplay(t, all, func(t *rapid.T, o *observed) {
		for i := range o.jobs {
			_, started := o.placed[int64(i+1)]
			if could := o.couldRun(t, o.jobs[i]); started != could {
				t.Fatalf("job %d could run: %t, started: %t", i+1, could, started)
			}
		}
	})
}

// couldRun tells whether the empty machine has all that the job needs.
func (o *observed) couldRun(t *rapid.T, j replay.Job) bool {
	constraint, err := cluster.ParseConstraint(j.Spec.Constraint)
	if err != nil {
		t.Fatal(err)
	}
	var hosts int64
	for _, h := range o.machine.Hosts {
		if constraint.Holds(func(f string) bool { return slices.Contains(h.Features, f) }) &&
			h.CPUs >= j.Spec.CPUs && h.MemoryMB >= j.Spec.MemoryMB && h.Countables["gpus"] >= j.Spec.Countables["gpus"] {
			hosts++
		}
	}
	_, enough := firstOf(choices(j.Spec), o.totals())
	return enough && hosts >= max(j.Spec.Nodes, 1)
}

func (o *observed) totals() map[string]int64 {
	totals := map[string]int64{}
	for _, r := range o.machine.Resources {
		totals[r.Name] = r.Total
	}
	return totals
}

// What a waiting job lacks must be tokens where a later one starts, and its own
// tokens are kept from that one.
func TestNobodyOvertakesUnderFCFS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := observe(t, scheduling.Policy{Order: scheduling.FCFS}, replay.Batch)
		for _, s := range o.sessions {
			o.checkLine(t, s)
		}
	})
}

func (o *observed) checkLine(t *rapid.T, s sessionSeen) {
	free := o.freeTokens(s.now)
	blockedBy := int64(0)
	for i, j := range o.jobs {
		job := int64(i + 1)
		p, started := o.placed[job]
		switch _, enough := firstOf(choices(j.Spec), free); {
		case j.Submit > s.now || started && p.from < s.now || !o.couldRun(t, j):
		case started && p.from == s.now && blockedBy != 0:
			t.Fatalf("at %d job %d overtakes job %d, which lacks no tokens", s.now, job, blockedBy)
		case started && p.from == s.now && !enough:
			t.Fatalf("at %d job %d takes tokens from an earlier one", s.now, job)
		case started && p.from == s.now:
			take(free, o.tokens(p))
		case enough:
			blockedBy = job
		default:
			first, _ := firstOf(choices(j.Spec), o.totals())
			take(free, first)
		}
	}
}

// freeTokens are those that are free before anything starts at an instant.
func (o *observed) freeTokens(now cluster.Time) map[string]int64 {
	free := o.totals()
	for _, p := range o.placed {
		if p.from < now && p.until > now {
			take(free, o.tokens(p))
		}
	}
	return free
}

func take(free, tokens map[string]int64) {
	for name, units := range tokens {
		free[name] -= units
	}
}
