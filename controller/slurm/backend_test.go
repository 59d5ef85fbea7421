package slurm

import (
	"strings"
	"testing"
)

func TestOptionsCheck(t *testing.T) {
	good := Options{
		Licences: map[string]string{"vcs": "vcs@pool", "sim": "sim"}, Reservation: "ours", ReservationUser: "nobody",
		Hosts: map[string]HostOptions{"a": {}, "b": {Kind: Dynamic}, "c": {Kind: Cloud, Nodes: "c[1-4]"}, "f": {Kind: Future, Nodes: "f1"}},
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	if err := (Options{}).Check(); err != nil {
		t.Error(err)
	}
	for want, o := range map[string]Options{
		`slurm.licences.a: "x:3" is no name`:                {Licences: map[string]string{"a": "x:3"}},
		`slurm.licences.a: "x,y" is no name`:                {Licences: map[string]string{"a": "x,y"}},
		"slurm.licences.b: x is the licence of a":           {Licences: map[string]string{"a": "x", "b": "x"}},
		"slurm.reservation: ":                               {Reservation: "a b"},
		"slurm.reservation_user: ":                          {ReservationUser: "a,b"},
		"slurm.templates[a].kind: ":                         {Hosts: map[string]HostOptions{"a": {Kind: "static"}}},
		"slurm.templates[a].nodes: the hosts of kind cloud": {Hosts: map[string]HostOptions{"a": {Nodes: "n1"}}},
		"slurm.templates[b].nodes: the hosts of kind":       {Hosts: map[string]HostOptions{"b": {Kind: Future}}},
		"slurm.templates[a].nodes: host list":               {Hosts: map[string]HostOptions{"a": {Kind: Cloud, Nodes: "n[1"}}},
		"slurm.templates[b].nodes: n2 is of template a":     {Hosts: map[string]HostOptions{"a": {Kind: Cloud, Nodes: "n[1-2]"}, "b": {Kind: Future, Nodes: "n[2-3]"}}},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
