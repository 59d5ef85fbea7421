package plan

import (
	"slices"
	"testing"

	"xce.internal/elastic/cluster"
)

func world() World {
	return World{
		Processes: []string{"c1", "c2", "p1", "p2", "p3", "temporal"}, Clocks: []string{"p1", "c1"},
		Links: []string{"p1>c1", "p1>temporal"}, Pools: []string{"a", "b"}, Farms: []string{"x", "y"},
		Lease: 3 * cluster.Second, Length: cluster.Minute, Every: cluster.Second,
	}
}

func TestTheSameSeedDrawsTheSamePlan(t *testing.T) {
	one, again, other := Draw(7, world()), Draw(7, world()), Draw(8, world())
	if !slices.Equal(one, again) || slices.Equal(one, other) || len(one) < 20 {
		t.Errorf("%d, %d and %d faults", len(one), len(again), len(other))
	}
}

func TestEveryKindOfFaultAndModeIsDrawn(t *testing.T) {
	kinds, drawn := map[Kind]bool{}, map[string]bool{}
	for seed := range uint64(30) {
		for _, f := range Draw(seed, world()) {
			kinds[f.Kind] = true
			drawn[f.Mode] = true
		}
	}
	for _, w := range weights {
		if !kinds[w.kind] {
			t.Errorf("%s is never drawn", w.kind)
		}
	}
	for _, m := range modes {
		if !drawn[m] {
			t.Errorf("%s is never drawn", m)
		}
	}
}

func TestNothingIsHurtThatIsHurtAlready(t *testing.T) {
	for seed := range uint64(30) {
		until := map[string]cluster.Duration{}
		last := cluster.Duration(0)
		for _, f := range Draw(seed, world()) {
			if f.At < until[f.Target] || f.At < last || f.At >= cluster.Minute {
				t.Fatalf("seed %d: %s at %s, when %s was hurt until %s", seed, f, f.At, f.Target, until[f.Target])
			}
			until[f.Target], last = f.At+f.For, f.At
		}
	}
}

func TestSomePausesOutlastTheLease(t *testing.T) {
	longer, shorter := 0, 0
	for seed := range uint64(30) {
		for _, f := range Draw(seed, world()) {
			switch {
			case f.Kind == Pause && f.For > 3*cluster.Second:
				longer++
			case f.Kind == Pause:
				shorter++
			}
		}
	}
	if longer == 0 || shorter == 0 {
		t.Errorf("%d longer, %d shorter", longer, shorter)
	}
}

func TestAWorldWithoutAKindIsSparedIt(t *testing.T) {
	for _, f := range Draw(3, World{Processes: []string{"c1"}, Lease: 1000, Length: cluster.Minute, Every: cluster.Second}) {
		if f.Target != "c1" || f.Kind != Kill && f.Kind != Pause && f.Kind != Restart {
			t.Errorf("%s", f)
		}
	}
}
