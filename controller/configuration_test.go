package controller_test

import (
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

// onFile is a world whose state outlives a restart.
func onFile(t *testing.T, config controller.Config) *world {
	t.Helper()
	c := controllertest.Open(t, filepath.Join(t.TempDir(), "state.db"), config)
	c.Serve()
	return &world{Controller: c, t: t, pool: c.Client(api.Provisioner, "p1"), admin: c.Client(api.Admin, "root"), user: c.Client(api.Submitter, "ann"), host: c.Client(api.HostRole, hostName)}
}

func (w *world) restart(config controller.Config) {
	w.t.Helper()
	w.must(w.Reopen(config))
}

func owned(n int64) controller.Config { return controllertest.Vcs(n, 10) }

func TestAnOwnedNumberSetByAnOperatorOutlivesARestart(t *testing.T) {
	t.Parallel()
	w := onFile(t, owned(5))
	w.must(w.admin.SetOwned(t.Context(), "vcs", api.Owned{Owned: 7, Why: "bought two"}))
	before := w.Status().Revision
	w.restart(owned(5))
	if r := w.Resource("vcs"); r.Owned != 7 || r.Total != 7 {
		t.Errorf("owned is %d, want the operator's 7", r.Owned)
	}
	other := owned(5)
	other.Resources[0].KeepBack = 1
	w.restart(other)
	if r := w.Resource("vcs"); r.Owned != 7 || r.KeepBack != 1 {
		t.Errorf("owned is %d with %d kept back, want the operator's 7 with 1", r.Owned, r.KeepBack)
	}
	if changes := w.changes(before); len(changes) != 1 || changes[0].Why != "the configuration changed" {
		t.Errorf("two restarts, one with a change, are recorded as %+v", changes)
	}
}

func TestAConfiguredOwnedNumberThatChangedWins(t *testing.T) {
	t.Parallel()
	w := onFile(t, owned(5))
	w.must(w.admin.SetOwned(t.Context(), "vcs", api.Owned{Owned: 7, Why: "bought two"}))
	w.restart(owned(6))
	if r := w.Resource("vcs"); r.Owned != 6 {
		t.Errorf("owned is %d, want the newly configured 6", r.Owned)
	}
	w.must(w.Service.SetOwned(t.Context(), "admin/root", "vcs", api.Owned{Owned: 8, Why: "bought two"}))
	w.restart(owned(6))
	if r := w.Resource("vcs"); r.Owned != 8 {
		t.Errorf("owned is %d after one more restart, want the operator's 8", r.Owned)
	}
}

func TestAResourceInUseCannotBeRemovedFromTheConfiguration(t *testing.T) {
	t.Parallel()
	none := owned(5)
	none.Resources = nil
	for name, test := range map[string]struct {
		use  func(w *world)
		want string
	}{
		"borrowed": {func(w *world) { w.borrow() }, "1 open loans"},
		"lent": {func(w *world) {
			w.must(w.admin.Lend(t.Context(), "l1", api.LendUnits{Resource: "vcs", Units: 2, To: "east"}))
		}, "1 lendings"},
		"in use": {func(w *world) {
			w.join(8)
			w.submit(3)
			w.Session()
		}, "3 units in use"},
	} {
		t.Run(name, func(t *testing.T) {
			w := onFile(t, owned(5))
			test.use(w)
			total := w.Resource("vcs").Total
			err := w.Reopen(none)
			if err == nil || !strings.Contains(err.Error(), "resource vcs") || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "put it back") {
				t.Errorf("the start ends with %v, want it refused for %s", err, test.want)
			}
			w.restart(owned(5))
			if r := w.Resource("vcs"); r.Total != total {
				t.Errorf("after the refused start the total is %d, want %d", r.Total, total)
			}
		})
	}
}

// borrow takes a loan of 4 units for a job of 9.
func (w *world) borrow() {
	w.t.Helper()
	w.join(16)
	w.offer(10)
	w.submit(9)
	w.Session()
	w.intend(loan, 4)
	w.commit(loan, 4)
}

func TestARemovedResourceTakesItsOffersAndDemandAlong(t *testing.T) {
	t.Parallel()
	w := onFile(t, owned(2))
	w.join(8)
	w.offer(10)
	job := w.submit(4)
	w.Session()
	none := owned(2)
	none.Resources = nil
	before := w.Status().Revision
	w.restart(none)
	if st := w.Status(); len(st.Resources)+len(st.Offers)+len(st.Demand) != 0 {
		t.Errorf("left are %+v", st)
	}
	changes := w.changes(before)
	if len(changes) != 1 || changes[0].TotalBefore != 2 || changes[0].TotalAfter != 0 || len(changes[0].After) > 0 {
		t.Errorf("the removal is recorded as %+v", changes)
	}
	w.Session()
	if j := w.job(job); j.State != cluster.JobWaiting || !strings.Contains(j.Why, "no longer a shared resource") {
		t.Errorf("the job that needs it is %s: %s", j.State, j.Why)
	}
}

func TestTheOffersOfARemovedProviderAreDropped(t *testing.T) {
	t.Parallel()
	w := onFile(t, owned(2))
	w.join(8)
	seen := catalog(10)
	seen.Observations = []cluster.Observation{{Resource: "vcs", InUse: 1, At: w.Clock.Now()}}
	w.must(w.pool.PublishCatalog(t.Context(), "pool", seen))
	w.submit(4)
	w.Session()
	before := w.Status().Revision
	other := owned(2)
	other.Providers, other.Resources[0].Elastic.Lenders = []string{"lake"}, []string{"lake"}
	w.restart(other)
	w.Session()
	if st := w.Status(); len(st.Offers)+len(st.Demand)+len(st.Resources[0].Observed) != 0 {
		t.Errorf("left are offers %+v, demand %+v and observed %+v", st.Offers, st.Demand, st.Resources[0].Observed)
	}
	kinds := ""
	for _, c := range w.changes(before) {
		kinds += c.Kind + " "
	}
	if kinds != "resource catalog demand " {
		t.Errorf("recorded are %q, want the resource, the offer and the demand", kinds)
	}
}

func TestJobsLoansAndAuditRecordsOutliveARestart(t *testing.T) {
	t.Parallel()
	w := onFile(t, owned(5))
	w.borrow()
	w.Session()
	before, changes := w.Status(), w.changes(0)
	w.restart(owned(5))
	after := w.Status()
	if after.Revision != before.Revision || after.Jobs != before.Jobs || after.Resources[0].Total != before.Resources[0].Total ||
		after.Resources[0].InUse != 9 || len(w.changes(0)) != len(changes) || !after.Hosts[0].Up {
		t.Errorf("before the restart %+v\nafter it %+v", before, after)
	}
}
