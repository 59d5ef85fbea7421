package controller_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/backend"
)

// tick has the scheduler and then a session do their work.
func tick(w *world, s *scheduler) {
	w.t.Helper()
	w.Clock.Advance(cluster.Second)
	s.cycle()
	w.Session()
}

func TestWhatIsBorrowedBecomesUsableAndWhatIsIdleDoesNot(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	w.offer(10)
	job := s.submit(6, cluster.Told{Reason: "Licenses"})
	tick(w, s)
	if demand := w.Status().Demand; len(demand) != 1 || demand[0].Units != 4 {
		t.Fatalf("the demand is %+v, want 4 vcs", demand)
	}
	w.intend(loan, 4)
	if got := s.tokens["vcs"].Withheld; got != 10 {
		t.Errorf("%d are withheld before the grant, want 10", got)
	}
	w.commit(loan, 4)
	if got := s.tokens["vcs"].Withheld; got != 6 {
		t.Errorf("%d are withheld after the grant, want 6", got)
	}
	tick(w, s)
	if s.job(job).State != cluster.JobRunning || w.Resource("vcs").InUse != 6 {
		t.Fatalf("the job is %s and %d are in use, want it running with 6", s.job(job).State, w.Resource("vcs").InUse)
	}
	lieIdle(w, s, job)
	row := w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 3)}))
	if row.Fenced != 4 || s.tokens["vcs"].Withheld != 10 {
		t.Errorf("fenced are %d, withheld %d; want 4 and 10", row.Fenced, s.tokens["vcs"].Withheld)
	}
}

// lieIdle ends a job and lets what it had lie idle, longer than any loan is held.
func lieIdle(w *world, s *scheduler, job int64) {
	w.t.Helper()
	s.end(job)
	tick(w, s)
	w.Clock.Advance(2 * cluster.Hour)
	tick(w, s)
}

// idleLoan is a world in which a loan of 4 has been idle long enough.
func idleLoan(t *testing.T) (*world, *scheduler) {
	w, s := onSlurm(t)
	w.offer(10)
	job := s.submit(6, cluster.Told{Reason: "Licenses"})
	tick(w, s)
	w.intend(loan, 4)
	w.commit(loan, 4)
	tick(w, s)
	lieIdle(w, s, job)
	return w, s
}

func TestAJobThatSlipsInDuringTheFenceKeepsItsTokens(t *testing.T) {
	t.Parallel()
	w, s := idleLoan(t)
	s.before = func() {
		s.before = nil
		s.submit(3, cluster.Told{})
		s.cycle()
	}
	row := w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 3)}))
	vcs := s.tokens["vcs"]
	if row.Fenced != 3 || row.Borrowed != 1 || vcs.Used != 3 {
		t.Errorf("fenced are %d, borrowed %d, used %d; want 3, 1, 3", row.Fenced, row.Borrowed, vcs.Used)
	}
	if vcs.Withheld != 9 {
		t.Errorf("%d stay withheld of a total of 3, want 9", vcs.Withheld)
	}
}

func TestWhatTheBackendForgetsBeforeItLastsIsNotFenced(t *testing.T) {
	t.Parallel()
	w, s := idleLoan(t)
	s.lasting = 50 * time.Millisecond
	calls := 0
	s.before = func() {
		if calls++; calls == 2 { // it was killed and started meanwhile
			s.tokens["vcs"].Withheld = 6
		}
	}
	in := api.FenceLoan{LedgerWrite: at(loan, 3)}
	if _, err := w.Service.Fence(t.Context(), "p1", in); err == nil || !strings.Contains(err.Error(), "forgotten") {
		t.Fatalf("a fence that was forgotten answers %v", err)
	}
	if r := w.Resource("vcs"); r.Total != 6 {
		t.Errorf("the total is %d, want 6", r.Total)
	}
	began := time.Now()
	row := w.written(w.pool.Fence(t.Context(), in))
	if took := time.Since(began); row.Fenced != 4 || took < s.lasting {
		t.Errorf("fenced are %d after %s, want 4 after at least %s", row.Fenced, took, s.lasting)
	}
}

