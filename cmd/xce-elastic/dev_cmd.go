package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/cmd/xce-elastic/dev"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/snapshot"
)

// exampleNamespace keeps the example apart from clusters that use the same
// Temporal server: a namespace is for one cluster.
const exampleNamespace = "xce-example"

func newDev() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev", Short: "Run a whole example cluster on this machine", Args: cobra.NoArgs,
		Long: "Run Temporal with its UI, controller, provisioner, agent and a shared pool on this machine, and a\n" +
			"workload that borrows licence tokens and gives them back. With TEMPORAL_ADDRESS set, that server is\n" +
			"used and none is started. The configuration is written anew at each start.",
	}
	flags := cmd.Flags()
	once := flags.Bool("once", false, "end with the workload instead of staying up")
	folder := flags.String("folder", "", "state folder (default .xce; with --once a temporary one)")
	policy := flags.String("policy", "", "in which order waiting jobs get what is free: fcfs, easy or conservative (default fcfs)")
	plain := flags.Bool("plain", false, "print lines instead of the live view")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if ps := snapshot.ValidatePolicy("", scheduling.Policy{Order: scheduling.Order(*policy)}); len(ps) > 0 {
			return fmt.Errorf("--policy: %s; %s", ps[0].What, ps[0].Remedy)
		}
		options := dev.Options{Folder: *folder, Stay: !*once, Policy: *policy, Out: os.Stdout, Live: !*plain && isatty.IsTerminal(os.Stdout.Fd())}
		if options.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		temporary := *once && *folder == ""
		switch {
		case temporary:
			options.Folder, err = os.MkdirTemp("", "xce-")
		case *folder == "":
			options.Folder = ".xce"
		}
		if err != nil {
			return fmt.Errorf("make a temporary folder: %w", err)
		}
		if options.Folder, err = filepath.Abs(options.Folder); err != nil {
			return err
		}
		if options.Temporal, err = temporalOptions(&config.Config{}, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		if options.Running = os.Getenv("TEMPORAL_ADDRESS") != ""; options.Running && os.Getenv("TEMPORAL_NAMESPACE") == "" {
			options.Temporal.Namespace = exampleNamespace
		}
		err = dev.Run(cmd.Context(), options)
		if err != nil && temporary && cmd.Context().Err() != nil {
			return errors.Join(err, os.RemoveAll(options.Folder))
		}
		if err != nil {
			return fmt.Errorf("%w\nState and logs are kept in %s", err, options.Folder)
		}
		if temporary {
			return errors.Join(err, os.RemoveAll(options.Folder))
		}
		return nil
	}
	return cmd
}
