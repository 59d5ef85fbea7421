package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/postgrestest"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/scheduling"
)

func TestANewStateIsMadeWhereTheFileIsAbsentOrEmpty(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty.db")
	write(t, empty, nil)
	for _, path := range []string{empty, filepath.Join(folder, "absent.db"), filepath.Join(folder, "with space, % and ?.db"), store.Memory} {
		s := open(t, path)
		save(t, s, store.Host{Name: "h1"})
		if names := hosts(t, s); len(names) != 1 {
			t.Errorf("%s: hosts are %v", path, names)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close %s: %v", path, err)
		}
		if _, err := os.Stat(path); path != store.Memory && err != nil {
			t.Error(err)
		}
	}
}

func TestAStateSurvivesCloseAndOpenAndMigratesOnce(t *testing.T) {
	t.Parallel()
	path, _ := made(t)
	for range 3 {
		before := read(t, path)
		s := open(t, path)
		if names := hosts(t, s); len(names) != 1 || names[0] != "h1" {
			t.Errorf("hosts are %v, want h1", names)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if string(read(t, path)) != string(before) {
			t.Error("opening and closing changed the file")
		}
	}
}

func TestAMigrationThatWasInterruptedIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	path, _ := made(t)
	execute(t, path, "DELETE FROM bun_migrations") // tables are made, but not marked as such
	s := open(t, path)
	if names := hosts(t, s); len(names) != 1 {
		t.Errorf("hosts are %v, want h1", names)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "DROP TABLE loans; DELETE FROM bun_migrations; CREATE VIEW loans AS SELECT 1 AS open, 2 AS resource")
	if _, err := store.Open(t.Context(), path); err == nil {
		t.Fatal("a migration that must fail succeeded")
	}
	execute(t, path, "DROP VIEW loans")
	s = open(t, path)
	save(t, s, store.Host{Name: "h2"})
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		equal(t, []cluster.Loan{})(tx.Loans())
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "state.db")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Open(ctx, fresh); err == nil {
		t.Fatal("the state was opened though the call was cancelled")
	}
	s = open(t, fresh)
	defer s.Close()
	save(t, s, store.Host{Name: "h1"})
}

