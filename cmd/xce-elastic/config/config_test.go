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

// An address with a password is refused, and the refusal does not have it.
func TestAStateMayBeADatabaseButItsAddressHasNoPassword(t *testing.T) {
	without(t)
	for _, state := range []string{
		"postgres://xce:hunter2@db/xce", "postgresql://xce:hunter2@db:5432,db2:5432/xce", "postgres://db/xce?user=xce&password=hunter2",
		"postgres://db/xce?sslpassword=hunter2", "postgres://xce:hunter2%zz@db/xce",
	} {
		_, err := parse("x.yaml", []byte("controller: {state: '"+state+"'}\n"+good), nil)
		if err == nil {
			t.Errorf("%s is taken", state)
			continue
		}
		text := err.Error()
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "x.yaml:1: controller.state: ") {
			t.Errorf("%s is refused with %q", state, text)
		}
	}
	const state = "postgres://xce@db1,db2/xce?passfile=/etc/xce/pass&target_session_attrs=read-write"
	c, err := parse("/etc/xce/x.yaml", []byte("controller: {state: '"+state+"'}\n"+good), nil)
	if err != nil || c.Controller.State != state {
		t.Errorf("the state is %+v, %v", c, err)
	}
}
