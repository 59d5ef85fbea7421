package slurm

import (
	"context"
	"sync"

	"xce.internal/elastic/cluster"
)

// starts is when we first saw slurmctld's last start, since its clock need not be ours. Its zero
// value has seen none.
type starts struct {
	mu           sync.Mutex
	booted, seen cluster.Time
}

// saw notes when slurmctld says that it started, as read at a moment.
func (s *starts) saw(booted, at cluster.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.booted == booted:
	case s.booted == 0 && booted <= at: // it may have run for long
		s.booted, s.seen = booted, booted
	default:
		s.booted, s.seen = booted, at
	}
}

// since answers how long ago slurmctld started at least, by its clock and by when we saw it. Where its clock is
// ahead of ours, ours alone counts.
func (s *starts) since(booted, now cluster.Time) cluster.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := now.Sub(s.seen)
	if booted <= now {
		since = min(since, now.Sub(booted))
	}
	return since
}

// settings reads what slurmctld says of itself, and notes when it started.
func (b *Backend) settings(ctx context.Context) (Settings, error) {
	s, err := b.Commands.Settings(ctx)
	if err == nil {
		b.starts.saw(s.Booted, b.Now())
	}
	return s, err
}
