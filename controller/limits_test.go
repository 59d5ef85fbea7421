package controller_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/limit"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/store"
)

// limited is a controller with limits of its own.
func limited(t *testing.T, config controller.Config, narrow func(*limit.Limits)) *world {
	t.Helper()
	l := limit.Defaults()
	narrow(&l)
	c := controllertest.Open(t, store.Memory, config)
	c.Limits = &l
	c.Serve()
	return &world{Controller: c, t: t, admin: c.Client(api.Admin, "root"), pool: c.Client(api.Provisioner, "p1")}
}

func TestWhoCallsTooOftenIsToldSoAndTheClientWaits(t *testing.T) {
	t.Parallel()
	w := limited(t, controllertest.Vcs(2, 10), func(l *limit.Limits) { l.Rate, l.Burst = 1, 2 })
	client := httpClient(w.TLS(api.Viewer, "x"))
	get := func() *http.Response {
		resp, err := client.Get("https://" + w.Address + "/v1/status")
		w.must(err)
		_, _ = io.Copy(io.Discard, resp.Body)
		w.must(resp.Body.Close())
		return resp
	}
	get()
	get()
	if resp := get(); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("the third call gets %d with %v", resp.StatusCode, resp.Header)
	}
	for range 3 { // more than the burst: the client has to wait for one of them
		_, err := w.admin.Status(t.Context())
		w.must(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.admin.Status(cancelled); err == nil {
		t.Error("a call without time succeeds")
	}
}

func TestOnePeerCannotHoldManyPolls(t *testing.T) {
	t.Parallel()
	w := limited(t, controllertest.Vcs(2, 10), func(l *limit.Limits) { l.Polls = 3 })
	client := httpClient(w.TLS(api.Viewer, "x"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	latest := w.Status().Revision
	codes := make(chan int, 4)
	var polls sync.WaitGroup
	for range 4 {
		polls.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("https://%s/v1/changes?after=%d&wait_ms=30000", w.Address, latest), nil)
			if err != nil {
				return
			}
			if resp, err := client.Do(req); err == nil {
				codes <- resp.StatusCode
				_ = resp.Body.Close()
			}
		})
	}
	if code := <-codes; code != http.StatusTooManyRequests {
		t.Errorf("of four polls one is answered %d, want 429", code)
	}
	if status, text := post(t, w, api.Viewer, "GET", "/v1/changes?after=0", ""); status != http.StatusOK {
		t.Errorf("a call that does not wait is answered %d %s", status, text)
	}
	cancel()
	polls.Wait()
	for {
		if status, _ := post(t, w, api.Viewer, "GET", fmt.Sprintf("/v1/changes?after=%d&wait_ms=1", latest), ""); status == http.StatusOK {
			break // once the polls are known to have ended
		}
	}
}

func TestABodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := limited(t, controllertest.Vcs(2, 10), func(l *limit.Limits) { l.Time = cluster.Second })
	config := w.TLS(api.Submitter, "x")
	config.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", w.Address, config)
	w.must(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	w.must(err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	w.must(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("the answer is %s, want 408", resp.Status)
	}
}

func TestHeadersAreLimited(t *testing.T) {
	t.Parallel()
	w := limited(t, controllertest.Vcs(2, 10), func(*limit.Limits) {})
	config := w.TLS(api.Viewer, "x")
	config.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", w.Address, config)
	w.must(err)
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", 2*api.MostHeader))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	w.must(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("the answer is %s, want 431", resp.Status)
	}
}

// stuck is a record that holds whoever writes to it.
type stuck struct{ entered, release chan struct{} }

func (s stuck) Note(record.Entry) {
	s.entered <- struct{}{}
	<-s.release
}

func TestACallThatTakesTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	r := stuck{make(chan struct{}, 1), make(chan struct{})}
	config := controllertest.Vcs(2, 10)
	config.Record = r
	w := limited(t, config, func(l *limit.Limits) { l.Time = cluster.Second })
	w.offer(10)
	done := make(chan error, 1)
	go func() {
		_, err := w.pool.Intend(context.Background(), api.IntendLoan{LedgerWrite: at("loan/vcs/pool-1", 1), Request: request(1)})
		done <- err
	}()
	<-r.entered
	status, text := post(t, w, api.Submitter, "POST", "/v1/jobs", `{"command":["true"],"cpus":1,"memory_mb":0,"priority":0}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "longer than 1s") {
		t.Errorf("the answer is %d %s, want 503", status, text)
	}
	close(r.release)
	<-done
	if status, text := post(t, w, api.Viewer, "GET", "/v1/status", ""); status != http.StatusOK {
		t.Errorf("afterwards the answer is %d %s", status, text)
	}
}

func TestOnlyACatalogMayBeLarge(t *testing.T) {
	t.Parallel()
	w := limited(t, controllertest.Vcs(2, 10), func(*limit.Limits) {})
	large := func(n int) string { return `{"x":"` + strings.Repeat("x", n) + `"}` }
	for _, test := range []struct {
		role         api.Role
		method, path string
		bytes, want  int
	}{
		{api.Provisioner, "PUT", "/v1/catalog/pool", 2 << 20, 422},
		{api.Provisioner, "PUT", "/v1/catalog/pool", 16 << 20, 413},
		{api.Submitter, "POST", "/v1/jobs", 1 << 20, 413},
		{api.Provisioner, "POST", "/v1/ledger/intend", 1 << 20, 413},
		{api.Viewer, "POST", "/v1/join", 64 << 10, 413}, // as anyone may
	} {
		if status, text := post(t, w, test.role, test.method, test.path, large(test.bytes)); status != test.want {
			t.Errorf("%s with %d bytes is answered %d %.200s, want %d", test.path, test.bytes, status, text, test.want)
		}
	}
}

func TestWhatCannotBeKeptIsRefusedInPathsAndQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	for _, path := range []string{"/v1/explain?kind=job&id=%00", "/v1/explain?kind=job&id=%ff", "/v1/explain?kind=job&%1b=1", "/v1/providers/%0a/view", "/v1/providers/%e2/view", "/v1/jobs?state=%zz"} {
		if status, text := post(t, w, api.Provisioner, "GET", path, ""); status != http.StatusBadRequest {
			t.Errorf("%s is answered %d %s, want 400", path, status, text)
		}
	}
}