func TestAFailedOrCancelledChangeIsUndoneWhole(t *testing.T) {
	t.Parallel()
	path, _ := made(t)
	for _, path := range []string{path, postgrestest.State(t)} {
		s := open(t, path)
		before := len(hosts(t, s))
		no := errors.New("no")
		ctx, cancel := context.WithCancel(t.Context())
		for name, fail := range map[string]func() error{"failed": func() error { return no }, "cancelled": func() error { cancel(); return nil }} {
			err := s.Update(ctx, func(tx *store.Tx) error {
				return errors.Join(tx.SaveHost(store.Host{Name: "h2"}), fail())
			})
			if err == nil {
				t.Errorf("%s: a %s change succeeded", path, name)
			}
		}
		func() {
			defer func() { _ = recover() }()
			_ = s.Update(t.Context(), func(tx *store.Tx) error { _ = tx.SaveHost(store.Host{Name: "h3"}); panic("no") })
		}()
		if after := len(hosts(t, s)); after != before {
			t.Errorf("%s: %d hosts became %d", path, before, after)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// in runs fn in one transaction of a new state in memory, and again in a second
// one to see what was kept.
func in(t *testing.T, write, look func(tx *store.Tx) error) {
	t.Helper()
	s := open(t, postgrestest.State(t))
	defer s.Close()
	for _, fn := range []func(*store.Tx) error{write, look} {
		if err := s.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
}

func equal[T any](t *testing.T, want T) func(got T, err error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
}

func TestWhatIsSavedIsReadBackAsItWas(t *testing.T) {
	t.Parallel()
	resource := store.Resource{
		Name: "vcs", ConfiguredOwned: 3, Idle: cluster.IdleClock{{Units: 2, Since: 7}},
		Resource: cluster.SharedResource{Name: "vcs", Owned: 4, Elastic: &cluster.Elastic{Lenders: []string{"p"}, IdleTime: cluster.Minute}},
	}
	loan := cluster.Loan{
		LoanRequest: cluster.LoanRequest{ID: "loan/vcs/p-1", Provider: "p", Resource: "vcs", Units: 4, Jobs: []int64{1}, Terms: cluster.Terms{Price: 5}},
		State:       cluster.LoanBorrowed, Borrowed: 3, Intended: 1_700_000_000_123,
	}
	offer := cluster.Offer{Provider: "p", Resource: "vcs", Headroom: 9, BackoffUntil: 1_700_000_000_123}
	lending := cluster.Lending{ID: "l", Resource: "vcs", Units: 2, To: "east"}
	demand := cluster.Demand{Provider: "p", Resource: "vcs", Units: 2, Jobs: []int64{1, 2}}
	in(t, func(tx *store.Tx) error {
		return errors.Join(tx.SaveResource(resource), tx.SaveLoan(loan), tx.SaveOffer(offer),
			tx.ReplaceLendings("vcs", []cluster.Lending{lending}), tx.SaveDemand(demand))
	}, func(tx *store.Tx) error {
		equal(t, []store.Resource{resource})(tx.Resources())
		equal(t, []cluster.Loan{loan})(tx.OpenLoans("vcs"))
		equal(t, []cluster.Offer{offer})(tx.Offers())
		equal(t, []cluster.Lending{lending})(tx.Lendings("vcs"))
		equal(t, []cluster.Demand{demand})(tx.Demand())
		equal(t, []cluster.Loan{})(tx.OpenLoans("zebu"))
		demand.Units, loan.State = 0, cluster.LoanReturned
		return errors.Join(tx.SaveDemand(demand), tx.SaveLoan(loan), tx.ReplaceLendings("vcs", nil), tx.DeleteOffer("p", "vcs"), func() error {
			equal(t, []cluster.Demand{})(tx.Demand())
			equal(t, []cluster.Loan{})(tx.OpenLoans(""))
			equal(t, []cluster.Loan{loan})(tx.Loans())
			equal(t, map[string]int64{"vcs": 1})(tx.CountLoans("p"))
			equal(t, []cluster.Lending{})(tx.Lendings(""))
			equal(t, []cluster.Offer{})(tx.Offers())
			return nil
		}())
	})
}

func TestJobsAreNumberedFromOneAndListedByNumber(t *testing.T) {
	t.Parallel()
	in(t, func(tx *store.Tx) error {
		for want := int64(1); want <= 12; want++ {
			job := cluster.Job{JobSpec: cluster.JobSpec{Command: []string{"true"}}, State: cluster.JobWaiting}
			if err := tx.AddJob(&job); err != nil || job.ID != want {
				return errors.Join(err, errors.New("the job has another number"))
			}
			if want%3 == 0 {
				job.State, job.Host = cluster.JobRunning, "h1"
				if err := tx.SaveJob(job); err != nil {
					return err
				}
			}
		}
		return nil
	}, func(tx *store.Tx) error {
		running, err := tx.HostJobs("h1")
		var ids []int64
		for _, j := range running {
			ids = append(ids, j.ID)
		}
		equal(t, []int64{3, 6, 9, 12})(ids, err)
		equal(t, map[cluster.JobState]int64{cluster.JobWaiting: 8, cluster.JobRunning: 4})(tx.CountJobs())
		equal(t, []cluster.Job{})(tx.HostJobs("h2"))
		_, found, err := tx.Job(13)
		equal(t, false)(found, err)
		return nil
	})
}

func TestWhatJobsHoldIsSummedFromTheirStartToTheirEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	save := func(id int64, state cluster.JobState) {
		t.Helper()
		job := cluster.Job{ID: id, State: state, JobSpec: cluster.JobSpec{Tokens: map[string]int64{"vcs": id, "zebu": 1}}}
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveJob(job) }); err != nil {
			t.Fatal(err)
		}
	}
	sum := func(vcs, zebu int64) {
		t.Helper()
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			equal(t, vcs)(tx.InUse("vcs"))
			equal(t, zebu)(tx.InUse("zebu"))
			equal(t, int64(0))(tx.InUse("other"))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, state := range []cluster.JobState{1: cluster.JobWaiting, 2: cluster.JobRunning, 3: cluster.JobRunning, 4: cluster.JobRunning} {
		if id > 0 {
			save(int64(id), state)
		}
	}
	save(3, cluster.JobRunning)
	save(4, cluster.JobTimeout)
	sum(5, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "DROP TABLE uses; DELETE FROM bun_migrations WHERE name = '20260102000000'")
	s = open(t, path) // as one that an older version left
	defer s.Close()
	sum(5, 2)
	save(2, cluster.JobDone)
	sum(3, 1)
}

func TestOnlyTheHostThatIsMarkedIsMarked(t *testing.T) {
	t.Parallel()
	in(t, func(tx *store.Tx) error {
		return errors.Join(tx.SaveHost(store.Host{Name: "h1"}), tx.SaveHost(store.Host{Name: "h2"}), tx.MarkAssigned("h1", 7))
	}, func(tx *store.Tx) error {
		for name, want := range map[string]int64{"h1": 7, "h2": 0} {
			h, found, err := tx.Host(name)
			equal(t, want)(h.Assigned, err)
			equal(t, true)(found, err)
		}
		_, found, err := tx.Host("h3")
		equal(t, false)(found, err)
		return nil
	})
}

func TestDemandForHostsIsKeptBesideThatForTokens(t *testing.T) {
	t.Parallel()
	rows := []cluster.Demand{
		{Template: "large", Provider: "p", Units: 1, Jobs: []int64{1}},
		{Template: "small", Provider: "p", Units: 2, Jobs: []int64{1}},
		{Resource: "vcs", Provider: "p", Units: 3, Jobs: []int64{1}},
	}
	in(t, func(tx *store.Tx) error {
		return errors.Join(tx.SaveDemand(rows[2]), tx.SaveDemand(rows[1]), tx.SaveDemand(rows[0]))
	}, func(tx *store.Tx) error {
		equal(t, rows)(tx.Demand())
		rows[1].Units = 0
		err := tx.SaveDemand(rows[1])
		equal(t, []cluster.Demand{rows[0], rows[2]})(tx.Demand())
		return err
	})
}

func TestHostsAreIdleSinceTheyWereMarked(t *testing.T) {
	t.Parallel()
	in(t, func(tx *store.Tx) error {
		return errors.Join(tx.MarkIdle("h1", 7), tx.MarkIdle("h2", 8), tx.MarkIdle("h1", 9))
	}, func(tx *store.Tx) error {
		equal(t, map[string]cluster.Time{"h1": 9, "h2": 8})(tx.IdleHosts())
		err := errors.Join(tx.MarkIdle("h1", 0), tx.MarkIdle("h3", 0))
		equal(t, map[string]cluster.Time{"h2": 8})(tx.IdleHosts())
		return err
	})
}

func TestReservationsAreKeptByJob(t *testing.T) {
	t.Parallel()
	first, second := scheduling.Reservation{Job: 1, At: 7, Hosts: []string{"h1"}}, scheduling.Reservation{Job: 2, At: 8, Alternative: 2, Hosts: []string{"h2"}}
	in(t, func(tx *store.Tx) error {
		return errors.Join(tx.SaveReservation(second), tx.SaveReservation(scheduling.Reservation{Job: 1, At: 9}), tx.SaveReservation(first))
	}, func(tx *store.Tx) error {
		equal(t, []scheduling.Reservation{first, second})(tx.Reservations())
		err := errors.Join(tx.DeleteReservation(1), tx.DeleteReservation(3))
		equal(t, []scheduling.Reservation{second})(tx.Reservations())
		return err
	})
}

func TestAJobHoldsTheTokensOfItsAlternativeToo(t *testing.T) {
	t.Parallel()
	job := cluster.Job{ID: 1, State: cluster.JobRunning, Alternative: 2, JobSpec: cluster.JobSpec{
		Tokens: map[string]int64{"vcs": 1}, Alternatives: []map[string]int64{{"zebu": 5}, {"vcs": 2, "verdi": 1}},
	}}
	in(t, func(tx *store.Tx) error { return tx.SaveJob(job) }, func(tx *store.Tx) error {
		equal(t, int64(3))(tx.InUse("vcs"))
		equal(t, int64(1))(tx.InUse("verdi"))
		equal(t, int64(0))(tx.InUse("zebu"))
		job.State = cluster.JobDone
		err := tx.SaveJob(job)
		equal(t, int64(0))(tx.InUse("vcs"))
		equal(t, int64(0))(tx.InUse("verdi"))
		return err
	})
}

func TestTheDemandOfAnOlderVersionIsTakenOver(t *testing.T) {
	t.Parallel()
	path, _ := made(t)
	execute(t, path, `DROP TABLE wanted; DELETE FROM bun_migrations WHERE name = '20260103000000';
		CREATE TABLE demand (resource TEXT NOT NULL, provider TEXT NOT NULL, demand TEXT NOT NULL, PRIMARY KEY (resource, provider));
		INSERT INTO demand VALUES ('vcs', 'p', '{"resource":"vcs","provider":"p","units":4,"jobs":[1],"reason":"x"}')`)
	s := open(t, path)
	defer s.Close()
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		equal(t, []cluster.Demand{{Resource: "vcs", Provider: "p", Units: 4, Jobs: []int64{1}, Reason: "x"}})(tx.Demand())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAuditRecordsAreNumberedWithoutGapsAlsoAfterAFailure(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.State(t))
	defer s.Close()
	for i := range 4 {
		_ = s.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Append(api.Change{Kind: "job", Subject: "1", Why: "x", Before: []byte(`{"a":1}`)})
			if i == 1 {
				return errors.New("no")
			}
			return err
		})
	}
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		equal(t, int64(3))(tx.Revision())
		changes, err := tx.Changes(1, 1)
		if len(changes) != 1 || changes[0].Revision != 2 || string(changes[0].Before) != `{"a":1}` || len(changes[0].After) != 0 {
			t.Errorf("after revision 1 comes %+v", changes)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
