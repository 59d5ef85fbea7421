package synthetic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// text answers the jobs of a trace as text that has all of them.
func text(made *trace.Trace) []byte {
	var out bytes.Buffer
	for _, j := range made.Jobs {
		s := j.Shape
		fmt.Fprintln(&out, j.ID, j.Name, int64(j.Submit), int64(j.Run), int64(j.Limit), int64(j.Waited), int64(j.TokensFor),
			s.User, s.Group, s.Application, s.Name, s.Queue, s.Nodes, s.CPUs, s.MemoryMB, s.Tokens, s.Alternatives, s.Priority)
	}
	return out.Bytes()
}

func TestTheSameSeedGivesTheSameBytesAndAnotherOthers(t *testing.T) {
	for _, kind := range Kinds {
		a := text(generate(t, Options{Kind: kind, Seed: 1, Jobs: 2000}))
		if b := text(generate(t, Options{Kind: kind, Seed: 1, Jobs: 2000})); !bytes.Equal(a, b) {
			t.Errorf("%s: the same seed gives other jobs", kind)
		}
		if b := generate(t, Options{Kind: kind, Seed: 2, Jobs: 2000}); slices.Equal(times(generate(t, Options{Kind: kind, Seed: 1, Jobs: 2000})), times(b)) {
			t.Errorf("%s: another seed gives the same jobs", kind)
		}
	}
}

func times(made *trace.Trace) (all []int64) {
	for _, j := range made.Jobs {
		all = append(all, int64(j.Submit), int64(j.Run))
	}
	return all
}

// The sums are those on every machine. They change only with the models.
func TestSmallTracesAreToTheLastBitWhatTheyAlwaysWere(t *testing.T) {
	for kind, want := range map[Kind]string{
		Lublin:    "6921e765781817d6",
		EDA:       "7ec09f27166a23d9",
		Poisson:   "bd41da138098ea5e",
		LongQueue: "c204101a10feb37d",
	} {
		sum := sha256.Sum256(text(generate(t, Options{Kind: kind, Seed: 42, Jobs: 3000, Processors: 512, Load: 0.7})))
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("%s: the sum is %s, and it was %s", kind, got, want)
		}
	}
}

func TestTheFirstJobsOfALongerTraceAreThoseOfAShorterOne(t *testing.T) {
	for _, o := range []Options{
		{Kind: Poisson, Seed: 3, Rhythm: Week},
		{Kind: Lublin, Seed: 3, Classes: []LublinClass{LublinWhole(128)}},
	} {
		o.Jobs = 500
		shorter := generate(t, o).Jobs
		o.Jobs = 5000
		longer := generate(t, o).Jobs
		for i, j := range shorter {
			other := longer[i]
			if j.Submit != other.Submit || j.Run != other.Run || j.Limit != other.Limit || j.Shape.User != other.Shape.User || j.Shape.CPUs != other.Shape.CPUs {
				t.Fatalf("%s: job %d is %+v of 500, and %+v of 5000", o.Kind, i, j, other)
			}
		}
	}
}

func TestTheOfferedLoadIsWhatWasAskedFor(t *testing.T) {
	for _, o := range []Options{
		{Kind: Lublin, Jobs: 50_000, Load: 0.8, Processors: 256},
		{Kind: Lublin, Span: 60 * dayLength, Load: 0.6, Processors: 256},
		{Kind: EDA, Jobs: 100_000, Load: 0.9, Processors: 4000},
		{Kind: EDA, Span: 30 * dayLength, Load: 0.7, Processors: 2000},
		{Kind: LongQueue, Jobs: 100_000, Load: 0.95},
		{Kind: LongQueue, Span: 90 * dayLength, Load: 0.8, Processors: 4096},
		{Kind: Poisson, Jobs: 200_000, Load: 0.8, Processors: 100},
	} {
		made, done := generate(t, o), o.Completed()
		sum := Summarize(made, done.Start, done.Processors)
		if got := float64(sum.LoadThousandths) / 1000; math.Abs(got/o.Load-1) > 0.02 {
			t.Errorf("%s: the load of %d jobs is %.3f, and %.2f is expected", o.Kind, sum.Jobs, got, o.Load)
		}
		if o.Jobs > 0 && sum.Jobs != o.Jobs {
			t.Errorf("%s: there are %d jobs, and not %d", o.Kind, sum.Jobs, o.Jobs)
		}
		if o.Span > 0 && (sum.Span > o.Span || sum.Span < o.Span*97/100) {
			t.Errorf("%s: jobs come over %s, and not over %s", o.Kind, sum.Span, o.Span)
		}
	}
}

func TestWithJobsAndSpanTheOneComesOverTheOther(t *testing.T) {
	for _, kind := range Kinds {
		made := generate(t, Options{Kind: kind, Jobs: 20_000, Span: 21 * dayLength})
		last := made.Jobs[len(made.Jobs)-1].Submit.Sub(defaultStart)
		if len(made.Jobs) != 20_000 || last >= 21*dayLength || last < 19*dayLength {
			t.Errorf("%s: %d jobs come over %s", kind, len(made.Jobs), last)
		}
	}
}