func TestWhatOthersHaveIsNotFenced(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*backend.Resource){
		"others reserve it":        func(r *backend.Resource) { r.Reserved = 4 },
		"it is in use elsewhere":   func(r *backend.Resource) { r.Elsewhere = 4 },
		"some of each":             func(r *backend.Resource) { r.Reserved, r.Elsewhere = 1, 3 },
		"jobs that nobody sees":    func(r *backend.Resource) { r.Used = 4 },
		"all of that, one of each": func(r *backend.Resource) { r.Reserved, r.Elsewhere, r.Used = 1, 1, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := idleLoan(t)
			change(s.tokens["vcs"])
			row := w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 3)}))
			if row.Fenced != 2 {
				t.Errorf("fenced are %d of 6, want 2", row.Fenced)
			}
		})
	}
}

// What the backend says of a job is not why something is asked for: what it lacks is.
func TestWhatIsAskedForIsWhatLacks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs  int64
		change func(*scheduler)
		units  int64 // that are asked for
	}{
		"enough is free":                   {2, func(*scheduler) {}, 0},
		"it needs none":                    {0, func(*scheduler) {}, 0},
		"some lack":                        {5, func(*scheduler) {}, 3},
		"others reserve what is had":       {2, func(s *scheduler) { s.tokens["vcs"].Reserved = 1 }, 1},
		"what is had is in use elsewhere":  {2, func(s *scheduler) { s.tokens["vcs"].Elsewhere = 2 }, 2},
		"more is used than is had":         {2, func(s *scheduler) { s.tokens["vcs"].Used, s.tokens["vcs"].Unlisted = 5, 5 }, 5},
		"it began when it had been listed": {2, func(s *scheduler) { s.tokens["vcs"].Used = 2 }, 0},
		"so did one that was not listed":   {5, func(s *scheduler) { s.tokens["vcs"].Used, s.tokens["vcs"].Unlisted = 2, 1 }, 4},
		"the backend's total leaves room":  {5, func(s *scheduler) { s.tokens["vcs"].Ceiling = 5 }, 3},
		"the backend's total is too low":   {5, func(s *scheduler) { s.tokens["vcs"].Ceiling = 4 }, 0},
		"it is less than is had":           {2, func(s *scheduler) { s.tokens["vcs"].Ceiling = 1 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := onSlurm(t)
			w.offer(10)
			c.change(s)
			s.submit(c.needs, cluster.Told{Reason: "Licenses"})
			w.Session()
			var units int64
			for _, d := range w.Status().Demand {
				units += d.Units
			}
			if units != c.units {
				t.Errorf("%d are asked for, want %d: %+v", units, c.units, w.Status().Demand)
			}
		})
	}
}

func TestMoreUsedThanHadIsShownAndNoneOfItGoesBack(t *testing.T) {
	t.Parallel()
	w, s := idleLoan(t)
	s.tokens["vcs"].Used = 9 // of 6
	w.Session()
	if r := w.Resource("vcs"); r.InUse != 9 || r.Overdraft != 3 || r.Idle != 0 {
		t.Errorf("%+v, want 9 in use, 3 more than are had, and none idle", r)
	}
	if row := w.written(w.pool.Fence(t.Context(), api.FenceLoan{LedgerWrite: at(loan, 3)})); row.Fenced != 0 {
		t.Errorf("fenced are %d", row.Fenced)
	}
}

func TestWhatAReadingWarnsOfIsShownUntilItIsOver(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	for _, warnings := range [][]string{{"Slurm counts 5 tokens of licence vcs as used."}, nil} {
		s.warnings = warnings
		w.Session()
		if got := w.Status().Backend.Warnings; !slices.Equal(got, warnings) {
			t.Errorf("shown is %q, want %q", got, warnings)
		}
	}
}

