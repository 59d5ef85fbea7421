package wire

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

// echo answers each line with the same, and answers its address.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, lines.Text())
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func lay(t *testing.T, target string) *Wire {
	t.Helper()
	w, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func dial(t *testing.T, w *Wire) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", w.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a word and answers what comes back in time.
func ask(c net.Conn, word string, within time.Duration) (string, error) {
	if _, err := fmt.Fprintln(c, word); err != nil {
		return "", err
	}
	return hear(c, within)
}

func hear(c net.Conn, within time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	line, err := bufio.NewReader(c).ReadString('\n')
	return line, err
}

const (
	patience = 10 * time.Second
	moment   = 50 * time.Millisecond
)

func TestAnIntactWireCarriesBothWays(t *testing.T) {
	c := dial(t, lay(t, echo(t)))
	for _, word := range []string{"one", "two"} {
		if got, err := ask(c, word, patience); got != word+"\n" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestACutWireResetsConnectionsAndTakesNoneUntilItIsHealed(t *testing.T) {
	w := lay(t, echo(t))
	c := dial(t, w)
	if _, err := ask(c, "one", patience); err != nil {
		t.Fatal(err)
	}
	w.Cut()
	if _, err := hear(c, patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection through the cut: %v", err)
	}
	fresh, err := net.Dial("tcp", w.Address()) // it may be reset at once, or as soon as something is sent
	if err == nil {
		defer fresh.Close()
		_, err = ask(fresh, "two", patience)
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection through the cut: %v", err)
	}
	w.Heal()
	if got, err := ask(dial(t, w), "three", patience); got != "three\n" {
		t.Errorf("after it is healed: %q, %v", got, err)
	}
}

func TestInAHoleNothingPassesAndNothingIsLost(t *testing.T) {
	w := lay(t, echo(t))
	c := dial(t, w)
	if _, err := ask(c, "one", patience); err != nil {
		t.Fatal(err)
	}
	w.Hole()
	if _, err := ask(c, "two", moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("through the hole: %v", err)
	}
	fresh := dial(t, w)
	if _, err := ask(fresh, "three", moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("anew through the hole: %v", err)
	}
	w.Heal()
	for c, want := range map[net.Conn]string{c: "two\n", fresh: "three\n"} {
		if got, err := hear(c, patience); got != want {
			t.Errorf("after it is healed: %q, %v", got, err)
		}
	}
}

func TestADelayHoldsEachPieceUntilItIsHealed(t *testing.T) {
	w := lay(t, echo(t))
	c := dial(t, w)
	w.Delay(time.Hour)
	if _, err := ask(c, "one", moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at once: %v", err)
	}
	w.Delay(time.Millisecond)
	if got, err := hear(c, patience); got != "one\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAWireThatIsClosedInAHoleEnds(t *testing.T) {
	w, err := New(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, w)
	w.Hole()
	_, _ = fmt.Fprintln(c, "one")
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
