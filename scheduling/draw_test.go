package scheduling

import (
	"fmt"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

const now = cluster.Time(1_767_261_600_000)

// drawing says what a drawn cluster has, beside hosts, tokens and plain jobs.
type drawing struct {
	hosts    bool // templates, expected hosts, features, gpus, running jobs, odd jobs
	policies bool // easy and conservative too
	alike    bool // jobs take one cpu of one host, and hosts have nothing else
}

// drawInput draws a small cluster in which everything is scarce.
func (d drawing) input(t *rapid.T) Input {
	in := Input{Now: now}
	if d.policies {
		in.Policy.Order = rapid.SampledFrom([]Order{FCFS, EASY, Conservative}).Draw(t, "order")
		in.Policy.Depth = rapid.SampledFrom([]int64{0, 1, 2}).Draw(t, "depth")
	}
	for i := range upTo(3).Draw(t, "hosts") {
		in.Hosts = append(in.Hosts, d.host(t, fmt.Sprintf("node%d", i)))
	}
	for i := range upTo(3).Draw(t, "resources") {
		in.Resources = append(in.Resources, drawResource(t, fmt.Sprintf("r%d", i)))
	}
	for _, r := range in.Resources {
		for _, provider := range []string{"pool-a", "pool-b"} {
			if rapid.Bool().Draw(t, "offered") {
				in.Offers = append(in.Offers, drawOffer(t, provider, r.Name))
			}
		}
	}
	if d.hosts {
		d.catalog(t, &in)
		d.running(t, &in)
	}
	for i := range upTo(8).Draw(t, "jobs") {
		in.Jobs = append(in.Jobs, d.job(t, i+1, in.Resources))
	}
	return in
}

func upTo(n int64) *rapid.Generator[int64] { return rapid.Int64Range(0, n) }

func (d drawing) host(t *rapid.T, name string) Host {
	h := Host{Name: name, Capacity: cluster.Capacity{CPUs: upTo(6).Draw(t, "cpus"), MemoryMB: upTo(6).Draw(t, "memory")}}
	if d.hosts {
		h.Countables, h.Features = drawGPUs(t), drawFeatures(t)
		h.Closed = rapid.SampledFrom([]string{"", "", "", "", "drained"}).Draw(t, "closed")
		h.Template = rapid.SampledFrom([]string{"", "small"}).Draw(t, "template")
		h.IdleSince = rapid.SampledFrom([]cluster.Time{0, now.Add(-cluster.Minute)}).Draw(t, "idle since")
	}
	return h
}

func drawGPUs(t *rapid.T) map[string]int64 {
	if rapid.IntRange(0, 3).Draw(t, "has gpus") > 0 {
		return nil
	}
	return map[string]int64{"gpus": rapid.Int64Range(1, 2).Draw(t, "gpus")}
}

func drawFeatures(t *rapid.T) []string {
	return rapid.SampledFrom([][]string{nil, nil, {"avx"}, {"avx", "old"}, {"old"}}).Draw(t, "features")
}

func (d drawing) catalog(t *rapid.T, in *Input) {
	for i := range upTo(2).Draw(t, "quotas") {
		in.Quotas = append(in.Quotas, cluster.Quota{
			Name: fmt.Sprintf("q%d", i), Counts: rapid.SampledFrom([]string{"hosts", "cpus", "gpus"}).Draw(t, "counts"),
			Limit: upTo(10).Draw(t, "limit"), Used: upTo(3).Draw(t, "used"), Published: now.Add(-5),
		})
	}
	for _, name := range []string{"small", "large", "gpu"}[:upTo(3).Draw(t, "templates")] {
		tmpl := cluster.Template{
			Name: name, Provider: "cloud", Capacity: cluster.Capacity{CPUs: rapid.Int64Range(1, 6).Draw(t, "cpus"), MemoryMB: upTo(6).Draw(t, "memory"), Countables: drawGPUs(t), Features: drawFeatures(t)},
			Headroom: upTo(4).Draw(t, "headroom"), Price: cluster.Price(upTo(5).Draw(t, "price") * 100_000), MinimumHold: cluster.Hour, Published: now.Add(-5),
		}
		if rapid.IntRange(0, 5).Draw(t, "refused") == 0 {
			tmpl.BackoffUntil = now.Add(cluster.Second)
		}
		tmpl = learned(t, tmpl)
		for _, q := range in.Quotas {
			if rapid.Bool().Draw(t, "under") {
				tmpl.Quotas = append(tmpl.Quotas, q.Name)
			}
		}
		in.Templates = append(in.Templates, tmpl)
		for i := range rapid.SampledFrom([]int64{0, 0, 1, 2}).Draw(t, "expected") {
			in.Expected = append(in.Expected, cluster.ExpectedHost{
				ID: fmt.Sprintf("host/%s-%d", name, i), Template: name, Capacity: cluster.Capacity{CPUs: tmpl.CPUs, MemoryMB: tmpl.MemoryMB, Countables: tmpl.Countables, Features: tmpl.Features},
				Requested: now.Add(-cluster.Duration(upTo(10).Draw(t, "requested"))), Expected: now.Add(cluster.Minute),
			})
		}
	}
}

// learned lets hosts of a template have joined that may be smaller than it says.
func learned(t *rapid.T, tmpl cluster.Template) cluster.Template {
	for range rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3}).Draw(t, "joined before") {
		tmpl = tmpl.Learn(cluster.Capacity{CPUs: upTo(tmpl.CPUs).Draw(t, "cpus"), MemoryMB: upTo(tmpl.MemoryMB).Draw(t, "memory"), Countables: drawGPUs(t), Features: drawFeatures(t)})
	}
	return tmpl
}

