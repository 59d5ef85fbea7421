package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// jsonlVersion is that of the JSON lines.
const jsonlVersion = 1

// jsonHead is the first line of a file of JSON lines.
type jsonHead struct {
	Version int64    `json:"xce_trace"`
	Source  string   `json:"source,omitempty"`
	Repairs []Repair `json:"repairs,omitempty"`
}

// jsonTimes are what a line says of a job by itself; lengths of time are in
// milliseconds. They come first in a line, in this order, without blanks.
type jsonTimes struct {
	ID        int64  `json:"id"`
	Label     string `json:"label,omitempty"`
	Submit    int64  `json:"submit_ms"`
	Run       int64  `json:"run_ms"`
	Limit     int64  `json:"limit_ms,omitempty"`
	Waited    *int64 `json:"waited_ms,omitempty"`
	TokensFor int64  `json:"tokens_for_ms,omitempty"`
}

// jsonShape is the rest of the line, which many have in common.
type jsonShape struct {
	User         string             `json:"user,omitempty"`
	Group        string             `json:"group,omitempty"`
	Application  string             `json:"application,omitempty"`
	Queue        string             `json:"queue,omitempty"`
	Nodes        int64              `json:"nodes,omitempty"`
	CPUs         int64              `json:"cpus"`
	MemoryMB     int64              `json:"memory_mb,omitempty"`
	Countables   map[string]int64   `json:"countables,omitempty"`
	Exclusive    bool               `json:"exclusive,omitempty"`
	Constraint   string             `json:"constraint,omitempty"`
	Tokens       map[string]int64   `json:"tokens,omitempty"`
	Alternatives []map[string]int64 `json:"alternatives,omitempty"`
	Priority     int64              `json:"priority,omitempty"`
	After        []int64            `json:"after,omitempty"`
	Name         string             `json:"name,omitempty"`
	Command      []string           `json:"command,omitempty"`
	Directory    string             `json:"directory,omitempty"`
}

// jsonLine is a whole line.
type jsonLine struct {
	jsonTimes
	jsonShape
}

func (s *Shape) json() jsonShape {
	return jsonShape{
		User: s.User, Group: s.Group, Application: s.Application, Queue: s.Queue, Nodes: s.Nodes, CPUs: s.CPUs, MemoryMB: s.MemoryMB,
		Countables: s.Countables, Exclusive: s.Exclusive, Constraint: s.Constraint, Tokens: s.Tokens, Alternatives: s.Alternatives,
		Priority: s.Priority, After: s.After, Name: s.Name, Command: s.Command, Directory: s.Directory,
	}
}

func (j jsonShape) shape() Shape {
	s := Shape{User: j.User, Group: j.Group, Application: j.Application}
	s.Queue, s.Nodes, s.CPUs, s.MemoryMB, s.Countables = j.Queue, j.Nodes, j.CPUs, j.MemoryMB, j.Countables
	s.Exclusive, s.Constraint, s.Tokens, s.Alternatives = j.Exclusive, j.Constraint, j.Tokens, j.Alternatives
	s.Priority, s.After, s.Name, s.Command, s.Directory = j.Priority, j.After, j.Name, j.Command, j.Directory
	return s
}

func (j jsonTimes) job() Job {
	job := Job{ID: j.ID, Name: j.Label, Submit: cluster.Time(j.Submit), Waited: -1}
	job.Run, job.Limit, job.TokensFor = cluster.Duration(j.Run), cluster.Duration(j.Limit), cluster.Duration(j.TokensFor)
	if j.Waited != nil {
		job.Waited = cluster.Duration(*j.Waited)
	}
	return job
}

// jsonlReader reads one file of JSON lines. They are our own form, so nothing in a
// line is mended: what is wrong with one is refused.
type jsonlReader struct {
	*builder
	line  int64
	tails map[string]finished
}

