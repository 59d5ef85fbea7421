package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xce.internal/elastic/controller/pki"
)

func newCA() *cobra.Command {
	cmd := &cobra.Command{Use: "ca", Short: "Work on the certificate authority", Args: known, RunE: help}
	cmd.AddCommand(newCAInit())
	return cmd
}

const kept = `made %[1]s/ca.crt, ca.key and ca.crl; it signs until %[2]s

  ca.key   signs certificates. Whoever has it is any peer: keep it off the machines that run
           anything, and keep a copy offline. A controller needs it only where providers make hosts.
  ca.crt   goes to every peer; it is no secret
  ca.crl   the certificates that were revoked: copy it to every controller whenever it changes
`

func newCAInit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "init", Short: "Make a certificate authority", Args: cobra.NoArgs,
		Long: "Make a certificate authority in a folder, with a list of revoked certificates that is empty.\n" +
			"A folder that has one is refused.",
		Example: "  xce-elastic ca init\n  xce-elastic ca init --folder /media/vault/pki --days 1825",
	}
	folder := folderFlag(cmd.Flags())
	life := lifeFlag(cmd.Flags(), pki.CALife, "how many days it signs")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ca, err := pki.InitAuthority(*folder, life.length())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), kept, *folder, day(ca.Certificate().NotAfter))
		return err
	}
	return cmd
}

func folderFlag(flags *pflag.FlagSet) *string {
	return flags.String("folder", "pki", "folder of the authority and of what it issues")
}

// days are a flag's length of life.
type days int64

func (d *days) length() time.Duration { return time.Duration(*d) * 24 * time.Hour }

// lifeFlag adds --days.
func lifeFlag(flags *pflag.FlagSet, standard time.Duration, usage string) *days {
	d := days(standard / (24 * time.Hour))
	flags.Var(&d, "days", usage)
	return &d
}

// longestLife is where lengths of time would no longer fit their integers.
const longestLife = 100 * 365

// String implements pflag.Value.
func (d *days) String() string { return fmt.Sprint(int64(*d)) }

// Type implements pflag.Value.
func (d *days) Type() string { return "days" }

// Set implements pflag.Value.
func (d *days) Set(text string) error {
	var n int64
	if _, err := fmt.Sscanf(text+"\n", "%d\n", &n); err != nil || n < 1 || n > longestLife {
		return fmt.Errorf("write a whole number of days, from 1 to %d", longestLife)
	}
	*d = days(n)
	return nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// sayIssued says what a certificate is and how long it lasts.
func sayIssued(out io.Writer, folder, file string, until time.Time, peer string) error {
	files := pki.In(folder, file)
	_, err := fmt.Fprintf(out, "%s and %s are for %s until %s\n", files.Cert, files.Key, peer, day(until))
	return err
}
