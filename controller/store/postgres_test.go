package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/postgrestest"
	"xce.internal/elastic/controller/store"
)

// pair opens a new state twice, as two controllers do.
func pair(t *testing.T) (one, two *store.Store) {
	t.Helper()
	address := postgrestest.Shared(t)
	one, two = open(t, address), open(t, address)
	t.Cleanup(func() {
		if err := errors.Join(one.Close(), two.Close()); err != nil {
			t.Error(err)
		}
	})
	return one, two
}

func update(t *testing.T, s *store.Store, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, s *store.Store, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := s.Read(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func TestManyControllersThatStartAtOnceMigrateOnce(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	var starts sync.WaitGroup
	for n := range 6 {
		starts.Go(func() {
			s, err := store.Open(t.Context(), address)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveHost(store.Host{Name: fmt.Sprint("h", n)}) }); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	s := open(t, address)
	defer s.Close()
	if names := hosts(t, s); len(names) != 6 {
		t.Errorf("hosts are %v, want 6", names)
	}
}

func TestADatabaseThatANewerVersionChangedIsRefused(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	open(t, address).Close()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "INSERT INTO bun_migrations (name, group_id) VALUES ('20990101000000', 9)"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), "run that version") {
		t.Errorf("the error is %v", err)
	}
}

func TestAPasswordInTheAddressOrTheEnvironmentIsRefusedAndNotShown(t *testing.T) {
	for _, address := range []string{"postgres://xce:hunter2@localhost/xce", "postgres://localhost/xce?password=hunter2", "postgres://xce:hunter2%zz@localhost/xce"} {
		_, err := store.Open(t.Context(), address)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error is %v", err)
		}
	}
	t.Setenv("PGPASSWORD", "hunter2")
	_, err := store.Open(t.Context(), "postgres://localhost:1/xce")
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "PGPASSFILE") {
		t.Errorf("the error is %v", err)
	}
}

func TestThePasswordComesFromAFileAndIsNotInErrors(t *testing.T) {
	t.Parallel()
	postgrestest.Once(t)
	server := postgrestest.Start(t, postgrestest.Options{TCP: true})
	at := fmt.Sprintf("127.0.0.1:%d", server.Port())
	s := open(t, server.AddressAt(at, "postgres"))
	save(t, s, store.Host{Name: "h1"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "passfile")
	write(t, wrong, []byte("*:*:*:xce:hunter2\n"))
	_, err := store.Open(t.Context(), "postgres://xce@"+at+"/postgres?sslmode=disable&passfile="+wrong)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhatOneControllerWritesTheOtherReadsAtOnce(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	job := cluster.Job{JobSpec: cluster.JobSpec{Command: []string{"true"}}, State: cluster.JobWaiting}
	both := func(want string) {
		t.Helper()
		for name, run := range map[string]func(*store.Store){
			"reading": func(s *store.Store) { look(t, s, func(tx *store.Tx) error { return wantAll(t, tx, want) }) },
			"writing": func(s *store.Store) { update(t, s, func(tx *store.Tx) error { return wantAll(t, tx, want) }) },
		} {
			t.Log(name)
			run(one)
			run(two)
		}
	}
	both("hosts [] idle map[] waiting [] running []")
	update(t, one, func(tx *store.Tx) error {
		return errors.Join(tx.SaveHost(store.Host{Name: "h2"}), tx.MarkIdle("h2", 7), tx.AddJob(&job))
	})
	both("hosts [h2 0] idle map[h2:7] waiting [1] running []")
	job.State = cluster.JobRunning
	update(t, two, func(tx *store.Tx) error {
		return errors.Join(tx.SaveHost(store.Host{Name: "h1"}), tx.MarkAssigned("h2", 3), tx.MarkIdle("h2", 0), tx.SaveJob(job))
	})
	both("hosts [h1 0 h2 3] idle map[] waiting [] running [1]")
	job.State = cluster.JobDone
	update(t, one, func(tx *store.Tx) error { return errors.Join(tx.DeleteHost("h2"), tx.SaveJob(job)) })
	both("hosts [h1 0] idle map[] waiting [] running []")
	_ = two.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.DeleteHost("h1"), errors.New("no"))
	})
	both("hosts [h1 0] idle map[] waiting [] running []")
}

