package controller_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

// This test is not parallel: it looks at the goroutines of the whole program.
func TestTheControllerStopsPromptlyThoughPollsAreOpenAndLeavesNothingRunning(t *testing.T) {
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	now := w.Status().Revision
	changes := longPoll(func() (api.Changes, error) { return w.admin.Changes(t.Context(), now, time.Minute) })
	jobs := longPoll(func() (api.Assignments, error) { return w.host.Assignments(t.Context(), hostName, 0, time.Minute) })
	asleep(t, changes)
	asleep(t, jobs)
	start := time.Now()
	w.Stop()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if c := awake(t, changes); c.Revision != now {
		t.Errorf("the open poll was answered %+v", c)
	}
	awake(t, jobs)
	w.admin.Close()
	w.host.Close()
	wantNoGoroutines(t, "xce.internal/elastic/controller.(", "net/http.(*conn).serve", "net/http.(*http2serverConn)", "database/sql.(")
}

func TestSessionsEndWithTheirContext(t *testing.T) {
	c := controllertest.Open(t, ":memory:", controllertest.Vcs(2, 10))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		c.Service.RunSessions(ctx)
		close(done)
	}()
	cancel()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("sessions run on")
	}
}

// wantNoGoroutines waits a little for goroutines in such functions to end.
func wantNoGoroutines(t *testing.T, functions ...string) {
	t.Helper()
	var stacks string
	for range 50 {
		buffer := make([]byte, 1<<20)
		stacks = string(buffer[:runtime.Stack(buffer, true)])
		if !containsAny(stacks, functions) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("these goroutines run on:\n%s", stacks)
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
