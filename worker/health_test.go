package worker

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
)

// temporalThat answers health checks as it is told.
type temporalThat struct {
	client.Client
	err error
}

func (c temporalThat) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	return nil, c.err
}

func TestReadinessSaysWhoDoesNotAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		temporal error
		leases   *tender
		status   int
		says     string
	}{
		"all well":                 {leases: &tender{owns: []string{"p"}, answered: time.Now()}, status: http.StatusOK, says: "ok\n"},
		"no provider to act for":   {leases: &tender{}, status: http.StatusOK, says: "ok\n"},
		"Temporal is away":         {errors.New("x"), &tender{}, http.StatusServiceUnavailable, "no answer from Temporal\n"},
		"the controller is away":   {leases: &tender{owns: []string{"p"}, answered: time.Now(), silent: true}, status: http.StatusServiceUnavailable, says: "no answer from the controller\n"},
		"the controller never was": {leases: &tender{owns: []string{"p"}}, status: http.StatusServiceUnavailable, says: "no answer from the controller\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHealth(Options{Log: slog.New(slog.DiscardHandler)}, temporalThat{err: test.temporal}, test.leases)
			for path, status := range map[string]int{"/readyz": test.status, "/healthz": http.StatusOK, "/": http.StatusNotFound} {
				w := httptest.NewRecorder()
				h.server.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != status || path == "/readyz" && w.Body.String() != test.says {
					t.Errorf("%s answers %d %q, want %d %q", path, w.Code, w.Body, status, test.says)
				}
			}
		})
	}
}
