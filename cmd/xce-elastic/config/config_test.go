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

func TestTheCommandLineGoesOverTheProvisionersLists(t *testing.T) {
	names := two().ProviderNames()
	p := Provisioner{Pools: []string{"workflows", "provider:*"}}
	if err := p.Override(nil, []string{"pool-b"}, names); err != nil || len(p.Pools) != 2 || p.Prefers[0] != "pool-b" {
		t.Errorf("prefers alone: %+v, %v", p, err)
	}
	if err := p.Override([]string{"provider:pool-b"}, nil, names); err != nil || len(p.Pools) != 1 {
		t.Errorf("pools alone: %+v, %v", p, err)
	}
	if err := p.Override([]string{"provider:pool-a"}, nil, names); err == nil || !strings.Contains(err.Error(), `"pool-b" is no provider for which the pools let it act`) {
		t.Errorf("what it prefers is not in its pools: %v", err)
	}
	if err := p.Override([]string{"provider:pool-c"}, nil, names); err == nil || !strings.Contains(err.Error(), `"pool-c" is not a provider; the configuration has pool-a, pool-b`) {
		t.Errorf("a pool of no provider: %v", err)
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