// A licence that is gone from the backend is not given back on a count that nobody makes.
func TestALicenceThatIsGoneIsNotFenced(t *testing.T) {
	t.Parallel()
	w, s := idleLoan(t)
	delete(s.tokens, "vcs")
	s.submit(6, cluster.Told{Reason: "Licenses", Barred: "It needs 6 of licence vcs, which is gone from Slurm's configuration."})
	w.Session()
	st := w.Status()
	if len(st.Demand) != 0 || w.Resource("vcs").Total != 6 {
		t.Errorf("%+v with demand %+v", st.Resources, st.Demand)
	}
	_, err := w.Service.Fence(t.Context(), "p1", api.FenceLoan{LedgerWrite: at(loan, 3)})
	if err == nil || !strings.Contains(err.Error(), "nothing was decided") {
		t.Errorf("a fence without a count answers %v", err)
	}
}

func TestAFenceOfUnknownOutcomeFencesNothingAndIsSettledLater(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		w, s := idleLoan(t)
		s.broken, s.late = errAway, late
		_, err := w.Service.Fence(t.Context(), "p1", api.FenceLoan{LedgerWrite: at(loan, 3)})
		if err == nil || !strings.Contains(err.Error(), "nothing was decided") {
			t.Fatalf("a fence that is not settled answers %v", err)
		}
		if r := w.Resource("vcs"); r.Total != 6 {
			t.Errorf("the total is %d after a fence that was not settled, want 6", r.Total)
		}
		s.broken = nil
		tick(w, s)
		if got := s.tokens["vcs"].Withheld; got != 6 {
			t.Errorf("late %v: %d are withheld after the next session, want 6", late, got)
		}
	}
}

func TestWhoeverChangesWhatIsWithheldIsPutRight(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	tick(w, s)
	for _, n := range []int64{0, 12, 11} {
		s.tokens["vcs"].Withheld = n
		tick(w, s)
		if got := s.tokens["vcs"].Withheld; got != 10 {
			t.Errorf("%d became %d, want 10", n, got)
		}
	}
}

func TestWhileTheBackendIsAwayNothingIsDecided(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	w.offer(10)
	tick(w, s)
	s.submit(6, cluster.Told{})
	for _, why := range []error{errAway, &backend.NotYet{Why: "slurmctld has just started"}} {
		s.broken = why
		if err := w.Service.Session(t.Context()); err == nil {
			t.Fatal("a session ran on nothing")
		}
		st := w.Status()
		if len(st.Demand) != 0 || st.Backend.Trouble == nil || !strings.Contains(st.Backend.Trouble.Why, why.Error()) {
			t.Errorf("the status is %+v with demand %+v", st.Backend, st.Demand)
		}
	}
	w.Clock.Advance(24 * cluster.Hour)
	s.broken = nil
	w.Session()
	st := w.Status()
	if len(st.Demand) != 1 || st.Backend.Trouble != nil {
		t.Errorf("back again the status is %+v with demand %+v", st.Backend, st.Demand)
	}
}

func TestABarredJobRaisesNoDemandAndSaysWhy(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	w.offer(10)
	job := s.submit(6, cluster.Told{Reason: "JobHeldUser", Barred: "its user holds it"})
	tick(w, s)
	if demand := w.Status().Demand; len(demand) != 0 {
		t.Errorf("a held job demands %+v", demand)
	}
	last, err := w.Service.LastSession(t.Context())
	if w.must(err); len(last.Unplaced) != 1 || last.Unplaced[0].Count != 1 || last.Unplaced[0].Why != "its user holds it" || !slices.Equal(last.Unplaced[0].Jobs, []int64{job}) {
		t.Errorf("the session has waiting %+v", last.Unplaced)
	}
	said := strings.Join(w.explain("job", job), "\n")
	for _, part := range []string{": it is barred: its user holds it.", "Slurm says: JobHeldUser.", "Nothing is asked for on its behalf"} {
		if !strings.Contains(said, part) {
			t.Errorf("explain lacks %q:\n%s", part, said)
		}
	}
}

