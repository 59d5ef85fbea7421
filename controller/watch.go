package controller

import (
	"context"
	"sync"
)

// watch lets callers wait for the next change.
type watch struct {
	mu       sync.Mutex
	revision int64
	changed  chan struct{} // closed at the next change
}

func newWatch() *watch { return &watch{changed: make(chan struct{})} }

// advance tells all who wait that there is a newer revision.
func (w *watch) advance(revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if revision <= w.revision {
		return
	}
	w.revision = revision
	close(w.changed)
	w.changed = make(chan struct{})
}

// next answers a channel that is closed at the next change.
func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// poll tries until try answers true or ctx ends; it tries anew at every change.
func (w *watch) poll(ctx context.Context, try func() (bool, error)) error {
	for {
		changed := w.next()
		done, err := try()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
