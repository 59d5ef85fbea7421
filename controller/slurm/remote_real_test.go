package slurm

import (
	"strings"
	"testing"

	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/slurm/slurmtest"
)

// A licence that slurmdbd keeps for several clusters is lent and fenced as one of slurm.conf is, also while slurmdbd is
// away.
func TestRealRemoteLicences(t *testing.T) {
	if missing, ok := slurmtest.Accounting(); !endToEnd || !ok {
		t.Skipf("it is run with the tag e2e, where slurmdbd and mariadb-server are installed; missing is %q", missing)
	}
	r := startSlurm(t, slurmtest.Options{Nodes: 1, Accounting: true})
	accounts := func(args ...string) {
		t.Helper()
		_, err := r.run("sacctmgr", append([]string{"-i"}, args...)...)
		must(t, err)
	}
	accounts("add", "resource", "name=vcs", "server=pool", "servertype=flexlm", "type=license", "count=10", "cluster=test", "percentallowed=100")
	b := r.backend(func(o *Options) { o.Licences = map[string]string{"vcs": "vcs@pool"} })
	totalIs := func(want int64) {
		r.until("slurmctld has heard of the total", func() bool {
			all, err := r.commands.Licences(t.Context())
			return err == nil && all["vcs@pool"].Total == want
		})
	}
	totalIs(10)

	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6})
	waits := r.submit("-n1", "-L", "vcs@pool:5")
	r.until("it waits for tokens", func() bool { return r.job(waits) == "PENDING Licenses" })
	withhold(t, b, "vcs", 5, backend.Resource{Ceiling: 10, Withheld: 5})
	r.until("it runs", func() bool { return strings.HasPrefix(r.job(waits), "RUNNING") })
	withhold(t, b, "vcs", 2, backend.Resource{Ceiling: 10, Withheld: 8, Used: 5})

	// Someone changes the total: what is usable stays what it was, up to the ceiling.
	accounts("modify", "resource", "where", "name=vcs", "server=pool", "set", "count=14")
	totalIs(14)
	withhold(t, b, "vcs", 6, backend.Resource{Ceiling: 14, Withheld: 8, Used: 5})
	accounts("modify", "resource", "where", "name=vcs", "server=pool", "set", "count=7")
	totalIs(7)
	withhold(t, b, "vcs", 6, backend.Resource{Ceiling: 7, Withheld: 1, Used: 5})

	r.StopAccounting()
	withhold(t, b, "vcs", 5, backend.Resource{Ceiling: 7, Withheld: 2, Used: 5})
	r.StopController()
	must(t, r.StartController(t.Context()))
	r.until("it is as it was, without slurmdbd", func() bool {
		got, err := b.Withhold(t.Context(), "vcs", 5)
		got.Before = 0
		return err == nil && got == (backend.Resource{Ceiling: 7, Withheld: 2, Used: 5})
	})
	if got := r.job(waits); !strings.HasPrefix(got, "RUNNING") {
		t.Errorf("the job is %s", got)
	}
}
