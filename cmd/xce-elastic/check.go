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
	"xce.internal/elastic/providers/hostfactory"
)

func newProvider() *cobra.Command {
	cmd := &cobra.Command{Use: "provider", Short: "Work on provider scripts", Args: known, RunE: help}
	cmd.AddCommand(newProviderCheck())
	return cmd
}

func newProviderCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check SCRIPT | check --hostfactory FOLDER", Short: "Exercise a provider script or plug-in and say what is right and what is wrong",
		Long: "Exercise every verb of a provider script, also wrongly and several at once, and say what is right,\n" +
			"what is wrong and how to mend it. It asks for one or two tokens or hosts and gives them back; the hosts\n" +
			"are told to join where nobody answers. With --hostfactory it exercises the five scripts of a plug-in of\n" +
			"LSF's resource connector or Symphony's HostFactory; it asks for one machine and gives it back.",
		Example: "  xce-elastic provider check -e XCE_POOL_FILE=pool.json -e XCE_POOL_CLUSTER=test bin/pool\n" +
			"  xce-elastic provider check --hostfactory aws/scripts --conf aws/conf --flavour lsf",
	}
	flags := cmd.Flags()
	environment := flags.StringArrayP("environment", "e", nil, "NAME=VALUE for the script, or NAME to hand on this program's own (for secrets); repeatable")
	secrets := flags.StringArray("secret", nil, "NAME=FILE, as in providers[].secrets; repeatable")
	account := flags.String("user", "", "the system user as whom the script runs, as in providers[].user")
	limit := flags.Duration("time-limit", 30*time.Second, "time limit of one call")
	var plugin hostfactory.Spec
	flags.StringVar(&plugin.Scripts, "hostfactory", "", "folder of a plug-in's five scripts")
	flags.StringVar((*string)(&plugin.Flavour), "flavour", string(hostfactory.LSF), "whose conventions the plug-in expects: lsf or symphony")
	flags.StringVar(&plugin.Conf, "conf", "", "the plug-in's folder of configuration")
	flags.StringVar(&plugin.Work, "work", "", "its folder of records; without, it gets one for the check that is removed afterwards")
	patience := flags.Duration("patience", 10*time.Minute, "how long a plug-in's machine may take to come, and to go")
	format := outputFlag(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if plugin.Scripts != "" {
			return cobra.NoArgs(cmd, args)
		}
		return exactly(1, "xce-elastic provider check bin/pool")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		settings, err := settingsOf(*environment)
		if err != nil {
			return err
		}
		hidden, err := secretsOf(*secrets)
		if err != nil {
			return err
		}
		progress := cmd.OutOrStdout()
		if *format != "table" {
			progress = io.Writer(os.Stderr)
		}
		var report check.Report
		if plugin.Scripts != "" {
			spec := hostfactory.CheckSpec(plugin.Scripts, plugin.Flavour)
			spec.Conf, spec.Work, spec.Environment, spec.TimeLimit, spec.Secrets, spec.User = plugin.Conf, plugin.Work, settings, *limit, hidden, *account
			report, err = hostfactory.Check(cmd.Context(), spec, *patience, progress)
		} else {
			spec := providers.Spec{Name: filepath.Base(args[0]), Script: args[0], Environment: settings, Secrets: hidden, User: *account, TimeLimit: *limit}
			report, err = check.Run(cmd.Context(), spec, progress)
		}
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

// settingsOf reads lines NAME=VALUE, or NAME for a variable of our own.
func settingsOf(lines []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, line := range lines {
		name, value, given := strings.Cut(line, "=")
		if !given {
			value, given = os.LookupEnv(name)
		}
		if !given || name == "" {
			return nil, fmt.Errorf("--environment %s: write NAME=VALUE, or set the variable", name)
		}
		settings[name] = value
	}
	return settings, nil
}

// secretsOf reads lines NAME=FILE.
func secretsOf(lines []string) (map[string]string, error) {
	files := map[string]string{}
	for _, line := range lines {
		name, file, _ := strings.Cut(line, "=")
		if name == "" || file == "" {
			return nil, fmt.Errorf("--secret %s: write NAME=FILE, the file that the secret is in", line)
		}
		files[name] = file
	}
	return files, nil
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
