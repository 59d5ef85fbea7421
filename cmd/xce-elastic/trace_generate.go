package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
	"xce.internal/elastic/simulation/trace/synthetic"
)

// generateFlags are the flags of `trace generate` that are read after all are there.
type generateFlags struct {
	*outFlags
	span, start, run, profile  string
	rhythm, estimates, classes string
	queues                     []string
	printProfile               bool
}

func newTraceGenerate() *cobra.Command {
	var o synthetic.Options
	f := &generateFlags{}
	cmd := &cobra.Command{
		Use: "generate KIND", Short: "Make up a trace: lublin, eda, poisson or long-queue", Args: oneKind,
		Long: `Make up a trace of jobs. The same flags make the same jobs, to the last bit, on every machine.

Kinds:
  lublin      the model of Lublin and Feitelson (2003) of parallel machines: batch and interactive jobs
  eda         an EDA farm: regressions of hundreds of short jobs, synthesis and timing, few long place and route runs, with
              their tokens; --profile says what there is, and --print-profile prints what is built in
  poisson     exponential gaps and run times of single processors, for which queueing theory has formulas
  long-queue  users who submit hundreds or thousands of like jobs at once to a large machine, so that tens of thousands wait

Two of --jobs, --span and --load (or --rate) say how many jobs come over how long; with one of them the kind has
its own rate. Busy hours are by UTC.`,
		Example: "  xce-elastic trace generate eda --seed 7 --span 14d --out farm.jsonl.gz\n" +
			"  xce-elastic trace generate lublin --seed 1 --jobs 10000 --processors 256 --load 0.8 --out lublin.swf\n" +
			"  xce-elastic trace generate eda --print-profile > mine.yaml",
	}
	flags := cmd.Flags()
	flags.Uint64Var(&o.Seed, "seed", 1, "what all draws are made from")
	flags.Int64Var(&o.Jobs, "jobs", 0, "how many jobs (default, where there is no span: 10000, and 450000 for long-queue)")
	flags.StringVar(&f.span, "span", "", "over how long they come, as in 36h (default for eda, where there are no jobs: 14d)")
	flags.Float64Var(&o.Load, "load", 0, "offered load: the work of all jobs as a share of what the processors could do over the span, as in 0.8")
	flags.StringVar(&f.start, "start", "", "when the cluster is switched on, as in 2026-01-05 or 2026-01-05T08:00:00Z (default 2026-01-05, a Monday)")
	flags.Int64Var(&o.Processors, "processors", 0, "processors of the machine (default 128 for lublin, 16 for poisson, 8192 for long-queue)")
	flags.Int64Var(&o.HostCPUs, "host-cpus", 0, "divide jobs of more processors among hosts of so many cpus")
	flags.StringVar(&f.rhythm, "rhythm", "", "even, day (busy hours) or week (and a quiet weekend); default: day for lublin, even for poisson, week for long-queue")
	flags.Int64Var(&o.Together, "together", 0, "how many like jobs are submitted at once, on average (for lublin and poisson)")
	flags.Int64Var(&o.Users, "users", 0, "how many users, some of them busier than others (default 50)")
	flags.StringArrayVar(&f.queues, "queue", nil, "NAME=LONGEST, a queue and the longest time limit that it takes, as in short=1h; repeatable, the last without =LONGEST")
	flags.StringVar(&f.estimates, "estimates", "", "time limits: none, exact, factor (up to --limit-factor times the run time), or usual (and then up to a length that people write, as in 4h); default usual")
	flags.Int64Var(&o.LimitFactor, "limit-factor", 0, "how many times the run time a time limit is at most (default 4)")
	flags.StringVar(&f.classes, "classes", "", "classes of lublin: batch, interactive, both joined by a comma, or whole, which was fitted to all jobs together (default batch,interactive)")
	flags.Float64Var(&o.Rate, "rate", 0, "jobs per hour of poisson, instead of --load")
	flags.StringVar(&f.run, "run", "", "mean run time of poisson, as in 20m (default 1h)")
	flags.StringVar(&f.profile, "profile", "", "YAML file of what an EDA farm does")
	flags.BoolVar(&f.printProfile, "print-profile", false, "print the built-in profile of eda, to begin an own one with")
	f.outFlags = addOutFlags(cmd)
	cmd.SetFlagErrorFunc(numberFault)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.printProfile {
			return printProfile(cmd, args[0])
		}
		o.Kind = synthetic.Kind(args[0])
		if err := f.read(&o); err != nil {
			return err
		}
		return f.generate(cmd, o)
	}
	return cmd
}

