package controllertest

import (
	"sync/atomic"

	"xce.internal/elastic/cluster"
)

// Clock stands still until it is moved.
type Clock struct{ now atomic.Int64 }

// NewClock answers a clock at the beginning of 2026.
func NewClock() *Clock {
	c := &Clock{}
	c.now.Store(1_767_225_600_000)
	return c
}

// Now answers the clock's time.
func (c *Clock) Now() cluster.Time { return cluster.Time(c.now.Load()) }

// Advance moves the clock.
func (c *Clock) Advance(d cluster.Duration) { c.now.Add(int64(d)) }
