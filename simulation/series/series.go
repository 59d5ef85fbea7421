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
	// blocks are the points, so many in each: plain numbers, a time and its values for every point.
	blocks [][]int64
	points int
}

// inBlock is how many points a block has.
const inBlock = 512

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

// Len answers how many points there are.
func (s *Series) Len() int { return s.points }

// Point answers one of the points. Its values are the series' own.
func (s *Series) Point(i int) Point {
	width := 1 + len(s.Columns)
	row := s.blocks[i/inBlock][i%inBlock*width:][:width]
	return Point{cluster.Time(row[0]), row[1:]}
}

// Append adds a point after the others.
func (s *Series) Append(at cluster.Time, values ...int64) {
	if s.points%inBlock == 0 {
		s.blocks = append(s.blocks, make([]int64, 0, inBlock*(1+len(s.Columns))))
	}
	last := &s.blocks[len(s.blocks)-1]
	*last = append(append(*last, int64(at)), values...)
	s.points++
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
		s.Append(at, values...)
	case s.Width > 0:
	case slices.Equal(values, s.last.Values):
	case s.newest().At == at:
		copy(s.newest().Values, values)
	default:
		s.Append(at, values...)
	}
	s.last.At, s.End = at, at
	copy(s.last.Values, values)
	if s.Width == 0 && s.points > s.most {
		s.merge()
	}
}

// newest answers the last point.
func (s *Series) newest() Point { return s.Point(s.points - 1) }

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
func (s *Series) edge() cluster.Time { return s.newest().At.Add(s.Width) }

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
	last := s.newest().Values
	for i := range last {
		last[i] = (s.area[i] + int64(s.Width)/2) / int64(s.Width)
		s.area[i] = 0
	}
	s.Append(edge, s.last.Values...)
	if s.points > s.most {
		s.merge()
	}
}

// merge makes the points means over so long that half of the places are free.
func (s *Series) merge() {
	whole := s.last.At.Sub(s.Point(0).At)
	width := max(2*whole/cluster.Duration(s.most)+1, 2*s.Width)
	n := len(s.area)
	merged := &Series{
		Columns: s.Columns, Integral: make([]int64, n), Max: slices.Clone(s.Max),
		Width: width, most: s.most, area: make([]int64, n),
	}
	for i := range s.points {
		p := s.Point(i)
		merged.Note(p.At, p.Values...)
	}
	merged.Note(s.last.At, s.last.Values...)
	merged.Integral, merged.Max = s.Integral, s.Max
	*s = *merged
}
