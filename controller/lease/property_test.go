package lease

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

// world drives a book with provisioners that come, go, stall and obey.
type world struct {
	Book
	now    cluster.Time
	epochs map[string]int64
	// may is what each provisioner believes that it may do, by its own clock: until when.
	may map[string]map[string]belief
}

type belief struct {
	epoch int64
	until cluster.Time
}

func (w *world) took(changes []Change) {
	for _, c := range changes {
		w.epochs[c.After.Provider] = max(w.epochs[c.After.Provider], c.After.Epoch)
	}
}

func (w *world) call(t *rapid.T, name string, c Call) {
	asked := w.now
	changes, err := w.Tend(c, w.now, rules)
	w.took(changes)
	if err != nil {
		return
	}
	held := map[string]belief{}
	for _, l := range w.Held(name) {
		held[l.Provider] = belief{l.Epoch, asked.Add(rules.TimeToLive)}
	}
	w.may[name+c.Instance] = held
}

// check: no two believe that they may act for one provider at one time, and who
// does is let in.
func (w *world) check(t *rapid.T) {
	acts := map[string]string{}
	for process, held := range w.may {
		for provider, b := range held {
			if b.until <= w.now {
				continue
			}
			if other, two := acts[provider]; two {
				t.Fatalf("%s and %s both act for %s at %d", other, process, provider, w.now)
			}
			acts[provider] = process
			if err := w.Check(provider, process[:1], b.epoch, w.now); err != nil {
				t.Fatalf("%s holds %s and is refused: %v", process, provider, err)
			}
		}
	}
	if !slices.IsSortedFunc(w.Leases, func(a, b cluster.Lease) int { return cmp.Compare(a.Provider, b.Provider) }) ||
		!slices.IsSortedFunc(w.Provisioners, func(a, b cluster.Provisioner) int { return cmp.Compare(a.Name, b.Name) }) {
		t.Fatal("the book is out of order")
	}
}

func TestNoTwoEverActForOneProviderAndEpochsNeverFall(t *testing.T) {
	providers := []string{"p", "q", "r", "s", "t"}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{Book: Book{Providers: providers}, epochs: map[string]int64{}, may: map[string]map[string]belief{}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.now = w.now.Add(cluster.Duration(rapid.IntRange(0, 20_000).Draw(t, "pause")))
			before := slices.Clone(w.Leases)
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				changes, _ := w.Move(rapid.SampledFrom(providers).Draw(t, "provider"), name, w.now)
				w.took(changes)
			default:
				process := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "process")
				c := Call{
					Name: name, Instance: process, Stops: rapid.IntRange(0, 19).Draw(t, "stops") == 0,
					Owns: rapid.SliceOfDistinct(rapid.SampledFrom(providers), rapid.ID).Draw(t, "owns"), Prefers: rapid.SliceOfN(rapid.SampledFrom(providers), 0, 2).Draw(t, "prefers"),
					Gives: rapid.SliceOfN(rapid.SampledFrom(providers), 0, 1).Draw(t, "gives"),
				}
				w.call(t, name, c)
			}
			for i, l := range before {
				if l.Epoch > w.Leases[i].Epoch || l.Holder != w.Leases[i].Holder && w.Leases[i].Holder != "" && l.Epoch == w.Leases[i].Epoch {
					t.Fatalf("%+v became %+v", l, w.Leases[i])
				}
			}
			w.check(t)
		}
	})
}

// Whoever is there and stays gets all that can be had, evenly, and then nothing moves.
func TestLeasesComeToRestEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		providers := []string{"p", "q", "r", "s", "t", "u"}[:rapid.IntRange(1, 6).Draw(t, "providers")]
		names := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "provisioners")]
		w := &world{Book: Book{Providers: providers}, epochs: map[string]int64{}, may: map[string]map[string]belief{}}
		come := map[string]cluster.Time{}
		for _, n := range names {
			come[n] = cluster.Time(rapid.IntRange(0, 300_000).Draw(t, "comes"))
		}
		round := func() (moved bool) {
			w.now = w.now.Add(5 * cluster.Second)
			before := slices.Clone(w.Leases)
			for _, n := range names {
				if w.now < come[n] {
					continue
				}
				c := Call{Name: n, Instance: "1", Owns: providers}
				for _, l := range w.Held(n) {
					if l.MoveTo != "" {
						c.Gives = append(c.Gives, l.Provider)
					}
				}
				w.call(t, n, c)
			}
			return !slices.Equal(before, w.Leases)
		}
		for w.now < 600_000 {
			round()
		}
		for range 40 {
			if round() {
				t.Fatalf("a lease moves without need: %+v", w.Leases)
			}
		}
		least, most := len(providers), 0
		for _, n := range names {
			least, most = min(least, len(w.Held(n))), max(most, len(w.Held(n)))
		}
		if most-least > 1 {
			t.Fatalf("leases are uneven: %+v", w.Leases)
		}
	})
}
