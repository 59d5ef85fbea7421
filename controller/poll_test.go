package controller_test

import (
	"testing"
	"time"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

// longPoll starts a poll that would wait for long, and gives it time to wait.
func longPoll[T any](poll func() (T, error)) <-chan T {
	answer := make(chan T, 1)
	go func() {
		if a, err := poll(); err == nil {
			answer <- a
		}
		close(answer)
	}()
	time.Sleep(100 * time.Millisecond)
	return answer
}

// awake demands an answer much sooner than the poll's own time limit.
func awake[T any](t *testing.T, answer <-chan T) T {
	t.Helper()
	select {
	case a, ok := <-answer:
		if !ok {
			t.Fatal("the poll failed")
		}
		return a
	case <-time.After(5 * time.Second):
		t.Fatal("the poll was not woken")
		panic("unreachable")
	}
}

func asleep[T any](t *testing.T, answer <-chan T) {
	t.Helper()
	select {
	case a := <-answer:
		t.Fatalf("the poll was answered %+v, want it waiting", a)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestAPollForChangesWakesAtOnceOnAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	now := w.Status().Revision
	answer := longPoll(func() (api.Changes, error) { return w.admin.Changes(t.Context(), now, time.Minute) })
	asleep(t, answer)
	w.submit(1)
	changes := awake(t, answer)
	if changes.Revision != now+1 || len(changes.Changes) != 1 || changes.Changes[0].Kind != api.KindJob {
		t.Errorf("after revision %d the poll answers %+v", now, changes)
	}
}

func TestAPollForChangesEndsEmptyAtItsTimeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	now, start := w.Status().Revision, time.Now()
	changes, err := w.admin.Changes(t.Context(), now, 200*time.Millisecond)
	w.must(err)
	if took := time.Since(start); took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("the poll took %s, want 200ms", took)
	}
	if changes.Revision != now || len(changes.Changes) != 0 {
		t.Errorf("the poll answers %+v", changes)
	}
}

func TestChangesArePagedWithoutLossOrRepetition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	for range 510 {
		w.must(w.Service.ReportStray(t.Context(), "provisioner/p1", api.Stray{Request: "r"}))
	}
	first, err := w.admin.Changes(t.Context(), 0, 0) // with those of the configuration and of the lease
	w.must(err)
	second, err := w.admin.Changes(t.Context(), first.Revision, 0)
	w.must(err)
	if len(first.Changes) != 500 || first.Revision != 500 || len(second.Changes) != 12 {
		t.Fatalf("pages of %d and %d changes, want 500 and 12", len(first.Changes), len(second.Changes))
	}
	for i, c := range append(first.Changes, second.Changes...) {
		if c.Revision != int64(i+1) {
			t.Fatalf("change %d has revision %d", i, c.Revision)
		}
	}
}

func TestAPollFromAStateThatWasLostIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	answer := longPoll(func() (api.Changes, error) { return w.admin.Changes(t.Context(), 1000, time.Minute) })
	if changes := awake(t, answer); changes.Revision != w.Status().Revision {
		t.Errorf("the poll answers %+v", changes)
	}
}

func TestAPollForAssignmentsWakesForTheOwnJobsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	w.submit(0)
	w.Session()
	first, err := w.host.Assignments(t.Context(), hostName, 0, time.Minute)
	w.must(err)
	if len(first.Jobs) != 1 || first.Jobs[0].ID != 1 {
		t.Fatalf("the first answer is %+v, want job 1", first)
	}
	answer := longPoll(func() (api.Assignments, error) {
		return w.host.Assignments(t.Context(), hostName, first.Revision, time.Minute)
	})
	w.submit(0) // a change, but none of the host's
	asleep(t, answer)
	w.Session()
	second := awake(t, answer)
	if len(second.Jobs) != 2 || second.Revision <= first.Revision {
		t.Errorf("after the session the host should run %+v", second)
	}
	answer = longPoll(func() (api.Assignments, error) {
		return w.host.Assignments(t.Context(), hostName, second.Revision, time.Minute)
	})
	w.end(1)
	if third := awake(t, answer); len(third.Jobs) != 1 || third.Jobs[0].ID != 2 {
		t.Errorf("after the end of job 1 the host should run %+v", third)
	}
}

func TestAPollForAssignmentsEndsAtItsTimeLimitWithTheSameRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	a, err := w.host.Assignments(t.Context(), hostName, 0, 100*time.Millisecond)
	w.must(err)
	if a.Revision != 0 || len(a.Jobs) != 0 {
		t.Errorf("the poll answers %+v", a)
	}
	_, err = w.Client(api.HostRole, "h2").Assignments(t.Context(), "h2", 0, time.Minute)
	w.wantStatus(404, err)
}
