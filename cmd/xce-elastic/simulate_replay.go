package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"xce.internal/elastic/simulation/replay"
	"xce.internal/elastic/starter"
)

// replayRecord asks this program about each decision of a record.
func replayRecord(cmd *cobra.Command, folder, keys string, quiet bool, format *outputFormat) error {
	for _, flag := range []string{"jobs", "cluster", "vary", "baselines", "out", "seed"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--replay takes all that it needs from the record; leave --%s out", flag)
		}
	}
	if folder == "" {
		return errors.New("--replay: name the folder of the record, that of controller.record")
	}
	bar := newBar(cmd.ErrOrStderr(), quiet)
	open := func(namespace string) (replay.Codec, error) { return payloadCodec(keys, namespace, slog.Default()) }
	report, err := replay.Run(cmd.Context(), folder, replay.Options{Codec: open, Progress: func(p replay.Progress) {
		bar.draw(p.Files, p.OfFiles, func(int64) string {
			return fmt.Sprintf("%d of %d files  %d decisions", p.Files, p.OfFiles, p.Decisions)
		})
	}})
	bar.end()
	if err != nil {
		return fmt.Errorf("--replay: %w", err)
	}
	if err := format.print(cmd, report, func(t *table) { replayTable(t, report) }); err != nil {
		return err
	}
	switch n := report.Different(); n {
	case 0:
		return provesNothing(report)
	case 1:
		return errors.New("1 decision would be made otherwise now")
	default:
		return fmt.Errorf("%d decisions would be made otherwise now", n)
	}
}

// provesNothing answers why a replay without a difference is no proof; nil where it is one.
func provesNothing(r *replay.Report) error {
	replayed := int64(0)
	for _, k := range r.Kinds {
		replayed += int64(k.Replayed)
	}
	switch {
	case r.Stopped:
		return errors.New("broken off before the end: the rest of the record is not known to be decided alike")
	case replayed == 0:
		return errors.New("there is no decision in the record, so that nothing is shown; let the controller record for longer")
	}
	return nil
}

func replayTable(t *table, r *replay.Report) {
	t.row("DECIDED LIVE", "REPLAYED", "SAME", "IN OTHER WORDS", "DIFFERENT")
	for _, k := range r.Kinds {
		if k.Replayed > 0 {
			t.row(k.Name, k.Replayed, k.Same, k.Reworded, k.Different)
		}
	}
	if r.From > 0 {
		t.row()
		t.paragraph(0, fmt.Sprintf("Decided from %s to %s, by %s.", r.From, r.To, orUnknown(strings.Join(r.Releases, ", "))))
	}
	for _, note := range replayNotes(r) {
		t.paragraph(0, note)
	}
	differencesTable(t, "DIFFERENT NOW, AT FIRST", r.Differences)
	differencesTable(t, "IN OTHER WORDS, AT FIRST", r.Rewordings)
	if r.Different() == 0 && provesNothing(r) == nil {
		t.row()
		t.paragraph(0, "Every decision of the record is the one that this program makes.")
	}
}

func orUnknown(releases string) string {
	if releases == "" {
		return "a release that is not known"
	}
	return "release " + releases
}

// replayNotes says what of the record could not be replayed.
func replayNotes(r *replay.Report) (notes []string) {
	if r.Stopped {
		notes = append(notes, "Broken off: the rest of the record was not replayed.")
	}
	if r.Missed > 0 {
		notes = append(notes, fmt.Sprintf("%d decisions are not in the record: the controller was too busy, or could not write.", r.Missed))
	}
	if r.CutOff > 0 {
		notes = append(notes, fmt.Sprintf("%d files have no end: they are being written, or their controller was killed; what is whole was replayed.", r.CutOff))
	}
	if r.NotBegun > 0 {
		notes = append(notes, fmt.Sprintf("%d stories had not begun.", r.NotBegun))
	}
	return notes
}

func differencesTable(t *table, title string, differences []replay.Difference) {
	if len(differences) == 0 {
		return
	}
	t.row()
	t.row(title)
	for _, d := range differences {
		what := d.What
		if d.Path != "" {
			what += ": " + d.Path
		}
		t.paragraph(0, d.Where)
		t.paragraph(2, what)
		t.paragraph(4, "live: "+d.Live)
		t.paragraph(4, "now: "+d.Now)
	}
}

func newRecordHistories() *cobra.Command {
	cmd := &cobra.Command{
		Use: "record-histories", Short: "Download the histories of all providers, loans and hosts, for --replay", Args: cobra.NoArgs,
		Long: "Download the histories of the workflows of all providers, loans and hosts that Temporal still has. They hold the answers\n" +
			"of the providers. Below the folder of the controller's record, --replay replays both.",
		Example: "  xce-elastic simulate record-histories --out record\n  xce-elastic simulate --replay record",
	}
	out := cmd.Flags().String("out", "", "folder to write to, below which a folder histories is made")
	quiet := cmd.Flags().BoolP("quiet", "q", false, "no progress")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *out == "" {
			return errors.New("name the folder to write to with --out")
		}
		return recordHistories(cmd, *out, newBar(cmd.ErrOrStderr(), *quiet))
	}
	return cmd
}

func recordHistories(cmd *cobra.Command, folder string, bar *bar) error {
	c, err := load(cmd)
	if err != nil {
		return err
	}
	options, err := temporalOptions(c, logger(c))
	if err != nil {
		return err
	}
	stories, closeStories, err := dialStarter(cmd)
	if err != nil {
		return err
	}
	defer closeStories()
	runs, err := stories.Runs(cmd.Context())
	if err != nil {
		return err
	}
	histories, err := replay.NewHistories(folder, replay.Index{Release: version, Namespace: options.Namespace, Recorded: now()})
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	n, err := download(cmd, stories, runs, histories, bar)
	if err != nil {
		return err
	}
	_, err = io.WriteString(cmd.ErrOrStderr(), fmt.Sprintf("%d histories are in %s\n", n, folder))
	return err
}

// download writes the histories of all runs that there still are, and answers how many.
func download(cmd *cobra.Command, stories *starter.Client, runs []starter.Run, to *replay.Histories, bar *bar) (n int, err error) {
	defer bar.end()
	for i, run := range runs {
		events, err := stories.History(cmd.Context(), run)
		if err != nil {
			return n, err
		}
		if events != nil {
			if err := to.Write(run.ID, run.Run, events); err != nil {
				return n, fmt.Errorf("--out: %w", err)
			}
			n++
		}
		bar.draw(int64(i+1), int64(len(runs)), func(int64) string { return fmt.Sprintf("%d of %d histories", i+1, len(runs)) })
	}
	return n, nil
}
