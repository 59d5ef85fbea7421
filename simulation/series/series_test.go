package series

import (
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestSumsAndExtremesAreExactHoweverFewPointsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New([]string{"a", "b"})
		s.most = rapid.IntRange(4, 40).Draw(t, "most")
		var now cluster.Time
		var last [2]int64
		var integral, most [2]int64
		began := now
		for i := range rapid.IntRange(1, 300).Draw(t, "changes") {
			step := rapid.Int64Range(0, 5000).Draw(t, "step")
			if i > 0 {
				for c := range last {
					integral[c] += last[c] * step
				}
				now = now.Add(cluster.Duration(step))
			}
			for c := range last {
				last[c] = rapid.Int64Range(0, 50).Draw(t, "value")
				most[c] = max(most[c], last[c])
			}
			s.Note(now, last[0], last[1])
		}
		for c := range last {
			if s.Integral[c] != integral[c] || s.Max[c] != most[c] {
				t.Fatalf("column %d: integral %d, want %d; most %d, want %d", c, s.Integral[c], integral[c], s.Max[c], most[c])
			}
		}
		if s.Len() > s.most || s.End != now {
			t.Fatalf("%d points until %d", s.Len(), s.End)
		}
		checkArea(t, s, began, integral[0])
	})
}

// checkArea checks that the points have about the area of the changes: each is rounded by half.
func checkArea(t *rapid.T, s *Series, began cluster.Time, want int64) {
	var area int64
	for i := range s.Len() {
		p := s.Point(i)
		end := s.End
		if i+1 < s.Len() {
			end = s.Point(i + 1).At
		}
		if p.At < began || i > 0 && p.At <= s.Point(i-1).At && s.Width == 0 {
			t.Fatalf("point %d is at %d", i, p.At)
		}
		area += p.Values[0] * int64(end.Sub(p.At))
	}
	slack := int64(0)
	if s.Width > 0 {
		slack = int64(s.End.Sub(began)) + 60*int64(s.Width)
	}
	if area < want-slack || area > want+slack {
		t.Fatalf("the points have an area of %d, the changes of %d; a point is %d wide", area, want, s.Width)
	}
}
