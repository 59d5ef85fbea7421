package controller_test

import (
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

func TestSessionsWriteNothingWhileNothingChanges(t *testing.T) {
	t.Parallel()
	w, _ := borrowed(t)
	w.submit(3)
	w.submit(9)
	w.Session()
	before, rows := w.Status(), w.changes(0)
	for range 5 {
		w.Clock.Advance(cluster.Second)
		w.Session()
	}
	after := w.Status()
	if after.Revision != before.Revision || len(w.changes(0)) != len(rows) {
		t.Errorf("revision %d became %d: %+v", before.Revision, after.Revision, w.changes(before.Revision))
	}
	if after.Resources[0].IdleSince != before.Resources[0].IdleSince {
		t.Errorf("idle since %s became %s", before.Resources[0].IdleSince, after.Resources[0].IdleSince)
	}
}

func TestASessionStartsWhatFitsAndSaysWhyTheRestWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	first, second := w.submit(2), w.submit(1)
	w.Session()
	if why := w.job(first).Why; !strings.Contains(why, "no host is up") {
		t.Errorf("without a host the job %s", why)
	}
	w.join(8)
	w.Session()
	running, waiting := w.job(first), w.job(second)
	if running.State != cluster.JobRunning || running.Host != hostName || running.Started != w.Clock.Now() || running.Why != "" {
		t.Errorf("the first job is %+v", running)
	}
	if waiting.State != cluster.JobWaiting || waiting.Why == "" {
		t.Errorf("the second job is %+v", waiting)
	}
	if r := w.Resource("vcs"); r.InUse != 2 || r.Idle != 0 {
		t.Errorf("in use are %d, idle %d, want 2 and 0", r.InUse, r.Idle)
	}
}

func TestASilentHostKeepsItsJobsAndGetsNoNewOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(4, 10))
	w.join(8)
	first := w.submit(1)
	w.Session()
	w.Clock.Advance(45 * cluster.Second)
	second := w.submit(1)
	w.Session()
	if w.job(first).State != cluster.JobRunning || w.job(second).State != cluster.JobWaiting {
		t.Errorf("the jobs of a silent host are %s and %s, want running and waiting", w.job(first).State, w.job(second).State)
	}
	if h := w.Status().Hosts[0]; h.Up || h.Jobs != 1 || h.FreeCPUs != 7 {
		t.Errorf("the silent host is %+v", h)
	}
	if _, err := w.host.Assignments(t.Context(), hostName, 0, 0); err != nil { // a sign of life
		t.Fatal(err)
	}
	w.Session()
	if w.job(second).State != cluster.JobRunning {
		t.Error("a host that is heard of again gets no job")
	}
}

func TestAHostThatJoinsAgainKeepsItsAssignments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(4, 10))
	w.join(8)
	job := w.submit(1)
	w.Session()
	before, err := w.host.Assignments(t.Context(), hostName, 0, 0)
	w.must(err)
	w.join(16)
	after, err := w.host.Assignments(t.Context(), hostName, 0, 0)
	w.must(err)
	if after.Revision != before.Revision || len(after.Jobs) != 1 || after.Jobs[0].ID != job {
		t.Errorf("assignments %+v became %+v", before, after)
	}
	if h := w.Status().Hosts[0]; h.CPUs != 16 || h.FreeCPUs != 15 {
		t.Errorf("the host is %+v, want 15 of 16 cpus free", h)
	}
}

func TestAWithdrawnOfferIsDemandedNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.offer(10)
	w.submit(4)
	w.Session()
	before := w.Status().Revision
	nothing := api.Catalog{Offers: []cluster.Offer{}, Observations: []cluster.Observation{}}
	w.must(w.pool.PublishCatalog(t.Context(), "pool", nothing))
	w.Session()
	changes := w.changes(before)
	if len(changes) != 2 || changes[0].Kind != api.KindCatalog || changes[1].Kind != api.KindDemand {
		t.Errorf("a withdrawn offer is recorded as %+v", changes)
	}
	if st := w.Status(); len(st.Offers) != 0 || len(st.Demand) != 0 {
		t.Errorf("offers %+v, demand %+v", st.Offers, st.Demand)
	}
}

func TestASurveyThatFindsNothingNewWritesNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.offer(10)
	before := w.Status()
	w.Clock.Advance(cluster.Minute)
	w.offer(10)
	after := w.Status()
	if after.Revision != before.Revision || after.Offers[0].Published == before.Offers[0].Published {
		t.Errorf("revision %d became %d; published %s", before.Revision, after.Revision, after.Offers[0].Published)
	}
	w.offer(9)
	if w.Status().Revision != before.Revision+1 {
		t.Error("changed headroom is not recorded")
	}
}

func TestACatalogOfAProviderThatIsNotConfiguredIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.wantStatus(404, w.pool.PublishCatalog(t.Context(), "puddle", catalog(3)))
	foreign := catalog(3)
	foreign.Offers[0].Resource = "zebu"
	foreign.Observations = []cluster.Observation{{Resource: "zebu", InUse: 1}, {Resource: "vcs", InUse: 5, At: w.Clock.Now()}}
	w.must(w.pool.PublishCatalog(t.Context(), "pool", foreign))
	w.Clock.Advance(cluster.Second)
	st := w.Status()
	if len(st.Offers) != 0 {
		t.Errorf("an offer of an unknown resource is kept: %+v", st.Offers)
	}
	if seen := st.Resources[0].Observed; len(seen) != 1 || seen[0].InUse != 5 || seen[0].Provider != "pool" || seen[0].Age != cluster.Second {
		t.Errorf("observed are %+v", seen)
	}
}

func TestAProviderSeesItsOwnDemandOffersLoansAndTheRoomThatIsLeft(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Providers = append(config.Providers, "other")
	w := newWorld(t, config)
	w.join(16)
	w.offer(5)
	w.must(w.Provisioner("p2", "other").PublishCatalog(t.Context(), "other", catalog(9)))
	w.submit(6)
	w.Session()
	w.intend(loan, 3)
	v, err := w.pool.ProviderView(t.Context(), "pool", []string{loan, "loan/vcs/pool-7"})
	w.must(err)
	if len(v.Open) != 1 || v.Room["vcs"] != 7 || v.Loans["vcs"] != 1 || v.Weights["vcs"] != 1 || len(v.Closed) != 0 {
		t.Errorf("pool sees %+v", v)
	}
	if len(v.Offers) != 1 || v.Offers[0].Provider != "pool" || len(v.Demand) != 1 || v.Demand[0].Units != 1 {
		t.Errorf("pool sees offers %+v and demand %+v", v.Offers, v.Demand)
	}
	w.written(w.pool.Refuse(t.Context(), api.RefuseLoan{LedgerWrite: at(loan, 2), Why: "no"}))
	v, err = w.pool.ProviderView(t.Context(), "pool", []string{loan, "loan/vcs/pool-7"})
	w.must(err)
	if len(v.Open) != 0 || len(v.Closed) != 1 || v.Closed[0] != loan || v.Room["vcs"] != 10 || v.Loans["vcs"] != 1 {
		t.Errorf("after the refusal pool sees %+v", v)
	}
	other, err := w.pool.ProviderView(t.Context(), "other", []string{})
	w.must(err)
	if len(other.Open)+len(other.Demand) != 0 || other.Loans["vcs"] != 0 || len(other.Offers) != 1 {
		t.Errorf("the other provider sees %+v", other)
	}
}