func TestWithASpanAsManyJobsComeAsTheKindHas(t *testing.T) {
	made := generate(t, Options{Kind: EDA, Span: 28 * dayLength})
	if n := len(made.Jobs); n < 500_000 || n > 620_000 { // 20,000 a day
		t.Errorf("%d jobs come in four weeks", n)
	}
	made = generate(t, Options{Kind: Lublin, Span: 28 * dayLength})
	if n := len(made.Jobs); n < 3500 || n > 6000 {
		t.Errorf("%d jobs come in four weeks", n)
	}
}

// options draws any options that are right.
func options(t *rapid.T) Options {
	o := Options{
		Kind: rapid.SampledFrom(Kinds).Draw(t, "kind"), Seed: rapid.Uint64().Draw(t, "seed"), Jobs: rapid.Int64Range(0, 300).Draw(t, "jobs"),
		Processors: rapid.Int64Range(1, 3000).Draw(t, "processors"), Start: cluster.Time(rapid.Int64Range(0, int64(lastStart)).Draw(t, "start")),
	}
	if o.Jobs == 0 {
		o.Jobs = 1
	}
	switch rapid.SampledFrom([]string{"jobs", "span", "load"}).Draw(t, "extent") {
	case "span":
		o.Span = cluster.Duration(rapid.Int64Range(1, int64(40*dayLength)).Draw(t, "span"))
	case "load":
		o.Load = float64(rapid.Int64Range(1, 150).Draw(t, "load")) / 100
	}
	if o.Kind == EDA {
		return o
	}
	o.Users, o.HostCPUs = rapid.Int64Range(0, 20).Draw(t, "users"), rapid.Int64Range(0, 64).Draw(t, "host cpus")
	o.Rhythm = rapid.SampledFrom([]Rhythm{"", Even, Day, Week}).Draw(t, "rhythm")
	o.Estimates = rapid.SampledFrom([]Estimates{"", None, Exact, Factor, Usual}).Draw(t, "estimates")
	if rapid.Bool().Draw(t, "queues") {
		o.Queues = []Queue{{"short", cluster.Hour}, {"middle", 8 * cluster.Hour}, {"long", 0}}
	}
	if o.Kind != LongQueue {
		o.Together = rapid.Int64Range(0, 20).Draw(t, "together")
	}
	return o
}

func TestEveryJobOfEveryTraceCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := options(t)
		made, err := Generate(o)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(made.Jobs)) != o.Jobs {
			t.Fatalf("there are %d jobs, and not %d", len(made.Jobs), o.Jobs)
		}
		last := o.Completed().Start
		for i := range made.Jobs {
			j := &made.Jobs[i]
			checkTimes(t, &o, j, last)
			checkShape(t, &o, j)
			if j.ID != int64(i)+1 {
				t.Fatalf("job %d is number %d", i+1, j.ID)
			}
			last = j.Submit
		}
	})
}

func checkTimes(t *rapid.T, o *Options, j *trace.Job, last cluster.Time) {
	switch start := o.Completed().Start; {
	case j.Submit < last:
		t.Fatalf("job %d comes at %s, before the one before it or the start", j.ID, j.Submit)
	case o.Span > 0 && j.Submit >= start.Add(max(o.Span, 1)):
		t.Fatalf("job %d comes after the span, at %s", j.ID, j.Submit)
	case j.Run < 1 || j.Limit != 0 && j.Limit < j.Run || j.Waited != -1:
		t.Fatalf("job %d runs %s with a limit of %s, and waited %s", j.ID, j.Run, j.Limit, j.Waited)
	case o.Kind != Poisson && (j.Run%1000 != 0 || j.Submit.Sub(start)%1000 != 0 || j.Limit%1000 != 0):
		t.Fatalf("job %d is not of whole seconds: %+v", j.ID, j)
	case o.Estimates == None && j.Limit != 0, o.Estimates == Exact && j.Limit != j.Run:
		t.Fatalf("job %d runs %s and has a limit of %s", j.ID, j.Run, j.Limit)
	}
}

func checkShape(t *rapid.T, o *Options, j *trace.Job) {
	s := j.Shape
	if ps := s.ValidateShape(""); len(ps) > 0 || !cluster.ValidName(s.User) || !cluster.ValidName(s.Queue) {
		t.Fatalf("job %d is %+v: %v", j.ID, s, ps)
	}
	if s.TimeLimit != 0 || s.NotBefore != 0 || s.Array != 0 {
		t.Fatalf("the shape of job %d has what is the job's: %+v", j.ID, s)
	}
	if o.HostCPUs > 0 && s.CPUs > o.HostCPUs || o.Kind == Lublin && s.CPUs > o.Processors {
		t.Fatalf("job %d has %d cpus on a host", j.ID, s.CPUs)
	}
	if len(o.Queues) > 0 {
		if want := o.Queues[queueOf(o.Queues, j.Limit)].Name; s.Queue != want {
			t.Fatalf("job %d of limit %s is in queue %s, and not %s", j.ID, j.Limit, s.Queue, want)
		}
	}
}
