package controller_test

import (
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

func lend(units int64) api.LendUnits { return api.LendUnits{Resource: "vcs", Units: units, To: "east"} }

func TestLentUnitsLeaveTheTotalAndComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(5, 10))
	start := w.Status().Revision
	for _, step := range []struct{ units, total int64 }{{2, 3}, {2, 3}, {4, 1}, {0, 5}, {0, 5}} {
		w.must(w.admin.Lend(t.Context(), "l1", lend(step.units)))
		if r := w.Resource("vcs"); r.Lent != step.units || r.Total != step.total {
			t.Errorf("with %d lent: %d lent, total %d, want total %d", step.units, r.Lent, r.Total, step.total)
		}
	}
	changes := w.changes(start)
	if len(changes) != 3 {
		t.Fatalf("recorded are %+v, want one record per change", changes)
	}
	if len(changes[0].Before) > 0 || changes[0].Why != "lent to east" || len(changes[2].After) > 0 || changes[2].Why != "taken back from east" {
		t.Errorf("the first and the last record are %+v and %+v", changes[0], changes[2])
	}
}

func TestOnlyUnusedUnitsCanBeLent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(5, 10))
	w.join(8)
	w.submit(3)
	w.Session()
	w.wantStatus(409, w.admin.Lend(t.Context(), "l1", lend(3)))
	w.must(w.admin.Lend(t.Context(), "l1", lend(2)))
	if r := w.Resource("vcs"); r.Total != 3 || r.Overdraft != 0 {
		t.Errorf("after 2 are lent: %+v", r)
	}
	w.wantStatus(404, w.admin.Lend(t.Context(), "l2", api.LendUnits{Resource: "zebu", Units: 1, To: "east"}))
}

func TestALendingOfOneResourceIsNotTakenOverByAnother(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(5, 10)
	config.Resources = append(config.Resources, cluster.SharedResource{Name: "zebu", Owned: 5})
	w := newWorld(t, config)
	w.must(w.admin.Lend(t.Context(), "l1", lend(2)))
	w.wantStatus(409, w.admin.Lend(t.Context(), "l1", api.LendUnits{Resource: "zebu", Units: 1, To: "east"}))
	if v, z := w.Resource("vcs"), w.Resource("zebu"); v.Lent != 2 || z.Lent != 0 {
		t.Errorf("lent are %d vcs and %d zebu, want 2 and 0", v.Lent, z.Lent)
	}
}

func TestOwnedBelowInUseIsAnOverdraftThatHurtsNoJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(5, 10))
	w.join(8)
	job := w.submit(4)
	w.Session()
	w.must(w.admin.SetOwned(t.Context(), "vcs", api.Owned{Owned: 1, Why: "three expired"}))
	next := w.submit(1)
	w.Session()
	if r := w.Resource("vcs"); r.Total != 1 || r.InUse != 4 || r.Overdraft != 3 {
		t.Errorf("after the change: %+v", r)
	}
	if w.job(job).State != cluster.JobRunning || w.job(next).State != cluster.JobWaiting {
		t.Errorf("the jobs are %s and %s, want running and waiting", w.job(job).State, w.job(next).State)
	}
	before := w.Status().Revision
	w.must(w.admin.SetOwned(t.Context(), "vcs", api.Owned{Owned: 1, Why: "again"}))
	w.wantStatus(404, w.admin.SetOwned(t.Context(), "zebu", api.Owned{Owned: 1, Why: "x"}))
	if after := w.Status().Revision; after != before {
		t.Errorf("the same number again made revision %d of %d", after, before)
	}
}
