package pki_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/controller/pki"
)

func TestACertificateWithoutItsKeyLeavesThePairBeforeInUse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a := authority(t, folder)
	issue(t, a, "one", pki.Peer{Role: "admin", Name: "root"})
	issue(t, a, "next", pki.Peer{Role: "admin", Name: "root"})
	var log bytes.Buffer
	config, err := pki.In(folder, "one").ClientLogging(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string {
		pair, err := config.GetClientCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pki.SerialOf(pair.Leaf)
	}
	move := func(ending string) {
		if err := os.Rename(filepath.Join(folder, "next"+ending), filepath.Join(folder, "one"+ending)); err != nil {
			t.Fatal(err)
		}
	}
	before := serial()
	next := pki.SerialOf(certificate(t, filepath.Join(folder, "next.crt")))
	move(".key")
	if got := serial(); got != before || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("with the new key alone %s is in use, want %s; the log is %q", got, before, &log)
	}
	move(".crt")
	if got := serial(); got != next {
		t.Errorf("with both %s is in use, want %s", got, next)
	}
}
