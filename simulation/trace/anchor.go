package trace

import "xce.internal/elastic/cluster"

// longAgo is before any calendar that a trace could have.
const longAgo = cluster.Time(1_000_000_000_000 / 2)

// Anchor puts a trace whose times count from nothing onto the calendar: its time 0 becomes `at`. One that has a
// calendar stays as it is.
func (t *Trace) Anchor(at cluster.Time) {
	if len(t.Jobs) == 0 || t.Jobs[0].Submit > longAgo {
		return
	}
	for i := range t.Jobs {
		t.Jobs[i].Submit += at
	}
}
