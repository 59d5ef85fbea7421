package replay

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
)

// walk does at random what can be done to a controller, sensible or not.
type walk struct {
	*farm
	rt *rapid.T
}

// call demands that a call succeeds or is refused.
func (w *walk) call(err error) {
	var no *controller.Refused
	var problems cluster.Problems
	if err != nil && !errors.As(err, &no) && !errors.As(err, &problems) {
		w.rt.Fatal(err)
	}
}

func (w *walk) n(from, to int64, label string) int64 {
	return rapid.Int64Range(from, to).Draw(w.rt, label)
}

func (w *walk) loan() {
	ctx, s := w.t.Context(), w.Service
	id := fmt.Sprintf("loan/vcs/pool-%d", w.n(1, 4, "loan"))
	w.steps[id] += w.n(-1, 1, "back")
	at := w.at(id)
	var err error
	switch w.n(0, 5, "write") {
	case 0:
		_, err = s.Intend(ctx, provisioner, api.IntendLoan{LedgerWrite: at, Request: cluster.LoanRequest{
			Provider: "pool", Units: w.n(0, 5, "units"), Jobs: []int64{1}, Terms: cluster.Terms{MinimumHold: cluster.Duration(w.n(0, 90_000, "hold")), PartialReturn: w.n(0, 1, "part") == 1},
		}})
	case 1:
		_, err = s.Commit(ctx, provisioner, api.CommitLoan{LedgerWrite: at, Granted: w.n(0, 6, "granted")})
	case 2:
		_, err = s.Refuse(ctx, provisioner, api.RefuseLoan{LedgerWrite: at, Why: "no", RetryAfter: cluster.Duration(w.n(0, 9000, "retry"))})
	case 3:
		_, err = s.Fence(ctx, provisioner, api.FenceLoan{LedgerWrite: at, Units: w.n(0, 2, "units")})
	case 4:
		_, err = s.Recall(ctx, provisioner, api.RecallLoan{LedgerWrite: at, Units: w.n(0, 2, "units")})
	case 5:
		_, err = s.Confirm(ctx, provisioner, api.ConfirmLoan{LedgerWrite: at, Units: w.n(0, 4, "units")})
	}
	w.call(err)
}

func (w *walk) writeHost() {
	n := w.n(1, 3, "host")
	in := api.WriteHost{Host: fmt.Sprintf("host/small-%d", n)}
	w.steps[in.Host] += w.n(0, 1, "step")
	in.Step = max(w.steps[in.Host], 1)
	by := &api.By{By: "admin/eve", Why: "she wants it"}
	switch w.n(0, 11, "write") {
	case 0, 1:
		in.Intend = &cluster.HostRequest{ID: in.Host, Provider: "cloud", Template: "small", Jobs: []int64{1}, Reason: "job 1 waits"}
	case 2, 3:
		in.Expect = &api.ExpectHost{Instance: "i", Name: fmt.Sprintf("m%d", n)}
	case 4:
		in.Refuse = &api.RefuseHost{Why: "no", Ours: w.n(0, 1, "ours") == 1}
	case 5:
		in.Lapse = &api.LapseHost{Why: "late", Late: w.n(0, 1, "late") == 1}
	case 6:
		in.Drain = &cluster.Drain{By: "admin/eve", Why: "repair", Action: cluster.DrainRequeue, Forced: w.n(0, 1, "forced") == 1}
	case 7:
		in.Undrain = by
	case 8:
		in.Keep = &cluster.Keep{By: "admin/eve", Why: "a demo"}
	case 9:
		in.Fence = true
	case 10:
		in.Confirm = true
	case 11:
		in.Gone = by
	}
	_, err := w.Service.WriteHost(w.t.Context(), provisioner, in)
	w.call(err)
}

func (w *walk) actions() map[string]func(*rapid.T) {
	ctx, s := w.t.Context(), w.Service
	return map[string]func(*rapid.T){
		"loan": func(*rapid.T) { w.loan() }, "loan again": func(*rapid.T) { w.loan() },
		"host": func(*rapid.T) { w.writeHost() }, "host again": func(*rapid.T) { w.writeHost() },
		"join": func(*rapid.T) {
			w.call(s.Join(ctx, w.peer(fmt.Sprintf("m%d", w.n(1, 3, "machine"))), api.JoinHost{CPUs: w.n(8, 16, "cpus"), MemoryMB: 64000}))
		},
		"submit": func(*rapid.T) {
			spec := cluster.JobSpec{Command: []string{"true"}, CPUs: w.n(1, 16, "cpus")}
			if tokens := w.n(0, 9, "tokens"); tokens > 0 {
				spec.Tokens = map[string]int64{"vcs": tokens}
			}
			_, err := s.Submit(ctx, "submitter/ann", spec)
			w.call(err)
		},
		"time and a session": func(*rapid.T) {
			w.Clock.Advance(cluster.Duration(w.n(0, 400_000, "ms")))
			w.Session()
		},
		"end": func(*rapid.T) {
			jobs, err := s.Jobs(ctx, cluster.JobRunning)
			w.call(err)
			if len(jobs) > 0 {
				j := jobs[w.n(0, int64(len(jobs)-1), "job")]
				w.call(s.EndJob(ctx, w.peer(j.Host), j.ID, api.JobEnd{State: cluster.JobDone, Why: "ended"}))
			}
		},
		"publish": func(*rapid.T) { w.publish() },
	}
}

func TestWhateverIsDoneToAControllerIsDecidedAlikeAnew(t *testing.T) {
	var all int64
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{newFarm(t), rt}
		w.must(w.Service.Join(t.Context(), w.peer(ownHost), api.JoinHost{CPUs: 8, MemoryMB: 64000}))
		w.publish()
		rt.Repeat(w.actions())
		w.record.Close()
		r := replayed(t, w.folder, Options{})
		if r.Different() != 0 || r.Missed != 0 || len(r.Rewordings) > 0 {
			rt.Errorf("%+v", r)
		}
		all += r.replayed()
	})
	if !testing.Short() && all < 100 {
		t.Errorf("only %d decisions were made", all)
	}
	t.Logf("%d decisions", all)
}
