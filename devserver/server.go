package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/temporal"
)

const (
	// readyTimeout bounds the wait for services that have started but do not
	// answer yet. A slow disk may need a good part of it.
	readyTimeout = 60 * time.Second
	// stopTimeout bounds a graceful stop, which takes about two seconds.
	stopTimeout = 15 * time.Second
	// retryInterval is how often something not ready yet is asked again.
	retryInterval = 20 * time.Millisecond
)

// server is a running devserver. Its parts are started in the order of the
// fields and stopped in the reverse order; a failed start leaves some nil.
type server struct {
	log      *logs
	database *database
	temporal temporal.Server
	ui       *uiserver.Server
	ready    readiness
}

// start brings everything up and returns when it can be used. If it fails,
// or ctx ends, what was started is stopped again.
func start(ctx context.Context, opts options, log *logs) (*server, error) {
	if !opts.ip.IsLoopback() {
		log.Warn("listening beyond this machine without authentication: whoever reaches it controls every workflow", "ip", opts.ip)
	}
	ports, err := reservePorts(opts)
	if err != nil {
		return nil, err
	}
	defer ports.release()

	srv := &server{log: log}
	if err := srv.start(ctx, opts, ports); err != nil {
		return nil, errors.Join(err, srv.stop())
	}
	srv.ready = readiness{
		Address:   ports.frontend.dial(),
		UI:        uiURL(ports),
		Namespace: opts.namespace,
		PID:       os.Getpid(),
	}
	return srv, nil
}

func (s *server) start(ctx context.Context, opts options, p *ports) (err error) {
	if s.database, err = openDatabase(ctx, opts.database); err != nil {
		return err
	}
	if s.temporal, err = startTemporal(p, s.database, opts, logger{slog: s.log.Logger}); err != nil {
		return err
	}
	if err := prepareNamespace(ctx, p.frontend, opts, s.log.Logger); err != nil {
		return err
	}
	if p.ui != nil {
		s.ui, err = startUI(ctx, p, opts)
	}
	return err
}

// startTemporal starts the four services. They may not answer at once.
func startTemporal(p *ports, db *database, opts options, log logger) (temporal.Server, error) {
	cfg := temporalConfig(p, db, opts.security)
	if err := createNamespace(sqliteConfig(db), opts); err != nil {
		return nil, err
	}
	p.releaseServices() // NewServer opens them
	srv, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts(p)),
		temporal.WithDynamicConfigClient(dynamicConfig()),
		temporal.WithLogger(log),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("the Temporal server cannot be set up: %w", err)
	}
	if err := srv.Start(); err != nil {
		return nil, fmt.Errorf("the Temporal server cannot be started: %w", err)
	}
	return srv, nil
}

// prepareNamespace waits for the server and brings the namespace to what the
// options say.
func prepareNamespace(ctx context.Context, frontend *port, opts options, log *slog.Logger) error {
	address := frontend.dial()
	tls, err := opts.security.client(frontend.name())
	if err != nil {
		return err
	}
	c, err := client.NewLazyClient(client.Options{
		HostPort:          address,
		Namespace:         opts.namespace,
		Logger:            sdklog.NewStructuredLogger(log),
		ConnectionOptions: client.ConnectionOptions{TLS: tls},
	})
	if err != nil {
		return fmt.Errorf("no client for the Temporal server at %s: %w", address, err)
	}
	defer c.Close()
	if err := waitUsable(ctx, c, opts.namespace); err != nil {
		return err
	}
	if err := setRetention(ctx, c, opts); err != nil {
		return err
	}
	return addAttributes(ctx, c, opts)
}

// stop ends the UI, then the services, then gives the database free.
func (s *server) stop() error {
	s.log.expectCutCalls()
	if s.ui != nil {
		s.ui.Stop()
	}
	if s.temporal != nil {
		if err := stopTemporal(s.temporal); err != nil {
			return err // it still uses the database
		}
	}
	return s.database.close()
}

func stopTemporal(srv temporal.Server) error {
	done := make(chan error, 1)
	go func() { done <- srv.Stop() }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("the Temporal server did not stop cleanly; its data is safe: %w", err)
		}
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("the Temporal server did not stop within %s and is ended; its data is safe", stopTimeout)
	}
}

// waitFor asks again and again until there is no error, ctx ends, or
// readyTimeout is over.
func waitFor(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("given up after %s: %w", readyTimeout, err)
		case <-time.After(retryInterval):
		}
	}
}
