package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestLimits(t *testing.T) {
	counts := HostCounts{
		Open: map[string]int64{"c16": 3, "c32": 2, "gone": 1}, Begun: map[string]int64{"c16": 2, "gone": 1}, Here: 4,
	}
	group := cluster.HostLimit{Name: "large", Max: 5, Templates: []string{"c32", "c64"}}
	tests := []struct {
		name  string
		rules cluster.HostRules
		want  []string // limits, and for c16 and c32 which apply
	}{
		{"none", cluster.HostRules{}, []string{"c16: own", "c32: own"}},
		{"of all hosts", cluster.HostRules{Max: 10}, []string{"hosts.max 6/10", "c16: own hosts.max", "c32: own hosts.max"}},
		{"passed", cluster.HostRules{Max: 4}, []string{"hosts.max 6/4", "c16: own hosts.max", "c32: own hosts.max"}},
		{"of a step", cluster.HostRules{Step: cluster.HostStep{Hosts: 5, Within: cluster.Minute}}, []string{"hosts.step 3/5", "c16: own hosts.step", "c32: own hosts.step"}},
		{"of a group", cluster.HostRules{Limits: []cluster.HostLimit{group}}, []string{"hosts.limits.large 2/5", "c16: own", "c32: own hosts.limits.large"}},
		{"all", cluster.HostRules{Max: 10, Step: cluster.HostStep{Hosts: 5}, Limits: []cluster.HostLimit{group, {Name: "small", Templates: []string{"c16"}}}}, []string{
			"hosts.max 6/10", "hosts.step 3/5", "hosts.limits.large 2/5", "hosts.limits.small 3/0",
			"c16: own hosts.max hosts.step hosts.limits.small", "c32: own hosts.max hosts.step hosts.limits.large",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			templates := []cluster.Template{{Name: "c16", Quotas: []string{"own"}}, {Name: "c32", Quotas: []string{"own"}}}
			limited, limits, halt := Limits(test.rules, counts, templates, start)
			var got []string
			for _, l := range limits {
				got = append(got, fmt.Sprintf("%s %d/%d", l.Name, l.Used, l.Limit))
				if l.Counts != "hosts" || l.Published != start {
					t.Errorf("got %+v", l)
				}
			}
			for _, tmpl := range limited {
				got = append(got, tmpl.Name+": "+strings.Join(tmpl.Quotas, " "))
			}
			if !slices.Equal(got, test.want) || halt != "" {
				t.Errorf("got %q (%s), want %q", got, halt, test.want)
			}
			if len(templates[0].Quotas) != 1 || len(templates[1].Quotas) != 1 {
				t.Errorf("the templates themselves were changed: %+v", templates)
			}
		})
	}
}

func TestHalt(t *testing.T) {
	tests := []struct {
		name            string
		halt            cluster.HostHalt
		here, unhealthy int64
		want            string
	}{
		{"all are well", cluster.HostHalt{Hosts: 3, Percent: 33}, 9, 0, ""},
		{"few do not answer", cluster.HostHalt{Hosts: 3, Percent: 33}, 2, 2, ""},
		{"a small part does not", cluster.HostHalt{Hosts: 3, Percent: 33}, 100, 32, ""},
		{"enough, and enough of all", cluster.HostHalt{Hosts: 3, Percent: 33}, 100, 33, "33 of 100 elastic hosts do not answer"},
		{"just enough", cluster.HostHalt{Hosts: 3, Percent: 33}, 9, 3, "3 of 9 elastic hosts do not answer"},
		{"all", cluster.HostHalt{Hosts: 1, Percent: 100}, 1, 1, "1 of 1 elastic hosts do not answer"},
		{"any", cluster.HostHalt{Hosts: 1}, 1000, 1, "1 of 1000 elastic hosts do not answer"},
		{"it is switched off", cluster.HostHalt{Percent: 33}, 3, 3, ""},
		{"there are none", cluster.HostHalt{Hosts: 1}, 0, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// Very many were asked for and have not joined: they count neither way.
			counts := HostCounts{Here: test.here, Unhealthy: test.unhealthy, Open: map[string]int64{"c16": 10_000}, Begun: map[string]int64{"c16": 10_000}}
			limited, limits, halt := Limits(cluster.HostRules{Halt: test.halt}, counts, []cluster.Template{{Name: "c16"}}, start)
			stopped := slices.Contains(limited[0].Quotas, limitHalt) && slices.ContainsFunc(limits, func(q cluster.Quota) bool { return q.Name == limitHalt && q.Limit == 0 && q.Why == halt })
			if halt != test.want || stopped != (test.want != "") {
				t.Errorf("got %q and %+v, want %q", halt, limits, test.want)
			}
		})
	}
}

