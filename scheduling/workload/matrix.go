package workload

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// What W9 is built with, each with each.
var (
	MatrixHosts     = []int{0, 100, 1_000, 10_000}
	MatrixTemplates = []int{10, 100, 400}
	MatrixLicences  = []int{0, 1, 50}
)

// Matrix is W9: the 5,000 jobs of W1 with the given numbers of hosts, of
// templates (the smallest of the catalogue) and of licences. A host has four
// cores, 8 GiB and 40 slots, and a running job has a quarter of it. Of n
// licences, job i needs a token of the one that is i modulo n. Two in five of the
// jobs' tokens are free and two in five can be borrowed, so that the last fifth of
// the jobs wait for tokens.
func Matrix(hosts, templates, licences int) scheduling.Input {
	in := generic(5_000, templates)
	for i := range hosts {
		in.Hosts = append(in.Hosts, scheduling.Host{
			Name: hostName(i + 1), Capacity: cluster.Capacity{CPUs: 3_900, MemoryMB: 8_182, Countables: map[string]int64{Slots: 40}, Attributes: map[string]string{"site": "z1"}},
		})
		job := running(len(in.Jobs)+i+1, hostName(i+1), 1_000, 2_048)
		job.Countables = oneSlot
		in.Running = append(in.Running, job)
	}
	for i := range licences {
		addLicence(&in, i, int64(2*len(in.Jobs)/(5*licences)))
	}
	for i := range in.Jobs {
		if licences > 0 {
			in.Jobs[i].Tokens = map[string]int64{licenceName(i % licences): 1}
		}
	}
	return in
}

func licenceName(i int) string { return fmt.Sprintf("licence%02d", i) }

// addLicence adds a licence of which the cluster owns some units, all free, and
// as many can be borrowed.
func addLicence(in *scheduling.Input, i int, units int64) {
	in.Resources = append(in.Resources, scheduling.Resource{
		Total: units,
		SharedResource: cluster.SharedResource{
			Name: licenceName(i), Owned: units,
			Elastic: &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: 10 * units, IdleTime: cluster.Minute},
		},
	})
	in.Offers = append(in.Offers, cluster.Offer{
		Provider: "pool", Resource: licenceName(i), Headroom: units, Price: 10_000, MaxOpen: 1, Published: Now,
	})
}
