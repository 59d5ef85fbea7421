package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// stand is a controller that answers every call in the same way, and counts them.
type stand struct {
	*httptest.Server
	calls atomic.Int64
}

func newStand(t *testing.T, answer http.HandlerFunc) *stand {
	t.Helper()
	s := &stand{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func well(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"cluster":"east"}`)) }

func away(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"detail":"this controller cannot reach its state now"}`))
}

// breaks ends the connection amid a call, as a controller that is killed does.
func breaks(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestCallsGoToTheNextControllerThatAnswersAndStayThere(t *testing.T) {
	t.Parallel()
	gone := newStand(t, well)
	gone.Close()
	without, second := newStand(t, away), newStand(t, well)
	c := api.NewClient(gone.URL+" , "+without.URL+"/,"+second.URL, nil)
	for range 3 {
		if st, err := c.Status(t.Context()); err != nil || st.Cluster != "east" {
			t.Fatalf("status is %+v, %v", st, err)
		}
		if _, err := c.Submit(t.Context(), cluster.JobSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	if n, m := without.calls.Load(), second.calls.Load(); n != 1 || m != 6 {
		t.Errorf("the one without its state had %d calls and the other %d, want 1 and 6", n, m)
	}
}

func TestEachControllerIsAskedOnceWhereNoneAnswers(t *testing.T) {
	t.Parallel()
	first, second := newStand(t, away), newStand(t, away)
	c := api.NewClient(first.URL+","+second.URL, nil)
	_, err := c.Status(t.Context())
	var answer *api.Error
	if !errors.As(err, &answer) || answer.Status != http.StatusServiceUnavailable {
		t.Errorf("the error is %v", err)
	}
	if n, m := first.calls.Load(), second.calls.Load(); n != 1 || m != 1 {
		t.Errorf("they had %d and %d calls, want one each", n, m)
	}
}

// A controller that is killed may have carried out what it was asked.
func TestWhatMayHaveBeenDoneIsNotDoneTwice(t *testing.T) {
	t.Parallel()
	broken, second := newStand(t, breaks), newStand(t, well)
	c := api.NewClient(broken.URL+","+second.URL, nil)
	if _, err := c.Submit(t.Context(), cluster.JobSpec{}); err == nil {
		t.Error("the job was submitted once more")
	}
	if n := second.calls.Load(); n != 0 {
		t.Errorf("the second controller had %d calls", n)
	}
	if _, err := c.Submit(t.Context(), cluster.JobSpec{}); err != nil {
		t.Errorf("the caller's next try goes to the first controller again: %v", err)
	}
	c = api.NewClient(broken.URL+","+second.URL, nil)
	if err := c.Join(t.Context(), "h1", api.JoinHost{}); err != nil {
		t.Errorf("what is the same twice was not tried at the second: %v", err)
	}
}

func TestAnAnswerOfAControllerIsNotAskedForElsewhere(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed, http.StatusInternalServerError} {
		first := newStand(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"detail":"no"}`))
		})
		second := newStand(t, well)
		c := api.NewClient(first.URL+","+second.URL, nil)
		for range 2 {
			if _, err := c.Status(t.Context()); err == nil {
				t.Errorf("HTTP status %d was taken for success", status)
			}
		}
		if n := second.calls.Load(); n != 0 {
			t.Errorf("after HTTP status %d the second controller had %d calls", status, n)
		}
	}
}

func TestACancelledCallIsNotTriedElsewhere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	first, second := newStand(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), newStand(t, well)
	c := api.NewClient(first.URL+","+second.URL, nil)
	if _, err := c.Status(ctx); err == nil {
		t.Error("a cancelled call succeeded")
	}
	if n := second.calls.Load(); n != 0 {
		t.Errorf("the second controller had %d calls", n)
	}
}

func TestAddressesAreSplitAtCommas(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{"": nil, "a": {"a"}, " a, b ,,c,": {"a", "b", "c"}} {
		if got := api.SplitAddresses(list); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", list, got, want)
		}
	}
}
