package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// checkProblems compares problems with "path: part of what and remedy" lines.
func checkProblems(t *testing.T, got Problems, want []string) {
	t.Helper()
	for i, w := range want {
		path, text, _ := strings.Cut(w, ": ")
		if i >= len(got) || got[i].Path != path || !strings.Contains(got[i].String(), text) {
			t.Fatalf("got %q, want %q", got, want)
		}
		if got[i].What == "" || got[i].Remedy == "" {
			t.Errorf("%+v says too little", got[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResourcesAreRefusedWithPlaceAndRemedy(t *testing.T) {
	elastic := func(change func(*Elastic)) *Elastic {
		e := &Elastic{Lenders: []string{"pool-a"}, MaxBorrowed: 8, IdleTime: Minute}
		change(e)
		return e
	}
	tests := []struct {
		name string
		in   SharedResource
		want []string
	}{
		{"a good one", SharedResource{Name: "vcs", Owned: 4, KeepBack: 1, UnitWeight: 1000, Elastic: elastic(func(*Elastic) {})}, nil},
		{"nothing but a name", SharedResource{Name: "vcs"}, nil},
		{"the least", SharedResource{Name: "vcs", Elastic: &Elastic{Lenders: []string{"pool-b"}, MaxBorrowed: 1, IdleTime: 5 * Second}}, nil},
		{"the most", SharedResource{Name: "vcs", Owned: 1_000_000_000_000, UnitWeight: 1_000_000}, nil},
		{"no name", SharedResource{}, []string{`resources[0].name: name "" is not valid; use 1 to 63 letters`}},
		{"a name with a blank", SharedResource{Name: "v cs"}, []string{`resources[0].name: name "v cs" is not valid`}},
		{"a long name", SharedResource{Name: strings.Repeat("v", 64)}, []string{"resources[0].name: is not valid"}},
		{"owned", SharedResource{Name: "vcs", Owned: -1}, []string{"resources[0].owned: -1 is negative; write 0 or a positive whole number"}},
		{"too many", SharedResource{Name: "vcs", Owned: 1<<63 - 1}, []string{"resources[0].owned: 9223372036854775807 is too large to count with; write at most 1000000000000"}},
		{"keep_back", SharedResource{Name: "vcs", KeepBack: -1}, []string{"resources[0].keep_back: -1 is negative"}},
		{"unit_weight", SharedResource{Name: "vcs", UnitWeight: -1}, []string{"resources[0].unit_weight: -1 is negative"}},
		{"heavy", SharedResource{Name: "vcs", UnitWeight: 1_000_001}, []string{"resources[0].unit_weight: write at most 1000000"}},
		{"no lender", SharedResource{Name: "vcs", Elastic: elastic(func(e *Elastic) { e.Lenders = nil })}, []string{"resources[0].elastic.lenders: there is no lender; name at least one provider, or remove the elastic section"}},
		{"an unknown lender", SharedResource{Name: "vcs", Elastic: elastic(func(e *Elastic) { e.Lenders = []string{"pool-a", "pool-x"} })}, []string{`resources[0].elastic.lenders[1]: lender "pool-x" is not a provider; add it under providers`}},
		{"a lender twice", SharedResource{Name: "vcs", Elastic: elastic(func(e *Elastic) { e.Lenders = []string{"pool-a", "pool-b", "pool-a"} })}, []string{`resources[0].elastic.lenders[2]: lender "pool-a" is named twice; name each lender once`}},
		{"nothing to borrow", SharedResource{Name: "vcs", Elastic: elastic(func(e *Elastic) { e.MaxBorrowed = 0 })}, []string{"resources[0].elastic.max_borrowed: 0 lets nothing be borrowed; write a positive whole number"}},
		{"less than nothing to borrow", SharedResource{Name: "vcs", Elastic: elastic(func(e *Elastic) { e.MaxBorrowed = -8 })}, []string{"resources[0].elastic.max_borrowed: -8 lets nothing be borrowed"}},
		{"too much to borrow", SharedResource{Name: "vcs", Elastic: elastic(func(e *Elastic) { e.MaxBorrowed = 1 << 62 })}, []string{"resources[0].elastic.max_borrowed: is too large to count with"}},
		{"short idle time", SharedResource{Name: "vcs", Elastic: elastic(func(e *Elastic) { e.IdleTime = 4 * Second })}, []string{"resources[0].elastic.idle_time: 4s is shorter than the session interval 5s, so no session could see the units used again; write at least 5s"}},
		{"hold", SharedResource{Name: "vcs", Elastic: elastic(func(e *Elastic) { e.MinimumHold = -1 })}, []string{"resources[0].elastic.minimum_hold: -1 is negative"}},
		{"all at once", SharedResource{Owned: -1, Elastic: &Elastic{IdleTime: Minute}}, []string{
			"resources[0].name: is not valid", "resources[0].owned: is negative",
			"resources[0].elastic.lenders: there is no lender", "resources[0].elastic.max_borrowed: lets nothing be borrowed",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkProblems(t, ValidateResources([]SharedResource{test.in}, []string{"pool-a", "pool-b"}, 5*Second), test.want)
		})
	}
}

func TestAResourceThatIsThereTwiceIsRefused(t *testing.T) {
	got := ValidateResources([]SharedResource{{Name: "vcs"}, {Name: "verdi"}, {Name: "vcs"}}, nil, 5*Second)
	checkProblems(t, got, []string{`resources[2].name: resource "vcs" is already defined as resources[0]; give each resource one entry`})
}

func TestJobsAreRefusedWithPlaceAndRemedy(t *testing.T) {
	hosts := []Host{{Name: "node1", Capacity: Capacity{CPUs: 8, MemoryMB: 1000}}, {Name: "node2", Capacity: Capacity{CPUs: 2, MemoryMB: 4000}}}
	resources := []SharedResource{
		{Name: "vcs", Owned: 4, KeepBack: 1, Elastic: &Elastic{MaxBorrowed: 8}},
		{Name: "verdi", Owned: 2},
		{Name: "spare", Owned: 2, KeepBack: 3},
	}
	hosts = append(hosts, Host{
		Name: "node3", Capacity: Capacity{CPUs: 4, MemoryMB: 500, Countables: map[string]int64{"gpus": 2}, Features: []string{"avx512"}, Attributes: map[string]string{"site": "z1"}},
	})
	run := []string{"make", "sim"}
	tests := []struct {
		name    string
		in      JobSpec
		noHosts bool
		want    []string
	}{
		{name: "a good one", in: JobSpec{Command: run, CPUs: 8, MemoryMB: 1000, Tokens: map[string]int64{"vcs": 11, "verdi": 2}}},
		{name: "one for the other host", in: JobSpec{Command: run, CPUs: 2, MemoryMB: 4000}},
		{name: "no command", in: JobSpec{CPUs: 1}, want: []string{"command: there is no command; say what to run"}},
		{name: "an empty command", in: JobSpec{Command: []string{""}, CPUs: 1}, want: []string{"command: there is no command"}},
		{name: "no cpus", in: JobSpec{Command: run}, want: []string{"cpus: 0 cpus cannot run a job; ask for at least 1"}},
		{name: "memory", in: JobSpec{Command: run, CPUs: 1, MemoryMB: -1}, want: []string{"memory_mb: -1 is negative"}},
		{name: "time limit", in: JobSpec{Command: run, CPUs: 1, TimeLimit: -5 * Minute}, want: []string{"time_limit: -5m0s is negative; write a length of time such as 30m, or leave it out"}},
		{name: "no host has as many cpus", in: JobSpec{Command: run, CPUs: 9}, want: []string{"cpus: no host can ever run 9 cpus with 0 MB; the largest have 8 cpus and 4000 MB; ask for what one host has"}},
		{name: "no host has as much memory", in: JobSpec{Command: run, CPUs: 1, MemoryMB: 999_999_999}, want: []string{"memory_mb: no host can ever give 999999999 MB; the most on any is 4000 MB; ask for what one host has"}},
		{name: "no host has both", in: JobSpec{Command: run, CPUs: 4, MemoryMB: 2000}, want: []string{"cpus: no host can ever run 4 cpus with 2000 MB"}},
		{name: "hosts may still join", in: JobSpec{Command: run, CPUs: 64}, noHosts: true},
		{name: "an unknown resource", in: JobSpec{Command: run, CPUs: 1, Tokens: map[string]int64{"vsc": 1}}, want: []string{"tokens.vsc: there is no shared resource \"vsc\"; use one that `xce-elastic status` lists"}},
		{name: "no tokens", in: JobSpec{Command: run, CPUs: 1, Tokens: map[string]int64{"vcs": 0}}, want: []string{"tokens.vcs: 0 units cannot be taken; ask for at least 1"}},
		{name: "more than the limits allow", in: JobSpec{Command: run, CPUs: 1, Tokens: map[string]int64{"vcs": 12}}, want: []string{"tokens.vcs: 12 units can never be had: the limit is 11 (owned 4 + max borrowed 8 - kept back 1); ask for fewer, or raise the limit"}},
		{name: "more than is owned", in: JobSpec{Command: run, CPUs: 1, Tokens: map[string]int64{"verdi": 3}}, want: []string{"tokens.verdi: the limit is 2 (owned 2 + max borrowed 0 - kept back 0)"}},
		{name: "all is kept back", in: JobSpec{Command: run, CPUs: 1, Tokens: map[string]int64{"spare": 1}}, want: []string{"tokens.spare: the limit is 0"}},
		{name: "tokens beside a choice of them", in: JobSpec{Command: run, CPUs: 1, Tokens: map[string]int64{"vcs": 10}, Alternatives: []map[string]int64{{"verdi": 2}, {"vcs": 1}}}},
		{name: "what one host has", in: JobSpec{Command: run, CPUs: 4, Countables: map[string]int64{"gpus": 2}, Constraint: "avx512 & site=z1 & !old", Exclusive: true, Nodes: 1, After: []int64{3, 1}, NotBefore: 5, Array: 3, Queue: "night"}},
		{name: "the constraint is met elsewhere", in: JobSpec{Command: run, CPUs: 8, Constraint: "!avx512"}},
		{name: "more of a countable than any has", in: JobSpec{Command: run, CPUs: 1, Countables: map[string]int64{"gpus": 3}}, want: []string{"countables.gpus: no host can ever give 3 gpus; the most on any is 2; ask for what one host has"}},
		{name: "a countable that none has", in: JobSpec{Command: run, CPUs: 1, Countables: map[string]int64{"disks": 1}}, want: []string{"countables.disks: no host can ever give 1 disks; the most on any is 0"}},
		{name: "none of a countable that none has", in: JobSpec{Command: run, CPUs: 1, Countables: map[string]int64{"disks": 0}}},
		{name: "a feature that none has", in: JobSpec{Command: run, CPUs: 1, Constraint: "avx2 | site=z2"}, want: []string{`constraint: no host meets "avx2 | site=z2"; the features of hosts are avx512, site=z1; ask for what one host has`}},
		{name: "not on one host", in: JobSpec{Command: run, CPUs: 8, Countables: map[string]int64{"gpus": 1}, Constraint: "avx512"}, want: []string{`cpus: no one host has all of it: 8 cpus with 0 MB, 1 gpus, the constraint "avx512"; ask for what one host has`}},
		{name: "no constraint", in: JobSpec{Command: run, CPUs: 1, Constraint: "a b"}, want: []string{`constraint: constraint "a b" has 'b' at column 3, where an operator or the end should be; write features joined by`}},
		{name: "a long constraint", in: JobSpec{Command: run, CPUs: 1, Constraint: strings.Repeat("a", 1001)}, want: []string{"constraint: the constraint has 1001 bytes; write at most 1000"}},
		{name: "a queue", in: JobSpec{Command: run, CPUs: 1, Queue: "late night"}, want: []string{`queue: name "late night" is not valid`}},
		{name: "nodes", in: JobSpec{Command: run, CPUs: 1, Nodes: -1}, want: []string{"nodes: -1 is negative"}},
		{name: "very many nodes", in: JobSpec{Command: run, CPUs: 1, Nodes: 1_000_001}, want: []string{"nodes: 1000001 is too large to count with; write at most 1000000"}},
		{name: "an array", in: JobSpec{Command: run, CPUs: 1, Array: -1}, want: []string{"array: -1 is negative"}},
		{name: "a very long array", in: JobSpec{Command: run, CPUs: 1, Array: 10_000_001}, want: []string{"array: 10000001 is too large to count with"}},
		{name: "absurd cpus", in: JobSpec{Command: run, CPUs: 1<<63 - 1}, want: []string{"cpus: 9223372036854775807 is too large to count with"}},
		{name: "countables", in: JobSpec{Command: run, CPUs: 1, Countables: map[string]int64{"gpus": -1, "hosts": 1, "a b": 1}}, want: []string{`countables.a b: name "a b" is not valid`, "countables.gpus: -1 is negative", `countables.hosts: a countable cannot be called "hosts"`}},
		{name: "after", in: JobSpec{Command: run, CPUs: 1, After: []int64{2, 0, 2}}, want: []string{"after[1]: 0 is no job id; name jobs by their numbers, from 1", "after[2]: job 2 is named twice"}},
		{name: "not before", in: JobSpec{Command: run, CPUs: 1, NotBefore: -1}, want: []string{"not_before: the time is before 1970; write a time such as"}},
		{name: "an endless time limit", in: JobSpec{Command: run, CPUs: 1, TimeLimit: 100_000 * Hour}, want: []string{"time_limit: 100000h0m0s is longer than 87840h0m0s; write less, or leave it out"}},
		{name: "an empty alternative", in: JobSpec{Command: run, CPUs: 1, Alternatives: []map[string]int64{{"vcs": 1}, {}}}, want: []string{"alternatives[1]: the alternative has no tokens"}},
		{name: "an alternative of nothing", in: JobSpec{Command: run, CPUs: 1, Alternatives: []map[string]int64{{"vsc": 1, "vcs": 0}}}, want: []string{"alternatives[0].vcs: 0 units cannot be taken", `alternatives[0].vsc: there is no shared resource "vsc"`}},
		{name: "an alternative on top of too many", in: JobSpec{Command: run, CPUs: 1, Tokens: map[string]int64{"vcs": 10}, Alternatives: []map[string]int64{{"vcs": 2}}}, want: []string{"alternatives[0].vcs: 2 units beside 10 in tokens can never be had: the limit is 11"}},
		{name: "very many alternatives", in: JobSpec{Command: run, CPUs: 1, Alternatives: slices.Repeat([]map[string]int64{{"vcs": 1}}, 65)}, want: []string{"alternatives: there are 65 alternatives; give at most 64"}},
		{name: "all at once, in order", in: JobSpec{Tokens: map[string]int64{"z": 1, "a": 1}}, want: []string{"command: no command", "cpus: cannot run", "tokens.a: no shared resource", "tokens.z: no shared resource"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			there := hosts
			if test.noHosts {
				there = nil
			}
			checkProblems(t, test.in.Validate(resources, there), test.want)
		})
	}
}

func TestProblemsAreAnErrorOnlyWhereThereAreSome(t *testing.T) {
	if err := (Problems{}).Err(); err != nil {
		t.Errorf("no problem is %v", err)
	}
	err := Problems{{"a", "is bad", "mend it"}, {"b", "is worse", "mend it too"}}.Err()
	var ps Problems
	if want := "a: is bad; mend it\nb: is worse; mend it too"; err.Error() != want || !errors.As(err, &ps) || len(ps) != 2 {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestNamesAreFitForIdsFilesAndTables(t *testing.T) {
	for name, want := range map[string]bool{
		"vcs": true, "9x": true, "A.b_c-d": true, strings.Repeat("n", 63): true,
		"": false, ".hidden": false, "-flag": false, "a/b": false, "a b": false, "a\n": false, "é": false, strings.Repeat("n", 64): false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("%q is valid: %t", name, got)
		}
	}
}