func (b *builder) readJSONL(text *lines) error {
	r := &jsonlReader{builder: b, tails: map[string]finished{}}
	for {
		line, more := text.next()
		if !more {
			return nil
		}
		r.line = text.number
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case text.number == 1 && bytes.HasPrefix(line, []byte(`{"xce_trace":`)):
			r.head(line)
		case !r.canonical(line):
			r.any(line)
		}
	}
}

func (r *jsonlReader) wrong(what, remedy string) {
	r.reject(cluster.Problem{Path: r.place(r.line, ""), What: what, Remedy: remedy})
}

func (r *jsonlReader) head(line []byte) {
	var head jsonHead
	if !r.decode(line, &head) {
		return
	}
	if head.Version != jsonlVersion {
		r.wrong(fmt.Sprintf("the trace is of version %d", head.Version), fmt.Sprintf("write it anew, as version %d", jsonlVersion))
	}
	r.origin = head.Source
	r.earlier = append(r.earlier, head.Repairs...)
}

// decode reads one JSON value, and refuses it if it has other keys.
func (r *jsonlReader) decode(line []byte, into any) bool {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.InputOffset() < int64(len(line)) {
		err = errors.New("there is more behind the object")
	}
	if err != nil {
		why := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "json: "), "Go ")
		r.wrong(why, "write one object a line, with the keys that `xce-elastic trace convert` writes")
	}
	return err == nil
}

// any reads a line in any order of keys.
func (r *jsonlReader) any(line []byte) {
	var j jsonLine
	if r.decode(line, &j) && r.validTimes(j.job()) && r.validShape(j.jsonShape) {
		r.addFinished(j.job(), r.finishShape(j.jsonShape), r.line, true)
	}
}

func (r *jsonlReader) finishShape(j jsonShape) finished {
	rec := &record{line: r.line, ask: j.shape()}
	rec.command = strings.Join(j.Command, " ")
	return r.finish(rec)
}

// canonical reads a line that is as we write it, and tells whether it is. What
// comes after the times is decoded once for all lines that have it in common.
func (r *jsonlReader) canonical(line []byte) bool {
	j, tail, ok := canonicalTimes(line)
	if !ok {
		return false
	}
	f, known := r.tails[string(tail)]
	if !known {
		var s jsonShape
		d := json.NewDecoder(bytes.NewReader(append([]byte("{"), tail...)))
		d.DisallowUnknownFields()
		if d.Decode(&s) != nil || d.InputOffset() != int64(len(tail))+1 {
			return false
		}
		if !r.validShape(s) {
			return true
		}
		f = r.finishShape(s)
		r.tails[string(tail)] = f
	}
	if r.validTimes(j) {
		r.addFinished(j, f, r.line, true)
	}
	return true
}

// validTimes refuses times that cannot be.
func (r *jsonlReader) validTimes(j Job) bool {
	for _, n := range [...]struct {
		key         string
		n, min, max int64
	}{
		{"submit_ms", int64(j.Submit), 0, int64(mostTime)},
		{"run_ms", int64(j.Run), 1, int64(longestRun)},
		{"limit_ms", int64(j.Limit), 0, int64(longestRun)},
		{"waited_ms", int64(j.Waited), -1, int64(mostTime)},
		{"tokens_for_ms", int64(j.TokensFor), 0, int64(longestRun)},
	} {
		if n.n < n.min || n.n > n.max {
			r.wrong(fmt.Sprintf("%s: %d cannot be", n.key, n.n), fmt.Sprintf("write a number from %d to %d", n.min, n.max))
			return false
		}
	}
	return true
}

