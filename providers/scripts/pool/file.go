package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// poolFile is where a pool is kept: the file itself, FILE.lock for the turn to change it, and FILE.log,
// the journal. Readers need no turn, as the file is only ever replaced whole.
type poolFile struct{ path string }

// openFile follows links, so that a link to the pool is never replaced by a copy of the pool.
func openFile(path string) (poolFile, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return poolFile{}, fmt.Errorf("pool file: %w: make one with pool init, or correct the path", err)
	}
	return poolFile{real}, nil
}

func (f poolFile) read() (*pool, error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("pool file: %w: see who may read it", err)
	}
	p := new(pool)
	if err := decodeStrictly(text, p); err != nil {
		return nil, f.corrupt(err)
	}
	if err := p.check(); err != nil {
		return nil, f.corrupt(err)
	}
	return p, nil
}

func (f poolFile) corrupt(err error) error {
	return fmt.Errorf("pool file %s is corrupt (%w): nothing was changed; correct it by hand, or restore it with the help of %s.log",
		f.path, err, f.path)
}

// decodeStrictly refuses what this program does not know, as it would be lost in writing the file back.
func decodeStrictly(text []byte, into any) error {
	if !json.Valid(text) {
		return json.Unmarshal(text, new(any)) // says where
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// change reads the pool, applies act and writes it back, with nobody else in between. When act fails,
// nothing is written.
func (f poolFile) change(act func(*pool) error) error {
	if err := f.writable(); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	p, err := f.read()
	if err != nil {
		return err
	}
	if err := f.appendJournal(p); err != nil {
		return err
	}
	p.Unlogged = nil
	if err := act(p); err != nil {
		return err
	}
	if err := f.write(p, os.Rename); err != nil {
		return err
	}
	return f.appendJournal(p)
}

// writable respects a file that somebody made read-only, which renaming over it would not.
func (f poolFile) writable() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("pool file: %w: make one with pool init, or correct the path", err)
	}
	err = unix.Access(f.path, unix.W_OK)
	if info.Mode().Perm()&0o222 == 0 {
		err = fs.ErrPermission
	}
	if err != nil {
		return fmt.Errorf("pool file %s may not be written (%w): nothing was changed; allow it with chmod or chown", f.path, err)
	}
	return nil
}

// lock waits for the turn. The lock is on a file of its own because the pool file is replaced; the kernel
// lets go of it when the process ends, however it ends.
func (f poolFile) lock() (unlock func(), err error) {
	file, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("lock of the pool: %w: allow writing in the folder", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w: the file system must support flock", file.Name(), err)
	}
	return func() { file.Close() }, nil
}

// create writes a new pool and refuses to replace one.
func (f poolFile) create(p *pool) error {
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(f.path + ".log"); err == nil {
		return fmt.Errorf("journal %s.log of an older pool is there: move it away", f.path)
	}
	if err := f.write(p, linkNew); err != nil {
		return err
	}
	return f.appendJournal(p)
}

// linkNew is a rename that fails when the target exists.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return fmt.Errorf("%w: choose another name, or remove the old pool", err)
	}
	return os.Remove(from)
}

// write makes the new content durable before it takes the place of the old: after a crash at any point
// the file is either the old one or the new one.
func (f poolFile) write(p *pool, replace func(from, to string) error) error {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("pool file %s: %w", f.path, err)
	}
	temporary, err := f.temporary(append(text, '\n'))
	if err == nil {
		err = replace(temporary, f.path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(f.path))
	}
	if err != nil {
		if temporary != "" {
			_ = os.Remove(temporary) // it is gone already when only the last step failed
		}
		return fmt.Errorf("pool file %s not written: %w", f.path, err)
	}
	return nil
}

// temporary writes beside the pool file, under a fixed name that the lock makes ours alone. What a killed
// process left there goes first: it may belong to another user.
func (f poolFile) temporary(text []byte) (string, error) {
	name := f.path + ".new"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := keepAccess(file, f.path); err != nil {
		return name, err
	}
	if _, err := file.Write(text); err != nil {
		return name, err
	}
	return name, file.Sync()
}

// keepAccess gives the new file the mode and group of the old, so that no cluster is shut out.
func keepAccess(file *os.File, old string) error {
	info, err := os.Stat(old)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner, known := info.Sys().(*syscall.Stat_t); known {
		if err := chgrp(file, int(owner.Gid)); err != nil {
			return fmt.Errorf("group of %s: %w: be a member of it, or set the group bit of the folder", old, err)
		}
	}
	return file.Chmod(info.Mode().Perm())
}

func chgrp(file *os.File, group int) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if owner, known := info.Sys().(*syscall.Stat_t); known && int(owner.Gid) == group {
		return nil
	}
	return file.Chown(-1, group)
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// appendJournal adds the changes that the journal does not have yet. The pool file carries its latest
// changes until the next writer has seen them here, so each change stands here exactly once, whenever a
// process is killed: before the rename nothing happened, after it somebody will append.
func (f poolFile) appendJournal(p *pool) error {
	path := f.path + ".log"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return fmt.Errorf("journal: %w: allow writing it; the pool file is whole", err)
	}
	defer file.Close()
	last, end, err := lastLine(file)
	if err == nil && last > p.Sequence {
		err = fmt.Errorf("it knows change %d, the pool file only %d", last, p.Sequence)
	}
	if err != nil {
		return fmt.Errorf("journal %s does not fit the pool file: %w: move it away; a new one will be begun", path, err)
	}
	lines, err := newLines(p.Unlogged, last)
	if err == nil {
		err = writeTail(file, lines, end)
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w: make room, or allow writing it; the pool file is whole", path, err)
	}
	return nil
}

func newLines(changes []change, last int64) (lines []byte, err error) {
	for _, entry := range changes {
		if entry.Sequence <= last {
			continue
		}
		line, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines, nil
}

// writeTail writes at the end of the last whole line, over what a killed process left half written.
func writeTail(file *os.File, lines []byte, end int64) error {
	if len(lines) == 0 {
		return nil
	}
	if err := file.Truncate(end); err != nil {
		return err
	}
	if _, err := file.WriteAt(lines, end); err != nil {
		return err
	}
	return file.Sync()
}

// lastLine answers the sequence number in the last whole line, and where that line ends.
func lastLine(file *os.File) (sequence, end int64, err error) {
	const longest = 8 << 10 // names and ids are limited far below
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, 0, err
	}
	begin := max(0, size-longest)
	tail := make([]byte, size-begin)
	if _, err := file.ReadAt(tail, begin); err != nil {
		return 0, 0, err
	}
	whole := bytes.LastIndexByte(tail, '\n') + 1
	if whole == 0 && begin > 0 {
		return 0, 0, errors.New("its end is no line")
	}
	if whole == 0 {
		return 0, 0, nil
	}
	line := tail[bytes.LastIndexByte(tail[:whole-1], '\n')+1 : whole]
	var entry change
	if err := json.Unmarshal(line, &entry); err != nil {
		return 0, 0, fmt.Errorf("its last line is no change (%w)", err)
	}
	return entry.Sequence, begin + int64(whole), nil
}