// wantAll demands what is read of the rows that are mirrored.
func wantAll(t *testing.T, tx *store.Tx, want string) error {
	t.Helper()
	all, err := tx.Hosts()
	var hosts, waiting, running []any
	for _, h := range all {
		hosts = append(hosts, h.Name, h.Assigned)
	}
	idle, idleErr := tx.IdleHosts()
	since := map[string]int64{}
	for name, at := range idle {
		since[name] = int64(at)
	}
	jobs, waitErr := tx.Jobs(cluster.JobWaiting)
	for _, j := range jobs {
		waiting = append(waiting, j.ID)
	}
	jobs, runErr := tx.Jobs(cluster.JobRunning)
	for _, j := range jobs {
		running = append(running, j.ID)
	}
	if got := fmt.Sprintf("hosts %v idle %v waiting %v running %v", hosts, since, waiting, running); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	return errors.Join(err, idleErr, waitErr, runErr)
}

// Two controllers count up the same row, and a third only looks on. Nothing is
// lost, and the numbers have no gaps.
func TestControllersWriteOneAfterTheOther(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	const rounds = 40
	update(t, one, func(tx *store.Tx) error { return tx.SaveHost(store.Host{Name: "h1"}) })
	var works sync.WaitGroup
	for _, s := range []*store.Store{one, two, one, two} {
		works.Go(func() {
			for range rounds {
				update(t, s, func(tx *store.Tx) error {
					all, err := tx.Hosts()
					if err != nil {
						return err
					}
					h := all[0]
					h.Assigned++
					revision, err := tx.Append(api.Change{Kind: "host", Subject: h.Name})
					if err == nil && revision != h.Assigned {
						t.Errorf("revision %d for count %d", revision, h.Assigned)
					}
					return errors.Join(err, tx.SaveHost(h))
				})
			}
		})
	}
	works.Go(func() { // a read is of one moment
		for range 4 * rounds {
			look(t, two, func(tx *store.Tx) error {
				all, err := tx.Hosts()
				if err != nil {
					return err
				}
				revision, err := tx.Revision()
				if revision != all[0].Assigned {
					t.Errorf("read revision %d with count %d", revision, all[0].Assigned)
				}
				return err
			})
		}
	})
	works.Wait()
	look(t, one, func(tx *store.Tx) error {
		equal(t, int64(4*rounds))(tx.Revision())
		return nil
	})
}

func TestWhoReadsDoesNotWaitForWhoWrites(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	update(t, one, func(tx *store.Tx) error {
		if err := tx.SaveHost(store.Host{Name: "h1"}); err != nil {
			return err
		}
		for _, s := range []*store.Store{one, two} {
			if names := hosts(t, s); len(names) != 0 {
				t.Errorf("what is not committed is read: %v", names)
			}
		}
		return nil
	})
}

// A controller that was away for many changes cannot be told of each.
func TestAControllerThatWasAwayForLongReadsAllAnew(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	for _, s := range []*store.Store{one, two} { // both know that there is none
		if names := hosts(t, s); len(names) != 0 {
			t.Fatalf("hosts are %v", names)
		}
		update(t, s, func(tx *store.Tx) error { return wantAll(t, tx, "hosts [] idle map[] waiting [] running []") })
	}
	update(t, one, func(tx *store.Tx) error { return tx.SaveHost(store.Host{Name: "h1"}) })
	store.ForgetTouched(t, one)
	update(t, two, func(tx *store.Tx) error { return wantAll(t, tx, "hosts [h1 0] idle map[] waiting [] running []") })
	look(t, two, func(tx *store.Tx) error { return wantAll(t, tx, "hosts [h1 0] idle map[] waiting [] running []") })
}

