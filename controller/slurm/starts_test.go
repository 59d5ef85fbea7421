package slurm

import (
	"testing"

	"xce.internal/elastic/cluster"
)

func TestSinceSlurmctldStarted(t *testing.T) {
	const hour = cluster.Time(cluster.Hour)
	type seen struct{ booted, at cluster.Time }
	for name, c := range map[string]struct {
		seen []seen
		now  cluster.Time
		want cluster.Duration
	}{
		"it runs for long":               {[]seen{{hour, 3 * hour}}, 3 * hour, 2 * cluster.Hour},
		"it starts while we look":        {[]seen{{hour, 3 * hour}, {3 * hour, 3*hour + 5}, {3 * hour, 3*hour + 9}}, 3*hour + 20, 15},
		"its clock is behind":            {[]seen{{hour, 3 * hour}, {2 * hour, 4 * hour}}, 4*hour + 7, 7},
		"its clock is ahead":             {[]seen{{hour, 3 * hour}, {9 * hour, 4 * hour}}, 4*hour + 7, 7},
		"its clock is ahead at ours":     {[]seen{{9 * hour, 4 * hour}}, 4*hour + 7, 7},
		"it starts, and we see it later": {[]seen{{hour, 2 * hour}, {3 * hour, 4 * hour}}, 4*hour + 7, 7},
	} {
		var s starts
		for _, one := range c.seen {
			s.saw(one.booted, one.at)
		}
		if got := s.since(s.booted, c.now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
