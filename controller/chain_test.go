package controller_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"

	"xce.internal/elastic/controller/pki"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/postgrestest"
	"xce.internal/elastic/controller/store"
)

// TestMain lowers the number of random runs, which the command line can raise.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "12"); err != nil {
		panic(err)
	}
	postgrestest.Main(m)
}

// walk drives a service through random calls of all who may call it.
type walk struct {
	*controllertest.Controller
	rt    *rapid.T
	ctx   context.Context
	loans int  // ever intended
	cut   bool // the owned number was changed: an overdraft may follow
}

const walker = "test/walk"

// walkingHost is who its host is.
var walkingHost = pki.Peer{Role: "host", Name: hostName}

// call demands that a call succeeds or is refused, and does not fail.
func (w *walk) call(err error) {
	var no *controller.Refused
	var problems cluster.Problems
	if err != nil && !errors.As(err, &no) && !errors.As(err, &problems) {
		w.rt.Fatal(err)
	}
}

func (w *walk) ledger(_ api.Written, err error) { w.call(err) }

func (w *walk) draw(from, to int64, label string) int64 {
	return rapid.Int64Range(from, to).Draw(w.rt, label)
}

// next is the head of the next write to one of the open loans, and now and then
// of one that is repeated or late.
func (w *walk) next() api.LedgerWrite {
	open, err := w.Service.Loans(w.ctx, false)
	w.call(err)
	if len(open) == 0 {
		return w.intend()
	}
	row := rapid.SampledFrom(open).Draw(w.rt, "loan")
	return api.LedgerWrite{Loan: row.ID, Resource: "vcs", Step: max(row.Step+rapid.SampledFrom([]int64{1, 1, 1, 0, -1}).Draw(w.rt, "step"), 1)}
}

// intend lets a new job make demand, and intends a loan upon it.
func (w *walk) intend() api.LedgerWrite {
	w.call(w.Service.Join(w.ctx, walkingHost, api.JoinHost{CPUs: 20}))
	w.call(w.Service.PublishCatalog(w.ctx, walker, "pool", catalog(w.draw(4, 8, "headroom"))))
	_, err := w.Service.Submit(w.ctx, walker, vcsJob(w.draw(0, 9, "tokens")))
	w.call(err)
	w.call(w.Service.Session(w.ctx))
	w.loans++
	at := api.LedgerWrite{Loan: fmt.Sprintf("loan/vcs/pool-%d", w.loans), Resource: "vcs", Step: 1}
	w.ledger(w.Service.Intend(w.ctx, walker, api.IntendLoan{LedgerWrite: at, Request: cluster.LoanRequest{
		Provider: "pool", Units: w.draw(1, 9, "asked"), Jobs: []int64{}, Reason: "test",
		Terms: cluster.Terms{PartialReturn: true},
	}}))
	at.Step++
	return at
}

func (w *walk) endJob() {
	running, err := w.Service.Jobs(w.ctx, cluster.JobRunning)
	w.call(err)
	if len(running) > 0 {
		id := rapid.SampledFrom(running).Draw(w.rt, "job").ID
		w.call(w.Service.EndJob(w.ctx, walkingHost, id, api.JobEnd{State: cluster.JobDone, Why: "ended by itself"}))
	}
}

