package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"xce.internal/elastic/controller/api"
)

func newLeases() *cobra.Command {
	cmd := &cobra.Command{
		Use: "leases", Short: "List which provisioner acts for which provider", Args: cobra.NoArgs,
		Long: "List which provisioner acts for which provider, under which epoch and since when, and the provisioners that are there.\n" +
			"A provisioner keeps its leases as long as the controller hears of it.",
	}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		leases, err := c.Leases(cmd.Context())
		if err != nil {
			return err
		}
		return format.print(cmd, leases, func(t *table) { leaseTable(t, leases) })
	}
	cmd.AddCommand(newLeasesMove())
	return cmd
}

func leaseTable(t *table, leases api.Leases) {
	t.row("PROVIDER", "PROVISIONER", "EPOCH", "SINCE", "NEXT")
	for _, l := range leases.Leases {
		holder, next := l.Holder, ""
		if holder == "" {
			holder = "-"
		}
		switch {
		case l.MoveTo != "":
			next = "moves to " + l.MoveTo
		case l.Pinned:
			next = "stays, as an operator wants"
		}
		t.row(l.Provider, holder, fmt.Sprint(l.Epoch), l.Since.Stamp(), next)
	}
	t.row()
	t.row("PROVISIONER", "SINCE", "HEARD OF UNTIL", "MAY ACT FOR", "PREFERS")
	for _, p := range leases.Provisioners {
		until := p.Until.Stamp()
		if p.Until <= leases.Now {
			until += " (over)"
		}
		owns := strings.Join(p.Owns, ", ")
		if p.Leaving {
			owns = "nothing more; it stops"
		}
		t.row(p.Name, p.Since.Stamp(), until, owns, strings.Join(p.Prefers, ", "))
	}
}

func newLeasesMove() *cobra.Command {
	cmd := &cobra.Command{
		Use: "move PROVIDER", Short: "Have another provisioner act for a provider", Args: exactly(1, "xce-elastic leases move pool-a --to p2"),
		Long: "Have another provisioner act for a provider. The one that does ends what it is doing first; the other then\n" +
			"keeps the provider until it is gone or another move is wanted.",
	}
	to := cmd.Flags().String("to", "", "provisioner that is to act")
	_ = cmd.MarkFlagRequired("to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		if err := c.MoveLease(cmd.Context(), args[0], api.MoveLease{To: *to}); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s goes to %s; `xce-elastic leases` shows when it is there\n", args[0], *to)
		return err
	}
	return cmd
}
