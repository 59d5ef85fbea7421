package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

// startUI starts the web UI and waits until it answers. Its port must have
// been held until now: the UI ends the whole process when it cannot listen.
func startUI(ctx context.Context, p *ports, opts options) (*uiserver.Server, error) {
	host := p.ui.address.Addr().String()
	if p.ui.address.Addr().Is6() {
		host = "[" + host + "]"
	}
	ui := uiserver.NewServer(server_options.WithConfigProvider(&uiconfig.Config{
		TemporalGRPCAddress: p.frontend.dial(),
		Host:                host,
		Port:                p.ui.number(),
		EnableUI:            true,
		DefaultNamespace:    opts.namespace,
		TLS:                 opts.security.ui(p.frontend.name()),
		CORS:                uiconfig.CORS{CookieInsecure: true}, // plain HTTP
		DisableNewsFetch:    true,
		HideLogs:            true,
	}))
	p.ui.release()
	go func() { _ = ui.Start() }() // ends with stop; never returns an error
	if err := waitFor(ctx, func(ctx context.Context) error { return getOK(ctx, uiURL(p)+"/healthz") }); err != nil {
		ui.Stop()
		return nil, fmt.Errorf("the web UI at %s does not answer: %w", uiURL(p), err)
	}
	return ui, nil
}

func uiURL(p *ports) string {
	if p.ui == nil {
		return ""
	}
	return "http://" + p.ui.dial()
}

func getOK(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}
