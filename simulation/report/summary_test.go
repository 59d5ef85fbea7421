package report

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// drawResult draws a small result with jobs in all states.
func drawResult(t *rapid.T) *simulation.Result {
	r := &simulation.Result{Cluster: "c", Began: epoch, Ended: epoch, Trace: &trace.Trace{}, Causes: []string{"nothing", "hosts", "tokens of x", "priority"}}
	shapes := []*trace.Shape{nil}
	for _, queue := range []string{"b", "a", "", "a"} {
		s := &trace.Shape{User: "u"}
		s.Queue, s.CPUs, s.Nodes = queue, 2, 3
		shapes = append(shapes, s)
	}
	at := epoch
	for i := range rapid.IntRange(0, 80).Draw(t, "jobs") {
		at = at.Add(cluster.Duration(rapid.Int64Range(0, 50_000).Draw(t, "gap")))
		j := trace.Job{ID: int64(i), Submit: at, Waited: -1, Shape: rapid.SampledFrom(shapes).Draw(t, "shape")}
		o := simulation.Outcome{State: simulation.State(rapid.IntRange(0, 5).Draw(t, "state")), Cause: uint16(rapid.IntRange(0, 3).Draw(t, "cause"))}
		if started(o.State) {
			o.Start = at.Add(cluster.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 1_000_000)).Draw(t, "wait")))
			r.Ended = max(r.Ended, o.Start)
		}
		if ended(o.State) {
			o.End = o.Start.Add(cluster.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 100_000)).Draw(t, "run")))
			r.Ended = max(r.Ended, o.End)
		}
		r.Ended = max(r.Ended, at)
		r.Trace.Jobs, r.Outcomes = append(r.Trace.Jobs, j), append(r.Outcomes, o)
	}
	(&maker{r: r}).jobSeries()
	return r
}

// naive answers the spread of values by sorting and exact fractions.
func naive(values []int64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	values = slices.Sorted(slices.Values(values))
	sum := new(big.Int)
	for _, v := range values {
		sum.Add(sum, big.NewInt(v))
	}
	quantile := func(percent int) int64 {
		for i, v := range values { // the first that enough do not exceed
			if 100*(i+1) >= percent*len(values) {
				return v
			}
		}
		panic("there is none")
	}
	return Spread{
		Count: int64(len(values)), Sum: sum.Int64(), Mean: nearest(new(big.Rat).SetFrac(sum, big.NewInt(int64(len(values))))),
		Median: quantile(50), P95: quantile(95), P99: quantile(99), Max: values[len(values)-1],
	}
}

// nearest rounds a fraction that is not negative, halves up.
func nearest(x *big.Rat) int64 {
	x = new(big.Rat).Add(x, big.NewRat(1, 2))
	return new(big.Int).Quo(x.Num(), x.Denom()).Int64()
}

func naiveGroup(r *simulation.Result, in func(i int) bool) (g Group) {
	var waits, slowdowns []int64
	for i, o := range r.Outcomes {
		if !in(i) {
			continue
		}
		g.Jobs.Total++
		*[]*int64{&g.Jobs.Absent, &g.Jobs.Impossible, &g.Jobs.Waiting, &g.Jobs.Running, &g.Jobs.Done, &g.Jobs.TimedOut}[o.State]++
		submit := r.Trace.Jobs[i].Submit
		if started(o.State) {
			waits = append(waits, int64(o.Start-submit))
			until := r.Ended
			if ended(o.State) {
				until = o.End
			}
			if r.Trace.Jobs[i].Shape != nil {
				g.Jobs.WorkMS += 6 * int64(until-o.Start)
			}
		}
		if ended(o.State) {
			run := int64(o.End - o.Start)
			slowed := big.NewRat(int64(o.End-submit), max(run, 10_000))
			slowed.Mul(slowed, big.NewRat(1000, 1))
			slowdowns = append(slowdowns, max(1000, nearest(slowed)))
		}
	}
	g.Wait, g.Slowdown = naive(waits), naive(slowdowns)
	return g
}

func TestASummaryHasTheFiguresThatNaiveCountingGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawResult(t)
		s := Summarize(r)
		all := naiveGroup(r, func(int) bool { return true })
		if s.Jobs != all.Jobs || s.Wait != all.Wait || s.Slowdown != all.Slowdown {
			t.Fatalf("all: %+v %+v %+v, want %+v", s.Jobs, s.Wait, s.Slowdown, all)
		}
		for _, g := range s.Queues {
			want := naiveGroup(r, func(i int) bool { return queue(&r.Trace.Jobs[i]) == g.Name })
			if want.Name = g.Name; g != want {
				t.Fatalf("queue %q: %+v, want %+v", g.Name, g, want)
			}
		}
		for _, g := range s.Causes {
			want := naiveGroup(r, func(i int) bool {
				return r.Causes[r.Outcomes[i].Cause] == g.Name && r.Outcomes[i].State >= simulation.Waiting
			})
			if want.Name = g.Name; g != want || g.Jobs.Total == 0 {
				t.Fatalf("cause %q: %+v, want %+v", g.Name, g, want)
			}
		}
		if !slices.IsSortedFunc(s.Queues, func(a, b Group) int { return cmpText(a.Name, b.Name) }) {
			t.Fatal("the queues are not in order")
		}
		if !s.Little.Holds {
			t.Fatal(s.Little)
		}
	})
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestChoosingFindsWhatSortingFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int64{0, 3, 1 << 40}).Draw(t, "most")
		values := rapid.SliceOfN(rapid.Int64Range(0, most), 1, 400).Draw(t, "values")
		if rapid.Bool().Draw(t, "sorted") {
			slices.Sort(values)
		}
		if got, want := spreadOf(slices.Clone(values)), naive(values); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

func TestRatiosAreRoundedAndDoNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part, whole := rapid.Int64().Draw(t, "part"), rapid.Int64().Draw(t, "whole")
		scale := rapid.Int64Range(1, 1_000_000).Draw(t, "scale")
		if part == -1<<63 || whole == -1<<63 || whole == 0 {
			return
		}
		exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(part), big.NewInt(scale)), big.NewInt(whole))
		sign := int64(exact.Sign())
		exact.Abs(exact)
		if exact.Cmp(new(big.Rat).SetInt64(1<<62)) > 0 {
			return
		}
		if got, want := ratio(part, scale, whole), sign*nearest(exact); got != want {
			t.Fatalf("%d*%d/%d is %d, want %d", part, scale, whole, got, want)
		}
	})
	if ratio(5, 1, 0) != 0 || ratio(1<<62, 1_000_000, 1) != 0 {
		t.Error("what cannot be is not 0")
	}
}

func TestLittlesLawFindsCountsThatDoNotFitTheJobs(t *testing.T) {
	r := sample(200, 4)
	if l := Summarize(r).Little; !l.Holds || l.WaitSum == 0 || l.WaitSum != l.WaitingIntegral || l.RunSum != l.RunningIntegral {
		t.Fatalf("%+v", l)
	}
	r.Jobs.Integral[0]++
	l := Summarize(r).Little
	if l.Holds {
		t.Fatal("a count too many was not found")
	}
	if want := "does NOT hold: "; l.String()[:len(want)] != want {
		t.Errorf("it says %q", l)
	}
	r.Jobs.Integral[0]--
	r.Outcomes[7].End++
	if Summarize(r).Little.Holds {
		t.Error("a run too long was not found")
	}
}

func TestLittlesLawCountsEarlierRunsOfRequeuedJobs(t *testing.T) {
	r := sample(50, 5)
	// Job 9 ran for a minute before it was requeued: the counts say so, its outcome has the last run alone.
	r.Outcomes[9].Start, r.Outcomes[9].End = r.Outcomes[9].Start+cluster.Time(cluster.Minute), r.Outcomes[9].End+cluster.Time(cluster.Minute)
	r.Outcomes[9].Requeues = 1
	r.Jobs.Integral[1] += int64(cluster.Minute)
	r.Jobs.End = max(r.Jobs.End, r.Outcomes[9].End)
	l := Summarize(r).Little
	if !l.Holds || l.Requeued != 1 || l.WaitSum-l.WaitingIntegral != int64(cluster.Minute) {
		t.Fatalf("%+v", l)
	}
	r.Outcomes[9].Requeues = 0
	if Summarize(r).Little.Holds {
		t.Error("it holds although no job was requeued")
	}
}

func TestHostsAndTokensAreSummedUp(t *testing.T) {
	const h = int64(cluster.Hour)
	r := sample(10, 1)
	s := Summarize(r)
	var bought, used int64
	var cost cluster.Price
	for _, m := range r.Machines {
		bought, used, cost = bought+int64(m.Closed-m.Expected), used+m.Busy, cost+m.Cost
	}
	if s.Hosts.BoughtMS != bought || s.Hosts.UsedMS != used || s.Cost.Hosts != cost || s.Hosts.Joined != 61 || len(s.Hosts.Templates) != 2 {
		t.Errorf("hosts: %+v, cost %d; want bought %d, used %d, cost %d", s.Hosts, s.Cost.Hosts, bought, used, cost)
	}
	vcs := s.Resources[1]
	if vcs.BoughtMS != 400*h || vcs.UsedMS != 310*h || vcs.Loans != 40 || vcs.UnitsAsked != 160 || vcs.UnitsGranted != 140 || vcs.TotalMS() != vcs.OwnedMS+vcs.BorrowedMS {
		t.Errorf("vcs: %+v", vcs)
	}
	if s.Cost.Tokens != r.Resources[1].Cost || s.Cost.Total != s.Cost.Tokens+s.Cost.Hosts || s.Providers[0].HostCost != cost || s.Providers[1].TokenCost != s.Cost.Tokens {
		t.Errorf("cost: %+v, providers %+v", s.Cost, s.Providers)
	}
	if s.Repairs != 17 {
		t.Errorf("repairs: %d", s.Repairs)
	}
}

func TestAHostThatIsStillThereIsPaidUntilTheEnd(t *testing.T) {
	r := &simulation.Result{Began: epoch, Ended: epoch + 1000, Machines: []simulation.HostResult{
		{Template: "t", Requested: epoch, Expected: epoch + 100, Joined: epoch + 200, Busy: 50},
		{Template: "t", Requested: epoch, Closed: epoch + 300},
	}}
	h := Summarize(r).Hosts
	if h.BoughtMS != 900 || h.Made != 1 || h.Requested != 2 || h.UsedMS != 50 || h.Utilisation != 556 {
		t.Errorf("%+v", h)
	}
}

// BenchmarkSummarize summarises ten million jobs.
func BenchmarkSummarize(b *testing.B) {
	r := sample(1000, 1)
	jobs, outcomes := r.Trace.Jobs, r.Outcomes
	for len(r.Trace.Jobs) < 10_000_000 {
		r.Trace.Jobs, r.Outcomes = append(r.Trace.Jobs, jobs...), append(r.Outcomes, outcomes...)
	}
	for i := range r.Outcomes { // no two alike
		o := &r.Outcomes[i]
		more := cluster.Time(uint64(i) * 2654435761 % 90_001_003)
		o.Start, o.End = o.Start+more, o.End+more
	}
	b.ReportAllocs()
	for b.Loop() {
		if s := Summarize(r); s.Wait.Count != int64(len(r.Outcomes)) {
			b.Fatal(s.Wait)
		}
	}
}
