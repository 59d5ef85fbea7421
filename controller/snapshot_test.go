package controller_test

import (
	"bytes"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/snapshot"
)

// busy is a world in which something of all there is happens.
func busy(t *testing.T) *world {
	t.Helper()
	config := controllertest.Vcs(2, 10)
	config.Resources = append(config.Resources, cluster.SharedResource{Name: "zebu", Owned: 3})
	config.Policy = scheduling.Policy{Order: scheduling.Conservative, Depth: 5}
	config.Thresholds = []scheduling.Threshold{{Queue: "night", Jobs: 2, Wait: cluster.Hour}}
	w := newWorld(t, config)
	w.must(w.host.Join(t.Context(), hostName, api.JoinHost{
		CPUs: 8, MemoryMB: 1000, Countables: map[string]int64{"gpus": 2}, Features: []string{"avx512"}, Attributes: map[string]string{"site": "z1"},
	}))
	other := w.Client(api.HostRole, "h2")
	w.must(other.Join(t.Context(), "h2", api.JoinHost{CPUs: 4}))
	w.offer(10)
	w.submit(1)
	w.put(cluster.JobSpec{Name: "chip", Command: []string{"/home/ann/run", "--secret"}, CPUs: 2, Directory: "/home/ann", Countables: map[string]int64{"gpus": 1}, Alternatives: []map[string]int64{{"zebu": 2}, {"vcs": 1}}, TimeLimit: cluster.Hour})
	w.Session()
	w.put(cluster.JobSpec{Command: []string{"true"}, CPUs: 8, Exclusive: true, Constraint: "avx512 & !site=z2"})
	w.put(cluster.JobSpec{Command: []string{"true"}, CPUs: 1, After: []int64{1}, NotBefore: w.Clock.Now().Add(cluster.Hour)})
	w.submit(4)
	w.put(cluster.JobSpec{Command: []string{"true"}, CPUs: 1, Queue: "night", Tokens: map[string]int64{"vcs": 5}})
	w.Session()
	return w
}

// put submits a job.
func (w *world) put(spec cluster.JobSpec) int64 {
	w.t.Helper()
	job, err := w.user.Submit(w.t.Context(), spec)
	w.must(err)
	return job.ID
}

func TestASessionOnASnapshotIsTheNextOneOfTheCluster(t *testing.T) {
	t.Parallel()
	w := busy(t)
	w.Clock.Advance(cluster.Second)
	saved, err := w.admin.Snapshot(t.Context(), false)
	w.must(err)
	var text bytes.Buffer
	w.must(saved.Write(&text))
	read, err := snapshot.Read("x.json", &text)
	w.must(err)
	if read.Cluster != "test" || read.Taken != w.Clock.Now() || len(read.State.Running) != 2 || len(read.State.Jobs) != 4 || read.State.Policy != w.Config.Policy {
		t.Errorf("the snapshot is %+v", read)
	}
	replayed := api.NewSession(read.Cluster, read.State, scheduling.Run(read.State))
	w.Session()
	live, err := w.admin.Session(t.Context())
	w.must(err)
	if !reflect.DeepEqual(replayed, live) {
		t.Errorf("replayed is\n%+v, live\n%+v", replayed, live)
	}
	if len(live.Demand) == 0 || len(live.Idle) == 0 || len(live.Unplaced) < 3 || len(live.Reservations) == 0 {
		t.Errorf("the session shows too little: %+v", live)
	}
}

func TestWhoMayOnlyReadGetsASnapshotWithHashesForNames(t *testing.T) {
	t.Parallel()
	w := busy(t)
	viewer := w.Client(api.Viewer, "dashboard")
	_, err := viewer.Snapshot(t.Context(), false)
	w.wantStatus(403, err)
	plain, err := w.admin.Snapshot(t.Context(), false)
	w.must(err)
	hashed, err := viewer.Snapshot(t.Context(), true)
	w.must(err)
	for i, s := range []snapshot.Snapshot{plain, hashed} {
		var text bytes.Buffer
		w.must(s.Write(&text))
		for _, name := range []string{`"ann"`, "chip", "secret", "/home", `"true"`} {
			if told := strings.Contains(text.String(), name); told != (i == 0) {
				t.Errorf("snapshot %d tells %s: %t", i, name, told)
			}
		}
	}
	again, err := viewer.Snapshot(t.Context(), true)
	w.must(err)
	if again.State.Jobs[0].User == hashed.State.Jobs[0].User || hashed.State.Jobs[0].User != hashed.State.Jobs[1].User {
		t.Errorf("users are %q and %q, another time %q", hashed.State.Jobs[0].User, hashed.State.Jobs[1].User, again.State.Jobs[0].User)
	}
}

