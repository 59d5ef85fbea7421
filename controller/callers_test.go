package controller_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
)

// guarded is a world whose controller refuses what its authority has revoked.
func guarded(t *testing.T) *world {
	t.Helper()
	c := controllertest.Open(t, store.Memory, controllertest.Vcs(2, 10))
	c.IssueAuthority()
	list, err := pki.OpenRevocations(filepath.Join(c.Certificates, "ca.crl"), filepath.Join(c.Certificates, "ca.crt"), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.Revocations = list
	c.Serve()
	return &world{Controller: c, t: t}
}

// revoke revokes certificates.
func (w *world) revoke(serials ...*big.Int) {
	w.t.Helper()
	_, err := w.Authority.Revoke(serials, pki.ListLife)
	w.must(err)
}

// answered is what became of a call.
type answered int

const (
	noConnection answered = iota // the handshake failed
	unknown                      // it is not known who calls
	forbidden                    // it is known, and may not
	let                          // the route's own handler answered
)

func (a answered) String() string {
	return [...]string{"no connection", "unknown", "forbidden", "let"}[a]
}

// knock calls a route with an empty object.
func knock(t *testing.T, client *http.Client, w *world, route api.Route, caller string) (answered, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), route.Method, "https://"+w.Address+path(route, caller), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return noConnection, err.Error()
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	text := fmt.Sprint(resp.StatusCode, " ", string(data))
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return unknown, text
	case resp.StatusCode == http.StatusForbidden && strings.Contains(text, "may not call "+route.ID):
		return forbidden, text
	case resp.StatusCode >= http.StatusInternalServerError:
		t.Errorf("%s answers %s", route.ID, text)
	}
	return let, text
}

// caller is someone who calls, and what becomes of that by the table.
type caller struct {
	certificates func(role api.Role) []tls.Certificate
	// roles are those that the certificate may name; none stands for one that the route permits.
	roles []api.Role
	want  func(route api.Route, role api.Role) answered
}

func always(a answered) func(api.Route, api.Role) answered {
	return func(api.Route, api.Role) answered { return a }
}

// byTable is what the table of routes says.
func byTable(route api.Route, role api.Role) answered {
	if route.Permits(role) {
		return let
	}
	return forbidden
}

// openOnly lets to where a token lets in, and nowhere else.
func openOnly(route api.Route, _ api.Role) answered {
	if route.Permits("") {
		return let
	}
	return unknown
}

const callerName = "x1"

func callers(t *testing.T, w *world) map[string]caller {
	foreign := t.TempDir()
	if _, err := pki.OpenAuthority(foreign); err != nil {
		t.Fatal(err)
	}
	valid, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	forged := func(folder string, end time.Time, usage x509.ExtKeyUsage) func(api.Role) []tls.Certificate {
		return func(role api.Role) []tls.Certificate {
			return []tls.Certificate{forge(t, folder, fmt.Sprintf("xce://%s/%s", role, callerName), end, usage)}
		}
	}
	issued := func(role api.Role) []tls.Certificate { return []tls.Certificate{w.certificate(role)} }
	return map[string]caller{
		"a certificate": {
			issued, []api.Role{api.Admin, api.Provisioner, api.HostRole, api.Submitter, api.Viewer, "controller", "nobody", "anyone", ""}, byTable,
		},
		"no certificate":             {func(api.Role) []tls.Certificate { return nil }, nil, openOnly},
		"an expired one":             {forged(w.Certificates, past, x509.ExtKeyUsageClientAuth), nil, always(noConnection)},
		"one of a foreign authority": {forged(foreign, valid, x509.ExtKeyUsageClientAuth), nil, always(noConnection)},
		"one for servers only":       {forged(w.Certificates, valid, x509.ExtKeyUsageServerAuth), nil, always(noConnection)},
		"one without our URI": {func(api.Role) []tls.Certificate {
			return []tls.Certificate{forge(t, w.Certificates, "", valid, x509.ExtKeyUsageClientAuth)}
		}, nil, openOnly},
		"a revoked one":                 {func(role api.Role) []tls.Certificate { return []tls.Certificate{w.revoked(role)} }, nil, always(unknown)},
		"a sound one, forged otherwise": {forged(w.Certificates, valid, x509.ExtKeyUsageClientAuth), nil, byTable},
	}
}

// certificate issues a certificate of a role; "" stands for one whose role is empty.
func (w *world) certificate(role api.Role) tls.Certificate {
	w.t.Helper()
	if role == "" {
		return forge(w.t.(*testing.T), w.Certificates, "xce:///"+callerName, time.Now().Add(time.Hour), x509.ExtKeyUsageClientAuth)
	}
	w.must(w.Authority.Issue("caller", pki.Peer{Role: string(role), Name: callerName}))
	pair, err := tls.LoadX509KeyPair(filepath.Join(w.Certificates, "caller.crt"), filepath.Join(w.Certificates, "caller.key"))
	w.must(err)
	return pair
}

