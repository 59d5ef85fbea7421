package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// pbsReader reads one accounting file of PBS or Torque. Of its records, those of
// ended jobs (E) are read.
type pbsReader struct {
	*builder
	line int64
	// has are the attributes of the record that is read now.
	has map[string]string
}

func (b *builder) readPBS(text *lines) error {
	r := &pbsReader{builder: b}
	for {
		line, more := text.next()
		if !more {
			return nil
		}
		r.line = text.number
		if len(bytes.TrimSpace(line)) > 0 && line[0] != '#' {
			r.record(line)
		}
	}
}

func (r *pbsReader) record(line []byte) {
	parts := bytes.SplitN(line, []byte(";"), 4)
	switch {
	case len(parts) < 4 || !pbsLine.Match(line):
		r.breakRow(r.line, "", "it is not date;kind;job;attributes", rules[brokenRow].Remedy)
		return
	case len(parts[1]) != 1 || parts[1][0] != 'E':
		return
	}
	r.has = map[string]string{}
	for word := range strings.FieldsSeq(string(parts[3])) {
		name, value, given := strings.Cut(word, "=")
		if _, twice := r.has[name]; given && !twice {
			r.has[name] = value
		}
	}
	r.job(string(parts[2]))
}

func (r *pbsReader) number(name string) int64 {
	n, _ := integer([]byte(r.has[name]))
	return n
}

func (r *pbsReader) job(id string) {
	// Torque's manuals swap qtime and etime; ctime is when the job was made.
	submit, start, end := r.number("ctime"), r.number("start"), r.number("end")
	if submit <= 0 {
		submit = max(r.number("qtime"), r.number("etime"))
	}
	switch {
	case submit <= 0 || max(submit, start, end) > mostSeconds:
		r.breakRow(r.line, "ctime", fmt.Sprintf("%q is no time", r.has["ctime"]), rules[brokenRow].Remedy)
		return
	case start <= 0:
		r.mend(neverStarted, r.line, "start", []byte(r.has["start"]))
		return
	}
	rec := &record{line: r.line}
	rec.ID, rec.Name = leadingNumber(id), ""
	if number, _, _ := strings.Cut(id, "."); number != fmt.Sprint(rec.ID) {
		rec.Name = number // an element of an array
	}
	rec.Submit, rec.Waited = cluster.Time(submit*1000), max(seconds(start-submit), 0)
	used, known := clock(r.has["resources_used.walltime"], cluster.Second)
	if end > start || !known {
		used = seconds(end - start)
	}
	limit, ok := clock(r.has["Resource_List.walltime"], cluster.Second)
	if !ok && r.has["Resource_List.walltime"] != "" {
		r.mend(badText, r.line, "Resource_List.walltime", []byte(r.has["Resource_List.walltime"]))
	}
	r.length(rec, "run time", used, limit)
	r.asks(rec)
	r.addRecord(rec, false)
}

func (r *pbsReader) asks(rec *record) {
	s := &rec.ask
	s.User, s.Queue, s.Name = r.has["user"], r.has["queue"], r.has["jobname"]
	s.Group = r.has["account"]
	if s.Group == "" {
		s.Group = r.has["group"]
	}
	s.Exclusive = strings.Contains(r.has["Resource_List.place"], "excl")
	nodes := pbsNodes(r.has["Resource_List.nodes"], r.has["Resource_List.neednodes"])
	rec.procs, rec.hosts = execHosts(r.has["exec_host"])
	rec.procs = min(max(rec.procs, r.number("resources_used.ncpus"), r.number("Resource_List.ncpus"), nodes.procs, 0), mostProcs)
	rec.hosts = max(rec.hosts, min(nodes.hosts, mostProcs))
	r.processors(rec, "processors")
	r.memory(rec)
	if gpus := max(ceil(r.number("Resource_List.ngpus"), max(rec.hosts, 1)), nodes.gpus, r.number("Resource_List.gpu")); gpus > 0 {
		s.Countables = map[string]int64{"gpu": min(gpus, mostProcs)}
	}
	for name, value := range r.has {
		name, own := strings.CutPrefix(name, "Resource_List.")
		if n := leadingNumber(value); own && n > 0 && n <= mostProcs && fmt.Sprint(n) == value {
			setCount(&rec.resources, name, n)
		}
	}
}

// memory fills in the job's memory: mem is that of the whole job, pmem of a processor.
func (r *pbsReader) memory(rec *record) {
	for _, m := range [...]struct {
		name  string
		times int64
	}{{"Resource_List.mem", 1}, {"Resource_List.pmem", rec.procs}} {
		text := r.has[m.name]
		if text == "" {
			continue
		}
		mb, ok := memory(text, 1)
		if !ok {
			r.mend(badText, r.line, m.name, []byte(text))
			continue
		}
		rec.memoryMB = min(mb, mostMB/m.times) * m.times
		return
	}
}

// execHosts answers how many processors of how many hosts a list such as
// "a/0+a/1*8+b/0-3" names.
func execHosts(text string) (procs, hosts int64) {
	var names []string
	for part := range strings.SplitSeq(text, "+") {
		name, indexes, found := strings.Cut(part, "/")
		if name == "" {
			continue
		}
		names = append(names, name)
		many := int64(1)
		if _, times, multiplied := strings.Cut(indexes, "*"); multiplied {
			many = leadingNumber(times) // 0 where the job has all of the host
		} else if found && indexes != "" {
			many = elements(indexes)
		}
		procs += min(many, mostProcs)
	}
	slices.Sort(names)
	return procs, int64(len(slices.Compact(names)))
}

// nodesAsked is what a request for nodes says: of all hosts, and the gpus of one.
type nodesAsked struct{ procs, hosts, gpus int64 }

// pbsNodes reads a request such as "4:ppn=8:gpus=1+2:ppn=4"; the first that there is.
func pbsNodes(texts ...string) (n nodesAsked) {
	i := slices.IndexFunc(texts, func(t string) bool { return t != "" })
	if i < 0 {
		return n
	}
	for part := range strings.SplitSeq(texts[i], "+") {
		words := strings.Split(part, ":")
		hosts := max(min(leadingNumber(words[0]), mostProcs), 1)
		procs := int64(1)
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "ppn":
				procs = max(min(leadingNumber(value), mostProcs), 1)
			case "gpus", "gpu":
				n.gpus = max(n.gpus, min(leadingNumber(value), mostProcs))
			}
		}
		n.hosts += hosts
		n.procs += min(hosts*procs, mostProcs)
	}
	return n
}