// numberFault says what is wrong with flags that are numbers, and leaves the others to flagFault.
func numberFault(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		switch value.GetFlag().Value.Type() {
		case "float64":
			return fmt.Errorf("--%s %s: write a number such as 0.8", value.GetFlag().Name, value.GetValue())
		case "uint64":
			return fmt.Errorf("--%s %s: write a whole number from 0 on", value.GetFlag().Name, value.GetValue())
		}
	}
	return flagFault(cmd, err)
}

// oneKind demands a kind of workload.
func oneKind(cmd *cobra.Command, args []string) error {
	var kinds []string
	for _, kind := range synthetic.Kinds {
		kinds = append(kinds, string(kind))
		if len(args) == 1 && args[0] == string(kind) {
			return nil
		}
	}
	if len(args) == 1 {
		return fmt.Errorf("there is no kind %q; write one of %s", args[0], strings.Join(kinds, ", "))
	}
	return fmt.Errorf("write one kind of %s, as in `%s eda --out farm.jsonl`", strings.Join(kinds, ", "), cmd.CommandPath())
}

func printProfile(cmd *cobra.Command, kind string) error {
	if kind != string(synthetic.EDA) {
		return fmt.Errorf("--print-profile: %s has no profile; it is for eda", kind)
	}
	_, err := cmd.OutOrStdout().Write(synthetic.EDAProfile())
	return err
}

// read fills in what the flags say.
func (f *generateFlags) read(o *synthetic.Options) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if o.Span, err = parseLength("--span", f.span); err != nil {
		return err
	}
	if o.Run, err = parseLength("--run", f.run); err != nil {
		return err
	}
	if o.Start, err = parseDay("--start", f.start); err != nil {
		return err
	}
	if o.Queues, err = parseQueues(f.queues); err != nil {
		return err
	}
	if o.Classes, err = parseClasses(f.classes, o.Completed().Processors); err != nil {
		return err
	}
	o.Rhythm, o.Estimates = synthetic.Rhythm(f.rhythm), synthetic.Estimates(f.estimates)
	if f.profile == "" {
		return nil
	}
	data, err := os.ReadFile(f.profile)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	o.Profile, err = synthetic.ReadProfile(f.profile, data)
	return err
}

// daysPattern is whole days before a length of time.
var daysPattern = regexp.MustCompile(`^(\d{1,6})d(.*)$`)

// parseLength reads a length of time, which may begin with days; none is 0.
func parseLength(flag, text string) (cluster.Duration, error) {
	if text == "" {
		return 0, nil
	}
	days, rest := int64(0), text
	if found := daysPattern.FindStringSubmatch(text); found != nil {
		days, _ = strconv.ParseInt(found[1], 10, 64) // six digits at most
		rest = found[2]
	}
	var d cluster.Duration
	if rest != "" && d.UnmarshalText([]byte(rest)) != nil || d < 0 || strings.HasPrefix(rest, "+") {
		return 0, fmt.Errorf("%s %s: write a length of time such as 14d, 36h or 1d12h", flag, text)
	}
	d += cluster.Duration(days) * 24 * cluster.Hour
	if d == 0 {
		return 0, fmt.Errorf("%s %s: nothing happens in no time; write a length of time such as 14d or 36h, or leave it out", flag, text)
	}
	return d, nil
}

