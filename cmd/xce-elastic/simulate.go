package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/report"
	"xce.internal/elastic/simulation/sweep"
	"xce.internal/elastic/simulation/trace"
)

// firstMonday is where traces begin that have no calendar of their own.
var firstMonday = cluster.TimeOf(time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC))

// savedRun is the file of a folder in which a run is saved whole.
const savedRun = "result.json.gz"

// simulateFlags are those of `simulate`.
type simulateFlags struct {
	cluster, out, page string
	jobs, vary         []string
	seed               int64
	seeded             bool
	baselines          bool
	oneByOne           bool
	atOnce             int
	quiet              bool
	replay             string
	codecKeys          string
}

func newSimulate() *cobra.Command {
	f := &simulateFlags{}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Run jobs of a trace through a cluster file, on a virtual clock: who would wait how long, and what would it cost?",
		Long: `Run the jobs of a trace through the cluster of a cluster file, on a virtual clock. Sessions, policy, ledger and
the stories of loans and hosts are those that run live; the section simulation of the cluster file stands in for
hosts that the cluster owns and for providers.

--vary runs all combinations of settings, and the baselines beside them; it can be given several times:
  ` + strings.Join(sweep.Keys(), "\n  "),
		Example: `  xce-elastic simulate --cluster farm.yaml --jobs jobs.swf.gz --out report
  xce-elastic simulate --cluster farm.yaml --jobs jobs.jsonl --vary idle_time=5m,15m,1h --vary vcs.max_borrowed=0,10,30
  xce-elastic simulate diff before/result.json.gz after/result.json.gz
  xce-elastic simulate --replay record`,
		Args: known,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "cluster file (default: the configuration)")
	flags.StringArrayVar(&f.jobs, "jobs", nil, "trace of jobs; again for more files")
	flags.StringVar(&f.out, "out", "", "folder for the report, tables and the saved run")
	flags.StringVar(&f.page, "page", "", "file for the page of the report alone")
	flags.StringArrayVar(&f.vary, "vary", nil, "setting and its values, as in idle_time=5m,15m,1h")
	flags.Int64Var(&f.seed, "seed", 0, "where chance comes from, in place of the cluster file's")
	flags.BoolVar(&f.baselines, "baselines", false, "run the baselines too (with --vary always)")
	flags.BoolVar(&f.oneByOne, "one-by-one", false, "a session after each single event, as other simulators do, to compare with them")
	flags.IntVar(&f.atOnce, "at-once", runtime.NumCPU(), "how many simulations of --vary run at a time")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	flags.StringVar(&f.codecKeys, "codec-keys", "", "with --replay: file of the keys, that of temporal.codec.keys, with which histories were encrypted")
	flags.StringVar(&f.replay, "replay", "", "folder of a live controller's record: is each of its decisions the one that this program makes?")
	reading := addTraceFlags(cmd)
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("replay") {
			return replayRecord(cmd, f.replay, f.codecKeys, f.quiet, format)
		}
		defer spendMemory()()
		f.seeded = cmd.Flags().Changed("seed")
		farm, jobs, err := f.load(cmd, reading)
		if err != nil {
			return err
		}
		if err := f.mayWrite(); err != nil {
			return err
		}
		if len(f.vary) > 0 || f.baselines {
			return f.sweep(cmd, farm, jobs, format)
		}
		return f.run(cmd, farm, jobs, format)
	}
	cmd.AddCommand(newSimulateDiff(), newRecordHistories())
	return cmd
}

const (
	// garbage is how much may lie about, in percent of what is in use, before it is
	// collected, and much is when it is collected sooner all the same.
	garbage = 400
	much    = 3 << 30
)

