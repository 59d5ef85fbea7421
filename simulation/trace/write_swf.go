package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"xce.internal/elastic/cluster"
)

// swfWriter writes a trace in the Standard Workload Format.
type swfWriter struct {
	out *bufio.Writer
	// begin is the second at which the log begins, where its times are of the calendar.
	begin                          int64
	users, groups, programs, lines numbering
}

// numbering gives names numbers: that which they are, where all are numbers, and
// otherwise by their first occurrence, from 1.
type numbering struct {
	numbers map[string]int64
	order   []string
	plain   bool
}

func (n *numbering) note(name string) {
	if n.numbers == nil {
		n.numbers, n.plain = map[string]int64{"": -1}, true
	}
	if _, known := n.numbers[name]; known {
		return
	}
	number, ok := integer([]byte(name))
	n.plain = n.plain && ok && number >= 0 && strconv.FormatInt(number, 10) == name
	n.numbers[name] = number
	n.order = append(n.order, name)
}

func (n *numbering) settle() {
	if n.plain {
		return
	}
	for i, name := range n.order {
		n.numbers[name] = int64(i + 1)
	}
}

// WriteSWF writes a trace in the Standard Workload Format, in which times are whole
// seconds and nothing but processors and memory can be asked for. The header says
// what names its numbers stand for, and how many jobs asked for more than that.
func (t *Trace) WriteSWF(w io.Writer) error {
	s := &swfWriter{out: bufio.NewWriterSize(w, readAhead)}
	var procs, nodes, more int64
	var last *Shape
	for i := range t.Jobs {
		shape := t.Jobs[i].Shape
		procs, nodes = max(procs, shape.Processors()), max(nodes, shape.Nodes, 1)
		if shape.asksMore() {
			more++
		}
		if shape != last {
			s.users.note(shape.User)
			s.groups.note(shape.Group)
			s.programs.note(shape.Application)
			s.lines.note(shape.Queue)
			last = shape
		}
	}
	if len(t.Jobs) > 0 {
		if first := int64(t.Jobs[0].Submit) / 1000; first >= calendar {
			s.begin = first
		}
	}
	s.header(t, procs, nodes, more)
	var line []byte
	for i := range t.Jobs {
		line = s.job(line[:0], &t.Jobs[i])
		_, _ = s.out.Write(line) // the error stays until Flush
	}
	return s.out.Flush()
}

// calendar is the second from which on a time is taken for one of the calendar:
// the first of 1980.
const calendar = 315_532_800

// asksMore tells whether jobs ask for what the format cannot say.
func (s *Shape) asksMore() bool {
	return len(s.Tokens)+len(s.Alternatives)+len(s.Countables) > 0 || s.Constraint != "" || s.Exclusive || s.Nodes > 1 || s.Priority != 0
}

func (s *swfWriter) header(t *Trace, procs, nodes, more int64) {
	fmt.Fprintf(s.out, "; Version: 2.2\n; MaxJobs: %d\n; MaxRecords: %d\n; UnixStartTime: %d\n; TimeZoneString: UTC\n; MaxNodes: %d\n; MaxProcs: %d\n",
		len(t.Jobs), len(t.Jobs), s.begin, nodes, procs)
	fmt.Fprintf(s.out, "; Note: made from %s\n", oneLine(t.Source))
	if more > 0 {
		fmt.Fprintf(s.out, "; Note: %d jobs ask for tokens, features, hosts or priorities, which this format cannot say\n", more)
	}
	for _, n := range []struct {
		what string
		*numbering
	}{{"User", &s.users}, {"Group", &s.groups}, {"Application", &s.programs}, {"Queue", &s.lines}} {
		n.settle()
		if n.plain {
			continue
		}
		for _, name := range n.order {
			fmt.Fprintf(s.out, "; %s: %d %s\n", n.what, n.numbers[name], oneLine(name))
		}
	}
}

// oneLine shows a text without ends of lines and other control characters.
func oneLine(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

func (s *swfWriter) job(line []byte, j *Job) []byte {
	shape := j.Shape
	procs := shape.Processors()
	wait, limit, memory := int64(-1), int64(-1), int64(-1)
	if j.Waited >= 0 {
		wait = int64(j.Waited / cluster.Second)
	}
	if j.Limit > 0 {
		limit = ceil(int64(j.Limit), 1000)
	}
	if shape.MemoryMB > 0 {
		memory = ceil(shape.MemoryMB*1024, shape.CPUs)
	}
	for i, n := range [swfFields]int64{
		j.ID, int64(j.Submit)/1000 - s.begin, wait, ceil(int64(j.Run), 1000), procs, -1, -1, procs, limit, memory, 1,
		s.users.numbers[shape.User], s.groups.numbers[shape.Group], s.programs.numbers[shape.Application], s.lines.numbers[shape.Queue], -1, -1, -1,
	} {
		if i > 0 {
			line = append(line, ' ')
		}
		line = strconv.AppendInt(line, n, 10)
	}
	return append(line, '\n')
}
