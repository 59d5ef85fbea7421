package controller_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

// twoPools is a cluster with two lenders, and leases of 15 seconds.
func twoPools() controller.Config {
	config := controllertest.Vcs(2, 10)
	config.Providers = append(config.Providers, "pool-b")
	config.Resources[0].Elastic.Lenders = []string{"pool", "pool-b"}
	config.Leases = cluster.DefaultLeaseRules()
	return config
}

// every is each kind of change that a provisioner can make, of what is a provider's.
func every(ctx context.Context, c *api.Client, provider string) map[string]error {
	loan := api.LedgerWrite{Loan: "loan/vcs/" + provider + "-1", Resource: "vcs", Step: 2}
	first := loan
	first.Step = 1
	request := cluster.LoanRequest{ID: loan.Loan, Resource: "vcs", Provider: provider, Units: 1}
	errs := map[string]error{"publish": c.PublishCatalog(ctx, provider, catalog(5)), "stray": c.ReportStray(ctx, api.Stray{Provider: provider, Request: "x", Resource: "vcs"})}
	_, errs["intend"] = c.Intend(ctx, api.IntendLoan{LedgerWrite: first, Request: request})
	_, errs["commit"] = c.Commit(ctx, api.CommitLoan{LedgerWrite: loan, Granted: 1})
	_, errs["refuse"] = c.Refuse(ctx, api.RefuseLoan{LedgerWrite: loan, Why: "no"})
	_, errs["fence"] = c.Fence(ctx, api.FenceLoan{LedgerWrite: loan})
	_, errs["recall"] = c.Recall(ctx, api.RecallLoan{LedgerWrite: loan, Units: 1})
	_, errs["confirm"] = c.Confirm(ctx, api.ConfirmLoan{LedgerWrite: loan})
	_, errs["host"] = c.WriteHost(ctx, api.WriteHost{Host: "host/small-1", Step: 1, Intend: &cluster.HostRequest{ID: "host/small-1", Provider: provider, Template: "small"}})
	return errs
}

func TestAProvisionerChangesOnlyWhatIsItsProviders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPools())
	b := w.Provisioner("p2", "pool-b")
	w.offer(5)
	w.join(4)
	w.submit(4)
	w.Session()
	w.intend("loan/vcs/pool-1", 1)
	before := w.Status().Revision
	for what, err := range every(t.Context(), b, "pool") {
		if status(err) != http.StatusPreconditionFailed {
			t.Errorf("%s of another's provider: %v, want HTTP 412", what, err)
		}
	}
	for what, err := range every(t.Context(), b.Under(api.Claim{Provider: "pool", Epoch: 1}), "pool") {
		if status(err) != http.StatusPreconditionFailed || !strings.Contains(err.Error(), "it is p1's under epoch 1") {
			t.Errorf("%s under another's lease: %v, want HTTP 412", what, err)
		}
	}
	for what, err := range every(t.Context(), b.Under(api.Claim{}), "pool") {
		if status(err) != http.StatusPreconditionFailed {
			t.Errorf("%s under no lease: %v, want HTTP 412", what, err)
		}
	}
	if after := w.Status().Revision; after != before {
		t.Errorf("refused changes left %d records", after-before)
	}
}

func TestAStaleEpochIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPools())
	w.offer(5)
	w.join(4)
	w.submit(4)
	w.Session()
	w.intend("loan/vcs/pool-1", 1)
	w.Clock.Advance(15 * cluster.Second)
	err := w.pool.PublishCatalog(t.Context(), "pool", catalog(6))
	if !api.LeaseLost(err) || !strings.Contains(err.Error(), "not renewed in time") {
		t.Errorf("a lease that has ended lets a change in: %v", err)
	}
	now := w.Provisioner("p1", "pool")
	w.must(now.PublishCatalog(t.Context(), "pool", catalog(6)))
	for what, err := range every(t.Context(), w.pool, "pool") {
		if !api.LeaseLost(err) || !strings.Contains(err.Error(), "acts for pool under epoch 1; it is p1's under epoch 2") {
			t.Errorf("%s under a stale epoch: %v", what, err)
		}
	}
}

func TestALeaseIsMovedByAnOperatorByWayOfItsHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPools())
	both := api.TendLeases{Instance: "p1", Owns: []string{"pool", "pool-b"}}
	other := w.Provisioner("p2", "pool-b")
	w.must(w.admin.MoveLease(t.Context(), "pool-b", api.MoveLease{To: "p2"}))
	if err := w.admin.MoveLease(t.Context(), "pool", api.MoveLease{To: "p2"}); status(err) != http.StatusConflict {
		t.Errorf("a move to who may not own the provider: %v, want HTTP 409", err)
	}
	both.Instance = "p2"
	if _, err := other.TendLeases(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	w.must(w.admin.MoveLease(t.Context(), "pool", api.MoveLease{To: "p2"}))
	both.Instance = "p1"
	held, err := w.pool.TendLeases(t.Context(), both)
	w.must(err)
	if len(held.Leases) != 1 || held.Leases[0].MoveTo != "p2" || held.TimeToLive != 15*cluster.Second {
		t.Errorf("the holder is not told of the move: %+v", held)
	}
	w.must(w.pool.PublishCatalog(t.Context(), "pool", catalog(5))) // it ends what it does
	both.Gives = []string{"pool"}
	held, err = w.pool.TendLeases(t.Context(), both)
	w.must(err)
	both.Instance, both.Gives = "p2", nil
	got, err := other.TendLeases(t.Context(), both)
	w.must(err)
	if len(held.Leases) != 0 || len(got.Leases) != 2 {
		t.Errorf("after the move p1 has %+v, p2 %+v", held.Leases, got.Leases)
	}
	l, err := w.admin.Leases(t.Context())
	w.must(err)
	if len(l.Leases) != 2 || l.Leases[0].Holder != "p2" || l.Leases[0].Epoch != 2 || !l.Leases[0].Pinned || len(l.Provisioners) != 2 {
		t.Errorf("leases are %+v", l)
	}
}

func TestAProvisionerWithAnotherConfigurationIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPools())
	_, err := w.pool.TendLeases(t.Context(), api.TendLeases{Instance: "p1", Owns: []string{"pool", "nowhere"}})
	if status(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), `owns[1]: provider "nowhere" is not in the controller's configuration`) {
		t.Errorf("a provider that the controller does not know: %v", err)
	}
	if _, err := w.pool.TendLeases(t.Context(), api.TendLeases{Instance: "p1-again"}); status(err) != http.StatusConflict {
		t.Errorf("two processes act under one name: %v, want HTTP 409", err)
	}
}
