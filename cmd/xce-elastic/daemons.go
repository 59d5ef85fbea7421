package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/agent"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/slurm"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/hostfactory"
	"xce.internal/elastic/worker"
)

func newController() *cobra.Command {
	cmd := &cobra.Command{
		Use: "controller", Short: "Run the controller", Args: cobra.NoArgs,
		Long: "Run the controller: the ledger, the catalog, the sessions of the builtin backend, and the API.",
	}
	cmd.Flags().String("controller.listen", "", "address and port to serve at")
	cmd.Flags().String("controller.state", "", "state: a file, or the address of a PostgreSQL database that several controllers share")
	cmd.Flags().String("controller.name", "", "name of this controller among several (default the machine's)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := load(cmd)
		if err != nil {
			return err
		}
		return runController(cmd.Context(), c, logger(c))
	}
	cmd.AddCommand(newOpenAPI())
	return cmd
}

func newOpenAPI() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the description of the API", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			document, err := controller.NewServer(nil, slog.Default()).OpenAPI()
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), string(document))
			}
			return err
		},
	}
}

func runController(ctx context.Context, c *config.Config, log *slog.Logger) (err error) {
	tls, err := c.Controller.TLS.Files().ServerLogging(log)
	if err != nil {
		return err
	}
	revocations, err := revocationsOf(c.Controller.TLS, log)
	if err != nil {
		return err
	}
	st, err := store.Open(ctx, c.Controller.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	settings := controller.Config{
		Cluster: c.Cluster.Name, SessionInterval: c.Cluster.SessionInterval, Resources: c.Resources, Providers: c.ProviderNames(),
		Policy: c.Policy, Thresholds: c.Thresholds, Hosts: c.Hosts, Leases: c.Leases,
		Release: version, SessionLease: c.Controller.SessionLease,
	}
	if settings.Name, err = controllerName(c); err != nil {
		return err
	}
	clock, records := now, c.Controller.Record
	if st.Shared() { // all go by the database's clock, and each keeps its own record
		clock, records = nil, filepath.Join(records, settings.Name)
	}
	if c.Controller.CAKey != "" {
		if settings.Authority, err = pki.LoadAuthority(c.Controller.TLS.CA, c.Controller.CAKey); err != nil {
			return fmt.Errorf("controller.ca_key: %w", err)
		}
	}
	if c.Controller.Record != "" {
		decisions := record.NewWriter(record.Options{
			Folder: records, Most: c.Controller.RecordLimitMB << 20, Cluster: c.Cluster.Name, Release: version, Now: now, Log: log,
		})
		defer decisions.Close()
		settings.Record = decisions
	}
	if c.Backend == config.BackendSlurm {
		if settings.Backend, err = slurmBackend(c, log); err != nil {
			return err
		}
	}
	service, err := controller.NewService(ctx, settings, st, clock, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Controller.Listen)
	if err != nil {
		return fmt.Errorf("controller.listen: %w; free the port or name another", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	log.Info("controller serves", "cluster", c.Cluster.Name, "address", listener.Addr().String(), "state", c.Controller.State)
	var works sync.WaitGroup
	works.Go(func() { service.RunSessions(ctx) })
	works.Go(func() { service.Follow(ctx) })
	server := controller.NewServer(service, log, controller.WithLimits(c.Controller.Limits))
	server.RefuseRevoked(revocations)
	err = server.Serve(ctx, listener, tls)
	stop()
	works.Wait()
	return err
}

// slurmBackend answers the Slurm backend. Its commands read a copy of Slurm's configuration in a
// folder of this process, since they must not wait for a slurmctld that is down for as long as daemons do.
func slurmBackend(c *config.Config, log *slog.Logger) (controller.Backend, error) {
	if _, err := os.Stat(c.Slurm.Conf); err != nil {
		return nil, fmt.Errorf("slurm.conf: %w; name Slurm's configuration file", err)
	}
	conf := filepath.Join(c.Slurm.Folder, filepath.Base(c.Slurm.Conf))
	prepare := func() error {
		if err := slurm.WriteClientConf(c.Slurm.Conf, conf, c.Slurm.MessageTimeout.Std()); err != nil {
			return fmt.Errorf("slurm.conf: %w", err)
		}
		return nil
	}
	if err := prepare(); err != nil {
		return nil, err
	}
	options := c.SlurmOptions(conf)
	options.Prepare, options.Log = prepare, log
	if err := options.Check(); err != nil {
		return nil, err
	}
	return slurm.New(options), nil
}

// controllerName answers this controller's name among several.
func controllerName(c *config.Config) (string, error) {
	if c.Controller.Name != "" {
		return c.Controller.Name, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("find the machine's name: %w; set controller.name", err)
	}
	return name, nil
}

// revocationsOf reads the list of revoked certificates. Without one that is sound
// the controller does not start: it would let in whom it should not.
func revocationsOf(files config.ServerTLS, log *slog.Logger) (controller.Revocations, error) {
	if files.CRL == "" {
		log.Warn("no certificate is refused as revoked, since controller.tls.crl names no list")
		return nil, nil
	}
	list, err := pki.OpenRevocations(files.CRL, files.CA, time.Now, log)
	if err != nil {
		return nil, fmt.Errorf("controller.tls.crl: %w", err)
	}
	return list, nil
}

func now() cluster.Time { return cluster.TimeOf(time.Now()) }

func newWorker() *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker", Short: "Run the provisioner", Args: cobra.NoArgs,
		Long: "Run the provisioner: the Temporal workers that run the workflows and, for the configured providers, their scripts.\n" +
			"Of several provisioners, one at a time acts for a provider: the one that holds its lease, which the controller gives.",
	}
	flags := cmd.Flags()
	pools := flags.StringSlice("pools", nil, "work to take: workflows, controller, provider:NAME or provider:* (default those of provisioner.pools, or all)")
	prefers := flags.StringSlice("prefers", nil, "providers for which this provisioner should rather act than others (default those of provisioner.prefers)")
	flags.String("provisioner.health", "", "address and port to answer health checks at")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := load(cmd)
		if err != nil {
			return err
		}
		if err := c.Provisioner.Override(*pools, *prefers, c.ProviderNames()); err != nil {
			return err
		}
		return runWorker(cmd.Context(), c, logger(c))
	}
	return cmd
}

