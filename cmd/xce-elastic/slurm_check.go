package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/slurm"
)

// surveyWithin is how long one of Slurm's commands may take where someone waits for it.
const surveyWithin = 15 * time.Second

func newSlurm() *cobra.Command {
	cmd := &cobra.Command{Use: "slurm", Short: "Look at a running Slurm, before and while it is the backend", Args: known, RunE: help}
	cmd.AddCommand(newSlurmCheck(), newSlurmImport())
	return cmd
}

func newSlurmCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Say what a running Slurm has of what is needed, and which lines are missing", Args: cobra.NoArgs,
		Long: "Say what a running Slurm has of what is needed, what is missing, and the lines to add to slurm.conf, each with its reason.\n" +
			"Nothing is changed. With a configuration, each of its shared resources is held against Slurm's licences; without one,\n" +
			"what Slurm has is listed. It ends with 1 where something is missing.",
		Example: "  xce-elastic slurm check -c xce-elastic.yaml\n  xce-elastic slurm check --conf /etc/slurm/slurm.conf",
	}
	from, format := addSlurmFlags(cmd, surveyWithin), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadIfThere(cmd)
		if err != nil {
			return err
		}
		commands, err := from.run(c)
		if err != nil {
			return err
		}
		found, err := survey(cmd.Context(), commands)
		if err != nil {
			return err
		}
		var want slurm.Wanted
		if c != nil {
			want = wantedOfSlurm(c)
		}
		checked := slurmChecked{found.Settings.Version, found.Settings.Cluster, found.Conf, slurm.Check(found, want)}
		if err := format.print(cmd, checked, func(t *table) { slurmTable(t, checked) }); err != nil {
			return err
		}
		if n := checked.Missing(); n > 0 {
			return fmt.Errorf("%d of the things that are needed are missing; the lines marked %s say which", n, slurm.Missing)
		}
		return nil
	}
	return cmd
}

// slurmChecked is what the check prints.
type slurmChecked struct {
	Version string `json:"version"`
	Cluster string `json:"cluster"`
	Conf    string `json:"conf"`
	slurm.Report
}

// wantedOfSlurm answers what a configuration asks of Slurm. A provider that lends nothing is there to make hosts.
func wantedOfSlurm(c *config.Config) slurm.Wanted {
	want := slurm.Wanted{Reservation: c.Slurm.Reservation, MostHosts: c.Hosts.Max}
	licences := c.LicenceNames()
	lenders := map[string]bool{}
	for _, r := range c.Resources {
		w := slurm.WantedResource{Name: r.Name, Licence: licences[r.Name], Owned: r.Owned}
		if r.Elastic != nil {
			w.MaxBorrowed = r.Elastic.MaxBorrowed
			for _, lender := range r.Elastic.Lenders {
				lenders[lender] = true
			}
		}
		want.Resources = append(want.Resources, w)
	}
	makesHosts := slices.ContainsFunc(c.Providers, func(p config.Provider) bool { return !lenders[p.Name] })
	if !makesHosts && len(c.Slurm.Templates) == 0 {
		return want
	}
	want.Kinds = []slurm.HostKind{slurm.HostKind(c.Slurm.Nodes)}
	for _, t := range c.Slurm.Templates {
		if kind := slurm.HostKind(t.Kind); !slices.Contains(want.Kinds, kind) {
			want.Kinds = append(want.Kinds, kind)
		}
	}
	return want
}

func slurmTable(t *table, c slurmChecked) {
	t.row(fmt.Sprintf("Slurm %s of cluster %s, configured by %s", c.Version, c.Cluster, c.Conf))
	t.row()
	t.row("VERDICT", "OF", "FOUND")
	for _, f := range c.Findings {
		t.sentence(wrapped, f.Verdict, f.Subject, f.Text)
	}
	lines(t, "WRITE INTO "+c.Conf+", in place of a line of the same name, and run `scontrol reconfigure`", c.Lines, func(l slurm.Line) bool { return !l.Command && !l.Restart })
	lines(t, "WRITE INTO "+c.Conf+", in place of a line of the same name, and start slurmctld anew", c.Lines, func(l slurm.Line) bool { return !l.Command && l.Restart })
	lines(t, "RUN", c.Lines, func(l slurm.Line) bool { return l.Command })
}

// lines lists some of the lines, each below its reason.
func lines(t *table, title string, all []slurm.Line, which func(slurm.Line) bool) {
	for _, l := range all {
		if !which(l) {
			continue
		}
		if title != "" {
			t.row()
			t.row(title)
			title = ""
		}
		t.comment(l.Why)
		t.row("  " + l.Line)
	}
}