func TestJobsAreExplainedByWhatTheBackendCallsThem(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	array, element := s.submit(12, cluster.Told{Name: "101_[3-30%2]"}), s.submit(1, cluster.Told{Name: "101_2"})
	tick(w, s)
	for name, id := range map[string]int64{"101_[3-30%2]": array, "101_17": array, "101_2": element, strconv.FormatInt(element, 10): element} {
		e, err := w.Service.Explain(t.Context(), "job", name)
		if want := fmt.Sprintf("Job %d ", id); err != nil || !strings.HasPrefix(e.Sentences[0], want) {
			t.Errorf("of %s it says %v, %v; want %s", name, e.Sentences, err, want)
		}
	}
	for _, name := range []string{"102_1", "x", "101_", "_"} {
		if e, err := w.Service.Explain(t.Context(), "job", name); err == nil && name != "101_" {
			t.Errorf("of %s it says %v", name, e.Sentences)
		}
	}
}

func TestExplainSaysHowTheBackendCountsAResource(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	s.submit(2, cluster.Told{})
	s.tokens["vcs"].Ceiling, s.tokens["vcs"].Withheld, s.tokens["vcs"].Reserved = 13, 10, 1
	tick(w, s)
	e, err := w.Service.Explain(t.Context(), "resource", "vcs")
	w.must(err)
	want := "Slurm counts 13, of which 2 are used and 10 are kept from jobs since they are not had; others keep back 1: jobs can take 0 more. That was read at "
	if said := strings.Join(e.Sentences, "\n"); !strings.Contains(said, want) {
		t.Errorf("explain lacks %q:\n%s", want, said)
	}
	delete(s.tokens, "vcs")
	tick(w, s)
	if said := strings.Join(e.Sentences, "\n"); strings.Contains(said, "has not been read") {
		t.Errorf("explain says\n%s", said)
	}
	e, err = w.Service.Explain(t.Context(), "resource", "vcs")
	w.must(err)
	if said := strings.Join(e.Sentences, "\n"); !strings.Contains(said, "Slurm does not count it.") {
		t.Errorf("explain says\n%s", said)
	}
	s.tokens["vcs"], s.broken = &backend.Resource{Ceiling: 12, Withheld: 10}, errAway
	if err := w.Service.Session(t.Context()); err == nil {
		t.Fatal("a session ran on nothing")
	}
	e, err = w.Service.Explain(t.Context(), "resource", "vcs")
	w.must(err)
	if said := strings.Join(e.Sentences, "\n"); !strings.Contains(said, "Slurm has not been read since ") {
		t.Errorf("explain says\n%s", said)
	}
}

func TestExplainShowsBothReasonsSideBySide(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	w.offer(3)
	job := s.submit(6, cluster.Told{Reason: "Licenses", Expected: w.Clock.Now().Add(cluster.Hour)})
	tick(w, s)
	said := strings.Join(w.explain("job", job), "\n")
	for _, part := range []string{"Slurm says: Licenses.", "Slurm expects to start it at", "6 vcs"} {
		if !strings.Contains(said, part) {
			t.Errorf("explain lacks %q:\n%s", part, said)
		}
	}
}

func (w *world) explain(kind string, id int64) []string {
	w.t.Helper()
	e, err := w.Service.Explain(w.t.Context(), kind, strconv.FormatInt(id, 10))
	w.must(err)
	return e.Sentences
}

func TestWhatOnlyTheBuiltinBackendDoesIsRefused(t *testing.T) {
	t.Parallel()
	w, _ := onSlurm(t)
	_, err := w.user.Submit(t.Context(), vcsJob(1))
	w.wantStatus(http.StatusConflict, err)
	w.wantStatus(http.StatusConflict, w.host.Join(t.Context(), hostName, api.JoinHost{CPUs: 1, MemoryMB: 1}))
}

