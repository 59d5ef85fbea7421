package synthetic

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// usualLimits are lengths that people write.
var usualLimits = []cluster.Duration{
	cluster.Minute, 2 * cluster.Minute, 5 * cluster.Minute, 10 * cluster.Minute, 15 * cluster.Minute, 20 * cluster.Minute, 30 * cluster.Minute, 45 * cluster.Minute,
	cluster.Hour, 90 * cluster.Minute, 2 * cluster.Hour, 3 * cluster.Hour, 4 * cluster.Hour, 6 * cluster.Hour, 8 * cluster.Hour, 12 * cluster.Hour, 18 * cluster.Hour,
	24 * cluster.Hour, 36 * cluster.Hour, 48 * cluster.Hour, 72 * cluster.Hour, 96 * cluster.Hour, 120 * cluster.Hour, 168 * cluster.Hour, 336 * cluster.Hour,
}

// usualLimit answers the shortest usual length of at least so much, or whole days beyond them.
func usualLimit(d cluster.Duration) cluster.Duration {
	i, _ := slices.BinarySearch(usualLimits, d)
	if i < len(usualLimits) {
		return usualLimits[i]
	}
	return (d + dayLength - 1) / dayLength * dayLength
}

// limit answers the time limit of a job: never less than it runs.
func limit(draw stream, how Estimates, run cluster.Duration, factor float64) cluster.Duration {
	switch how {
	case None:
		return 0
	case Exact:
		return run
	}
	d := whole(float64(run) * (1 + float64(draw.uniform()*(factor-1))))
	d = max(d, run)
	if how == Usual {
		d = usualLimit(d)
	}
	return d
}

// whole answers a length of time in whole seconds, at least one.
func whole(milliseconds float64) cluster.Duration {
	return max(cluster.Duration(round(milliseconds/1000)), 1) * cluster.Second
}

// queueOf answers the first queue that takes a job of that limit.
func queueOf(queues []Queue, d cluster.Duration) int {
	for i, q := range queues {
		if q.Longest == 0 || d > 0 && d <= q.Longest {
			return i
		}
	}
	return 0 // there are none
}
