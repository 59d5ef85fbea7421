// Package store keeps the controller's state: in a file of SQLite for one
// controller, or in PostgreSQL for several. It knows rows, not rules.
//
// All writes of one change happen in one transaction ([Store.Update]); there is
// one writer at a time. A commit is on the disk when Update returns.
package store

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/migrate"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the "sqlite" driver

	"xce.internal/elastic/cluster/private"
)

// What both databases understand is in one folder; the rest is in one of each.
var (
	//go:embed migrations/*.sql
	commonFiles embed.FS
	//go:embed migrations/sqlite/*.sql
	sqliteFiles embed.FS
	//go:embed migrations/postgres/*.sql
	postgresFiles embed.FS

	fileMigrations   = []fs.FS{commonFiles, sqliteFiles}
	sharedMigrations = []fs.FS{commonFiles, postgresFiles}
)

// Memory is the path of a store that lives in memory only.
const Memory = ":memory:"

// Store is the controller's state.
type Store struct {
	db   *bun.DB
	lock *os.File
	// turn is held by the transaction that may write; the mirrors are its own.
	turn    chan struct{}
	mirrors mirrors
	// shared is nil where one controller has the state for itself.
	shared *shared
}

// Open opens the state, a file or the address of a database (see [IsShared]);
// makes the file where there is none, and brings its tables up to date. A file that is not a sound, writable database, or that
// another controller has open, is refused and left as it is.
func Open(ctx context.Context, path string) (*Store, error) {
	if IsShared(path) {
		return openShared(ctx, path)
	}
	if path == Memory {
		return open(ctx, path, "file::memory:", nil)
	}
	path, err := realPath(path)
	if err != nil {
		return nil, err
	}
	lock, err := claim(path)
	if err != nil {
		return nil, err
	}
	if err := check(ctx, path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := keepPrivate(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return open(ctx, path, fileDSN(path, "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)", "_pragma=busy_timeout(5000)", "_txlock=immediate"), lock)
}

// keepPrivate makes a new state file that only its owner can read, and mends one
// that others can, with what SQLite keeps beside it: it holds everyone's commands.
func keepPrivate(path string) error {
	for _, beside := range []string{path + "-wal", path + "-shm"} {
		if _, err := private.Mend(beside); err != nil {
			return fmt.Errorf("state file: %w", err)
		}
	}
	file, err := private.Open(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return fmt.Errorf("state file %s cannot be made; give its folder to this user, or name another file: %w", path, err)
	}
	return file.Close()
}

func open(ctx context.Context, path, dsn string, lock *os.File) (*Store, error) {
	pool, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open state file %s: %w", path, err), lock.Close())
	}
	pool.SetMaxOpenConns(1)
	s := &Store{db: bun.NewDB(pool, sqlitedialect.New()), lock: lock, turn: make(chan struct{}, 1)}
	if err := s.migrate(ctx, fileMigrations); err != nil {
		return nil, errors.Join(fmt.Errorf("bring state file %s up to date: %w", path, err), s.Close())
	}
	return s, nil
}

// realPath follows symbolic links, so that one file has one lock under all its
// names. The file itself may be absent.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", fmt.Errorf("state file %s: its folder must exist; make it, or name another file: %w", path, err)
		}
		return filepath.Join(folder, filepath.Base(path)), nil
	}
	if err != nil {
		return "", fmt.Errorf("state file %s cannot be reached; mend its path, or name another file: %w", path, err)
	}
	return real, nil
}

func fileDSN(path string, options ...string) string {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath()
	for i, o := range options {
		dsn += map[bool]string{true: "?", false: "&"}[i == 0] + o
	}
	return dsn
}

// claim makes sure that no other controller has the file.
func claim(path string) (*os.File, error) {
	lock, err := private.Open(path+".lock", os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("state file %s: its folder must exist and be writable: %w", path, err)
	}
	if err := flock(lock); err != nil {
		return nil, errors.Join(fmt.Errorf("state file %s is in use by another controller; stop it, or name another file: %w", path, err), lock.Close())
	}
	return lock, nil
}

// handover is how long one that ends just now is waited for: its last child may
// hold the lock a moment longer.
const handover = time.Second

func flock(file *os.File) error {
	for end := time.Now().Add(handover); ; time.Sleep(handover / 20) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// check refuses a file that is there but is no sound, writable database.
func check(ctx context.Context, path string) error {
	file, err := openWritable(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("state file %s cannot be opened for writing; make it writable for this user, or name another file: %w", path, err)
	}
	defer file.Close()
	header := make([]byte, 16)
	n, err := io.ReadFull(file, header)
	if n == 0 {
		return nil // a new, empty file
	}
	if err != nil || !bytes.Equal(header, []byte("SQLite format 3\x00")) {
		return fmt.Errorf("state file %s is not a database; nothing was changed; restore a backup, or move the file away", path)
	}
	return checkContent(ctx, path)
}

// openWritable refuses a file without any write permission to root too, whom
// the system would let write.
func openWritable(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o222 == 0 {
		err = fs.ErrPermission
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// checkContent refuses a database that is corrupt or not ours, without a trace:
// where no write-ahead log is left, none is made.
func checkContent(ctx context.Context, path string) error {
	mode := "mode=ro"
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		mode = "immutable=1"
	}
	db, err := sql.Open("sqlite", fileDSN(path, mode))
	if err != nil {
		return fmt.Errorf("check state file %s: %w", path, err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		verdict = err.Error()
	}
	if verdict != "ok" {
		return fmt.Errorf("state file %s is corrupt (%s); nothing was changed; restore a backup of %s and of its -wal file",
			path, verdict, filepath.Base(path))
	}
	var ours bool
	err = db.QueryRowContext(ctx, "SELECT count(*) = 0 OR total(name = 'bun_migrations') > 0 FROM sqlite_master").Scan(&ours)
	if err != nil {
		return fmt.Errorf("check state file %s: %w", path, err)
	}
	if !ours {
		return fmt.Errorf("state file %s is a database of another program; nothing was changed; name another file", path)
	}
	return nil
}

func (s *Store) migrate(ctx context.Context, files []fs.FS) error {
	all := migrate.NewMigrations()
	for _, folder := range files {
		if err := all.Discover(folder); err != nil {
			return fmt.Errorf("read migrations: %w", err)
		}
	}
	m := migrate.NewMigrator(s.db, all, migrate.WithMarkAppliedOnSuccess(true))
	if err := m.Init(ctx); err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	newer, err := m.MissingMigrations(ctx)
	if err != nil {
		return fmt.Errorf("read what was migrated: %w", err)
	}
	if len(newer) > 0 {
		return fmt.Errorf("a newer version of the controller has changed it (%s); nothing was changed; run that version", newer[0].Name)
	}
	if _, err := m.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Close closes the store.
func (s *Store) Close() error {
	err := s.db.Close()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
