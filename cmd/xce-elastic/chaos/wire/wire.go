// Package wire puts itself between two programs: a proxy for one TCP connection after another, which can cut
// them, let nothing pass, or slow them down, when it is told to.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Wire leads from an address of its own to another.
type Wire struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	state state
	news  chan struct{} // closed at the next change of the state
	pairs map[*pair]bool
	all   sync.WaitGroup
}

// state is how the wire is: intact where it is zero.
type state struct {
	cut, hole bool
	delay     time.Duration
	closed    bool
}

// pair is one connection through the wire.
type pair struct{ near, far net.Conn }

// New lays a wire to an address; its own is chosen by the system.
func New(target string) (*Wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lay a wire to %s: %w", target, err)
	}
	w := &Wire{listener: listener, target: target, news: make(chan struct{}), pairs: map[*pair]bool{}}
	w.all.Go(w.accept)
	return w, nil
}

// Address is where the wire begins.
func (w *Wire) Address() string { return w.listener.Addr().String() }

// Cut resets all connections, and those that are tried until it is healed.
func (w *Wire) Cut() { w.set(state{cut: true}) }

// Hole lets nothing pass any more in either direction; connections stay.
func (w *Wire) Hole() { w.set(state{hole: true}) }

// Delay lets each piece wait before it passes.
func (w *Wire) Delay(by time.Duration) { w.set(state{delay: by}) }

// Heal makes the wire intact. What waited in a hole passes.
func (w *Wire) Heal() { w.set(state{}) }

// Close ends the wire and all its connections.
func (w *Wire) Close() error {
	w.set(state{cut: true, closed: true})
	err := w.listener.Close()
	w.all.Wait()
	return err
}

func (w *Wire) set(s state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.closed {
		return
	}
	w.state = s
	close(w.news)
	w.news = make(chan struct{})
	if s.cut {
		for p := range w.pairs {
			p.reset()
		}
	}
}

func (w *Wire) now() (state, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.news
}

// reset ends both sides with a reset, not in order.
func (p *pair) reset() {
	for _, c := range []net.Conn{p.near, p.far} {
		if c == nil {
			continue
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

func (w *Wire) accept() {
	for {
		near, err := w.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		w.all.Go(func() { w.carry(&pair{near: near}) })
	}
}

// pass waits until something may pass, and tells whether it may at all.
func (w *Wire) pass() bool {
	for {
		s, news := w.now()
		switch {
		case s.cut:
			return false
		case s.hole:
			<-news
			continue
		case s.delay > 0:
			select {
			case <-time.After(s.delay):
			case <-news:
				continue
			}
		}
		return true
	}
}

// carry joins the two sides of a connection until either ends.
func (w *Wire) carry(p *pair) {
	if !w.pass() {
		p.reset()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.target)
	cancel()
	if err != nil {
		p.reset()
		return
	}
	p.far = far
	if !w.add(p) {
		p.reset()
		return
	}
	defer w.remove(p)
	var both sync.WaitGroup
	both.Go(func() { w.copy(p.far, p.near) })
	both.Go(func() { w.copy(p.near, p.far) })
	both.Wait()
	_, _ = p.near.Close(), p.far.Close()
}

func (w *Wire) add(p *pair) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.cut {
		return false
	}
	w.pairs[p] = true
	return true
}

func (w *Wire) remove(p *pair) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pairs, p)
}

// copy carries what comes from one side to the other, piece by piece. The end of one side is passed on; a fault
// ends both.
func (w *Wire) copy(to, from net.Conn) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if !w.pass() {
				return
			}
			if _, err := to.Write(piece[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if w.pass() {
				_ = to.(*net.TCPConn).CloseWrite()
			}
			return
		case err != nil:
			_ = to.Close()
			return
		}
	}
}
