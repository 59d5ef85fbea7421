package workload

import (
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// outcome is what became of the jobs of one session.
type outcome struct {
	scheduling.Result
	started, demanded int64
	hosts             int64 // that are demanded
	price             cluster.Price
	codes             map[scheduling.Code]int64
}

// session runs one session, and checks what holds for every one: each job has
// one fate, each waiting one a reason, and nothing is given out that is not there.
func session(t testing.TB, in scheduling.Input) outcome {
	t.Helper()
	o := outcome{Result: scheduling.Run(in), codes: map[scheduling.Code]int64{}}
	jobs := map[int64]*cluster.Job{}
	for i := range in.Jobs {
		jobs[in.Jobs[i].ID] = &in.Jobs[i]
	}
	o.checkFates(t, jobs)
	o.checkStarts(t, in, jobs)
	o.checkHostDemand(t, in, jobs)
	o.checkTokens(t, in, jobs)
	return o
}

func (o *outcome) checkFates(t testing.TB, jobs map[int64]*cluster.Job) {
	t.Helper()
	fate := make(map[int64]scheduling.Code, len(jobs))
	for _, s := range o.Starts {
		if _, twice := fate[s.Job]; twice || jobs[s.Job] == nil {
			t.Fatalf("job %d starts twice or is unknown", s.Job)
		}
		fate[s.Job] = "started"
		o.started++
	}
	for _, u := range o.Unplaced {
		if u.Code == "" || u.Why == "" || u.Change == "" {
			t.Fatalf("jobs %v wait without a reason or a remedy: %+v", u.Jobs[:min(len(u.Jobs), 3)], u)
		}
		if u.Count != int64(len(u.Jobs)) {
			t.Fatalf("%d jobs are counted as %d", len(u.Jobs), u.Count)
		}
		o.codes[u.Code] += u.Count
		for _, job := range u.Jobs {
			if other, twice := fate[job]; twice || jobs[job] == nil {
				t.Fatalf("job %d waits (%s) and has another fate (%s), or is unknown", job, u.Code, other)
			}
			fate[job] = u.Code
		}
	}
	if len(fate) != len(jobs) {
		t.Fatalf("%d of %d jobs have a fate", len(fate), len(jobs))
	}
	demanded := map[int64]bool{}
	for _, d := range o.Demand {
		for _, job := range d.Jobs {
			if code := fate[job]; code != scheduling.WaitMade && code != scheduling.WaitBorrow {
				t.Fatalf("job %d is in the demand for %s%s and is told to wait for %q", job, d.Template, d.Resource, code)
			}
			demanded[job] = true
		}
	}
	o.demanded = int64(len(demanded))
	if told := o.codes[scheduling.WaitMade] + o.codes[scheduling.WaitBorrow]; told != o.demanded {
		t.Fatalf("%d jobs are told that supply is on its way, %d are in the demand", told, o.demanded)
	}
}

// amounts are cpus, memory and countables.
type amounts map[string]int64

func (a amounts) add(cpus, memory int64, countables map[string]int64, times int64) {
	a["cpus"] += times * cpus
	a["memory"] += times * memory
	for name, n := range countables {
		a[name] += times * n
	}
}

func (a amounts) job(job *cluster.Job, times int64) {
	a.add(job.CPUs, job.MemoryMB, job.Countables, times)
}

// within tells whether b has all of a.
func (a amounts) within(b amounts) bool {
	for name, n := range a {
		if n > 0 && n > b[name] {
			return false
		}
	}
	return true
}

func (o *outcome) checkStarts(t testing.TB, in scheduling.Input, jobs map[int64]*cluster.Job) {
	t.Helper()
	size, taken, starting := map[string]amounts{}, map[string]amounts{}, map[string]bool{}
	for i := range in.Hosts {
		h := &in.Hosts[i]
		size[h.Name], taken[h.Name] = amounts{}, amounts{}
		size[h.Name].add(h.CPUs, h.MemoryMB, h.Countables, 1)
	}
	for i := range in.Running {
		taken[in.Running[i].Host].job(&in.Running[i], 1)
	}
	for _, s := range o.Starts {
		if len(s.Hosts) != 1 || size[s.Hosts[0]] == nil {
			t.Fatalf("job %d starts on %v", s.Job, s.Hosts)
		}
		taken[s.Hosts[0]].job(jobs[s.Job], 1)
		starting[s.Hosts[0]] = true
	}
	for host := range starting {
		if !taken[host].within(size[host]) {
			t.Fatalf("%s has %v and its jobs take %v", host, size[host], taken[host])
		}
	}
}

func (o *outcome) checkHostDemand(t testing.TB, in scheduling.Input, jobs map[int64]*cluster.Job) {
	t.Helper()
	templates := map[string]*cluster.Template{}
	for i := range in.Templates {
		templates[in.Templates[i].Name] = &in.Templates[i]
	}
	used := map[string]int64{} // by quota
	seen := map[int64]bool{}
	for _, d := range o.Demand {
		if d.Template == "" {
			continue
		}
		template := templates[d.Template]
		if template == nil || d.Units < 1 || d.Units > template.Headroom || d.Reason == "" {
			t.Fatalf("%d hosts of %q are demanded because %q", d.Units, d.Template, d.Reason)
		}
		if want := cluster.Price(d.Units) * template.Price; d.Price != want {
			t.Fatalf("%d hosts of %s cost %s and not %s", d.Units, d.Template, want, d.Price)
		}
		o.hosts += d.Units
		o.price += d.Price
		one, all, need := amounts{}, amounts{}, amounts{}
		one.add(template.CPUs, template.MemoryMB, template.Countables, 1)
		all.add(template.CPUs, template.MemoryMB, template.Countables, d.Units)
		for _, quota := range template.Quotas {
			used[quota] += all["cpus"]
		}
		for _, id := range d.Jobs {
			if seen[id] {
				t.Fatalf("job %d is in the demand for two templates", id)
			}
			seen[id] = true
			alone := amounts{}
			alone.job(jobs[id], 1)
			if !alone.within(one) {
				t.Fatalf("job %d needs %v, and %s has %v", id, alone, d.Template, one)
			}
			need.job(jobs[id], 1)
		}
		if !need.within(all) {
			t.Fatalf("%d hosts of %s have %v, and their jobs need %v", d.Units, d.Template, all, need)
		}
	}
	for _, quota := range in.Quotas {
		if quota.Used+used[quota.Name] > quota.Limit {
			t.Fatalf("%d of quota %s are used, and %d is the limit", quota.Used+used[quota.Name], quota.Name, quota.Limit)
		}
	}
}

func (o *outcome) checkTokens(t testing.TB, in scheduling.Input, jobs map[int64]*cluster.Job) {
	t.Helper()
	headroom, free := map[[2]string]int64{}, map[string]int64{}
	for _, offer := range in.Offers {
		headroom[[2]string{offer.Provider, offer.Resource}] = offer.Headroom
	}
	for _, r := range in.Resources {
		free[r.Name] = r.Total - r.InUse - r.KeepBack
	}
	for _, s := range o.Starts {
		for name, units := range jobs[s.Job].Tokens {
			if free[name] -= units; free[name] < 0 {
				t.Fatalf("job %d starts with tokens of %s that are not there", s.Job, name)
			}
		}
	}
	for _, d := range o.Demand {
		if d.Resource == "" {
			continue
		}
		if most := headroom[[2]string{d.Provider, d.Resource}]; d.Units < 1 || d.Units > most {
			t.Fatalf("%d of %s are demanded from %s, which has %d", d.Units, d.Resource, d.Provider, most)
		}
	}
}
