package cluster

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func sized(cpus, memory int64, features ...string) Capacity {
	return Capacity{CPUs: cpus, MemoryMB: memory, Features: features}
}

func withGPUs(c Capacity, n int64) Capacity {
	c.Countables = map[string]int64{"gpus": n}
	return c
}

func TestATemplateIsBelievedUntilTwoHostsInARowHaveLess(t *testing.T) {
	says := withGPUs(sized(16, 65536, "avx"), 2)
	says.Attributes = map[string]string{"site": "z1"}
	good, small := says, says
	small.MemoryMB = 63488
	smaller := small
	smaller.MemoryMB, smaller.CPUs = 60000, 32
	without := good
	without.Countables, without.Attributes = nil, nil
	other := good
	other.Features = []string{"sse"}
	larger := withGPUs(sized(64, 131072, "avx", "site=z1"), 4)
	tests := []struct {
		name   string
		joined []Capacity
		want   Capacity
		misses int64
	}{
		{"no host", nil, says, 0},
		{"one as it says", []Capacity{good}, says, 0},
		{"one with more", []Capacity{larger}, says, 0},
		{"a small one, which may be broken", []Capacity{small}, says, 1},
		{"two small ones", []Capacity{small, small}, small, 2},
		{"many", []Capacity{small, small, small, small}, small, 4},
		{"the most of each thing is believed", []Capacity{small, smaller}, small, 2},
		{"in whatever order they come", []Capacity{smaller, small}, small, 2},
		{"a good one between them", []Capacity{small, good, small}, says, 1},
		{"a good one after them", []Capacity{small, small, good}, says, 0},
		{"what one of two had is believed", []Capacity{without, small}, says, 2},
		{"what neither had is not", []Capacity{without, without}, withGPUs(sized(16, 65536, "avx"), 0), 2},
		{"nor a feature", []Capacity{other, other}, withGPUs(Capacity{CPUs: 16, MemoryMB: 65536, Attributes: says.Attributes}, 2), 2},
		{"two broken ones", []Capacity{{}, {}}, withGPUs(Capacity{}, 0), 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tmpl := Template{Name: "c16", Capacity: says}
			for _, joined := range test.joined {
				tmpl = tmpl.Learn(joined)
			}
			if tmpl.Misses != test.misses || (tmpl.Delivered == nil) != (test.misses == 0) || !reflect.DeepEqual(tmpl.Capacity, says) {
				t.Fatalf("got %+v", tmpl)
			}
			if got, want := ordinary(tmpl.Believed()), ordinary(test.want); got != want {
				t.Errorf("%s is believed, want %s", got, want)
			}
		})
	}
}

// ordinary prints a capacity, empty lists like none.
func ordinary(c Capacity) string {
	return fmt.Sprint(c.CPUs, c.MemoryMB, c.Countables, c.FeatureNames())
}

func TestWhatIsPromisedAnewIsBelievedAnew(t *testing.T) {
	tmpl := Template{Capacity: sized(16, 65536)}.Learn(sized(16, 100)).Learn(sized(16, 100))
	if got := tmpl.Believed().MemoryMB; got != 100 {
		t.Fatalf("%d MB are believed", got)
	}
	tmpl.Capacity, tmpl.Delivered, tmpl.Misses = sized(16, 200), nil, 0 // as it is published
	if got := tmpl.Believed().MemoryMB; got != 200 {
		t.Errorf("%d MB are believed", got)
	}
}

func drawCapacity(t *rapid.T, what string) Capacity {
	c := Capacity{CPUs: rapid.Int64Range(0, 4).Draw(t, what+" cpus"), MemoryMB: rapid.Int64Range(0, 4).Draw(t, what+" memory")}
	for _, name := range []string{"gpus", "fpgas"} {
		if n := rapid.Int64Range(-1, 2).Draw(t, name); n >= 0 {
			c.Countables = with(c.Countables, name, n)
		}
	}
	for _, name := range []string{"avx", "site=z1"} {
		if rapid.Bool().Draw(t, name) {
			c.Features = append(c.Features, name)
		}
	}
	if rapid.Bool().Draw(t, "site") {
		c.Attributes = map[string]string{"site": "z1"}
	}
	return c
}

func TestTheLeastOfTwoIsCoveredByBothAndTheMostCoversBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawCapacity(t, "a"), drawCapacity(t, "b")
		before := fmt.Sprint(a, b)
		least, most := a.Least(b), a.most(b)
		if !a.Covers(least) || !b.Covers(least) || !a.hasAll(least) || !b.hasAll(least) {
			t.Fatalf("the least of %+v and %+v is %+v", a, b, least)
		}
		if !most.Covers(a) || !most.Covers(b) || !most.hasAll(Capacity{Features: append(a.Features, b.Features...)}) {
			t.Fatalf("the most of %+v and %+v is %+v", a, b, most)
		}
		if fmt.Sprint(a, b) != before {
			t.Fatalf("%s was changed to %+v, %+v", before, a, b)
		}
	})
}

func TestNoMoreIsBelievedThanATemplateSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl := Template{Capacity: drawCapacity(t, "said")}
		joined := make([]Capacity, rapid.IntRange(0, 5).Draw(t, "hosts"))
		misses := int64(0)
		for i := range joined {
			joined[i] = drawCapacity(t, "joined")
			tmpl = tmpl.Learn(joined[i])
			if misses++; joined[i].Covers(tmpl.Capacity) && joined[i].hasAll(tmpl.Capacity) {
				misses = 0
			}
		}
		believed := tmpl.Believed()
		if tmpl.Misses != misses || !tmpl.Capacity.Covers(believed) || !tmpl.Capacity.hasAll(believed) {
			t.Fatalf("%+v is believed to be %+v after %d misses", tmpl, believed, misses)
		}
		if misses < believedMisses {
			if !reflect.DeepEqual(believed, tmpl.Capacity) {
				t.Fatalf("%+v is not believed after %d misses", tmpl, misses)
			}
			return
		}
		for _, j := range joined[int64(len(joined))-misses:] {
			if least := tmpl.Capacity.Least(j); !believed.Covers(least) || !believed.hasAll(least) {
				t.Fatalf("%+v is believed, though a host had %+v", believed, j)
			}
		}
	})
}
