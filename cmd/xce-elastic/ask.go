package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/workflows"
)

func newJobs() *cobra.Command {
	cmd := &cobra.Command{Use: "jobs", Short: "List jobs", Args: cobra.NoArgs}
	state := cmd.Flags().String("state", "", "only those waiting, running, done, failed or timeout")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains([]string{"", "waiting", "running", "done", "failed", "timeout"}, *state) {
			return fmt.Errorf("--state %s: there is no such state; write waiting, running, done, failed or timeout", *state)
		}
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		jobs, err := c.Jobs(cmd.Context(), cluster.JobState(*state))
		if err != nil {
			return err
		}
		return format.print(cmd, jobs, func(t *table) { jobTable(t, jobs) })
	}
	return cmd
}

// jobTable lists jobs; with their queues, and with what another scheduler says of them, where any has that.
func jobTable(t *table, jobs []cluster.Job) {
	queued := slices.ContainsFunc(jobs, func(j cluster.Job) bool { return j.Queue != "" })
	told := slices.ContainsFunc(jobs, func(j cluster.Job) bool { return j.Told != nil })
	row := func(queue, reason any, cells ...any) {
		if told {
			cells = slices.Insert(cells, len(cells)-1, reason)
		}
		if queued {
			cells = slices.Insert(cells, 4, queue)
		}
		t.sentence(cut, cells...)
	}
	row("QUEUE", "REASON", "JOB", "NAME", "STATE", "USER", "TOKENS", "CPUS", "HOST", "SUBMITTED", "STARTED", "ENDED", "WHY")
	for _, j := range jobs {
		name, reason := calledBy(j)
		row(dash(j.Queue), dash(reason), name, dash(j.Name), j.State, j.User, tokenList(j), j.CPUs, dash(j.Host), stamp(j.Submitted), stamp(j.Started), stamp(j.Ended), j.Why)
	}
}

// calledBy answers what whoever schedules a job calls it, and its word for why it waits.
func calledBy(j cluster.Job) (name, reason string) {
	name = strconv.FormatInt(j.ID, 10)
	if j.Told == nil {
		return name, ""
	}
	return cmp.Or(j.Told.Name, name), j.Told.Reason
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func newStatus() *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show resources, lenders, hosts and demand", Args: cobra.NoArgs}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		st, err := c.Status(cmd.Context())
		if err != nil {
			return err
		}
		return format.print(cmd, st, func(t *table) { statusTable(t, st) })
	}
	return cmd
}

func statusTable(t *table, st api.Status) {
	haltRow(t, st.Halt)
	backendRows(t, st)
	t.row("RESOURCE", "TOTAL", "OWNED", "BORROWED", "LENT", "REQUESTED", "RETURNING", "IN USE", "KEPT BACK", "IDLE", "IDLE SINCE", "OVERDRAFT", "OBSERVED IN USE")
	for _, r := range st.Resources {
		t.row(r.Name, r.Total, r.Owned, r.Borrowed, r.Lent, r.Requested, r.Returning, r.InUse, r.KeepBack, r.Idle, stamp(r.IdleSince), r.Overdraft, observed(r.Observed))
	}
	t.row()
	offerTable(t, st.Offers)
	t.row()
	t.row("HOST", "UP", "STATE", "CPUS", "FREE", "JOBS", "LAST SEEN", "IDLE SINCE", "ALSO FREE", "FEATURES")
	for _, h := range st.Hosts {
		t.row(h.Name, h.Up, controller.OutlookOf(h, st.Now).State, h.CPUs, h.FreeCPUs, h.Jobs, stamp(h.LastSeen), stamp(h.IdleSince), dash(countList(h.FreeCountables)), dash(strings.Join(h.FeatureNames(), ",")))
	}
	troubledRows(t, st)
	controllerTable(t, st.Controllers)
	t.row()
	for _, d := range st.Demand {
		t.sentence(wrapped, fmt.Sprintf("demand: %d %s from %s: %s", d.Units, d.What(), d.Provider, d.Reason))
	}
	t.row(fmt.Sprintf("jobs: %d waiting, %d running, %d done, %d failed", st.Jobs.Waiting, st.Jobs.Running, st.Jobs.Done, st.Jobs.Failed))
}

// backendRows tell how the backend stands, where another schedules the jobs.
func backendRows(t *table, st api.Status) {
	b := st.Backend
	if b == nil {
		return
	}
	read := "never read"
	if b.Read > 0 {
		read = fmt.Sprintf("read %s ago", st.Now.Sub(b.Read))
	}
	t.row(fmt.Sprintf("backend: %s, %s", b.Name, read))
	if b.Trouble != nil {
		t.sentence(wrapped, fmt.Sprintf("nothing is decided since %s: %s", b.Trouble.Since.Stamp(), b.Trouble.Why))
	}
	if b.Unsettled != nil {
		t.sentence(wrapped, fmt.Sprintf("not changed yet, since %s: %s", b.Unsettled.Since.Stamp(), b.Unsettled.Why))
	}
	for _, warning := range b.Warnings {
		t.sentence(wrapped, "look at this: "+warning)
	}
	guesses := []string{}
	for _, g := range b.Guesses {
		guesses = append(guesses, fmt.Sprintf("%d %s", g.Times, guessed(g)))
	}
	if len(guesses) > 0 {
		t.sentence(wrapped, "jobs that were judged: "+strings.Join(guesses, ", "))
	}
	t.row()
}

