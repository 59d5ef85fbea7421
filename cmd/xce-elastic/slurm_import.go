package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"xce.internal/elastic/controller/slurm"
)

func newSlurmImport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "import", Short: "Write a cluster file of what a running Slurm has, to simulate it before anything is installed", Args: cobra.NoArgs,
		Long: "Write a cluster file of what a running Slurm has: its nodes as hosts for simulations, its licences as shared resources of\n" +
			"which all are owned. Nothing of Slurm is changed. Lines that begin with #+ are examples of a lender, of a maker of\n" +
			"hosts and of their models: `sed -i 's/^#+//' FILE` puts them in force. What has no counterpart is said in comments.",
		Example: "  xce-elastic slurm import --out farm.yaml\n  xce-elastic simulate --cluster farm.yaml --jobs jobs.jsonl.gz",
	}
	from := addSlurmFlags(cmd, surveyWithin)
	out := cmd.Flags().StringP("out", "o", "-", "file to write, which must not be there (- is standard output)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		commands, err := from.run(nil)
		if err != nil {
			return err
		}
		found, err := survey(cmd.Context(), commands)
		if err != nil {
			return err
		}
		text := slurm.ClusterFile(found)
		if *out == "-" {
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return err
		}
		file, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return fmt.Errorf("--out: %w; name one that is not there", err)
		}
		_, err = io.WriteString(file, text)
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		return say(cmd.ErrOrStderr(), "%d nodes and %d licences of cluster %s are in %s\n", len(found.Nodes), len(found.Licences), found.Settings.Cluster, *out)
	}
	return cmd
}
