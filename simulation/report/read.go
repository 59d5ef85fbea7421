package report

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
	"xce.internal/elastic/simulation/trace"
)

// Load reads a saved run from a file.
func Load(path string) (*simulation.Result, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	r, err := ReadJSON(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// ReadJSON reads what JSON has written, packed by gzip or not.
func ReadJSON(from io.Reader) (*simulation.Result, error) {
	in := bufio.NewReaderSize(from, 1<<16)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		packed, err := gzip.NewReader(in)
		if err != nil {
			return nil, broken(err)
		}
		in = bufio.NewReaderSize(packed, 1<<16)
	}
	f := &reading{in: json.NewDecoder(in), r: &simulation.Result{}}
	if err := f.object(); err != nil {
		return nil, broken(err)
	}
	if err := f.check(); err != nil {
		return nil, broken(err)
	}
	return f.r, nil
}

func broken(err error) error {
	return fmt.Errorf("this is not a whole saved run: %w; give a file that `xce-elastic simulate` saved as JSON", err)
}

// reading is a saved run as far as it has been read.
type reading struct {
	in      *json.Decoder
	r       *simulation.Result
	format  string
	version int
	shapes  []*trace.Shape
	submit  cluster.Time // of the last job
}

// object reads the fields, in whatever order.
func (f *reading) object() error {
	if err := f.delimiter('{'); err != nil {
		return err
	}
	for f.in.More() {
		key, err := f.in.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // keys are strings
		if err := f.field(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return f.delimiter('}')
}

func (f *reading) delimiter(want json.Delim) error {
	token, err := f.in.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && token != want {
		err = fmt.Errorf("there is %v at byte %d where %v should be", token, f.in.InputOffset(), want)
	}
	return err
}

func (f *reading) field(name string) error {
	r := f.r
	switch name {
	case "format":
		return f.in.Decode(&f.format)
	case "version":
		return f.readVersion()
	case "summary": // it is counted again
		return f.in.Decode(&json.RawMessage{})
	case "cluster":
		return f.in.Decode(&r.Cluster)
	case "label":
		return f.in.Decode(&r.Label)
	case "seed":
		return f.readSeed()
	case "began":
		return f.in.Decode(&r.Began)
	case "ended":
		return f.in.Decode(&r.Ended)
	case "stopped":
		return f.in.Decode(&r.Stopped)
	case "sessions":
		return f.in.Decode(&r.Sessions)
	case "causes":
		return f.in.Decode(&r.Causes)
	case "queue":
		return f.readSeries(&r.Jobs, simulation.JobColumns)
	case "hosts":
		return f.readSeries(&r.Hosts, simulation.HostColumns)
	}
	return f.fieldOfRows(name)
}

func (f *reading) fieldOfRows(name string) error {
	r := f.r
	switch name {
	case "resources":
		return each(f, f.resource)
	case "loans":
		return each(f, func(x savedLoan) error { r.Loans = append(r.Loans, simulation.LoanResult(x)); return nil })
	case "machines":
		return each(f, func(x savedMachine) error { r.Machines = append(r.Machines, simulation.HostResult(x)); return nil })
	case "providers":
		return each(f, func(x savedProvider) error { r.Providers = append(r.Providers, x.provider()); return nil })
	case "changes":
		return each(f, func(x savedChange) error { r.Changes = append(r.Changes, simulation.Change(x)); return nil })
	case "orders":
		return each(f, func(x savedOrder) error { r.Orders = append(r.Orders, simulation.Ordered(x)); return nil })
	case "worst":
		return each(f, func(x savedStory) error { r.Worst = append(r.Worst, x.story()); return nil })
	}
	return f.fieldOfTrace(name)
}

func (f *reading) fieldOfTrace(name string) error {
	if f.r.Trace == nil {
		f.r.Trace = &trace.Trace{}
	}
	t := f.r.Trace
	switch name {
	case "source":
		return f.in.Decode(&t.Source)
	case "repairs":
		return each(f, func(x savedRepair) error { t.Repairs = append(t.Repairs, trace.Repair(x)); return nil })
	case "shapes":
		return each(f, func(x savedShape) error { f.shapes = append(f.shapes, x.shape()); return nil })
	case "jobs":
		return each(f, f.block)
	}
	return errors.New("there is no such field")
}

// each reads an array element by element.
func each[T any](f *reading, take func(T) error) error {
	if err := f.delimiter('['); err != nil {
		return err
	}
	for i := 0; f.in.More(); i++ {
		var element T
		if err := f.in.Decode(&element); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		if err := take(element); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return f.delimiter(']')
}

func (f *reading) readVersion() error {
	err := f.in.Decode(&f.version)
	if err == nil && f.version != savedVersion {
		err = fmt.Errorf("version %d cannot be read by this program, which reads version %d", f.version, savedVersion)
	}
	return err
}

func (f *reading) readSeed() error {
	var text json.RawMessage
	if err := f.in.Decode(&text); err != nil {
		return err
	}
	var s seedText
	err := json.Unmarshal([]byte(`{"seed":`+string(text)+`}`), &s)
	f.r.Seed = s.Seed
	return err
}

func (f *reading) readSeries(to **series.Series, columns []string) error {
	var saved *savedSeries
	if err := f.in.Decode(&saved); err != nil {
		return err
	}
	if err := saved.check(len(columns)); err != nil {
		return err
	}
	*to = saved.series()
	return nil
}

// check finds columns that are missing or of other lengths than the points are.
func (saved *savedSeries) check(columns int) error {
	if saved == nil {
		return nil
	}
	if len(saved.Columns) != columns || len(saved.Integral) != columns || len(saved.Max) != columns || len(saved.Values) != columns {
		return fmt.Errorf("there are not %d columns", columns)
	}
	for c := range columns {
		if values := saved.Values[c]; len(values) != len(saved.At) {
			return fmt.Errorf("values.%d: there are %d numbers for %d points", c, len(values), len(saved.At))
		}
	}
	return nil
}

func (f *reading) resource(saved savedResource) error {
	if err := saved.Series.check(len(simulation.ResourceColumns)); err != nil {
		return fmt.Errorf("series: %w", err)
	}
	f.r.Resources = append(f.r.Resources, simulation.ResourceResult{
		Name: saved.Name, Bought: saved.Bought, Used: saved.Used, Cost: saved.Cost, Series: saved.Series.series(),
	})
	return nil
}

// block takes some jobs with their outcomes.
func (f *reading) block(b jobBlock) error {
	n := len(b.ID)
	for _, column := range b.columns() {
		if len(*column) != n {
			return fmt.Errorf("a column has %d numbers where there are %d jobs", len(*column), n)
		}
	}
	for i := range n {
		shape := b.Shape[i]
		if shape < 0 || shape > int64(len(f.shapes)) {
			return fmt.Errorf("shape[%d]: there is no shape %d before it", i, shape)
		}
		if b.State[i] < 0 || b.State[i] >= int64(len(stateNames)) || b.Cause[i] < 0 || b.Cause[i] > 1<<16-1 || b.Requeues[i] < 0 || b.Requeues[i] > 1<<8-1 {
			return fmt.Errorf("job %d of the block: state %d, cause %d or requeues %d cannot be", i, b.State[i], b.Cause[i], b.Requeues[i])
		}
		f.job(&b, i)
	}
	return nil
}

func (f *reading) job(b *jobBlock, i int) {
	f.submit += cluster.Time(b.Submit[i])
	j := trace.Job{
		ID: b.ID[i], Name: b.Name[i], Submit: f.submit, Run: cluster.Duration(b.Run[i]), Limit: cluster.Duration(b.Limit[i]),
		Waited: cluster.Duration(b.Waited[i]), TokensFor: cluster.Duration(b.TokensFor[i]),
	}
	if b.Shape[i] > 0 {
		j.Shape = f.shapes[b.Shape[i]-1]
	}
	o := simulation.Outcome{Cause: uint16(b.Cause[i]), State: simulation.State(b.State[i]), Requeues: uint16(b.Requeues[i])}
	if b.Start[i] >= 0 {
		o.Start = j.Submit.Add(cluster.Duration(b.Start[i]))
	}
	if b.Start[i] >= 0 && b.End[i] >= 0 {
		o.End = o.Start.Add(cluster.Duration(b.End[i]))
	}
	f.r.Trace.Jobs = append(f.r.Trace.Jobs, j)
	f.r.Outcomes = append(f.r.Outcomes, o)
}

// check finds what only the whole can tell.
func (f *reading) check() error {
	if f.format != savedFormat || f.version != savedVersion {
		return fmt.Errorf("it does not begin as one (format %q, version %d)", f.format, f.version)
	}
	for i := range f.r.Outcomes {
		if c := int(f.r.Outcomes[i].Cause); c > 0 && c >= len(f.r.Causes) {
			return fmt.Errorf("job %d: there is no cause %d", i, c)
		}
	}
	for i, s := range f.r.Worst {
		if s.Job < 0 || s.Job >= len(f.r.Outcomes) {
			return fmt.Errorf("worst[%d]: there is no job %d", i, s.Job)
		}
	}
	if _, err := f.in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind its end")
	}
	return nil
}