// guessed says how guesses came out, and by whose word.
func guessed(g backend.Count) string {
	if g.Cause == "" {
		return g.What
	}
	return fmt.Sprintf("%s (%s)", g.What, g.Cause)
}

// controllerTable lists the controllers, where several can share the state.
func controllerTable(t *table, controllers []api.ControllerStatus) {
	if len(controllers) == 0 {
		return
	}
	t.row()
	t.row("CONTROLLER", "RUNS SESSIONS", "RELEASE", "SINCE", "LAST SEEN")
	for _, c := range controllers {
		t.row(c.Name, c.Leads, c.Release, stamp(c.Since), stamp(c.Seen))
	}
}

// troubledRows say more of the hosts that get no new jobs, or are kept.
func troubledRows(t *table, st api.Status) {
	said := false
	for _, h := range st.Hosts {
		line := lineOf(h, st.Now)
		if line.State == string(cluster.HostJoined) {
			continue
		}
		if !said {
			t.row()
		}
		said = true
		t.sentence(wrapped, fmt.Sprintf("%s is %s: waits for %s", h.Name, line.State, line.outlook()))
	}
}

func observed(all []api.ObservedStatus) string {
	var parts []string
	for _, o := range all {
		parts = append(parts, fmt.Sprintf("%d (%s, %s ago)", o.InUse, o.Provider, o.Age))
	}
	return dash(strings.Join(parts, ", "))
}

func newLoans() *cobra.Command {
	cmd := &cobra.Command{Use: "loans", Short: "List loans", Args: cobra.NoArgs}
	everything := cmd.Flags().BoolP("all", "a", false, "closed ones too")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		loans, err := c.Loans(cmd.Context(), *everything)
		if err != nil {
			return err
		}
		return format.print(cmd, loans, func(t *table) { loanTable(t, loans) })
	}
	return cmd
}

func loanTable(t *table, loans []cluster.Loan) {
	t.sentence(wrapped, "LOAN", "STATE", "ASKED", "GRANTED", "BORROWED", "RECALLED", "FENCED", "RETURNED", "SINCE", "HELD UNTIL", "ASKS NEXT", "WHY")
	for _, l := range loans {
		t.sentence(wrapped, l.ID, l.State, l.Units, l.Granted(), l.Borrowed, l.Recalled, l.Fenced, l.Returned, stamp(l.Intended), stamp(l.HoldUntil), stamp(l.AskAgain), l.Why)
	}
}

func newReturn() *cobra.Command {
	cmd := &cobra.Command{
		Use: "return LOAN", Short: "Give a loan's units back now", Args: exactly(1, "xce-elastic return loan/vcs/pool-a-3"),
		Long: "Give units of a loan back now, without waiting for them to be idle long enough: all of them or none.\nUnits that jobs use are never given back.",
	}
	units := cmd.Flags().Int64("units", 0, "how many (default all that the loan has)")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stories, closeStories, err := dialStarter(cmd)
		if err != nil {
			return err
		}
		defer closeStories()
		wish := workflows.ReturnUnits{Units: *units, By: whoami()}
		returned, err := stories.Return(cmd.Context(), args[0], uuid.NewString(), wish)
		if err != nil {
			return err
		}
		answer := map[string]any{"loan": args[0], "returning": returned}
		return format.print(cmd, answer, func(t *table) {
			t.row(fmt.Sprintf("%d units of %s are out of the total and on their way back", returned, args[0]))
		})
	}
	return cmd
}

func newExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain job|loan|resource|host ID", Short: "Say why a job waits, a loan or host is kept, a total is what it is",
		Args: exactly(2, "xce-elastic explain job 17"), ValidArgs: []string{"job", "loan", "resource", "host"},
	}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(cmd.ValidArgs, args[0]) {
			return fmt.Errorf("a %q cannot be explained; ask for a job, a loan, a resource or a host", args[0])
		}
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		e, err := c.Explain(cmd.Context(), args[0], args[1])
		if err != nil {
			return err
		}
		return format.print(cmd, e, func(t *table) {
			for _, s := range e.Sentences {
				t.sentence(wrapped, s)
			}
		})
	}
	return cmd
}

func newOwned() *cobra.Command {
	cmd := &cobra.Command{
		Use: "owned RESOURCE UNITS", Short: "Change how many units the cluster owns", Args: exactly(2, `xce-elastic owned vcs 6 --why "bought 2"`),
		Long: "Change how many units of a resource the cluster owns, until the configuration file says otherwise.\nIt may fall below what is in use: running jobs run on, new ones wait.",
	}
	why := cmd.Flags().String("why", "", "the reason, for the audit record")
	_ = cmd.MarkFlagRequired("why")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		units, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || units < 0 {
			return fmt.Errorf("units %q: write a whole number of 0 or more", args[1])
		}
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		if err := c.SetOwned(cmd.Context(), args[0], api.Owned{Owned: units, Why: *why}); err != nil {
			return err
		}
		err = say(cmd.OutOrStdout(), "the cluster owns %d %s\n", units, args[0])
		return err
	}
	return cmd
}
