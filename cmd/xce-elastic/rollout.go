package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"xce.internal/elastic/starter"
)

func newRollout() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollout [BUILD]", Short: "List the builds of the workflows, or have one take over", Args: cobra.MaximumNArgs(1),
		Long: "List the builds of the workflows that provisioners run, and what part of the workflows goes to each; or have a build\n" +
			"take a part of them, or all. It is for provisioners with temporal.versioning. Workflows that run go to the build at\n" +
			"their next step.",
	}
	percent := cmd.Flags().Float32("percent", 100, "part of the workflows that goes to the build")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *percent < 0 || *percent > 100 {
			return fmt.Errorf("--percent %g: write 0 to 100", *percent)
		}
		stories, hangUp, err := dialStarter(cmd)
		if err != nil {
			return err
		}
		defer hangUp()
		builds, err := stories.Builds(cmd.Context())
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return format.print(cmd, builds, func(t *table) { buildTable(t, builds) })
		}
		if !slices.ContainsFunc(builds, func(b starter.Build) bool { return b.ID == args[0] }) {
			return fmt.Errorf("no provisioner runs build %q with temporal.versioning; `xce-elastic rollout` lists those that are known", args[0])
		}
		if err := stories.Rollout(cmd.Context(), args[0], *percent, whoami()); err != nil {
			return err
		}
		err = say(cmd.OutOrStdout(), "%g %% of the workflows go to build %s from their next step on\n", *percent, args[0])
		return err
	}
	return cmd
}

func buildTable(t *table, builds []starter.Build) {
	if len(builds) == 0 {
		t.row("No provisioner runs with temporal.versioning.")
		return
	}
	t.row("BUILD", "SEEN FIRST", "TAKES", "")
	for _, b := range builds {
		state := ""
		if b.Drained {
			state = "no workflow is left on it"
		}
		t.row(b.ID, b.Seen.UTC().Format(time.DateTime), fmt.Sprintf("%g %%", b.Percent), state)
	}
}
