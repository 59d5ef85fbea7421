//go:build e2e

package dev

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// spans are the times that one way takes from sbatch to the start of the job, in order.
type spans struct {
	names []string
	times map[string][]time.Duration
}

// add takes the moments of one job: each name is of the span that ends there.
func (s *spans) add(began time.Time, moments ...moment) {
	first := began
	for _, m := range moments {
		s.put(m.span, m.at.Sub(began))
		began = m.at
	}
	s.put("all", began.Sub(first))
}

func (s *spans) put(name string, d time.Duration) {
	if s.times == nil {
		s.times = map[string][]time.Duration{}
	}
	if _, known := s.times[name]; !known {
		s.names = append(s.names, name)
	}
	s.times[name] = append(s.times[name], d)
}

type moment struct {
	span string
	at   time.Time
}

func (s *spans) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-72s %8s %8s %8s\n", "", "min", "median", "max")
	for _, name := range s.names {
		t := slices.Sorted(slices.Values(s.times[name]))
		fmt.Fprintf(&b, "%-72s %8d %8d %8d ms, %d jobs\n", name, t[0].Milliseconds(), t[len(t)/2].Milliseconds(), t[len(t)-1].Milliseconds(), len(t))
	}
	return b.String()
}

// timed is how many jobs are timed of each kind.
const timed = 5

// TestSlurmTimesFromSubmitToStart says where the time goes from sbatch to the start of a job
// that needs tokens to be borrowed, and of one that needs a host to be made. It asserts no time.
func TestSlurmTimesFromSubmitToStart(t *testing.T) {
	t.Parallel()
	s := startOnSlurm(t, "MinJobAge=3000")
	w := s.watch()
	var both sync.WaitGroup
	both.Go(func() { w.timeTokens() })
	both.Go(func() { w.timeHosts() })
	both.Wait()
}

// timeTokens times jobs each of which needs a loan of its own.
func (w *watch) timeTokens() {
	var s spans
	for range timed {
		eventually(w.t, 2*time.Minute, func() error {
			loans, err := w.controller.Loans(w.t.Context(), false)
			if err == nil && len(loans) > 0 {
				err = fmt.Errorf("%s is open", loans[0].ID)
			}
			return err
		})
		lines := len(w.lent())
		began := time.Now()
		j := w.submitSurely(5, 6, 0)
		granted := w.first("a grant", func() bool { return len(w.lent()) > lines })
		start := w.start(j)
		loans, err := w.controller.Loans(w.t.Context(), true)
		if err != nil {
			w.t.Error(err)
			return
		}
		loan := slices.MaxFunc(loans, func(a, b cluster.Loan) int { return int(a.Intended - b.Intended) })
		s.add(began,
			moment{"Slurm: sbatch answers", j.told},
			moment{"ours: the next reading and session see it, and there is demand", w.demanded(resource, j.told)},
			moment{"ours: demand to the row of the loan", at(loan.Intended)},
			moment{"ours and the provider's: the row to the grant in the pool's journal", granted},
			moment{"ours and the provider's: the grant (100 ms until it is told) to the total", at(loan.Committed)},
			moment{"Slurm: the total to the start of the job (the reservation is updated)", start})
	}
	w.t.Logf("tokens:\n%s", &s)
}

// timeHosts times jobs each of which needs a host of its own.
func (w *watch) timeHosts() {
	var s spans
	for range timed {
		eventually(w.t, 2*time.Minute, func() error {
			hosts, err := w.controller.ElasticHosts(w.t.Context(), false)
			if err == nil && len(hosts) > 0 {
				err = fmt.Errorf("%s is open", hosts[0].ID)
			}
			return err
		})
		began := time.Now()
		j := w.submitSurely(5, 0, 0, onMachine...)
		var host cluster.ElasticHost
		ready := w.first("a host that takes jobs", func() bool {
			hosts, _ := w.controller.ElasticHosts(w.t.Context(), false)
			if len(hosts) == 0 {
				return false
			}
			host = hosts[0]
			states := w.slurm.NodeState(w.t.Context(), host.Name)
			return len(states) > 0 && slices.Contains([]string{"IDLE", "ALLOCATED", "MIXED"}, states[0]) &&
				!slices.ContainsFunc(states, func(s string) bool { return slices.Contains(notYet, strings.TrimSuffix(s, "*")) })
		})
		start := w.start(j)
		if restarts := w.slurm.JobField(w.t.Context(), fmt.Sprint(host.Jobs[0]), "Restarts"); restarts != "0" {
			w.t.Logf("%s was requeued %s times before it started", j.key, restarts)
		}
		changes := w.machines(w.t)
		granted := func(what string) time.Time {
			i := slices.IndexFunc(changes, func(c machineChange) bool { return c.Request == host.ID && c.Change == what })
			if i < 0 {
				w.t.Errorf("the provider has not %s %s", what, host.ID)
				return start
			}
			return time.UnixMilli(changes[i].At)
		}
		s.add(began,
			moment{"Slurm: sbatch answers", j.told},
			moment{"ours: the next reading and session see it, and there is demand", w.demanded("big", j.told)},
			moment{"ours: demand to the row of the host", at(host.Intended)},
			moment{"ours and the provider's: the row to the machine", granted("started")},
			moment{"the provider's and Slurm: boot (200 ms and slurmd) until the node takes jobs", ready},
			moment{"Slurm: the node takes jobs until the job starts", start})
	}
	w.t.Logf("hosts:\n%s", &s)
}

// notYet are states of a node that takes no jobs.
var notYet = []string{"NOT_RESPONDING", "POWERED_DOWN", "POWERING_UP", "DRAIN"}

func at(t cluster.Time) time.Time { return time.UnixMilli(int64(t)) }

// first answers when something was first so.
func (w *watch) first(what string, is func() bool) time.Time {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if is() {
			return time.Now()
		}
	}
	state, _ := w.slurm.Run(w.t.Context(), "squeue", "-t", "all", "-o", "%i %j %T %r %N %S %e")
	w.t.Errorf("in two minutes there was never %s: %s", what, state)
	return time.Now()
}

// start answers when a job itself wrote that it began.
func (w *watch) start(j submission) (began time.Time) {
	w.first("a start of "+j.key, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.look()
		for _, r := range w.runs {
			if r.job == j.key {
				began = r.began
			}
		}
		return !began.IsZero()
	})
	return began
}

// demanded answers when something was first demanded after a moment, less a second for
// a demand that came before sbatch had answered.
func (w *watch) demanded(what string, since time.Time) time.Time {
	for after := int64(0); ; {
		page, err := w.controller.Changes(w.t.Context(), after, 0)
		if err != nil || len(page.Changes) == 0 {
			w.t.Errorf("no demand for %s since %s: %v", what, clock(since), err)
			return since
		}
		after = page.Revision
		for _, c := range page.Changes {
			var d cluster.Demand
			if c.Kind == api.KindDemand && at(c.At).After(since.Add(-time.Second)) &&
				json.Unmarshal(c.After, &d) == nil && (d.Resource == what || d.Template == what) && len(d.Jobs) > 0 {
				return at(c.At)
			}
		}
	}
}
