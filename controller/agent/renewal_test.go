package agent

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
)

// signer is a controller that only renews certificates.
type signer struct {
	ca    *pki.Authority
	calls int
}

func (s *signer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls++
	var in api.RenewalRequest
	peer, err := pki.PeerOf(r.TLS)
	if err == nil && r.URL.Path == "/v1/hosts/m1/certificate" && json.NewDecoder(r.Body).Decode(&in) == nil {
		if certificate, err := s.ca.SignRequest([]byte(in.Request), peer); err == nil {
			_ = json.NewEncoder(w).Encode(api.Renewed{Certificate: string(certificate)})
			return
		}
	}
	http.Error(w, "no", http.StatusForbidden)
}

func TestAnAgentRenewsItsCertificateWellBeforeItsEndAndUsesIt(t *testing.T) {
	folder := t.TempDir()
	ca, err := pki.OpenAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Issue("controller", pki.Peer{Role: "controller", Name: "east"}, "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	request, err := keyIn(folder)
	if err != nil {
		t.Fatal(err)
	}
	first, err := ca.SignRequest(request, pki.Peer{Role: "host", Name: "m1", ID: "host/small-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := keep(folder, hostFile+".crt", first); err != nil {
		t.Fatal(err)
	}
	server := &signer{ca: ca}
	address := serve(t, folder, server)
	config, err := pki.In(folder, hostFile).Client()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r := &renewal{host: "m1", folder: folder, client: api.NewClient(address, config), log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}
	for _, step := range []struct {
		after time.Duration
		calls int
	}{{0, 0}, {240 * 24 * time.Hour, 0}, {250 * 24 * time.Hour, 1}} {
		now = time.Now().Add(step.after)
		if err := r.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if server.calls != step.calls {
			t.Errorf("after %s it asked %d times, want %d", step.after, server.calls, step.calls)
		}
	}
	kept, err := os.ReadFile(filepath.Join(folder, hostFile+".crt"))
	if err != nil || bytes.Equal(kept, first) {
		t.Errorf("the first certificate is kept: %v", err)
	}
	pair, err := config.GetClientCertificate(nil)
	if err != nil || !bytes.Equal(pair.Certificate[0], der(t, kept)) {
		t.Errorf("the renewed certificate is not used: %v", err)
	}
}

func der(t *testing.T, text []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(text)
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return block.Bytes
}

func serve(t *testing.T, folder string, handler http.Handler) (address string) {
	t.Helper()
	config, err := pki.In(folder, "controller").Server()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, TLSConfig: config, ReadHeaderTimeout: time.Second}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	return "https://" + listener.Addr().String()
}
