package trace

import (
	"strings"
	"unicode/utf8"

	"xce.internal/elastic/cluster"
)

// record is what an accounting file, and the mapping, say of a job.
type record struct {
	line int64
	Job
	// ask becomes the job's shape.
	ask Shape
	// procs and hosts are on how many it ran; hosts may be 0, where only the
	// processors are known, and both where ask says it already. memoryMB is that of
	// the whole job.
	procs, hosts, memoryMB int64
	// resources are what else it asked for, by names of its own system; a mapping
	// says which of them are tokens.
	resources map[string]int64
	// command is the command line.
	command string
}

// finished is what all jobs with one shape have in common beside it.
type finished struct {
	shape *Shape
	// limit and tokensFor are the mapping's, 0 where it says none; unmapped tells that no rule was
	// for the jobs, and uneven that they are rounded up.
	limit, tokensFor cluster.Duration
	// unlimited is the limit that the mapping has for jobs without one.
	unlimited        cluster.Duration
	unmapped, uneven bool
}

// finish answers the shape of a record: with the mapping's additions, spread
// over hosts, with valid names.
func (b *builder) finish(r *record) finished {
	s := &r.ask
	s.User, s.Queue = b.name(r.line, "user", s.User), b.name(r.line, "queue", s.Queue)
	var f finished
	if b.o.Mapping != nil {
		b.o.Mapping.apply(r, &f)
	}
	if r.procs > 0 {
		f.uneven = r.spread()
	}
	s.Group, s.Application = b.text(r.line, "group", s.Group), b.text(r.line, "application", s.Application)
	b.nameAs(r)
	f.shape = b.shapes.one(s)
	return f
}

// nameAs keeps the job's name and command line, or drops them.
func (b *builder) nameAs(r *record) {
	s := &r.ask
	if !b.o.Names {
		s.Name, s.Command, s.Directory = "", nil, ""
		return
	}
	s.Name = b.text(r.line, "job name", s.Name)
	if s.Command == nil && r.command != "" {
		s.Command = []string{b.text(r.line, "command", r.command)}
	}
}

// spread divides the job among its hosts, and tells whether it is rounded up.
func (r *record) spread() (uneven bool) {
	s := &r.ask
	hosts := max(r.hosts, 1)
	s.Nodes = 0
	if hosts > 1 {
		s.Nodes = hosts
	}
	s.CPUs = ceil(r.procs, hosts)
	if r.memoryMB > 0 {
		s.MemoryMB = ceil(r.memoryMB, hosts)
	}
	return s.CPUs*hosts != r.procs
}

func ceil(n, d int64) int64 { return (n + d - 1) / d }

// addRecord adds a job.
func (b *builder) addRecord(r *record, inOrder bool) {
	f := b.finish(r)
	r.Name = b.text(r.line, "job", r.Name)
	b.addFinished(r.Job, f, r.line, inOrder)
}

// addFinished adds a job whose shape is known.
func (b *builder) addFinished(j Job, f finished, line int64, inOrder bool) {
	j.Shape = f.shape
	if f.limit > 0 {
		j.Limit = f.limit
	}
	if j.Limit == 0 {
		j.Limit = f.unlimited
	}
	if f.tokensFor > 0 {
		j.TokensFor = f.tokensFor
	}
	if f.unmapped {
		b.mend(unmapped, line, "", nil)
	}
	if f.uneven {
		b.mend(unevenHosts, line, "", nil)
	}
	b.add(j, line, inOrder)
}

// longestName is that of a valid one.
const longestName = 63

// name answers a name that is valid here.
func (b *builder) name(line int64, field, name string) string {
	if name == "" || cluster.ValidName(name) {
		return name
	}
	b.mend(badName, line, field, []byte(name))
	return validName(name)
}

// text answers a text that is UTF-8, as all that is written has to be.
func (b *builder) text(line int64, field, text string) string {
	if utf8.ValidString(text) {
		return text
	}
	b.mend(badName, line, field, []byte(text))
	return strings.ToValidUTF8(text, "_")
}

// validName makes a name valid: it begins with a letter or digit, and other signs
// become underscores.
func validName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && cluster.ValidName("x"+string(r)) {
			return r
		}
		return '_'
	}, name)
	if !cluster.ValidName(name[:1]) {
		name = "x" + name
	}
	return name[:min(len(name), longestName)]
}
