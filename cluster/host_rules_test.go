package cluster

import (
	"strings"
	"testing"
)

func TestHostRulesAreRefusedWithPlaceAndRemedy(t *testing.T) {
	tests := []struct {
		name   string
		change func(*HostRules)
		want   []string
	}{
		{"as they are by default", func(*HostRules) {}, nil},
		{"all that can be said", func(r *HostRules) {
			r.Max, r.MaxLifetime, r.ReturnLost, r.Step = 500, 24*Hour, true, HostStep{Hosts: 20, Within: 5 * Minute}
			r.Limits = []HostLimit{{Name: "large", Max: 5, Templates: []string{"c32", "c64"}}, {Name: "none", Templates: []string{"old"}}}
		}, nil},
		{"max", func(r *HostRules) { r.Max = -1 }, []string{"hosts.max: -1 is negative; write 0 or a positive whole number"}},
		{"an absurd max", func(r *HostRules) { r.Max = 1 << 62 }, []string{"hosts.max: is too large to count with; write at most 1000000000000"}},
		{"a short idle time", func(r *HostRules) { r.IdleTime = 4 * Second }, []string{"hosts.idle_time: 4s is shorter than the session interval 5s, so no session could see the host used again; write at least 5s"}},
		{"the shortest idle time", func(r *HostRules) { r.IdleTime = 5 * Second }, nil},
		{"a negative idle time", func(r *HostRules) { r.IdleTime = -1 }, []string{"hosts.idle_time: -1ms is negative; write a length of time such as 30m"}},
		{"an idle time of ages", func(r *HostRules) { r.IdleTime = longestTime + 1 }, []string{"hosts.idle_time: is longer than 87840h0m0s; write less"}},
		{"no time to join", func(r *HostRules) { r.JoinWithin = 0 }, []string{"hosts.join_within: 0s leaves no time to join; write a length of time such as 15m"}},
		{"less than none", func(r *HostRules) { r.JoinWithin = -Minute }, []string{"hosts.join_within: -1m0s is negative; write a length of time"}},
		{"ages to join", func(r *HostRules) { r.JoinWithin = longestTime + 1 }, []string{"hosts.join_within: is longer than"}},
		{"lost at once", func(r *HostRules) { r.LostAfter = 0 }, []string{"hosts.lost_after: 0s counts every host as lost; write a length of time such as 5m"}},
		{"lost before", func(r *HostRules) { r.LostAfter = -Second }, []string{"hosts.lost_after: -1s is negative; write a length of time"}},
		{"a negative lifetime", func(r *HostRules) { r.MaxLifetime = -Hour }, []string{"hosts.max_lifetime: -1h0m0s is negative; write a length of time such as 30m, or leave it out"}},
		{"a step of no time", func(r *HostRules) { r.Step.Hosts = 20 }, []string{"hosts.step: hosts and within say only together how fast hosts may be asked for; write both, as in {hosts: 20, within: 5m}, or neither"}},
		{"a step of no hosts", func(r *HostRules) { r.Step.Within = Minute }, []string{"hosts.step: hosts and within say only together"}},
		{"a negative step", func(r *HostRules) { r.Step = HostStep{Hosts: -1, Within: -1} }, []string{"hosts.step.hosts: -1 is negative; write 0", "hosts.step.within: -1ms is negative; write a length"}},
		{"a halt of less than no hosts", func(r *HostRules) { r.Halt.Hosts = -1 }, []string{"hosts.halt.hosts: -1 is negative"}},
		{"a halt of less than nothing", func(r *HostRules) { r.Halt.Percent = -1 }, []string{"hosts.halt.percent: -1 is no percentage; write 0 to 100"}},
		{"a halt of more than all", func(r *HostRules) { r.Halt.Percent = 101 }, []string{"hosts.halt.percent: 101 is no percentage"}},
		{"no halt", func(r *HostRules) { r.Halt = HostHalt{} }, nil},
		{"a limit of nothing", func(r *HostRules) { r.Limits = []HostLimit{{}} }, []string{`hosts.limits[0].name: name "" is not valid; use 1 to 63 letters`, "hosts.limits[0].templates: the limit names no template; name those that it limits together"}},
		{"a negative limit", func(r *HostRules) { r.Limits = []HostLimit{{Name: "a", Max: -1, Templates: []string{"c16"}}} }, []string{"hosts.limits[0].max: -1 is negative"}},
		{"two limits of one name", func(r *HostRules) {
			r.Limits = []HostLimit{{Name: "a", Templates: []string{"c16"}}, {Name: "a", Templates: []string{"c32"}}}
		}, []string{`hosts.limits[1].name: limit "a" is already defined; give each limit one entry`}},
		{"a template that cannot be", func(r *HostRules) { r.Limits = []HostLimit{{Name: "a", Templates: []string{"c16", "c 32"}}} }, []string{`hosts.limits[0].templates[1]: name "c 32" is not valid; use`}},
		{"a template that would count twice", func(r *HostRules) { r.Limits = []HostLimit{{Name: "a", Templates: []string{"c16", "c32", "c16"}}} }, []string{`hosts.limits[0].templates[2]: template "c16" is named twice; name each once`}},
		{"all at once", func(r *HostRules) {
			*r = HostRules{Max: -1, IdleTime: -1, MaxLifetime: -1, Step: HostStep{Hosts: -1}, Halt: HostHalt{Hosts: -1, Percent: -1}, Limits: []HostLimit{{Name: "a"}}}
		}, []string{
			"hosts.max: ", "hosts.join_within: ", "hosts.lost_after: ", "hosts.suspect_after: ", "hosts.idle_time: ", "hosts.max_lifetime: ", "hosts.step.hosts: ",
			"hosts.halt.hosts: ", "hosts.halt.percent: ", "hosts.limits[0].templates: ",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules := DefaultHostRules()
			test.change(&rules)
			got := rules.Validate(5 * Second)
			checkProblems(t, got, test.want)
			for _, p := range got {
				if !strings.HasPrefix(p.Path, "hosts.") {
					t.Errorf("%+v does not say where", p)
				}
			}
		})
	}
}
