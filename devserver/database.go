package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// sqliteMagic is how every SQLite file begins.
const sqliteMagic = "SQLite format 3\x00"

// remedyDatabase is what to do about a file that cannot be used.
const remedyDatabase = "nothing was changed; restore the file from a backup, move it away, or start with another --db"

// database is the SQLite file of one running devserver. A nil database is
// state in memory.
type database struct {
	path string
	lock *os.File
}

// openDatabase makes sure that the file may be handed to the server: it is
// ours alone, writable, healthy and of this server's schema. An absent or
// empty file is created. A file that is refused is not touched.
func openDatabase(ctx context.Context, path string) (db *database, err error) {
	if path == "" {
		return nil, nil
	}
	path, err = realPath(path)
	if err != nil {
		return nil, err
	}
	size, err := checkFile(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	db = &database{path: path, lock: lock}
	if size == 0 {
		err = createSchema(ctx, path)
	} else {
		err = checkContent(ctx, path)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return db, nil
}

// realPath is the absolute path without symbolic links, so that one file has
// one name and one lock. The file itself may be absent.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("database %s: cannot find its absolute path, give one in --db: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("database %s: its folder cannot be reached, create it first or use another --db: %w", path, err)
	}
	return filepath.Join(folder, filepath.Base(path)), nil
}

// checkFile refuses what is no writable SQLite file and returns the size; 0
// also means absent.
func checkFile(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("database %s cannot be read: check the rights of its folder: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("database %s is not a regular file: give a file in --db", path)
	}
	if err := checkWritable(path, info); err != nil {
		return 0, fmt.Errorf("database %s is read-only: make it writable (chmod u+w), or start with another --db: %w", path, err)
	}
	if info.Size() == 0 {
		return 0, nil
	}
	if err := checkMagic(path); err != nil {
		return 0, fmt.Errorf("database %s is damaged or no SQLite file: %w; %s", path, err, remedyDatabase)
	}
	return info.Size(), nil
}

// checkWritable also honours a file without any write permission when the
// caller is root, whom the system would let write.
func checkWritable(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o222 == 0 {
		return fs.ErrPermission
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

func checkMagic(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	start := make([]byte, len(sqliteMagic))
	if _, err := io.ReadFull(file, start); err != nil {
		return fmt.Errorf("its header is cut short: %w", err)
	}
	if !bytes.Equal(start, []byte(sqliteMagic)) {
		return errors.New("its header is not SQLite's")
	}
	return nil
}

// lockFile takes the file's exclusive lock, which the system drops when the
// process ends, however it ends. The lock is on a file of its own: closing a
// second handle on the database would drop SQLite's locks.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("its lock file cannot be opened, make the folder writable or use another --db: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(file, 32))
		err = fmt.Errorf("in use by another devserver (pid %s): stop that one, or use another --db", bytes.TrimSpace(holder))
	}
	if err == nil {
		err = writePID(file)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("cannot write lock file %s: %w", file.Name(), err)
	}
	if _, err := fmt.Fprintln(file, os.Getpid()); err != nil {
		return fmt.Errorf("cannot write lock file %s: %w", file.Name(), err)
	}
	return nil
}

// close moves what is still in the write-ahead log into the file, so that
// after a graceful stop the one file is the whole state, and gives it free.
func (d *database) close() error {
	if d == nil {
		return nil
	}
	return errors.Join(checkpoint(d.path), d.lock.Close())
}
