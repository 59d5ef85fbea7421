package limit_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/controller/limit"
)

// clock is moved by the test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func narrow() limit.Limits {
	l := limit.Defaults()
	l.Rate, l.Burst, l.StrangerRate, l.StrangerBurst, l.Calls, l.Polls = 10, 3, 1, 1, 2, 1
	return l
}

func newGuard(l limit.Limits) (*limit.Guard, *clock) {
	c := &clock{time.Unix(1_000_000, 0)}
	return limit.New(l, c.now), c
}

func TestAPeerThatCallsTooOftenIsToldWhenToComeAgain(t *testing.T) {
	g, c := newGuard(narrow())
	ann, bob := limit.Peer{Name: "submitter/ann"}, limit.Peer{Name: "submitter/bob"}
	for range 3 {
		done, no := g.Enter(ann)
		if no != nil {
			t.Fatalf("refused within its burst: %+v", no)
		}
		done()
	}
	_, no := g.Enter(ann)
	if no == nil || no.After != 100*time.Millisecond {
		t.Fatalf("got %+v, want to come again after 100ms", no)
	}
	if done, no := g.Enter(bob); no != nil {
		t.Errorf("another peer suffers: %+v", no)
	} else {
		done()
	}
	if _, no := g.Enter(limit.Peer{Name: ann.Name, Stranger: true}); no != nil {
		t.Errorf("a stranger at an address that is called as a peer is counted as it: %+v", no)
	}
	c.at = c.at.Add(no.After)
	if done, no := g.Enter(ann); no != nil {
		t.Errorf("refused when it came as it was told: %+v", no)
	} else {
		done()
	}
}

func TestCallsAndWaitingCallsOfAPeerAreCountedUntilTheyEnd(t *testing.T) {
	g, c := newGuard(narrow())
	p := limit.Peer{Name: "host/h1"}
	first, _ := g.Enter(p)
	second, _ := g.Enter(p)
	if _, no := g.Enter(p); no == nil || no.After <= 0 {
		t.Errorf("a third call at once gets %+v", no)
	}
	poll, no := g.Poll(p)
	if no != nil {
		t.Fatal(no)
	}
	if _, no := g.Poll(p); no == nil || no.After <= 0 {
		t.Errorf("a second waiting call gets %+v", no)
	}
	poll()
	first()
	second()
	c.at = c.at.Add(time.Minute)
	if poll, no := g.Poll(p); no != nil {
		t.Error(no)
	} else {
		poll()
	}
	if done, no := g.Enter(p); no != nil {
		t.Error(no)
	} else {
		done()
	}
}

// Whatever comes, no peer gets more than its burst and its rate over the time that passed.
func TestNoPeerGetsMoreThanItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := narrow()
		l.Rate, l.Burst = rapid.Int64Range(1, 50).Draw(t, "rate"), rapid.Int64Range(1, 20).Draw(t, "burst")
		g, c := newGuard(l)
		began, got := c.at, int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			c.at = c.at.Add(time.Duration(rapid.Int64Range(0, 200).Draw(t, "ms")) * time.Millisecond)
			if done, no := g.Enter(limit.Peer{Name: "a"}); no == nil {
				done()
				got++
			} else if no.After <= 0 {
				t.Fatalf("refused, and told to come at once: %+v", no)
			}
		}
		if most := l.Burst + int64(c.at.Sub(began).Seconds()*float64(l.Rate)) + 1; got > most {
			t.Fatalf("%d calls in %s, at most %d may be", got, c.at.Sub(began), most)
		}
	})
}

// A million strangers must neither fill the memory nor have peers forgotten.
func TestManyStrangersLeaveNoTraceAndHaveNoPeerForgotten(t *testing.T) {
	g, _ := newGuard(narrow())
	ann := limit.Peer{Name: "submitter/ann"}
	for range 3 {
		done, _ := g.Enter(ann)
		done()
	}
	for i := range 100_000 {
		if done, no := g.Enter(limit.Peer{Name: fmt.Sprint(i), Stranger: true}); no == nil {
			done()
		}
	}
	if known, strangers, going := g.Sizes(); known != 1 || strangers != 10_000 || going != 0 {
		t.Errorf("remembers %d peers, %d strangers and %d calls", known, strangers, going)
	}
	if _, no := g.Enter(ann); no == nil {
		t.Error("what a peer did is forgotten")
	}
}

func TestConnectionsBeyondTheLimitAreClosedAtOnce(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := narrow()
	l.AddressConnections = 2
	listener := l.Listener(inner)
	defer listener.Close()
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	dial()
	dial()
	first, second := <-accepted, <-accepted
	third := dial()
	if _, err := third.Read(make([]byte, 1)); err != io.EOF && err == nil {
		t.Errorf("the third connection stays open")
	}
	_ = first.Close()
	_ = first.Close() // twice counts once
	dial()
	<-accepted
	fifth := dial()
	if _, err := fifth.Read(make([]byte, 1)); err == nil {
		t.Errorf("closing one twice has made room for two")
	}
	_ = second.Close()
}

func TestOneMachineIsOneAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:70": "192.0.2.1", "[::ffff:192.0.2.1]:70": "192.0.2.1", "[2001:db8:1:2:3::4]:70": "2001:db8:1:2::/64", "[fe80::1%eth0]:7": "fe80::/64", "@": "@",
	} {
		if got := limit.Address(remote); got != want {
			t.Errorf("%s is %s, want %s", remote, got, want)
		}
	}
}

func TestLimitsThatLetNobodyInAreRefused(t *testing.T) {
	if ps := limit.Defaults().Validate("controller.limits"); len(ps) > 0 {
		t.Errorf("the defaults are refused: %v", ps)
	}
	var paths []string
	for _, p := range (limit.Limits{}).Validate("l") {
		paths = append(paths, p.Path)
		if p.Remedy == "" || p.What == "" {
			t.Errorf("%+v says too little", p)
		}
	}
	want := []string{"l.rate", "l.burst", "l.stranger_rate", "l.stranger_burst", "l.calls", "l.polls", "l.connections", "l.address_connections", "l.catalog_mb", "l.time"}
	if !slices.Equal(paths, want) {
		t.Errorf("refused are %q, want %q", paths, want)
	}
}
