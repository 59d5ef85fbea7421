package scheduling

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestRunningJobsAreFoundByTheirIdsWhoeverElseHasEnded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs running
		known := map[runKey]cluster.Time{}
		drawKey := rapid.Custom(func(t *rapid.T) runKey {
			return runKey{rapid.Int64Range(1, 40).Draw(t, "job") * 64, rapid.Int64Range(0, 8).Draw(t, "element")}
		})
		for n := range rapid.IntRange(1, 400).Draw(t, "steps") {
			key := drawKey.Draw(t, "key")
			ends, there := known[key]
			if rapid.Bool().Draw(t, "nobody looks") && !there {
				runs.add(run{key: key, ends: cluster.Time(n)})
				known[key] = cluster.Time(n)
				continue
			}
			switch r := runs.find(key); {
			case (r != nil) != there:
				t.Fatalf("%v is found: %t; it runs: %t", key, r != nil, there)
			case there && r.ends != ends:
				t.Fatalf("instead of %v, %v is found", key, r.key)
			case there:
				runs.remove(key)
				delete(known, key)
			}
		}
		if len(runs.all) != len(known) {
			t.Fatalf("%d run instead of %d", len(runs.all), len(known))
		}
	})
}

func TestEndingsStandInTheOrderOfTimeWhatsoeverComesAndGoes(t *testing.T) {
	type row struct {
		at    cluster.Time
		units int64
	}
	rapid.Check(t, func(t *rapid.T) {
		var all endings
		var want []row
		most := rapid.SampledFrom([]int64{3, 50, 5000}).Draw(t, "instants")
		for range rapid.IntRange(1, 600).Draw(t, "steps") {
			r := row{cluster.Time(rapid.Int64Range(-1, most).Draw(t, "at")), rapid.Int64Range(1, 3).Draw(t, "units")}
			if rapid.IntRange(0, 2).Draw(t, "comes") > 0 {
				all.add(r.at, []int64{r.units, 1})
				want = append(want, r)
				continue
			}
			i := slices.Index(want, r)
			if all.remove(r.at, []int64{r.units, 1}) != (i >= 0) {
				t.Fatalf("%v is taken out: %t", r, i < 0)
			}
			if i >= 0 {
				want = slices.Delete(want, i, i+1)
			}
		}
		var got []row
		for p := all.begin(); all.has(p); p = all.next(p) {
			got = append(got, row{all.at(p), all.units(p)[0]})
		}
		if !slices.IsSortedFunc(got, func(a, b row) int { return cmp.Compare(a.at, b.at) }) {
			t.Fatalf("%v is not in order", got)
		}
		byBoth := func(a, b row) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.units, b.units)) }
		slices.SortFunc(got, byBoth)
		slices.SortFunc(want, byBoth)
		if !slices.Equal(got, want) {
			t.Fatalf("there are\n%v instead of\n%v", got, want)
		}
		from := cluster.Time(rapid.Int64Range(0, most).Draw(t, "from"))
		left := slices.IndexFunc(want, func(r row) bool { return r.at >= from })
		if p := all.from(from); all.has(p) != (left >= 0) || left >= 0 && all.at(p) != want[left].at {
			t.Fatalf("from %d on, the first of %v is not found", from, want)
		}
	})
}
