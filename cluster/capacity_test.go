package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestHostsAreRefusedWithPlaceAndRemedy(t *testing.T) {
	many := map[string]int64{}
	for i := range MostCountables + 1 {
		many[fmt.Sprintf("c%d", i)] = 1
	}
	tests := []struct {
		name string
		in   Capacity
		want []string
	}{
		{name: "a good one", in: Capacity{CPUs: 1, MemoryMB: 1, Countables: map[string]int64{"gpus": 2}, Features: []string{"avx512", "os=rhel"}, Attributes: map[string]string{"site": "z=1"}}},
		{name: "nothing", in: Capacity{}},
		{name: "less than nothing", in: Capacity{CPUs: -1, MemoryMB: -1, Countables: map[string]int64{"gpus": -1}}, want: []string{"x.cpus: -1 is negative", "x.memory_mb: -1 is negative", "x.countables.gpus: -1 is negative"}},
		{name: "absurd", in: Capacity{CPUs: 1 << 62}, want: []string{"x.cpus: 4611686018427387904 is too large to count with"}},
		{name: "countables by other names", in: Capacity{Countables: map[string]int64{"cpus": 1, "memory_mb": 1, "hosts": 1, "": 1}}, want: []string{
			`x.countables.: name "" is not valid`, `x.countables.cpus: a countable cannot be called "cpus"`, `x.countables.hosts: a countable cannot be called "hosts"`, `x.countables.memory_mb: a countable cannot be called "memory_mb"`,
		}},
		{name: "very many countables", in: Capacity{Countables: many}, want: []string{"x.countables: there are 65 countables; name at most 64"}},
		{name: "features", in: Capacity{Features: []string{"a", "", "a b", "a", "!c", "d\n", strings.Repeat("e", 201)}}, want: []string{
			`x.features[1]: feature "" cannot be asked for in a constraint`, `x.features[2]: feature "a b" cannot`, `x.features[3]: feature "a" is named twice`,
			`x.features[4]: feature "!c" cannot`, `x.features[5]: feature "d\n" cannot`, `x.features[6]: use 1 to 200 bytes`,
		}},
		{name: "attributes", in: Capacity{Attributes: map[string]string{"a=b": "c", "d": "e f", "": "g"}}, want: []string{
			`x.attributes.: attribute "" cannot`, `x.attributes.a=b: attribute "a=b" has an equals sign`, `x.attributes.d: value "e f" cannot`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkProblems(t, test.in.Validate("x."), test.want) })
	}
}

func TestAHostHasItsFeaturesAndItsAttributesWithTheirValues(t *testing.T) {
	c := Capacity{Features: []string{"avx512", "os=rhel"}, Attributes: map[string]string{"site": "z1", "rack": ""}}
	for feature, want := range map[string]bool{
		"avx512": true, "os=rhel": true, "site=z1": true, "rack=": true, "site": false, "site=z2": false, "rack": false, "os": false, "avx2": false, "": false, "other=": false,
	} {
		if got := c.Has(feature); got != want {
			t.Errorf("it has %q: %t", feature, got)
		}
	}
	if got, want := c.FeatureNames(), []string{"avx512", "os=rhel", "rack=", "site=z1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAJobTakesTheTokensOfItsAlternativeToo(t *testing.T) {
	s := JobSpec{Tokens: map[string]int64{"vcs": 1}, Alternatives: []map[string]int64{{"vcs": 2}, {"verdi": 1}}}
	for alternative, want := range []map[string]int64{{"vcs": 1}, {"vcs": 3}, {"vcs": 1, "verdi": 1}, {"vcs": 1}} {
		if got := s.TokensTaken(int64(alternative)); !maps.Equal(got, want) {
			t.Errorf("with alternative %d: got %v, want %v", alternative, got, want)
		}
	}
	if s.Tokens["vcs"] != 1 || len(s.Tokens) != 1 {
		t.Errorf("the job itself was changed: %v", s.Tokens)
	}
}

func TestCovers(t *testing.T) {
	host := Capacity{CPUs: 16, MemoryMB: 65536, Countables: map[string]int64{"gpus": 2}}
	tests := []struct {
		name string
		of   Capacity
		want bool
	}{
		{"nothing", Capacity{}, true},
		{"as much", host, true},
		{"a feature, which is not counted", Capacity{CPUs: 1, Features: []string{"avx"}}, true},
		{"none of what there is not", Capacity{Countables: map[string]int64{"fpgas": 0}}, true},
		{"a cpu more", Capacity{CPUs: 17}, false},
		{"a MB more", Capacity{MemoryMB: 65537}, false},
		{"a gpu more", Capacity{Countables: map[string]int64{"gpus": 3}}, false},
		{"one of what there is not", Capacity{Countables: map[string]int64{"fpgas": 1}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := host.Covers(test.of); got != test.want {
				t.Errorf("covers: %t", got)
			}
		})
	}
}

func TestTheLeastOfTwo(t *testing.T) {
	says := Capacity{CPUs: 16, MemoryMB: 65536, Countables: map[string]int64{"gpus": 2, "fpgas": 1}, Features: []string{"avx", "site=z1"}, Attributes: map[string]string{"os": "rhel9"}}
	had := Capacity{CPUs: 32, MemoryMB: 63488, Countables: map[string]int64{"gpus": 3, "tpus": 1}, Features: []string{"os=rhel9"}, Attributes: map[string]string{"site": "z1"}}
	want := Capacity{CPUs: 16, MemoryMB: 63488, Countables: map[string]int64{"gpus": 2, "fpgas": 0}, Features: []string{"site=z1"}, Attributes: map[string]string{"os": "rhel9"}}
	if got := says.Least(had); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
