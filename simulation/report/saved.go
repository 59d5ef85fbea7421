package report

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

// What a saved run is made of. Rows have the fields of the types they stand for, in their order, so
// that one can be converted to the other.

// savedFormat and savedVersion begin every saved run.
const (
	savedFormat  = "xce-elastic simulation"
	savedVersion = 1
)

// blockSize is how many jobs, points or changes are written, and held, at once.
const blockSize = 1 << 15

// jobBlock is some jobs as columns. Submit is the difference to the job before, in milliseconds, over
// the borders of blocks; wait is from there to the start and run from there to the end. A job that has
// not started or ended has -1.
type jobBlock struct {
	ID        []int64        `json:"id"`
	Name      map[int]string `json:"name,omitempty"` // by place in the block
	Submit    []int64        `json:"submit"`
	Run       []int64        `json:"trace_run"`
	Limit     []int64        `json:"limit"`
	Waited    []int64        `json:"trace_wait"`
	TokensFor []int64        `json:"tokens_for"`
	Shape     []int64        `json:"shape"` // from 1; 0 means none
	Start     []int64        `json:"wait"`
	End       []int64        `json:"run"`
	Cause     []int64        `json:"cause"`
	State     []int64        `json:"state"`
	Requeues  []int64        `json:"requeues"`
}

// columns are those of the block that every job has a number in.
func (b *jobBlock) columns() []*[]int64 {
	return []*[]int64{
		&b.ID, &b.Submit, &b.Run, &b.Limit, &b.Waited, &b.TokensFor, &b.Shape, &b.Start, &b.End, &b.Cause, &b.State, &b.Requeues,
	}
}

func (b *jobBlock) add(numbers ...int64) {
	for i, column := range b.columns() {
		*column = append(*column, numbers[i])
	}
}

// clear empties the block, keeping its room.
func (b *jobBlock) clear() {
	for _, column := range b.columns() {
		*column = (*column)[:0]
	}
	b.Name = nil
}

type savedSeries struct {
	Columns  []string        `json:"columns"`
	Integral []int64         `json:"integral"`
	Max      []int64         `json:"max"`
	End      int64           `json:"end"`
	Width    int64           `json:"width,omitempty"`
	At       []int64         `json:"at"`     // each the difference to the one before
	Values   map[int][]int64 `json:"values"` // by column; each the difference to the one before
}

type savedResource struct {
	Name   string        `json:"name"`
	Bought int64         `json:"bought_unit_ms"`
	Used   int64         `json:"used_unit_ms"`
	Cost   cluster.Price `json:"cost_millionths"`
	Series *savedSeries  `json:"series"`
}

type savedShape struct {
	cluster.JobSpec
	User        string `json:"user,omitempty"`
	Group       string `json:"group,omitempty"`
	Application string `json:"application,omitempty"`
}

type savedRepair struct {
	Rule   string   `json:"rule"`
	What   string   `json:"what"`
	Count  int64    `json:"count"`
	Places []string `json:"places"`
}

type savedLoan struct {
	ID        string        `json:"id"`
	Provider  string        `json:"provider"`
	Resource  string        `json:"resource"`
	Units     int64         `json:"units"`
	Granted   int64         `json:"granted"`
	Requested cluster.Time  `json:"requested"`
	Committed cluster.Time  `json:"committed"`
	Closed    cluster.Time  `json:"closed"`
	Held      int64         `json:"held_unit_ms"`
	Cost      cluster.Price `json:"cost_millionths"`
	Why       string        `json:"why"`
}

type savedMachine struct {
	ID        string        `json:"id"`
	Template  string        `json:"template"`
	Provider  string        `json:"provider"`
	Name      string        `json:"name"`
	Requested cluster.Time  `json:"requested"`
	Expected  cluster.Time  `json:"expected"`
	Joined    cluster.Time  `json:"joined"`
	Left      cluster.Time  `json:"left"`
	Closed    cluster.Time  `json:"closed"`
	Busy      int64         `json:"busy_ms"`
	Cost      cluster.Price `json:"cost_millionths"`
	Why       string        `json:"why"`
}

