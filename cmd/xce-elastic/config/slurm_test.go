package config

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/slurm"
)

func TestWhatIsSaidOfSlurmIsChecked(t *testing.T) {
	without(t)
	const two = "resources: [{name: vcs}, {name: sim}]\ncluster: {name: east}\n"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"a backend", "backend: slurm\n", nil},
		{"no backend", "backend: lsf\n", []string{`x.yaml:3: backend: "lsf" is no backend; write builtin or slurm`}},
		{"a misspelt key", "slurm:\n  licenses: [vcs=vcs]\n", []string{`x.yaml:4: slurm.licenses: there is no such key; did you mean "licences"?`}},
		{"no time for messages", "slurm: {message_timeout: 999ms}\n", []string{"x.yaml:3: slurm.message_timeout: 999ms is out of range; write between 1s and 1m40s"}},
		{"too much", "slurm: {message_timeout: 101s, command_limit: 3m}\n", []string{"x.yaml:3: slurm.message_timeout: 1m41s is out of range; write between 1s and 1m40s"}},
		{"a part of a second", "slurm: {message_timeout: 1500ms}\n", []string{"x.yaml:3: slurm.message_timeout: 1.5s is a part of a second, which Slurm does not know; write whole seconds"}},
		{"commands as short as messages", "slurm: {command_limit: 2s}\n", []string{"x.yaml:3: slurm.command_limit: 2s is not longer than message_timeout, so a command would be ended before Slurm says what is wrong; write more than 2s"}},
		{"commands without end", "slurm: {command_limit: 11m}\n", []string{"x.yaml:3: slurm.command_limit: 11m0s is too long; write at most 10m0s"}},
		{"grace", "slurm: {grace: -1s}\n", []string{"x.yaml:3: slurm.grace: -1s is out of range; write between 1s and 10m0s"}},
		{"the least grace", "slurm: {grace: 1s}\n", nil},
		{"a reservation", "slurm: {reservation: a b}\n", []string{`x.yaml:3: slurm.reservation: name "a b" is not valid; use letters, digits, '.', '_' or '-'`}},
		{"changes of others", "slurm: {foreign_changes: ignore}\n", []string{`x.yaml:3: slurm.foreign_changes: "ignore" is neither; write repair or respect`}},
		{"nodes", "slurm: {nodes: static}\n", []string{`x.yaml:3: slurm.nodes: "static" is no kind of node; write dynamic, cloud or future`}},

		{"licences", "slurm: {licences: [vcs=vcs@pool, sim=xcelium]}\n", nil},
		{"names the other way round", "slurm: {licences: [vcs=sim, sim=vcs]}\n", nil},
		{"no line", "slurm: {licences: [vcs, =vcs, vcs=]}\n", []string{
			`x.yaml:3: slurm.licences[0]: "vcs" is not OUR_NAME=SLURM_NAME; write the resource's name, and that of the licence in Slurm, as in vcs=vcs@pool`,
			`x.yaml:3: slurm.licences[1]: "=vcs" is not OUR_NAME=SLURM_NAME; write the resource's name, and that of the licence in Slurm, as in vcs=vcs@pool`,
			`x.yaml:3: slurm.licences[2]: "vcs=" is not OUR_NAME=SLURM_NAME; write the resource's name, and that of the licence in Slurm, as in vcs=vcs@pool`,
		}},
		{"an unknown resource", "slurm:\n  licences:\n  - zebu=zebu\n", []string{`x.yaml:5: slurm.licences[0]: there is no shared resource "zebu"; name one that is under resources`}},
		{"a resource twice", "slurm:\n  licences:\n  - vcs=a\n  - vcs=b\n", []string{`x.yaml:6: slurm.licences[1]: resource "vcs" has a licence in licences[0] already; keep one of the two`}},
		{"a licence twice", "slurm:\n  licences:\n  - vcs=a\n  - sim=a\n", []string{`x.yaml:6: slurm.licences[1]: the licence "a" stands for resource "vcs" already; give each resource a licence of its own in slurm.licences`}},
		{"the licence of another", "slurm: {licences: [vcs=sim]}\n", []string{`x.yaml:1: resources[1].name: the licence "sim" stands for resource "vcs" already; give each resource a licence of its own in slurm.licences`}},
		{"a list for a licence", "slurm: {licences: ['vcs=a,b', 'sim=a@b@c']}\n", []string{
			`x.yaml:3: slurm.licences[0]: Slurm can have no licence "a,b"; write its name as ` + "`scontrol show licenses`" + ` has it, as in vcs or vcs@pool`,
			`x.yaml:3: slurm.licences[1]: Slurm can have no licence "a@b@c"; write its name as ` + "`scontrol show licenses`" + ` has it, as in vcs or vcs@pool`,
		}},

		{"templates", "slurm:\n  templates:\n  - {template: c16, kind: cloud, nodes: 'c[1-16]', features: [avx512, site=z1], gres: ['gpu:2', 'gpu:a100:2']}\n  - template: m32\n", nil},
		{"a template twice", "slurm:\n  templates:\n  - template: c16\n  - template: c16\n", []string{`x.yaml:6: slurm.templates[1].template: template "c16" is already in templates[0]; give each template one entry`}},
		{"no template", "slurm:\n  templates:\n  - kind: big\n", []string{
			`x.yaml:5: slurm.templates[0].template: name "" is not valid; name a template, as its provider does`,
			`x.yaml:5: slurm.templates[0].kind: "big" is no kind of node; write dynamic, cloud or future`,
		}},
		{"nodes of a kind that has none in a file", "slurm: {templates: [{template: c16, nodes: c1}]}\n", []string{"x.yaml:3: slurm.templates[0].nodes: dynamic nodes are in no file; remove it, or write kind: cloud or future"}},
		{"nodes that are not named", "slurm: {templates: [{template: c16, kind: future}]}\n", []string{"x.yaml:3: slurm.templates[0].nodes: it is not said which nodes of slurm.conf are those of template c16; write them as slurm.conf does, as in c[1-16]"}},
		{"nodes of two", "slurm: {nodes: cloud, templates: [{template: a, nodes: 'c[1-9]'}, {template: b, nodes: 'd1,c[9-12]'}]}\n", []string{"x.yaml:3: slurm.templates[1].nodes: node c9 is one of templates[0] already; give each node to one template"}},
		{"no features", "slurm:\n  templates:\n  - template: c16\n    features: ['a|b', '']\n", []string{
			`x.yaml:6: slurm.templates[0].features[0]: Slurm can have no feature "a|b"; use letters, digits, '.', '_', '-', '/' or '='`,
			`x.yaml:6: slurm.templates[0].features[1]: Slurm can have no feature ""; use letters, digits, '.', '_', '-', '/' or '='`,
		}},
		{"no gres", "slurm:\n  templates:\n  - template: c16\n    gres: [gpu, 'gpu:0', 'gpu:2', 'gpu:x:y:2']\n", []string{
			`x.yaml:6: slurm.templates[0].gres[0]: "gpu" is not NAME:COUNT or NAME:TYPE:COUNT; write it as slurm.conf has it, as in gpu:2 or gpu:a100:2`,
			`x.yaml:6: slurm.templates[0].gres[1]: "gpu:0" is not NAME:COUNT or NAME:TYPE:COUNT; write it as slurm.conf has it, as in gpu:2 or gpu:a100:2`,
			`x.yaml:6: slurm.templates[0].gres[3]: "gpu:x:y:2" is not NAME:COUNT or NAME:TYPE:COUNT; write it as slurm.conf has it, as in gpu:2 or gpu:a100:2`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := parse("x.yaml", []byte(two+test.text), nil)
			if got := faults(t, c, err); !slices.Equal(got, test.want) {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestSlurmIsFoundWhereItsOwnProgramsFindIt(t *testing.T) {
	without(t)
	for _, test := range []struct{ environment, text, want string }{
		{"", "", "/etc/slurm/slurm.conf"},
		{"/opt/slurm/slurm.conf", "", "/opt/slurm/slurm.conf"},
		{"/opt/slurm/slurm.conf", "slurm: {conf: slurm.conf}\n", "/site/slurm.conf"},
	} {
		t.Setenv("SLURM_CONF", test.environment)
		c, err := parse("/site/x.yaml", []byte(good+test.text), nil)
		if err != nil || c.Slurm.Conf != test.want {
			t.Errorf("%+v: found in %q, %v", test, c.Slurm.Conf, err)
		}
	}
}

func TestWhatIsNotSaidOfSlurmHasDefaults(t *testing.T) {
	without(t)
	c, err := parse("/site/x.yaml", []byte(good+"slurm:\n  commands: slurm/bin\n  licences: [vcs=vcs@pool]\n  nodes: cloud\n  templates: [{template: a, nodes: c1}, {template: b, kind: dynamic}]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Slurm
	if c.Backend != BackendBuiltin || s.Reservation != "xce-withheld" || s.ForeignChanges != RepairChanges {
		t.Errorf("got %q, %+v", c.Backend, s)
	}
	if s.CommandLimit.Std() != 5*time.Second || s.MessageTimeout != 2*cluster.Second || s.Grace != slurm.DefaultGrace {
		t.Errorf("got %+v", s)
	}
	if s.Commands != filepath.Join("/site", "slurm/bin") || s.Templates[0].Kind != CloudNodes || s.Templates[1].Kind != DynamicNodes {
		t.Errorf("got %+v", s)
	}
	if got, want := c.LicenceNames(), map[string]string{"vcs": "vcs@pool"}; !maps.Equal(got, want) {
		t.Errorf("the licences are %v, want %v", got, want)
	}
}
