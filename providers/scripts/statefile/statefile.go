// Package statefile keeps the state of a provider script in one JSON file, with a journal beside it. The
// file is only ever replaced whole, by one process at a time, so a process may be killed at any moment.
package statefile

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

// File is where a state is kept: the file itself, PATH.lock for the turn to change it, and PATH.log, the
// journal. Readers need no turn.
type File struct {
	Path   string
	Script string // whose file it is; SCRIPT init makes one
}

// State is what a file holds. It embeds Changes.
type State interface {
	// Check finds what no file may hold; such a file is never written over.
	Check() error
	// Last is the number of the last change.
	Last() int64
	// Lines has the journal's lines of the latest changes, of those after a number.
	Lines(after int64) ([]byte, error)
	// Logged forgets the latest changes: the journal has them.
	Logged()
}

// Entry is one change of a state: one line of its journal.
type Entry interface {
	// Number is 1 for the first change, and one more for each.
	Number() int64
}

// Changes counts the changes of a state, and carries the latest until the journal has them for certain.
type Changes[E Entry] struct {
	Sequence int64 `json:"sequence"`           // of the last change
	Unlogged []E   `json:"unlogged,omitempty"` // the latest changes; the journal may not have them yet
}

// Last is the number of the last change.
func (c *Changes[E]) Last() int64 { return c.Sequence }

// Logged forgets the changes that the journal has.
func (c *Changes[E]) Logged() { c.Unlogged = nil }

// Lines answers the lines of the changes after a number.
func (c *Changes[E]) Lines(after int64) (lines []byte, err error) {
	for _, entry := range c.Unlogged {
		if entry.Number() <= after {
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

// Open follows links, so that a link to the file is never replaced by a copy of it.
func Open(script, path string) (File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return File{}, fmt.Errorf("%s file: %w: make one with %s init, or correct the path", script, err, script)
	}
	return File{Path: real, Script: script}, nil
}

// Read reads the file as it is now.
func (f File) Read(into State) error {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return fmt.Errorf("%s file: %w: see who may read it", f.Script, err)
	}
	if err := decodeStrictly(text, into); err != nil {
		return f.corrupt(err)
	}
	if err := into.Check(); err != nil {
		return f.corrupt(err)
	}
	return nil
}

func (f File) corrupt(err error) error {
	return fmt.Errorf("%s file %s is corrupt (%w): nothing was changed; correct it by hand, or restore it with the help of %s.log",
		f.Script, f.Path, err, f.Path)
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

// Change reads the file into a new state, lets act change it and writes it back, with nobody else in
// between. When act fails, nothing is written.
func (f File) Change(into State, act func() error) error {
	if err := f.writable(); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.Read(into); err != nil {
		return err
	}
	if err := f.AppendJournal(into); err != nil {
		return err
	}
	into.Logged()
	if err := act(); err != nil {
		return err
	}
	if err := f.write(into, os.Rename); err != nil {
		return err
	}
	return f.AppendJournal(into)
}

// writable refuses a file that anyone may write, and respects a file that somebody made read-only, which renaming over it would not.
func (f File) writable() error {
	info, err := os.Stat(f.Path)
	if err != nil {
		return fmt.Errorf("%s file: %w: make one with %s init, or correct the path", f.Script, err, f.Script)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s file %s may be written by anyone: nothing was changed; chmod o-w it, and see whether what it says is true", f.Script, f.Path)
	}
	err = unix.Access(f.Path, unix.W_OK)
	if info.Mode().Perm()&0o222 == 0 {
		err = fs.ErrPermission
	}
	if err != nil {
		return fmt.Errorf("%s file %s may not be written (%w): nothing was changed; allow it with chmod or chown", f.Script, f.Path, err)
	}
	return nil
}

// lock waits for the turn. The lock is on a file of its own because the other is replaced; the kernel
// lets go of it when the process ends, however it ends.
func (f File) lock() (unlock func(), err error) {
	file, err := os.OpenFile(f.Path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o664)
	if err != nil {
		return nil, fmt.Errorf("lock of the %s file: %w: allow writing in the folder", f.Script, err)
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

// Create writes a new file and refuses to replace one.
func (f File) Create(s State) error {
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(f.Path + ".log"); err == nil {
		return fmt.Errorf("journal %s.log of an older %s file is there: move it away", f.Path, f.Script)
	}
	if err := f.write(s, linkNew); err != nil {
		return err
	}
	return f.AppendJournal(s)
}

// linkNew is a rename that fails when the target exists.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return fmt.Errorf("%w: choose another name, or remove the old file", err)
	}
	return os.Remove(from)
}

// write makes the new content durable before it takes the place of the old: after a crash at any point
// the file is either the old one or the new one.
func (f File) write(s State, replace func(from, to string) error) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("%s file %s: %w", f.Script, f.Path, err)
	}
	temporary, err := f.temporary(append(text, '\n'))
	if err == nil {
		err = replace(temporary, f.Path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(f.Path))
	}
	if err != nil {
		if temporary != "" {
			_ = os.Remove(temporary) // it is gone already when only the last step failed
		}
		return fmt.Errorf("%s file %s not written: %w", f.Script, f.Path, err)
	}
	return nil
}

// temporary writes beside the file, under a fixed name that the lock makes ours alone. What a killed
// process left there goes first: it may belong to another user.
func (f File) temporary(text []byte) (string, error) {
	name := f.Path + ".new"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o664)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := keepAccess(file, f.Path); err != nil {
		return name, err
	}
	if _, err := file.Write(text); err != nil {
		return name, err
	}
	return name, file.Sync()
}

// keepAccess gives the new file the mode and group of the old, so that nobody is shut out.
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

// AppendJournal adds the changes that the journal does not have yet. The file carries its latest
// changes until the next writer has seen them here, so each change stands here exactly once, whenever a
// process is killed: before the rename nothing happened, after it somebody will append.
func (f File) AppendJournal(s State) error {
	path := f.Path + ".log"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o664)
	if err != nil {
		return fmt.Errorf("journal: %w: allow writing it; the %s file is whole", err, f.Script)
	}
	defer file.Close()
	last, end, err := lastLine(file)
	if err == nil && last > s.Last() {
		err = fmt.Errorf("it knows change %d, the file only %d", last, s.Last())
	}
	if err != nil {
		return fmt.Errorf("journal %s does not fit the %s file: %w: move it away; a new one will be begun", path, f.Script, err)
	}
	lines, err := s.Lines(last)
	if err == nil {
		err = writeTail(file, lines, end)
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w: make room, or allow writing it; the %s file is whole", path, err, f.Script)
	}
	return nil
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
	var entry struct {
		Sequence int64 `json:"sequence"`
	}
	if err := json.Unmarshal(line, &entry); err != nil {
		return 0, 0, fmt.Errorf("its last line is no change (%w)", err)
	}
	return entry.Sequence, begin + int64(whole), nil
}
