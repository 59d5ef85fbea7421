// Package series keeps whole numbers that change over time: exact sums and extremes, and at most so
// many points, which are merged where there would be more.
package series

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// Series is some columns of numbers over time. A point holds until the next one.
type Series struct {
	Columns []string
	Points  []Point
	// Integral is, by column, the sum of value times milliseconds until End; Max is the
	// largest value. Both are exact, however many points were merged.
	Integral, Max []int64
	End           cluster.Time
	// Width is how long each point is the mean of, where there would be too many otherwise; 0
	// where every change has its point.
	Width cluster.Duration

	most int
	last Point // as it is now
	// area is, by column, the sum of value times milliseconds of the point that is being made.
	area []int64
	room []int64 // for the values of points to come
}

// Point is the values from a time on.
type Point struct {
	At     cluster.Time
	Values []int64
}

// MostPoints is how many points a series keeps.
const MostPoints = 100_000

// New makes an empty series.
func New(columns []string) *Series {
	n := len(columns)
	return &Series{Columns: columns, most: MostPoints, Integral: make([]int64, n), Max: make([]int64, n), area: make([]int64, n)}
}

// Note takes what the values are from now on. Times never go back.
func (s *Series) Note(at cluster.Time, values ...int64) {
	began := s.last.Values != nil
	if began {
		s.pass(at)
	}
	for i, v := range values {
		s.Max[i] = max(s.Max[i], v)
	}
	switch {
	case !began:
		s.last.Values = make([]int64, len(values))
		s.point(at, values)
	case s.Width > 0:
	case slices.Equal(values, s.last.Values):
	case s.Points[len(s.Points)-1].At == at:
		copy(s.Points[len(s.Points)-1].Values, values)
	default:
		s.point(at, values)
	}
	s.last.At, s.End = at, at
	copy(s.last.Values, values)
	if s.Width == 0 && len(s.Points) > s.most {
		s.merge()
	}
}

// point adds a point. The values of many are in one piece of memory.
func (s *Series) point(at cluster.Time, values []int64) {
	const many = 256
	n := len(values)
	if len(s.room) < n {
		s.room = make([]int64, many*n)
	}
	kept := s.room[:n:n]
	s.room = s.room[n:]
	copy(kept, values)
	s.Points = append(s.Points, Point{at, kept})
}

// pass lets time pass with the values as they are.
func (s *Series) pass(to cluster.Time) {
	for s.Width > 0 && s.edge() <= to {
		edge := s.edge()
		s.add(edge)
		s.close(edge)
	}
	s.add(to)
}

// edge is where the point that is being made ends.
func (s *Series) edge() cluster.Time { return s.Points[len(s.Points)-1].At.Add(s.Width) }

func (s *Series) add(to cluster.Time) {
	d := int64(to.Sub(s.last.At))
	for i, v := range s.last.Values {
		s.Integral[i] += v * d
		s.area[i] += v * d
	}
	s.last.At = to
}

// close ends the point that is being made, and begins the next.
func (s *Series) close(edge cluster.Time) {
	last := s.Points[len(s.Points)-1].Values
	for i := range last {
		last[i] = (s.area[i] + int64(s.Width)/2) / int64(s.Width)
		s.area[i] = 0
	}
	s.point(edge, s.last.Values)
	if len(s.Points) > s.most {
		s.merge()
	}
}

// merge makes the points means over so long that half of the places are free.
func (s *Series) merge() {
	whole := s.last.At.Sub(s.Points[0].At)
	width := max(2*whole/cluster.Duration(s.most)+1, 2*s.Width)
	n := len(s.area)
	merged := &Series{
		Columns: s.Columns, Points: make([]Point, 0, s.most+1), Integral: make([]int64, n), Max: slices.Clone(s.Max),
		Width: width, most: s.most, area: make([]int64, n),
	}
	for _, p := range s.Points {
		merged.Note(p.At, p.Values...)
	}
	merged.Note(s.last.At, s.last.Values...)
	merged.Integral, merged.Max = s.Integral, s.Max
	*s = *merged
}