// validShape refuses what no job can ask for.
func (r *jsonlReader) validShape(j jsonShape) bool {
	s := j.shape()
	problems := s.ValidateShape("")
	for _, name := range [...]struct{ key, name string }{{"user", s.User}, {"queue", s.Queue}} {
		if name.name != "" && !cluster.ValidName(name.name) {
			problems = append(problems, cluster.Problem{Path: name.key, What: fmt.Sprintf("name %q is not valid", name.name), Remedy: rules[badName].Remedy})
		}
	}
	if s.CPUs < 1 || s.CPUs > mostProcs || s.Processors() > mostProcs {
		problems = append(problems, cluster.Problem{Path: "cpus", What: fmt.Sprintf("%d cpus cannot be", s.CPUs), Remedy: fmt.Sprintf("write a number from 1 to %d, on all nodes together", int64(mostProcs))})
	}
	for _, tokens := range append([]map[string]int64{s.Tokens}, s.Alternatives...) {
		problems = append(problems, validTokens(tokens)...)
	}
	for _, p := range problems {
		r.reject(cluster.Problem{Path: r.place(r.line, p.Path), What: p.What, Remedy: p.Remedy})
	}
	return len(problems) == 0
}

func validTokens(tokens map[string]int64) (ps cluster.Problems) {
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		switch n := tokens[name]; {
		case !cluster.ValidName(name):
			ps = append(ps, cluster.Problem{Path: "tokens", What: fmt.Sprintf("name %q is not valid", name), Remedy: rules[badName].Remedy})
		case n < 1 || n > mostProcs:
			ps = append(ps, cluster.Problem{Path: "tokens." + name, What: fmt.Sprintf("%d units cannot be taken", n), Remedy: fmt.Sprintf("write a number from 1 to %d", int64(mostProcs))})
		}
	}
	return ps
}

// scanner goes through a line that should be as we write it.
type scanner struct {
	rest []byte
	ok   bool
}

// canonicalTimes reads the times at the beginning of a line; the tail is what
// comes behind them.
func canonicalTimes(line []byte) (j Job, tail []byte, ok bool) {
	s := scanner{rest: line, ok: true}
	j.Waited = -1
	j.ID = s.must(`{"id":`)
	if s.ok && bytes.HasPrefix(s.rest, []byte(`"label":"`)) {
		j.Name = s.label()
	}
	j.Submit = cluster.Time(s.must(`"submit_ms":`))
	j.Run = cluster.Duration(s.must(`"run_ms":`))
	j.Limit = cluster.Duration(s.may(`"limit_ms":`, 0))
	j.Waited = cluster.Duration(s.may(`"waited_ms":`, -1))
	j.TokensFor = cluster.Duration(s.may(`"tokens_for_ms":`, 0))
	return j, s.rest, s.ok && len(s.rest) > 0
}

// must reads a number behind a key, and the comma behind that.
func (s *scanner) must(key string) int64 {
	if !s.ok || !bytes.HasPrefix(s.rest, []byte(key)) {
		s.ok = false
		return 0
	}
	s.rest = s.rest[len(key):]
	end := bytes.IndexByte(s.rest, ',')
	if end < 0 {
		s.ok = false
		return 0
	}
	n, ok := jsonNumber(s.rest[:end])
	s.ok, s.rest = ok, s.rest[end+1:]
	return n
}

// jsonNumber reads a whole number as JSON has it.
func jsonNumber(text []byte) (int64, bool) {
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || digits[0] == '+' || digits[0] == '-' || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	return integer(text)
}

func (s *scanner) may(key string, otherwise int64) int64 {
	if !s.ok || !bytes.HasPrefix(s.rest, []byte(key)) {
		return otherwise
	}
	return s.must(key)
}

// label reads a label without anything escaped in it.
func (s *scanner) label() string {
	text := s.rest[len(`"label":"`):]
	end := bytes.IndexByte(text, '"')
	if end < 0 || bytes.IndexByte(text[:end], '\\') >= 0 || !plain(text[:end]) || end+1 >= len(text) || text[end+1] != ',' {
		s.ok = false
		return ""
	}
	s.rest = text[end+2:]
	return string(text[:end])
}

// plain tells whether a text has only printable ASCII.
func plain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
