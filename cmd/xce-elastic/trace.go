package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	_ "time/tzdata" // zones are known in a bare container too

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

func newTrace() *cobra.Command {
	cmd := &cobra.Command{
		Use: "trace", Short: "Check, convert and record traces: the jobs of a cluster over some time", Args: known, RunE: help,
		Long: "Check, convert and record traces: the jobs of a cluster over some time, which `xce-elastic simulate` runs.\n" +
			"They are read from accounting files of Slurm (sacct -P), LSF (lsb.acct), Grid Engine and PBS, from logs in the\n" +
			"Standard Workload Format, and from our own JSON lines; compressed with gzip or not.\n" + aboutMappings,
	}
	cmd.AddCommand(newTraceCheck(), newTraceConvert(), newTraceRecord(), newTraceGenerate())
	return cmd
}

// aboutMappings explains the file that --mapping names.
const aboutMappings = `
A mapping file says what jobs ask for that their records do not tell. The first rule that matches a job is used:

  resources: {vcs_lic: vcs, dead_lic: ""}  # names in records, and the tokens that they are; "" is none
  rules:
  - match: {queue: regress, user: [ann, "b*"], command: "*/simv *", processors: 1-4}
    set: {tokens: {vcs: 1}, memory_mb_per_processor: 4000, features: [avx2]}
  - match: {application: innovus}
    set: {tokens: {innovus: 1}, processors_per_host: 16, time_limit: 24h, priority: 5}
  defaults: {memory_mb: 2000}  # where neither the record nor a rule says it

Match by user, group, queue, application, name and command (* and ? stand for any signs) and by processors. Set tokens,
alternatives, tokens_for, memory_mb (of the job) or memory_mb_per_processor, features, constraint, countables, exclusive,
queue, application, priority, time_limit and processors_per_host.`

// traceFlags are how accounting files are to be read.
type traceFlags struct {
	format, mapping, zone, duration, memory string
	strict, calendar                        bool
	refuse                                  []string
	processors                              int64
}

// addTraceFlags adds the flags to a command that reads traces.
func addTraceFlags(cmd *cobra.Command) *traceFlags {
	f := &traceFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "", "swf, sacct, lsf, sge, uge, pbs or jsonl (default: what each file looks like)")
	flags.StringVar(&f.mapping, "mapping", "", "file that says what jobs ask for that their records do not tell: tokens, memory, features")
	flags.BoolVar(&f.strict, "strict", false, "refuse the trace if anything would have to be mended")
	flags.StringSliceVar(&f.refuse, "refuse", nil, "refuse the trace if one of these rules would have to be used; repeatable")
	flags.StringVar(&f.zone, "zone", "UTC", "time zone of local times, as in Europe/Berlin")
	flags.StringVar(&f.duration, "lsf-duration", "job", "how long jobs of LSF keep tokens that they asked for with a duration: job (to its end), or duration")
	flags.StringVar(&f.memory, "lsf-memory-unit", "MB", "unit of memory in LSF's rusage, as LSF_UNIT_FOR_LIMITS has it: KB, MB, GB or TB")
	flags.BoolVar(&f.calendar, "calendar", false, "add the time at which a log in the Standard Workload Format began to its times")
	flags.Int64Var(&f.processors, "processors", 0, "processors that there are: jobs that had more are cut to them")
	return f
}

// options reads what the flags say.
func (f *traceFlags) options() (o trace.Options, err error) {
	o = trace.Options{Strict: f.strict, Refuse: f.refuse, Calendar: f.calendar, Procs: f.processors, LSFMemory: f.memory, Stdin: os.Stdin}
	if f.format != "" {
		if o.Format, err = trace.FormatOf(f.format); err != nil {
			return o, fmt.Errorf("--format: %w", err)
		}
	}
	if o.Zone, err = time.LoadLocation(f.zone); err != nil {
		return o, fmt.Errorf("--zone %s: there is no such time zone; write one such as Europe/Berlin", f.zone)
	}
	switch {
	case f.duration != "job" && f.duration != "duration":
		return o, fmt.Errorf("--lsf-duration %s: write job or duration", f.duration)
	case f.memory == "" || !strings.Contains(" KB MB GB TB ", " "+strings.ToUpper(f.memory)+" "):
		return o, fmt.Errorf("--lsf-memory-unit %s: write KB, MB, GB or TB", f.memory)
	case f.processors < 0:
		return o, fmt.Errorf("--processors %d: write how many there are", f.processors)
	}
	o.TokensForDuration = f.duration == "duration"
	if f.mapping != "" {
		o.Mapping, err = trace.ReadMapping(f.mapping)
	}
	return o, err
}

