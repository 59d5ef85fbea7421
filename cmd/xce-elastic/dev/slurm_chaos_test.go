//go:build e2e

package dev

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	kernel "xce.internal/elastic/providers/scripts/process"
)

// TestSlurmLosesNothingUnderKills kills slurmctld, slurmd, provisioner and controller at random moments, while
// jobs come that need borrowed tokens and hosts to be made.
func TestSlurmLosesNothingUnderKills(t *testing.T) {
	t.Parallel()
	s := startOnSlurm(t, "MinJobAge=3000")
	w := s.watch()
	seed := seed(t)
	random := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
	watching, seen := context.WithCancel(t.Context())
	loading, enough := context.WithCancel(t.Context())
	var watcher, load, killers sync.WaitGroup
	watcher.Go(func() { w.during(watching, 100*time.Millisecond) })
	load.Go(func() { w.bursts(loading, random(1)) })
	killers.Go(func() { w.killSlurm(8, random(2)) })
	killers.Go(func() { w.killNode(5, random(3)) })
	killers.Go(func() { w.killMachines(5, random(4)) })
	killers.Go(func() { w.killPart("worker", 6, random(5)) })
	killers.Go(func() { w.killPart("controller", 6, random(6)) })
	killers.Wait()
	enough()
	load.Wait()
	s.atRest(4 * time.Minute)
	seen()
	watcher.Wait()
	w.check()
	loans, err := s.controller.Loans(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := s.controller.ElasticHosts(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d loans, %d hosts", len(loans), len(hosts))
}

// onMachine are the options of a job that only a host fits that is made.
var onMachine = []string{"-c", "8", "--mem=4000"}

// bursts submits jobs in bursts until ctx ends. None is submitted again where nobody
// knows what became of it.
func (w *watch) bursts(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		for range 2 + r.IntN(4) {
			w.submit(w.t.Context(), r.IntN(30), 1+r.Int64N(5), 0)
		}
		if r.IntN(3) == 0 {
			w.submit(w.t.Context(), r.IntN(20), 1, 2+r.IntN(4))
		}
		if r.IntN(2) == 0 {
			w.submit(w.t.Context(), 5+r.IntN(40), r.Int64N(3), 0, onMachine...)
		}
		least := time.Second
		if r.IntN(3) == 0 {
			least = 9 * time.Second // so that loans fall idle
		}
		pause(ctx, r, least, least+3*time.Second)
	}
}

// killSlurm kills slurmctld and starts it again up to 3 s later. Ids that it gave and forgot are not used again,
// since Slurm would hold the next job of such an id while the first still runs.
func (w *watch) killSlurm(times int, r *rand.Rand) {
	for i := range times {
		pause(w.t.Context(), r, time.Second, 9*time.Second)
		w.killed("slurmctld")
		w.slurm.KillController()
		pause(w.t.Context(), r, time.Millisecond, 3*time.Second)
		if err := w.slurm.Set(fmt.Sprintf("FirstJobId=%d", 1000*(i+1))); err != nil {
			w.t.Error(err)
		}
		if err := w.slurm.StartController(w.t.Context()); err != nil {
			w.t.Errorf("start slurmctld again: %v", err)
			return
		}
	}
}

// killNode kills slurmd of n1, every other time with all that runs there, and starts it again.
func (w *watch) killNode(times int, r *rand.Rand) {
	for i := range times {
		pause(w.t.Context(), r, time.Second, 12*time.Second)
		if i%2 == 0 {
			w.killed("slurmd n1")
			kernel.Signal(syscall.SIGKILL, w.slurmds(w.slurm.Folder, "n1")...)
		} else {
			w.killed("n1")
			w.slurm.KillNode("n1")
		}
		pause(w.t.Context(), r, time.Millisecond, time.Second)
		if err := w.slurm.StartNode("n1"); err != nil {
			w.t.Error(err)
			return
		}
	}
}

// killMachines kills slurmd of a host that was made, as soon as there is one.
func (w *watch) killMachines(times int, r *rand.Rand) {
	for range times {
		pause(w.t.Context(), r, time.Second, 8*time.Second)
		all := w.slurmds(w.hosts, "")
		for began := time.Now(); len(all) == 0; all = w.slurmds(w.hosts, "") {
			if time.Since(began) > 2*time.Minute {
				w.t.Error("no host was made in two minutes")
				return
			}
			w.hasten()
			pause(w.t.Context(), r, 200*time.Millisecond, 400*time.Millisecond)
		}
		w.killed("slurmd of a made host")
		kernel.Signal(syscall.SIGKILL, all[r.IntN(len(all))])
	}
}

// slurmds answers the processes of slurmd in a folder: those of a node, or of all for none.
func (w *watch) slurmds(folder, node string) (pids []int) {
	for pid, p := range kernel.All() {
		if p.Command == "slurmd" && strings.Contains(kernel.Environment(pid), "SLURM_CONF="+folder+"/") {
			if args := kernel.Arguments(pid); node == "" || slices.Contains(args, node) {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// killPart kills one of our own daemons and starts it again at once.
func (w *watch) killPart(name string, times int, r *rand.Rand) {
	for range times {
		pause(w.t.Context(), r, time.Second, 10*time.Second)
		w.killed(name)
		w.kill(name)
		if err := w.starters()[name](w.t.Context()); err != nil {
			w.t.Errorf("start %s again: %v", name, err)
			return
		}
	}
}

// TestSlurmIsAwayAndComesBack: while munge is down for a minute, and while slurmctld
// hangs, nothing is decided, and nothing is lost. Jobs run and tokens and hosts lie idle meanwhile.
func TestSlurmIsAwayAndComesBack(t *testing.T) {
	t.Parallel()
	s := startOnSlurm(t, "MinJobAge=3000", "SlurmdTimeout=300")
	w := s.watch()
	watching, seen := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { w.during(watching, 200*time.Millisecond) })
	w.away("munge", 900, time.Minute, s.slurm.StopMunge, func() {
		if err := s.slurm.StartMunge(t.Context()); err != nil {
			t.Error(err)
		}
	})
	w.away("slurmctld", 600, 20*time.Second, s.slurm.PauseController, s.slurm.ResumeController)
	s.atRest(4 * time.Minute)
	seen()
	watcher.Wait()
	w.check()
}

// away takes Slurm away while jobs of so many tenths of a second run, and brings it back.
func (w *watch) away(what string, tenths int, length time.Duration, leave, comeBack func()) {
	t := w.t
	long := []submission{w.submitSurely(tenths, 3, 0), w.submitSurely(tenths, 0, 0, onMachine...)}
	short := []submission{w.submitSurely(1, 6, 0), w.submitSurely(1, 0, 0, onMachine...)}
	eventually(t, 2*time.Minute, func() error { return w.are(long, "RUNNING") })
	eventually(t, 2*time.Minute, func() error { return w.are(short, "COMPLETED") })
	leave()
	left := time.Now()
	eventually(t, time.Minute, func() error {
		st, err := w.controller.Status(t.Context())
		if err == nil && st.Backend.Trouble == nil {
			err = fmt.Errorf("nothing says that Slurm is away")
		}
		return err
	})
	noticed := time.Since(left)
	before, err := w.decided()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(left.Add(length)))
	after, err := w.decided()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, after) {
		t.Errorf("while %s was away this was decided:\n%s\nbefore it was\n%s", what, strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	comeBack()
	back := time.Now()
	eventually(t, 4*time.Minute, func() error {
		st, err := w.controller.Status(t.Context())
		if err == nil && st.Backend.Trouble != nil {
			err = fmt.Errorf("Slurm is still away: %s", st.Backend.Trouble.Why)
		}
		return err
	})
	readAgain := time.Since(back)
	eventually(t, 4*time.Minute, func() error { w.hasten(); return w.are(long, "COMPLETED") })
	t.Logf("%s was away for %s: noticed after %s; Slurm was read again %s after it came back, and the jobs had ended after %s; %d decisions stood",
		what, length, noticed.Round(time.Millisecond), readAgain.Round(time.Millisecond), time.Since(back).Round(time.Millisecond), len(before))
}

// are tells whether all jobs are in a state.
func (w *watch) are(jobs []submission, state string) error {
	states, answered := w.queue(w.t.Context())
	if !answered {
		return fmt.Errorf("Slurm does not answer")
	}
	for _, j := range jobs {
		if states[j.key] != state {
			return fmt.Errorf("%s is %q, not %s", j.key, states[j.key], state)
		}
	}
	return nil
}

// decided answers what has been decided: the rows of the books, and what the pool and the
// provider of hosts have done.
func (w *watch) decided() (lines []string, err error) {
	loans, err := w.controller.Loans(w.t.Context(), true)
	if err != nil {
		return nil, err
	}
	hosts, err := w.controller.ElasticHosts(w.t.Context(), true)
	if err != nil {
		return nil, err
	}
	for _, l := range loans {
		lines = append(lines, fmt.Sprintf("%s %s: %d borrowed, %d fenced, %d returned", l.ID, l.State, l.Borrowed, l.Fenced, l.Returned))
	}
	for _, h := range hosts {
		lines = append(lines, fmt.Sprintf("%s %s", h.ID, h.State))
	}
	for i, n := range w.lent() {
		lines = append(lines, fmt.Sprintf("pool %d: %d", i, n))
	}
	for _, c := range w.machines(w.t) {
		lines = append(lines, fmt.Sprintf("machine %s %s", c.Request, c.Change))
	}
	return lines, nil
}

// slips is how many loans are about to go back when a job slips in.
const slips = 9

// TestSlurmAJobThatSlipsInKeepsItsTokens: jobs come when tokens are about to go back, so
// large that they can start on those alone. At no moment has Slurm more in use than there is.
func TestSlurmAJobThatSlipsInKeepsItsTokens(t *testing.T) {
	t.Parallel()
	s := startOnSlurm(t, "MinJobAge=3000")
	w := s.watch()
	r := rand.New(rand.NewPCG(seed(t), 1))
	watching, seen := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { w.during(watching, 50*time.Millisecond) })
	outcomes := map[string]int{}
	idle := 3 * time.Second // until the tokens were withheld, the last time
	for i := range slips {
		units := 5 + r.Int64N(6)
		first := w.submitSurely(1, units, 0)
		eventually(t, 2*time.Minute, func() error { return w.are([]submission{first}, "COMPLETED") })
		when := "just before tokens are withheld"
		if i%3 == 2 {
			time.Sleep(idle - time.Duration(r.Int64N(int64(time.Second))))
		} else {
			began := time.Now()
			w.untilWithheld()
			idle = time.Since(began)
			when = "as soon as tokens are withheld"
			if i%3 == 1 {
				pause(t.Context(), r, time.Second, 8*time.Second)
				when = "while tokens lie withheld, or are counted"
			}
		}
		returned := w.returned()
		job := w.submitSurely(5+r.IntN(20), units, 0)
		_, used, withheld := s.licence()
		eventually(t, 2*time.Minute, func() error { return w.are([]submission{job}, "COMPLETED") })
		how := "on the tokens that were here"
		if w.returned() > returned {
			how = "on tokens that were borrowed anew, after some had gone back"
		}
		outcomes[when+": it ran "+how]++
		t.Logf("%s a job of %d came; then Slurm counted %d used and %d withheld; it ran %s", when, units, used, withheld, how)
	}
	s.atRest(2 * time.Minute)
	seen()
	watcher.Wait()
	w.check()
	t.Logf("%v", outcomes)
}

// untilWithheld waits until Slurm lets jobs use less than the pool has lent: a fence is under way.
func (w *watch) untilWithheld() {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		lent := w.lent()
		if total, _, withheld := w.licence(); lent[len(lent)-1] > 0 && total-withheld < ownedTokens+lent[len(lent)-1] {
			return
		}
	}
	w.t.Fatal("no token was withheld in two minutes")
}

// returned answers how many units the pool ever got back.
func (w *watch) returned() (n int64) {
	lent := w.lent()
	for i := 1; i < len(lent); i++ {
		n += max(0, lent[i-1]-lent[i])
	}
	return n
}
