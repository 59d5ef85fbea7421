package pki_test

import (
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/controller/pki"
)

func TestAnAuthorityIsNotMadeOverAnother(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"", "ca.key", "ca.crt"} {
		folder := t.TempDir()
		authority(t, folder)
		if missing != "" {
			if err := os.Remove(filepath.Join(folder, missing)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := pki.InitAuthority(folder, time.Hour); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("without %q the authority is made anew: %v", missing, err)
		}
	}
}

func TestACertificateDoesNotOutliveItsAuthority(t *testing.T) {
	t.Parallel()
	a, err := pki.InitAuthority(t.TempDir(), 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	long, err := a.IssueFor(72*time.Hour, "long", pki.Peer{Role: "viewer", Name: "v"})
	if err != nil {
		t.Fatal(err)
	}
	short, err := a.IssueFor(24*time.Hour, "short", pki.Peer{Role: "viewer", Name: "v"})
	if err != nil {
		t.Fatal(err)
	}
	if end := a.Certificate().NotAfter; !long.NotAfter.Equal(end) || !short.NotAfter.Before(end.Add(-23*time.Hour)) {
		t.Errorf("the authority ends %s, the certificates %s and %s", end, long.NotAfter, short.NotAfter)
	}
}

func TestAPeersCertificateSignsNoOther(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	issue(t, authority(t, folder), "one", pki.Peer{Role: "viewer", Name: "v"})
	one := certificate(t, filepath.Join(folder, "one.crt"))
	if one.IsCA || one.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("a peer's certificate is an authority's")
	}
	if ca := certificate(t, filepath.Join(folder, "ca.crt")); !ca.MaxPathLenZero {
		t.Error("the authority may make others")
	}
}

func TestARenewedCertificateHasTheSameNamesAnotherKeyAndALaterEnd(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a := authority(t, folder)
	old, err := a.IssueFor(time.Hour, "c", pki.Peer{Role: "controller", Name: "east"}, "127.0.0.1", "c.example")
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := a.Renew("c", 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if renewed.URIs[0].String() != "xce://controller/east" || !slices.Equal(renewed.DNSNames, old.DNSNames) || !renewed.IPAddresses[0].Equal(old.IPAddresses[0]) ||
		!slices.Equal(renewed.ExtKeyUsage, old.ExtKeyUsage) {
		t.Errorf("%+v became %+v", old, renewed)
	}
	if string(renewed.RawSubjectPublicKeyInfo) == string(old.RawSubjectPublicKeyInfo) || renewed.SerialNumber.Cmp(old.SerialNumber) == 0 || !renewed.NotAfter.After(old.NotAfter) {
		t.Error("the key, the serial number or the end is the old one")
	}
	if _, err := pki.In(folder, "c").Server(); err != nil {
		t.Errorf("certificate and key do not fit: %v", err)
	}
}

func TestWhatIsNotOfTheAuthorityIsNotRenewed(t *testing.T) {
	t.Parallel()
	folder, foreign := t.TempDir(), t.TempDir()
	a := authority(t, folder)
	issue(t, authority(t, foreign), "one", pki.Peer{Role: "admin", Name: "eve"})
	if err := os.Rename(filepath.Join(foreign, "one.crt"), filepath.Join(folder, "one.crt")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Renew("one", time.Hour); err == nil || !strings.Contains(err.Error(), "not of this authority") {
		t.Errorf("renewed with %v", err)
	}
}

func TestWhatWasIssuedIsListedWithWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a := authority(t, folder)
	first, err := a.IssueFor(time.Hour, "p1", pki.Peer{Role: "provisioner", Name: "p1"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := a.Renew("p1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Revoke([]*big.Int{first.SerialNumber, big.NewInt(0xabc)}, time.Hour); err != nil {
		t.Fatal(err)
	}
	list, err := pki.ListIssued(folder)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		peer, serial      string
		revoked, replaced bool
	}
	var got []row
	for _, i := range list {
		got = append(got, row{i.Peer, i.Serial, i.Revoked != nil, i.Replaced})
	}
	want := []row{{"provisioner/p1", pki.SerialOf(first), true, true}, {"provisioner/p1", pki.SerialOf(second), false, false}, {"", "abc", true, false}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