func TestHostsOfTheBackendAreShownAndGoneOnesAreNot(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	s.hosts["c1"] = &backend.Host{Name: "c1", State: backend.HostAwaited, Why: "powered down"}
	s.submit(0, cluster.Told{})
	s.hosts["n2"].State, s.hosts["n2"].Why = backend.HostClosed, "drained by root: disk"
	tick(w, s)
	hosts := w.Status().Hosts
	if len(hosts) != 2 || hosts[0].Jobs != 1 || hosts[1].Closed != "drained by root: disk" {
		t.Errorf("the hosts are %+v", hosts)
	}
	revision := w.Status().Revision
	tick(w, s)
	if got := w.Status().Revision; got != revision {
		t.Errorf("the same hosts again are written down again: %+v", w.changes(revision))
	}
	delete(s.hosts, "n2")
	tick(w, s)
	if hosts := w.Status().Hosts; len(hosts) != 1 {
		t.Errorf("the hosts are %+v, want n1 alone", hosts)
	}
}

const made = "host/big-1"

// makeHost has a host of the template big be asked for and made.
func makeHost(w *world, s *scheduler) {
	w.t.Helper()
	catalog := catalog(10)
	catalog.Templates = []cluster.Template{{Name: "big", Capacity: cluster.Capacity{CPUs: 16, MemoryMB: 64_000}, Headroom: 3}}
	w.must(w.pool.PublishCatalog(w.t.Context(), "pool", catalog))
	tick(w, s) // now there is a placeholder
	for range 9 {
		s.submit(0, cluster.Told{Reason: "Resources"})
	}
	tick(w, s)
	tick(w, s)
	w.hostWrite(api.WriteHost{Host: made, Step: 1, Intend: &cluster.HostRequest{ID: made, Provider: "pool", Template: "big"}})
	w.hostWrite(api.WriteHost{Host: made, Step: 2, Expect: &api.ExpectHost{Instance: "i-1"}})
	tick(w, s)
}

func (w *world) hostWrite(in api.WriteHost) cluster.ElasticHost {
	w.t.Helper()
	answer, err := w.pool.WriteHost(w.t.Context(), in)
	w.must(err)
	if answer.Refusal != nil {
		w.t.Fatalf("%+v is refused: %+v", in, answer.Refusal)
	}
	return answer.Host
}

func (w *world) elastic() cluster.ElasticHost {
	w.t.Helper()
	rows, err := w.Service.ElasticHosts(w.t.Context(), true)
	w.must(err)
	return rows[0]
}

// boot has the machine come up.
func boot(w *world, s *scheduler) {
	w.t.Helper()
	h := s.hosts["big-1"]
	if h == nil {
		w.t.Fatalf("big-1 is not declared: %v", s.steps)
	}
	h.State, h.Why = backend.HostReady, ""
	w.Session()
	if row := w.elastic(); row.State != cluster.HostJoined {
		w.t.Fatalf("the host is %s, want it joined: %s", row.State, row.Why)
	}
}

