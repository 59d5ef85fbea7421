package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/controller/pki"
)

func authority(t *testing.T, folder string) *pki.Authority {
	t.Helper()
	a, err := pki.OpenAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *pki.Authority, file string, peer pki.Peer, hosts ...string) {
	t.Helper()
	if err := a.Issue(file, peer, hosts...); err != nil {
		t.Fatal(err)
	}
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestAnAuthorityThatIsThereIsUsedAgain(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "ca")
	issue(t, authority(t, folder), "one", pki.Peer{Role: "host", Name: "h1"})
	issue(t, authority(t, folder), "two", pki.Peer{Role: "host", Name: "h2"})
	pool := x509.NewCertPool()
	pool.AddCert(certificate(t, filepath.Join(folder, "ca.crt")))
	for _, file := range []string{"one", "two"} {
		cert := certificate(t, filepath.Join(folder, file+".crt"))
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if cert.NotAfter.Before(time.Now().Add(300 * 24 * time.Hour)) {
			t.Errorf("%s is valid until %s only", file, cert.NotAfter)
		}
	}
}

func TestAnAuthorityOfWhichHalfIsMissingIsRefusedAndNotOverwritten(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"ca.key", "ca.crt"} {
		folder := t.TempDir()
		authority(t, folder)
		kept := filepath.Join(folder, map[string]string{"ca.key": "ca.crt", "ca.crt": "ca.key"}[missing])
		before, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(folder, missing)); err != nil {
			t.Fatal(err)
		}
		if _, err := pki.OpenAuthority(folder); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s the authority opens with %v", missing, err)
		}
		if after, _ := os.ReadFile(kept); string(after) != string(before) {
			t.Errorf("without %s, %s was overwritten", missing, kept)
		}
	}
}

func TestKeysAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	issue(t, authority(t, folder), "one", pki.Peer{Role: "host", Name: "h1"})
	for _, name := range []string{"ca.key", "one.key"} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s, want 0600", name, info.Mode())
		}
	}
}

func TestACertificateServesOnlyAtTheAddressesItWasMadeFor(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a := authority(t, folder)
	issue(t, a, "server", pki.Peer{Role: "controller", Name: "c"}, "127.0.0.1", "controller.example")
	issue(t, a, "client", pki.Peer{Role: "admin", Name: "root"})
	server, client := certificate(t, filepath.Join(folder, "server.crt")), certificate(t, filepath.Join(folder, "client.crt"))
	pool := x509.NewCertPool()
	pool.AddCert(certificate(t, filepath.Join(folder, "ca.crt")))
	for _, name := range []string{"127.0.0.1", "controller.example"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("the server at %s: %v", name, err)
		}
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: pool, DNSName: "other.example"}); err == nil {
		t.Error("the server's certificate is good for another address")
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: pool}); err == nil {
		t.Error("a client's certificate is good for a server")
	}
}

func TestAPeerIsReadFromAVerifiedCertificateOnly(t *testing.T) {
	t.Parallel()
	named := func(uris ...string) *x509.Certificate {
		cert := &x509.Certificate{}
		for _, u := range uris {
			parsed, err := url.Parse(u)
			if err != nil {
				t.Fatal(err)
			}
			cert.URIs = append(cert.URIs, parsed)
		}
		return cert
	}
	state := func(cert *x509.Certificate) *tls.ConnectionState {
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
	}
	unverified := state(named("xce://admin/root"))
	unverified.VerifiedChains = nil
	for name, test := range map[string]struct {
		state *tls.ConnectionState
		want  string
	}{
		"a role and a name":        {state(named("xce://host/h1")), "host/h1"},
		"another URI before it":    {state(named("spiffe://x/y", "xce://host/h1")), "host/h1"},
		"a name with a slash":      {state(named("xce://host/h1/x")), "host/h1/x"},
		"no URI":                   {state(named()), ""},
		"no name":                  {state(named("xce://host/")), ""},
		"no role":                  {state(named("xce:///h1")), ""},
		"another scheme":           {state(named("https://admin/root")), ""},
		"a chain not verified":     {unverified, ""},
		"a connection without TLS": {nil, ""},
	} {
		peer, err := pki.PeerOf(test.state)
		if got := peer.String(); (err == nil) != (test.want != "") || err == nil && got != test.want {
			t.Errorf("%s: the peer is %s, %v; want %q", name, got, err, test.want)
		}
	}
}

func TestFilesThatAreMissingOrHoldNoCertificateAreNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	issue(t, authority(t, folder), "one", pki.Peer{Role: "host", Name: "h1"})
	noCA := pki.In(folder, "one")
	noCA.CA = filepath.Join(folder, "one.key")
	for _, f := range []pki.Files{pki.In(folder, "two"), noCA, {CA: "none", Cert: noCA.Cert, Key: noCA.Key}} {
		for _, load := range []func() (*tls.Config, error){f.Server, f.Client} {
			if _, err := load(); err == nil || !strings.Contains(err.Error(), f.Cert) && !strings.Contains(err.Error(), f.CA) {
				t.Errorf("%+v loads with %v", f, err)
			}
		}
	}
}
