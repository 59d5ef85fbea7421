package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

const (
	maxPort      = 65535
	servicePorts = 5 // front-end gRPC and HTTP, history, matching, worker
)

// port is one address of the server, held by a listener of ours until its
// real owner opens it. So a taken port is found before anything is started,
// and a picked one cannot be given to somebody else meanwhile.
type port struct {
	address netip.AddrPort
	held    net.Listener
}

// ports are all addresses the program listens on.
type ports struct {
	frontend, frontendHTTP    *port
	history, matching, worker *port
	ui                        *port // nil: no UI
}

// reservePorts holds every port the options ask for, or says which cannot be
// had and what to do.
func reservePorts(opts options) (*ports, error) {
	p := &ports{}
	if err := errors.Join(p.holdServices(opts), p.holdUI(opts)); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (p *ports) holdServices(opts options) (err error) {
	internal := internalIP(opts.ip)
	wanted := []struct {
		use string
		ip  netip.Addr
		to  **port
	}{
		{"front-end gRPC", opts.ip, &p.frontend},
		{"front-end HTTP", opts.ip, &p.frontendHTTP},
		{"history service", internal, &p.history},
		{"matching service", internal, &p.matching},
		{"worker service", internal, &p.worker},
	}
	for i, w := range wanted {
		number := opts.port
		if number != 0 {
			number += i
		}
		if *w.to, err = hold(w.ip, number); err != nil {
			return portError(err, number, w.use, "--port", "another --port N (N to N+4 must be free) or --port 0 to pick free ports")
		}
	}
	return nil
}

func (p *ports) holdUI(opts options) (err error) {
	if opts.uiPort < 0 {
		return nil
	}
	if p.ui, err = hold(opts.ip, opts.uiPort); err != nil {
		return portError(err, opts.uiPort, "web UI", "--ui-port", "another --ui-port N, --ui-port 0 to pick a free one, or -1 for no UI")
	}
	return nil
}

// internalIP is where the services that only the server itself calls listen.
func internalIP(ip netip.Addr) netip.Addr {
	if ip.IsLoopback() {
		return ip
	}
	return netip.MustParseAddr("127.0.0.1")
}

func hold(ip netip.Addr, number int) (*port, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), strconv.Itoa(number)))
	if err != nil {
		return nil, err
	}
	bound := listener.Addr().(*net.TCPAddr).Port
	return &port{address: netip.AddrPortFrom(ip, uint16(bound)), held: listener}, nil
}

func portError(err error, number int, use, flagName, remedy string) error {
	what := "cannot be opened"
	if errors.Is(err, syscall.EADDRINUSE) {
		what = "is in use by another program, or twice in these flags"
	}
	return fmt.Errorf("port %d (%s, from %s) %s: free it, or use %s: %w", number, use, flagName, what, remedy, err)
}

// releaseServices lets the Temporal services open their ports.
func (p *ports) releaseServices() {
	for _, one := range []*port{p.frontend, p.frontendHTTP, p.history, p.matching, p.worker} {
		one.release()
	}
}

// release gives up every port that is still held.
func (p *ports) release() {
	p.releaseServices()
	p.ui.release()
}

// release lets the real owner open the port. A nil or released port is fine.
func (p *port) release() {
	if p != nil && p.held != nil {
		_ = p.held.Close()
		p.held = nil
	}
}

// dial is the address under which this machine reaches the port, also when
// it listens on all addresses.
func (p *port) dial() string {
	ip := p.address.Addr()
	switch {
	case !ip.IsUnspecified():
	case ip.Is4():
		ip = netip.MustParseAddr("127.0.0.1")
	default:
		ip = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(ip, p.address.Port()).String()
}

// name is the host by which this machine calls the port.
func (p *port) name() string {
	host, _, _ := net.SplitHostPort(p.dial())
	return host
}

func (p *port) number() int { return int(p.address.Port()) }
