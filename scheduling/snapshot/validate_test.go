package snapshot

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

func TestStatesThatNoClusterCanBeInAreRefusedWithPathAndRemedy(t *testing.T) {
	// Each case puts a text in place of the first such one of the full snapshot.
	tests := []struct {
		name, old, instead string
		want               []string // empty where it is taken
	}{
		{"nothing wrong", "", "", nil},
		{"no cluster", `"cluster": "east"`, `"cluster": ""`, []string{`x.json:4:14: cluster: name "" is not valid; name the cluster`}},
		{"no time", `"now": "2026-01-01T08:00:00.000Z",`, "", []string{`x.json:6:12: state.now: the time of the state is missing; write a time such as`}},
		{"a time before all", `"now": "2026-01-01T08:00:00.000Z",`, `"now": "1969-12-31T23:59:59Z",`, []string{`x.json:7:12: state.now: the time is not within the years 1970 to 9999`}},
		{"a time after all", `"taken": "2026-01-01T08:00:00.000Z"`, `"taken": "9999-12-31T23:59:59-01:00"`, []string{`x.json:5:12: taken: the time is not within`}},

		{"an unknown order", `"conservative"`, `"strict"`, []string{`x.json:8:25: state.policy.order: "strict" is no order; write fcfs, easy or conservative`, `state.policy.depth: only the order conservative has a depth`}},
		{"depth of another order", `"conservative"`, `"easy"`, []string{`x.json:8:42: state.policy.depth: only the order conservative has a depth; remove it, or write order: conservative`}},
		{"a negative depth", `"depth": 10`, `"depth": -1`, []string{`state.policy.depth: -1 is negative`}},

		{"negative cpus", `"cpus": 16`, `"cpus": -16`, []string{`x.json:10:33: state.hosts[0].cpus: -16 is negative; write 0 or a positive whole number`}},
		{"absurd memory", `"memory_mb": 64000`, `"memory_mb": 1000000000001`, []string{`state.hosts[0].memory_mb: 1000000000001 is too large to count with; write at most 1000000000000`}},
		{"negative gpus", `{"gpus": 2}`, `{"gpus": -2}`, []string{`state.hosts[0].countables.gpus: -2 is negative`}},
		{"a host's name twice", `{"name": "node2"`, `{"name": "node1"`, []string{`state.hosts[1].name: "node1" is there already as state.hosts[0]; keep one of them`}},
		{"a host's bad name", `{"name": "node2"`, `{"name": "node 2"`, []string{`state.hosts[1].name: name "node 2" is not valid`}},
		{"a countable with a name of its own meaning", `{"gpus": 2}`, `{"gpus": 2, "cpus": 7}`, []string{`state.hosts[0].countables.cpus: a countable cannot be called "cpus"`}},
		{"a feature that cannot be asked for", `"rhel9"]`, `"rhel 9"]`, []string{`x.json:10:107: state.hosts[0].features[1]: feature "rhel 9" cannot be asked for in a constraint; use 1 to 200 bytes without blanks`}},
		{"a feature twice", `"rhel9"]`, `"avx512"]`, []string{`state.hosts[0].features[1]: feature "avx512" is named twice`}},
		{"an attribute with an equals sign", `{"site": "z1"}`, `{"site=z1": "x"}`, []string{`x.json:10:143: state.hosts[0].attributes.site=z1: attribute "site=z1" has an equals sign in its name`}},
		{"a host of a template without a proper name", `"template": "small", "idle_since"`, `"template": "so small", "idle_since"`, []string{`state.hosts[1].template: name "so small" is not valid`}},

		{"an expected host of no template", `"id": "host/small-3", "template": "small"`, `"id": "host/small-3", "template": ""`, []string{`state.expected[0].template: name "" is not valid`}},
		{"a template twice", `{"name": "gpu"`, `{"name": "small"`, []string{`state.templates[1].name: "small" is there already as state.templates[0]`}},
		{"an unknown quota", `"quotas": ["all"]`, `"quotas": ["every"]`, []string{`state.templates[1].quotas[0]: there is no quota "every"; add it under quotas`}},
		{"a quota named twice", `"quotas": ["all"]`, `"quotas": ["all", "all"]`, []string{`state.templates[1].quotas[1]: quota "all" is named twice`}},
		{"a quota twice", `{"name": "cores"`, `{"name": "all"`, []string{`state.templates[0].quotas[1]: there is no quota "cores"`, `state.quotas[1].name: "all" is there already as state.quotas[0]`}},
		{"a quota of nothing", `"counts": "hosts"`, `"counts": "discs"`, []string{`state.quotas[0].counts: no template has "discs" to count; write one of hosts, cpus, memory_mb, gpus`}},
		{"a quota of a countable", `"counts": "hosts"`, `"counts": "gpus"`, nil},
		{"an absurd price", `"price": 4000000`, `"price": 10000000001`, []string{`state.templates[1].price: 10000000001 is too large to count with; write at most 10000000000`}},
		{"a hold of ages", `"minimum_hold": "1h0m0s", "published"`, `"minimum_hold": "100000h", "published"`, []string{`state.templates[1].minimum_hold: 100000h0m0s is longer than 87840h0m0s`}},
		{"a negative latency", `"latency": "3m0s"`, `"latency": "-3m0s"`, []string{`state.templates[0].latency: -3m0s is negative`}},

		{"a resource twice", `"name": "verdi"`, `"name": "vcs"`, []string{`state.resources[1].name: resource "vcs" is already defined as resources[0]`}},
		{"nothing to borrow", `"max_borrowed": 8`, `"max_borrowed": 0`, []string{`state.resources[0].elastic.max_borrowed: 0 lets nothing be borrowed`}},
		{"a lender twice", `["pool-a", "pool-b"]`, `["pool-a", "pool-a"]`, []string{`x.json:21:43: state.resources[0].elastic.lenders[1]: lender "pool-a" is named twice`}},
		{"negative use", `"in_use": 3`, `"in_use": -3`, []string{`state.resources[0].in_use: -3 is negative`}},
		{"a total below all", `"total": -1`, `"total": -1000000000001`, []string{`state.resources[1].total: -1000000000001 is too large to count with`}},
		{"an empty lot", `{"units": 1, "since"`, `{"units": 0, "since"`, []string{`state.resources[0].idle[0].units: 0 units are no lot; remove the lot`}},
		{"a loan of another resource", `"provider": "pool-a", "resource": "vcs", "units": 2`, `"provider": "pool-a", "resource": "verdi", "units": 2`, []string{`state.resources[0].loans[0].resource: the loan is one of "verdi", not of "vcs"`}},
		{"a closed loan", `"state": "borrowed"`, `"state": "returned"`, []string{`state.resources[0].loans[0].state: "returned" is not the state of an open loan`}},
		{"negative borrowed", `"borrowed": 2`, `"borrowed": -2`, []string{`state.resources[0].loans[0].borrowed: -2 is negative`}},
		{"an offer of nothing", `"provider": "pool-b", "resource": "vcs"`, `"provider": "pool-b", "resource": "zebu"`, []string{`state.offers[1].resource: there is no shared resource "zebu"`}},
		{"an offer twice", `"provider": "pool-b", "resource": "vcs"`, `"provider": "pool-a", "resource": "vcs"`, []string{`state.offers[1]: pool-a offers vcs already as state.offers[0]`}},

		{"less than nothing delivered", `"memory_mb": 62000`, `"memory_mb": -1`, []string{`state.templates[1].delivered.memory_mb: -1 is negative`}},
		{"what cannot be delivered", `"memory_mb": 62000`, `"memory_mb": 62000, "features": ["a b"]`, []string{`state.templates[1].delivered.features[0]: feature "a b" cannot be asked for`}},
		{"delivered by no host", `"misses": 2`, `"misses": 0`, []string{`state.templates[1].delivered: no host is said to have joined with it; say under misses how many did`}},
		{"misses of nothing", `"misses": 2`, `"misses": 2, "delivered": null`, []string{`state.templates[1].delivered: the key is there twice`}},
		{"misses by a template that kept its word", `"preference": -1`, `"preference": -1, "misses": 3`, []string{`state.templates[0].misses: it is not said what the 3 hosts had; say it under delivered`}},
		{"negative misses", `"misses": 2`, `"misses": -2`, []string{`state.templates[1].misses: -2 is negative`}},
		{"a negative poll interval", `"poll_interval": "5s"`, `"poll_interval": "-5s"`, []string{`state.templates[1].poll_interval: -5s is negative`}},
		{"a waiting job that is being stopped", `"user": "bob", "state": "waiting"`, `"user": "bob", "stopping": true, "state": "waiting"`, []string{`state.jobs[0].stopping: the job waits, so that it cannot be stopped; remove it`}},
		{"a quota with a long name", `"name": "cores"`, `"name": "hosts.limits.` + strings.Repeat("c", 187) + `"`, []string{`state.templates[0].quotas[1]: there is no quota "cores"`}},
		{"a quota with a longer name", `"name": "cores"`, `"name": "hosts.limits.` + strings.Repeat("c", 188) + `"`, []string{`state.templates[0].quotas[1]: there is no quota "cores"`, `state.quotas[1].name: name "hosts.limits.c`}},

		{"a job twice", `"id": 22`, `"id": 21`, []string{`state.jobs[2].id: job 21 is there already as state.jobs[1]; keep one of them`}},
		{"a job that runs", `"id": 22`, `"id": 12`, []string{`state.jobs[2].id: job 12 runs already as state.running[1]`}},
		{"job 0", `"id": 22`, `"id": 0`, []string{`state.jobs[2].id: 0 is no job id; number jobs from 1`}},
		{"a running job twice", `"id": 12`, `"id": 11`, []string{`state.running[1].id: job 11 is there already as state.running[0]`}},
		{"a waiting job that is done", `"user": "bob", "state": "waiting"`, `"user": "bob", "state": "done"`, []string{`state.jobs[0].state: the job is "done" here; write waiting`}},
		{"a bad constraint", `avx512 & (site=z1`, `avx512 && (site=z1`, []string{`state.jobs[1].constraint: constraint "avx512 && (site=z1 | !rhel8)" has '&' at column 9, where a feature, '!' or '(' should be; write features joined by`}},
		{"a long constraint", `avx512 & (site=z1`, strings.Repeat("!", 1001) + `(site=z1`, []string{`state.jobs[1].constraint: the constraint has 1019 bytes; write at most 1000`}},
		{"negative nodes", `"nodes": 2`, `"nodes": -2`, []string{`state.running[1].nodes: -2 is negative`}},
		{"absurd nodes", `"nodes": 2`, `"nodes": 1000001`, []string{`state.running[1].nodes: 1000001 is too large to count with`, `state.running[1].hosts: the job runs on 2 hosts and asks for 1000001`}},
		{"after no job", `"after": [11, 5]`, `"after": [11, 11, 0]`, []string{`state.jobs[1].after[1]: job 11 is named twice`, `state.jobs[1].after[2]: 0 is no job id`}},
		{"after itself", `"after": [11, 5]`, `"after": [21]`, []string{`state.jobs[1].after: the job comes after itself`}},
		{"more begun than there are", `"begun": 2`, `"begun": 21`, []string{`state.reservations[0].element: `, `state.jobs[0].begun: 21 elements of an array of 20 have begun, so none waits`}},
		{"all begun", `"begun": 2`, `"begun": 20`, []string{`state.reservations[0].element: `, `state.jobs[0].begun: 20 elements of an array of 20 have begun, so none waits`}},
		{"fewer begun than run", `"begun": 2`, `"begun": 1`, []string{`state.jobs[0].id: job 13 runs already as state.running[2]`}},
		{"an array of another size", `"array": 20, "user": "bob", "state": "waiting"`, `"array": 30, "user": "bob", "state": "waiting"`, []string{`state.jobs[0].id: job 13 runs already as state.running[2]`}},
		{"an element that there is not", `"element": 2`, `"element": 21`, []string{`state.running[2].element: 21 is no element of an array of 20`, `state.jobs[0].id: `}},
		{"an element of no array", `"priority": 0, "array": 20`, `"priority": 0`, []string{`state.running[2].element: the job is no array`, `state.jobs[0].id: `}},
		{"an alternative that there is not", `"alternative": 1`, `"alternative": 3`, []string{`state.running[0].alternative: 3 is none of the job's 2 alternatives`}},
		{"no alternative", `"alternative": 1`, `"alternative": 0`, []string{`state.running[0].alternative: 0 is none of the job's 2 alternatives`}},
		{"an alternative of none", `"element": 2`, `"element": 2, "alternative": 1`, []string{`state.running[2].alternative: 1 is none of the job's 0 alternatives`}},
		{"on an unknown host", `"state": "running", "host": "node1"`, `"state": "running", "host": "node9"`, []string{`state.running[0].host: there is no host "node9"`}},
		{"on an unknown second host", `["node3", "node1"]`, `["node3", "node9"]`, []string{`state.running[1].hosts[1]: there is no host "node9"`}},
		{"on one host twice", `["node3", "node1"]`, `["node3", "node3"]`, []string{`state.running[1].hosts[1]: host "node3" is named twice`}},
		{"on another first host", `["node3", "node1"]`, `["node1", "node3"]`, []string{`state.running[1].host: host is "node3", and the first of hosts is "node1"`}},
		{"on too few hosts", `["node3", "node1"]`, `["node3"]`, []string{`state.running[1].hosts: the job runs on 1 hosts and asks for 2`}},
		{"running on an unknown token", `"tokens": {"vcs": 1}, "alternatives"`, `"tokens": {"vsc": 1}, "alternatives"`, []string{`x.json:38:27: state.running[0].tokens.vsc: there is no shared resource "vsc"`}},
		{"a negative time limit", `"time_limit": "2h0m0s"`, `"time_limit": "-2h0m0s"`, []string{`state.running[0].time_limit: -2h0m0s is negative`}},
		{"any priority", `"priority": -3`, `"priority": -9223372036854775807`, nil},

		{"a reservation of no job", `{"job": 23,`, `{"job": 12,`, []string{`x.json:52:15: state.reservations[1].job: job 12 does not wait; name one that is under jobs, or remove the reservation`}},
		{"two reservations", `{"job": 23, "alternative": 1,`, `{"job": 13, "element": 3,`, []string{`state.reservations[1].job: job 13 has a reservation already as state.reservations[0]`}},
		{"a reservation of a running element", `"element": 3`, `"element": 2`, []string{`state.reservations[0].element: 2 is no element of the job that waits; number the elements of an array from 3`}},
		{"a reservation of no element", `"element": 3`, `"element": 21`, []string{`state.reservations[0].element: 21 is no element of the job that waits`}},
		{"a reservation of an element of no array", `{"job": 23,`, `{"job": 23, "element": 1,`, []string{`state.reservations[1].element: 1 is no element of the job that waits`}},
		{"a reservation of no alternative", `"alternative": 1, "at"`, `"alternative": 3, "at"`, []string{`state.reservations[1].alternative: 3 is none of the job's 2 alternatives`}},
		{"a reservation of no choice", `"alternative": 1, "at"`, `"at"`, []string{`state.reservations[1].alternative: 0 is none of the job's 2 alternatives`}},
		{"a reservation on no host", `"hosts": ["node3"]}`, `"hosts": []}`, []string{`state.reservations[1].hosts: 0 hosts are reserved for a job that asks for 1`}},
		{"a reservation on an unknown host", `"hosts": ["node3"]}`, `"hosts": ["node9"]}`, []string{`state.reservations[1].hosts[0]: there is no host "node9"`}},
		{"a reservation on a host twice", `"hosts": ["node3"]}`, `"hosts": ["node3", "node3"]}`, []string{`state.reservations[1].hosts: 2 hosts are reserved`, `state.reservations[1].hosts[1]: host "node3" is named twice`}},
		{"a threshold of all", `{"queue": "night", "jobs": 3`, `{"jobs": 3`, []string{`state.thresholds[0]: the threshold has neither a queue nor a resource`}},
		{"a threshold of both", `{"queue": "night", "jobs": 3`, `{"queue": "night", "resource": "vcs", "jobs": 3`, []string{`state.thresholds[0]: the threshold has a queue and a resource`}},
		{"a threshold of no jobs", `"jobs": 3, "wait"`, `"jobs": 0, "wait"`, []string{`state.thresholds[0].jobs: 0 jobs keep nothing back; write how many jobs must have waited, at least 1`}},
		{"a threshold of nothing", `{"resource": "vcs"`, `{"resource": "zebu"`, []string{`state.thresholds[1].resource: there is no shared resource "zebu"`}},
	}
	whole := file(t, "full.json")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if strings.Count(whole, test.old) == 0 {
				t.Fatalf("%q is not in the snapshot", test.old)
			}
			text := strings.Replace(whole, test.old, test.instead, 1)
			if len(test.want) == 0 {
				taken(t, text)
				return
			}
			r := refused(t, text)
			for i, want := range test.want {
				if i >= len(r.Faults) || !strings.Contains(r.Faults[i], want) || strings.Count(r.Faults[i], "; ") < 1 {
					t.Fatalf("got\n%q, want\n%q", r.Faults, test.want)
				}
			}
			if len(r.Faults) != len(test.want) {
				t.Errorf("got\n%q, want\n%q", r.Faults, test.want)
			}
		})
	}
}

