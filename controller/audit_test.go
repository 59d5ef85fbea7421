package controller_test

import (
	"encoding/json"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

func TestEveryChangeIsRecordedWithActorReasonStatesAndTotals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	const free = "free text"
	steps := []struct {
		do            func()
		kind, actor   string
		subject, why  string
		before, after bool // is there a state before and after
		totals        [2]int64
	}{
		{func() {
			_, err := w.pool.TendLeases(t.Context(), api.TendLeases{Instance: "p1"})
			w.must(err)
		}, "lease", "provisioner/p1", "pool", "p1 may not act for it any more", true, true, [2]int64{}},
		{func() {
			w.pool = w.Provisioner("p1", "pool")
		}, "lease", "provisioner/p1", "pool", "acts for it from now on", true, true, [2]int64{}},
		{func() { w.join(8) }, "host", "host/h1", "h1", "joined with 8 cpus and 1000 MB", false, true, [2]int64{}},
		{func() { w.join(9) }, "host", "host/h1", "h1", "joined with 9 cpus and 1000 MB", true, true, [2]int64{}},
		{func() { w.offer(10) }, "catalog", "provisioner/p1", "pool", "pool can lend 10 vcs", false, true, [2]int64{}},
		{func() { w.offer(9) }, "catalog", "provisioner/p1", "pool", "pool can lend 9 vcs", true, true, [2]int64{}},
		{func() { w.submit(6) }, "job", "submitter/ann", "1", "submitted", false, true, [2]int64{}},
		{w.Session, "demand", "controller/session", "pool", "4 more vcs", false, true, [2]int64{}},
		{func() { w.intend(loan, 4) }, "loan-intend", "provisioner/p1", loan, "job 1 waits for it", false, true, [2]int64{2, 2}},
		{func() { w.commit(loan, 4) }, "loan-commit", "provisioner/p1", loan, "pool granted 4 of 4", true, true, [2]int64{2, 6}},
		{w.Session, "job", "controller/session", "1", "placed on h1", true, true, [2]int64{}},
		{func() { w.end(1) }, "job", "host/h1", "1", "ended by itself", true, true, [2]int64{}},
		{func() {
			w.written(w.pool.Recall(t.Context(), api.RecallLoan{LedgerWrite: at(loan, 3), Units: 1, Why: free}))
		}, "loan-recall", "provisioner/p1", loan, free, true, true, [2]int64{6, 5}},
		{func() {
			w.Clock.Advance(10 * cluster.Minute)
			w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 4), Units: 4, Why: free}))
		}, "loan-fence", "provisioner/p1", loan, free, true, true, [2]int64{5, 2}},
		{func() {
			w.written(w.pool.Confirm(t.Context(), api.ConfirmLoan{LedgerWrite: at(loan, 5), Units: 4}))
		}, "loan-confirm", "provisioner/p1", loan, "pool has 4 of 4 units back", true, true, [2]int64{2, 2}},
		{func() { w.must(w.admin.SetOwned(t.Context(), "vcs", api.Owned{Owned: 3, Why: free})) }, "resource", "admin/root", "vcs", free, true, true, [2]int64{2, 3}},
		{func() { w.must(w.admin.Lend(t.Context(), "l1", lend(1))) }, "lending", "admin/root", "l1", "lent to east", false, true, [2]int64{3, 2}},
		{func() { w.must(w.admin.Lend(t.Context(), "l1", lend(2))) }, "lending", "admin/root", "l1", "lent to east", true, true, [2]int64{2, 1}},
		{func() {
			w.must(w.pool.ReportStray(t.Context(), api.Stray{Provider: "pool", Request: "r9", Resource: "vcs", Units: 1, What: free}))
		}, "stray", "provisioner/p1", "r9", free, false, true, [2]int64{}},
	}
	first := w.changes(0)[0]
	if first.Kind != "resource" || first.Actor != "controller/configuration" || first.Subject != "vcs" || first.TotalAfter != 2 {
		t.Errorf("the first record is %+v, want that of the configuration", first)
	}
	seen := w.Status().Revision
	for _, s := range steps {
		s.do()
		changes := w.changes(seen)
		if len(changes) != 1 {
			t.Fatalf("after %s %s %q: %d records, want one: %+v", s.kind, s.subject, s.why, len(changes), changes)
		}
		c := changes[0]
		seen = c.Revision
		if c.Kind != s.kind || c.Actor != s.actor || c.Subject != s.subject || !strings.Contains(c.Why, s.why) || c.At != w.Clock.Now() {
			t.Errorf("recorded is %s by %s on %s at %s: %q\nwant %s by %s on %s: %q", c.Kind, c.Actor, c.Subject, c.At, c.Why, s.kind, s.actor, s.subject, s.why)
		}
		if got := [2]int64{c.TotalBefore, c.TotalAfter}; got != s.totals || (c.Resource == "vcs") != (got != [2]int64{}) {
			t.Errorf("%s of %q has totals %v, want %v", c.Kind, c.Resource, got, s.totals)
		}
		if (len(c.Before) > 0) != s.before || (len(c.After) > 0) != s.after {
			t.Errorf("%s: before is %s, after is %s", c.Kind, c.Before, c.After)
		}
	}
}

func TestARecordHasTheRowsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	w, _ := borrowed(t)
	for _, c := range w.changes(0) {
		if c.Kind != "loan-commit" {
			continue
		}
		var before, after cluster.Loan
		if err := json.Unmarshal(c.Before, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(c.After, &after); err != nil {
			t.Fatal(err)
		}
		if before.State != cluster.LoanRequested || before.Borrowed != 0 || after.State != cluster.LoanBorrowed || after.Borrowed != 4 {
			t.Errorf("before %+v\nafter %+v", before, after)
		}
		return
	}
	t.Error("the commit is not recorded")
}

// jobIn reads a job out of an audit record; a zero one where there is none.
func jobIn(t testing.TB, record json.RawMessage) (job cluster.Job) {
	t.Helper()
	if len(record) == 0 {
		return job
	}
	if err := json.Unmarshal(record, &job); err != nil {
		t.Fatal(err)
	}
	return job
}
