package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
)

// wishes are the flags of submit that are read after all are there.
type wishes struct {
	tokens, orTokens, countables, features []string
	limit, notBefore                       string
}

func newSubmit() *cobra.Command {
	var spec cluster.JobSpec
	var w wishes
	cmd := &cobra.Command{
		Use: "submit [flags] -- COMMAND [ARG ...]", Short: "Submit a job", Args: commandGiven,
		Example: "  xce-elastic submit --token vcs=2 --cpus 4 -- simulate --seed 7\n" +
			"  xce-elastic submit --or-token vcs=1 --or-token xcelium=1 --countable gpus=1 --constraint 'rhel9 & !old' -- regress",
	}
	flags := cmd.Flags()
	flags.StringVar(&spec.Name, "name", "", "name of the job")
	flags.Int64Var(&spec.CPUs, "cpus", 1, "cpus on one host")
	flags.Int64Var(&spec.MemoryMB, "memory", 0, "memory on one host in MB")
	flags.StringArrayVar(&w.countables, "countable", nil, "NAME=COUNT of what a host has beside cpus and memory, as in gpus=1; repeatable")
	flags.BoolVar(&spec.Exclusive, "exclusive", false, "share the host with no other job")
	flags.StringVar(&spec.Constraint, "constraint", "", "features that the host must have, joined by & | ! and parentheses, as in 'avx512 & !old'")
	flags.StringArrayVar(&w.features, "feature", nil, "a feature that the host must have too, as in avx512 or site=z1; repeatable")
	flags.Int64Var(&spec.Priority, "priority", 0, "jobs of higher priority go first")
	flags.StringVar(&spec.Queue, "queue", "", "the queue that the job counts in for thresholds")
	flags.StringArrayVar(&w.tokens, "token", nil, "RESOURCE=UNITS of a shared resource; repeatable")
	flags.StringArrayVar(&w.orTokens, "or-token", nil, "RESOURCE=UNITS[,RESOURCE=UNITS] as one of several choices beside --token; repeatable, the first that can be had is taken")
	flags.StringVar(&w.limit, "time-limit", "", "end the job after so long, as in 30m")
	flags.Int64SliceVar(&spec.After, "after", nil, "start only after these jobs have ended, as in 17,18")
	flags.StringVar(&w.notBefore, "not-before", "", "start no earlier: a time such as 2026-01-31T08:00:00Z, or a length of time from now such as 2h")
	flags.StringVar(&spec.Directory, "directory", "", "where the command runs")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec.Command = args
		if err := w.read(&spec, time.Now()); err != nil {
			return err
		}
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		job, err := c.Submit(cmd.Context(), spec)
		if err != nil {
			return err
		}
		return format.print(cmd, job, func(t *table) { t.row(fmt.Sprintf("job %d is submitted", job.ID)) })
	}
	return cmd
}

// commandGiven demands a command.
func commandGiven(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("there is no command; write it behind --, as in `xce-elastic submit --token vcs=2 -- simulate --seed 7`")
	}
	return nil
}

// read fills in what the flags say.
func (w wishes) read(spec *cluster.JobSpec, now time.Time) (err error) {
	if spec.Tokens, err = parseCounts("--token", "RESOURCE=UNITS", "vcs=2", w.tokens); err != nil {
		return err
	}
	if spec.Countables, err = parseCounts("--countable", "NAME=COUNT", "gpus=1", w.countables); err != nil {
		return err
	}
	for _, choice := range w.orTokens {
		tokens, err := parseCounts("--or-token", "RESOURCE=UNITS", "vcs=2", strings.Split(choice, ","))
		if err != nil {
			return err
		}
		spec.Alternatives = append(spec.Alternatives, tokens)
	}
	if spec.Constraint, err = withFeatures(spec.Constraint, w.features); err != nil {
		return err
	}
	if w.limit != "" {
		if err := spec.TimeLimit.UnmarshalText([]byte(w.limit)); err != nil {
			return fmt.Errorf("--time-limit: %w; write a length of time such as 30m", err)
		}
		if spec.TimeLimit < 0 {
			return fmt.Errorf("--time-limit %s: it is negative; write a length of time such as 30m", w.limit)
		}
	}
	if w.notBefore != "" {
		if spec.NotBefore, err = parseStart(w.notBefore, now); err != nil {
			return err
		}
	}
	return nil
}

// parseCounts reads NAME=COUNT.
func parseCounts(flag, form, example string, args []string) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if !ok || name == "" || err != nil || n < 1 {
			return nil, fmt.Errorf("%s %s: write %s with a whole number of at least 1, as in %s", flag, arg, form, example)
		}
		if _, twice := counts[name]; twice {
			return nil, fmt.Errorf("%s %s: %s is asked for twice; ask once for the sum", flag, arg, name)
		}
		counts[name] = n
	}
	return counts, nil
}

// withFeatures adds features to a constraint.
func withFeatures(constraint string, features []string) (string, error) {
	if _, err := cluster.ParseConstraint(constraint); err != nil {
		return "", fmt.Errorf("--constraint: %w; %s", err, cluster.ConstraintRemedy)
	}
	for _, f := range features {
		if ps := (cluster.Capacity{Features: []string{f}}).Validate(""); len(ps) > 0 {
			return "", fmt.Errorf("--feature: %s; %s", ps[0].What, ps[0].Remedy)
		}
	}
	if strings.TrimSpace(constraint) == "" {
		return strings.Join(features, " & "), nil
	}
	if len(features) == 0 {
		return constraint, nil
	}
	return fmt.Sprintf("(%s) & %s", constraint, strings.Join(features, " & ")), nil
}

// parseStart reads a time, or a length of time from now.
func parseStart(text string, now time.Time) (cluster.Time, error) {
	var at cluster.Time
	if at.UnmarshalText([]byte(text)) == nil {
		return at, nil
	}
	var in cluster.Duration
	if in.UnmarshalText([]byte(text)) == nil && in >= 0 {
		return cluster.TimeOf(now).Add(in), nil
	}
	return 0, fmt.Errorf("--not-before %s: write a time such as 2026-01-31T08:00:00Z, or a length of time from now such as 2h", text)
}

// tokenList shows the tokens of a job: those that it took, or those that it
// asks for.
func tokenList(j cluster.Job) string {
	text := countList(j.TokensTaken(j.Alternative))
	if len(j.Alternatives) == 0 || j.Alternative > 0 {
		return dash(text)
	}
	choices := make([]string, len(j.Alternatives))
	for i, a := range j.Alternatives {
		choices[i] = countList(a)
	}
	choice := strings.Join(choices, " or ")
	if text == "" {
		return choice
	}
	return text + " and " + choice
}

func countList(counts map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, counts[name]))
	}
	return strings.Join(parts, ",")
}
