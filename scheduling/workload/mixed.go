package workload

import (
	"fmt"
	"math/rand"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// Mixed is a large busy cluster: 100,000 waiting jobs in 500 classes, 10,000
// hosts of eight models in three sites, most of them full of some 25,000 running
// jobs that end within a day, 50 licences and 50 templates with little headroom and one quota.
// Jobs want cpus (in cores), memory (MB) and, some of them, gpus, features,
// a site and tokens of one or two licences. Every fifth licence is used up and
// has no lender that could give more. The draws are in the order of the code.
func Mixed() scheduling.Input {
	m := mixer{Rand: rand.New(rand.NewSource(seed)), in: scheduling.Input{Now: Now}}
	for i := range 10_000 {
		m.addHost(i)
	}
	for i := range 50 {
		m.addLicence(i)
	}
	m.in.Quotas = []cluster.Quota{{Name: "cloud", Counts: "cpus", Limit: 15_000, Published: Now}}
	for i := range 50 {
		m.addTemplate(i)
	}
	classes := m.classes(500)
	for i := range 100_000 {
		job := cluster.Job{
			ID: int64(i + 1), State: cluster.JobWaiting, User: fmt.Sprintf("user%02d", m.Intn(40)),
			JobSpec: classes[m.Intn(len(classes))], Submitted: Now.Add(-cluster.Hour + cluster.Duration(i)),
		}
		job.Priority = int64(m.Intn(3))
		m.in.Jobs = append(m.in.Jobs, job)
	}
	return m.in
}

// mixer draws the instance.
type mixer struct {
	*rand.Rand
	in    scheduling.Input
	inUse [50]int64 // tokens, by licence
}

// hostModel is what some hosts and templates are.
type hostModel struct {
	cpus, memory, gpus int64
	features           []string
}

var hostModels = []hostModel{
	{16, 64_000, 0, []string{"rhel8"}},
	{32, 128_000, 0, []string{"rhel8", "avx512"}},
	{32, 256_000, 0, []string{"rhel9", "avx512"}},
	{64, 256_000, 0, []string{"rhel9", "avx512"}},
	{64, 1_024_000, 0, []string{"rhel9", "avx512", "bigmem"}},
	{48, 192_000, 4, []string{"rhel9", "avx512"}},
	{96, 384_000, 0, []string{"rhel9", "avx512", "amx"}},
	{8, 32_000, 0, []string{"rhel8", "old"}},
}

func (h hostModel) countables() map[string]int64 {
	if h.gpus == 0 {
		return nil
	}
	return map[string]int64{"gpus": h.gpus}
}

func (m *mixer) site() map[string]string {
	return map[string]string{"site": fmt.Sprintf("z%d", 1+m.Intn(3))}
}

// addLicence adds a licence, after the hosts with the jobs that use it.
func (m *mixer) addLicence(i int) {
	r := scheduling.Resource{InUse: m.inUse[i], Total: m.inUse[i] + int64(m.Intn(20))}
	if i%5 == 0 {
		r.Total = r.InUse
	}
	r.Name, r.Owned = licenceName(i), r.Total
	r.Elastic = &cluster.Elastic{Lenders: []string{"pool-a", "pool-b"}, MaxBorrowed: 500, IdleTime: cluster.Minute}
	m.in.Resources = append(m.in.Resources, r)
	for _, lender := range r.Elastic.Lenders {
		offer := cluster.Offer{
			Provider: lender, Resource: r.Name, Headroom: int64(m.Intn(100)), Price: cluster.Price(10_000 + m.Intn(100_000)),
			MinimumHold: cluster.Duration(m.Intn(3)) * cluster.Hour, MaxOpen: 1, Published: Now,
		}
		if i%5 == 0 {
			offer.Headroom = 0
		}
		m.in.Offers = append(m.in.Offers, offer)
	}
}

func (m *mixer) addTemplate(i int) {
	model := hostModels[i%len(hostModels)]
	price := 100_000*model.cpus + 10*model.memory + 1_000_000*model.gpus
	m.in.Templates = append(m.in.Templates, cluster.Template{
		Name: fmt.Sprintf("made%02d", i), Provider: "cloud", Capacity: cluster.Capacity{CPUs: model.cpus, MemoryMB: model.memory, Countables: model.countables(), Features: model.features, Attributes: m.site()},
		Headroom: int64(1 + m.Intn(20)), Quotas: []string{"cloud"}, Price: cluster.Price(price * int64(80+m.Intn(40)) / 100),
		MinimumHold: cluster.Duration(m.Intn(3)) * cluster.Hour, Published: Now,
	})
}

// addHost adds a host and its running jobs, which fill nine hosts of ten. One
// running job of three has a token.
func (m *mixer) addHost(i int) {
	model := hostModels[m.Intn(len(hostModels))]
	m.in.Hosts = append(m.in.Hosts, scheduling.Host{
		Name: hostName(i + 1), Capacity: cluster.Capacity{CPUs: model.cpus, MemoryMB: model.memory, Countables: model.countables(), Features: model.features, Attributes: m.site()},
	})
	left := model
	if m.Intn(10) == 0 {
		left.cpus -= model.cpus / 4
		left.memory -= model.memory / 4
	}
	for part := int64(1 + m.Intn(4)); part > 0; part-- {
		job := running(200_000+len(m.in.Running), hostName(i+1), left.cpus/part, left.memory/part)
		gpus := left.gpus / part
		left.cpus, left.memory, left.gpus = left.cpus-job.CPUs, left.memory-job.MemoryMB, left.gpus-gpus
		if gpus > 0 {
			job.Countables = map[string]int64{"gpus": gpus}
		}
		if m.Intn(3) == 0 {
			licence := m.Intn(len(m.inUse))
			job.Tokens = map[string]int64{licenceName(licence): 1}
			m.inUse[licence]++
		}
		job.TimeLimit = cluster.Hour + cluster.Duration(1+m.Intn(24*60))*cluster.Minute
		m.in.Running = append(m.in.Running, job)
	}
}

// classes draws n classes of jobs, of which no two need the same.
func (m *mixer) classes(n int) (classes []cluster.JobSpec) {
	seen := map[string]bool{}
	for len(classes) < n {
		class := m.class()
		if key := fmt.Sprint(class); !seen[key] {
			seen[key] = true
			classes = append(classes, class)
		}
	}
	return classes
}

func (m *mixer) class() cluster.JobSpec {
	class := cluster.JobSpec{
		CPUs:      []int64{1, 1, 2, 4, 8, 16}[m.Intn(6)],
		MemoryMB:  []int64{1_000, 2_000, 4_000, 8_000, 16_000, 32_000}[m.Intn(6)],
		TimeLimit: []cluster.Duration{1, 4, 12, 24}[m.Intn(4)] * cluster.Hour,
	}
	if m.Intn(10) == 0 {
		class.Countables = map[string]int64{"gpus": int64(1 + m.Intn(2))}
	}
	constraints := []string{"avx512", "rhel9 & !old", "rhel8 | rhel9", "bigmem", "site=z1", "amx & site=z2"}
	if m.Intn(10) < 3 {
		class.Constraint = constraints[m.Intn(len(constraints))]
	}
	class.Tokens = map[string]int64{}
	for range m.Intn(3) {
		class.Tokens[licenceName(m.Intn(50))] = int64(1 + m.Intn(2))
	}
	return class
}