func TestTheLastSessionIsToldWithWhatIsLeftOfItsDemand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	s, err := w.user.Session(t.Context())
	w.must(err)
	if s.Cluster != "test" || s.At != 0 || s.Demand == nil || s.Unplaced == nil {
		t.Errorf("before the first session it is %+v", s)
	}
	w.join(8)
	w.offer(10)
	first := w.submit(2)
	second := w.submit(5)
	w.Session()
	s, err = w.user.Session(t.Context())
	w.must(err)
	if s.At != w.Clock.Now() || len(s.Starts) != 1 || s.Starts[0].Job != first || len(s.Unplaced) != 1 || s.Unplaced[0].Jobs[0] != second || s.Unplaced[0].Code != scheduling.WaitBorrow {
		t.Errorf("the session is %+v", s)
	}
	if len(s.Demand) != 1 || s.Demand[0].Units != 5 || s.Demand[0].Price != 10_000_000 {
		t.Errorf("demand is %+v", s.Demand)
	}
	w.intend(loan, 3)
	if s, err = w.user.Session(t.Context()); err != nil || len(s.Demand) != 1 || s.Demand[0].Units != 2 {
		t.Errorf("after 3 were asked for it is %+v, %v", s.Demand, err)
	}
}

func TestAHostIsIdleSinceItsLastJobEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.Session()
	joined := w.Clock.Now()
	w.later(cluster.Minute)
	w.Session()
	since := func() (told, status cluster.Time) {
		t.Helper()
		s, err := w.user.Session(t.Context())
		w.must(err)
		for _, i := range s.Idle {
			if i.Host == hostName {
				told = i.Since
			}
		}
		return told, w.Status().Hosts[0].IdleSince
	}
	if told, status := since(); told != joined || status != joined {
		t.Errorf("it is idle since %s and %s, want %s", told, status, joined)
	}
	w.join(16) // once more, as an agent does that was started again
	w.later(cluster.Minute)
	w.Session()
	if told, status := since(); told != joined || status != joined {
		t.Errorf("after it joined again it is idle since %s and %s, want %s", told, status, joined)
	}
	job := w.submit(1)
	w.Session()
	if told, status := since(); told != 0 || status != 0 {
		t.Errorf("with a job it is idle since %s and %s", told, status)
	}
	w.later(cluster.Minute)
	w.end(job)
	w.Session()
	if told, status := since(); told != w.Clock.Now() || status != w.Clock.Now() {
		t.Errorf("after the job it is idle since %s and %s, want %s", told, status, w.Clock.Now())
	}
}

func TestWhatWasPromisedStandsAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Policy.Order = scheduling.Conservative
	c := controllertest.Open(t, filepath.Join(t.TempDir(), "state.db"), config)
	c.Serve()
	w := &world{Controller: c, t: t, admin: c.Client(api.Admin, "root"), user: c.Client(api.Submitter, "ann"), host: c.Client(api.HostRole, hostName)}
	w.join(8)
	limited := func(cpus, priority int64) int64 {
		return w.put(cluster.JobSpec{Command: []string{"true"}, CPUs: cpus, Priority: priority, TimeLimit: cluster.Hour})
	}
	limited(8, 0)
	second := limited(8, 0)
	w.Session()
	third := limited(8, 9) // more urgent, but later than the promise
	w.Session()
	promised := func() map[int64]cluster.Time {
		t.Helper()
		at := map[int64]cluster.Time{}
		s, err := w.admin.Session(t.Context())
		w.must(err)
		for _, r := range s.Reservations {
			at[r.Job] = r.At
		}
		return at
	}
	before := promised()
	if began := w.Clock.Now(); before[second] != began.Add(cluster.Hour) || before[third] != began.Add(2*cluster.Hour) {
		t.Fatalf("promised is %v", before)
	}
	w.Stop()
	w.Serve()
	w.later(cluster.Second)
	w.Session()
	if after := promised(); !maps.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
	w.explained("job", "2", "It has a reservation: it starts on h1 at Jan 1 01:00:00 UTC at the latest")
	config.Policy.Order = scheduling.FCFS
	w.must(w.Reopen(config))
	w.Session()
	saved, err := w.Service.Snapshot(t.Context())
	w.must(err)
	if len(saved.State.Reservations) != 0 {
		t.Errorf("under fcfs %+v stand", saved.State.Reservations)
	}
}