type savedProvider struct {
	Name     string       `json:"name"`
	Requests int64        `json:"requests"`
	Granted  int64        `json:"granted"`
	Partial  int64        `json:"partial"`
	Refused  int64        `json:"refused"`
	Unknown  int64        `json:"unknown"`
	Refusals []savedCount `json:"refusals"`
	Flaps    int64        `json:"flaps"`
}

type savedCount struct {
	Name string `json:"name"`
	N    int64  `json:"count"`
}

type savedChange struct {
	At      cluster.Time `json:"at"`
	Subject string       `json:"subject"`
	Before  string       `json:"before"`
	After   string       `json:"after"`
	Cause   string       `json:"cause"`
}

type savedOrder struct {
	At      cluster.Time `json:"at"`
	Do      string       `json:"do"`
	Subject string       `json:"subject"`
	Became  string       `json:"became"`
}

type savedStory struct {
	Job    int         `json:"job"` // its place in the trace, from 0
	Waited int64       `json:"waited_ms"`
	Lines  []savedLine `json:"lines"`
}

type savedLine struct {
	At  cluster.Time `json:"at"`
	Why string       `json:"why"`
}

func saveSeries(s *series.Series) *savedSeries {
	if s == nil {
		return nil
	}
	saved := &savedSeries{
		Columns: s.Columns, Integral: s.Integral, Max: s.Max, End: int64(s.End), Width: int64(s.Width),
		At: make([]int64, s.Len()), Values: map[int][]int64{},
	}
	for c := range s.Columns {
		saved.Values[c] = make([]int64, s.Len())
	}
	at, last := int64(0), make([]int64, len(s.Columns))
	for i := range s.Len() {
		p := s.Point(i)
		saved.At[i], at = int64(p.At)-at, int64(p.At)
		for c, v := range p.Values {
			saved.Values[c][i], last[c] = v-last[c], v
		}
	}
	return saved
}

// series answers the series again; its columns must have been checked.
func (saved *savedSeries) series() *series.Series {
	if saved == nil {
		return nil
	}
	s := series.New(saved.Columns)
	s.Integral, s.Max = saved.Integral, saved.Max
	s.End, s.Width = cluster.Time(saved.End), cluster.Duration(saved.Width)
	at, last := int64(0), make([]int64, len(saved.Columns))
	for i, step := range saved.At {
		at += step
		for c := range last {
			last[c] += saved.Values[c][i]
		}
		s.Append(cluster.Time(at), last...)
	}
	return s
}

func saveProvider(p simulation.ProviderResult) savedProvider {
	saved := savedProvider{Name: p.Name, Requests: p.Requests, Granted: p.Granted, Partial: p.Partial, Refused: p.Refused, Unknown: p.Unknown, Flaps: p.Flaps}
	for _, c := range p.Refusals {
		saved.Refusals = append(saved.Refusals, savedCount(c))
	}
	return saved
}

func (saved savedProvider) provider() simulation.ProviderResult {
	p := simulation.ProviderResult{Name: saved.Name, Requests: saved.Requests, Granted: saved.Granted, Partial: saved.Partial, Refused: saved.Refused, Unknown: saved.Unknown, Flaps: saved.Flaps}
	for _, c := range saved.Refusals {
		p.Refusals = append(p.Refusals, simulation.Count(c))
	}
	return p
}

func saveStory(s simulation.Story) savedStory {
	saved := savedStory{Job: s.Job, Waited: int64(s.Waited)}
	for _, l := range s.Lines {
		saved.Lines = append(saved.Lines, savedLine(l))
	}
	return saved
}

func (saved savedStory) story() simulation.Story {
	s := simulation.Story{Job: saved.Job, Waited: cluster.Duration(saved.Waited)}
	for _, l := range saved.Lines {
		s.Lines = append(s.Lines, simulation.StoryLine(l))
	}
	return s
}

func saveShape(s *trace.Shape) savedShape { return savedShape(*s) }

func (saved savedShape) shape() *trace.Shape { s := trace.Shape(saved); return &s }
