package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/store"
)

// farm is a controller with one owned host, and a provider that makes others.
type farm struct {
	*controllertest.Controller
	t     *testing.T
	cloud *api.Client
	steps map[string]int64
}

// newFarm answers a cluster that is reached as an admin, in which n jobs wait for
// a host of small each.
func newFarm(t *testing.T, n int) *farm {
	t.Helper()
	config := controllertest.Vcs(2, 10)
	config.Providers = append(config.Providers, "cloud")
	config.Hosts = cluster.DefaultHostRules()
	config.Hosts.Max, config.Hosts.Halt = 20, cluster.HostHalt{Hosts: 2, Percent: 50}
	config.Hosts.Limits = []cluster.HostLimit{{Name: "cheap", Max: 9, Templates: []string{"small"}}}
	f := &farm{Controller: controllertest.Open(t, store.Memory, config), t: t, steps: map[string]int64{}}
	f.Serve()
	configure(t, f.Controller, api.Admin)
	f.cloud = f.Provisioner("p", "cloud")
	f.join("h1", 2)
	f.publish(small())
	for range n {
		if _, err := f.Service.Submit(t.Context(), "submitter/ann", cluster.JobSpec{Command: []string{"true"}, CPUs: 16}); err != nil {
			t.Fatal(err)
		}
	}
	f.Session()
	return f
}

func small() cluster.Template {
	return cluster.Template{
		Name: "small", Capacity: cluster.Capacity{CPUs: 16, MemoryMB: 64000, Features: []string{"rhel9"}}, Headroom: 10, Quotas: []string{"cores"},
		Price: 400_000, MinimumHold: 10 * cluster.Minute, BillingStep: cluster.Minute, Latency: 3 * cluster.Minute, PollInterval: cluster.Second,
	}
}

func (f *farm) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *farm) publish(templates ...cluster.Template) {
	f.t.Helper()
	f.must(f.cloud.PublishCatalog(f.t.Context(), "cloud", api.Catalog{
		Templates: templates, Quotas: []cluster.Quota{{Name: "cores", Counts: "cpus", Limit: 512, Used: 32}},
		Offers: []cluster.Offer{}, Observations: []cluster.Observation{},
	}))
}

// join takes a host in; the memory is that of small.
func (f *farm) join(name string, cpus int64) {
	f.t.Helper()
	f.must(f.Client(api.HostRole, name).Join(f.t.Context(), name, api.JoinHost{CPUs: cpus, MemoryMB: 64000, Features: []string{"rhel9"}}))
}

// write writes a change to the row of the n-th host.
func (f *farm) write(n int, in api.WriteHost) {
	f.t.Helper()
	in.Host = fmt.Sprintf("host/small-%d", n)
	f.steps[in.Host]++
	in.Step = f.steps[in.Host]
	w, err := f.cloud.WriteHost(f.t.Context(), in)
	f.must(err)
	if w.Refusal != nil {
		f.t.Fatalf("%+v", w.Refusal)
	}
}

func (f *farm) intend(n int) {
	f.t.Helper()
	f.write(n, api.WriteHost{Intend: &cluster.HostRequest{
		ID: fmt.Sprintf("host/small-%d", n), Provider: "cloud", Template: "small", Jobs: []int64{1, 2}, Reason: "jobs 1, 2 wait for 2 more hosts of small",
	}})
}

func (f *farm) expect(n int) {
	f.t.Helper()
	f.intend(n)
	f.write(n, api.WriteHost{Expect: &api.ExpectHost{Instance: fmt.Sprintf("i-%d", n), Name: fmt.Sprintf("m%d", n)}})
}

// here has the n-th host join.
func (f *farm) here(n int) {
	f.t.Helper()
	f.expect(n)
	f.join(fmt.Sprintf("m%d", n), 16)
}

// later lets time pass; the named hosts are heard of.
func (f *farm) later(d cluster.Duration, heard ...string) {
	f.t.Helper()
	f.Clock.Advance(d)
	for _, name := range heard {
		_, err := f.Client(api.HostRole, name).Assignments(f.t.Context(), name, 0, 0)
		f.must(err)
	}
	f.Session()
}