func TestAHostIsDeclaredJoinsRunsJobsDrainsAndIsRemoved(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	makeHost(w, s)
	boot(w, s)
	tick(w, s)
	if s.busy("big-1") != 1 {
		t.Fatalf("%d jobs are on the new host, want 1 of 9", s.busy("big-1"))
	}
	drain := w.hostWrite(api.WriteHost{Host: made, Step: 3, Drain: &cluster.Drain{By: "root", Why: "maintenance", Action: cluster.DrainWait}})
	if drain.State != cluster.HostDraining {
		t.Fatalf("the host is %s", drain.State)
	}
	tick(w, s)
	if !s.hosts["big-1"].Drained {
		t.Errorf("Slurm was not told to drain: %v", s.steps)
	}
	if row := w.hostWrite(api.WriteHost{Host: made, Step: 4, Fence: true}); row.State != cluster.HostDraining || s.hosts["big-1"] == nil {
		t.Fatalf("a busy host is %s, and known to Slurm %v", row.State, s.hosts["big-1"] != nil)
	}
	i := slices.IndexFunc(s.jobs, func(j cluster.Job) bool { return j.Host == "big-1" })
	s.end(s.jobs[i].ID)
	tick(w, s)
	if row := w.hostWrite(api.WriteHost{Host: made, Step: 5, Fence: true}); row.State != cluster.HostLeaving || s.hosts["big-1"] != nil {
		t.Errorf("the empty host is %s, and known to Slurm %v", row.State, s.hosts["big-1"] != nil)
	}
	tick(w, s)
	if hosts := w.Status().Hosts; len(hosts) != 2 {
		t.Errorf("the hosts are %+v, want n1 and n2", hosts)
	}
}

// idleHost is a world in which a made host has been idle long enough.
func idleHost(t *testing.T) (*world, *scheduler) {
	w, s := onSlurm(t)
	makeHost(w, s)
	for _, job := range slices.Clone(s.jobs) {
		s.end(job.ID)
	}
	boot(w, s)
	tick(w, s)
	w.Clock.Advance(3 * cluster.Hour)
	tick(w, s)
	return w, s
}

func TestAHostThatGetsAJobAtTheLastMomentStaysAndIsOpenedAgain(t *testing.T) {
	t.Parallel()
	w, s := idleHost(t)
	s.before = func() {
		s.before = nil
		for range 9 {
			s.submit(0, cluster.Told{})
		}
		s.cycle()
	}
	row := w.hostWrite(api.WriteHost{Host: made, Step: 3, Fence: true})
	w.Session()
	if h := s.hosts["big-1"]; row.State != cluster.HostJoined || h == nil || h.State != backend.HostReady {
		t.Errorf("the host is %s, Slurm has %+v, want it joined and open: %v", row.State, h, s.steps)
	}
}

func TestSessionsDuringAFenceLeaveTheHostIdle(t *testing.T) {
	t.Parallel()
	w, s := idleHost(t)
	s.lasting = 300 * time.Millisecond
	sessions := make(chan struct{})
	s.before = func() { // once it is drained
		s.before = nil
		go func() {
			defer close(sessions)
			time.Sleep(100 * time.Millisecond)
			w.Session()
		}()
	}
	row := w.hostWrite(api.WriteHost{Host: made, Step: 3, Fence: true})
	<-sessions
	if row.State != cluster.HostLeaving || s.hosts["big-1"] != nil {
		t.Errorf("the idle host is %s: %v", row.State, s.steps)
	}
}

func TestWhatIsLeftOfAHostIsRemovedAndAPlaceholderTooManyDropped(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	makeHost(w, s)
	boot(w, s)
	w.hostWrite(api.WriteHost{Host: made, Step: 3, Gone: &api.By{By: "pool", Why: "the machine is no more"}})
	for _, job := range slices.Clone(s.jobs) {
		s.end(job.ID)
	}
	tick(w, s)
	if s.hosts["big-1"] != nil {
		t.Errorf("Slurm still has the host: %v", s.steps)
	}
	w.must(w.pool.PublishCatalog(t.Context(), "pool", catalog(10)))
	tick(w, s)
	if len(s.held) != 0 {
		t.Errorf("a placeholder stands for no template: %+v", s.held)
	}
}

func TestAForcedRequeueIsTheBackendsToDo(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	makeHost(w, s)
	boot(w, s)
	tick(w, s)
	w.hostWrite(api.WriteHost{Host: made, Step: 3, Drain: &cluster.Drain{By: "pool", Why: "reclaimed", Action: cluster.DrainRequeue, Forced: true}})
	tick(w, s)
	w.hostWrite(api.WriteHost{Host: made, Step: 4, StopJobs: &api.By{By: "pool"}})
	if s.busy("big-1") != 0 {
		t.Errorf("%d jobs are still on it: %v", s.busy("big-1"), s.steps)
	}
}

