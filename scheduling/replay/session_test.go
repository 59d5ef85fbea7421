package replay_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

const start = cluster.Time(1_767_261_600_000)

// kept is a cluster whose state is written down after every event, beside an
// engine that is only told of the events.
type kept struct {
	state  scheduling.Input
	engine *scheduling.Engine
	jobs   int64
	likes  map[string]*scheduling.Like
	// freed tells that something has ended since the last session.
	freed bool
}

// An engine that lives long answers what one does that is made anew from the
// state, to the byte. Reservations move forward only where something has become
// free, which a new engine has to assume; so there it must be true.
func TestAnEngineThatLivesLongAnswersAsOneMadeAnew(t *testing.T) {
	for _, order := range orders {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				k := &kept{state: drawState(t), freed: true}
				k.state.Policy = scheduling.Policy{Order: order, Depth: rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(t, "depth")}
				k.engine = scheduling.New(k.copy(t))
				for range rapid.IntRange(1, 12).Draw(t, "sessions") {
					k.events(t)
					k.session(t)
				}
			})
		})
	}
}

// copy is the state with nothing shared with it.
func (k *kept) copy(t *rapid.T) (in scheduling.Input) {
	if err := json.Unmarshal(encoded(t, k.state), &in); err != nil {
		t.Fatal(err)
	}
	return in
}

func encoded(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// events lets time pass, jobs end and jobs arrive.
func (k *kept) events(t *rapid.T) {
	k.state.Now = k.state.Now.Add(cluster.Duration(upTo(90).Draw(t, "passes")) * cluster.Second)
	for range rapid.SampledFrom([]int{1, 0, 2, 3}).Draw(t, "ends") {
		if len(k.state.Running) > 0 {
			k.end(t, rapid.IntRange(0, len(k.state.Running)-1).Draw(t, "which"))
		}
	}
	for range rapid.SampledFrom([]int{1, 0, 3, 6}).Draw(t, "arrivals") {
		k.jobs++
		job := drawJob(t, k.jobs, k.state)
		k.state.Jobs = append(k.state.Jobs, job)
		if rapid.Bool().Draw(t, "as its like") {
			k.submitLike(job)
		} else {
			k.engine.Submit(job)
		}
	}
}

func (k *kept) end(t *rapid.T, i int) {
	job := k.state.Running[i]
	if !k.engine.End(job.ID, job.Element) {
		t.Fatalf("the engine does not know of job %d[%d]", job.ID, job.Element)
	}
	if k.engine.End(job.ID, job.Element) {
		t.Fatalf("job %d[%d] ends twice", job.ID, job.Element)
	}
	k.state.Running = slices.Delete(k.state.Running, i, i+1)
	k.use(job.JobSpec, job.Alternative, -1)
	k.freed = true
}

func (k *kept) use(spec cluster.JobSpec, alternative, by int64) {
	tokens := choices(spec)[max(alternative-1, 0)]
	for i := range k.state.Resources {
		k.state.Resources[i].InUse += by * tokens[k.state.Resources[i].Name]
	}
}

func (k *kept) session(t *rapid.T) {
	r := k.answer(t)
	in := k.copy(t)
	in.Settled = !k.freed
	if got, want := encoded(t, r), encoded(t, scheduling.Run(in)); !bytes.Equal(got, want) {
		t.Fatalf("in the state\n%s\nthe engine that lives long answers\n%s\nand the new one\n%s", encoded(t, in), got, want)
	}
	k.decide(t, r)
	k.freed = false
	for _, s := range r.Starts {
		k.start(t, s)
	}
	k.state.Reservations = r.Reservations
	for i := range k.state.Resources {
		k.state.Resources[i].Idle = r.Clocks[k.state.Resources[i].Name]
	}
	for i := range k.state.Hosts {
		h := &k.state.Hosts[i]
		h.IdleSince = 0
		if at := slices.IndexFunc(r.Idle, func(s cluster.IdleSupply) bool { return s.Host == h.Name }); at >= 0 {
			h.IdleSince = r.Idle[at].Since
		}
	}
}

// answer is what the engine that lives long answers, with words at once or afterwards.
func (k *kept) answer(t *rapid.T) (r scheduling.Result) {
	if rapid.Bool().Draw(t, "with words") {
		return k.engine.Session(k.state.Now)
	}
	decided := k.engine.Decide(k.state.Now)
	if rapid.Bool().Draw(t, "words twice") {
		k.engine.Explain()
	}
	words := k.engine.Explain()
	decided.Unplaced, decided.Halves = words.Unplaced, words.Halves
	decided.Clocks, decided.Idle = idle(k.engine, k.state)
	if err := json.Unmarshal(encoded(t, decided), &r); err != nil {
		t.Fatal(err) // the memory of a decision is used again
	}
	return r
}

// idle answers what an engine has found idle of a state, as a session with words tells it.
func idle(e *scheduling.Engine, in scheduling.Input) (clocks map[string]cluster.IdleClock, idle []cluster.IdleSupply) {
	clocks = map[string]cluster.IdleClock{}
	for _, r := range in.Resources {
		clock := e.IdleClock(r.Name)
		if clocks[r.Name] = clock; clock.Units() > 0 {
			idle = append(idle, cluster.IdleSupply{Resource: r.Name, Units: clock.Units(), Since: clock.Since()})
		}
	}
	for _, h := range in.Hosts {
		if since := e.IdleSince(h.Name); since > 0 {
			idle = append(idle, cluster.IdleSupply{Host: h.Name, Template: h.Template, Units: 1, Since: since})
		}
	}
	slices.SortFunc(idle, func(a, b cluster.IdleSupply) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Resource, b.Resource))
	})
	return clocks, idle
}

