package controller

import (
	"context"
	"sync"
)

// watch lets callers wait for the next change: of anything, or of what one host
// is to do, so that a change does not wake every host of a large cluster.
type watch struct {
	mu       sync.Mutex
	revision int64
	changed  chan struct{}            // closed at the next change
	hosts    map[string]chan struct{} // the same for a host, where someone waits
}

func newWatch() *watch {
	return &watch{changed: make(chan struct{}), hosts: map[string]chan struct{}{}}
}

// advance tells all who wait that there is a newer revision, and who waits for
// one of the hosts.
func (w *watch) advance(revision int64, hosts []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range hosts {
		if waits, there := w.hosts[name]; there {
			close(waits)
			delete(w.hosts, name)
		}
	}
	if revision <= w.revision {
		return
	}
	w.revision = revision
	close(w.changed)
	w.changed = make(chan struct{})
}

// all tells all who wait that anything may have changed.
func (w *watch) all(revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, waits := range w.hosts {
		close(waits)
		delete(w.hosts, name)
	}
	w.revision = max(w.revision, revision)
	close(w.changed)
	w.changed = make(chan struct{})
}

// next answers a channel that is closed at the next change.
func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// nextOf answers a channel that is closed when a host's work changes.
func (w *watch) nextOf(host string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.hosts[host]; !there {
		w.hosts[host] = make(chan struct{})
	}
	return w.hosts[host]
}

// poll tries until try answers true or ctx ends; it tries anew whenever what
// next answers is closed.
func poll(ctx context.Context, next func() <-chan struct{}, try func() (bool, error)) error {
	for {
		changed := next()
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
