//go:build e2e

package dev

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
)

//go:embed testdata/identity.yaml
var identityCluster string

// alike is a cluster that is played live and simulated.
var alike = example{Cluster: identityCluster, Units: 20, Hold: 1, Hosts: []string{
	"--template", "small=2:1024", "--capacity", "small=8", "--price", "small=100000",
	"--template", "large=4:4096", "--capacity", "large=4", "--price", "large=190000",
	"--latency", "300ms",
}}

// played is a job or an operator's order of a scenario, so long after the first job.
type played struct {
	after cluster.Duration
	cluster.JobSpec
	run   cluster.Duration
	order *simulation.Order
}

func tokens(units int64) cluster.JobSpec {
	return cluster.JobSpec{CPUs: 1, Tokens: map[string]int64{resource: units}}
}

func cpus(n int64) cluster.JobSpec { return cluster.JobSpec{CPUs: n, MemoryMB: 100} }

const second = cluster.Second

// alikeScenarios are scenarios whose order depends on no race, live either: between things that happen to one
// host or resource there is always more than a second.
var alikeScenarios = map[string][]played{
	"tokens are borrowed, used, and go back when they are idle": {
		{JobSpec: cpus(1), run: second},
		{after: 2 * second, JobSpec: cluster.JobSpec{CPUs: 2, Tokens: map[string]int64{resource: 7}}, run: 3 * second},
		{after: 16 * second, JobSpec: tokens(6), run: 2 * second},
	},
	"hosts are made, drained by an operator, and made again": {
		{JobSpec: cpus(1), run: second},
		{after: 2 * second, JobSpec: cpus(4), run: 3 * second},
		{after: 16 * second, JobSpec: cpus(2), run: 14 * second},
		{after: 24 * second, order: &simulation.Order{Do: "drain", Subject: "host/small-1", Within: 2 * second, Requeue: true, Why: "a check"}},
	},
	"a host and tokens come for one job, and its cluster owns more and less": {
		{JobSpec: cpus(1), run: second},
		{after: 2 * second, JobSpec: cluster.JobSpec{CPUs: 3, MemoryMB: 100, Tokens: map[string]int64{resource: 6}}, run: 10 * second},
		{after: 9 * second, order: &simulation.Order{Do: "own", Subject: resource, Units: 2}},
		{after: 11 * second, order: &simulation.Order{Do: "own", Subject: resource, Units: 5}},
	},
}

func TestLiveAndSimulatedTotalsComeInTheSameOrder(t *testing.T) {
	for name, scenario := range alikeScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFarm(t, alike)
			live := f.playLive(t, scenario)
			simulated := f.playSimulated(t, scenario)
			t.Logf("%v", simulated)
			if len(simulated) == 0 {
				t.Error("nothing changes in the simulation")
			}
			for _, subject := range append(subjects(simulated), subjects(live)...) {
				if !slices.Equal(simulated[subject], live[subject]) {
					t.Errorf("%s: simulated\n  %s\nlive\n  %s", subject, strings.Join(simulated[subject], "\n  "), strings.Join(live[subject], "\n  "))
				}
			}
		})
	}
}