func (k *kept) start(t *rapid.T, s scheduling.Start) {
	i := slices.IndexFunc(k.state.Jobs, func(j cluster.Job) bool { return j.ID == s.Job })
	if i < 0 {
		t.Fatalf("job %d starts and does not wait", s.Job)
	}
	waiting := &k.state.Jobs[i]
	running := *waiting
	running.State, running.Started = cluster.JobRunning, k.state.Now
	running.Hosts, running.Host = s.Hosts, s.Hosts[0]
	running.Element, running.Alternative = s.Element, s.Alternative
	k.state.Running = append(k.state.Running, running)
	k.use(running.JobSpec, s.Alternative, 1)
	if waiting.Begun++; waiting.Begun >= waiting.Array {
		k.state.Jobs = slices.Delete(k.state.Jobs, i, i+1)
	}
}

func drawState(t *rapid.T) scheduling.Input {
	m := drawMachine(t)
	in := scheduling.Input{Now: start, Hosts: m.Hosts, Resources: m.Resources}
	for i := range in.Hosts {
		in.Hosts[i].Closed = rapid.SampledFrom([]string{"", "", "", "drained"}).Draw(t, "closed")
		in.Hosts[i].Template = rapid.SampledFrom([]string{"", "small"}).Draw(t, "template")
	}
	for i := range in.Resources {
		r := &in.Resources[i]
		r.InUse, r.KeepBack = upTo(1).Draw(t, "used by others"), upTo(1).Draw(t, "kept back")
		if rapid.Bool().Draw(t, "elastic") {
			r.Elastic = &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: upTo(6).Draw(t, "max borrowed"), IdleTime: cluster.Minute}
			in.Offers = append(in.Offers, cluster.Offer{Provider: "pool", Resource: r.Name, Headroom: upTo(6).Draw(t, "headroom"), Published: start})
			in.Resources[i].Loans = drawLoans(t, r.Name)
		}
	}
	drawCatalog(t, &in)
	return in
}

func drawLoans(t *rapid.T, resource string) []cluster.Loan {
	if rapid.Bool().Draw(t, "nothing requested") {
		return nil
	}
	l := cluster.Loan{State: cluster.LoanRequested, Intended: start.Add(-cluster.Second)}
	l.ID, l.Provider, l.Resource, l.Units = "loan/"+resource+"/pool-1", "pool", resource, rapid.Int64Range(1, 2).Draw(t, "requested")
	return []cluster.Loan{l}
}

func drawCatalog(t *rapid.T, in *scheduling.Input) {
	if rapid.Bool().Draw(t, "quota") {
		in.Quotas = []cluster.Quota{{Name: "q", Counts: "cpus", Limit: upTo(16).Draw(t, "limit"), Published: start}}
	}
	for _, name := range []string{"small", "large"}[:upTo(2).Draw(t, "templates")] {
		tmpl := cluster.Template{
			Name: name, Provider: "cloud", Capacity: cluster.Capacity{CPUs: rapid.Int64Range(1, 8).Draw(t, "cpus"), MemoryMB: upTo(8).Draw(t, "memory"), Countables: map[string]int64{"gpus": upTo(1).Draw(t, "gpus")}}, Headroom: upTo(3).Draw(t, "headroom"),
			Price: cluster.Price(upTo(3).Draw(t, "price") * 100_000), MinimumHold: cluster.Minute, Published: start,
		}
		if len(in.Quotas) > 0 {
			tmpl.Quotas = []string{"q"}
		}
		in.Templates = append(in.Templates, tmpl)
		if rapid.IntRange(0, 2).Draw(t, "expected") == 0 {
			in.Expected = append(in.Expected, cluster.ExpectedHost{
				ID: "host/" + name + "-1", Template: name, Capacity: cluster.Capacity{CPUs: tmpl.CPUs, MemoryMB: tmpl.MemoryMB, Countables: maps.Clone(tmpl.Countables)}, Requested: start, Expected: start.Add(5 * cluster.Minute),
			})
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "threshold") == 0 {
		in.Thresholds = []scheduling.Threshold{{Queue: "night", Jobs: 2, Wait: cluster.Minute}}
	}
}

func drawJob(t *rapid.T, id int64, in scheduling.Input) cluster.Job {
	job := cluster.Job{ID: id, JobSpec: drawSpec(t, in.Resources), State: cluster.JobWaiting, Submitted: in.Now}
	job.Priority = rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, "priority")
	job.Queue = rapid.SampledFrom([]string{"", "night"}).Draw(t, "queue")
	job.TimeLimit = rapid.SampledFrom([]cluster.Duration{0, 30 * cluster.Second, cluster.Minute, 10 * cluster.Minute}).Draw(t, "limit")
	switch rapid.IntRange(0, 9).Draw(t, "oddity") {
	case 0:
		job.Array = rapid.Int64Range(1, 4).Draw(t, "array")
	case 1:
		job.After = []int64{rapid.Int64Range(1, id).Draw(t, "after")}
	case 2:
		job.NotBefore = in.Now.Add(cluster.Duration(upTo(120).Draw(t, "not before")) * cluster.Second)
	case 3:
		job.Tokens[fmt.Sprintf("r%d", len(in.Resources))] = 1 // there is no such resource
	}
	return job
}

// submitLike submits a job as one like an earlier one.
func (k *kept) submitLike(job cluster.Job) {
	id, submitted, limit := job.ID, job.Submitted, job.TimeLimit
	job.ID, job.Submitted, job.TimeLimit = 0, 0, 0
	key := fmt.Sprintf("%+v", job)
	if k.likes == nil {
		k.likes = map[string]*scheduling.Like{}
	}
	if k.likes[key] == nil {
		k.likes[key] = k.engine.Like(&job.JobSpec)
	}
	k.engine.SubmitLike(k.likes[key], id, submitted, limit)
}
