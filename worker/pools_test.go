package worker

import (
	"reflect"
	"strings"
	"testing"
)

func TestPoolsAreRead(t *testing.T) {
	providers := []string{"b", "a"}
	for _, c := range []struct {
		lines []string
		want  Pools
		fault string
	}{
		{lines: AllPools, want: Pools{Workflows: true, Controller: true, Providers: []string{"a", "b"}}},
		{lines: []string{"workflows"}, want: Pools{Workflows: true}},
		{lines: []string{"provider:b", "controller"}, want: Pools{Controller: true, Providers: []string{"b"}}},
		{lines: []string{"provider:a", "provider:*"}, want: Pools{Providers: []string{"a", "b"}}},
		{lines: nil, fault: "there is no pool: name some of workflows, controller, provider:*"},
		{lines: []string{"provider:c"}, fault: `"c" is not a provider; the configuration has b, a`},
		{lines: []string{"provider"}, fault: `pool "provider": write workflows, controller, provider:NAME or provider:*`},
	} {
		got, err := ReadPools(c.lines, providers)
		switch {
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%q: got %v, want %q", c.lines, err, c.fault)
		case c.fault == "" && (err != nil || !reflect.DeepEqual(got, c.want)):
			t.Errorf("%q: got %+v, %v, want %+v", c.lines, got, err, c.want)
		}
	}
}