// running draws running jobs, as far as the hosts and resources can have them.
func (d drawing) running(t *rapid.T, in *Input) {
	for i := range upTo(4).Draw(t, "running") {
		job := cluster.Job{ID: 1000 + i, State: cluster.JobRunning, Started: now.Add(-cluster.Minute)}
		job.CPUs, job.MemoryMB = rapid.Int64Range(1, 2).Draw(t, "cpus"), upTo(1).Draw(t, "memory")
		job.TimeLimit = rapid.SampledFrom([]cluster.Duration{0, 30 * cluster.Second, 2 * cluster.Minute, cluster.Hour}).Draw(t, "limit")
		for _, h := range in.Hosts {
			if free := freeOn(*in, h); free[dimCPUs] >= job.CPUs && free[dimMemory] >= job.MemoryMB && free[len(free)-1] > 0 {
				job.Host = h.Name
				in.Running = append(in.Running, job)
				break
			}
		}
	}
}

func drawResource(t *rapid.T, name string) Resource {
	r := Resource{SharedResource: cluster.SharedResource{
		Name: name, Owned: upTo(4).Draw(t, "owned"), KeepBack: rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(t, "keep back"),
	}}
	r.Total = r.Owned
	for i := range upTo(3).Draw(t, "loans") {
		l := cluster.Loan{State: cluster.LoanBorrowed}
		l.ID = fmt.Sprintf("loan/%s/%d", name, i)
		l.Provider = rapid.SampledFrom([]string{"pool-a", "pool-b"}).Draw(t, "lender")
		l.Units = rapid.Int64Range(1, 3).Draw(t, "units")
		l.Intended = now.Add(-cluster.Duration(upTo(10).Draw(t, "intended")))
		if rapid.Bool().Draw(t, "requested") {
			l.State = cluster.LoanRequested
		} else {
			l.Borrowed = l.Units
		}
		r.Total += l.Borrowed
		r.Loans = append(r.Loans, l)
	}
	if rapid.IntRange(0, 3).Draw(t, "elastic") > 0 {
		r.Elastic = &cluster.Elastic{
			MaxBorrowed: upTo(9).Draw(t, "max borrowed"), IdleTime: cluster.Minute,
			Lenders: rapid.SampledFrom([][]string{{"pool-a"}, {"pool-a", "pool-b"}, {"pool-b", "pool-a"}}).Draw(t, "lenders"),
		}
	}
	r.InUse = upTo(r.Total+1).Draw(t, "in use")
	r.Idle = r.Idle.Follow(upTo(4).Draw(t, "idle"), now.Add(-cluster.Minute)).Follow(upTo(4).Draw(t, "idle later"), now.Add(-cluster.Second))
	return r
}

func drawOffer(t *rapid.T, provider, resource string) cluster.Offer {
	o := cluster.Offer{
		Provider: provider, Resource: resource, Headroom: upTo(6).Draw(t, "headroom"),
		Published: now.Add(-cluster.Duration(upTo(10).Draw(t, "published"))),
		Price:     cluster.Price(upTo(2).Draw(t, "price")),
	}
	if rapid.IntRange(0, 4).Draw(t, "refused") == 0 {
		o.BackoffUntil = now.Add(cluster.Second)
	}
	return o
}

func (d drawing) job(t *rapid.T, id int64, resources []Resource) cluster.Job {
	job := cluster.Job{ID: id, Submitted: now.Add(-cluster.Minute)}
	job.CPUs, job.MemoryMB = rapid.Int64Range(1, 3).Draw(t, "cpus"), upTo(2).Draw(t, "memory")
	job.Priority = upTo(2).Draw(t, "priority")
	job.Tokens = drawTokens(t, resources)
	if rapid.IntRange(0, 30).Draw(t, "odd") == 0 {
		job.Tokens["gone"] = 1
	}
	if d.policies {
		job.TimeLimit = rapid.SampledFrom([]cluster.Duration{0, cluster.Minute, 10 * cluster.Minute}).Draw(t, "limit")
	}
	switch {
	case d.alike:
		job.CPUs, job.MemoryMB = 1, 0
	case d.hosts:
		d.oddities(t, &job, resources)
	}
	return job
}

func drawTokens(t *rapid.T, resources []Resource) map[string]int64 {
	tokens := map[string]int64{}
	for _, r := range resources {
		if rapid.Bool().Draw(t, "needed") {
			tokens[r.Name] = rapid.Int64Range(1, 4).Draw(t, "tokens")
		}
	}
	return tokens
}

func (d drawing) oddities(t *rapid.T, job *cluster.Job, resources []Resource) {
	switch rapid.IntRange(0, 9).Draw(t, "oddity") {
	case 0:
		job.Nodes = rapid.Int64Range(2, 3).Draw(t, "nodes")
	case 1:
		job.Exclusive = true
	case 2:
		job.Countables = map[string]int64{"gpus": 1}
	case 3:
		job.Constraint = rapid.SampledFrom([]string{"avx", "!old", "avx & !old", "avx | old"}).Draw(t, "constraint")
	case 4:
		job.Alternatives = []map[string]int64{drawTokens(t, resources), drawTokens(t, resources)}
	case 5:
		job.Array, job.Begun = rapid.Int64Range(2, 4).Draw(t, "array"), rapid.Int64Range(0, 1).Draw(t, "begun")
	case 6:
		job.After = []int64{rapid.SampledFrom([]int64{1, 1000, 5000}).Draw(t, "after")}
	case 7:
		job.NotBefore = now.Add(rapid.SampledFrom([]cluster.Duration{-1, 1}).Draw(t, "not before"))
	}
}
