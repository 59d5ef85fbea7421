package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xce.internal/elastic/cluster/plain"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/api"
)

// configFile is the configuration that is read where no other is named.
const configFile = "xce-elastic.yaml"

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "xce-elastic",
		Short:         "Auto resource provisioning for batch and EDA clusters",
		Long:          "XCE Elastic borrows licence tokens and has hosts made when jobs wait for them, and gives back what lies idle.\nEvery loan and every host is one durable workflow.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          known,
		RunE:          help,
	}
	root.SetFlagErrorFunc(flagFault)
	flags := root.PersistentFlags()
	flags.StringP("config", "c", os.Getenv("XCE_CONFIG"), "configuration file (default "+configFile+" where there is one)")
	flags.String("controller.address", "", "where the controller is reached")
	flags.String("temporal.address", "", "where Temporal is reached")
	flags.String("temporal.namespace", "", "Temporal namespace")
	flags.String("log.level", "", "debug, info, warn or error")
	provider := newProvider()
	provider.AddCommand(newProviderRetry(), newProviderBelieve())
	root.AddCommand(
		newDev(), newController(), newWorker(), newAgent(),
		newSubmit(), newJobs(), newStatus(), newDemand(), newIdle(), newSession(), newSnapshot(), newLoans(), newReturn(), newExplain(), newOwned(),
		newLeases(), newRollout(), newHosts(), newHost(), newTemplates(), newCatalog(), newChanges(),
		newTrace(), newSimulate(), newSlurm(),
		provider, newConfig(), newCA(), newCert(), newCodec(), newVersion(), newGuard(),
	)
	return root
}

// help is what a command does that only has others below it. Without it, a
// misspelt one would count as success.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// known refuses a command that there is not, and names those like it.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		return fmt.Errorf("unknown command %q for %q; did you mean %s?", args[0], cmd.CommandPath(), strings.Join(like, " or "))
	}
	return fmt.Errorf("unknown command %q for %q; `%[2]s --help` lists those that there are", args[0], cmd.CommandPath())
}

// exactly demands so many arguments.
func exactly(n int, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("write `%s%s`, as in `%s`", cmd.CommandPath(), strings.TrimPrefix(cmd.Use, cmd.Name()), example)
		}
		return nil
	}
}

// flagFault says what is wrong with a flag in the words of the other faults.
func flagFault(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var absent *pflag.NotExistError
	switch {
	case errors.As(err, &absent) && absent.GetSpecifiedShortnames() != "" && absent.GetSpecifiedName() == "o" && cmd.Flags().Lookup("out") != nil:
		return errors.New("there is no flag -o here; use --out")
	case !errors.As(err, &value):
		return err
	}
	wish := value.Unwrap().Error()
	switch value.GetFlag().Value.Type() {
	case "int64":
		wish = "write a whole number"
	case "bool":
		wish = "write true or false"
	case "int64Slice":
		wish = "write job numbers, as in 17,18"
	}
	return fmt.Errorf("--%s %s: %s", value.GetFlag().Name, value.GetValue(), wish)
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Say which version this is", Args: cobra.NoArgs}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := struct {
			Version string `json:"version"`
			Go      string `json:"go"`
		}{version, runtime.Version()}
		return format.print(cmd, v, func(t *table) { t.row("xce-elastic", v.Version, v.Go) })
	}
	return cmd
}

// load reads the configuration as the command line says.
func load(cmd *cobra.Command) (*config.Config, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, err
	}
	if file == "" {
		if _, err := os.Stat(configFile); err != nil {
			return nil, fmt.Errorf("there is no configuration: name one with --config or XCE_CONFIG, or make %s here", configFile)
		}
		file = configFile
	}
	return config.Load(file, cmd.Flags())
}

// logger answers the log that the configuration asks for, on standard error.
func logger(c *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Log.Level)) // validated
	options := &slog.HandlerOptions{Level: level}
	return slog.New(logHandler(os.Stderr, c.Log.Format, options))
}

// logHandler answers a handler of which no line steers a terminal, whatever is logged.
func logHandler(to io.Writer, format string, options *slog.HandlerOptions) slog.Handler {
	to = plain.Writer(to)
	if format == "json" {
		return slog.NewJSONHandler(to, options)
	}
	return slog.NewTextHandler(to, options)
}

// connect answers a client of the controller.
func connect(c *config.Config) (*api.Client, error) {
	tls, err := c.Peer.Files().ClientLogging(logger(c))
	if err != nil {
		return nil, err
	}
	return api.NewClient(c.Controller.Address, tls), nil
}

// loadAndConnect is what every command that asks the controller begins with.
func loadAndConnect(cmd *cobra.Command) (*api.Client, error) {
	c, err := load(cmd)
	if err != nil {
		return nil, err
	}
	return connect(c)
}

// whoami is who types, for audit records.
func whoami() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}
