// Package controllertest runs a controller for tests: on a clock that the test
// moves, in memory or on a file, and over real mTLS on loopback.
package controllertest

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
)

// Controller is a controller under test. It can be stopped and started again.
type Controller struct {
	TB      testing.TB
	Config  controller.Config
	State   string // file, or store.Memory
	Clock   *Clock
	Service *controller.Service
	Address string // host:port, the same after every start
	// Certificates is the folder of the authority and of all certificates.
	Certificates string
	Authority    *pki.Authority

	store   *store.Store
	clients []*api.Client
	stop    func()
}

// Vcs is a cluster with the elastic resource vcs and the lender pool.
func Vcs(owned, maxBorrowed int64) controller.Config {
	return controller.Config{
		Cluster: "test", SessionInterval: cluster.Second, Providers: []string{"pool"},
		Resources: []cluster.SharedResource{{
			Name: "vcs", Owned: owned,
			Elastic: &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: maxBorrowed, IdleTime: cluster.Minute},
		}},
	}
}

// Open opens the service alone; [Controller.Serve] puts it on the network.
func Open(tb testing.TB, state string, config controller.Config) *Controller {
	tb.Helper()
	c := &Controller{TB: tb, Config: config, State: state, Clock: NewClock(), stop: func() {}}
	if err := c.Reopen(config); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Stop)
	return c
}

// forGood is longer than any test's clock goes.
const forGood = 200 * 366 * 24 * cluster.Hour

// Reopen opens the state with a configuration, as a controller does that is
// started (again). A configuration that is refused leaves nothing open.
func (c *Controller) Reopen(config controller.Config) error {
	c.Stop()
	if config.Leases == (cluster.LeaseRules{}) {
		config.Leases.TimeToLive = forGood
	}
	st, err := store.Open(context.Background(), c.State)
	if err != nil {
		return err
	}
	c.Service, err = controller.NewService(context.Background(), config, st, c.Clock.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		_ = st.Close()
		return err
	}
	c.Config, c.store = config, st
	c.stop = c.CloseStore
	return nil
}

// Serve serves the API, without sessions.
func (c *Controller) Serve() { c.serve(false) }

// Run serves the API and runs sessions.
func (c *Controller) Run() { c.serve(true) }

func (c *Controller) serve(sessions bool) {
	c.TB.Helper()
	c.open()
	if c.Address == "" {
		c.Address = "127.0.0.1:0"
		c.issueAuthority()
	}
	listener, err := net.Listen("tcp", c.Address)
	if err != nil {
		c.TB.Fatal(err)
	}
	c.Address = listener.Addr().String()
	config, err := pki.In(c.Certificates, "controller").Server()
	if err != nil {
		c.TB.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var works sync.WaitGroup
	server := controller.NewServer(c.Service, slog.New(slog.DiscardHandler))
	works.Go(func() {
		if err := server.Serve(ctx, listener, config); err != nil {
			c.TB.Error(err)
		}
	})
	if sessions {
		works.Go(func() { c.Service.RunSessions(ctx) })
	}
	c.stop = func() {
		for _, client := range c.clients { // else HTTP/2 lingers for a second
			client.Close()
		}
		cancel()
		works.Wait()
		c.CloseStore()
	}
}

// open opens the state again where the controller was stopped.
func (c *Controller) open() {
	c.TB.Helper()
	if c.store != nil {
		return
	}
	if err := c.Reopen(c.Config); err != nil {
		c.TB.Fatal(err)
	}
}

// Stop stops serving and closes the state.
func (c *Controller) Stop() {
	c.stop()
	c.stop = func() {}
}

// CloseStore closes the state under a running controller.
func (c *Controller) CloseStore() {
	if c.store == nil {
		return
	}
	if err := c.store.Close(); err != nil {
		c.TB.Error(err)
	}
	c.store = nil
}

func (c *Controller) issueAuthority() {
	c.TB.Helper()
	var err error
	c.Certificates = c.TB.TempDir()
	if c.Authority, err = pki.OpenAuthority(c.Certificates); err != nil {
		c.TB.Fatal(err)
	}
	if err := c.Authority.Issue("controller", pki.Peer{Role: "controller", Name: "test"}, "127.0.0.1"); err != nil {
		c.TB.Fatal(err)
	}
}

// TLS answers the TLS configuration of a peer of the cluster.
func (c *Controller) TLS(role api.Role, name string) *tls.Config {
	c.TB.Helper()
	file := filepath.Base(string(role)) + "-" + name
	if err := c.Authority.Issue(file, pki.Peer{Role: string(role), Name: name}); err != nil {
		c.TB.Fatal(err)
	}
	config, err := pki.In(c.Certificates, file).Client()
	if err != nil {
		c.TB.Fatal(err)
	}
	return config
}

// Client answers a client of a peer of the cluster. A provisioner acts for the
// first of the configuration's providers.
func (c *Controller) Client(role api.Role, name string) *api.Client {
	c.TB.Helper()
	if role == api.Provisioner && len(c.Config.Providers) > 0 {
		return c.Provisioner(name, c.Config.Providers[0])
	}
	return c.client(role, name)
}

func (c *Controller) client(role api.Role, name string) *api.Client {
	client := api.NewClient("https://"+c.Address, c.TLS(role, name))
	c.clients = append(c.clients, client)
	return client
}

// Provisioner answers a client of a provisioner that acts for a provider.
func (c *Controller) Provisioner(name, provider string) *api.Client {
	c.TB.Helper()
	client := c.client(api.Provisioner, name)
	tended, err := client.TendLeases(context.Background(), api.TendLeases{Instance: name, Owns: []string{provider}})
	if err != nil {
		c.TB.Fatal(err)
	}
	for _, l := range tended.Leases {
		if l.Provider == provider {
			return client.Under(api.Claim{Provider: provider, Epoch: l.Epoch})
		}
	}
	c.TB.Fatalf("%s did not get the lease of %s", name, provider)
	return nil
}

// Session runs one session.
func (c *Controller) Session() {
	c.TB.Helper()
	if err := c.Service.Session(context.Background()); err != nil {
		c.TB.Fatal(err)
	}
}

// Status answers the cluster as it is now.
func (c *Controller) Status() api.Status {
	c.TB.Helper()
	status, err := c.Service.Status(context.Background())
	if err != nil {
		c.TB.Fatal(err)
	}
	return status
}

// Resource answers the one resource of that name.
func (c *Controller) Resource(name string) api.ResourceStatus {
	c.TB.Helper()
	for _, r := range c.Status().Resources {
		if r.Name == name {
			return r
		}
	}
	c.TB.Fatalf("there is no resource %s", name)
	return api.ResourceStatus{}
}
