package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/fx"
)

// health answers over HTTP whether the provisioner is well: /healthz that it
// runs, /readyz that Temporal and the controller answer it.
type health struct {
	address string
	server  *http.Server
	log     *slog.Logger
}

// askWithin is how long Temporal may take to answer that it is there.
const askWithin = 3 * time.Second

func newHealth(options Options, temporal client.Client, leases *tender) *health {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context(), temporal, leases); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return &health{address: options.Health, log: options.Log, server: &http.Server{Handler: mux, ReadTimeout: askWithin, WriteTimeout: 2 * askWithin}}
}

func ready(ctx context.Context, temporal client.Client, leases *tender) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if _, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return errors.New("no answer from Temporal")
	}
	if len(leases.owns) == 0 {
		return nil
	}
	return leases.Ready()
}

func (h *health) hook() fx.Hook {
	return fx.Hook{
		OnStart: func(context.Context) error {
			listener, err := net.Listen("tcp", h.address)
			if err != nil {
				return fmt.Errorf("provisioner.health: %w; free the port or name another", err)
			}
			go func() {
				if err := h.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
					h.log.Error("health is not served any more", "error", err)
				}
			}()
			return nil
		},
		OnStop: h.server.Shutdown,
	}
}