// A database that takes over from another that failed may lack the last changes.
// What came in their place has their numbers.
func TestWhatTheDatabaseHasLostIsForgotten(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	one, two, other := open(t, address), open(t, address), open(t, address)
	for _, s := range []*store.Store{one, two, other} {
		defer s.Close()
	}
	update(t, one, func(tx *store.Tx) error { return tx.SaveHost(store.Host{Name: "h1"}) })
	update(t, two, func(tx *store.Tx) error { return tx.SaveHost(store.Host{Name: "lost"}) })
	both := func(want string) {
		t.Helper()
		for _, s := range []*store.Store{one, two} {
			look(t, s, func(tx *store.Tx) error { return wantAll(t, tx, want) })
			update(t, s, func(tx *store.Tx) error { return wantAll(t, tx, want) })
		}
	}
	both("hosts [h1 0 lost 0] idle map[] waiting [] running []")
	store.LoseLast(t, one, "lost")
	update(t, other, func(tx *store.Tx) error { return tx.SaveHost(store.Host{Name: "h2"}) })
	both("hosts [h1 0 h2 0] idle map[] waiting [] running []")
}

func TestOnlyWhatMayFreeSomethingCountsAsSuch(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	turn := func() (seq, freed int64) {
		t.Helper()
		look(t, two, func(tx *store.Tx) error { seq, freed = tx.Turn(); return nil })
		return seq, freed
	}
	seq, freed := turn()
	update(t, one, func(tx *store.Tx) error { tx.Frees(); return nil }) // wrote nothing
	if s, f := turn(); s != seq || f != freed {
		t.Errorf("a transaction that wrote nothing was counted: %d, %d", s, f)
	}
	update(t, one, func(tx *store.Tx) error { return tx.SaveHost(store.Host{Name: "h1"}) })
	if s, f := turn(); s != seq+1 || f != freed {
		t.Errorf("after a change that frees nothing: %d, %d", s, f)
	}
	update(t, one, func(tx *store.Tx) error { tx.Frees(); return tx.SaveHost(store.Host{Name: "h1"}) })
	if s, f := turn(); s != seq+2 || f != seq+2 {
		t.Errorf("after a change that frees something: %d, %d", s, f)
	}
}

func TestOthersAreToldOfChangesAndWhatTooManyHostsAre(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan store.News, 10)
	listens := make(chan struct{})
	go func() {
		defer close(listens)
		two.Listen(ctx, slog.New(slog.DiscardHandler), func(n store.News) { told <- n })
	}()
	if n := next(t, told); !n.All {
		t.Errorf("at first %+v is told, want that anything may have changed", n)
	}
	announce := func(s *store.Store, n store.News) {
		t.Helper()
		update(t, s, func(tx *store.Tx) error { tx.Announce(n); return tx.SaveHost(store.Host{Name: "h1"}) })
	}
	announce(two, store.News{Revision: 7}) // its own
	announce(one, store.News{Revision: 8, Hosts: []string{"h1", "h'2"}})
	if n := next(t, told); n.Revision != 8 || strings.Join(n.Hosts, " ") != "h1 h'2" || n.All {
		t.Errorf("told of %+v", n)
	}
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprintf("host-%04d", i)
	}
	announce(one, store.News{Revision: 9, Hosts: many})
	if n := next(t, told); n.Revision != 9 || !n.All || len(n.Hosts) > 0 {
		t.Errorf("told of %+v", n)
	}
	_ = one.Update(ctx, func(tx *store.Tx) error { tx.Announce(store.News{Revision: 10}); return errors.New("no") })
	select {
	case n := <-told:
		t.Errorf("told of %+v, which was undone", n)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	<-listens
}