// spendMemory has a simulation, which runs for seconds and ends, use memory rather
// than time, unless GOGC or GOMEMLIMIT say otherwise. The answered function ends that.
func spendMemory() (end func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(garbage), debug.SetMemoryLimit(much)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// load reads the cluster and the jobs.
func (f *simulateFlags) load(cmd *cobra.Command, reading *traceFlags) (farm simulation.Farm, jobs *trace.Trace, err error) {
	if len(f.jobs) == 0 {
		return farm, nil, errors.New("there are no jobs; name a trace with --jobs")
	}
	if f.atOnce < 1 {
		return farm, nil, errors.New("--at-once is how many simulations run at a time; write 1 or more")
	}
	c, err := f.configuration(cmd)
	if err != nil {
		return farm, nil, err
	}
	farm = c.Farm()
	if f.seeded {
		farm.Seed = f.seed
	}
	if farm.Seed < 0 {
		return farm, nil, fmt.Errorf("--seed %d: write 0 or more", farm.Seed)
	}
	if err := farm.ValidateModels("simulation").Err(); err != nil {
		return farm, nil, fmt.Errorf("%s cannot be simulated: %w", farm.Name, err)
	}
	if len(farm.Hosts) == 0 && len(farm.Settings.Providers) == 0 {
		return farm, nil, errors.New("the cluster has no hosts: say under simulation.hosts what it owns, or under simulation.providers who makes some")
	}
	options, err := reading.options()
	if err != nil {
		return farm, nil, err
	}
	if jobs, err = trace.Read(f.jobs, options); err != nil {
		return farm, nil, err
	}
	jobs.Anchor(firstMonday)
	return farm, jobs, nil
}

func (f *simulateFlags) configuration(cmd *cobra.Command) (*config.Config, error) {
	if f.cluster == "" {
		return load(cmd)
	}
	return config.Load(f.cluster, cmd.Flags())
}

// mayWrite finds out before a long simulation whether what it comes to can be kept.
func (f *simulateFlags) mayWrite() error {
	if (len(f.vary) > 0 || f.baselines) && (f.page != "" || f.oneByOne) {
		return errors.New("--page and --one-by-one are for a single simulation; leave them out, or --vary and --baselines")
	}
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		probe, err := os.CreateTemp(f.out, ".probe")
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if f.page == "" {
		return nil
	}
	page, err := os.OpenFile(f.page, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("--page: %w", err)
	}
	return page.Close()
}

// errBrokenOff is what comes of a simulation that was stopped before its end.
var errBrokenOff = errors.New("broken off before the end; what is above is how far it came")

// run runs one simulation and reports it.
func (f *simulateFlags) run(cmd *cobra.Command, farm simulation.Farm, jobs *trace.Trace, format *outputFormat) error {
	bar := newBar(cmd.ErrOrStderr(), f.quiet)
	result, err := simulation.Run(cmd.Context(), farm, jobs, simulation.Options{OneByOne: f.oneByOne, Progress: bar.show})
	bar.end()
	if err != nil {
		return err
	}
	summary := report.Summarize(result)
	if f.out != "" {
		if err := saveRun(f.out, result, &summary); err != nil {
			return err
		}
	}
	if f.page != "" {
		if err := savePage(f.page, result, &summary); err != nil {
			return err
		}
	}
	if *format != "table" {
		return format.print(cmd, summary, nil)
	}
	out := cmd.OutOrStdout()
	if err := summary.Terminal(out, terminalWidth(out)); err != nil {
		return err
	}
	if err := f.tellFolder(out, "report.html"); err != nil || !result.Stopped {
		return err
	}
	return errBrokenOff
}

func (f *simulateFlags) tellFolder(out io.Writer, page string) error {
	if f.out == "" {
		return nil
	}
	err := say(out, "\nThe report is %s; the tables and the saved run are beside it.\n", filepath.Join(f.out, page))
	return err
}

// saveRun writes everything that is known of a run into a folder.
func saveRun(folder string, r *simulation.Result, s *report.Summary) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	err := savePage(filepath.Join(folder, "report.html"), r, s)
	return errors.Join(err, s.CSV(report.Into(folder), r), s.Save(filepath.Join(folder, savedRun), r))
}

// savePage writes the page of the report.
func savePage(file string, r *simulation.Result, s *report.Summary) error {
	page, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(s.HTML(page, r, report.Options{}), page.Close())
}

// sweep runs the variants and the baselines, and compares them.
func (f *simulateFlags) sweep(cmd *cobra.Command, farm simulation.Farm, jobs *trace.Trace, format *outputFormat) error {
	variants, err := f.variants(farm)
	if err != nil {
		return err
	}
	bar := newBar(cmd.ErrOrStderr(), f.quiet)
	var runs []report.Run
	err = sweep.Run(cmd.Context(), variants, jobs, f.atOnce, func(done int) { bar.count(done, len(variants)) },
		func(v sweep.Variant, r *simulation.Result) error {
			run := runOf(v, r)
			runs = append(runs, run)
			if f.out == "" {
				return nil
			}
			return saveRun(filepath.Join(f.out, folderName(v.Name)), r, &run.Summary)
		})
	bar.end()
	stopped := errors.Is(err, sweep.ErrStopped)
	if err != nil && (!stopped || len(runs) == 0) {
		return err
	}
	if f.out != "" {
		if err := saveFrontier(f.out, runs); err != nil {
			return err
		}
	}
	if *format != "table" {
		return format.print(cmd, runs, nil)
	}
	out := cmd.OutOrStdout()
	if err := report.FrontierTerminal(out, runs, terminalWidth(out)); err != nil {
		return err
	}
	if err := f.tellFolder(out, "frontier.html"); err != nil || !stopped {
		return err
	}
	return fmt.Errorf("broken off: %d of %d simulations came to their end", len(runs), len(variants))
}

