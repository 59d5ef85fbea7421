package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/check"
)

func newProvider() *cobra.Command {
	cmd := &cobra.Command{Use: "provider", Short: "Work on provider scripts", Args: known, RunE: help}
	cmd.AddCommand(newProviderCheck())
	return cmd
}

func newProviderCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check SCRIPT", Short: "Exercise a provider script and say what is right and what is wrong", Args: exactly(1, "xce-elastic provider check bin/pool"),
		Long: "Exercise every verb of a provider script, also wrongly and several at once, and say what is right,\n" +
			"what is wrong and how to mend it. It asks for one or two tokens or hosts and gives them back; the hosts\n" +
			"are told to join where nobody answers.",
		Example: "  xce-elastic provider check -e XCE_POOL_FILE=pool.json -e XCE_POOL_CLUSTER=test bin/pool",
	}
	environment := cmd.Flags().StringArrayP("environment", "e", nil, "NAME=VALUE for the script, or NAME to hand on this program's own (for secrets); repeatable")
	limit := cmd.Flags().Duration("time-limit", 30*time.Second, "time limit of one call")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec := providers.Spec{Name: filepath.Base(args[0]), Script: args[0], Environment: map[string]string{}, TimeLimit: *limit}
		for _, line := range *environment {
			name, value, given := strings.Cut(line, "=")
			if !given {
				value, given = os.LookupEnv(name)
			}
			if !given || name == "" {
				return fmt.Errorf("--environment %s: write NAME=VALUE, or set the variable", name)
			}
			spec.Environment[name] = value
		}
		progress := cmd.OutOrStdout()
		if *format != "table" {
			progress = io.Writer(os.Stderr)
		}
		report, err := check.Run(cmd.Context(), spec, progress)
		if err != nil {
			return err
		}
		if *format != "table" {
			if err := format.print(cmd, report, nil); err != nil {
				return err
			}
		}
		if report.Failed() {
			return errors.New("the script breaks the contract; the lines marked WRONG say where and how to mend it")
		}
		return nil
	}
	return cmd
}

func newConfig() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Work on the configuration", Args: known, RunE: help}
	cmd.AddCommand(newConfigCheck())
	return cmd
}

func newConfigCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Check the configuration", Args: cobra.NoArgs,
		Long: "Check the configuration: its faults are named with file, line, key and remedy. With -o yaml or json a sound one\nis printed as it is understood, with defaults, environment and flags applied.",
	}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := load(cmd)
		if err != nil {
			return err
		}
		return format.print(cmd, c.Shown(), func(t *table) {
			t.row(fmt.Sprintf("the configuration of cluster %s is sound: %d resources, %d providers", c.Cluster.Name, len(c.Resources), len(c.Providers)))
		})
	}
	return cmd
}
