package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// errLeaseOver is why what is done under a lease is ended.
var errLeaseOver = errors.New("the lease is over")

// held is a lease as its holder has it: it is over unless it is renewed before.
// Time is measured by the process's monotonic clock from before the lease was
// asked for, so that it is over here before it is over for the controller.
type held struct {
	api.Claim
	// over ends all that is done under the lease.
	over  context.Context
	end   context.CancelCauseFunc
	guard Guard

	// running are the activities that are under way under it.
	running sync.WaitGroup

	mu    sync.Mutex
	until time.Time
	timer *time.Timer
}

func hold(claim api.Claim, until time.Time, guard Guard) *held {
	over, end := context.WithCancelCause(context.Background())
	h := &held{Claim: claim, end: end, until: until, guard: guard}
	h.over = providers.WithWatch(over, h.watch)
	h.timer = time.AfterFunc(time.Until(until), h.lose)
	h.tellGuard()
	return h
}

// Guard ends scripts when their lease is over, even where this process is stopped.
type Guard interface {
	Hold(lease string, d time.Duration) error
	Run(lease string, group int) (ended func(), err error)
}

// guarded is the name of the lease for the guard.
func (h *held) guarded() string { return fmt.Sprintf("%s/%d", h.Provider, h.Epoch) }

// tellGuard tells the guard until when scripts may run. Who cannot be told
// guards nothing, so that nothing may run.
func (h *held) tellGuard() {
	if err := h.guard.Hold(h.guarded(), time.Until(h.until)); err != nil {
		h.end(err)
	}
}

func (h *held) watch(group int) (ended func()) {
	ended, err := h.guard.Run(h.guarded(), group)
	if err != nil {
		h.end(err)
	}
	return ended
}

// renew lets the lease last longer; it answers false where it is over already.
func (h *held) renew(until time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.valid() {
		return false
	}
	h.until = until
	h.timer.Reset(time.Until(until))
	h.tellGuard()
	return true
}

// Valid tells whether something may be begun under the lease. After the process
// was stopped for a while it is right before any timer could be.
func (h *held) Valid() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.valid()
}

func (h *held) valid() bool {
	if !h.past() {
		return h.over.Err() == nil
	}
	h.lose()
	return false
}