func next(t *testing.T, told <-chan store.News) store.News {
	t.Helper()
	select {
	case n := <-told:
		return n
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was told")
		return store.News{}
	}
}

func TestOneControllerAtATimeLeads(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	takeFor := func(s *store.Store, name string, ttl cluster.Duration) (lead store.Lead) {
		t.Helper()
		update(t, s, func(tx *store.Tx) (err error) {
			lead, err = tx.TakeLead(name, name, ttl)
			return err
		})
		return lead
	}
	take := func(s *store.Store, name string) store.Lead { t.Helper(); return takeFor(s, name, cluster.Hour) }
	if l := take(one, "a"); l.Instance != "a" || l.Epoch != 1 {
		t.Errorf("the first lead is %+v", l)
	}
	if l := take(two, "b"); l.Instance != "a" || l.Epoch != 1 {
		t.Errorf("another took it: %+v", l)
	}
	if l := take(one, "a"); l.Instance != "a" || l.Epoch != 1 {
		t.Errorf("it was not kept: %+v", l)
	}
	update(t, two, func(tx *store.Tx) error { return tx.GiveUpLead("b") })
	if l := take(two, "b"); l.Instance != "a" {
		t.Errorf("one gave up what another has: %+v", l)
	}
	update(t, one, func(tx *store.Tx) error { return tx.GiveUpLead("a") })
	if l := take(two, "b"); l.Instance != "b" || l.Epoch != 2 {
		t.Errorf("after it was given up: %+v", l)
	}
	update(t, two, func(tx *store.Tx) error { return tx.GiveUpLead("b") })
	takeFor(one, "a", 1)
	time.Sleep(10 * time.Millisecond) // it runs out
	if l := take(two, "b"); l.Instance != "b" || l.Epoch != 4 {
		t.Errorf("after it ran out: %+v", l)
	}
	takeFor(two, "b", 2*cluster.Hour) // an hour of two is little
	update(t, two, func(tx *store.Tx) error { return tx.ProlongLead(4 * cluster.Hour) })
	look(t, one, func(tx *store.Tx) error {
		l, err := tx.Lead()
		if left := l.Until.Sub(tx.Now()); left < 3*cluster.Hour {
			t.Errorf("%v is left after it was prolonged", left)
		}
		return err
	})
}

