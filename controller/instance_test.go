package controller_test

import (
	"errors"
	"net/http"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

// Two agents under one name would run every job twice.
func TestASecondAgentUnderAHostsNameIsRefusedWhileTheFirstIsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	join := func(instance string) error {
		return w.host.Join(t.Context(), hostName, api.JoinHost{CPUs: 4, Instance: instance})
	}
	w.must(join("first"))
	w.must(join("first")) // it started again
	w.wantStatus(http.StatusConflict, join("second"))
	w.Clock.Advance(cluster.Minute) // the first is silent
	w.must(join("second"))
	w.wantStatus(http.StatusConflict, join("first"))
}

func TestAnOwnedNumberBeyondCountingIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.wantStatus(http.StatusUnprocessableEntity, w.admin.SetOwned(t.Context(), "vcs", api.Owned{Owned: 1 << 62, Why: "huge"}))
	if got := w.Resource("vcs").Total; got != 2 {
		t.Errorf("the total is %d, want 2", got)
	}
}

// A controller of another version may lack a route: that says nothing of a loan.
func TestARouteThatIsMissingIsToldFromARowThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	var e *api.Error
	if err := w.pool.PublishCatalog(t.Context(), "a/b/c?", catalog(1)); !errors.As(err, &e) || e.Foreign {
		t.Errorf("a provider that is not there is no foreign answer: %+v", e)
	}
	if _, err := w.pool.Commit(t.Context(), api.CommitLoan{LedgerWrite: api.LedgerWrite{Loan: "x", Resource: "zebu", Step: 1}, Granted: 1}); !errors.As(err, &e) || e.Foreign || e.Status != http.StatusNotFound {
		t.Errorf("a resource that is not there is no foreign answer: %+v", e)
	}
	if err := w.pool.Join(t.Context(), "", api.JoinHost{CPUs: 1}); !errors.As(err, &e) || !e.Foreign || e.Status != http.StatusNotFound {
		t.Errorf("a path without a route is a foreign answer: %+v", e)
	}
}
