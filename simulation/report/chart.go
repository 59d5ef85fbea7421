package report

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

// chart is what the page's script draws. Lists of numbers are texts of differences, each to the number
// before; a difference of 0 is left out between its commas.
type chart struct {
	ID    string `json:"id"`
	Title string `json:"-"`
	Note  string `json:"-"`
	// Kind is "time" for steps over the time, or "share" for shares over a logarithmic axis.
	Kind string `json:"kind"`
	// X and Y name the axes, with their units. Unit is how X or money is shown: "time", "length", "factor".
	X    string `json:"x"`
	Y    string `json:"y"`
	Unit string `json:"unit"`
	// Below names the second axis of a chart that has a part below for what would dwarf the rest.
	Below string `json:"below,omitempty"`
	// Tick is how many milliseconds one of At is, End when the last value ends.
	Tick int64  `json:"tick,omitempty"`
	At   string `json:"at,omitempty"`
	End  int64  `json:"end,omitempty"`
	// Divide is what values are divided by to be shown.
	Divide int64       `json:"divide"`
	Lines  []chartLine `json:"lines"`
	rows   [][]string  // for who has no script
}

// chartLine is one line or area. Its look is a place in the script's lists of colours, dashes and hatches.
type chartLine struct {
	Name  string `json:"name"`
	Look  int    `json:"look"`
	Stack bool   `json:"stack,omitempty"` // an area on those before it
	Below bool   `json:"below,omitempty"` // it is in the part below
	Count int64  `json:"count,omitempty"` // of what a share is
	X     string `json:"x,omitempty"`
	Y     string `json:"y"`
}

// Looks of lines; the script has a colour, a dash, a hatch and a marker for each.
const (
	lookInk = iota
	lookBlue
	lookOrange
	lookGreen
	lookPurple
	lookRed
	lookSky
	lookYellow
)

// steps packs numbers as the differences to those before.
func steps(n int, number func(int) int64) string {
	var text strings.Builder
	last, room := int64(0), []byte(nil)
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		v := number(i)
		if v != last {
			room = strconv.AppendInt(room[:0], v-last, 10)
			text.Write(room)
		}
		last = v
	}
	return text.String()
}

func list(numbers []int64) string {
	return steps(len(numbers), func(i int) int64 { return numbers[i] })
}

// tickOf answers the largest of some steps that all times of the points are multiples of.
func tickOf(s *series.Series) int64 {
	for _, tick := range []int64{int64(cluster.Hour), int64(cluster.Minute), int64(cluster.Second)} {
		whole := int64(s.End)%tick == 0
		for i := 0; whole && i < s.Len(); i++ {
			whole = int64(s.Point(i).At)%tick == 0
		}
		if whole {
			return tick
		}
	}
	return 1
}

// timeChart answers a chart over the time without its lines; none if there is nothing to draw.
func timeChart(id, title, y string, s *series.Series) (*chart, bool) {
	if s == nil || s.Len() == 0 {
		return nil, false
	}
	tick := tickOf(s)
	c := &chart{
		ID: id, Title: title, Kind: "time", X: "time (UTC)", Y: y, Unit: "time", Divide: 1, Tick: tick, End: int64(s.End) / tick,
		At: steps(s.Len(), func(i int) int64 { return int64(s.Point(i).At) / tick }),
	}
	if s.Width > 0 {
		c.Note = fmt.Sprintf("Each point is the mean of %s; sums and extremes in the tables are exact.", short(s.Width))
	}
	return c, true
}

// line adds a line whose values are computed from those of each point.
func (c *chart) line(name string, look int, stack bool, s *series.Series, value func(v []int64) int64) {
	largest, sum := int64(0), int64(0)
	y := steps(s.Len(), func(i int) int64 {
		v := value(s.Point(i).Values)
		largest = max(largest, v)
		sum += v * int64(next(s, i).Sub(s.Point(i).At))
		return v
	})
	c.Lines = append(c.Lines, chartLine{Name: name, Look: look, Stack: stack, Y: y})
	mean := fixed(ratio(sum, 10, max(1, int64(s.End.Sub(s.Point(0).At)))), 1)
	c.rows = append(c.rows, []string{c.Title, name, mean, number(largest)})
}

// below adds a line in the part below, which has an axis of its own: far more can wait than there is.
func (c *chart) below(name, axis string, s *series.Series, value func(v []int64) int64) {
	c.line(name, lookRed, false, s, value)
	c.Lines[len(c.Lines)-1].Below = true
	c.Below = axis
}