func subjects(of map[string][]string) (names []string) {
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// playSimulated answers what changes, by resource or host, where the same file is simulated.
func (f *farm) playSimulated(t *testing.T, scenario []played) map[string][]string {
	t.Helper()
	c, err := config.Load(f.path(configName), nil)
	if err != nil {
		t.Fatal(err)
	}
	farm := c.Farm()
	jobs := &trace.Trace{Source: "a scenario"}
	began := cluster.TimeOf(time.Now())
	for _, p := range scenario {
		if p.order != nil {
			o := *p.order
			o.After = p.after
			farm.Operator = append(farm.Operator, o)
			continue
		}
		jobs.Jobs = append(jobs.Jobs, trace.Job{
			ID: int64(len(jobs.Jobs)) + 1, Submit: began.Add(p.after), Run: p.run, Waited: -1, Shape: &trace.Shape{JobSpec: p.JobSpec},
		})
	}
	r, err := simulation.Run(t.Context(), farm, jobs, simulation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	for _, change := range r.Changes {
		lines[change.Subject] = append(lines[change.Subject], fmt.Sprintf("%s > %s: %s", change.Before, change.After, change.Cause))
	}
	return lines
}

// playLive answers the same of the running cluster.
func (f *farm) playLive(t *testing.T, scenario []played) map[string][]string {
	t.Helper()
	before, err := f.controller.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stories := starter.New(f.connect(t))
	began, submitted := time.Now(), 0
	for _, p := range scenario {
		time.Sleep(time.Until(began.Add(p.after.Std())))
		if p.order != nil {
			f.give(t, stories, *p.order)
			continue
		}
		p.Command = []string{"sleep", strconv.FormatFloat(p.run.Std().Seconds(), 'f', 3, 64)}
		if _, err := f.controller.Submit(t.Context(), p.JobSpec); err != nil {
			t.Fatal(err)
		}
		submitted++
	}
	eventually(t, time.Minute, func() error { return f.allBack(t, submitted) })
	return f.changesAfter(t, before.Revision)
}

// give gives an operator's order.
func (f *farm) give(t *testing.T, stories *starter.Client, o simulation.Order) {
	t.Helper()
	var err error
	if o.Do == "own" {
		err = f.controller.SetOwned(t.Context(), o.Subject, api.Owned{Owned: o.Units, Why: "ordered"})
	} else {
		_, err = stories.OrderHost(t.Context(), o.Subject, "order", workflows.HostUpdate(o.Do),
			workflows.HostOrder{By: "admin/operator", Why: o.Why, Within: o.Within, Requeue: o.Requeue})
	}
	if err != nil {
		t.Fatalf("%s %s: %v", o.Do, o.Subject, err)
	}
}

// allBack tells whether all jobs have ended, and nothing is borrowed or made any more.
func (f *farm) allBack(t *testing.T, submitted int) error {
	done, err := f.controller.Jobs(t.Context(), cluster.JobDone)
	if err != nil {
		return err
	}
	loans, err := f.controller.Loans(t.Context(), false)
	if err != nil {
		return err
	}
	hosts, err := f.controller.ElasticHosts(t.Context(), false)
	if err == nil && (len(done) < submitted || len(loans)+len(hosts) > 0) {
		err = fmt.Errorf("%d of %d jobs are done, %d loans and %d hosts are open", len(done), submitted, len(loans), len(hosts))
	}
	return err
}

// changesAfter answers what changed after a revision, in the words of a simulation.
func (f *farm) changesAfter(t *testing.T, revision int64) map[string][]string {
	t.Helper()
	lines := map[string][]string{}
	for {
		page, err := f.controller.Changes(t.Context(), revision, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Changes) == 0 {
			return lines
		}
		revision = page.Revision
		for _, c := range page.Changes {
			if subject, line := inWords(t, c); line != "" {
				lines[subject] = append(lines[subject], line)
			}
		}
	}
}

// inWords answers a change as a simulation has it; nothing of those that it does not have.
func inWords(t *testing.T, c api.Change) (subject, line string) {
	t.Helper()
	before, after := strconv.FormatInt(c.TotalBefore, 10), strconv.FormatInt(c.TotalAfter, 10)
	subject, cause := c.Resource, ""
	switch {
	case strings.HasPrefix(c.Kind, api.KindLoanWrite):
		cause = strings.TrimPrefix(c.Kind, api.KindLoanWrite) + " " + c.Subject
	case c.Kind == api.KindResource:
		cause = "owned"
	case strings.HasPrefix(c.Kind, api.KindHostWrite) && c.Kind != api.KindEmptied:
		subject, cause = c.Subject, strings.TrimPrefix(c.Kind, api.KindHostWrite)
		before, after = stateIn(t, c.Before), stateIn(t, c.After)
	}
	if before == after {
		return subject, ""
	}
	return subject, fmt.Sprintf("%s > %s: %s", before, after, cause)
}

func stateIn(t *testing.T, row json.RawMessage) string {
	t.Helper()
	if len(row) == 0 {
		return "none"
	}
	var h cluster.ElasticHost
	if err := json.Unmarshal(row, &h); err != nil {
		t.Fatal(err)
	}
	return string(h.State)
}
