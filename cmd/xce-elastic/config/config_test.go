package config

import (
	"slices"
	"testing"
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
