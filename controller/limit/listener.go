package limit

import (
	"net"
	"net/netip"
	"sync"
)

// Listener answers a listener that closes connections at once of which there
// are too many, altogether or from one address.
func (l Limits) Listener(inner net.Listener) net.Listener {
	return &listener{Listener: inner, limits: l, from: map[string]int64{}}
}

type listener struct {
	net.Listener
	limits Limits

	mu   sync.Mutex
	all  int64
	from map[string]int64 // by address; one without connections is not in it
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := Address(conn.RemoteAddr().String())
		if l.take(address) {
			return &connection{Conn: conn, release: sync.OnceFunc(func() { l.release(address) })}, nil
		}
		_ = conn.Close() // there is no one to tell
	}
}

func (l *listener) take(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.limits.Connections || l.from[address] >= l.limits.AddressConnections {
		return false
	}
	l.all++
	l.from[address]++
	return true
}

func (l *listener) release(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.from[address]--; l.from[address] == 0 {
		delete(l.from, address)
	}
}

// connection is counted until it is closed.
type connection struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.release()
	return c.Conn.Close()
}

// subnet is the part of an IPv6 address that one machine has for itself.
const subnet = 64

// Address answers who is counted together for a "host:port" that calls: one
// address, or of IPv6 one network, since a machine there has any number.
func Address(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	network, err := address.Prefix(subnet)
	if err != nil {
		return address.String()
	}
	return network.String()
}