// parseDay reads a day or an instant; none is 0.
func parseDay(flag, text string) (at cluster.Time, err error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return cluster.TimeOf(day), nil
	}
	if at.UnmarshalText([]byte(text)) != nil {
		return 0, fmt.Errorf("%s %s: write a day such as 2026-01-05, or a time such as 2026-01-05T08:00:00Z", flag, text)
	}
	return at, nil
}

// parseQueues reads NAME=LONGEST, or NAME.
func parseQueues(args []string) (queues []synthetic.Queue, err error) {
	for _, arg := range args {
		name, text, limited := strings.Cut(arg, "=")
		q := synthetic.Queue{Name: name}
		if limited {
			if q.Longest, err = parseLength("--queue "+name, text); err == nil && q.Longest == 0 {
				err = fmt.Errorf("--queue %s: write NAME=LONGEST as in short=1h, or NAME", arg)
			}
			if err != nil {
				return nil, err
			}
		}
		queues = append(queues, q)
	}
	return queues, nil
}

// parseClasses reads classes of the Lublin model.
func parseClasses(text string, processors int64) (classes []synthetic.LublinClass, err error) {
	if text == "" {
		return nil, nil
	}
	published := map[string]func(int64) synthetic.LublinClass{
		"batch": synthetic.LublinBatch, "interactive": synthetic.LublinInteractive, "whole": synthetic.LublinWhole,
	}
	seen := map[string]bool{}
	for name := range strings.SplitSeq(text, ",") {
		class := published[name]
		switch {
		case class == nil:
			return nil, fmt.Errorf("--classes %s: there is no %q; write batch, interactive, batch,interactive or whole", text, name)
		case seen[name]:
			return nil, fmt.Errorf("--classes %s: %s is there twice; write it once", text, name)
		case name == "whole" && text != name:
			return nil, fmt.Errorf("--classes %s: whole has the jobs of both others in it; write it alone", text)
		}
		seen[name] = true
		classes = append(classes, class(max(processors, 1)))
	}
	return classes, nil
}

// generate makes the trace, writes it, and says what is in it.
func (f *generateFlags) generate(cmd *cobra.Command, o synthetic.Options) error {
	made, err := synthetic.Generate(o)
	if err != nil {
		return byFlags(err)
	}
	if err := f.write(cmd, made); err != nil {
		return err
	}
	done, out := o.Completed(), cmd.OutOrStdout()
	if f.out == "-" {
		out = cmd.ErrOrStderr()
	}
	t := newTable(terminalWidth(out))
	generatedTable(t, made, synthetic.Summarize(made, done.Start, done.Processors))
	_, err = io.WriteString(out, t.text())
	return err
}

// byFlags names the flags that problems are with.
func byFlags(err error) error {
	var ps cluster.Problems
	if !errors.As(err, &ps) {
		return err
	}
	named := make(cluster.Problems, len(ps))
	for i, p := range ps {
		if p.Path != "kind" {
			p.Path = "--" + p.Path
		}
		named[i] = p
	}
	return named
}

func generatedTable(t *table, made *trace.Trace, s synthetic.Summary) {
	t.row("SOURCE", made.Source)
	t.row("JOBS", s.Jobs)
	t.row("SPAN", fmt.Sprintf("%s from %s on", s.Span, s.Start.Std().Format(time.RFC3339)))
	t.row("WORK", fmt.Sprintf("%d cpu-hours", s.CPUSeconds/3600))
	if s.LoadThousandths > 0 {
		t.row("LOAD", fmt.Sprintf("%s of %d processors", thousandths(s.LoadThousandths), s.Processors))
	}
	t.row()
	t.row("KIND", "JOBS", "USERS", "CPU-HOURS", "MEAN CPUS", "MEAN RUN", "LONGEST RUN")
	for _, k := range s.Kinds {
		t.row(k.Name, k.Jobs, k.Users, k.CPUSeconds/3600, thousandths(k.MeanCPUs), k.MeanRun, k.LongestRun)
	}
}

// thousandths answers a number as people write it.
func thousandths(n int64) string { return fmt.Sprintf("%d.%03d", n/1000, n%1000) }