func TestTheJobsOfAStateAskForNoMoreThanCanBeSummed(t *testing.T) {
	s := taken(t, file(t, "small.json"))
	s.State.Jobs[0].Nodes, s.State.Jobs[0].Array = 1_000_000, 100
	if ps := Validate(s.State); len(ps) != 0 {
		t.Errorf("got %v", ps)
	}
	s.State.Jobs[0].Array = 101
	if ps := Validate(s.State); len(ps) != 1 || ps[0].Path != "state.jobs[0]" || !strings.Contains(ps[0].What, "more than 100000000 hosts together") {
		t.Errorf("got %v", ps)
	}
}

func TestSumsThatWouldNotBeWholeNumbersAreRefused(t *testing.T) {
	tests := []struct {
		name, want string
		change     func(*scheduling.Input)
	}{
		{"sizes", "state.hosts[0].memory_mb", func(in *scheduling.Input) { in.Hosts[0].MemoryMB = 1_000_000_000_000 }},
		{"needs", "state.jobs[1].countables.gpus", func(in *scheduling.Input) { in.Jobs[1].Countables["gpus"] = 1_000_000_000_000 }},
		{"tokens", "state.jobs[1].tokens.vcs", func(in *scheduling.Input) {
			in.Jobs[1].Tokens["vcs"], in.Offers[0].Price, in.Offers[1].Price = 1_000_000_000_000, 0, 0
		}},
		{"prices of hosts", "state.templates[0].price", func(in *scheduling.Input) { in.Templates[0].Price, in.Templates[0].BillingStep = mostPrice, longest }},
		{"prices of tokens", "state.offers[1].price", func(in *scheduling.Input) { in.Offers[1].Price, in.Offers[0].MinimumHold = mostPrice, longest }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := taken(t, file(t, "full.json")).State
			test.change(&in)
			if ps := Validate(in); len(ps) != 0 {
				t.Errorf("few jobs: got %v", ps)
			}
			in.Jobs[0].Array = 9_000_000
			in.Running[2].Array = 9_000_000
			if ps := Validate(in); len(ps) != 1 || ps[0].Path != test.want || !strings.Contains(ps[0].What, "too large for sums over jobs that ask for 9000001 hosts together") {
				t.Errorf("many jobs: got %v, want one at %s", ps, test.want)
			}
		})
	}
}

