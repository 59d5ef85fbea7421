package controller_test

import (
	"fmt"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

// yard is a world in which `cloud` makes hosts of 16 cpus.
type yard struct {
	*world
	steps map[string]int64
}

// newYard answers a yard in which n jobs wait for a host of small each.
func newYard(t *testing.T, n int, change func(*cluster.HostRules)) *yard {
	t.Helper()
	config := controllertest.Vcs(2, 10)
	config.Providers = append(config.Providers, "cloud")
	config.Hosts = cluster.DefaultHostRules()
	change(&config.Hosts)
	y := &yard{newWorld(t, config), map[string]int64{}}
	y.pool = y.Provisioner("p2", "cloud")
	y.must(y.pool.PublishCatalog(t.Context(), "cloud", api.Catalog{
		Offers: []cluster.Offer{}, Observations: []cluster.Observation{},
		Templates: []cluster.Template{{
			Name: "small", Capacity: cluster.Capacity{CPUs: 16, MemoryMB: 64000}, Headroom: 20,
			Price: 400_000, MinimumHold: 20 * cluster.Minute, Latency: 3 * cluster.Minute,
		}},
	}))
	for range n {
		y.put(cluster.JobSpec{Command: []string{"true"}, CPUs: 16})
	}
	y.Session()
	return y
}

// write writes a change to the row of the n-th host, and answers its id.
func (y *yard) write(n int, in api.WriteHost) string {
	y.t.Helper()
	in.Host = fmt.Sprintf("host/small-%d", n)
	y.steps[in.Host]++
	in.Step = y.steps[in.Host]
	w, err := y.pool.WriteHost(y.t.Context(), in)
	y.must(err)
	if w.Refusal != nil {
		y.t.Fatalf("%+v", w.Refusal)
	}
	return in.Host
}

func (y *yard) expect(n int) (id string) {
	y.t.Helper()
	y.write(n, api.WriteHost{Intend: &cluster.HostRequest{
		ID: fmt.Sprintf("host/small-%d", n), Provider: "cloud", Template: "small", Jobs: []int64{1, 2, 3, 4, 5, 6, 7}, Reason: "jobs 1, 2 wait for 2 more hosts of small",
	}})
	y.explained("host", fmt.Sprintf("host/small-%d", n), "was asked of cloud at Jan 1 ", "because jobs 1, 2 wait for 2 more hosts of small.", "It is for jobs 1, 2, 3, 4, 5 and 2 more.", "cloud has not settled the request")
	return y.write(n, api.WriteHost{Expect: &api.ExpectHost{Instance: fmt.Sprintf("i-%d", n), Name: fmt.Sprintf("m%d", n)}})
}

func (y *yard) here(n int) (id, name string) {
	y.t.Helper()
	id, name = y.expect(n), fmt.Sprintf("m%d", n)
	y.must(y.Client(api.HostRole, name).Join(y.t.Context(), name, api.JoinHost{CPUs: 16, MemoryMB: 64000}))
	return id, name
}

func (y *yard) heard(name string) {
	y.t.Helper()
	_, err := y.Client(api.HostRole, name).Assignments(y.t.Context(), name, 0, 0)
	y.must(err)
}

func TestAHostIsExplainedThroughItsLife(t *testing.T) {
	t.Parallel()
	y := newYard(t, 1, func(r *cluster.HostRules) { r.MaxLifetime = 24 * cluster.Hour })
	y.explained("job", "1", "Job 1 waits since", "wants 1 host of small from cloud for this job among others; a request follows")
	id := y.expect(1)
	y.explained("job", "1", "Host "+id+" comes for this job among others; it has to join until Jan 1 00:15:00 UTC")
	y.explained("host", id, "cloud had made machine i-1 by Jan 1 00:00:00 UTC", "It has to join until Jan 1 00:15:00 UTC; otherwise it goes back, and small is let be")
	y.Clock.Advance(cluster.Minute)
	name := "m1"
	y.must(y.Client(api.HostRole, name).Join(t.Context(), name, api.JoinHost{CPUs: 16, MemoryMB: 64000}))
	y.Session()
	y.explained("host", name, "It joined as m1 at Jan 1 00:01:00 UTC with 16 cpus and 64000 MB", "It has 1 job; 0 cpus and 64000 MB are free",
		"Its minimum hold of 20m0s lasts until Jan 1 00:20:00 UTC", "It stays while jobs are on it, and goes back once it was idle for 10m0s.",
		"At Jan 2 00:01:00 UTC it will have lived for 24h0m0s, and is drained", "At Jan 1 00:00:00 UTC it was asked for: ", "it joined: joined with 16 cpus")
	y.Clock.Advance(29 * cluster.Minute)
	y.heard(name)
	y.must(y.Client(api.HostRole, name).EndJob(t.Context(), name, 1, api.JobEnd{State: cluster.JobDone, Why: "ended by itself"}))
	y.Session()
	y.explained("host", id, "It is idle since Jan 1 00:30:00 UTC, and goes back after 10m0s of idleness, at about Jan 1 00:40:00 UTC.",
		"paid for 30m0s and had jobs for 29m0s of it, which is 96 %; at 0.4 an hour it has cost 0.2")
	y.write(1, api.WriteHost{Keep: &cluster.Keep{By: "ann", Why: "looking at a crash."}})
	y.explained("host", id, "It is kept by ann since Jan 1 00:30:00 UTC: looking at a crash; it stays, idle or not, until it is released")
	y.write(1, api.WriteHost{Release: &api.By{By: "ann"}})
	y.write(1, api.WriteHost{Drain: &cluster.Drain{By: "bob", Why: "its disk fails", Action: cluster.DrainWait, Deadline: y.Clock.Now().Add(cluster.Minute)}})
	y.explained("host", id, "It takes no new jobs since Jan 1 00:30:00 UTC, drained by bob: its disk fails; it goes back once it is empty", "Its jobs were to end by Jan 1 00:31:00 UTC, and may run on")
	y.write(1, api.WriteHost{Fence: true})
	y.explained("host", id, "It left at Jan 1 00:30:00 UTC: empty, and drained: its disk fails", "cloud has not confirmed that it has the machine back")
	y.write(1, api.WriteHost{Confirm: true})
	y.explained("host", name, "It was closed at Jan 1 00:30:00 UTC: cloud has i-1 back", "it was kept", "it was released", "it was drained", "it left", "it was back")
}

func TestAHostThatDoesNotAnswerIsExplained(t *testing.T) {
	t.Parallel()
	for want, returned := range map[string]bool{
		"While it does, the host goes back once no job is on it, since they may still run; `xce-elastic host gone` says that they do not": false,
		"While it does, the host goes back with the jobs on it, which then wait again":                                                    true,
	} {
		y := newYard(t, 1, func(r *cluster.HostRules) { r.ReturnLost = returned })
		id, name := y.here(1)
		y.Session()
		y.Clock.Advance(cluster.Minute)
		y.Session()
		y.explained("host", name, "It does not answer, and was last heard of at Jan 1 00:00:00 UTC: it keeps its jobs, and gets no new ones", "it fell silent")
		y.Clock.Advance(5 * cluster.Minute)
		y.Session()
		y.explained("host", id, "It counts as lost: when cloud does not list the machine any more", want, "it counted as lost")
		y.write(1, api.WriteHost{Gone: &api.By{By: "ann", Why: "ann says that the machine is no more"}})
		y.explained("host", id, "It was closed at Jan 1 00:06:00 UTC: ann says that the machine is no more", "it was gone")
		y.explained("job", "1", "Job 1 waits since", "At Jan 1 00:06:00 UTC it had to wait again: ann says that the machine is no more")
	}
}

func TestADrainThatStopsJobsIsExplained(t *testing.T) {
	t.Parallel()
	y := newYard(t, 1, func(*cluster.HostRules) {})
	id, name := y.here(1)
	y.Session()
	y.write(1, api.WriteHost{Drain: &cluster.Drain{By: "cloud", Why: "cloud takes the machine back", Action: cluster.DrainRequeue, Deadline: y.Clock.Now().Add(cluster.Minute), Forced: true}})
	y.explained("host", id, "Jobs that still run at Jan 1 00:01:00 UTC are stopped, and wait again", "The drain cannot be undone")
	y.write(1, api.WriteHost{StopJobs: &api.By{By: "cloud", Why: "cloud takes the machine back"}})
	y.explained("host", id, "Its jobs were told to stop at Jan 1 00:00:00 UTC, and wait again", "it had its jobs stopped")
	y.explained("job", "1", "Job 1 runs on m1", "It has been told to stop, and will wait again")
	y.must(y.Client(api.HostRole, name).EndJob(t.Context(), name, 1, api.JobEnd{State: cluster.JobWaiting, Why: "its host is taken"}))
	y.explained("job", "1", "it had to wait again: cloud takes the machine back")
}

func TestHostsThatNeverCameAreExplained(t *testing.T) {
	t.Parallel()
	y := newYard(t, 2, func(*cluster.HostRules) {})
	id := y.write(1, api.WriteHost{Intend: &cluster.HostRequest{ID: "host/small-1", Provider: "cloud", Template: "small", Jobs: []int64{1}, Reason: "job 1 waits"}})
	y.explained("job", "1", "Host host/small-1 was asked of cloud at Jan 1 00:00:00 UTC, for this job among others; the answer is awaited")
	y.write(1, api.WriteHost{Refuse: &api.RefuseHost{Why: "no machine is free."}})
	y.explained("host", id, "It is for job 1.", "It was closed at Jan 1 00:00:00 UTC, and none was made: no machine is free.")
	id = y.expect(2)
	y.write(2, api.WriteHost{Lapse: &api.LapseHost{Why: "it has not joined within 15m0s", Late: true}})
	y.explained("host", id, "It left at Jan 1 00:00:00 UTC: it has not joined within 15m0s", "it was given up")
	y.explained("host", "m2", "It left at")
	y.explained("host", "small-2", "It left at")
}

func TestWhatIsKeptForAJobIsExplained(t *testing.T) {
	t.Parallel()
	y := newYard(t, 0, func(*cluster.HostRules) {})
	y.put(cluster.JobSpec{Command: []string{"true"}, CPUs: 16, Tokens: map[string]int64{"vcs": 2}})
	y.Session()
	y.explained("job", "1", "Kept for it already, alone or with others: 2 vcs; awaited is host to be made from small by cloud")
	_, name := y.here(1)
	y.must(y.Provisioner("p1", "pool").PublishCatalog(t.Context(), "pool", catalog(10)))
	y.put(cluster.JobSpec{Command: []string{"true"}, CPUs: 16, Tokens: map[string]int64{"vcs": 4}, Priority: 9})
	y.Session()
	y.explained("host", name, "It has no job and is not idle, since a waiting one is to get it", "The last session kept it for job 2; awaited is vcs to be borrowed from pool")
}

func TestAnOwnedHostIsExplained(t *testing.T) {
	t.Parallel()
	y := newYard(t, 0, func(*cluster.HostRules) {})
	y.join(8)
	y.Session()
	y.explained("host", hostName, "Host h1 is owned by the cluster: it joined at Jan 1 00:00:00 UTC with 8 cpus and 1000 MB, and no provider takes it back", "It has no job; 8 cpus and 1000 MB are free", "It is idle since")
	y.Clock.Advance(cluster.Minute)
	y.explained("host", hostName, "It does not answer, and was last heard of at Jan 1 00:00:00 UTC")
}

func TestBegunBillingStepsCostWhole(t *testing.T) {
	for _, test := range []struct {
		price, want cluster.Price
		paid, step  cluster.Duration
	}{
		{400_000, 200_000, 30 * cluster.Minute, 0},
		{400_000, 400_000, 30 * cluster.Minute, cluster.Hour},
		{400_000, 400_000, cluster.Hour, cluster.Hour},
		{400_000, 6_667, 1, cluster.Minute},
		{10_000_000_000, 876_000_000_000_000, 10 * 365 * 24 * cluster.Hour, 0},
		{0, 0, cluster.Hour, 0},
	} {
		row := cluster.ElasticHost{Made: 1, HostTerms: cluster.HostTerms{Price: test.price, BillingStep: test.step}}
		if got := row.Cost(cluster.Time(1).Add(test.paid)); got < test.want-1 || got > test.want {
			t.Errorf("%s at %s in steps of %s costs %d, want %d", test.paid, test.price, test.step, got, test.want)
		}
	}
	if got := (cluster.ElasticHost{HostTerms: cluster.HostTerms{Price: 5, BillingStep: cluster.Hour}}).Cost(9_999_999); got != 0 {
		t.Errorf("a host that was not made costs %d", got)
	}
}
