package controller_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/postgrestest"
	"xce.internal/elastic/controller/record"
)

// member is one of several controllers, which works until it is stopped.
type member struct {
	*controllertest.Controller
	stop func()
}

// host1 is a host of the tests.
var host1 = pki.Peer{Role: "host", Name: hostName}

// together is a cluster's configuration in which sessions come by changes only,
// unless a test says otherwise.
func together(name string, lease cluster.Duration) controller.Config {
	config := controllertest.Vcs(2, 10)
	config.Name, config.SessionLease, config.SessionInterval = name, lease, cluster.Hour
	return config
}

// enter opens one of several controllers.
func enter(t *testing.T, address, name string, lease cluster.Duration) *member {
	t.Helper()
	return &member{Controller: controllertest.OpenShared(t, address, together(name, lease)), stop: func() {}}
}

// work has the controller follow the others, and run sessions if it may.
func (m *member) work(t *testing.T, sessions bool) *member {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var works sync.WaitGroup
	works.Go(func() { m.Service.Follow(ctx) })
	if sessions {
		works.Go(func() { m.Service.RunSessions(ctx) })
	}
	m.stop = sync.OnceFunc(func() {
		cancel()
		works.Wait()
	})
	t.Cleanup(m.stop)
	return m
}

func (m *member) submit(t *testing.T) int64 {
	t.Helper()
	job, err := m.Service.Submit(t.Context(), "submitter/ann", vcsJob(0))
	if err != nil {
		t.Fatal(err)
	}
	return job.ID
}

func (m *member) join(t *testing.T) {
	t.Helper()
	if err := m.Service.Join(t.Context(), host1, api.JoinHost{CPUs: 100}); err != nil {
		t.Fatal(err)
	}
}

// soon repeats a question until it is answered with true.
func soon(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ask(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func (m *member) running(t *testing.T, id int64) func() bool {
	return func() bool {
		jobs, err := m.Service.Jobs(t.Context(), cluster.JobRunning)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(jobs, func(j cluster.Job) bool { return j.ID == id })
	}
}

// leader answers which controller runs the sessions, as another sees it.
func (m *member) leader() string {
	for _, c := range m.Status().Controllers {
		if c.Leads {
			return c.Name
		}
	}
	return ""
}

func TestAnotherControllerRunsTheSessionsWhenTheFirstIsGoneWithoutAWord(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	one := enter(t, address, "one", cluster.Second).work(t, true)
	one.join(t)
	soon(t, "the first runs the sessions", func() bool { return one.leader() == "one" })
	two := enter(t, address, "two", cluster.Second).work(t, true)
	soon(t, "a job is placed that the second took", two.running(t, two.submit(t)))
	if l := two.leader(); l != "one" {
		t.Errorf("%s runs the sessions, though the first is there", l)
	}
	one.CloseStore() // as far as the others can tell, it was killed
	soon(t, "a job is placed after the first is gone", two.running(t, two.submit(t)))
	if l := two.leader(); l != "two" {
		t.Errorf("%q runs the sessions, want the second", l)
	}
}

func TestAControllerThatStopsHandsTheSessionsOverAtOnce(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	one := enter(t, address, "one", cluster.Hour).work(t, true)
	one.join(t)
	soon(t, "the first runs the sessions", func() bool { return one.leader() == "one" })
	two := enter(t, address, "two", cluster.Hour).work(t, true)
	soon(t, "both are there", func() bool { return len(two.Status().Controllers) == 2 })
	one.stop()
	soon(t, "a job is placed after the first has stopped", two.running(t, two.submit(t)))
	if st := two.Status().Controllers; len(st) != 1 || st[0].Name != "two" || !st[0].Leads {
		t.Errorf("there are %+v, want the second alone", st)
	}
}

func TestAControllerThatLostItsTurnWritesNoSession(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	one, two := enter(t, address, "one", cluster.Hour), enter(t, address, "two", cluster.Hour)
	one.join(t)
	one.Session()
	id := one.submit(t)
	two.Session()
	if two.running(t, id)() {
		t.Fatal("the second ran a session though the first may")
	}
	one.Service.HandOver(t.Context())
	three := enter(t, address, "three", cluster.Hour)
	three.Session()
	if !three.running(t, id)() {
		t.Fatal("the third ran no session though no one else may")
	}
	id = one.submit(t)
	one.Session() // it believes that it may
	if one.running(t, id)() {
		t.Error("the first ran a session after another took over")
	}
}

func TestPollsWakeForWhatAnotherControllerChanges(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	one, two := enter(t, address, "one", cluster.Minute).work(t, true), enter(t, address, "two", cluster.Minute).work(t, false)
	one.join(t)
	wait, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	revision := two.Status().Revision
	changes := longPoll(func() (api.Changes, error) { return two.Service.Changes(t.Context(), wait, revision) })
	jobs := longPoll(func() (api.Assignments, error) { return two.Service.Assignments(t.Context(), wait, host1, 0) })
	asleep(t, changes)
	asleep(t, jobs)
	id := one.submit(t)
	if c := awake(t, changes); len(c.Changes) == 0 {
		t.Errorf("the poll for changes answers %+v", c)
	}
	if a := awake(t, jobs); len(a.Jobs) != 1 || a.Jobs[0].ID != id {
		t.Errorf("the poll for jobs answers %+v", a)
	}
}

func TestAllControllersKnowWhichHostsOneHasHeardOf(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	config := together("one", cluster.Minute)
	config.Hosts = cluster.DefaultHostRules()
	config.Hosts.SuspectAfter = 3 * cluster.Second
	one := (&member{Controller: controllertest.OpenShared(t, address, config)}).work(t, false)
	config.Name = "two"
	two := (&member{Controller: controllertest.OpenShared(t, address, config)}).work(t, false)
	one.join(t)
	var silent atomic.Bool
	asks := func() { // the host speaks with the first only
		if !silent.Load() {
			if _, err := one.Service.Assignments(t.Context(), ended, host1, 0); err != nil {
				t.Error(err)
			}
		}
	}
	up := func() bool { return two.Status().Hosts[0].Up }
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		asks()
		if !up() {
			t.Fatal("the host is not up at the second though it speaks with the first")
		}
	}
	silent.Store(true)
	soon(t, "the host is silent at both", func() bool { return !up() && !one.Status().Hosts[0].Up })
	three := enter(t, address, "three", cluster.Minute) // gives it the benefit of the doubt
	if !three.Status().Hosts[0].Up {
		t.Error("a controller that has just started believes a host silent")
	}
}

func TestTheLastSessionIsToldByControllersThatRanNone(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	one, two := enter(t, address, "one", cluster.Minute).work(t, true), enter(t, address, "two", cluster.Minute)
	one.submit(t) // there is no host for it
	soon(t, "the second tells of the session", func() bool {
		session, err := two.Service.LastSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return session.At > 0 && len(session.Unplaced) == 1
	})
}

// settledRecord takes down whether sessions were settled.
type settledRecord struct {
	mu      sync.Mutex
	settled []bool
}

func (r *settledRecord) Note(e record.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Session != nil {
		r.settled = append(r.settled, e.Session.Input.Settled)
	}
}

func TestASessionIsNotSettledWhereAnotherControllerFreedSomething(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	config, taken := together("one", cluster.Hour), &settledRecord{}
	config.Record = taken
	one, two := controllertest.OpenShared(t, address, config), enter(t, address, "two", cluster.Hour)
	two.join(t)
	id := two.submit(t)
	one.Session() // not settled: it is the first
	one.Session() // settled
	two.submit(t)
	one.Session() // settled: a new job frees nothing
	if err := two.Service.EndJob(t.Context(), host1, id, api.JobEnd{State: cluster.JobDone}); err != nil {
		t.Fatal(err)
	}
	one.Session() // not settled
	one.Session() // settled
	if want := []bool{false, true, true, false, true}; !slices.Equal(taken.settled, want) {
		t.Errorf("settled were %v, want %v", taken.settled, want)
	}
}

func TestTheStateOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	one := enter(t, address, "one", cluster.Hour)
	config := one.Config
	config.Cluster = "west"
	other := enter(t, postgrestest.Shared(t), "one", cluster.Hour)
	other.Stop()
	other.State = address
	if err := other.Reopen(config); err == nil || !strings.Contains(err.Error(), "is that of cluster test, not of west; name another") {
		t.Errorf("the error is %v", err)
	}
}

