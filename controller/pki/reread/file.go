// Package reread reads files again when they have changed, so that what is in
// them is taken up without a restart.
package reread

import (
	"os"
	"sync"
	"time"
)

// tellEvery is how often it is told again that files cannot be read.
const tellEvery = time.Minute

// File is what was read from one file, or from some that go together. It is safe
// for use by several at once.
type File[T any] struct {
	paths  []string
	read   func() (T, error)
	failed func(error)

	mu    sync.Mutex
	value T
	seen  []os.FileInfo // as they were before they were read last
	fault error         // of the last reading
	told  time.Time
}

// Open reads files for the first time. failed is told when they cannot be read
// later on, at first and then every minute; until they can, what was read before
// stays.
func Open[T any](read func() (T, error), failed func(error), paths ...string) (*File[T], error) {
	f := &File[T]{paths: paths, read: read, failed: failed, seen: look(paths)}
	f.value, f.fault = read()
	return f, f.fault
}

// Get answers what is in the files now, or what was in them when they could be
// read last.
func (f *File[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := look(f.paths); !same(f.seen, now) {
		f.seen, f.told = now, time.Time{}
		value, err := f.read()
		if f.fault = err; err == nil {
			f.value = value
		}
	}
	if f.fault != nil && time.Since(f.told) >= tellEvery {
		f.told = time.Now()
		f.failed(f.fault)
	}
	return f.value
}

// look answers what files are like; nil stands for one that cannot be looked at.
func look(paths []string) []os.FileInfo {
	infos := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			infos[i] = info
		}
	}
	return infos
}

func same(before, now []os.FileInfo) bool {
	for i, b := range before {
		n := now[i]
		if (b == nil) != (n == nil) {
			return false
		}
		if b != nil && (!os.SameFile(b, n) || b.Size() != n.Size() || !b.ModTime().Equal(n.ModTime())) {
			return false
		}
	}
	return true
}
