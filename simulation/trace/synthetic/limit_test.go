package synthetic

import (
	"testing"

	"xce.internal/elastic/cluster"
)

func TestALimitIsNeverLessThanTheRunTime(t *testing.T) {
	for _, how := range []Estimates{Exact, Factor, Usual} {
		if got := limit(seed(1).of(forLimit, 1), how, 1400, 1); got < 1400 {
			t.Errorf("%s: a job of 1.4 s has a limit of %s", how, got)
		}
	}
}

func TestUsualLimitsAreWhatPeopleWrite(t *testing.T) {
	for d, want := range map[cluster.Duration]cluster.Duration{
		1: cluster.Minute, cluster.Minute: cluster.Minute, cluster.Minute + 1: 2 * cluster.Minute,
		5 * cluster.Hour: 6 * cluster.Hour, 14*dayLength + 1: 15 * dayLength,
	} {
		if got := usualLimit(d); got != want {
			t.Errorf("for %s people write %s, want %s", d, got, want)
		}
	}
}