// scriptOf answers a provider's script, or the adapter of its plug-in.
func scriptOf(p config.Provider, log *slog.Logger) (activities.Script, error) {
	if spec, plugin := p.Plugin(); plugin {
		return hostfactory.New(spec, log)
	}
	return providers.NewRunner(p.Spec(), log)
}

func runWorker(ctx context.Context, c *config.Config, log *slog.Logger) error {
	temporal, err := temporalOptions(c, log)
	if err != nil {
		return err
	}
	client, err := connect(c)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(c.Peer.CA)
	if err != nil {
		return fmt.Errorf("peer.ca: %w", err)
	}
	pools, _ := worker.ReadPools(c.Provisioner.Pools, c.ProviderNames()) // validated
	guard, err := startGuard()
	if err != nil {
		return err
	}
	defer guard.Stop()
	options := worker.Options{
		Temporal: temporal, Guard: guard, Controller: client, Address: c.Controller.Address, AuthorityPEM: authority,
		Pools: pools, Prefers: c.Provisioner.Prefers, Health: c.Provisioner.Health, Log: log,
	}
	if c.Temporal.Versioning {
		options.Build = version
	}
	for _, p := range c.Providers {
		if !slices.Contains(pools.Providers, p.Name) {
			continue
		}
		script, err := scriptOf(p, log)
		if err != nil {
			return err
		}
		options.Providers = append(options.Providers, worker.Provider{Name: p.Name, Script: script, SurveyEvery: p.SurveyEvery, OrphanGrace: p.OrphanGrace})
	}
	app := fx.New(
		worker.Module(options), fx.StopTimeout(worker.StopWithin),
		fx.WithLogger(func() fxevent.Logger {
			l := &fxevent.SlogLogger{Logger: log}
			l.UseLogLevel(slog.LevelDebug)
			return l
		}),
	)
	if err := app.Err(); err != nil {
		return err
	}
	if err := app.Start(ctx); err != nil {
		return err
	}
	log.Info("provisioner works", "temporal", temporal.HostPort, "namespace", temporal.Namespace, "pools", c.Provisioner.Pools)
	failed := false
	select {
	case <-ctx.Done():
	case signal := <-app.Wait():
		failed = signal.ExitCode != 0
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), worker.StopWithin)
	defer cancel()
	if err := app.Stop(stop); err != nil {
		return fmt.Errorf("stop the provisioner: %w", err)
	}
	if failed {
		return errors.New("a worker failed; the log says why")
	}
	return nil
}

func newAgent() *cobra.Command {
	cmd := &cobra.Command{
		Use: "agent", Short: "Run this machine as a host", Args: cobra.NoArgs,
		Long: "Run this machine as a host of the builtin backend: it joins the controller and runs jobs.",
	}
	flags := cmd.Flags()
	flags.String("agent.host", "", "name of this host, as its certificate has it (default the machine's)")
	flags.Int64("agent.cpus", 0, "cpus for jobs (default all)")
	flags.Int64("agent.memory_mb", 0, "memory for jobs in MB")
	flags.String("agent.folder", "", "folder for what jobs leave behind")
	countables := flags.StringArray("countable", nil, "NAME=COUNT of what jobs can take beside cpus and memory, as in gpus=2; repeatable (default those of agent.countables)")
	features := flags.StringArray("feature", nil, "what constraints of jobs ask for, as in avx512 or site=z1; repeatable (default those of agent.features)")
	join := flags.String("join", "", "file with what the provider was given as join, for a host that has no certificate yet")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		read := load
		if *join != "" {
			read = func(cmd *cobra.Command) (*config.Config, error) { return config.ForHost(cmd.Flags()) }
		}
		c, err := read(cmd)
		if err != nil {
			return err
		}
		if err := c.Agent.Override(*countables, *features); err != nil {
			return err
		}
		return runAgent(cmd.Context(), c, *join, logger(c))
	}
	return cmd
}

func runAgent(ctx context.Context, c *config.Config, join string, log *slog.Logger) error {
	capacity, _ := c.Agent.Capacity() // validated
	if capacity.CPUs == 0 {
		capacity.CPUs = int64(runtime.NumCPU())
	}
	host := agent.Config{Host: c.Agent.Host, Capacity: capacity, Folder: c.Agent.Folder}
	client, err := identify(ctx, c, &host, join, log)
	if err != nil {
		return err
	}
	a, err := agent.New(host, client, log)
	if err != nil {
		return err
	}
	defer client.Close()
	log.Info("agent works", "host", host.Host, "cpus", host.CPUs, "memory_mb", host.MemoryMB)
	return a.Run(ctx)
}

// identify answers who the host is: by the certificate of the configuration, or
// by what it got with a join file.
func identify(ctx context.Context, c *config.Config, host *agent.Config, join string, log *slog.Logger) (*api.Client, error) {
	if join != "" {
		given, err := agent.ReadJoin(join)
		if err != nil {
			return nil, err
		}
		var client *api.Client
		host.Host, client, err = agent.Enroll(ctx, given, host.Folder, host.Capacity, log)
		return client, err
	}
	if host.Host == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("find the machine's name: %w; set agent.host", err)
		}
		host.Host = name
	}
	return connect(c)
}
