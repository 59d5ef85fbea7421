// Package worker is the provisioner: the daemon that runs the workflows and,
// for its providers, their scripts. It is wired by fx.
//
// It polls a task queue per kind of work (workflows, controller updates, one
// for each provider's scripts), and bridges the controller to the workflows:
// changed demand wakes the provider's story, and an open loan whose story is
// gone gets it back.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.uber.org/fx"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
)

// Options say what a provisioner needs.
type Options struct {
	Temporal   client.Options
	Controller *api.Client
	// Address is the controller's, and AuthorityPEM the certificate of its
	// authority, as hosts are told.
	Address      string
	AuthorityPEM []byte
	Providers    []Provider
	Log          *slog.Logger
}

// Provider is a provider whose scripts this provisioner runs.
type Provider struct {
	Name        string
	Script      activities.Script
	SurveyEvery cluster.Duration
	// OrphanGrace is how long a machine is left alone that no open host stands for.
	OrphanGrace cluster.Duration
}

// stopTimeout lets running activities end when the worker stops.
const stopTimeout = 10 * time.Second

// Module wires a provisioner.
func Module(options Options) fx.Option {
	return fx.Module("provisioner",
		fx.Supply(options),
		fx.Provide(newTemporal, starter.New, newWorkers, newBridge),
		fx.Invoke(func(lc fx.Lifecycle, ws workers, b *bridge) {
			// fx stops in reverse: first the bridge, then the workers, last the connection.
			lc.Append(fx.Hook{OnStart: ws.start, OnStop: ws.stop})
			lc.Append(fx.Hook{OnStart: b.start, OnStop: b.stop})
		}),
	)
}

// newTemporal connects. The server may come up later: it is waited for.
func newTemporal(lc fx.Lifecycle, options Options) (client.Client, error) {
	c, err := client.NewLazyClient(options.Temporal)
	if err != nil {
		return nil, fmt.Errorf("prepare connection to Temporal at %s: %w", options.Temporal.HostPort, err)
	}
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			if err := awaitTemporal(ctx, c, options); err != nil {
				return err
			}
			if err := starter.Prepare(ctx, c, options.Temporal.Namespace); err != nil {
				options.Log.Warn("the namespace could not be prepared; where it lacks something, workflows do not start", "error", err)
			}
			return nil
		},
		OnStop: func(context.Context) error { c.Close(); return nil },
	})
	return c, nil
}

// awaitTemporal asks until the server answers or ctx ends, and says once that it waits.
func awaitTemporal(ctx context.Context, c client.Client, options Options) error {
	for waits := false; ; waits = true {
		try, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := c.CheckHealth(try, &client.CheckHealthRequest{})
		cancel()
		if err == nil {
			return nil
		}
		if !waits {
			options.Log.Warn("no answer from Temporal; waiting for it. Is it running, and is temporal.address right?",
				"address", options.Temporal.HostPort, "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer from Temporal at %s: %w", options.Temporal.HostPort, err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// workers are the task queues that the provisioner polls.
type workers []sdkworker.Worker

func newWorkers(options Options, temporal client.Client, loans *starter.Client, down fx.Shutdowner) workers {
	fatal := func(err error) {
		options.Log.Error("worker stopped", "error", err)
		_ = down.Shutdown(fx.ExitCode(1))
	}
	ws := workers{
		workflowWorker(temporal, fatal),
		controllerWorker(temporal, options.Controller, loans, fatal),
	}
	hosts := joins{controller: options.Controller, address: options.Address, authority: string(options.AuthorityPEM)}
	for _, p := range options.Providers {
		ws = append(ws, providerWorker(temporal, p, hosts, fatal))
	}
	return ws
}

func (ws workers) start(context.Context) error {
	for _, w := range ws {
		if err := w.Start(); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
	}
	return nil
}

func (ws workers) stop(context.Context) error {
	for _, w := range ws {
		w.Stop()
	}
	return nil
}

func workerOptions(fatal func(error)) sdkworker.Options {
	return sdkworker.Options{
		DisableRegistrationAliasing: true, WorkerStopTimeout: stopTimeout, OnFatalError: fatal,
		WorkflowPanicPolicy: sdkworker.BlockWorkflow, MaxConcurrentWorkflowTaskExecutionSize: 50, MaxConcurrentActivityExecutionSize: 50,
	}
}

func workflowWorker(temporal client.Client, fatal func(error)) sdkworker.Worker {
	options := workerOptions(fatal)
	options.LocalActivityWorkerOnly = true
	w := sdkworker.New(temporal, workflows.QueueWorkflows, options)
	RegisterWorkflows(w)
	return w
}

func controllerWorker(temporal client.Client, controller *api.Client, loans *starter.Client, fatal func(error)) sdkworker.Worker {
	options := workerOptions(fatal)
	options.DisableWorkflowWorker = true
	w := sdkworker.New(temporal, workflows.QueueController, options)
	RegisterController(w, &activities.Controller{Ledger: controller, Catalog: controller}, &activities.Starter{Workflows: loans})
	return w
}

func providerWorker(temporal client.Client, p Provider, hosts activities.Hosts, fatal func(error)) sdkworker.Worker {
	options := workerOptions(fatal)
	options.DisableWorkflowWorker = true
	w := sdkworker.New(temporal, workflows.QueueProvider(p.Name), options)
	RegisterProvider(w, &activities.Provider{Script: p.Script, Hosts: hosts})
	return w
}
