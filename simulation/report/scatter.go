package report

import (
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// scatter is the drawing of wait against cost: runs as points, and the frontier as steps. Places are
// in pixels.
type scatter struct {
	Width, Height            int64
	Left, Right, Top, Bottom int64
	Across, Up               []scatterTick
	Points                   []point
	Line                     string
	Scale                    string
}

type scatterTick struct {
	At   int64
	Text string
}

// point is a run in the drawing: Kind is "best", "other", "base" or "fewer".
type point struct {
	X, Y        int64
	Kind        string
	Text, About string
	End         bool // the text stands before the point
}

func scatterOf(runs []Run, width, height int64) scatter {
	s := scatter{Width: width, Height: height, Left: 64, Right: width - 16, Top: 26, Bottom: height - 44}
	across, up := costAxis(runs), waitAxis(runs)
	s.Scale = "linear"
	if up.log {
		s.Scale = "logarithmic"
	}
	x := func(v int64) int64 { return s.Left + across.place(v, s.Right-s.Left) }
	y := func(v int64) int64 { return s.Bottom - up.place(v, s.Bottom-s.Top) }
	for _, v := range across.ticks(max((s.Right-s.Left)/90, 2)) {
		s.Across = append(s.Across, scatterTick{x(v), cluster.Price(v).String()})
	}
	for _, v := range up.ticks(max((s.Bottom-s.Top)/45, 2)) {
		s.Up = append(s.Up, scatterTick{y(v), short(cluster.Duration(v))})
	}
	unbeaten, most := Unbeaten(runs), mostEnded(runs)
	for i := range runs {
		r := &runs[i]
		p := point{X: x(int64(r.Summary.Cost.Total)), Y: y(r.Summary.Wait.Mean), Kind: kind(r, unbeaten[i], most), Text: number(int64(i + 1)), About: about(r)}
		if r.Baseline {
			p.Text = r.name()
		}
		p.End = p.X > (s.Left+s.Right)/2
		s.Points = append(s.Points, p)
	}
	s.Line = s.frontierLine(runs, byCost(runs, unbeaten))
	return s
}

func kind(r *Run, unbeaten bool, most int64) string {
	switch mark(r, unbeaten, most) {
	case markBest:
		return "best"
	case markBaseline:
		return "base"
	case markFewer:
		return "fewer"
	}
	return "other"
}

// frontierLine goes down by steps from the cheapest run to the dearest.
func (s *scatter) frontierLine(runs []Run, order []int) string {
	var line strings.Builder
	for n, i := range order {
		p := s.Points[i]
		if n == 0 {
			fmt.Fprintf(&line, "M%d %d", p.X, p.Y)
		} else {
			fmt.Fprintf(&line, "H%dV%d", p.X, p.Y)
		}
	}
	return line.String()
}

// axis is a range of numbers, from 0 or, where they are too different, by powers.
type axis struct {
	low, high int64
	log       bool
	steps     []int64 // what ticks may be multiples of, or for a logarithmic one the ticks
}

func costAxis(runs []Run) axis {
	a := axis{high: 1}
	for i := range runs {
		a.high = max(a.high, int64(runs[i].Summary.Cost.Total))
	}
	for ten := int64(10_000); ten <= a.high*10 && ten < 1<<58; ten *= 10 {
		a.steps = append(a.steps, ten, 2*ten, 5*ten)
	}
	return a
}

// spreadWide is how many times the least wait the largest must be for powers to be drawn.
const spreadWide = 50

func waitAxis(runs []Run) axis {
	a := axis{low: 1 << 62, high: floor, steps: waitSteps}
	for i := range runs {
		wait := max(runs[i].Summary.Wait.Mean, floor)
		a.low, a.high = min(a.low, wait), max(a.high, wait)
	}
	if a.log = len(runs) > 0 && a.high/a.low >= spreadWide; !a.log {
		a.low = 0
		return a
	}
	for _, v := range waitSteps { // from a tick to a tick
		if v <= a.low {
			a.steps = nil
		}
		if a.steps = append(a.steps, v); v >= a.high {
			break
		}
	}
	a.low, a.high = min(a.low, a.steps[0]), max(a.high, a.steps[len(a.steps)-1])
	return a
}

// waitSteps are lengths of time that people count in.
var waitSteps = waitStepsFrom(
	cluster.Second, 2*cluster.Second, 5*cluster.Second, 10*cluster.Second, 30*cluster.Second, cluster.Minute, 2*cluster.Minute, 5*cluster.Minute,
	10*cluster.Minute, 30*cluster.Minute, cluster.Hour, 2*cluster.Hour, 6*cluster.Hour, 12*cluster.Hour, day, 2*day, 5*day, 10*day, 20*day, 50*day, 100*day, 1000*day)

func waitStepsFrom(lengths ...cluster.Duration) (steps []int64) {
	for _, d := range lengths {
		steps = append(steps, int64(d))
	}
	return steps
}

// place answers how far along an axis of so many pixels a number is.
func (a axis) place(v, pixels int64) int64 {
	if !a.log {
		return ratio(v-a.low, pixels, a.high-a.low)
	}
	v = max(v, a.low)
	return ratio(powers(v)-powers(a.low), pixels, powers(a.high)-powers(a.low))
}

// powers answers the logarithm of v to the base of 2, in thousandths, with straight lines between the
// powers: whole numbers are the same on every machine.
func powers(v int64) int64 {
	whole, rest := int64(0), v
	for rest > 1 {
		rest >>= 1
		whole++
	}
	return whole*1000 + ratio(v-1<<whole, 1000, 1<<whole)
}

// ticks answers about so many numbers at most.
func (a axis) ticks(most int64) (ticks []int64) {
	if a.log {
		every := max((len(a.steps)+int(most)-1)/int(most), 1)
		for i := 0; i < len(a.steps); i += every {
			ticks = append(ticks, a.steps[i])
		}
		return ticks
	}
	step := a.high
	for _, s := range a.steps {
		if a.high/s <= most {
			step = s
			break
		}
	}
	for v := int64(0); v <= a.high; v += max(step, 1) {
		ticks = append(ticks, v)
	}
	return ticks
}