func (f *simulateFlags) variants(farm simulation.Farm) ([]sweep.Variant, error) {
	var axes []sweep.Axis
	for _, text := range f.vary {
		axis, err := sweep.ParseAxis(text)
		if err != nil {
			return nil, fmt.Errorf("--vary: %w", err)
		}
		axes = append(axes, axis)
	}
	variants, err := sweep.Variants(farm, axes)
	if err != nil {
		return nil, fmt.Errorf("--vary %w", err)
	}
	if len(axes) == 0 {
		variants[0].Name = "as configured"
	}
	return append(variants, sweep.Baselines(farm)...), nil
}

func runOf(v sweep.Variant, r *simulation.Result) report.Run {
	run := report.Run{Label: v.Name, Baseline: v.Baseline, Summary: report.Summarize(r)}
	for _, s := range v.Settings {
		run.Settings = append(run.Settings, report.Setting{Name: s.Key, Value: s.Value})
	}
	return run
}

// folderName answers a name for a folder.
func folderName(label string) string {
	return strings.NewReplacer(" ", "_", "/", "_").Replace(label)
}

func saveFrontier(folder string, runs []report.Run) error {
	page, err := os.Create(filepath.Join(folder, "frontier.html"))
	if err != nil {
		return err
	}
	return errors.Join(report.Frontier(page, runs), page.Close())
}

func newSimulateDiff() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "diff BEFORE AFTER",
		Short:   "Say what changed between two saved runs, and for which jobs",
		Example: "  xce-elastic simulate diff before after/result.json.gz",
		Args:    exactly(2, "xce-elastic simulate diff before after"),
	}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		before, err := loadRun(args[0])
		if err != nil {
			return err
		}
		after, err := loadRun(args[1])
		if err != nil {
			return err
		}
		comparison := report.Compare(before, after)
		if *format != "table" {
			return format.print(cmd, comparison, nil)
		}
		out := cmd.OutOrStdout()
		return comparison.Terminal(out, terminalWidth(out))
	}
	return cmd
}

// loadRun reads a saved run, or that of a folder.
func loadRun(path string) (*simulation.Result, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, savedRun)
	}
	return report.Load(path)
}

// bar shows how far a simulation is, on a terminal.
type bar struct {
	out   io.Writer
	began time.Time
	last  time.Time
}

// barEvery is how often the bar moves.
const barEvery = 100 * time.Millisecond

func newBar(out io.Writer, quiet bool) *bar {
	file, ok := out.(*os.File)
	if quiet || !ok || !isatty.IsTerminal(file.Fd()) {
		out = nil
	}
	return &bar{out: out, began: time.Now()}
}

// show shows simulated time and jobs a second.
func (b *bar) show(p simulation.Progress) {
	b.draw(p.Ended, p.Jobs, func(rate int64) string {
		return fmt.Sprintf("%s  %d of %d jobs  %d jobs/s", p.Now.Std().Format("2006-01-02 15:04"), p.Ended, p.Jobs, rate)
	})
}

// count shows how many simulations are through.
func (b *bar) count(done, all int) {
	b.draw(int64(done), int64(all), func(int64) string { return fmt.Sprintf("%d of %d simulations", done, all) })
}

const barWidth = 20

func (b *bar) draw(done, all int64, words func(rate int64) string) {
	now := time.Now()
	if b.out == nil || now.Sub(b.last) < barEvery {
		return
	}
	b.last = now
	full := int(done * barWidth / max(all, 1))
	rate := int64(float64(done) / max(now.Sub(b.began).Seconds(), 0.001))
	_, _ = fmt.Fprintf(b.out, "\r\x1b[K%s%s  %s", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), words(rate))
}

// end takes the bar away.
func (b *bar) end() {
	if b.out != nil {
		_, _ = fmt.Fprint(b.out, "\r\x1b[K")
	}
}
