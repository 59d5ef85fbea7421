// Package worker is the provisioner: the daemon that runs the workflows and,
// for the providers of which it holds the lease, their scripts. It is wired by fx.
//
// It polls task queues by pools: the workflows; what asks the controller; and for
// each provider of its own its scripts and the changes that the controller is
// told of. It gets leases and keeps them, ends what it does for a provider before
// its lease ends, and bridges the controller to the workflows: changed demand
// wakes the provider's story, and an open loan whose story is gone gets it back.
package worker

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
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
	// Pools say what work it takes; Providers are those of Pools.Providers, and
	// Prefers those for which it should rather act than others.
	Pools     Pools
	Providers []Provider
	Prefers   []string
	// Guard ends scripts in time even where the provisioner is stopped.
	Guard Guard
	// Health is where it says whether it is well, as in 127.0.0.1:7401; empty for nowhere.
	Health string
	// Build names this build of the workflows, where Temporal routes them by it;
	// empty where it does not.
	Build string
	Log   *slog.Logger
}

// Provider is a provider for which this provisioner may act.
type Provider struct {
	Name        string
	Script      activities.Script
	SurveyEvery cluster.Duration
	// OrphanGrace is how long a machine is left alone that no open host stands for.
	OrphanGrace cluster.Duration
}

const (
	// drainWithin lets running activities end when a worker stops. Scripts that take
	// longer are ended; their outcome is then unknown, and settled by who acts next.
	drainWithin = time.Minute
	// StopWithin limits the stop of a provisioner, which ends what it does.
	StopWithin = drainWithin + 30*time.Second
)

// Module wires a provisioner.
func Module(options Options) fx.Option {
	return fx.Module("provisioner",
		fx.Supply(options),
		fx.Provide(newTemporal, starter.New, newFatal, newWorkers, newTender, newBridge),
		fx.Invoke(func(lc fx.Lifecycle, c client.Client, stories *starter.Client, ws workers, t *tender, b *bridge) {
			// fx stops in reverse: first the bridge, then what needs leases, then the other workers, last the connection.
			lc.Append(fx.Hook{OnStart: ws.start, OnStop: ws.stop})
			if options.Build != "" && options.Pools.Workflows {
				lc.Append(background(firstBuild{stories, options}.run))
			}
			if len(options.Providers) > 0 {
				b.leases, t.changed = t, b.gotLease
				lc.Append(fx.StopHook(t.finish))
				lc.Append(background(t.run))
				lc.Append(background(b.run))
			}
			if options.Health != "" {
				lc.Append(newHealth(options, c, t).hook())
			}
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

// fatal ends the provisioner where one of its workers cannot go on.
type fatal func(error)

func newFatal(options Options, down fx.Shutdowner) fatal {
	return func(err error) {
		options.Log.Error("worker stopped", "error", err)
		_ = down.Shutdown(fx.ExitCode(1))
	}
}

// workers poll the task queues that need no lease.
type workers []sdkworker.Worker

func newWorkers(options Options, temporal client.Client, stories *starter.Client, fatal fatal) (ws workers) {
	if options.Pools.Workflows {
		ws = append(ws, workflowWorker(temporal, options.Build, fatal))
	}
	if options.Pools.Controller {
		ws = append(ws, controllerWorker(temporal, options.Controller, stories, fatal))
	}
	return ws
}

func newTender(options Options, temporal client.Client, fatal fatal) *tender {
	t := &tender{
		controller: options.Controller, guard: options.Guard, instance: rand.Text(), owns: options.Pools.Providers, prefers: options.Prefers, log: options.Log,
		changed: func() {}, kick: make(chan struct{}, 1), posts: map[string]*manned{}, life: firstLife,
	}
	t.man = func(lease *held) (post, error) {
		i := slices.IndexFunc(options.Providers, func(p Provider) bool { return p.Name == lease.Provider })
		if i < 0 {
			return nil, fmt.Errorf("provider %s is not one of this provisioner's", lease.Provider)
		}
		return manProvider(options, temporal, options.Providers[i], lease, fatal)
	}
	return t
}

// background runs something from the provisioner's start to its stop.
func background(run func(context.Context)) fx.Hook {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	return fx.Hook{
		OnStart: func(context.Context) error {
			go func() {
				defer close(done)
				run(ctx)
			}()
			return nil
		},
		OnStop: func(context.Context) error {
			cancel()
			<-done
			return nil
		},
	}
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

func workerOptions(fatal fatal) sdkworker.Options {
	return sdkworker.Options{
		DisableRegistrationAliasing: true, WorkerStopTimeout: drainWithin, OnFatalError: fatal,
		WorkflowPanicPolicy: sdkworker.BlockWorkflow, MaxConcurrentWorkflowTaskExecutionSize: 50, MaxConcurrentActivityExecutionSize: 50,
	}
}

func workflowWorker(temporal client.Client, build string, fatal fatal) sdkworker.Worker {
	options := workerOptions(fatal)
	options.LocalActivityWorkerOnly = true
	if build != "" {
		options.DeploymentOptions = sdkworker.DeploymentOptions{
			UseVersioning: true, Version: sdkworker.WorkerDeploymentVersion{DeploymentName: starter.Deployment, BuildID: build},
			// Stories live for months, and take a newer build's code at their next step: what
			// it does in another order asks workflow.GetVersion.
			DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		}
	}
	w := sdkworker.New(temporal, workflows.QueueWorkflows, options)
	RegisterWorkflows(w)
	return w
}

func controllerWorker(temporal client.Client, controller *api.Client, stories *starter.Client, fatal fatal) sdkworker.Worker {
	options := workerOptions(fatal)
	options.DisableWorkflowWorker = true
	w := sdkworker.New(temporal, workflows.QueueController, options)
	RegisterController(w, &activities.Controller{Ledger: controller, Catalog: controller}, &activities.Starter{Workflows: stories})
	return w
}
