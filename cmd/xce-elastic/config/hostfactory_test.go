package config

import (
	"slices"
	"testing"
	"time"

	"xce.internal/elastic/providers/hostfactory"
)

const plugin = `cluster:
  name: east
providers:
  - name: aws
    environment: ["AWS_REGION=eu"]
    hostfactory:
      scripts: aws/scripts
      work: /var/aws
      conf: aws/conf
      defaults:
        price: 100
        latency: 2m
      templates:
        - template: "Template VM 1"
          name: vm1
          minimum_hold: 10m
          max: 5
`

func TestAPluginTakesThePlaceOfAScript(t *testing.T) {
	without(t)
	c, err := parse("/etc/xce/xce.yaml", []byte(plugin), nil)
	if got := faults(t, c, err); len(got) > 0 {
		t.Fatal(got)
	}
	spec, is := c.Providers[0].Plugin()
	want := hostfactory.Terms{ID: "Template VM 1", Name: "vm1", MinimumHold: 10 * time.Minute, Most: 5}
	if !is || spec.Scripts != "/etc/xce/aws/scripts" || spec.Work != "/var/aws" || spec.State != "/etc/xce/aws.hostfactory.json" ||
		spec.Flavour != hostfactory.LSF || spec.TimeLimit != 2*time.Minute || spec.Environment["AWS_REGION"] != "eu" ||
		spec.Terms.Price != 100 || spec.Terms.Latency != 2*time.Minute || !slices.Equal(spec.Templates, []hostfactory.Terms{want}) {
		t.Errorf("%+v", spec)
	}
}

func TestAPluginIsRefusedWithLineKeyAndRemedy(t *testing.T) {
	without(t)
	const begin = "cluster:\n  name: east\nproviders:\n  - name: aws\n    hostfactory:\n"
	tests := []struct{ name, text, want string }{
		{"no folders", begin + "      conf: conf\n      work: w\n", "x.yaml:5: providers[0].hostfactory.scripts: there is no folder of scripts; name the folder with requestMachines.sh and the others"},
		{"no work folder", begin + "      scripts: s\n", "x.yaml:5: providers[0].hostfactory.work: there is no work folder; name the folder where the plug-in keeps its records"},
		{"flavour", begin + "      scripts: s\n      work: w\n      flavour: slurm\n", `x.yaml:8: providers[0].hostfactory.flavour: "slurm" is no flavour; write lsf or symphony`},
		{"unknown key", begin + "      scripts: s\n      work: w\n      polling: 3s\n", "x.yaml:8: providers[0].hostfactory.polling: there is no such key; remove it; known here are account, conf, defaults, flavour, hold, logs, poll_interval, scripts, settle, state, templates, top, watch, work"},
		{"negative", begin + "      scripts: s\n      work: w\n      defaults:\n        price: -1\n", "x.yaml:9: providers[0].hostfactory.defaults.price: it is out of range; write 0 or a positive value, as large as there can be"},
		{"short", begin + "      scripts: s\n      work: w\n      watch: 1ms\n", "x.yaml:8: providers[0].hostfactory.watch: 1ms is too short; write at least 1s"},
		{"name", begin + "      scripts: s\n      work: w\n      templates:\n        - template: a b\n", `x.yaml:9: providers[0].hostfactory.templates[0].name: name "a b" is not valid; give the template a name of letters, digits, '.', '_' or '-'`},
		{"twice", begin + "      scripts: s\n      work: w\n      templates:\n        - template: a\n        - template: a\n", "x.yaml:10: providers[0].hostfactory.templates[1]: the template, or its name, is in templates[0] already; give each template one entry and a name of its own"},
		{"a script as well", begin + "      scripts: s\n      work: w\n    script: ./x\n", "x.yaml:5: providers[0].hostfactory: there is a script as well; keep one of the two"},
		{"time limit", begin + "      scripts: s\n      work: w\n    time_limit: 5m\n", "x.yaml:8: providers[0].time_limit: 5m0s is out of range; write between 1s and 2m30s"},
		{"no section", "cluster:\n  name: east\nproviders:\n  - name: aws\n    hostfactory: aws\n", "x.yaml:5: providers[0].hostfactory: it is not a section; write its keys below it, indented"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := parse("x.yaml", []byte(test.text), nil)
			if got := faults(t, c, err); !slices.Contains(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}
