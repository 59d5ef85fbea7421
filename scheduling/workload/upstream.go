package workload

import (
	"maps"
	"math/rand"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// largest is how many templates the catalogue of W1 to W3 has.
const largest = 400

// Generic is W1: n jobs with drawn cpus and memory (MiB), no hosts, and 400
// templates whose price grows with their size. One label is drawn for each job
// before what it needs. It comes from the benchmark of a public autoscaler.
func Generic(n int) scheduling.Input { return generic(n, largest) }

func generic(n, templates int) scheduling.Input {
	in := scheduling.Input{Now: Now}
	addCatalogue(&in, templates)
	r := rand.New(rand.NewSource(seed))
	for i := range n {
		cpus, memory := drawNeed(r, 1)
		in.Jobs = append(in.Jobs, waiting(i+1, cpus, memory, oneSlot))
	}
	return in
}

// Diverse is W2: n jobs in five blocks with the catalogue of W1, from the same
// benchmark. The blocks are, in this order: like those of W1; spread over zones;
// spread over hosts; together in one zone; each on a host of its own. Batch jobs
// have no wish to be spread, so the second and third are like the first, with
// two labels drawn for each job; the fourth must be in the one site that there
// is. The fifth, for which no label is drawn, must not share hosts with each
// other, but may with the rest: each takes all of its host's Apart. So n/5 hosts
// are the least, and are enough.
func Diverse(n int) scheduling.Input {
	in := scheduling.Input{Now: Now}
	addCatalogue(&in, largest)
	for i := range in.Templates {
		in.Templates[i].Countables[Apart] = 1
	}
	alone := map[string]int64{Slots: 1, Apart: 1}
	r := rand.New(rand.NewSource(seed))
	for block, labels := range []int{1, 2, 2, 1, 0} {
		for i := range n / 5 {
			cpus, memory := drawNeed(r, labels)
			job := waiting(block*(n/5)+i+1, cpus, memory, oneSlot)
			switch block {
			case 3:
				job.Constraint = "site=z1"
			case 4:
				job.Countables = alone
			}
			in.Jobs = append(in.Jobs, job)
		}
	}
	return in
}

// Preferences is W3: n jobs that need the same, drawn once, with the catalogue
// of W1, from the same benchmark. There they prefer one zone, and to be apart
// from each other in zones and hosts, which cannot be; batch jobs have no
// preferences, so that these are left out.
func Preferences(n int) scheduling.Input {
	in := scheduling.Input{Now: Now}
	addCatalogue(&in, largest)
	cpus, memory := drawNeed(rand.New(rand.NewSource(seed)), 0)
	for i := range n {
		in.Jobs = append(in.Jobs, waiting(i+1, cpus, memory, oneSlot))
	}
	return in
}

// Estimator is W4: 50,000 small jobs, then 1,000 that fill a host only together
// with small ones, and one template. All 51,000 have room on 2,595 hosts,
// which is what their cpus fill to the last. The one host that is there has no
// slot free. Memory is in bytes. It comes from the benchmark of another public
// autoscaler, as do W5 to W8.
func Estimator() scheduling.Input {
	in := scheduling.Input{
		Now:       Now,
		Hosts:     []scheduling.Host{{Name: hostName(1), Capacity: cluster.Capacity{CPUs: 100, MemoryMB: 100}}},
		Templates: []cluster.Template{oneTemplate(1000, 5000, 3000, map[string]int64{Slots: 100})},
	}
	addJobs(&in, 50_000, 50, 100, oneSlot)
	addJobs(&in, 1_000, 95, 190, oneSlot)
	return in
}

// Loop is W5: 50,000 like jobs, of which 50 fill one of the template's hosts to
// the last of its cpus and memory (bytes): exactly 1,000 hosts.
func Loop() scheduling.Input {
	in := scheduling.Input{Now: Now, Templates: []cluster.Template{oneTemplate(10_000, 10_000, 10_000, nil)}}
	addJobs(&in, 50_000, 200, 200, nil)
	return in
}

// Full is W6: jobs that need more memory (bytes) than any host has. There is no
// template, so that all stay waiting. The running jobs go round the hosts and
// take more than these have, where there are many.
func Full(hosts, jobs, pending int) scheduling.Input {
	in := scheduling.Input{Now: Now}
	for i := range hosts {
		in.Hosts = append(in.Hosts, scheduling.Host{Name: hostName(i + 1), Capacity: cluster.Capacity{CPUs: 2000, MemoryMB: 200_000}})
	}
	for i := range jobs {
		in.Running = append(in.Running, running(pending+i+1, hostName(i%hosts+1), 1000, 200_000))
	}
	addJobs(&in, pending, 1000, 2_000_000, nil)
	return in
}

// IdlePacked is W7 for jobs that stay where they run: 80,000 of a hundredth of a
// host each, packed on 800 of 2,000 hosts, so that 1,200 are idle. The
// autoscaler has them spread over all the hosts, 40 on each, and may move them.
func IdlePacked() scheduling.Input {
	in := scheduling.Input{Now: Now}
	for i := range 2_000 {
		in.Hosts = append(in.Hosts, scheduling.Host{Name: hostName(i + 1), Capacity: cluster.Capacity{CPUs: 10_000, MemoryMB: 10_000}, Template: "only"})
	}
	for i := range 80_000 {
		in.Running = append(in.Running, running(i+1, hostName(i/100+1), 100, 100))
	}
	in.Templates = []cluster.Template{oneTemplate(10_000, 10_000, 10_000, nil)}
	return in
}

// DeviceJobs is W8: 4,000 jobs that need a device and a sixteenth of a host,
// which has eight devices: 500 hosts.
func DeviceJobs() scheduling.Input {
	in := scheduling.Input{
		Now:       Now,
		Templates: []cluster.Template{oneTemplate(16_000, 16_000, 10_000, map[string]int64{Devices: 8})},
	}
	addJobs(&in, 4_000, 1000, 1000, map[string]int64{Devices: 1})
	return in
}

// LicensedDeviceJobs is W8 where each job needs a licence token too. The cluster
// owns none, and its lender can give 3,200: 400 hosts, and 800 jobs that wait for
// tokens.
func LicensedDeviceJobs() scheduling.Input {
	in := DeviceJobs()
	in.Resources = []scheduling.Resource{{SharedResource: cluster.SharedResource{
		Name: "licence", Elastic: &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: 10_000, IdleTime: cluster.Minute},
	}}}
	in.Offers = []cluster.Offer{{Provider: "pool", Resource: "licence", Headroom: 3_200, Price: 10_000, MaxOpen: 1, Published: Now}}
	one := map[string]int64{"licence": 1}
	for i := range in.Jobs {
		in.Jobs[i].Tokens = one
	}
	return in
}

// oneTemplate is the template of an instance that has only one.
func oneTemplate(cpus, memory, headroom int64, countables map[string]int64) cluster.Template {
	return cluster.Template{
		Name: "only", Provider: "cloud", Capacity: cluster.Capacity{CPUs: cpus, MemoryMB: memory, Countables: maps.Clone(countables)},
		Headroom: headroom, Price: 1_000_000, Published: Now,
	}
}

// addJobs adds n waiting jobs that need the same.
func addJobs(in *scheduling.Input, n int, cpus, memory int64, countables map[string]int64) {
	for range n {
		in.Jobs = append(in.Jobs, waiting(len(in.Jobs)+1, cpus, memory, countables))
	}
}
