package controller_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/pki"
)

// httpClient speaks HTTP/1.1, of which a server closes idle connections at once.
func httpClient(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 10 * time.Second}
}

// forge signs a client certificate with the authority of a folder.
func forge(t *testing.T, folder, uri string, notAfter time.Time, usage x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	parent, err := x509.ParseCertificate(authority.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "admin/root"}, DNSNames: []string{"admin"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	if uri != "" {
		name, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = []*url.URL{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// statusWith asks for the cluster's status with the given certificates; 0 means
// that the connection was refused.
func statusWith(t *testing.T, w *world, certificates ...tls.Certificate) (int, string) {
	t.Helper()
	config := w.TLS(api.Viewer, "v")
	config.Certificates, config.GetClientCertificate = certificates, nil
	resp, err := httpClient(config).Get("https://" + w.Address + api.GetStatus.Path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func TestOnlyACertificateOfTheOwnAuthorityGetsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	foreign := t.TempDir()
	if _, err := pki.OpenAuthority(foreign); err != nil {
		t.Fatal(err)
	}
	valid := time.Now().Add(time.Hour)
	const admin = "xce://admin/root"
	for name, test := range map[string]struct {
		certificates []tls.Certificate
		want         int
	}{
		"a sound one":                      {[]tls.Certificate{forge(t, w.Certificates, admin, valid, x509.ExtKeyUsageClientAuth)}, http.StatusOK},
		"none":                             {nil, http.StatusUnauthorized},
		"one of another authority":         {[]tls.Certificate{forge(t, foreign, admin, valid, x509.ExtKeyUsageClientAuth)}, 0},
		"an expired one":                   {[]tls.Certificate{forge(t, w.Certificates, admin, time.Now().Add(-time.Hour), x509.ExtKeyUsageClientAuth)}, 0},
		"one that is for servers only":     {[]tls.Certificate{forge(t, w.Certificates, admin, valid, x509.ExtKeyUsageServerAuth)}, 0},
		"one without a URI":                {[]tls.Certificate{forge(t, w.Certificates, "", valid, x509.ExtKeyUsageClientAuth)}, http.StatusUnauthorized},
		"one with a URI of another scheme": {[]tls.Certificate{forge(t, w.Certificates, "spiffe://admin/root", valid, x509.ExtKeyUsageClientAuth)}, http.StatusUnauthorized},
		"one with a role but no name":      {[]tls.Certificate{forge(t, w.Certificates, "xce://admin/", valid, x509.ExtKeyUsageClientAuth)}, http.StatusUnauthorized},
		"one with a name but no role":      {[]tls.Certificate{forge(t, w.Certificates, "xce:///root", valid, x509.ExtKeyUsageClientAuth)}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			if got, text := statusWith(t, w, test.certificates...); got != test.want {
				t.Errorf("the answer is %d %s, want %d", got, text, test.want)
			}
		})
	}
}

func TestAClientRefusesAControllerOfAnotherAuthority(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t, controllertest.Vcs(2, 10)), newWorld(t, controllertest.Vcs(2, 10))
	config := w.TLS(api.Viewer, "v")
	config.RootCAs = other.TLS(api.Viewer, "v").RootCAs
	if _, err := httpClient(config).Get("https://" + w.Address + api.GetStatus.Path); err == nil {
		t.Error("the client trusts a controller of another authority")
	}
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	config := w.TLS(api.Viewer, "v")
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err := httpClient(config).Get("https://" + w.Address + api.GetStatus.Path); err == nil {
		t.Error("the controller speaks TLS 1.2")
	}
}
