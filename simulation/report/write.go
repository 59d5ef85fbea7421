package report

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// Save writes the result to a file, packed by gzip where its name ends in ".gz".
func Save(path string, r *simulation.Result) error {
	s := Summarize(r)
	return s.Save(path, r)
}

// Save writes the result that the summary is of.
func (s *Summary) Save(path string, r *simulation.Result) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if !strings.HasSuffix(path, ".gz") {
		return s.json(file, r)
	}
	packed, _ := gzip.NewWriterLevel(file, gzip.BestSpeed) // a level that there is; the best one takes half of a whole simulation
	if err := s.json(packed, r); err != nil {
		return err
	}
	return packed.Close()
}

// JSON writes the whole result, so that ReadJSON can read it again. The package's doc says how.
func JSON(w io.Writer, r *simulation.Result) error {
	s := Summarize(r)
	return s.json(w, r)
}

func (s *Summary) json(w io.Writer, r *simulation.Result) error {
	o := &object{w: bufio.NewWriterSize(w, 1<<16)}
	o.field("format", savedFormat)
	o.field("version", savedVersion)
	o.field("summary", *s)
	o.field("cluster", r.Cluster)
	o.field("label", r.Label)
	o.field("seed", seed(r.Seed))
	o.field("began", r.Began)
	o.field("ended", r.Ended)
	o.field("stopped", r.Stopped)
	o.field("sessions", r.Sessions)
	o.field("causes", r.Causes)
	o.field("queue", saveSeries(r.Jobs))
	o.field("hosts", saveSeries(r.Hosts))
	rows(o, "resources", r.Resources, func(x simulation.ResourceResult) any {
		return savedResource{x.Name, x.Bought, x.Used, x.Cost, saveSeries(x.Series)}
	})
	rows(o, "loans", r.Loans, func(x simulation.LoanResult) any { return savedLoan(x) })
	rows(o, "machines", r.Machines, func(x simulation.HostResult) any { return savedMachine(x) })
	rows(o, "providers", r.Providers, func(x simulation.ProviderResult) any { return saveProvider(x) })
	rows(o, "changes", r.Changes, func(x simulation.Change) any { return savedChange(x) })
	rows(o, "orders", r.Orders, func(x simulation.Ordered) any { return savedOrder(x) })
	rows(o, "worst", r.Worst, func(x simulation.Story) any { return saveStory(x) })
	o.jobs(r)
	return o.end()
}

// seed is written as a text: it may be larger than what many readers of JSON can count to.
type seed uint64

type seedText struct {
	Seed uint64 `json:"seed,string"`
}

// MarshalJSON implements json.Marshaler.
func (s seed) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(seedText{uint64(s)})
	return text[len(`{"seed":`) : len(text)-1], err
}

// object writes the fields of one JSON object, a line each, and keeps the first error.
type object struct {
	w     *bufio.Writer
	began bool
	err   error
}

func (o *object) text(s string) { _, _ = o.w.WriteString(s) } // w keeps its first error

func (o *object) value(v any) {
	text, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = err
	}
	_, _ = o.w.Write(text)
}

func (o *object) key(name string) {
	if o.began {
		o.text(",\n")
	} else {
		o.text("{\n")
	}
	o.began = true
	o.value(name)
	o.text(": ")
}

func (o *object) field(name string, v any) {
	o.key(name)
	o.value(v)
}

func (o *object) end() error {
	o.text("\n}\n")
	return errors.Join(o.err, o.w.Flush())
}

// list writes an array, an element a line, as long as next answers one.
func (o *object) list(name string, next func() (any, bool)) {
	o.key(name)
	separator := "[\n"
	for v, more := next(); more; v, more = next() {
		o.text(separator)
		o.value(v)
		separator = ",\n"
	}
	if separator == "[\n" {
		o.text("[")
	}
	o.text("]")
}

func rows[T any](o *object, name string, all []T, saved func(T) any) {
	i := 0
	o.list(name, func() (any, bool) {
		if i == len(all) {
			return nil, false
		}
		i++
		return saved(all[i-1]), true
	})
}

// jobs writes the trace with its outcomes.
func (o *object) jobs(r *simulation.Result) {
	if r.Trace == nil {
		return
	}
	o.field("source", r.Trace.Source)
	rows(o, "repairs", r.Trace.Repairs, func(x trace.Repair) any { return savedRepair(x) })
	shapes, places := shapesOf(r.Trace)
	rows(o, "shapes", shapes, func(x *trace.Shape) any { return saveShape(x) })
	next, submit, block := 0, cluster.Time(0), &jobBlock{}
	o.list("jobs", func() (any, bool) {
		block.clear()
		for ; next < len(r.Trace.Jobs) && len(block.ID) < blockSize; next++ {
			j, out := &r.Trace.Jobs[next], outcome(r, next)
			if j.Name != "" {
				block.name(j.Name)
			}
			wait, run := lengths(j, out)
			block.add(j.ID, int64(j.Submit.Sub(submit)), int64(j.Run), int64(j.Limit), int64(j.Waited), int64(j.TokensFor), places[j.Shape],
				wait, run, int64(out.Cause), int64(out.State), int64(out.Requeues))
			submit = j.Submit
		}
		return block, len(block.ID) > 0
	})
}

// outcome answers that of a job; one without had not arrived.
func outcome(r *simulation.Result, i int) simulation.Outcome {
	if i < len(r.Outcomes) {
		return r.Outcomes[i]
	}
	return simulation.Outcome{}
}

func (b *jobBlock) name(name string) {
	if b.Name == nil {
		b.Name = map[int]string{}
	}
	b.Name[len(b.ID)] = name
}

// lengths answers how long a job waited and ran; -1 where it has no start or no end.
func lengths(j *trace.Job, o simulation.Outcome) (wait, run int64) {
	wait, run = -1, -1
	if o.Start != 0 {
		wait = int64(o.Start.Sub(j.Submit))
	}
	if o.Start != 0 && o.End != 0 {
		run = int64(o.End.Sub(o.Start))
	}
	return wait, run
}

// shapesOf answers the shapes of a trace in the order in which they occur, and the place of each, from 1.
func shapesOf(t *trace.Trace) (shapes []*trace.Shape, places map[*trace.Shape]int64) {
	places = map[*trace.Shape]int64{nil: 0}
	for i := range t.Jobs {
		s := t.Jobs[i].Shape
		if _, known := places[s]; !known {
			shapes = append(shapes, s)
			places[s] = int64(len(shapes))
		}
	}
	return shapes, places
}
