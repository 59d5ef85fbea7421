package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/slurm"
)

// slurmFlags are where Slurm is, for what is done before there is any configuration.
type slurmFlags struct {
	conf, commands string
	limit          time.Duration
}

// addSlurmFlags adds the flags; limit is how long one command may take unless more is said.
func addSlurmFlags(cmd *cobra.Command, limit time.Duration) *slurmFlags {
	f := &slurmFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.conf, "conf", "", "Slurm's configuration file (default: slurm.conf of the configuration, or SLURM_CONF, or /etc/slurm/slurm.conf)")
	flags.StringVar(&f.commands, "commands", "", "folder of Slurm's programs (default: slurm.commands of the configuration, or PATH)")
	flags.DurationVar(&f.limit, "limit", limit, "how long one of Slurm's commands may take")
	return f
}

// run answers Slurm's commands, as the flags and the configuration, which may be nil, say.
func (f *slurmFlags) run(c *config.Config) (slurm.Commands, error) {
	conf, folder := config.UsualSlurmConf(), ""
	if c != nil {
		conf, folder = c.Slurm.Conf, c.Slurm.Commands
	}
	commands := slurm.Commands{Conf: cmp.Or(f.conf, conf), Folder: cmp.Or(f.commands, folder), Limit: f.limit}
	if _, err := os.Stat(commands.Conf); err != nil { // its commands would look for a minute
		return commands, fmt.Errorf("find Slurm's configuration: %w; name it with --conf or SLURM_CONF", err)
	}
	return commands, nil
}

// survey reads what Slurm has, by a copy of its configuration in a folder of our own: by the
// one that daemons have, each command waits some nine seconds for a slurmctld that is down.
func survey(ctx context.Context, commands slurm.Commands) (found slurm.Survey, err error) {
	folder, err := os.MkdirTemp("", "xce-slurm-")
	if err != nil {
		return found, fmt.Errorf("make a folder for a copy of Slurm's configuration: %w; free the disk, or set TMPDIR", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	asked := commands
	asked.Conf = filepath.Join(folder, filepath.Base(commands.Conf))
	if err := slurm.WriteClientConf(commands.Conf, asked.Conf, slurm.DefaultMessageTimeout); err != nil {
		return found, err
	}
	found, err = asked.Survey(ctx)
	found.Conf = commands.Conf
	if unknown := (*backend.Unknown)(nil); errors.As(err, &unknown) {
		err = fmt.Errorf("%w; see whether slurmctld and munge run, and whether %s is the cluster's", err, commands.Conf)
	}
	return found, err
}

// loadIfThere reads the configuration where one is named or in its place, and answers nil where there is none.
func loadIfThere(cmd *cobra.Command) (*config.Config, error) {
	if file, err := cmd.Flags().GetString("config"); err != nil || file == "" {
		if _, err := os.Stat(configFile); err != nil {
			return nil, nil
		}
	}
	return load(cmd)
}

// timeOf reads a moment: a day, with or without an hour, or how long ago it was.
func timeOf(flag, text string, zone *time.Location, now time.Time) (cluster.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return cluster.TimeOf(at), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return cluster.TimeOf(now.Add(-ago)), nil
	}
	return 0, fmt.Errorf("--%s %s: write a day such as 2026-01-31, with an hour as in 2026-01-31T08:00, or how long ago, as in 168h", flag, text)
}