func TestControllersTellEachOtherWhatTheyHaveHeard(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	beat := func(s *store.Store, b store.Beat) store.Pulse {
		t.Helper()
		p, err := s.Beat(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	now := beat(one, store.Beat{Instance: "a", Name: "a"}).Now
	beat(one, store.Beat{Instance: "a", Name: "a", Heard: map[string]cluster.Time{"h1": now, "h2": now - 100}, Session: []byte("{}"), SessionAt: now})
	p := beat(two, store.Beat{Instance: "b", Name: "b", Heard: map[string]cluster.Time{"h1": now - 50, "h2": now}, Session: []byte("old"), SessionAt: now - 1})
	if p.Heard["h1"] != now || p.Heard["h2"] != now {
		t.Errorf("heard of %v, want each at its latest", p.Heard)
	}
	if p = beat(one, store.Beat{Instance: "a", After: now}); len(p.Heard) != 0 {
		t.Errorf("heard of %v, which is not new", p.Heard)
	}
	look(t, two, func(tx *store.Tx) error {
		at, text, err := tx.LastSession()
		if at != now || string(text) != "{}" {
			t.Errorf("the last session is %q of %v", text, at)
		}
		there, theirs := tx.Controllers()
		if len(there) != 2 || there[0].Name != "a" || there[0].Seen < there[0].Since {
			t.Errorf("there are %+v", there)
		}
		return errors.Join(err, theirs)
	})
	if err := one.Leave(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	look(t, two, func(tx *store.Tx) error {
		there, err := tx.Controllers()
		if len(there) != 1 {
			t.Errorf("there are %+v", there)
		}
		return err
	})
}

func TestTheTimeOfTheStateIsTheDatabases(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	var last cluster.Time
	for i := range 20 {
		s := []*store.Store{one, two}[i%2]
		update(t, s, func(tx *store.Tx) error {
			if tx.Now() < last {
				t.Errorf("time went back from %v to %v", last, tx.Now())
			}
			last = tx.Now()
			return nil
		})
	}
	if d := one.Now().Sub(last); d < -cluster.Minute || d > cluster.Minute {
		t.Errorf("what is told without asking is %v off", d)
	}
}

// A server that stops and starts is an error of the calls that it meets; the next
// ones work, and news come again.
func TestAServerThatStopsOrIsKilledIsAnErrorOfTheCallsThatItMeets(t *testing.T) {
	t.Parallel()
	postgrestest.Once(t)
	server := postgrestest.Start(t, postgrestest.Options{})
	s := open(t, server.Address("postgres"))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	told, listens := make(chan store.News, 100), make(chan struct{})
	go func() {
		defer close(listens)
		s.Listen(ctx, slog.New(slog.DiscardHandler), func(n store.News) { told <- n })
	}()
	next(t, told)
	save(t, s, store.Host{Name: "h0"})
	for i, end := range []func() error{func() error { server.Stop(); return nil }, server.Kill} {
		amid := s.Update(ctx, func(tx *store.Tx) error {
			if err := tx.SaveHost(store.Host{Name: "lost"}); err != nil {
				return err
			}
			if err := end(); err != nil {
				return err
			}
			return tx.SaveHost(store.Host{Name: "lost too"})
		})
		if !errors.Is(amid, store.ErrAway) {
			t.Errorf("amid a change the error is %v", amid)
		}
		if err := s.Read(ctx, func(*store.Tx) error { return nil }); !errors.Is(err, store.ErrAway) {
			t.Errorf("while it is away the error is %v", err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		save(t, s, store.Host{Name: fmt.Sprint("h", i+1)})
		if names := hosts(t, s); len(names) != i+2 {
			t.Errorf("hosts are %v", names)
		}
		if n := next(t, told); !n.All {
			t.Errorf("told of %+v, want that anything may have changed", n)
		}
	}
	cancel()
	<-listens
}

// A process that is stopped amid a change, or cut off, must not hold up the others
// for ever; and when it goes on, its change is undone.
func TestAControllerThatStandsStillAmidAChangeLosesItsTurn(t *testing.T) {
	t.Parallel()
	address := postgrestest.Shared(t)
	still, other := open(t, address+"&idle_in_transaction_session_timeout=300"), open(t, address)
	defer still.Close()
	defer other.Close()
	err := still.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.SaveHost(store.Host{Name: "h1"}); err != nil {
			return err
		}
		save(t, other, store.Host{Name: "h2"}) // once the server has had enough
		return nil
	})
	if !errors.Is(err, store.ErrAway) {
		t.Errorf("the error is %v", err)
	}
	save(t, still, store.Host{Name: "h3"})
	if names := hosts(t, still); !slices.Equal(names, []string{"h2", "h3"}) {
		t.Errorf("hosts are %v", names)
	}
}

func TestACallThatIsCancelledBeforeItIsCommittedIsUndone(t *testing.T) {
	t.Parallel()
	one, _ := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := one.Update(ctx, func(tx *store.Tx) error { cancel(); return tx.SaveHost(store.Host{Name: "h1"}) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if names := hosts(t, one); len(names) != 0 {
		t.Errorf("hosts are %v, though the call was cancelled", names)
	}
}

func TestTheStateOfOneClusterIsNotTakenByAnother(t *testing.T) {
	t.Parallel()
	one, two := pair(t)
	update(t, one, func(tx *store.Tx) error { equal(t, "east")(tx.Claim("east")); return nil })
	update(t, two, func(tx *store.Tx) error { equal(t, "east")(tx.Claim("west")); return nil })
}
