package slurm

import (
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// A sentence is logged once, and again when it was not so in between.
func TestChangesOfOthersAreSaidOnce(t *testing.T) {
	var o changesOfOurs
	ours := backend.Resource{Ceiling: 10, Withheld: 4}
	o.note("vcs", ours, 1)
	wrong := backend.Resource{Ceiling: 10, Withheld: 2}
	got := ""
	for _, r := range []backend.Resource{ours, wrong, wrong, ours, wrong} {
		all, fresh := o.news("vcs", r)
		got += strings.Repeat("a", len(all)) + strings.Repeat("f", len(fresh)) + "."
	}
	if want := ".af.a..af."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A change of ours is never someone else's, whatever became of it; what others add is theirs.
func TestWhatOthersAdd(t *testing.T) {
	with := func(n int64) backend.Resource { return backend.Resource{Ceiling: 10, Withheld: n} }
	for name, c := range map[string]struct {
		about []int64 // of commands of which nobody knows what became
		is    int64
		want  int64
		tells bool
	}{
		"nothing":                           {nil, 4, 0, true},
		"two":                               {nil, 6, 2, true},
		"they took two away":                {nil, 2, 0, true},
		"ours, carried out":                 {[]int64{8}, 8, 0, false},
		"ours, not carried out":             {[]int64{8}, 4, 0, false},
		"less of ours, not carried out":     {[]int64{1}, 4, 0, false},
		"less, then more, and who knows":    {[]int64{1, 7}, 4, 0, false},
		"ours, and theirs beyond all of it": {[]int64{8}, 9, 1, false},
	} {
		var o changesOfOurs
		o.note("vcs", with(4), 1)
		for _, n := range c.about {
			o.about("vcs", n, 2)
		}
		if got := o.added("vcs", with(c.is)); got != c.want || o.tells("vcs", with(c.is), 9) != c.tells || o.tells("vcs", with(c.is), 1) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		later := cluster.Time(3).Add(Durable)
		if !o.tells("vcs", with(c.is), later) || o.added("vcs", with(c.is)) != c.want {
			t.Errorf("%s: what is read later does not settle it", name)
		}
	}
	var none changesOfOurs
	none.about("vcs", 3, 1)
	if none.added("vcs", with(9)) != 0 || none.tells("vcs", with(9), 9) {
		t.Error("what was never known is told apart")
	}
}
