package slurm

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

func facts(running, nodes, total, used int64) Facts {
	return Facts{Booted: 1, Running: running, Nodes: nodes, Total: map[string]int64{"vcs": total}, Used: map[string]int64{"vcs": used}}
}

func TestGuard(t *testing.T) {
	full := facts(10, 10, 10, 10)
	gone := full
	gone.Total = map[string]int64{}
	restarted := facts(0, 10, 10, 0)
	restarted.Booted = 2
	back := full
	back.Booted = 2
	both := facts(0, 10, 10, 0)
	for name, c := range map[string]struct {
		readings []Facts
		acted    []bool
	}{
		"our own start":                           {[]Facts{full, full, full}, []bool{false, true, true}},
		"our own start, into a fall":              {[]Facts{full, facts(0, 10, 10, 10), full}, []bool{false, false, true}},
		"slurmctld starts and has its jobs late":  {[]Facts{full, full, restarted, back, back}, []bool{false, true, false, true, true}},
		"slurmctld starts and has lost its jobs":  {[]Facts{full, full, restarted, restarted}, []bool{false, true, false, true}},
		"a fall that lasts":                       {[]Facts{full, full, facts(1, 10, 10, 10), facts(1, 10, 10, 10), full}, []bool{false, true, false, true, true}},
		"a fall that does not last":               {[]Facts{full, full, facts(1, 10, 10, 10), full, full}, []bool{false, true, false, true, true}},
		"a fall that goes on falling":             {[]Facts{full, full, facts(4, 10, 10, 10), facts(0, 10, 10, 10), facts(0, 10, 10, 10)}, []bool{false, true, false, false, true}},
		"a fall of another thing does not do":     {[]Facts{full, full, facts(0, 10, 10, 10), facts(10, 10, 10, 0), facts(10, 10, 10, 0)}, []bool{false, true, false, false, true}},
		"two falls, one of them new":              {[]Facts{full, full, facts(0, 10, 10, 10), both, both}, []bool{false, true, false, false, true}},
		"half is no sudden fall":                  {[]Facts{full, full, facts(5, 5, 5, 5)}, []bool{false, true, true}},
		"more than half is":                       {[]Facts{full, full, facts(4, 10, 10, 10)}, []bool{false, true, false}},
		"two jobs that end are daily business":    {[]Facts{facts(2, 10, 10, 2), facts(2, 10, 10, 2), facts(0, 10, 10, 0)}, []bool{false, true, true}},
		"the last two nodes are not":              {[]Facts{facts(0, 2, 10, 0), facts(0, 2, 10, 0), facts(0, 0, 10, 0)}, []bool{false, true, false}},
		"a total to zero":                         {[]Facts{facts(0, 2, 1, 0), facts(0, 2, 1, 0), facts(0, 2, 0, 0)}, []bool{false, true, false}},
		"a licence that is gone, and stays so":    {[]Facts{full, full, gone, gone}, []bool{false, true, false, true}},
		"a rise is no fall":                       {[]Facts{facts(0, 1, 1, 0), facts(0, 1, 1, 0), full}, []bool{false, true, true}},
		"a licence that was never there may come": {[]Facts{gone, gone, full}, []bool{false, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var g Guard
			for i, f := range c.readings {
				var err error
				g, err = g.Judge(f)
				var not *backend.NotYet
				if err != nil && !errors.As(err, &not) {
					t.Fatalf("reading %d: %v is no NotYet", i, err)
				}
				if (err == nil) != c.acted[i] {
					t.Fatalf("reading %d: acted upon %v, want %v (%v)", i, err == nil, c.acted[i], err)
				}
			}
		})
	}
}

func drawFacts(t *rapid.T, name string, booted cluster.Time) Facts {
	n := rapid.Int64Range(0, 20)
	f := facts(n.Draw(t, name+" running"), n.Draw(t, name+" nodes"), n.Draw(t, name+" total"), n.Draw(t, name+" used"))
	if rapid.IntRange(0, 5).Draw(t, name+" gone") == 0 {
		f.Total = map[string]int64{}
	}
	f.Booted = booted
	return f
}

// Whatever is read, a reading that falls far from what was last acted upon is acted
// upon only when the one before fell likewise; and one that is read twice is acted
// upon the second time at the latest.
func TestGuardActsOnFallsThatLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Guard
		var acted, last *Facts
		booted := cluster.Time(1)
		for range rapid.IntRange(2, 12).Draw(t, "readings") {
			if rapid.IntRange(0, 7).Draw(t, "restart") == 0 {
				booted++
			}
			now := drawFacts(t, "next", booted)
			if last != nil && rapid.Bool().Draw(t, "same again") {
				booted = last.Booted
				now = *last
			}
			next, err := g.Judge(now)
			if err == nil {
				if last == nil || last.Booted != now.Booted {
					t.Fatal("the first reading after a start was acted upon")
				}
				if acted != nil {
					for what := range fallsFrom(*acted, now) {
						if _, ok := fallsFrom(*acted, *last)[what]; !ok {
							t.Fatalf("%s fell in one reading, and that was acted upon", what)
						}
					}
				}
				acted = &now
			}
			if _, again := next.Judge(now); again != nil {
				t.Fatalf("read twice and not acted upon: %v", again)
			}
			g, last = next, &now
		}
	})
}