func (w *world) revoked(role api.Role) tls.Certificate {
	w.t.Helper()
	pair := w.certificate(role)
	w.revoke(pair.Leaf.SerialNumber)
	return pair
}

// as answers a client with certificates of its own making.
func (w *world) as(certificates []tls.Certificate) *http.Client {
	config := w.TLS(api.Viewer, "v")
	config.Certificates, config.GetClientCertificate = certificates, nil
	if certificates != nil { // whatever authority the server names
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificates[0], nil }
	}
	return httpClient(config)
}

func TestEveryRouteAnswersEveryCallerAsTheTableSays(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	for name, c := range callers(t, w) {
		clients := map[api.Role]*http.Client{}
		client := func(role api.Role) *http.Client {
			if clients[role] == nil {
				clients[role] = w.as(c.certificates(role))
			}
			return clients[role]
		}
		for _, route := range api.Routes {
			roles := c.roles
			if roles == nil {
				roles = route.Roles
			}
			for _, role := range roles {
				want := c.want(route, role)
				if role == "" {
					want = openOnly(route, role) // a certificate that names no role names no one
				}
				if got, text := knock(t, client(role), w, route, callerName); got != want {
					t.Errorf("%s of role %q gets %q from %s, want %q: %s", name, role, got, route.ID, want, text)
				}
			}
		}
	}
}

func TestARouteWithoutRolesIsForbiddenToAll(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	secret := api.Route{ID: "secret", Method: http.MethodGet, Path: "/v1/secret", Summary: "A route that someone forgot to give roles"}
	server := controller.NewServer(w.Service, slog.New(slog.DiscardHandler))
	controller.Register(server, secret)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	config, err := pki.In(w.Certificates, "controller").Server()
	w.must(err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, listener, config) }()
	defer func() { stop(); w.must(<-served) }()
	w.Address = listener.Addr().String()
	for _, role := range []api.Role{api.Admin, api.Provisioner, api.HostRole, api.Submitter, api.Viewer, "controller", "nobody"} {
		if got, text := knock(t, w.as([]tls.Certificate{w.certificate(role)}), w, secret, callerName); got != forbidden {
			t.Errorf("%s gets %q: %s", role, got, text)
		}
	}
	if got, text := knock(t, w.as(nil), w, secret, callerName); got != unknown {
		t.Errorf("one without a certificate gets %q: %s", got, text)
	}
}

func TestARevokedCertificateIsRefusedOverAConnectionThatIsOpen(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	for version, speak := range map[string]func(*http.Client) *http.Client{"HTTP/1.1": http1Client, "HTTP/2.0": http2Client} {
		pair, connections := w.certificate(api.Admin), 0
		config := w.TLS(api.Viewer, "v")
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { connections++; return &pair, nil }
		client := speak(httpClient(config))
		get := func() (*http.Response, error) { return client.Get("https://" + w.Address + api.GetStatus.Path) }
		if code, proto := read(t, get); code != http.StatusOK || proto != version {
			t.Fatalf("the answer before is %d by %s, want %s", code, proto, version)
		}
		w.revoke(pair.Leaf.SerialNumber)
		if code, _ := read(t, get); code != http.StatusUnauthorized || connections != 1 {
			t.Errorf("%s: the answer after is %d, with %d connections", version, code, connections)
		}
		if code, _ := read(t, get); code != http.StatusUnauthorized || connections != 2 {
			t.Errorf("%s: the answer after that is %d, with %d connections; the refused one is to be closed", version, code, connections)
		}
	}
}

func http1Client(c *http.Client) *http.Client { return c }

// http2Client has a client speak HTTP/2.
func http2Client(c *http.Client) *http.Client {
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	return c
}

// read reads an answer to its end, so that its connection is used again.
func read(t *testing.T, get func() (*http.Response, error)) (code int, proto string) {
	t.Helper()
	resp, err := get()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Proto
}

func TestARenewedCertificateIsTakenUpWithoutARestart(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	client := w.Client(api.Admin, "root") // its file is admin-root
	if _, err := client.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	old, err := pki.ReadCertificate(filepath.Join(w.Certificates, "admin-root.crt"))
	w.must(err)
	if _, err := w.Authority.Renew("admin-root", time.Hour); err != nil {
		t.Fatal(err)
	}
	server, err := w.Authority.Renew("controller", time.Hour)
	w.must(err)
	w.revoke(old.SerialNumber)
	if _, err := client.Status(t.Context()); status(err) != http.StatusUnauthorized { // over the connection that is open
		t.Errorf("the old certificate gets %v", err)
	}
	if _, err := client.Status(t.Context()); err != nil {
		t.Errorf("the new certificate gets %v", err)
	}
	config := w.TLS(api.Viewer, "v")
	connection, err := tls.Dial("tcp", w.Address, config)
	w.must(err)
	defer connection.Close()
	if got := connection.ConnectionState().PeerCertificates[0].SerialNumber; got.Cmp(server.SerialNumber) != 0 {
		t.Error("the controller serves with its old certificate")
	}
}
