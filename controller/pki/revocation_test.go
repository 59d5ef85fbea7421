package pki_test

import (
	"bytes"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/controller/pki"
)

// listing is an authority, and a controller's view of its list.
type listing struct {
	t      *testing.T
	folder string
	ca     *pki.Authority
	list   *pki.Revocations
	now    time.Time
	log    bytes.Buffer
}

func newListing(t *testing.T) *listing {
	t.Helper()
	l := &listing{t: t, folder: t.TempDir(), now: time.Now()}
	l.ca = authority(t, l.folder)
	var err error
	if l.list, err = l.open(); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *listing) path(name string) string { return filepath.Join(l.folder, name) }

func (l *listing) open() (*pki.Revocations, error) {
	return pki.OpenRevocations(l.path("ca.crl"), l.path("ca.crt"), func() time.Time { return l.now }, slog.New(slog.NewTextHandler(&l.log, nil)))
}

// revokes issues a certificate, revokes it, and tells whether that is seen.
func (l *listing) revokes(file string) bool {
	l.t.Helper()
	issue(l.t, l.ca, file, pki.Peer{Role: "viewer", Name: file})
	cert := certificate(l.t, l.path(file+".crt"))
	if l.list.Revoked(cert) {
		l.t.Errorf("%s is revoked before it was", file)
	}
	if _, err := l.ca.Revoke([]*big.Int{cert.SerialNumber}, time.Hour); err != nil {
		l.t.Fatal(err)
	}
	return l.list.Revoked(cert)
}

func (l *listing) put(name string, data []byte) {
	l.t.Helper()
	if err := os.WriteFile(l.path(name), data, 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *listing) get(name string) []byte {
	l.t.Helper()
	data, err := os.ReadFile(l.path(name))
	if err != nil {
		l.t.Fatal(err)
	}
	return data
}

func TestTheListIsReadAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	l := newListing(t)
	for _, file := range []string{"one", "two"} {
		if !l.revokes(file) {
			t.Errorf("%s is not revoked", file)
		}
	}
	if !l.list.Revoked(certificate(t, l.path("one.crt"))) {
		t.Error("the second revocation undid the first")
	}
}

func TestAListThatIsNotSoundIsRefusedAtTheStartAndLaterLeavesTheOneBefore(t *testing.T) {
	t.Parallel()
	other := newListing(t)
	for name, test := range map[string]struct {
		spoil func(l *listing)
		says  string
	}{
		"missing":                     {func(l *listing) { _ = os.Remove(l.path("ca.crl")) }, "no such file"},
		"empty":                       {func(l *listing) { l.put("ca.crl", nil) }, "holds no PEM block"},
		"cut short":                   {func(l *listing) { l.put("ca.crl", l.get("ca.crl")[:100]) }, "holds no PEM block"},
		"a certificate":               {func(l *listing) { l.put("ca.crl", l.get("ca.crt")) }, "holds no PEM block"},
		"of another authority":        {func(l *listing) { l.put("ca.crl", other.get("ca.crl")) }, "is not signed by the certificate authority"},
		"ended, and touched":          {func(l *listing) { l.now = l.now.Add(2 * time.Hour); l.put("ca.crl", append(l.get("ca.crl"), '\n')) }, "ended on"},
		"with an authority that left": {func(l *listing) { _ = os.Remove(l.path("ca.crt")); l.put("ca.crl", append(l.get("ca.crl"), '\n')) }, "read certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newListing(t)
			if !l.revokes("one") {
				t.Fatal("the certificate is not revoked")
			}
			test.spoil(l)
			if !l.list.Revoked(certificate(t, l.path("one.crt"))) {
				t.Error("the revocation is forgotten")
			}
			if log := l.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, test.says) {
				t.Errorf("the log is %q, want an error that says %q", log, test.says)
			}
			if _, err := l.open(); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("at the start it is taken with %v, want %q", err, test.says)
			}
		})
	}
}

func TestAListThatIsOlderThanTheOneBeforeIsNotTaken(t *testing.T) {
	t.Parallel()
	l := newListing(t)
	old := l.get("ca.crl")
	if !l.revokes("one") {
		t.Fatal("the certificate is not revoked")
	}
	l.put("ca.crl", old)
	if !l.list.Revoked(certificate(t, l.path("one.crt"))) || !strings.Contains(l.log.String(), "copy the newest") {
		t.Errorf("an older list is taken; the log is %q", &l.log)
	}
}

func TestAListThatEndsStaysInUseAndIsWarnedOf(t *testing.T) {
	t.Parallel()
	l := newListing(t)
	l.revokes("one")
	one := certificate(t, l.path("one.crt"))
	for after, says := range map[time.Duration]string{30 * time.Minute: "level=WARN", 2 * time.Hour: "level=ERROR"} {
		l.log.Reset()
		was := l.now
		l.now = l.now.Add(after)
		for range 3 {
			if !l.list.Revoked(one) {
				t.Errorf("after %s the revocation is forgotten", after)
			}
		}
		if n := strings.Count(l.log.String(), says); n > 1 {
			t.Errorf("after %s the log is %q, want one line %s", after, &l.log, says)
		}
		l.now = was
	}
}

func TestAListIsNotReplacedByOneWithFewerWhereItCannotBeRead(t *testing.T) {
	t.Parallel()
	l := newListing(t)
	l.put("ca.crl", []byte("nonsense"))
	if _, err := l.ca.Revoke([]*big.Int{big.NewInt(1)}, time.Hour); err == nil || string(l.get("ca.crl")) != "nonsense" {
		t.Errorf("the list is made anew: %v", err)
	}
}
