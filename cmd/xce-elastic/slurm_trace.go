package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// accountsWithin is how long sacct may take: slurmdbd may search millions of jobs.
const accountsWithin = 10 * time.Minute

// slurmRecordFlags are those with which a trace is made of Slurm's accounts.
type slurmRecordFlags struct {
	slurm                       *slurmFlags
	on                          bool
	since, until, zone, mapping string
}

func addSlurmRecordFlags(cmd *cobra.Command) *slurmRecordFlags {
	f := &slurmRecordFlags{slurm: addSlurmFlags(cmd, accountsWithin)}
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "from-slurm", false, "of the jobs that Slurm has accounts of")
	flags.StringVar(&f.since, "since", "168h", "with --from-slurm: a day, with or without an hour, or how long ago")
	flags.StringVar(&f.until, "until", "0s", "with --from-slurm: the same of the end")
	flags.StringVar(&f.zone, "zone", "UTC", "with --from-slurm: time zone of --since and --until, as in Europe/Berlin")
	flags.StringVar(&f.mapping, "mapping", "", "with --from-slurm: file that says what jobs ask for that their accounts do not tell: tokens, features")
	flags.Lookup("to").Usage += "; with --from-slurm also sacct, as Slurm lists them"
	return f
}

// accounts asks Slurm for the jobs.
func (f *slurmRecordFlags) accounts(cmd *cobra.Command) ([]byte, error) {
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return nil, fmt.Errorf("--zone %s: there is no such time zone; write one such as Europe/Berlin", f.zone)
	}
	var since, until cluster.Time
	now := time.Now()
	if since, err = timeOf("since", f.since, zone, now); err != nil {
		return nil, err
	}
	if until, err = timeOf("until", f.until, zone, now); err != nil {
		return nil, err
	}
	if since >= until {
		return nil, fmt.Errorf("--since %s is not before --until %s; write an earlier one", f.since, f.until)
	}
	c, err := loadIfThere(cmd)
	if err != nil {
		return nil, err
	}
	commands, err := f.slurm.run(c)
	if err != nil {
		return nil, err
	}
	return commands.Accounts(cmd.Context(), since, until)
}

// trace answers the jobs as a trace.
func (f *slurmRecordFlags) trace(cmd *cobra.Command) (*trace.Trace, error) {
	o := trace.Options{Format: trace.Sacct}
	if f.mapping != "" {
		var err error
		if o.Mapping, err = trace.ReadMapping(f.mapping); err != nil {
			return nil, err
		}
	}
	text, err := f.accounts(cmd)
	if err != nil {
		return nil, err
	}
	t, err := trace.ReadFrom(bytes.NewReader(text), "Slurm's accounts", o)
	if err != nil {
		return nil, err
	}
	if len(t.Jobs) > 0 && len(t.Summary().Tokens) == 0 {
		return t, say(cmd.ErrOrStderr(), "No job in it has tokens. Slurm accounts for licences only where AccountingStorageTRES in slurm.conf names them, as in\n"+
			"license/vcs, and from then on; until then say with --mapping which jobs need some.\n")
	}
	return t, nil
}

// raw writes the accounts as Slurm lists them.
func (f *slurmRecordFlags) raw(cmd *cobra.Command, to *outFlags) error {
	if to.out == "" {
		return errors.New("name the file to write with --out")
	}
	text, err := f.accounts(cmd)
	if err != nil {
		return err
	}
	return to.file(cmd, func(w io.Writer) error { _, err := w.Write(text); return err })
}
