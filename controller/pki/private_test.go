package pki_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/controller/pki"
)

func TestAKeyThatOthersCanReadIsRefused(t *testing.T) {
	folder := t.TempDir()
	authority, err := pki.OpenAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue("ann", pki.Peer{Role: "viewer", Name: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.In(folder, "ann").Client(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann.key", "ca.key"} {
		if err := os.Chmod(filepath.Join(folder, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, client := pki.In(folder, "ann").Client()
	_, server := pki.In(folder, "ann").Server()
	_, opened := pki.OpenAuthority(folder)
	for what, err := range map[string]error{"a client": client, "a server": server, "an authority": opened} {
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%s with such a key: %v", what, err)
		}
	}
}