// aboutRules lists the rules by which records are mended.
func aboutRules() string {
	var text strings.Builder
	for _, r := range trace.Rules() {
		fmt.Fprintf(&text, "  %-18s %s: %s\n", r.Name, r.Found, r.Done)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// someFiles demands at least one file.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name the files, as in `%s accounting.log`", cmd.CommandPath())
	}
	return nil
}

func newTraceCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check FILE...", Short: "Say what is in accounting files, and what had to be mended", Args: someFiles,
		Long: "Say what is in accounting files, and what had to be mended. Each rule by which something is mended has a name, with\n" +
			"which --refuse refuses it; --strict refuses them all. Several files are read as one trace; - is standard input.\n\nRules:\n" + aboutRules(),
		Example: "  xce-elastic trace check --mapping tokens.yaml lsb.acct lsb.acct.1.gz\n" +
			"  sacct -P -a -X -S 2026-01-01 --format=ALL | xce-elastic trace check --zone Europe/Berlin -",
	}
	from, format := addTraceFlags(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := from.options()
		if err != nil {
			return err
		}
		o.Stdin = cmd.InOrStdin()
		t, err := trace.Read(args, o)
		if err != nil {
			return err
		}
		s := t.Summary()
		return format.print(cmd, s, func(t *table) { summaryTable(t, s) })
	}
	return cmd
}

func summaryTable(t *table, s trace.Summary) {
	t.row("SOURCE", s.Source)
	t.row("JOBS", s.Jobs)
	if s.Jobs > 0 {
		t.row("ARRIVALS", arrivals(s))
		t.row("PROCESSORS", fmt.Sprintf("at most %d for one job, whose hosts are at most %d; %d processor-hours", s.Processors, s.Hosts, s.ProcessorHours))
		t.row("MEMORY", fmt.Sprintf("at most %d MB on one host", s.MemoryMB))
		t.row("USERS", fmt.Sprintf("%d; groups: %d", s.Users, s.Groups))
		t.row("TIME LIMITS", fmt.Sprintf("%d jobs have none", s.Unlimited))
	}
	if len(s.Queues) > 0 {
		t.row()
		t.row("QUEUE", "JOBS")
	}
	for _, q := range s.Queues {
		t.row(dash(q.Name), q.Jobs)
	}
	if len(s.Tokens) > 0 {
		t.row()
		t.row("TOKENS OF", "JOBS", "MOST FOR ONE", "TOKEN-HOURS")
	}
	for _, a := range s.Tokens {
		t.row(a.Resource, a.Jobs, a.Most, a.UnitHours)
	}
	repairTable(t, s.Repairs)
}

// arrivals says when jobs come. Logs in the Standard Workload Format count from
// their begin, not from 1970.
func arrivals(s trace.Summary) string {
	first, last := s.First.Std(), s.Last.Std()
	if last.Year() < 1980 {
		return fmt.Sprintf("%s to %s after the log began", cluster.Duration(s.First), cluster.Duration(s.Last))
	}
	return fmt.Sprintf("%s to %s (%s)", first.Format(time.RFC3339), last.Format(time.RFC3339), s.Span)
}

// repairTable lists what was mended, each rule with its first place.
func repairTable(t *table, repairs []trace.Repair) {
	t.row()
	if len(repairs) == 0 {
		t.row("nothing had to be mended")
		return
	}
	t.row("MENDED BY RULE", "COUNT", "WHAT, AND WHERE FIRST")
	for _, r := range repairs {
		text := r.What
		if len(r.Places) > 0 {
			text += "; " + r.Places[0]
		}
		t.sentence(wrapped, r.Rule, r.Count, text)
	}
}

// outFlags are where a trace is written, and how.
type outFlags struct{ out, to string }

func addOutFlags(cmd *cobra.Command) *outFlags {
	f := &outFlags{}
	cmd.Flags().StringVar(&f.out, "out", "", "file to write (- is standard output); compressed if its name ends with .gz")
	cmd.Flags().StringVar(&f.to, "to", "", "jsonl, which loses nothing, or swf (default: what the file's name ends with, or jsonl)")
	return f
}

// check finds out the format, before anything is read.
func (f *outFlags) check() error {
	if f.out == "" {
		return errors.New("name the file to write with --out")
	}
	if f.to == "" {
		f.to = "jsonl"
		if strings.HasSuffix(strings.TrimSuffix(f.out, ".gz"), ".swf") {
			f.to = "swf"
		}
	}
	if f.to != "jsonl" && f.to != "swf" {
		return fmt.Errorf("--to %s: write jsonl or swf", f.to)
	}
	return nil
}

