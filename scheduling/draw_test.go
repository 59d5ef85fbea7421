package scheduling

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "1000") // the command line may say otherwise
	os.Exit(m.Run())
}

const now = cluster.Time(1_767_261_600_000)

// drawInput draws a small cluster in which everything is scarce: hosts, tokens,
// headroom and what may be borrowed.
func drawInput(t *rapid.T) Input {
	in := Input{Now: now}
	for i := range upTo(3).Draw(t, "hosts") {
		in.Hosts = append(in.Hosts, Host{
			Name: fmt.Sprintf("node%d", i), CPUs: upTo(6).Draw(t, "cpus"), MemoryMB: upTo(6).Draw(t, "memory"),
		})
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
	for i := range upTo(8).Draw(t, "jobs") {
		in.Jobs = append(in.Jobs, drawJob(t, i+1, in.Resources))
	}
	return in
}

func upTo(n int64) *rapid.Generator[int64] { return rapid.Int64Range(0, n) }

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
	}
	if rapid.IntRange(0, 4).Draw(t, "refused") == 0 {
		o.BackoffUntil = now.Add(cluster.Second)
	}
	return o
}

func drawJob(t *rapid.T, id int64, resources []Resource) cluster.Job {
	job := cluster.Job{ID: id}
	job.CPUs, job.MemoryMB = rapid.Int64Range(1, 3).Draw(t, "cpus"), upTo(2).Draw(t, "memory")
	job.Priority = upTo(2).Draw(t, "priority")
	job.Tokens = map[string]int64{}
	for _, r := range resources {
		if rapid.Bool().Draw(t, "needed") {
			job.Tokens[r.Name] = rapid.Int64Range(1, 4).Draw(t, "tokens")
		}
	}
	if rapid.IntRange(0, 30).Draw(t, "odd") == 0 {
		job.Tokens["gone"] = 1
	}
	return job
}
