package slurm

import (
	"context"
	"testing"

	"xce.internal/elastic/cluster"
)

// A job for more hosts than there are raises demand: more of them would let it start.
func TestRealJobsForMoreHostsThanThereAreRaiseDemand(t *testing.T) {
	r := startSlurm(t, oneNode)
	b := r.backend(func(o *Options) { o.Hosts = map[string]HostOptions{"big": {}} })
	must(t, b.Placeholder(t.Context(), "big", machine("", "", "", "big", "partition:main")))
	for _, args := range [][]string{{"-N3"}, {"-n16"}, {"-N3", "-C", "big"}, {"-n16", "-C", "big"}} {
		id := r.submit(args...)
		r.until("Slurm has looked at it", func() bool { return r.job(id) != "PENDING None" })
	}
	rows, err := r.commands.Jobs(context.Background())
	must(t, err)
	jobs, _ := Translation{At: b.Now().Add(cluster.Minute), Grace: cluster.Second}.Jobs(rows)
	for _, j := range jobs {
		if j.Told.Barred != "" {
			t.Errorf("job %d of %d hosts with %d cpus each, of which Slurm says %s: %s", j.ID, j.Nodes, j.CPUs, j.Told.Reason, j.Told.Barred)
		}
	}
}
