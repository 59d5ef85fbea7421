package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
)

func two() *Config {
	return &Config{Providers: []Provider{{Name: "pool-a", Environment: []string{"A=hunter2", "B="}}, {Name: "pool-b"}}}
}

func TestValuesOfTheEnvironmentAreNotShown(t *testing.T) {
	c := two()
	if got, want := c.Shown().Providers[0].Environment, []string{"A=(not shown)", "B=(not shown)"}; !slices.Equal(got, want) {
		t.Errorf("shows %q, want %q", got, want)
	}
	if c.Providers[0].Environment[0] != "A=hunter2" {
		t.Error("the configuration itself was changed")
	}
}

func TestOnlyTheNamedProvidersStay(t *testing.T) {
	tests := []struct {
		names, want []string
		fault       string
	}{
		{names: []string{"pool-b"}, want: []string{"pool-b"}},
		{names: []string{"pool-b", "pool-a"}, want: []string{"pool-a", "pool-b"}},
		{names: []string{"pool-b", "pool-c"}, want: []string{"pool-a", "pool-b"}, fault: `"pool-c" is not a provider; the configuration has pool-a, pool-b`},
	}
	for _, test := range tests {
		c := two()
		err := c.OnlyProviders(test.names)
		if (err == nil) != (test.fault == "") || err != nil && err.Error() != test.fault {
			t.Errorf("%q: got %v, want %q", test.names, err, test.fault)
		}
		if got := c.ProviderNames(); !slices.Equal(got, test.want) {
			t.Errorf("%q leave %q, want %q", test.names, got, test.want)
		}
	}
}

func TestAnAgentHasWhatItsLinesSay(t *testing.T) {
	a := Agent{CPUs: 4, Countables: []string{"gpus=2", "Slots=0"}, Features: []string{"avx512", "site=z1", "os=rhel=9"}}
	c, ps := a.Capacity()
	want := cluster.Capacity{
		CPUs: 4, Countables: map[string]int64{"gpus": 2, "Slots": 0}, Features: []string{"avx512"},
		Attributes: map[string]string{"site": "z1", "os": "rhel=9"},
	}
	if len(ps) != 0 || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, %v, want %+v", c, ps, want)
	}
	if err := a.Override(nil, nil); err != nil || len(a.Countables) != 2 || len(a.Features) != 3 {
		t.Errorf("nothing over it makes it %+v, %v", a, err)
	}
	if err := a.Override([]string{"gpus=1"}, []string{"old"}); err != nil || len(a.Countables) != 1 || a.Features[0] != "old" {
		t.Errorf("the command line makes it %+v, %v", a, err)
	}
	if err := a.Override([]string{"gpus"}, nil); err == nil || !strings.HasPrefix(err.Error(), `--countable[0]: "gpus" is not NAME=COUNT; `) {
		t.Errorf("got %v", err)
	}
}

func TestSecretsAreFilesBesideTheConfiguration(t *testing.T) {
	without(t)
	text := strings.Replace(good, "script: ./pool", "script: ./pool\n    user: nobody\n    secrets: [KEY=key, 'OTHER=/etc/other']", 1)
	c, err := parse("/etc/xce/x.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := c.Providers[0].Spec()
	if spec.User != "nobody" || len(spec.Secrets) != 2 || spec.Secrets["KEY"] != "/etc/xce/key" || spec.Secrets["OTHER"] != "/etc/other" {
		t.Errorf("got %+v", spec)
	}
	for lines, want := range map[string]string{
		"[KEY]": "the line is not NAME=FILE", "['KEY=']": "the line is not NAME=FILE", "['=f']": "the line is not NAME=FILE", "[KEY=a, KEY=b]": "of that name already",
	} {
		text := strings.Replace(good, "script: ./pool", "script: ./pool\n    secrets: "+lines, 1)
		c, err := parse("x.yaml", []byte(text), nil)
		if got := faults(t, c, err); len(got) != 1 || !strings.Contains(got[0], "providers[0].secrets") || !strings.Contains(got[0], want) {
			t.Errorf("%s: got %q", lines, got)
		}
	}
}
