package slurm

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// facts are those of a reading in which licence foo has a total; of less than zero it is gone.
func facts(running, nodes, total, used int64) Facts {
	f := Facts{Booted: 1, counts: map[fact]int64{{what: runningJobs}: running, {what: allNodes}: nodes}}
	if total >= 0 {
		f.counts[fact{ofTotal, "foo"}], f.counts[fact{ofUsed, "foo"}] = total, used
	}
	return f
}

// booted are facts that tell of another start.
func (f Facts) booted(at cluster.Time) Facts { f.Booted = at; return f }

func TestGuard(t *testing.T) {
	full, gone := facts(10, 10, 10, 10), facts(10, 10, -1, 0)
	restarted := facts(0, 10, 10, 0).booted(2)
	for name, c := range map[string]struct {
		// Readings are a bit more than two seconds apart, and each is not acted upon (-), believed (+), or licence foo is doubted (?).
		readings []Facts
		want     string
	}{
		"our own start":                           {[]Facts{full, full, full}, "-++"},
		"our own start, into a fall":              {[]Facts{full, facts(0, 10, 10, 10), full}, "--+"},
		"slurmctld starts and has its jobs late":  {[]Facts{full, full, restarted, full.booted(2), full.booted(2)}, "-+-++"},
		"slurmctld starts and has lost its jobs":  {[]Facts{full, full, restarted, restarted}, "-+-+"},
		"slurmctld starts without its tokens":     {[]Facts{full, full, facts(10, 10, 10, 0).booted(2), facts(10, 10, 10, 10).booted(2), facts(10, 10, 10, 0).booted(2)}, "-+-+?"},
		"a fall that lasts":                       {[]Facts{full, full, facts(1, 10, 10, 10), facts(1, 10, 10, 10), full}, "-+-++"},
		"a fall that does not last":               {[]Facts{full, full, facts(1, 10, 10, 10), full, full}, "-+-++"},
		"a fall that goes on falling":             {[]Facts{full, full, facts(4, 10, 10, 10), facts(0, 10, 10, 10), facts(0, 10, 10, 10)}, "-+--+"},
		"a fall that comes again":                 {[]Facts{full, full, facts(4, 10, 10, 10), full, facts(4, 10, 10, 10), facts(4, 10, 10, 10)}, "-+-+-+"},
		"a fall of another thing does not do":     {[]Facts{full, full, facts(0, 10, 10, 10), facts(10, 2, 10, 10), facts(10, 2, 10, 10)}, "-+--+"},
		"two falls, one of them new":              {[]Facts{full, full, facts(0, 10, 10, 10), facts(0, 3, 10, 10), facts(0, 3, 10, 10)}, "-+--+"},
		"half is no sudden fall":                  {[]Facts{full, full, facts(5, 5, 5, 5)}, "-++"},
		"more than half is":                       {[]Facts{full, full, facts(4, 10, 10, 10)}, "-+-"},
		"two jobs that end are daily business":    {[]Facts{facts(2, 10, 10, 2), facts(2, 10, 10, 2), facts(0, 10, 10, 0)}, "-++"},
		"the last two nodes are not":              {[]Facts{facts(0, 2, 10, 0), facts(0, 2, 10, 0), facts(0, 0, 10, 0)}, "-+-"},
		"a rise is no fall":                       {[]Facts{facts(0, 1, 1, 0), facts(0, 1, 1, 0), full}, "-++"},
		"tokens fall, and nothing else is held":   {[]Facts{full, full, facts(10, 10, 10, 0), facts(10, 10, 10, 0)}, "-+?+"},
		"tokens fall, and come back":              {[]Facts{full, full, facts(10, 10, 10, 0), full, full}, "-+?++"},
		"tokens are doubted while jobs are":       {[]Facts{full, full, facts(0, 10, 10, 0), facts(0, 10, 10, 0)}, "-+-+"},
		"jobs are still doubted, tokens no more":  {[]Facts{full, full, facts(4, 10, 10, 0), facts(1, 10, 10, 0), facts(1, 10, 10, 0), facts(1, 10, 10, 0)}, "-+--++"},
		"a total to zero":                         {[]Facts{facts(0, 2, 1, 0), facts(0, 2, 1, 0), facts(0, 2, 0, 0), facts(0, 2, 0, 0)}, "-+?+"},
		"a licence that is gone, and stays so":    {[]Facts{full, full, gone, gone, full}, "-+?++"},
		"a licence that is gone, and comes back":  {[]Facts{full, full, gone, full}, "-+?+"},
		"a licence that was never there may come": {[]Facts{gone, gone, full}, "-++"},
	} {
		t.Run(name, func(t *testing.T) {
			var g Guard
			got := ""
			for i, f := range c.readings {
				f.At = cluster.Time(i) * cluster.Time(lastsFor+100)
				next, doubted, err := g.Judge(f)
				g = next
				got += verdict(t, doubted, err)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func verdict(t *testing.T, doubted map[string]string, err error) string {
	t.Helper()
	var not *backend.NotYet
	switch {
	case err != nil && !errors.As(err, &not):
		t.Fatalf("%v is no NotYet", err)
	case err != nil:
		return "-"
	case doubted["foo"] != "":
		return "?"
	}
	return "+"
}

// Two readings at once see the same moment: what one doubts the other does not confirm.
func TestADoubtLasts(t *testing.T) {
	full, fallen := facts(10, 10, 10, 10), facts(0, 10, 10, 10)
	for name, c := range map[string]struct {
		fallen []cluster.Duration // when it is read, after the first time
		want   string
	}{
		"at once":        {[]cluster.Duration{0, 0, 1, lastsFor - 1}, "----"},
		"long enough":    {[]cluster.Duration{0, lastsFor}, "-+"},
		"and goes on so": {[]cluster.Duration{0, 500, 1500, lastsFor, lastsFor + 1}, "---++"},
		"time goes back": {[]cluster.Duration{0, -5 * lastsFor, lastsFor}, "--+"},
	} {
		var g Guard
		for range 2 {
			g, _, _ = g.Judge(full)
		}
		got := ""
		for _, after := range c.fallen {
			f := fallen
			f.At = cluster.Time(100 * cluster.Second).Add(after)
			next, doubted, err := g.Judge(f)
			g = next
			got += verdict(t, doubted, err)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestFactsAreOfOurLicencesAlone(t *testing.T) {
	r := reading{
		at: 7, settings: Settings{Booted: 3}, jobs: []Job{{State: "RUNNING"}, {State: "PENDING"}, {State: "COMPLETING"}}, nodes: []Node{{}},
		licences: map[string]Licence{"foo": {Total: 10, Used: 4}, "other": {Total: 99}},
	}
	got := factsOf(r, []string{"foo", "gone"})
	want := facts(2, 1, 10, 4).booted(3)
	if want.At = 7; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Whatever is read: what fell far from what was last believed is believed only when it has lasted, and one that
// is read again later is believed at the latest.
func TestGuardBelievesFallsThatLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Guard
		n := rapid.Int64Range(-1, 20)
		var read []Facts
		believed := map[fact]int64{}
		for range rapid.IntRange(2, 12).Draw(t, "readings") {
			now := facts(max(n.Draw(t, "running"), 0), max(n.Draw(t, "nodes"), 0), n.Draw(t, "total"), max(n.Draw(t, "used"), 0)).booted(cluster.Time(rapid.IntRange(1, 8).Draw(t, "start") / 8))
			if len(read) > 0 {
				if rapid.Bool().Draw(t, "same again") {
					now = read[len(read)-1]
				}
				now.At = read[len(read)-1].At.Add(cluster.Duration(rapid.Int64Range(0, 3000).Draw(t, "after")))
			}
			next, doubted, err := g.Judge(now)
			if err == nil {
				for f := range fallsFrom(Facts{counts: believed}, now) {
					if _, is := doubted[f.licence]; is {
						continue
					}
					lasted := slices.ContainsFunc(read, func(r Facts) bool {
						_, fell := fallsFrom(Facts{counts: believed}, r)[f]
						return fell && now.At.Sub(r.At) >= lastsFor
					})
					if !lasted {
						t.Fatalf("%s fell, and that was believed at once", f)
					}
				}
				for f := range believed {
					if _, is := doubted[f.licence]; !is {
						delete(believed, f)
					}
				}
				for f, count := range now.counts {
					if _, is := doubted[f.licence]; !is {
						believed[f] = count
					}
				}
			} else if len(read) == 0 {
				maps.Copy(believed, now.counts)
			}
			later := now
			later.At = now.At.Add(lastsFor)
			if _, doubted, err := next.Judge(later); err != nil || len(doubted) > 0 {
				t.Fatalf("read twice and not believed: %v, %v", doubted, err)
			}
			g, read = next, append(read, now)
		}
	})
}
