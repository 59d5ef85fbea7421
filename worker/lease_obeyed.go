//go:build !stubborn

package worker

import "time"

// lose ends the lease now.
func (h *held) lose() { h.end(errLeaseOver) }

// past tells whether the lease's time has come.
func (h *held) past() bool { return !time.Now().Before(h.until) }
