package synthetic

import (
	"errors"
	"math"
	"regexp"
	"testing"

	"xce.internal/elastic/cluster"
)

func TestWrongOptionsAreRefusedByNameWithARemedy(t *testing.T) {
	whole := func(change func(*LublinClass)) []LublinClass {
		c := LublinWhole(128)
		change(&c)
		return []LublinClass{c}
	}
	for want, o := range map[string]Options{
		`^kind: there is none; write one of lublin, eda, poisson, long-queue$`: {},
		`^kind: there is no "lubin"; write one of`:                             {Kind: "lubin"},
		`^jobs: -1 is not possible; write a whole number from 0`:               {Kind: Lublin, Jobs: -1},
		`^span: -1s is not possible`:                                           {Kind: Lublin, Span: -cluster.Second},
		`^start: the time is before 1970 or after 2200`:                        {Kind: Lublin, Start: -1},
		`^load: NaN is not possible`:                                           {Kind: Lublin, Load: math.NaN()},
		`^load: jobs and span are given too, and make it; give two of`:         {Kind: Lublin, Load: 0.5, Jobs: 1, Span: 1},
		`^load: the rate is given too`:                                         {Kind: Poisson, Load: 0.5, Rate: 1},
		`^rate: jobs and span are given too`:                                   {Kind: Poisson, Rate: 1, Jobs: 1, Span: 1},
		`^rate: kind lublin does not heed it; leave it out; it is for poisson`: {Kind: Lublin, Rate: 1},
		`^processors: there are none, and load is a share of them`:             {Kind: EDA, Load: 0.5},
		`^queue: kind eda does not heed it`:                                    {Kind: EDA, Queues: []Queue{{"a", 0}}},
		`^together: kind long-queue does not heed it`:                          {Kind: LongQueue, Together: 3},
		`^profile: kind lublin does not heed it`:                               {Kind: Lublin, Profile: builtIn()},
		`^classes: kind poisson does not heed it`:                              {Kind: Poisson, Classes: []LublinClass{LublinBatch(8)}},
		`^rhythm: there is no "month"; write one of even, day, week`:           {Kind: Lublin, Rhythm: "month"},
		`^limit-factor: kind lublin does not heed it.*estimates factor`:        {Kind: Lublin, Estimates: Exact, LimitFactor: 3},
		`^queue\[1\]: the last queue has a longest time limit`:                 {Kind: Lublin, Queues: []Queue{{"a", 1}, {"b", 2}}},
		`^queue\[0\]: no job would ever come to a later queue`:                 {Kind: Lublin, Queues: []Queue{{"a", 0}, {"b", 0}}},
		`^classes\[0\].serial: 2 is not possible; write a number from 0 to 1`:  {Kind: Lublin, Classes: whole(func(c *LublinClass) { c.Serial = 2 })},
		`^classes\[0\].gap: the mean is over 13, and what is over it`:          {Kind: Lublin, Classes: whole(func(c *LublinClass) { c.Gap.Shape = 100 })},
		`^classes\[0\].medium: 1 is not possible; write a number from 2 to 30`: {Kind: Lublin, Classes: whole(func(c *LublinClass) { c.Low, c.Medium = 2, 1 })},
		`^needs: there are none`:                                               {Kind: EDA, Profile: &Profile{JobsPerDay: 1}},
	} {
		made, err := Generate(o)
		var ps cluster.Problems
		if made != nil || !errors.As(err, &ps) || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%+v is answered by %v, want %s", o, err, want)
		}
	}
}

func TestTooManyJobsAreRefusedLongBeforeTheMemoryIsFull(t *testing.T) {
	for _, o := range []Options{
		{Kind: Poisson, Rate: 1e9, Span: 365 * dayLength},
		{Kind: EDA, Load: 1, Processors: mostProcessors, Span: 10 * 365 * dayLength},
	} {
		if _, err := Generate(o); err == nil || !regexp.MustCompile(`^span: some \d+ jobs would come in .*, and 100000000 are possible; make it shorter`).MatchString(err.Error()) {
			t.Errorf("%s: %v", o.Kind, err)
		}
	}
}

func TestJobsThatWouldComeOverCenturiesAreRefused(t *testing.T) {
	for _, o := range []Options{{Kind: Poisson, Rate: 1e-4, Jobs: 1000}, {Kind: Lublin, Load: 1e-9, Jobs: 1000}, {Kind: LongQueue, Load: 1e-300, Jobs: 10}} {
		if _, err := Generate(o); err == nil || !regexp.MustCompile(`^jobs: they would come over more than .*; ask for fewer jobs, more load`).MatchString(err.Error()) {
			t.Errorf("%s: %v", o.Kind, err)
		}
	}
}

func TestTheSourceSaysAllThatWasAskedFor(t *testing.T) {
	made := generate(t, Options{
		Kind: Lublin, Seed: 3, Jobs: 5, Load: 0.5, Start: defaultStart, Processors: 64, HostCPUs: 8, Rhythm: Week, Together: 2, Users: 4,
		Queues: []Queue{{"short", cluster.Hour}, {"long", 0}}, Estimates: Factor, LimitFactor: 9, Classes: []LublinClass{LublinBatch(64), LublinInteractive(64)},
	})
	want := "generated: lublin, seed 3, 5 jobs, load 0.5, start 2026-01-05T00:00:00.000Z, 64 processors, 8 cpus per host, rhythm week, 2 together, 4 users, " +
		"queues short up to 1h0m0s and long, estimates factor, limit factor 9, classes batch and interactive"
	if made.Source != want {
		t.Errorf("the source is %q, want %q", made.Source, want)
	}
}

func TestMachinesOfAnySizeHaveJobs(t *testing.T) {
	for _, processors := range []int64{1, 2, 3, 5, 8, 100_000, mostProcessors} {
		for _, kind := range []Kind{Lublin, LongQueue} {
			made := generate(t, Options{Kind: kind, Processors: processors, Jobs: 2000, Span: dayLength})
			most := int64(0)
			for _, j := range made.Jobs {
				most = max(most, j.Shape.CPUs)
			}
			if most > processors || processors > 1 && most < 2 && kind == Lublin {
				t.Errorf("%s: on %d processors the largest job has %d", kind, processors, most)
			}
		}
	}
}