// most is how many hosts of a template its headroom and the limits let be asked for.
func most(limits []cluster.Quota, tmpl cluster.Template) int64 {
	n := tmpl.Headroom
	for _, q := range limits {
		if slices.Contains(tmpl.Quotas, q.Name) {
			n = min(n, max(q.Limit-q.Used, 0))
		}
	}
	return n
}

// intended is a host that was asked for.
type intended struct {
	template string
	at       cluster.Time
	open     bool
}

// Whoever asks for as many hosts as the limits allow, again and again, keeps them at
// every moment, and over every step's time.
func TestLimitsHoldOverTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := cluster.HostRules{Max: rapid.Int64Range(0, 12).Draw(t, "max")}
		rules.Step = cluster.HostStep{Hosts: rapid.Int64Range(0, 4).Draw(t, "step"), Within: 5 * cluster.Minute}
		rules.Limits = []cluster.HostLimit{{Name: "both", Max: rapid.Int64Range(0, 8).Draw(t, "both"), Templates: []string{"a", "b"}}, {Name: "a", Max: 5, Templates: []string{"a"}}}
		var all []intended
		now := start
		for range rapid.IntRange(1, 12).Draw(t, "sessions") {
			now += drawMinutes(t, 6, "later")
			for i := range all {
				all[i].open = all[i].open && rapid.IntRange(0, 4).Draw(t, "closed") > 0
			}
			for _, name := range []string{"a", "b", "c"} {
				limited, limits, _ := Limits(rules, countsOf(all, now.Add(-rules.Step.Within)), []cluster.Template{{Name: name, Headroom: 1000}}, now)
				for range min(rapid.Int64Range(0, 9).Draw(t, "wanted"), most(limits, limited[0])) {
					all = append(all, intended{name, now, true})
				}
			}
			checkLimits(t, rules, all, now)
		}
	})
}

// countsOf counts as the books do: what was asked for after an instant has begun.
func countsOf(all []intended, after cluster.Time) HostCounts {
	c := HostCounts{Open: map[string]int64{}, Begun: map[string]int64{}}
	for _, h := range all {
		if h.open {
			c.Open[h.template]++
		}
		if h.at > after {
			c.Begun[h.template]++
		}
	}
	return c
}

func checkLimits(t *rapid.T, rules cluster.HostRules, all []intended, now cluster.Time) {
	var open, begun int64
	of := map[string]int64{}
	for _, h := range all {
		if h.open {
			open++
			of[h.template]++
		}
		if now.Sub(h.at) < rules.Step.Within {
			begun++
		}
	}
	switch {
	case rules.Max > 0 && open > rules.Max:
		t.Fatalf("%d hosts, at most %d", open, rules.Max)
	case rules.Step.Hosts > 0 && begun > rules.Step.Hosts:
		t.Fatalf("%d hosts within %s, at most %d", begun, rules.Step.Within, rules.Step.Hosts)
	case of["a"]+of["b"] > rules.Limits[0].Max || of["a"] > rules.Limits[1].Max:
		t.Fatalf("%v are there, with %+v", of, rules.Limits)
	}
}

func TestLimitsChangeNothingOfATemplateButWhatItIsLimitedBy(t *testing.T) {
	tmpl := cluster.Template{Name: "c16", Provider: "cloud", Headroom: 9, Misses: 1, Delivered: &cluster.Capacity{CPUs: 8}}
	limited, _, _ := Limits(cluster.HostRules{Max: 3}, HostCounts{}, []cluster.Template{tmpl}, start)
	limited[0].Quotas = nil
	if !reflect.DeepEqual(limited[0], tmpl) {
		t.Errorf("%+v became %+v", tmpl, limited[0])
	}
}