// A controller whose database is away says so, such that callers ask another.
func TestACallIsAnswered503WhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	postgrestest.Once(t)
	server := postgrestest.Start(t, postgrestest.Options{})
	c := controllertest.Open(t, server.Address("postgres"), controllertest.Vcs(2, 10))
	c.Serve()
	admin := c.Client(api.Admin, "root")
	if _, err := admin.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	_, err := admin.Status(t.Context())
	if got := status(err); got != http.StatusServiceUnavailable {
		t.Errorf("a read is answered %d (%v)", got, err)
	}
	_, err = admin.Submit(t.Context(), vcsJob(0))
	if got := status(err); got != http.StatusServiceUnavailable {
		t.Errorf("a change is answered %d (%v)", got, err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Submit(t.Context(), vcsJob(0)); err != nil {
		t.Errorf("after the database is back: %v", err)
	}
}

// The client's own failover, between two controllers that are real.
func TestAClientOfTwoControllersGoesOnWhenOneStops(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	one := enter(t, address, "one", cluster.Hour)
	one.Serve()
	two := controllertest.OpenShared(t, address, together("two", cluster.Hour))
	two.Certificates, two.Authority = one.Certificates, one.Authority
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	two.Address = listener.Addr().String()
	_ = listener.Close()
	two.Serve()
	client := api.NewClient("https://"+one.Address+",https://"+two.Address, one.TLS(api.Admin, "root"))
	defer client.Close()
	for n := range int64(6) {
		if n == 3 {
			client.Close()
			one.Controller.Stop()
		}
		job, err := client.Submit(t.Context(), vcsJob(0))
		if err != nil || job.ID != n+1 {
			t.Errorf("job %d, %v; want %d", job.ID, err, n+1)
		}
	}
}