// next is when a point ends.
func next(s *series.Series, i int) cluster.Time {
	if i+1 < s.Len() {
		return s.Point(i + 1).At
	}
	return s.End
}

func column(i int) func([]int64) int64 { return func(v []int64) int64 { return v[i] } }

func charts(r *simulation.Result) []*chart {
	all := []*chart{}
	if c, has := timeChart("jobs", "Jobs", "jobs running", r.Jobs); has {
		c.line("running", lookBlue, true, r.Jobs, column(1))
		c.below("waiting", "jobs waiting", r.Jobs, column(0))
		all = append(all, c)
	}
	for i, res := range r.Resources {
		if c, has := timeChart("resource-"+strconv.Itoa(i), "Tokens of "+res.Name, "tokens", res.Series); has {
			c.tokens(res.Series)
			all = append(all, c)
		}
	}
	if c, has := timeChart("hosts", "Hosts by state", "hosts", r.Hosts); has {
		for i, name := range simulation.HostColumns {
			c.line(name, hostLooks[i], true, r.Hosts, column(i))
		}
		all = append(all, c)
	}
	if c, has := costChart(r); has {
		all = append(all, c)
	}
	return append(all, shares(r)...)
}

// hostLooks are the looks of the states of hosts, in the order of HostColumns.
var hostLooks = []int{lookBlue, lookSky, lookYellow, lookPurple, lookGreen, lookOrange, lookRed, lookInk}

func (c *chart) tokens(s *series.Series) {
	const owned, borrowed, lent, used, waiting = 0, 1, 2, 3, 4
	if most(s, lent) > 0 {
		c.line("owned, not lent", lookInk, true, s, func(v []int64) int64 { return v[owned] - v[lent] })
	} else {
		c.line("owned", lookInk, true, s, column(owned))
	}
	c.line("borrowed", lookOrange, true, s, column(borrowed))
	c.line("total", lookInk, false, s, func(v []int64) int64 { return v[owned] + v[borrowed] - v[lent] })
	c.line("in use", lookBlue, false, s, column(used))
	if most(s, lent) > 0 {
		c.line("lent", lookPurple, false, s, column(lent))
	}
	c.below("waiting", "tokens waited for", s, column(waiting))
}

// shares answers the charts of waits and slowdowns.
func shares(r *simulation.Result) []*chart {
	buffer := make([]int64, len(jobsOf(r)))
	queues, causes := byQueue(r), byCause(r)
	queueName := func(name string) string { return named(name, noQueue) }
	cause := func(name string) string { return name }
	all := []*chart{}
	for _, c := range []struct {
		id, title, unit, x, y string
		d                     division
		m                     measure
		names                 func(string) string
	}{
		{"wait-queue", "Wait by queue", "length", "wait (s, m, h, d; logarithmic)", "jobs that waited at most so long (%)", queues, waitOf, queueName},
		{"wait-cause", "Wait by what was waited for longest", "length", "wait (s, m, h, d; logarithmic)", "jobs that waited at most so long (%)", causes, whoWaited(waitOf), cause},
		{"slowdown-queue", "Bounded slowdown by queue", "factor", "bounded slowdown (a factor; logarithmic)", "jobs slowed at most so much (%)", queues, slowdownOf, queueName},
		{"slowdown-cause", "Bounded slowdown by what was waited for longest", "factor", "bounded slowdown (a factor; logarithmic)", "jobs slowed at most so much (%)", causes, whoWaited(slowdownOf), cause},
	} {
		drawn := &chart{ID: c.id, Title: c.title, Kind: "share", X: c.x, Y: c.y, Unit: c.unit, Divide: 1}
		for _, line := range curvesOf(r, c.d, c.m, c.names, buffer) {
			drawn.Lines = append(drawn.Lines, chartLine{Name: line.name, Look: line.group, Count: line.count, X: list(line.x), Y: list(line.y)})
		}
		if len(drawn.Lines) > 0 {
			all = append(all, drawn)
		}
	}
	return all
}

// whoWaited leaves out the jobs that waited for nothing.
func whoWaited(m measure) measure {
	return func(j *trace.Job, o *simulation.Outcome) (int64, bool) {
		v, has := m(j, o)
		return v, has && o.Cause > 0
	}
}

// chartData packs the charts for the script; what could end a script element is escaped.
func chartData(all []*chart) (string, error) {
	text, err := json.Marshal(all)
	return string(text), err
}