// write writes the trace, and says how many jobs are in it.
func (f *outFlags) write(cmd *cobra.Command, t *trace.Trace) error {
	encode := t.WriteJSONL
	if f.to == "swf" {
		encode = t.WriteSWF
	}
	if err := f.file(cmd, encode); err != nil || f.out == "-" {
		return err
	}
	_, err := fmt.Fprintf(cmd.ErrOrStderr(), "%d jobs are in %s\n", len(t.Jobs), f.out)
	return err
}

// file writes the file; it is there when all of it is.
func (f *outFlags) file(cmd *cobra.Command, encode func(io.Writer) error) error {
	if f.out == "-" {
		return f.compress(cmd.OutOrStdout(), encode)
	}
	part, err := os.CreateTemp(filepath.Dir(f.out), "."+filepath.Base(f.out)+".*")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer os.Remove(part.Name()) // once it is renamed there is none
	err = errors.Join(f.compress(part, encode), part.Chmod(0o644), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), f.out)
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

func (f *outFlags) compress(w io.Writer, encode func(io.Writer) error) error {
	if !strings.HasSuffix(f.out, ".gz") {
		return encode(w)
	}
	z := gzip.NewWriter(w)
	return errors.Join(encode(z), z.Close())
}

func newTraceConvert() *cobra.Command {
	cmd := &cobra.Command{
		Use: "convert FILE...", Short: "Write accounting files as JSON lines, or in the Standard Workload Format", Args: someFiles,
		Long: "Write accounting files as one trace of JSON lines, which has all that is known of the jobs and is read fastest, or in\n" +
			"the Standard Workload Format, which knows only processors and memory. What was mended is told on standard error, and\n" +
			"in the JSON lines.",
		Example: "  xce-elastic trace convert --zone Europe/Berlin --mapping tokens.yaml jobs.sacct --out jobs.jsonl.gz",
	}
	from, to := addTraceFlags(cmd), addOutFlags(cmd)
	names := cmd.Flags().Bool("names", false, "keep the names and command lines of jobs; it takes much more memory")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := to.check(); err != nil {
			return err
		}
		o, err := from.options()
		if err != nil {
			return err
		}
		o.Names, o.Stdin = *names, cmd.InOrStdin()
		t, err := trace.Read(args, o)
		if err != nil {
			return err
		}
		return writeTrace(cmd, to, t)
	}
	return cmd
}

// writeTrace writes the trace, and says what was mended.
func writeTrace(cmd *cobra.Command, to *outFlags, t *trace.Trace) error {
	if err := to.write(cmd, t); err != nil {
		return err
	}
	if len(t.Repairs) == 0 {
		return nil
	}
	told := newTable(terminalWidth(cmd.ErrOrStderr()))
	repairTable(told, t.Repairs)
	_, err := io.WriteString(cmd.ErrOrStderr(), strings.TrimPrefix(told.text(), "\n"))
	return err
}

func newTraceRecord() *cobra.Command {
	cmd := &cobra.Command{
		Use: "record", Short: "Make a trace of the jobs that the controller knows, or Slurm", Args: cobra.NoArgs,
		Long: "Make a trace of the jobs that the controller knows: those that have ended with their run times and waits, those that\n" +
			"run as if they ended now, and those that wait with their time limits. A job that waits without one is left out.\n\n" +
			"With --from-slurm, make it of the jobs that slurmdbd has accounts of, of all users as far as it shows them to who\n" +
			"asks; no controller is needed. Jobs are in it that waited or ran at some moment from --since to --until. Those that never\n" +
			"started are left out. Slurm accounts for licences only where AccountingStorageTRES names them, as in license/vcs; else\n" +
			"say with a mapping which jobs need tokens (`xce-elastic trace --help`).",
		Example: "  xce-elastic trace record --out week.jsonl.gz\n" +
			"  xce-elastic trace record --from-slurm --since 2026-01-01 --until 2026-02-01 --zone Europe/Berlin --out january.jsonl.gz\n" +
			"  xce-elastic trace record --from-slurm --since 720h --to sacct --out jobs.sacct.gz",
	}
	to, from := addOutFlags(cmd), addSlurmRecordFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if from.on && to.to == "sacct" {
			return from.raw(cmd, to)
		}
		if err := to.check(); err != nil {
			return err
		}
		if from.on {
			t, err := from.trace(cmd)
			if err != nil {
				return err
			}
			return writeTrace(cmd, to, t)
		}
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		jobs, err := c.Jobs(cmd.Context(), "")
		if err != nil {
			return err
		}
		status, err := c.Status(cmd.Context()) // afterwards: by its time all of them had been submitted
		if err != nil {
			return err
		}
		return writeTrace(cmd, to, trace.OfJobs("the controller of "+status.Cluster, jobs, status.Now))
	}
	return cmd
}
