package synthetic

import (
	"container/heap"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// ends are when running jobs end, and how many processors they free.
type ends [][2]int64

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i][0] < e[j][0] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.([2]int64)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// backlog answers how many jobs wait at most, and on average until the last one came, where
// each job starts as soon as it fits and the larger ones are tried first. No policy that
// keeps an order does much better.
func backlog(t *trace.Trace, processors int64) (most int, mean float64) {
	waiting := map[int64][]int{}
	var sizes []int64 // the larger first
	for size := int64(1) << 20; size > 0; size /= 2 {
		sizes = append(sizes, size)
	}
	free, n, running, area := processors, 0, &ends{}, 0.0
	now, arrived := t.Jobs[0].Submit, 0
	for arrived < len(t.Jobs) {
		next := t.Jobs[arrived].Submit
		if running.Len() > 0 && (*running)[0][0] < int64(next) {
			end := heap.Pop(running).([2]int64)
			next, free = cluster.Time(end[0]), free+end[1]
		} else {
			size := t.Jobs[arrived].Shape.CPUs
			waiting[size] = append(waiting[size], arrived)
			arrived, n = arrived+1, n+1
		}
		area += float64(n) * float64(next-now)
		now = next
		for _, size := range sizes {
			for len(waiting[size]) > 0 && size <= free {
				j := waiting[size][0]
				waiting[size], free, n = waiting[size][1:], free-size, n-1
				heap.Push(running, [2]int64{int64(now.Add(t.Jobs[j].Run)), size})
			}
		}
		most = max(most, n)
	}
	return most, area / float64(now.Sub(t.Jobs[0].Submit))
}

func TestThousandsWaitAtTimesOnALargeMachine(t *testing.T) {
	for _, s := range []uint64{1, 2, 3} {
		o := Options{Kind: LongQueue, Seed: s}
		made := generate(t, o)
		most, mean := backlog(made, 8192)
		if len(made.Jobs) != 450_000 || most < 5000 || most > 50_000 || mean < 1000 {
			t.Errorf("seed %d: of %d jobs %d wait at most and %.0f on average", s, len(made.Jobs), most, mean)
		}
		sum := Summarize(made, o.Completed().Start, 8192)
		if days := sum.Span / dayLength; days < 60 || days > 240 {
			t.Errorf("seed %d: the jobs come over %s", s, sum.Span)
		}
	}
}

func TestUsersSubmitHundredsOfLikeJobsAtOnce(t *testing.T) {
	made := generate(t, Options{Kind: LongQueue, Seed: 4, Jobs: 100_000})
	shapes := map[*trace.Shape]bool{}
	kinds := map[string]map[int64]bool{}
	alike := 0
	for i, j := range made.Jobs {
		shapes[j.Shape] = true
		if kinds[j.Shape.User] == nil {
			kinds[j.Shape.User] = map[int64]bool{}
		}
		kinds[j.Shape.User][j.Shape.CPUs] = true
		if i > 0 && j.Shape == made.Jobs[i-1].Shape {
			alike++
		}
	}
	if alike < 90_000 {
		t.Errorf("only %d of 100000 jobs are like the one before", alike)
	}
	if len(shapes) > 50*shapesOfUser || len(kinds) < 20 {
		t.Errorf("%d users have %d shapes", len(kinds), len(shapes))
	}
	for user, sizes := range kinds {
		if len(sizes) > shapesOfUser {
			t.Errorf("%s has jobs of %d sizes", user, len(sizes))
		}
	}
}
