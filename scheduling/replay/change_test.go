package replay_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// Hosts join, leave and close, providers say something else, loans come and go, jobs
// give tokens back early or wait again: an engine that is told of each answers what
// one does that is made anew from the state.
func TestAnEngineThatIsToldOfChangesAnswersAsOneMadeAnew(t *testing.T) {
	for _, order := range orders {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				k := &kept{state: drawState(t), freed: true}
				k.state.Policy = scheduling.Policy{Order: order, Depth: rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(t, "depth")}
				k.engine = scheduling.New(k.copy(t))
				for range rapid.IntRange(1, 12).Draw(t, "sessions") {
					k.events(t)
					for range rapid.IntRange(0, 3).Draw(t, "changes") {
						k.change(t)
					}
					k.session(t)
					k.count(t)
				}
			})
		})
	}
}

// change changes something beside what jobs do. Each of the changes tells whether
// it was one.
func (k *kept) change(t *rapid.T) {
	changes := []func(*rapid.T) bool{k.join, k.leave, k.close, k.expect, k.publish, k.lend, k.release, k.requeue}
	if changes[rapid.IntRange(0, len(changes)-1).Draw(t, "change")](t) {
		k.freed = true
	}
}

// decide checks that a session without words comes to the same, and that the words
// can be had afterwards.
func (k *kept) decide(t *rapid.T, session scheduling.Result) {
	in := k.copy(t)
	in.Settled = !k.freed
	e := scheduling.New(in)
	r := e.Decide(in.Now)
	codes, counted := map[string]int64{}, map[string]int64{}
	for c := range e.Causes() {
		codes[fmt.Sprint(c.Job, c.Code)] += c.Count
		counted[string(c.Code)] += c.Count
	}
	words := e.Explain()
	r.Unplaced, r.Halves = words.Unplaced, words.Halves
	r.Clocks, r.Idle = idle(e, in)
	if got, want := encoded(t, r), encoded(t, session); !bytes.Equal(got, want) {
		t.Fatalf("in the state\n%s\na session without words comes to\n%s\nand one with words to\n%s", encoded(t, in), got, want)
	}
	for _, u := range session.Unplaced {
		counted[string(u.Code)] -= u.Count
		for _, job := range u.Jobs {
			if codes[fmt.Sprint(job, u.Code)] == 0 {
				t.Fatalf("job %d waits for %s, the causes say %v", job, u.Code, codes)
			}
		}
	}
	for code, n := range counted {
		if n != 0 {
			t.Fatalf("%d jobs too many wait for %s: %v", n, code, codes)
		}
	}
}

// count checks that the engine knows how many jobs there are.
func (k *kept) count(t *rapid.T) {
	waiting := int64(0)
	for _, j := range k.state.Jobs {
		waiting += max(j.Array-j.Begun, 1)
	}
	if k.engine.Waiting() != waiting || k.engine.Running() != len(k.state.Running) {
		t.Fatalf("%d wait and %d run, the engine says %d and %d", waiting, len(k.state.Running), k.engine.Waiting(), k.engine.Running())
	}
}

func drawCapacity(t *rapid.T) (c cluster.Capacity) {
	c.CPUs, c.MemoryMB = rapid.Int64Range(2, 8).Draw(t, "cpus"), rapid.Int64Range(2, 8).Draw(t, "memory")
	c.Countables = map[string]int64{}
	for _, name := range []string{"gpus", "ports"} {
		if rapid.IntRange(0, 3).Draw(t, name+" too") == 0 {
			c.Countables[name] = upTo(2).Draw(t, name)
		}
	}
	c.Features = rapid.SampledFrom([][]string{nil, {"avx"}, {"avx", "old"}, {"new"}}).Draw(t, "features")
	return c
}

func (k *kept) join(t *rapid.T) bool {
	h := scheduling.Host{Name: fmt.Sprintf("host%d", upTo(6).Draw(t, "number")), Capacity: drawCapacity(t)}
	h.Template = rapid.SampledFrom([]string{"", "small"}).Draw(t, "template")
	h.Closed = rapid.SampledFrom([]string{"", "", "drained"}).Draw(t, "closed")
	h.IdleSince = rapid.SampledFrom([]cluster.Time{0, k.state.Now}).Draw(t, "idle since")
	known := slices.ContainsFunc(k.state.Hosts, func(x scheduling.Host) bool { return x.Name == h.Name })
	if joined := k.engine.Join(h); joined == known {
		t.Fatalf("%s was there: %t, joined: %t", h.Name, known, joined)
	}
	if !known {
		k.state.Hosts = append(k.state.Hosts, h)
	}
	return !known
}

func (k *kept) leave(t *rapid.T) bool {
	if len(k.state.Hosts) == 0 {
		return false
	}
	i := rapid.IntRange(0, len(k.state.Hosts)-1).Draw(t, "which leaves")
	name := k.state.Hosts[i].Name
	busy := slices.ContainsFunc(k.state.Running, func(j cluster.Job) bool { return slices.Contains(j.Hosts, name) })
	if left := k.engine.Leave(name); left == busy {
		t.Fatalf("%s has jobs: %t, left: %t", name, busy, left)
	}
	if !busy {
		k.state.Hosts = slices.Delete(k.state.Hosts, i, i+1)
	}
	return !busy
}

