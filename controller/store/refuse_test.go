package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/store"
)

// made makes a state file with one host in it and answers its path and bytes.
func made(t *testing.T) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	save(t, s, store.Host{Name: "h1", Host: cluster.Host{Name: "h1", Capacity: cluster.Capacity{CPUs: 4}}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, read(t, path)
}

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func save(t *testing.T, s *store.Store, h store.Host) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveHost(h) }); err != nil {
		t.Fatal(err)
	}
}

func hosts(t *testing.T, s *store.Store) (names []string) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		all, err := tx.Hosts()
		for _, h := range all {
			names = append(names, h.Name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// folder answers what is in a folder, with contents, except for the lock file.
func folder(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") && e.Type().IsRegular() {
			fmt.Fprintf(&all, "%s %d %x\n", e.Name(), len(read(t, filepath.Join(filepath.Dir(path), e.Name()))), read(t, filepath.Join(filepath.Dir(path), e.Name())))
		}
	}
	return all.String()
}

func TestAFileThatIsNoSoundStateIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path string, content []byte)
		want  string
	}{
		"a page overwritten": {func(t *testing.T, path string, content []byte) {
			write(t, path, append(bytes.Clone(content[:8192]), bytes.Repeat([]byte{0xff}, len(content)-8192)...))
		}, "is corrupt"},
		"cut short by half": {func(t *testing.T, path string, content []byte) { write(t, path, content[:len(content)/2]) }, "is corrupt"},
		"cut short within the header": {func(t *testing.T, path string, content []byte) {
			write(t, path, content[:50])
		}, "is corrupt"},
		"cut short to a few bytes": {func(t *testing.T, path string, content []byte) { write(t, path, content[:10]) }, "is not a database"},
		"text": {func(t *testing.T, path string, _ []byte) {
			write(t, path, []byte("cluster:\n  name: this is a configuration file\n"))
		}, "is not a database"},
		"a database of another program": {func(t *testing.T, path string, _ []byte) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			execute(t, path, "CREATE TABLE executions (id TEXT)")
		}, "is a database of another program"},
		"of a newer version": {func(t *testing.T, path string, _ []byte) {
			execute(t, path, "INSERT INTO bun_migrations (name, group_id) VALUES ('20990101000000', 9)")
		}, "newer version"},
		"read-only": {func(t *testing.T, path string, _ []byte) {
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
		}, "cannot be opened for writing"},
		"a folder": {func(t *testing.T, path string, _ []byte) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "cannot be opened for writing"},
	} {
		t.Run(name, func(t *testing.T) {
			path, content := made(t)
			test.spoil(t, path, content)
			before := folder(t, path)
			for range 2 {
				s, err := store.Open(t.Context(), path)
				if err == nil {
					s.Close()
					t.Fatal("the file is taken")
				}
				wantRemedy(t, err, path, test.want)
			}
			if after := folder(t, path); after != before {
				t.Errorf("before:\n%.300s\nafter:\n%.300s", before, after)
			}
		})
	}
}

// wantRemedy demands that an error names the file, what is wrong, and what to do.
func wantRemedy(t *testing.T, err error, path, want string) {
	t.Helper()
	text := err.Error()
	if !strings.Contains(text, path) || !strings.Contains(text, want) {
		t.Errorf("the error is %q, want it to name %s and say %q", text, path, want)
	}
	for _, remedy := range []string{"restore a backup", "name another file", "run that version", "make it"} {
		if strings.Contains(text, remedy) {
			return
		}
	}
	t.Errorf("the error %q names no remedy", text)
}

func TestAFileInUseIsRefusedUnderAllItsNames(t *testing.T) {
	t.Parallel()
	path, _ := made(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	first := open(t, path)
	before := read(t, path)
	for _, name := range []string{path, link} {
		if _, err := store.Open(t.Context(), name); err == nil {
			t.Fatalf("%s is opened twice", name)
		} else {
			wantRemedy(t, err, path, "in use by another controller")
		}
	}
	save(t, first, store.Host{Name: "h2"}) // the refusals did not break its locks
	if !bytes.Equal(before, read(t, path)) {
		t.Error("the refused file was changed")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, link)
	defer second.Close()
	if names := hosts(t, second); len(names) != 2 {
		t.Errorf("hosts are %v, want both", names)
	}
}

func TestARefusedFileIsNotKeptLocked(t *testing.T) {
	t.Parallel()
	path, content := made(t)
	write(t, path, content[:5000])
	if _, err := store.Open(t.Context(), path); err == nil {
		t.Fatal("a file cut short is taken")
	}
	write(t, path, content) // the backup
	s := open(t, path)
	defer s.Close()
	if names := hosts(t, s); len(names) != 1 {
		t.Errorf("hosts are %v after the backup was restored", names)
	}
}

func TestAFolderThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "state.db")
	_, err := store.Open(t.Context(), path)
	if err == nil {
		t.Fatal("a file in a missing folder is made")
	}
	wantRemedy(t, err, path, "its folder must exist")
}

func TestAStateIsNotOpenedOnceTheCallIsCancelled(t *testing.T) {
	t.Parallel()
	path, _ := made(t)
	before := folder(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Open(ctx, path); err == nil {
		t.Fatal("the state was opened")
	}
	if folder(t, path) != before {
		t.Error("the state was changed")
	}
	open(t, path).Close()
}
