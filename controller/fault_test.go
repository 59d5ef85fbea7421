package controller_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/store"
)

// call is a call of a viewer over a verified connection.
func call(path string) *http.Request {
	cert := &x509.Certificate{NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{{Scheme: "xce", Host: "viewer", Path: "/v"}}}
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
	return r
}

func TestAFaultInACallIsLoggedAndCutsTheCallShort(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	server := controller.NewServer(nil, slog.New(slog.NewTextHandler(&log, nil))) // without a service every call is a fault
	fault := func() (fault any) {
		defer func() { fault = recover() }()
		server.Handler().ServeHTTP(httptest.NewRecorder(), call(api.GetStatus.Path))
		return nil
	}()
	if fault != http.ErrAbortHandler {
		t.Errorf("the call ends with %v, want it cut short", fault)
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "GET /v1/status") || !strings.Contains(text, "status.go") {
		t.Errorf("the log has %q", text)
	}
}

func TestACallThatIsCancelledIsNoFault(t *testing.T) {
	t.Parallel()
	c := controllertest.Open(t, store.Memory, controllertest.Vcs(2, 10))
	var log bytes.Buffer
	server := controller.NewServer(c.Service, slog.New(slog.NewTextHandler(&log, nil)))
	for _, path := range []string{api.GetStatus.Path, api.GetJobs.Path, api.GetChanges.Path} {
		answer := httptest.NewRecorder()
		server.Handler().ServeHTTP(answer, call(path).WithContext(ended))
		if answer.Code != http.StatusServiceUnavailable || log.Len() > 0 {
			t.Errorf("%s answers %d, the log has %q", path, answer.Code, log.String())
		}
	}
	if st := c.Status(); len(st.Resources) != 1 { // the state in memory lives on
		t.Errorf("the state is %+v", st)
	}
}
