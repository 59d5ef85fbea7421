package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestRefusedDatabases(t *testing.T) {
	tests := map[string]struct {
		make func(t *testing.T, file string)
		want []string
	}{
		"no SQLite file": {
			func(t *testing.T, file string) { write(t, file, bytes.Repeat([]byte("mail "), 2000)) },
			[]string{"header", "nothing was changed", "--db"},
		},
		"cut short": {
			func(t *testing.T, file string) { write(t, file, []byte("SQLite")) },
			[]string{"header", "nothing was changed", "--db"},
		},
		"damaged inside": {
			func(t *testing.T, file string) {
				create(t, file)
				overwrite(t, file, 8192, bytes.Repeat([]byte{0xff}, 4096))
			},
			[]string{"damaged", "nothing was changed", "--db"},
		},
		"of another schema": {
			func(t *testing.T, file string) {
				create(t, file)
				execute(t, file, "ALTER TABLE executions ADD COLUMN more INT")
			},
			[]string{"table executions", "version", "nothing was changed"},
		},
		"of another program": {
			func(t *testing.T, file string) { execute(t, file, "CREATE TABLE notes (id INT)") },
			[]string{"has no", "nothing was changed"},
		},
		"read-only": {
			func(t *testing.T, file string) {
				create(t, file)
				if err := os.Chmod(file, 0o444); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"read-only", "chmod u+w", "--db"},
		},
		"a folder": {
			func(t *testing.T, file string) {
				if err := os.Mkdir(file, 0o755); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"not a regular file", "--db"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state.db")
			test.make(t, file)
			before, _ := os.ReadFile(file)

			message := refused(t, exitFailed, "--port", "0", "--db", file)

			wantAll(t, message, append(test.want, file)...)
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestMissingFolderIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "state.db")
	wantAll(t, refused(t, exitFailed, "--port", "0", "--db", file), file, "create it")
}

// A log left by a removed database must not get into the new one.
func TestNewDatabaseIgnoresLeftOvers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	for _, suffix := range []string{"-wal", "-shm", ".new", ".new-journal"} {
		write(t, file+suffix, []byte("left over"))
	}
	db, err := openDatabase(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
	db, err = openDatabase(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
}

func TestOneFileHasOneLockWhateverItsName(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "state.db"), filepath.Join(folder, "link.db")
	create(t, file)
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	db, err := openDatabase(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDatabase(t.Context(), link); err == nil {
		t.Error("the second open is not refused")
	} else {
		wantAll(t, err.Error(), "in use")
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, file string) {
	t.Helper()
	if err := createSchema(t.Context(), file); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, file, statement string) {
	t.Helper()
	db, err := openSQLite(file, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, at int64, content []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(content, at); err != nil {
		t.Fatal(err)
	}
}