func TestGuessesAreHeldAgainstWhatTheBackendDoes(t *testing.T) {
	t.Parallel()
	w, s := onSlurm(t)
	w.offer(0)
	s.submit(0, cluster.Told{Reason: "Priority"}) // fits, and is not started
	s.submit(6, cluster.Told{Reason: "Licenses"}) // lacks tokens, and is started all the same
	w.Session()
	w.Clock.Advance(20 * cluster.Second)
	j := s.job(102)
	j.State, j.Hosts, j.Host = cluster.JobRunning, []string{"n1"}, "n1"
	w.Session()
	w.Session()
	want := []backend.Count{
		{Outcome: backend.Outcome{What: backend.NotStarted, Cause: "Priority"}, Times: 1},
		{Outcome: backend.Outcome{What: backend.Started, Cause: "tokens"}, Times: 1},
	}
	if got := w.Status().Backend.Guesses; !slices.Equal(got, want) {
		t.Errorf("the guesses came out as %+v, want %+v", got, want)
	}
}

// TestNothingFencedCanBeUsed draws what users, the lender's workflow and a scheduler that
// fails do, in any order.
func TestNothingFencedCanBeUsed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w, s := onSlurm(t)
		w.offer(10)
		step := int64(0)
		for range rapid.IntRange(5, 25).Draw(rt, "moves") {
			s.broken, s.late = nil, false
			if rapid.IntRange(0, 4).Draw(rt, "trouble") == 0 {
				s.broken, s.late = errAway, rapid.Bool().Draw(rt, "late")
			}
			switch rapid.IntRange(0, 5).Draw(rt, "move") {
			case 0:
				s.submit(rapid.Int64Range(1, 6).Draw(rt, "tokens"), cluster.Told{Reason: "Licenses"})
			case 1:
				for _, job := range slices.Clone(s.jobs) {
					if job.State == cluster.JobRunning {
						s.end(job.ID)
						break
					}
				}
			case 2:
				w.Clock.Advance(cluster.Duration(rapid.Int64Range(1, 90).Draw(rt, "minutes")) * cluster.Minute)
			case 3:
				s.before = func() { s.before = nil; s.cycle() }
			case 4:
				s.cycle()
			}
			_ = w.Service.Session(t.Context())
			step = lendOn(w, step)
			fencedIsOut(rt, w, s)
		}
	})
}

// lendOn does what a loan's workflow does next, however the controller answers.
func lendOn(w *world, step int64) int64 {
	ctx := w.t.Context()
	var answer api.Written
	var err error
	switch step {
	case 0:
		answer, err = w.Service.Intend(ctx, "p1", api.IntendLoan{LedgerWrite: at(loan, 1), Request: request(4)})
	case 1:
		answer, err = w.Service.Commit(ctx, "p1", api.CommitLoan{LedgerWrite: at(loan, 2), Granted: 4})
	default:
		answer, err = w.Service.Fence(ctx, "p1", api.FenceLoan{LedgerWrite: at(loan, step+1)})
	}
	if err != nil || answer.Refusal != nil {
		return step
	}
	return step + 1
}

// fencedIsOut demands that jobs can never use more than the total, nor have more than it
// where nothing was taken from them.
func fencedIsOut(rt *rapid.T, w *world, s *scheduler) {
	vcs, r := s.tokens["vcs"], w.Resource("vcs")
	if usable := vcs.Ceiling - vcs.Withheld; usable > r.Total {
		rt.Fatalf("jobs can use %d of a total of %d: %v", usable, r.Total, s.steps)
	}
	if vcs.Used > r.Total {
		rt.Fatalf("%d are used of a total of %d: %v", vcs.Used, r.Total, s.steps)
	}
}
