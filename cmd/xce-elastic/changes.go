package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"xce.internal/elastic/controller/api"
)

func newChanges() *cobra.Command {
	cmd := &cobra.Command{
		Use: "changes", Short: "List what changed, who changed it and why", Args: cobra.NoArgs,
		Long: "List the newest audit records: what changed, who changed it and why. Hosts that were not let in are among them\n" +
			"(--kind join-refused), and machines or tokens that no one knows of (--kind stray).",
		Example: "  xce-elastic changes --last 1000 --kind join-refused\n  xce-elastic changes --subject host/small-3 --json",
	}
	last := cmd.Flags().Int64("last", 100, "how many of the newest records are looked at")
	kind := cmd.Flags().String("kind", "", "only records of this kind, such as host-drain")
	subject := cmd.Flags().String("subject", "", "only records of this host, loan, job, resource, template or provider")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		changes, err := lastChanges(cmd.Context(), c, max(*last, 0))
		if err != nil {
			return err
		}
		changes = slices.DeleteFunc(changes, func(c api.Change) bool {
			return *kind != "" && c.Kind != *kind || *subject != "" && c.Subject != *subject
		})
		return format.print(cmd, changes, func(t *table) { changeTable(t, changes) })
	}
	return cmd
}

// lastChanges reads the newest audit records, oldest first.
func lastChanges(ctx context.Context, c *api.Client, n int64) ([]api.Change, error) {
	changes := []api.Change{}
	st, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	for after := max(st.Revision-n, 0); after < st.Revision; {
		page, err := c.Changes(ctx, after, 0)
		if err != nil {
			return nil, err
		}
		if len(page.Changes) == 0 {
			break
		}
		changes, after = append(changes, page.Changes...), page.Revision
	}
	return changes, nil
}

func changeTable(t *table, changes []api.Change) {
	if len(changes) == 0 {
		t.row("there are no such records")
		return
	}
	t.sentence(wrapped, "REVISION", "AT", "BY", "KIND", "SUBJECT", "WHY")
	for _, c := range changes {
		t.sentence(wrapped, c.Revision, stamp(c.At), c.Actor, c.Kind, c.Subject, c.Why)
	}
}
