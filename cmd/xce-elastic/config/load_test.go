package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"xce.internal/elastic/cluster"
)

const good = `cluster:
  name: east
resources:
  - name: vcs
    owned: 4
    elastic:
      lenders: [pool-a]
      max_borrowed: 8
      idle_time: 5m
providers:
  - name: pool-a
    script: ./pool
    environment:
      - POOL=east
`

// without takes a process's own XCE_ variables away for a test.
func without(t *testing.T) {
	t.Helper()
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "XCE_") {
			t.Setenv(name, "")
		}
	}
}

// faults answers the lines of a refusal.
func faults(t *testing.T, c *Config, err error) []string {
	t.Helper()
	if (c == nil) == (err == nil) {
		t.Fatalf("configuration %v, error %v", c, err)
	}
	var refused *Refused
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("%T is no refusal: %v", err, err)
	}
	if refused == nil {
		return nil
	}
	return refused.Faults
}

func TestAFileIsRefusedWithLineKeyAndRemedy(t *testing.T) {
	without(t)
	// Each case puts a line of its own in place of a line of the good file.
	tests := []struct {
		name, line, instead string
		want                []string
	}{
		{"nothing wrong", "", "", nil},

		{"a misspelt key", "    owned: 4", "    ownd: 4", []string{`x.yaml:5: resources[0].ownd: there is no such key; did you mean "owned"?`}},
		{"a key of another section", "  name: east", "  name: east\n  host: node1", []string{"x.yaml:3: cluster.host: there is no such key; remove it; known here are name, session_interval"}},
		{"an unknown section", "cluster:", "torque:\n  name: x\ncluster:", []string{"x.yaml:1: torque: there is no such key; remove it; known here are agent, backend, cluster, controller, hosts, leases, log, peer, policy, providers, provisioner, resources, simulation, slurm, temporal, thresholds"}},
		{"a key with a dot", "cluster:", "log.level: debug\ncluster:", []string{"x.yaml:1: log.level: there is no such key; remove it; known here are agent, backend, cluster, controller, hosts, leases, log, peer, policy, providers, provisioner, resources, simulation, slurm, temporal, thresholds"}},
		{"a key twice", "    owned: 4", "    owned: 4\n    owned: 5", []string{"x.yaml:6: resources[0].owned: it is set in line 5 already; set each key once"}},
		{"a key twice, in other case", "  name: east", "  name: east\n  Name: west", []string{"x.yaml:3: cluster.name: it is set in line 2 already; set each key once"}},
		{"a section twice", "providers:", "cluster:\n  name: west\nproviders:", []string{
			"x.yaml:10: cluster: it is set in line 1 already; set each key once",
			"x.yaml:11: cluster.name: it is set in line 2 already; set each key once",
		}},

		{"negative", "    owned: 4", "    owned: -4", []string{"x.yaml:5: resources[0].owned: -4 is negative; write 0 or a positive whole number"}},
		{"a negative weight", "    owned: 4", "    unit_weight: -4", []string{"x.yaml:5: resources[0].unit_weight: -4 is negative; write 0 or a positive whole number"}},
		{"fractional", "    owned: 4", "    owned: 4.5", []string{"x.yaml:5: resources[0].owned: 4.5 is not a whole number; write a whole number"}},
		{"a whole number all the same", "    owned: 4", "    owned: 4.0", nil},
		{"endless", "    owned: 4", "    owned: .inf", []string{"x.yaml:5: resources[0].owned: +Inf is not a whole number; write a whole number"}},
		{"beyond whole numbers", "    owned: 4", "    owned: 18446744073709551615", []string{"x.yaml:5: resources[0].owned: 18446744073709551615 is not a whole number; write a whole number"}},
		{"text for a number", "    owned: 4", "    owned: four", []string{"x.yaml:5: resources[0].owned: four is not a whole number; write a whole number"}},
		{"empty text for a number", "    owned: 4", `    owned: ""`, []string{"x.yaml:5: resources[0].owned:  is not a whole number; write a whole number"}},
		{"a truth value for a number", "    owned: 4", "    owned: true", []string{"x.yaml:5: resources[0].owned: true is not a whole number; write a whole number"}},
		{"a number for text", "  name: east", "  name: 2026", []string{"x.yaml:2: cluster.name: it is not text; write text, in quotes where it looks like something else"}},
		{"text for a list", "      lenders: [pool-a]", "      lenders: pool-a", []string{"x.yaml:7: resources[0].elastic.lenders: it is not a list; write a list, each item behind a dash"}},
		{"text for a section", "  name: east", "  name: east\nlog: debug", []string{"x.yaml:3: log: it is not a section; write its keys below it, indented"}},
		{"text for a section in a list", "  - name: pool-a", "  - pool-b\n  - name: pool-a", []string{"x.yaml:11: providers[0]: it is not a section; write its keys below it, indented"}},
		{"a list for a section", "cluster:", "log: [debug]\ncluster:", []string{"x.yaml:1: log: it is not a section; write its keys below it, indented"}},
		{"a length of time without unit", "      idle_time: 5m", "      idle_time: 300", []string{`x.yaml:9: resources[0].elastic.idle_time: duration "300" is not a number with a unit (as in 90s, 30m, 4h); write text with a unit, as in 60m`}},
		{"no length of time", "      idle_time: 5m", "      idle_time: 5m\n      minimum_hold: 0", nil},

		{"a resource twice", "    owned: 4", "    owned: 4\n  - name: vcs", []string{`x.yaml:6: resources[1].name: resource "vcs" is already defined as resources[0]; give each resource one entry`}},
		{"a provider twice", "    script: ./pool", "    script: ./pool\n  - name: pool-a\n    script: ./pool", []string{`x.yaml:13: providers[1].name: provider "pool-a" is already defined as providers[0]; give each provider one entry`}},
		{"a lender that is no provider", "      lenders: [pool-a]", "      lenders: [pool-a, pool-b]", []string{`x.yaml:7: resources[0].elastic.lenders[1]: lender "pool-b" is not a provider; add it under providers, or name one that is there`}},
		{"an idle time shorter than the session interval", "      idle_time: 5m", "      idle_time: 4s", []string{"x.yaml:9: resources[0].elastic.idle_time: 4s is shorter than the session interval 5s, so no session could see the units used again; write at least 5s"}},
		{"no idle time", "      idle_time: 5m", "", []string{"x.yaml:6: resources[0].elastic.idle_time: 0s is shorter than the session interval 5s, so no session could see the units used again; write at least 5s"}},
		{"no name", "  name: east", "", []string{`x.yaml:1: cluster.name: name "" is not valid; name the cluster, with letters, digits, '.', '_' or '-'`}},
		{"a short session interval", "  name: east", "  name: east\n  session_interval: 99ms", []string{"x.yaml:3: cluster.session_interval: 99ms is too short; write at least 100ms"}},
		{"the shortest session interval", "  name: east", "  name: east\n  session_interval: 100ms", nil},
		{"a made-up level", "cluster:", "log:\n  level: loud\ncluster:", []string{`x.yaml:2: log.level: "loud" is no level; write debug, info, warn or error`}},
		{"a made-up format", "cluster:", "log:\n  format: xml\ncluster:", []string{`x.yaml:2: log.format: "xml" is no format; write text or json`}},
		{"a lease of sessions that is too short", "cluster:", "controller:\n  session_lease: 999ms\ncluster:", []string{"x.yaml:2: controller.session_lease: 999ms is too short; write at least 1s"}},
		{"a controller's name that is none", "cluster:", "controller:\n  name: a b\ncluster:", []string{`x.yaml:2: controller.name: name "a b" is not valid; use letters, digits, '.', '_' or '-'`}},
		{"a record that is too small", "cluster:", "controller:\n  record: record\n  record_limit_mb: 15\ncluster:", []string{"x.yaml:3: controller.record_limit_mb: 15 is too little; write at least 16"}},
		{"cpus", "cluster:", "agent:\n  cpus: -1\ncluster:", []string{"x.yaml:2: agent.cpus: -1 is negative; write a positive whole number, or 0 for all"}},
		{"memory", "cluster:", "agent:\n  memory_mb: -1\ncluster:", []string{"x.yaml:2: agent.memory_mb: -1 is negative; write 0 or a positive whole number"}},
		{"an unknown order", "cluster:", "policy: {order: strict}\ncluster:", []string{`x.yaml:1: policy.order: "strict" is no order; write fcfs, easy or conservative`}},
		{"a negative depth", "cluster:", "policy:\n  order: conservative\n  depth: -1\ncluster:", []string{"x.yaml:3: policy.depth: -1 is negative; write how many jobs get a reservation, or 0 for all"}},
		{"a depth of another order", "cluster:", "policy:\n  depth: 5\ncluster:", []string{"x.yaml:2: policy.depth: only the order conservative has a depth; remove it, or write order: conservative"}},
		{"a policy", "cluster:", "policy: {order: conservative, depth: 5}\nthresholds:\n  - {queue: night, jobs: 3, wait: 5m}\n  - {resource: vcs, jobs: 1}\ncluster:", nil},
		{"a threshold of all", "cluster:", "thresholds:\n  - {jobs: 3}\ncluster:", []string{"x.yaml:2: thresholds[0]: the threshold has neither a queue nor a resource; name the queue or the resource whose waiting jobs are counted"}},
		{"a threshold of both", "cluster:", "thresholds:\n  - {queue: night, resource: vcs, jobs: 3}\ncluster:", []string{"x.yaml:2: thresholds[0]: the threshold has a queue and a resource; name one of them, and give the other a threshold of its own"}},
		{"a threshold of nothing", "cluster:", "thresholds:\n  - {queue: night, jobs: 3}\n  - resource: zebu\n    jobs: 0\n    wait: -1s\ncluster:", []string{
			`x.yaml:3: thresholds[1].resource: there is no shared resource "zebu"; name one that is under resources`,
			"x.yaml:4: thresholds[1].jobs: 0 jobs keep nothing back; write how many jobs must have waited, at least 1",
			"x.yaml:5: thresholds[1].wait: -1s is out of range; write how long they must have waited, between 0s and 87840h0m0s",
		}},
		{"no countables", "cluster:", "agent:\n  countables: [gpus, gpus=x, gpus=2, gpus=1, cpus=1, gpus 2=1]\ncluster:", []string{
			`x.yaml:2: agent.countables[0]: "gpus" is not NAME=COUNT; write a name and a whole number, as in gpus=2`,
			`x.yaml:2: agent.countables[1]: "gpus=x" is not NAME=COUNT; write a name and a whole number, as in gpus=2`,
			`x.yaml:2: agent.countables[3]: "gpus" is there already; name each once`,
			`x.yaml:2: agent.countables[4]: a countable cannot be called "cpus"; give cpus and memory_mb beside the countables, or use another name`,
			`x.yaml:2: agent.countables[5]: name "gpus 2" is not valid; use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit`,
		}},
		{"no features", "cluster:", "agent:\n  features: [avx512, avx512, site=z1, site=z2, old|new]\ncluster:", []string{
			`x.yaml:2: agent.features[1]: "avx512" is there already; name each once`,
			`x.yaml:2: agent.features[3]: "site" is there already; name each once`,
			`x.yaml:2: agent.features[4]: feature "old|new" cannot be asked for in a constraint; use 1 to 200 bytes without blanks and without & | ! ( )`,
		}},
		{"a provider's name", "  - name: pool-a", "  - name: pool a", []string{
			`x.yaml:7: resources[0].elastic.lenders[0]: lender "pool-a" is not a provider; add it under providers, or name one that is there`,
			`x.yaml:11: providers[0].name: name "pool a" is not valid; use letters, digits, '.', '_' or '-'`,
		}},
		{"no script", "    script: ./pool", "", []string{"x.yaml:11: providers[0].script: there is no script; name the provider script, as a path or a program on PATH"}},
		{"a short time limit", "    script: ./pool", "    script: ./pool\n    time_limit: 999ms", []string{"x.yaml:13: providers[0].time_limit: 999ms is out of range; write between 1s and 10m0s"}},
		{"a long time limit", "    script: ./pool", "    script: ./pool\n    time_limit: 11m", []string{"x.yaml:13: providers[0].time_limit: 11m0s is out of range; write between 1s and 10m0s"}},
		{"surveys in a hurry", "    script: ./pool", "    script: ./pool\n    survey_every: 999ms", []string{"x.yaml:13: providers[0].survey_every: 999ms is too short; write at least 1s"}},
		{"little output", "    script: ./pool", "    script: ./pool\n    output_limit: 1023", []string{"x.yaml:13: providers[0].output_limit: 1023 bytes are too few; write at least 1024"}},
		{"the least of all", "    script: ./pool", "    script: ./pool\n    time_limit: 1s\n    survey_every: 1s\n    output_limit: 1024", nil},
		{"the longest time limit", "    script: ./pool", "    script: ./pool\n    time_limit: 10m", nil},
		{"an environment of keys", "      - POOL=east", "      - POOL: hunter2", []string{"x.yaml:14: providers[0].environment[0]: it is not text; write text, in quotes where it looks like something else"}},
		{"a secret without a name", "      - POOL=east", "      - hunter2", []string{"x.yaml:14: providers[0].environment[0]: the line is not NAME=VALUE; write NAME=VALUE"}},
		{"a value without a name", "      - POOL=east", "      - =hunter2", []string{"x.yaml:14: providers[0].environment[0]: the line is not NAME=VALUE; write NAME=VALUE"}},

		{"two documents", "providers:", "---\nproviders:", []string{"x.yaml:10: a second document begins; keep one; mend the YAML"}},

		{"many at once", "    owned: 4", "    ownd: 4\n    keep_back: 1.5\n    unit_weight: many", []string{
			`x.yaml:5: resources[0].ownd: there is no such key; did you mean "owned"?`,
			"x.yaml:6: resources[0].keep_back: 1.5 is not a whole number; write a whole number",
			"x.yaml:7: resources[0].unit_weight: many is not a whole number; write a whole number",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.line != "" && strings.Count(good, test.line+"\n") != 1 {
				t.Fatalf("line %q is not in the good file", test.line)
			}
			text := strings.Replace(good, test.line+"\n", test.instead+"\n", 1)
			c, err := parse("x.yaml", []byte(text), nil)
			if got := faults(t, c, err); !slices.Equal(got, test.want) {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it tells a secret: %v", err)
			}
		})
	}
}

