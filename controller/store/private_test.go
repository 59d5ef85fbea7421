package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"xce.internal/elastic/controller/store"
)

func modes(t *testing.T, folder string) map[string]fs.FileMode {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]fs.FileMode{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = info.Mode().Perm()
	}
	return found
}

// The state has everyone's commands in it: nobody else may read it, its log or its lock.
func TestTheStateIsItsOwnersAloneWhateverTheUmaskIsAndItsModesWere(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state.db")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for range 2 {
		st, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Update(t.Context(), func(*store.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		found := modes(t, folder)
		for _, name := range []string{"state.db", "state.db-wal", "state.db.lock"} {
			if mode, there := found[name]; !there || mode != 0o600 {
				t.Errorf("%s has mode %04o (there: %t), want 0600", name, mode, there)
			}
		}
		for name, mode := range found {
			if mode&0o077 != 0 {
				t.Errorf("%s has mode %04o", name, mode)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		for name := range modes(t, folder) { // as an older version, or a careless copy, left them
			if err := os.Chmod(filepath.Join(folder, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