func TestACountableMoreThanThereCanBeIsRefused(t *testing.T) {
	s := taken(t, file(t, "small.json"))
	for i := range cluster.MostCountables + 1 {
		s.State.Hosts = append(s.State.Hosts, scheduling.Host{Name: fmt.Sprintf("h%d", i), Capacity: cluster.Capacity{Countables: map[string]int64{fmt.Sprintf("c%d", i): 1}}})
	}
	if ps := Validate(s.State); len(ps) != 1 || !strings.Contains(ps[0].What, "65 different countables") {
		t.Errorf("got %v", ps)
	}
}

// TestEveryNumberOfAStateIsBounded sets each number of a state, one by one, to
// what must be refused.
func TestEveryNumberOfAStateIsBounded(t *testing.T) {
	text := file(t, "full.json")
	sample := taken(t, text)
	n := len(numbers(reflect.ValueOf(&sample.State).Elem()))
	if n < 150 {
		t.Fatalf("the state has %d numbers; too few to show anything", n)
	}
	for i := range n {
		for _, bad := range []int64{math.MinInt64, math.MaxInt64} {
			s := taken(t, text)
			number := numbers(reflect.ValueOf(&s.State).Elem())[i]
			number.SetInt(bad)
			ps := Validate(s.State)
			if len(ps) == 0 && !anyNumber(&s.State, number) {
				t.Errorf("number %d of the state may be %d", i, bad)
			}
		}
	}
}

// anyNumber tells whether a number is one of those that are only compared.
func anyNumber(in *scheduling.Input, number reflect.Value) bool {
	free := []any{}
	for _, jobs := range [][]cluster.Job{in.Running, in.Jobs} {
		for i := range jobs {
			free = append(free, &jobs[i].Priority, &jobs[i].ExitCode)
		}
	}
	for i := range in.Templates {
		free = append(free, &in.Templates[i].Preference)
	}
	for _, f := range free {
		if f == number.Addr().Interface() {
			return true
		}
	}
	return false
}

// numbers answers every number in v that can be set.
func numbers(v reflect.Value) (found []reflect.Value) {
	switch v.Kind() {
	case reflect.Int64:
		return []reflect.Value{v}
	case reflect.Pointer:
		if !v.IsNil() {
			return numbers(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			found = append(found, numbers(v.Field(i))...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			found = append(found, numbers(v.Index(i))...)
		}
	}
	return found
}