func TestMalformedYAMLIsRefusedWithItsLine(t *testing.T) {
	without(t)
	for name, text := range map[string]string{
		"an open list":   "cluster:\n  name: [east\n",
		"a tabulator":    "cluster:\n\tname: east\n",
		"an indentation": "cluster:\n  name: east\n log: {}\n",
		"a quote":        "cluster:\n  name: \"east\n",
		"two colons":     "cluster:\n  name: east: west\n",
		"a later one":    "cluster: {name: east}\n---\nlog:\n  level: [",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse("x.yaml", []byte(text), nil)
			got := faults(t, c, err)
			if len(got) != 1 || !malformed.MatchString(got[0]) {
				t.Errorf("got %q", got)
			}
		})
	}
}

var malformed = regexp.MustCompile(`^x\.yaml:\d+: .+; mend the YAML(: indent with blanks, not tabs)?$`)

func TestWholeFilesThatAreNoConfiguration(t *testing.T) {
	without(t)
	nameless := `x.yaml: cluster.name: name "" is not valid; name the cluster, with letters, digits, '.', '_' or '-'`
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{nameless}},
		{"a comment", "# soon\n", []string{nameless}},
		{"null", "~", []string{nameless}},
		{"a word", "hunter2", []string{"x.yaml:1: there are no keys; begin with one such as cluster; mend the YAML"}},
		{"a tab", "cluster:\n\tname: east\n", []string{"x.yaml:2: found character that cannot start any token; mend the YAML: indent with blanks, not tabs"}},
		{"a tab after blanks", "cluster:\n  name: east\n\tid: 3\n", []string{"x.yaml:2: found a tab character that violates indentation; mend the YAML: indent with blanks, not tabs"}},
		{"a sign", "cluster: {name: @east}\n", []string{"x.yaml: found character that cannot start any token; mend the YAML"}},
		{"a list", "- cluster", []string{"x.yaml:1: there are no keys; begin with one such as cluster; mend the YAML"}},
		{"no text", "\xff\xfe\xfd", []string{"x.yaml: incomplete UTF-16 character; mend the YAML"}},
		{"merged keys are known, too", "cluster: &c {name: east}\nlog:\n  <<: *c\n", []string{"x.yaml:2: log.name: there is no such key; remove it"}},
		{"an alias of a word is no section", "cluster: {name: &n east}\nlog: *n\n", []string{"x.yaml:2: log: it is not a section; write its keys below it, indented"}},
		{"a broken merge", "cluster: {name: east}\nlog:\n  <<: 4\n", []string{"x.yaml: map merge requires map or sequence of maps as the value; mend the YAML"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := parse("x.yaml", []byte(test.text), nil)
			if got := faults(t, c, err); !slices.Equal(got, test.want) {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestFlagsGoOverTheEnvironmentAndThatOverTheFile(t *testing.T) {
	without(t)
	text := []byte(good + "log: {level: warn}\nagent: {cpus: 1}\n")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("log.level", "", "")
	flags.Int64("agent.cpus", 0, "")
	flags.String("unknown.key", "", "")
	tests := []struct {
		name  string
		level string
		cpus  int64
		set   func()
	}{
		{"the file", "warn", 1, func() {}},
		{"the environment", "error", 2, func() {
			t.Setenv("XCE_LOG_LEVEL", "error")
			t.Setenv("XCE_AGENT_CPUS", "2")
		}},
		{"what is empty in the environment is not there", "warn", 2, func() { t.Setenv("XCE_LOG_LEVEL", "") }},
		{"variables of other programs change nothing", "warn", 2, func() {
			for _, name := range []string{"XCE_LOG", "XCE_CLUSTER", "XCE_RESOURCES", "XCE_POOL_FILE"} {
				t.Setenv(name, "x")
			}
		}},
		{"flags", "debug", 3, func() {
			if err := flags.Parse([]string{"--log.level=debug", "--agent.cpus=3", "--unknown.key=x"}); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, test := range tests { // each adds to those before it
		test.set()
		c, err := parse("x.yaml", text, flags)
		if err != nil || c.Log.Level != test.level || c.Agent.CPUs != test.cpus || c.Cluster.Name != "east" {
			t.Errorf("%s: got %+v (%v), want %s, %d", test.name, c, err, test.level, test.cpus)
		}
	}
}

func TestWhatIsSetOverTheFileIsRefusedByItsOwnName(t *testing.T) {
	tests := []struct {
		name, variable, value string
		flags                 []string
		want                  string
	}{
		{"a made-up level", "XCE_LOG_LEVEL", "loud", nil, `XCE_LOG_LEVEL: log.level: "loud" is no level; write debug, info, warn or error`},
		{"no number", "XCE_AGENT_CPUS", "four", nil, "XCE_AGENT_CPUS: agent.cpus: four is not a whole number; write a whole number"},
		{"no length of time", "XCE_CLUSTER_SESSION_INTERVAL", "soon", nil, `XCE_CLUSTER_SESSION_INTERVAL: cluster.session_interval: duration "soon" is not a number with a unit (as in 90s, 30m, 4h); write text with a unit, as in 60m`},
		{"a bad flag over it", "XCE_LOG_LEVEL", "warn", []string{"--log.level=loud"}, `--log.level: log.level: "loud" is no level; write debug, info, warn or error`},
		{"without a flag that is set", "XCE_LOG_LEVEL", "loud", []string{}, `XCE_LOG_LEVEL: log.level: "loud" is no level; write debug, info, warn or error`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			without(t)
			t.Setenv(test.variable, test.value)
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			flags.String("log.level", "", "")
			if err := flags.Parse(test.flags); err != nil {
				t.Fatal(err)
			}
			c, err := parse("x.yaml", []byte(good+"log: {level: info}\nagent: {cpus: 1}\n"), flags)
			if got := faults(t, c, err); !slices.Equal(got, []string{test.want}) {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestAWordForASectionIsRefusedWhateverIsSetOverIt(t *testing.T) {
	without(t)
	t.Setenv("XCE_LOG_LEVEL", "debug")
	for range 20 { // the order of maps must not matter
		c, err := parse("x.yaml", []byte("log: debug\n"+good), nil)
		if got, want := faults(t, c, err), "x.yaml:1: log: it is not a section; write its keys below it, indented"; !slices.Equal(got, []string{want}) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestEveryKeyWithADefaultIsAKeyAndHasAVariable(t *testing.T) {
	without(t)
	for key := range defaults {
		t.Run(key, func(t *testing.T) {
			value := map[string]string{
				"cluster.session_interval": "1m", "agent.cpus": "3", "agent.memory_mb": "3", "policy.order": "easy", "policy.depth": "3", "log.level": "debug", "log.format": "json",
				"hosts.max": "3", "hosts.idle_time": "1h", "hosts.join_within": "1h", "hosts.max_lifetime": "1h", "hosts.suspect_after": "1h", "hosts.lost_after": "1h", "hosts.halt.hosts": "7", "hosts.halt.percent": "7",
				"controller.record_limit_mb": "77", "controller.session_lease": "7s", "simulation.steps.controller": "7ms", "simulation.steps.news": "7ms", "simulation.steps.stop": "7s",
				"leases.time_to_live": "7s", "leases.settle": "7s", "temporal.versioning": "true",
				"controller.limits.rate": "7", "controller.limits.burst": "7", "controller.limits.stranger_rate": "7", "controller.limits.stranger_burst": "7", "controller.limits.calls": "7", "controller.limits.polls": "7",
				"controller.limits.connections": "7", "controller.limits.address_connections": "7", "controller.limits.catalog_mb": "7", "controller.limits.time": "7s",
				"backend": "slurm", "slurm.command_limit": "7s", "slurm.message_timeout": "3s", "slurm.grace": "7s", "slurm.foreign_changes": "respect", "slurm.nodes": "cloud",
			}[key]
			if value == "" {
				value = "some-value"
			}
			t.Setenv(variable(key), value)
			text := good
			if key == "policy.depth" {
				text += "policy: {order: conservative}\n"
			}
			c, err := parse("", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			flagged, err := parse("", []byte(text), pflag.NewFlagSet("", pflag.ContinueOnError))
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv(variable(key), "")
			plain, err := parse("", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			if reflect.DeepEqual(c, plain) || !reflect.DeepEqual(c, flagged) {
				t.Errorf("%s=%s changed nothing", variable(key), value)
			}
		})
	}
}

func TestASmallFileIsCompletedWithDefaults(t *testing.T) {
	without(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "x.yaml")
	text := strings.Replace(good, "script: ./pool", "script: ./pool\n  - name: pool-b\n    script: pool\n    time_limit: 2s\n    survey_every: 3s\n    output_limit: 4096", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Resources[0].UnitWeight != 1 || c.Cluster.SessionInterval != 5*cluster.Second || c.Log != (Log{Level: "info", Format: "text"}) || c.Controller.Listen != "127.0.0.1:7400" {
		t.Errorf("got %+v", c)
	}
	if want := filepath.Join(folder, "pki", "admin.key"); c.Peer.Key != want {
		t.Errorf("the key is %s, want %s", c.Peer.Key, want)
	}
	if c.Controller.Record != "" || c.Controller.RecordLimitMB != 1024 {
		t.Errorf("a record is kept in %q, of at most %d MB", c.Controller.Record, c.Controller.RecordLimitMB)
	}
	a, b := c.Providers[0].Spec(), c.Providers[1].Spec()
	if a.Script != filepath.Join(folder, "pool") || b.Script != "pool" {
		t.Errorf("the scripts are %s and %s", a.Script, b.Script)
	}
	if a.TimeLimit.String() != "30s" || a.OutputLimit != 1<<20 || c.Providers[0].SurveyEvery != cluster.Minute {
		t.Errorf("got %+v", c.Providers[0])
	}
	if b.TimeLimit.String() != "2s" || b.OutputLimit != 4096 || c.Providers[1].SurveyEvery != 3*cluster.Second || b.Environment["POOL"] != "east" {
		t.Errorf("got %+v", c.Providers[1])
	}
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), nil)
	if err == nil || !strings.Contains(err.Error(), "none.yaml") || !strings.Contains(err.Error(), "name another with --config") {
		t.Errorf("got %v", err)
	}
}
