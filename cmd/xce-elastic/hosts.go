package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
)

// hostLine is a host as it is listed: what the cluster sees of it, where it is
// here, and how it stands.
type hostLine struct {
	api.HostStatus
	State    string           `json:"state"`
	Provider string           `json:"provider,omitempty"`
	WaitsFor string           `json:"waits_for,omitempty"`
	Until    cluster.Time     `json:"until,omitempty"`
	Why      string           `json:"why,omitempty"`
	Paid     cluster.Duration `json:"paid"`
	Used     cluster.Duration `json:"used"`
	// Cost is in millionths of a currency unit; begun billing steps count whole.
	Cost cluster.Price `json:"cost"`
}

func newHosts() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hosts", Short: "List hosts", Args: cobra.NoArgs,
		Long: "List hosts, those that the cluster owns and those that providers make: how each stands, what it waits for and until when,\n" +
			"for how long it has been paid for and used, and what all have cost.",
	}
	closed := cmd.Flags().BoolP("all", "a", false, "closed ones too")
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
		rows, err := c.ElasticHosts(cmd.Context(), *closed)
		if err != nil {
			return err
		}
		lines := hostLines(st, rows)
		return format.print(cmd, lines, func(t *table) { hostTable(t, lines, st.Halt) })
	}
	return cmd
}

// hostLines puts the hosts that are here and the rows of the ledger together,
// those that need someone's attention first.
func hostLines(st api.Status, rows []cluster.ElasticHost) []hostLine {
	lines := []hostLine{}
	here := map[string]bool{}
	for _, h := range st.Hosts {
		here[h.ID] = true
		lines = append(lines, lineOf(h, st.Now))
	}
	for _, row := range rows {
		if !here[row.ID] {
			lines = append(lines, lineOf(api.HostStatus{Elastic: &row}, st.Now))
		}
	}
	slices.SortStableFunc(lines, func(a, b hostLine) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(a.Template, b.Template), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name))
	})
	return lines
}

// hostStates are the states of hosts in the order in which they are listed.
var hostStates = []string{
	string(cluster.Lost), string(cluster.Suspect), string(cluster.HostDraining), "kept", string(cluster.HostJoined),
	string(cluster.HostExpected), string(cluster.HostRequested), string(cluster.HostLeaving), string(cluster.HostReturned), string(cluster.HostRefused),
}

func rank(state string) int { return slices.Index(hostStates, state) }

func lineOf(h api.HostStatus, now cluster.Time) hostLine {
	o := controller.OutlookOf(h, now)
	line := hostLine{HostStatus: h, State: o.State, WaitsFor: o.WaitsFor, Until: o.Until, Why: o.Why}
	row := h.Elastic
	if row == nil {
		return line
	}
	if line.ID == "" { // it is not here
		line.ID, line.Template, line.Name, line.Capacity, line.Health = row.ID, row.Template, row.Name, row.Capacity, row.Health
	}
	line.Provider, line.Paid, line.Used, line.Cost = row.Provider, row.Paid(now), row.Used(now), row.Cost(now)
	return line
}

// isHere tells whether the host is in the cluster and may have jobs.
func (l hostLine) isHere() bool { return l.Elastic == nil || l.Elastic.State.Here() }

// free shows what is free of what a host has; only of one that is here is anything.
func (l hostLine) free(free, total int64) string {
	if !l.isHere() {
		return fmt.Sprintf("-/%d", total)
	}
	return fmt.Sprintf("%d/%d", free, total)
}

// price shows what an elastic host costs an hour.
func (l hostLine) price() string {
	if l.Elastic == nil {
		return "-"
	}
	return l.Elastic.Price.String()
}

// outlook says what a host waits for, until when, and why.
func (l hostLine) outlook() string {
	text := l.WaitsFor
	if l.Until > 0 {
		text += ", until " + stamp(l.Until)
	}
	switch {
	case text == "":
		return l.Why
	case l.Why == "":
		return text
	}
	return text + ": " + l.Why
}

// spent shows a length of time for which money is spent; "-" where it is none.
func spent(l hostLine, d cluster.Duration) string {
	if l.Elastic == nil || l.Elastic.Made == 0 {
		return "-"
	}
	return wholeSeconds(d).String()
}

func wholeSeconds(d cluster.Duration) cluster.Duration { return d / cluster.Second * cluster.Second }

func hostTable(t *table, lines []hostLine, halt string) {
	haltRow(t, halt)
	if len(lines) == 0 {
		t.row("there are no hosts")
		return
	}
	t.sentence(wrapped, "HOST", "ID", "TEMPLATE", "PROVIDER", "STATE", "CPUS FREE", "MB FREE", "JOBS", "PRICE/H", "PAID", "USED", "WAITS FOR")
	for _, l := range lines {
		t.sentence(wrapped, dash(l.Name), dash(l.ID), dash(l.Template), dash(l.Provider), l.State, l.free(l.FreeCPUs, l.CPUs), l.free(l.FreeMemoryMB, l.MemoryMB),
			l.Jobs, l.price(), spent(l, l.Paid), spent(l, l.Used), dash(l.outlook()))
	}
	t.row()
	t.row(hostSum(lines))
}

// haltRow says that no more hosts are asked for, where that is so.
func haltRow(t *table, halt string) {
	if halt != "" {
		t.sentence(wrapped, "no more hosts are asked for: "+halt)
		t.row()
	}
}

// hostSum adds up hosts by state, and what elastic ones cost.
func hostSum(lines []hostLine) string {
	counts, owned := map[string]int{}, 0
	var paid, used cluster.Duration
	var cost cluster.Price
	for _, l := range lines {
		counts[l.State]++
		if l.Elastic == nil {
			owned++
		}
		paid, used, cost = paid+l.Paid, used+l.Used, cost+l.Cost
	}
	var parts []string
	for _, state := range hostStates {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := fmt.Sprintf("hosts: %s; %d owned", strings.Join(parts, ", "), owned)
	if owned == len(lines) {
		return text
	}
	return text + fmt.Sprintf("; the others were paid for %s and used for %s, for %s", wholeSeconds(paid), wholeSeconds(used), cost)
}
