// Package private keeps other users of a machine out of files with secrets or
// commands in them. What we write ourselves is mended where its mode is too wide;
// what we are only given to read is refused, since its owner must know.
//
//	Check   keys, join files, files of secrets: given to us
//	Mend    the state of the controller, its lock and log, records: ours
//	Folder  folders of ours
//
// None of it depends on the umask.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	others = 0o007 // nothing at all for other users
	theirs = 0o022 // and no writing for the group either
)

// Check refuses a file that other users could read, or its group write. A group
// may read it, as services have that share a key.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return check(path, info.Mode().Perm())
}

func check(path string, mode fs.FileMode) error { return refuse(path, mode, others|theirs) }

// refuse refuses a mode that has any of the bits.
func refuse(path string, mode, bits fs.FileMode) error {
	if mode&bits == 0 {
		return nil
	}
	return fmt.Errorf("%s has mode %04o, so that other users can get at what is secret in it: chmod 600 it, and renew the secret if they may have read it", path, mode)
}

// Read answers the content of a file that Check does not refuse. It looks at the
// file that it reads, so that nobody can put another in its place meanwhile.
func Read(path string, most int64) ([]byte, error) { return read(path, most, others|theirs) }

// ReadOwn is Read of a file that no one but its owner may even read.
func ReadOwn(path string, most int64) ([]byte, error) { return read(path, most, fs.ModePerm&^0o600) }

func read(path string, most int64, bits fs.FileMode) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, fmt.Errorf("%s is no plain file: name one", path)
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes, at most %d may be: name another file", path, info.Size(), most)
	}
	if err := refuse(path, info.Mode().Perm(), bits); err != nil {
		return nil, err
	}
	text := make([]byte, info.Size())
	n, err := file.ReadAt(text, 0)
	if err != nil && n < len(text) {
		return nil, err
	}
	return text, nil
}

// Mend takes what is too much from the mode of a file of ours, and says whether it
// had to. One that is absent is left so. Where the file is another user's, who
// alone can mend it, it is refused.
func Mend(path string) (mended bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mode := info.Mode().Perm()
	if mode&0o077 == 0 {
		return false, nil
	}
	if err := os.Chmod(path, mode&^0o077); err != nil {
		return false, fmt.Errorf("%s has mode %04o, so that other users can read it, and cannot be mended (%w): chown it to this user", path, mode, err)
	}
	return true, nil
}

// Open opens a file of ours as os.OpenFile does; a new one is its owner's alone
// whatever the umask is, and one that was there is mended.
func Open(path string, flag int) (*os.File, error) {
	file, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm() != info.Mode().Perm()&^0o077|0o600 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep %s to this user: %w: chown it to this user", path, err), file.Close())
	}
	return file, nil
}

// Write writes a file whole that is its owner's alone.
func Write(path string, text []byte) error {
	file, err := Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// Replace writes a file whole that is its owner's alone, and puts it in the place of
// the one that is there, which others may read meanwhile.
func Replace(path string, text []byte) error {
	if err := Write(path+".new", text); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Folder makes a folder of ours where there is none, whatever the umask is. One
// that was there stays as it is: what is in it is kept by its own modes.
func Folder(path string) error {
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o700)
}