func (w *walk) actions() map[string]func(*rapid.T) {
	sv := w.Service
	return map[string]func(*rapid.T){
		"intend": func(*rapid.T) { w.intend() },
		"borrow": func(*rapid.T) {
			w.ledger(sv.Commit(w.ctx, walker, api.CommitLoan{LedgerWrite: w.intend(), Granted: w.draw(1, 9, "granted")}))
		},
		"session and time": func(*rapid.T) {
			w.call(sv.Session(w.ctx))
			w.Clock.Advance(cluster.Duration(w.draw(0, 90_000, "ms")))
		},
		"end":    func(*rapid.T) { w.endJob() },
		"commit": func(*rapid.T) { w.ledger(sv.Commit(w.ctx, walker, api.CommitLoan{LedgerWrite: w.next(), Granted: 3})) },
		"refuse": func(*rapid.T) { w.ledger(sv.Refuse(w.ctx, walker, api.RefuseLoan{LedgerWrite: w.next(), Why: "no"})) },
		"fence": func(*rapid.T) {
			w.ledger(sv.Fence(w.ctx, walker, api.FenceLoan{LedgerWrite: w.next(), Units: w.draw(0, 3, "fenced")}))
		},
		"recall": func(*rapid.T) {
			w.ledger(sv.Recall(w.ctx, walker, api.RecallLoan{LedgerWrite: w.next(), Units: w.draw(0, 3, "recalled")}))
		},
		"confirm": func(*rapid.T) {
			w.ledger(sv.Confirm(w.ctx, walker, api.ConfirmLoan{LedgerWrite: w.next(), Units: w.draw(0, 3, "back")}))
		},
		"lend": func(*rapid.T) {
			id := rapid.SampledFrom([]string{"a", "b"}).Draw(w.rt, "lending")
			resource := rapid.SampledFrom([]string{"vcs", "zebu"}).Draw(w.rt, "resource")
			w.call(sv.Lend(w.ctx, walker, id, api.LendUnits{Resource: resource, Units: w.draw(0, 3, "lent"), To: "east"}))
		},
		"owned": func(*rapid.T) {
			w.cut = true
			w.call(sv.SetOwned(w.ctx, walker, "vcs", api.Owned{Owned: w.draw(0, 6, "owned"), Why: "x"}))
		},
		"": w.check,
	}
}

// check compares the books with what must always hold of them.
func (w *walk) check(*rapid.T) {
	loans, err := w.Service.Loans(w.ctx, false)
	w.call(err)
	for _, r := range w.Status().Resources {
		var recalled int64
		for _, l := range loans {
			if l.Resource == r.Name {
				recalled += l.Recalled
			}
		}
		if r.Total != r.Owned+r.Borrowed-r.Lent {
			w.rt.Fatalf("total %d is not owned %d + borrowed %d - lent %d", r.Total, r.Owned, r.Borrowed, r.Lent)
		}
		if r.Elastic != nil && r.Borrowed > r.Elastic.MaxBorrowed {
			w.rt.Fatalf("%d borrowed exceed the limit of %d", r.Borrowed, r.Elastic.MaxBorrowed)
		}
		if !w.cut && r.InUse > r.Total+recalled {
			w.rt.Fatalf("%d in use exceed the total of %d with %d recalled", r.InUse, r.Total, recalled)
		}
	}
}

// chain demands that each record of a resource begins with the total at which
// the record before it ended, and the last one ends with the total of the books.
func (w *walk) chain() {
	totals := map[string]int64{}
	var after int64
	for {
		page, err := w.Service.Changes(w.ctx, ended, after)
		w.call(err)
		if len(page.Changes) == 0 {
			break
		}
		for _, c := range page.Changes {
			if c.Revision != after+1 {
				w.rt.Fatalf("revision %d follows %d", c.Revision, after)
			}
			after = c.Revision
			if c.Resource == "" {
				continue
			}
			if c.TotalBefore != totals[c.Resource] {
				w.rt.Fatalf("revision %d, %s of %s, begins with a total of %d; the record before ended with %d", c.Revision, c.Kind, c.Subject, c.TotalBefore, totals[c.Resource])
			}
			totals[c.Resource] = c.TotalAfter
		}
	}
	for _, r := range w.Status().Resources {
		if r.Total != totals[r.Name] {
			w.rt.Fatalf("the records of %s end with %d, the books have %d", r.Name, totals[r.Name], r.Total)
		}
	}
}

func TestTheTotalsInTheAuditRecordsFormAGaplessChain(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(4, 8)
	config.Resources = append(config.Resources, cluster.SharedResource{Name: "zebu", Owned: 4})
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{Controller: controllertest.Open(t, store.Memory, config), rt: rt, ctx: t.Context()}
		defer w.Stop()
		rt.Repeat(w.actions())
		w.chain()
	})
}
