package snapshot

import (
	"bytes"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/scheduling"
)

var placed = regexp.MustCompile(`^x\.json:[1-9][0-9]*:[1-9][0-9]*: .+; .+`)

// FuzzRead: whatever a file holds, it is taken or refused with the place and the
// remedy of each fault; what is taken can be written and read again, and a
// session judges it.
func FuzzRead(f *testing.F) {
	small, whole := file(f, "small.json"), file(f, "full.json")
	for _, seed := range []string{
		small, whole, "", "{", "[]", "null", `"\ud800"`, "{\"\xff\":1}", `{"format":"xce-snapshot"}`, `{"format":"xce-snapshot","version":1}`,
		`{"format":"xce-snapshot","version":1,"cluster":"c","state":{"now":"2026-01-01T00:00:00Z"}}`,
		`{"format":"xce-snapshot","version":1,"cluster":"c","state":{"now":"2026-01-01T00:00:00Z","jobs":[{"id":1,"state":"waiting","array":9000,"nodes":3,"cpus":1}],"hosts":[{"name":"a","cpus":9},{"name":"b","cpus":9},{"name":"c","cpus":9}]}}`,
		`{"format":"xce-snapshot","version":1,"cluster":"c","state":{"policy":{"order":"easy"},"now":"9999-12-31T23:59:59Z","jobs":[{"id":1,"state":"waiting","time_limit":"87840h","constraint":"!(a|b=c)&d","cpus":1000000000000,"memory_mb":1000000000000}],"hosts":[{"name":"a","cpus":1000000000000,"memory_mb":1000000000000,"features":["d"]}]}}`,
		`{"version":1,"format":"xce-snapshot","cluster":"c","taken":"","state":{"jobs":null,"":{},"resources":[{"name":"vcs","name":"vcs"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read("x.json", bytes.NewReader(data))
		if err != nil {
			checkRefusal(t, err)
			return
		}
		again, err := Read("x.json", bytes.NewReader([]byte(written(t, s))))
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Fatalf("%+v\nbecame\n%+v\n%v", s, again, err)
		}
		if smallEnough(&s.State) {
			judge(t, s.State)
		}
	})
}

// TestWhateverIsTakenIsJudged changes numbers of a state at random: what is still
// one that a cluster can be in, a session judges.
func TestWhateverIsTakenIsJudged(t *testing.T) {
	seed := file(t, "full.json")
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		s, err := Read("x.json", strings.NewReader(seed))
		if err != nil {
			t.Fatal(err)
		}
		all := numbers(reflect.ValueOf(&s.State).Elem())
		s.State.Policy = scheduling.Policy{Order: rapid.SampledFrom([]scheduling.Order{"", scheduling.FCFS, scheduling.EASY, scheduling.Conservative}).Draw(t, "order")}
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			number := rapid.SampledFrom(all).Draw(t, "number")
			size := rapid.SampledFrom([]int64{3, 100, 100_000, int64(latest), mostCount}).Draw(t, "size")
			number.SetInt(rapid.Int64Range(0, size).Draw(t, "value"))
		}
		if len(Validate(s.State)) == 0 && smallEnough(&s.State) {
			accepted++
			judge(t, s.State)
		}
	})
	if accepted == 0 {
		t.Error("no state was taken")
	}
}

func checkRefusal(t *testing.T, err error) {
	var r *Refused
	if !errors.As(err, &r) || len(r.Faults) == 0 {
		t.Fatalf("%T is no refusal: %v", err, err)
	}
	for _, line := range r.Faults {
		if !placed.MatchString(line) {
			t.Fatalf("%q does not say where, or what to do", line)
		}
	}
}

// smallEnough keeps sessions short.
func smallEnough(in *scheduling.Input) bool {
	var starts int64
	for _, job := range in.Jobs {
		starts += max(job.Array-job.Begun, 1) * max(job.Nodes, 1)
	}
	return starts < 20_000 && len(in.Hosts)+len(in.Running)+len(in.Templates)+len(in.Expected) < 2000
}

type failer interface {
	Fatalf(format string, args ...any)
}

// judge demands of a session what it promises for every state: it ends soon, it
// names every job, and it is the same each time.
func judge(t failer, in scheduling.Input) {
	began := time.Now()
	result := scheduling.Run(in)
	if took := time.Since(began); took > 5*time.Second {
		t.Fatalf("the session took %s", took)
	}
	named := map[int64]bool{}
	for _, start := range result.Starts {
		named[start.Job] = true
	}
	for _, u := range result.Unplaced {
		for _, job := range u.Jobs {
			named[job] = true
		}
		if u.Why == "" || u.Change == "" || u.Code == "" || u.Count < int64(len(u.Jobs)) {
			t.Fatalf("%+v says too little", u)
		}
	}
	for _, job := range in.Jobs {
		if !named[job.ID] {
			t.Fatalf("job %d neither starts nor is told why it waits", job.ID)
		}
	}
	for _, d := range result.Demand {
		if d.Units < 1 || d.Price < 0 || len(d.Jobs) == 0 || d.Reason == "" || (d.Resource == "") == (d.Template == "") {
			t.Fatalf("demand %+v", d)
		}
	}
	for _, h := range result.Halves {
		if h.Units < 1 || h.Count < 1 || len(h.Jobs) == 0 || len(h.Awaits) == 0 {
			t.Fatalf("half %+v", h)
		}
	}
	for _, i := range result.Idle {
		if i.Units < 1 || i.Since > max(in.Now, latest) || i.Since < 0 {
			t.Fatalf("idle %+v", i)
		}
	}
	if again := scheduling.Run(in); !reflect.DeepEqual(result, again) {
		t.Fatalf("%+v\nis another time\n%+v", result, again)
	}
}