func (k *kept) close(t *rapid.T) bool {
	if len(k.state.Hosts) == 0 {
		return false
	}
	h := &k.state.Hosts[rapid.IntRange(0, len(k.state.Hosts)-1).Draw(t, "which")]
	h.Closed = rapid.SampledFrom([]string{"", "drained", "silent"}).Draw(t, "closed")
	if !k.engine.Close(h.Name, h.Closed) {
		t.Fatalf("the engine does not know %s", h.Name)
	}
	return true
}

func (k *kept) expect(t *rapid.T) bool {
	var hosts []cluster.ExpectedHost
	for i := range upTo(3).Draw(t, "expected") {
		hosts = append(hosts, cluster.ExpectedHost{
			ID: fmt.Sprintf("host/%d", i), Template: rapid.SampledFrom([]string{"small", "large", "gone"}).Draw(t, "template"), Capacity: drawCapacity(t),
			Requested: start, Expected: start.Add(cluster.Duration(upTo(10).Draw(t, "minutes")) * cluster.Minute),
		})
	}
	k.state.Expected = hosts
	k.engine.SetExpected(slices.Clone(hosts))
	return true
}

func (k *kept) publish(t *rapid.T) bool {
	in := &k.state
	if len(in.Templates) > 0 && rapid.Bool().Draw(t, "only headroom") {
		in.Templates = slices.Clone(in.Templates)
		tmpl := &in.Templates[0]
		tmpl.Headroom, tmpl.BackoffUntil = upTo(3).Draw(t, "headroom"), rapid.SampledFrom([]cluster.Time{0, in.Now.Add(cluster.Minute)}).Draw(t, "backoff")
	} else {
		k.publishTemplates(t)
	}
	in.Offers = nil
	for _, r := range in.Resources {
		if rapid.Bool().Draw(t, "offered") {
			in.Offers = append(in.Offers, cluster.Offer{Provider: "pool", Resource: r.Name, Headroom: upTo(6).Draw(t, "units"), Published: in.Now})
		}
	}
	k.engine.SetCatalog(slices.Clone(in.Templates), slices.Clone(in.Quotas), slices.Clone(in.Offers))
	return true
}

func (k *kept) publishTemplates(t *rapid.T) {
	in := &k.state
	in.Quotas, in.Templates = nil, nil
	if rapid.Bool().Draw(t, "quota") {
		in.Quotas = []cluster.Quota{{Name: "q", Counts: rapid.SampledFrom([]string{"hosts", "ports"}).Draw(t, "counts"), Limit: upTo(16).Draw(t, "limit"), Published: start}}
	}
	for _, name := range []string{"huge", "large", "small"}[:upTo(3).Draw(t, "templates")] {
		tmpl := cluster.Template{
			Name: name, Provider: "cloud", Capacity: drawCapacity(t), Headroom: upTo(3).Draw(t, "headroom"), Preference: upTo(1).Draw(t, "preference"),
			Price: cluster.Price(upTo(3).Draw(t, "price") * 100_000), MinimumHold: cluster.Minute, Latency: cluster.Second, Published: start,
		}
		for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "joined before") {
			tmpl = tmpl.Learn(drawCapacity(t))
		}
		if len(in.Quotas) > 0 {
			tmpl.Quotas = []string{"q"}
		}
		in.Templates = append(in.Templates, tmpl)
	}
}

func (k *kept) lend(t *rapid.T) bool {
	if k.engine.SetResource("nothing of the cluster", 1, nil, nil) {
		t.Fatal("the engine knows a resource that there is not")
	}
	if len(k.state.Resources) == 0 {
		return false
	}
	r := &k.state.Resources[rapid.IntRange(0, len(k.state.Resources)-1).Draw(t, "which resource")]
	r.Total = rapid.Int64Range(1, 12).Draw(t, "total")
	r.Loans = drawLoans(t, r.Name)
	r.Idle = r.Idle.Take(upTo(2).Draw(t, "fenced"))
	if !k.engine.SetResource(r.Name, r.Total, slices.Clone(r.Loans), slices.Clone(r.Idle)) {
		t.Fatalf("the engine does not know %s", r.Name)
	}
	return true
}

func (k *kept) release(t *rapid.T) bool {
	if k.engine.Release(1_000_000, 0) {
		t.Fatal("the engine knows a job that does not run")
	}
	if len(k.state.Running) == 0 {
		return false
	}
	job := &k.state.Running[rapid.IntRange(0, len(k.state.Running)-1).Draw(t, "which gives tokens back")]
	if !k.engine.Release(job.ID, job.Element) {
		t.Fatalf("the engine does not know job %d[%d]", job.ID, job.Element)
	}
	k.use(job.JobSpec, job.Alternative, -1)
	job.Tokens, job.Alternatives, job.Alternative = nil, nil, 0
	return true
}

// requeue stops a job, which waits again from then on, in its old place.
func (k *kept) requeue(t *rapid.T) bool {
	i := slices.IndexFunc(k.state.Running, func(j cluster.Job) bool { return j.Array == 0 })
	if i < 0 {
		return false
	}
	job := k.state.Running[i]
	k.end(t, i)
	job.State, job.Started, job.Host, job.Hosts, job.Alternative = cluster.JobWaiting, 0, "", nil, 0
	k.state.Jobs = append(k.state.Jobs, job)
	k.engine.Submit(job)
	return true
}