// columns takes the padding of columns away.
func columns(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

// shows demands what a command prints, but for the padding of columns.
func shows(t *testing.T, args []string, want ...string) {
	t.Helper()
	if got := strings.TrimSpace(columns(prints(t, args))); got != strings.Join(want, "\n") {
		t.Errorf("%q prints\n%s\nwant\n%s", args, got, strings.Join(want, "\n"))
	}
}

func TestHostsAreListedThroughTheirLives(t *testing.T) {
	f := newFarm(t, 8)
	f.intend(1)
	f.expect(2)
	f.here(3)
	f.here(4)
	f.here(5)
	f.here(6)
	f.intend(7)
	f.write(7, api.WriteHost{Refuse: &api.RefuseHost{Why: "no machine is free", RetryAfter: 5 * cluster.Minute}})
	f.expect(8)
	f.write(8, api.WriteHost{Lapse: &api.LapseHost{Why: "it has not joined within 15m0s"}})
	f.Session()
	f.write(4, api.WriteHost{Keep: &cluster.Keep{By: "ann", Why: "looking at a crash"}})
	f.write(5, api.WriteHost{Drain: &cluster.Drain{By: "bob", Why: "its disk fails", Deadline: f.Clock.Now().Add(10 * cluster.Minute), Action: cluster.DrainRequeue}})
	f.later(cluster.Minute, "h1", "m3", "m4", "m5")
	const head = "HOST ID TEMPLATE PROVIDER STATE CPUS FREE MB FREE JOBS PRICE/H PAID USED WAITS FOR"
	open := []string{
		"m6 host/small-6 small cloud suspect 0/16 64000/64000 1 0.4 1m0s 1m0s word of it: last heard of at Jan 1 00:00:00 UTC, with 1 job on it",
		"m5 host/small-5 small cloud draining 0/16 64000/64000 1 0.4 1m0s 1m0s its last job, until Jan 1 00:10:00 UTC: drained by bob since Jan 1 00:00:00 UTC: its disk fails; jobs that run then are stopped, and wait again",
		"m4 host/small-4 small cloud kept 0/16 64000/64000 1 0.4 1m0s 1m0s its release: kept by ann since Jan 1 00:00:00 UTC: looking at a crash",
		"h1 - - - joined 2/2 64000/64000 0 - - - -",
		"m3 host/small-3 small cloud joined 0/16 64000/64000 1 0.4 1m0s 1m0s the end of its minimum hold, until Jan 1 00:10:00 UTC: 1 job on it",
		"m2 host/small-2 small cloud expected -/16 -/64000 0 0.4 1m0s 0s it to join, until Jan 1 00:15:00 UTC",
		"- host/small-1 small cloud requested -/16 -/64000 0 0.4 - - an answer of cloud: asked at Jan 1 00:00:00 UTC",
		"m8 host/small-8 small cloud leaving -/16 -/64000 0 0.4 1m0s 0s cloud to take it back: it has not joined within 15m0s, since Jan 1 00:00:00 UTC",
	}
	sum := "hosts: 1 suspect, 1 draining, 1 kept, 2 joined, 1 expected, 1 requested, 1 leaving; 1 owned; the others were paid for 6m0s and used for 4m0s, for 0.039996"
	shows(t, []string{"hosts"}, append(append([]string{head}, open...), "", sum)...)
	f.write(8, api.WriteHost{Confirm: true})
	shows(t, []string{"hosts", "--all"}, append(append([]string{head}, open[:7]...),
		"m8 host/small-8 small cloud returned -/16 -/64000 0 0.4 1m0s 0s cloud has i-8 back",
		"- host/small-7 small cloud refused -/16 -/64000 0 0.4 - - no machine is free", "",
		strings.Replace(sum, "1 leaving", "1 returned, 1 refused", 1))...)
	prints(t, []string{"status"}, `HOST +UP +STATE +CPUS`, `m6 +false +suspect +16`, `m6 is suspect: waits for word of it: last heard of`, `m5 is draining: waits for its last job, until`, `m4 is kept: waits for its release: kept by ann`)
	var lines []hostLine
	f.must(json.Unmarshal([]byte(prints(t, []string{"hosts", "--json"})), &lines))
	if len(lines) != 7 || lines[1].State != "draining" || lines[1].Until != f.Clock.Now().Add(9*cluster.Minute) || lines[1].Elastic == nil || lines[5].CPUs != 16 {
		t.Errorf("%+v", lines)
	}
}

func TestAnIdleHostIsListedWithItsReturn(t *testing.T) {
	f := newFarm(t, 1)
	f.here(1)
	f.Session()
	f.later(12*cluster.Minute, "h1", "m1")
	f.must(f.Client(api.HostRole, "m1").EndJob(t.Context(), "m1", 1, api.JobEnd{State: cluster.JobDone, Why: "ended by itself"}))
	f.Session()
	prints(t, []string{"hosts"}, `m1 .* 12m0s +12m0s +its return, until Jan 1 00:2[12]:\d\d UTC: idle since Jan 1 00:12:00 UTC\n`, `for 0\.08\n$`)
}

func TestAHaltIsSaidOnTop(t *testing.T) {
	f := newFarm(t, 3)
	f.here(1)
	f.here(2)
	f.later(6*cluster.Minute, "h1")
	halt := `^no more hosts are asked for: 2 of 2 elastic hosts do not answer\n\n`
	for _, command := range []string{"hosts", "status", "templates", "catalog"} {
		prints(t, []string{command}, halt)
	}
	prints(t, []string{"hosts"}, `m1 .* lost .* word of it: last heard of at Jan 1 00:00:00 UTC, with no job on it`)
	prints(t, []string{"templates"}, `hosts\.halt +hosts +0 +0 +the cluster`)
}

func TestListsWithoutAnythingInThemAreSaidAndNeverNull(t *testing.T) {
	c := controllertest.Open(t, store.Memory, controllertest.Vcs(2, 10))
	c.Serve()
	configure(t, c, api.Admin)
	prints(t, []string{"hosts"}, `^there are no hosts\n$`)
	prints(t, []string{"templates"}, `^no provider makes hosts\n$`)
	prints(t, []string{"catalog"}, `^no provider makes hosts\n\nno provider lends tokens\n$`)
	prints(t, []string{"changes", "--kind", "join-refused"}, `^there are no such records\n$`)
	prints(t, []string{"hosts", "--json"}, `^\[\]\n$`)
	prints(t, []string{"changes", "--last", "0", "--json"}, `^\[\]\n$`)
	for _, command := range []string{"templates", "catalog"} {
		if out := prints(t, []string{command, "--json"}, `"templates": \[\]`, `"quotas": \[\]`, `"limits": \[\]`); strings.Contains(out, "null") {
			t.Errorf("%s prints\n%s", command, out)
		}
	}
}

func TestTheCatalogIsShownWithWhatWasLearned(t *testing.T) {
	f := newFarm(t, 6)
	f.must(f.Provisioner("q", "pool").PublishCatalog(t.Context(), "pool", api.Catalog{Offers: []cluster.Offer{{Resource: "vcs", Headroom: 4, MaxOpen: 1, Price: 250_000}}, Observations: []cluster.Observation{}}))
	for n := range 2 {
		f.expect(n + 1)
		f.join(fmt.Sprintf("m%d", n+1), 12)
	}
	f.intend(3)
	f.expect(4)
	f.intend(5)
	f.write(5, api.WriteHost{Refuse: &api.RefuseHost{Why: "no machine is free", RetryAfter: 5 * cluster.Minute}})
	templates := []string{
		"TEMPLATE PROVIDER CPUS MB ALSO HEADROOM PRICE/H MINIMUM HOLD BILLING STEP LATENCY REQUESTED EXPECTED JOINED LEAVING PUBLISHED",
		"small cloud 16 64000 rhel9 10 0.4 10m0s 1m0s 3m0s 1 1 2 0 Jan 1 00:00:00 UTC", "",
		"small: refused or not joined 1 times in a row; let be until Jan 1 00:05:00 UTC",
		"small: 2 hosts in a row joined with less than it says: 12 cpus and 64000 MB with rhel9; 12 cpus and 64000 MB with rhel9 is believed", "",
		"LIMIT COUNTS USED OF SET BY", "hosts.max hosts 4 20 the cluster", "hosts.limits.cheap hosts 4 9 the cluster", "cloud.cores cpus 32 512 cloud",
	}
	shows(t, []string{"templates"}, templates...)
	shows(t, []string{"catalog"}, append(templates, "",
		"LENDER RESOURCE HEADROOM PRICE/H MINIMUM HOLD BILLING STEP PUBLISHED REFUSALS LEFT ALONE UNTIL", "pool vcs 4 0.25 0s 0s Jan 1 00:00:00 UTC 0 -")...)
	prints(t, []string{"catalog", "--json"}, `"refusals": 1`, `"misses": 2`)
	prints(t, []string{"provider", "retry", "cloud"}, `^cloud is asked again for what jobs wait for\n$`)
	if out := prints(t, []string{"templates"}); strings.Contains(out, "in a row") {
		t.Errorf("got\n%s", out)
	}
	refuses(t, []string{"provider", "retry", "moon"}, `provider "moon" is not in the controller's configuration`)
	configure(t, f.Controller, api.Viewer)
	refuses(t, []string{"provider", "retry", "cloud"}, `viewer/you may not call provider-retry`)
}

func TestChangesAreListedByKindAndSubject(t *testing.T) {
	f := newFarm(t, 1)
	f.here(1)
	f.write(1, api.WriteHost{Keep: &cluster.Keep{By: "ann", Why: "a test"}})
	f.must(f.cloud.ReportStray(t.Context(), api.Stray{Provider: "cloud", Request: "host/small-9", What: "cloud lists a host of small that no open host stands for"}))
	if err := f.Client(api.HostRole, "m1").Join(t.Context(), "m1", api.JoinHost{CPUs: 16, MemoryMB: 64000, Instance: "another"}); err == nil {
		t.Error("another agent is let in")
	}
	const head = "REVISION AT BY KIND SUBJECT WHY"
	out := columns(prints(t, []string{"changes"}))
	if !strings.HasPrefix(out, head) || strings.Count(out, "\n") < 8 {
		t.Errorf("got\n%s", out)
	}
	prints(t, []string{"changes", "--subject", "host/small-1"}, `host-intend .*\n.*host-expect .*\n.*host-joined +host/small-1 +joined with 16 cpus and 64000 MB\n.*provisioner/p +host-hold +host/small-1 +kept by ann: a test\n$`)
	prints(t, []string{"changes", "--kind", "stray"}, `host/small-9 +cloud lists a host of small that no open host`)
	prints(t, []string{"changes", "--kind", "join-refused", "--json"}, `"subject": "m1"`, `host m1 is here already`)
	prints(t, []string{"changes", "--last", "1"}, `^REVISION .*\n.*join-refused .*\n$`)
	prints(t, []string{"explain", "host", "m1"}, `It is kept by ann`)
}

// bell, colour and a turn of direction are what a terminal must not be told.
const evil = "no\x07\x1b[31m\u009b2J\u202e machine"

func TestTextsOfProvidersDoNotSteerTheTerminal(t *testing.T) {
	f := newFarm(t, 2)
	f.intend(1)
	f.write(1, api.WriteHost{Refuse: &api.RefuseHost{Why: evil}})
	f.expect(2)
	f.write(2, api.WriteHost{Lapse: &api.LapseHost{Why: evil}})
	for _, line := range []string{
		"hosts --all", "hosts --all --json", "hosts --all -o yaml", "changes", "changes --json", "explain host host/small-1", "explain host host/small-2", "explain host m2 --json",
	} {
		out := prints(t, strings.Fields(line), "machine")
		for _, sign := range []string{"\x07", "\x1b", "\u009b"} {
			if strings.Contains(out, sign) {
				t.Errorf("%s prints %q", line, out)
			}
		}
		if strings.Contains(out, "\u202e") && !strings.Contains(line, "yaml") {
			t.Errorf("%s prints %q", line, out)
		}
	}
	if got := visibleLines("first\x1b\nsecond\x07"); got != "first·\nsecond·" {
		t.Errorf("got %q", got)
	}
	var rows []hostLine
	f.must(json.Unmarshal([]byte(prints(t, []string{"hosts", "--all", "--json"})), &rows))
	if rows[len(rows)-1].Why != evil {
		t.Errorf("got %q", rows[len(rows)-1].Why)
	}
}

func TestHostsFitTheTerminal(t *testing.T) {
	line := lineOf(api.HostStatus{Elastic: &cluster.ElasticHost{
		ID: "host/small-1", Provider: "cloud", Template: "small", State: cluster.HostRefused, Why: strings.Repeat("no machine is free ", 9),
	}}, 0)
	for _, width := range []int{120, 160, 200} {
		table := newTable(width)
		hostTable(table, []hostLine{line}, strings.Repeat("too many do not answer ", 12))
		for row := range strings.Lines(table.text()) {
			if len(row)-1 > width {
				t.Errorf("at a width of %d a row has %d signs:\n%s", width, len(row)-1, table.text())
			}
		}
	}
}
