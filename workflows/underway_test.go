package workflows

import (
	"testing"

	"xce.internal/elastic/cluster"
)

func TestHostsThatComeLateIntoTheBooksAreNotTakenForOthers(t *testing.T) {
	h := &ProviderHosts{}
	look := func(when string, made int64, now cluster.Time, want int64) {
		t.Helper()
		if n := h.underway("c16", made, now); n != want {
			t.Errorf("%s: %d are underway, want %d", when, n, want)
		}
	}
	start := func(n int64, now cluster.Time) {
		for range n {
			h.Numbers["c16"]++
		}
		h.Begun["c16"] = now
	}
	h.Numbers, h.Begun = map[string]int64{}, map[string]cluster.Time{}
	look("at first", 0, 0, 0)
	start(3, 1000)
	look("started", 0, 2000, 3)
	look("one is in the books", 1, 3000, 2)
	look("two do not show", 1, 62_000, 0)
	start(2, 70_000)
	look("two more are started", 1, 71_000, 2)
	look("all show, also those that are late", 5, 72_000, 0)
	start(2, 73_000)
	look("two more are started", 5, 74_000, 2)
	look("one of them shows", 6, 75_000, 1)
	look("both show", 7, 76_000, 0)
}
