package main

import (
	"reflect"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
)

func TestAJobIsSubmittedAsTheFlagsSay(t *testing.T) {
	c := live(t)
	prints(t, []string{"submit", "--", "true"}, `job 1 is submitted`)
	prints(t, []string{
		"submit", "--token", "vcs=2", "--or-token", "vcs=1", "--or-token", "vcs=3", "--countable", "gpus=1", "--exclusive", "--constraint", "avx512|old",
		"--feature", "site=z1", "--feature", "avx512", "--queue", "night", "--after", "1", "--not-before", "2026-01-31T08:00:00Z", "--time-limit", "30m",
		"--cpus", "2", "--memory", "100", "--priority", "-3", "--directory", "/tmp", "--name", "chip", "--", "simulate", "--seed", "7",
	}, `job 2 is submitted`)
	jobs, err := c.Service.Jobs(t.Context(), "")
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	want := cluster.JobSpec{
		Name: "chip", Command: []string{"simulate", "--seed", "7"}, Directory: "/tmp", Queue: "night", CPUs: 2, MemoryMB: 100,
		Countables: map[string]int64{"gpus": 1}, Exclusive: true, Constraint: "(avx512|old) & site=z1 & avx512", Tokens: map[string]int64{"vcs": 2},
		Alternatives: []map[string]int64{{"vcs": 1}, {"vcs": 3}}, Priority: -3, TimeLimit: 30 * cluster.Minute, After: []int64{1}, NotBefore: 1_769_846_400_000,
	}
	if !reflect.DeepEqual(jobs[1].JobSpec, want) {
		t.Errorf("submitted is\n%+v, want\n%+v", jobs[1].JobSpec, want)
	}
	prints(t, []string{"jobs"}, `^JOB +NAME +STATE +USER +QUEUE +TOKENS`, `1 +- +waiting +you +- +-`, `2 +chip +waiting +you +night +vcs=2 and vcs=1 or vcs=3 +2`)
	prints(t, []string{"submit", "--not-before", "1h", "--feature", "avx512", "--", "true"}, `job 3`)
	c.Session()
	prints(t, []string{"jobs"}, `1 +- +running`)
	if jobs, _ = c.Service.Jobs(t.Context(), cluster.JobWaiting); len(jobs) != 2 || jobs[1].Constraint != "avx512" || jobs[1].NotBefore <= cluster.TimeOf(time.Now()) {
		t.Errorf("waiting are %+v", jobs)
	}
}

func TestAJobThatCannotBeIsRefusedByTheFlag(t *testing.T) {
	live(t)
	for want, args := range map[string][]string{
		`^--countable gpus: write NAME=COUNT with a whole number of at least 1, as in gpus=1`: {"--countable", "gpus"},
		`^--countable gpus=0: write NAME=COUNT`:                                               {"--countable", "gpus=0"},
		`^--or-token =1: write RESOURCE=UNITS`:                                                {"--or-token", "vcs=1,=1"},
		`^--or-token vcs=2: vcs is asked for twice`:                                           {"--or-token", "vcs=1,vcs=2"},
		`^--token vcs=2: vcs is asked for twice; ask once for the sum`:                        {"--token", "vcs=1", "--token", "vcs=2"},
		`^--constraint: constraint "a &" ends where .*; write features joined by`:             {"--constraint", "a &"},
		`^--feature: feature "a \| b" cannot be asked for`:                                    {"--feature", "a | b"},
		`^--not-before soon: write a time such as 2026-01-31T08:00:00Z, or a length of time`:  {"--not-before", "soon"},
		`^--not-before -1h: write a time`:                                                     {"--not-before", "-1h"},
		`^--time-limit: duration "30" is not .* 4h\); write a length of time such as 30m`:     {"--time-limit", "30"},
		`^--time-limit: duration "9999999h" is too long; write`:                               {"--time-limit", "9999999h"},
		`^--time-limit -5m: it is negative; write a length of time such as 30m`:               {"--time-limit", "-5m"},
		`^--after x: write job numbers, as in 17,18`:                                          {"--after", "x"},
		`^--cpus x: write a whole number`:                                                     {"--cpus", "x"},
		`^--exclusive x: write true or false`:                                                 {"--exclusive=x"},
		`memory_mb: no host can ever give 999999999 MB; the most on any is 1000 MB`:           {"--memory", "999999999"},
		`after\[0\]: there is no job 9`:                                                       {"--after", "9"},
		`constraint: no host meets "avx2"; the features of hosts are avx512, site=z1`:         {"--feature", "avx2"},
	} {
		refuses(t, append(append([]string{"submit"}, args...), "--", "true"), want)
	}
}

func TestTokensOfAJobAreShownAsItAsksOrTook(t *testing.T) {
	choice := []map[string]int64{{"vcs": 1, "a": 2}, {"zebu": 1}}
	for want, job := range map[string]cluster.Job{
		"-":                             {},
		"a=1,vcs=2":                     {JobSpec: cluster.JobSpec{Tokens: map[string]int64{"vcs": 2, "a": 1}}},
		"a=2,vcs=1 or zebu=1":           {JobSpec: cluster.JobSpec{Alternatives: choice}},
		"vcs=2 and a=2,vcs=1 or zebu=1": {JobSpec: cluster.JobSpec{Tokens: map[string]int64{"vcs": 2}, Alternatives: choice}},
		"a=2,vcs=3":                     {Alternative: 1, JobSpec: cluster.JobSpec{Tokens: map[string]int64{"vcs": 2}, Alternatives: choice}},
	} {
		if got := tokenList(job); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDemandForHostsIsNamedByItsTemplate(t *testing.T) {
	for want, d := range map[string]cluster.Demand{
		"hosts of small": {Template: "small", Provider: "cloud", Units: 2},
		"host of small":  {Template: "small", Provider: "cloud", Units: 1},
		"vcs":            {Resource: "vcs", Units: 1},
	} {
		if got := d.What(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
