package worker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"xce.internal/elastic/controller/api"
)

// controllerOfLeases is the part of the controller that gives leases.
type controllerOfLeases interface {
	TendLeases(ctx context.Context, in api.TendLeases) (api.Tended, error)
}

// post is what is done for one provider under its lease: its task queues are polled.
type post interface {
	// Leave ends it: nothing more is begun, and what runs is waited for. It may be
	// called again.
	Leave()
}

// tender gets leases and keeps them, and mans a post for each.
type tender struct {
	controller controllerOfLeases
	// man begins to act for a provider.
	man      func(*held) (post, error)
	guard    Guard
	instance string
	owns     []string
	prefers  []string
	log      *slog.Logger
	// changed is told whenever a lease was got.
	changed func()

	kick chan struct{}
	mu   sync.Mutex
	// posts are those that are manned, or still end what they do.
	posts map[string]*manned
	// silent tells that the last call failed, and answered when the last one succeeded.
	silent   bool
	answered time.Time
	life     time.Duration // of leases, as the controller said last
	// leaving tells that the provisioner stops.
	leaving bool
}

// manned is a post with its lease.
type manned struct {
	*held
	post
	leaving bool
	left    chan struct{} // closed once nothing is done any more
}

// leave has the post end what it does.
func (m *manned) leave(told func()) {
	if m.leaving {
		return
	}
	m.leaving = true
	go func() {
		m.Leave()
		m.lose() // what goes on in spite of that is ended now, and is waited for
		m.running.Wait()
		close(m.left)
		told()
	}()
}

func (m *manned) gone() bool {
	select {
	case <-m.left:
		return true
	default:
		return false
	}
}

const (
	// firstLife is how long leases are taken to last before the controller said it.
	firstLife = 3 * time.Second
	// callsPerLife is how often in a lease's life it is renewed, and margin what part
	// of it is kept for ending what is done under it.
	callsPerLife = 3
	margin       = 5
	retriesMost  = time.Second
)

// run tends leases until ctx ends.
func (t *tender) run(ctx context.Context) {
	for {
		pause := t.tend(ctx, false)
		select {
		case <-ctx.Done():
			return
		case <-t.kick:
		case <-time.After(pause):
		}
	}
}

// Kick has leases looked after at once.
func (t *tender) Kick() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// tend calls the controller once, and answers when to call again.
func (t *tender) tend(ctx context.Context, stops bool) time.Duration {
	in, life := t.call()
	in.Stops = stops
	asked := time.Now()
	call, cancel := context.WithTimeout(ctx, max(life/callsPerLife, retriesMost))
	defer cancel()
	out, err := t.controller.TendLeases(call, in)
	if err != nil {
		return t.failed(ctx, err, life)
	}
	t.take(in.Gives, out, asked)
	return out.TimeToLive.Std() / callsPerLife
}

// call is what is to be said of this provisioner now, and how long leases last.
func (t *tender) call() (in api.TendLeases, life time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return api.TendLeases{Instance: t.instance, Owns: t.owns, Prefers: t.prefers, Gives: t.given(), Leaving: t.leaving}, t.life
}

// given are the providers for which nothing is done any more.
func (t *tender) given() (gives []string) {
	for _, provider := range slices.Sorted(maps.Keys(t.posts)) {
		if t.posts[provider].gone() {
			gives = append(gives, provider)
		}
	}
	return gives
}

// failed answers how soon to try again.
func (t *tender) failed(ctx context.Context, err error, life time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.silent && ctx.Err() == nil {
		t.log.Warn("leases are not renewed; trying again", "error", err)
	}
	t.silent = true
	return min(life/10, retriesMost)
}

// take carries out what the controller answered.
func (t *tender) take(gave []string, out api.Tended, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.silent {
		t.log.Info("leases are renewed again")
	}
	t.silent, t.answered, t.life = false, asked, out.TimeToLive.Std()
	until := asked.Add(t.life - t.life/margin)
	for _, provider := range gave {
		delete(t.posts, provider)
	}
	holds := map[string]bool{}
	for _, l := range out.Leases {
		holds[l.Provider] = true
		t.keep(l, until)
	}
	for provider, m := range t.posts {
		if !holds[provider] {
			t.lose(m, "another may act for it")
		}
	}
}

// keep renews a lease, or begins to act under a new one.
func (t *tender) keep(l api.HeldLease, until time.Time) {
	m, manned := t.posts[l.Provider]
	switch {
	case !manned:
		t.begin(l, until)
	case m.Epoch != l.Epoch || !m.renew(until):
		t.lose(m, "it was not renewed in time")
	case l.MoveTo != "" && !m.leaving:
		t.log.Info("lease is to move; ending what runs", "provider", l.Provider, "to", l.MoveTo)
		m.leave(t.Kick)
	}
}

func (t *tender) begin(l api.HeldLease, until time.Time) {
	m := &manned{held: hold(api.Claim{Provider: l.Provider, Epoch: l.Epoch}, until, t.guard), left: make(chan struct{})}
	p, err := t.man(m.held)
	if err != nil {
		t.log.Error("cannot act for provider", "provider", l.Provider, "error", err)
		m.lose()
		return
	}
	m.post = p
	t.posts[l.Provider] = m
	t.log.Info("lease held", "provider", l.Provider, "epoch", l.Epoch)
	t.changed()
	// Whatever ends the lease, be it the timer or a refused change, ends the post.
	context.AfterFunc(m.over, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lose(m, context.Cause(m.over).Error())
	})
}

// lose ends all that is done under a lease, at once.
func (t *tender) lose(m *manned, why string) {
	m.lose()
	if !m.leaving {
		t.log.Warn("lease lost", "provider", m.Provider, "epoch", m.Epoch, "why", why)
		m.leave(t.Kick)
	}
}

// Holds tells whether the provisioner acts for a provider now.
func (t *tender) Holds(provider string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, manned := t.posts[provider]
	return manned && m.Valid()
}

// Ready answers why leases are not tended; nil where they are.
func (t *tender) Ready() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.silent || t.answered.IsZero() {
		return errors.New("no answer from the controller")
	}
	return nil
}

// finish ends everything in order: what runs is waited for as long as ctx lasts,
// while leases are renewed, and then they are given up.
func (t *tender) finish(ctx context.Context) {
	t.mu.Lock()
	t.leaving = true
	posts := slices.Collect(maps.Values(t.posts))
	for _, m := range posts {
		m.leave(t.Kick)
	}
	t.mu.Unlock()
	for _, m := range posts {
		for !m.gone() && ctx.Err() == nil {
			pause := t.tend(ctx, false)
			select {
			case <-m.left:
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		m.lose()
	}
	t.tend(context.WithoutCancel(ctx), true)
}
