package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
)

// Limits of what a job can be: they keep sums over all jobs whole numbers.
const (
	mostSeconds = 250_000_000_000 // until the year 9892
	mostProcs   = 1_000_000_000
	longestRun  = 10 * 366 * 24 * cluster.Hour
	mostTime    = cluster.Time(mostSeconds * 1000)
)

// builder puts a trace together, one record after the other.
type builder struct {
	*mends
	o       Options
	zone    *time.Location
	jobs    []Job
	shapes  shapeSet
	ids     idSet
	ordered bool
	scratch []byte
	// sources are the files that are read, with their formats; origin and earlier are
	// what our own form says of where its jobs come from.
	sources []string
	earlier []Repair
	origin  string
	// before is how many jobs earlier files had.
	before int
	// left answers how many times as much as was read of the file is still to come.
	left func() float64
}

func newBuilder(o Options) (*builder, error) {
	m, err := newMends(o)
	if err != nil {
		return nil, err
	}
	b := &builder{mends: m, o: o, zone: o.Zone, ordered: true}
	if b.zone == nil {
		b.zone = time.UTC
	}
	return b, nil
}

// trace answers what was read.
func (b *builder) trace() (*Trace, error) {
	repairs, err := b.result(len(b.jobs))
	if err != nil {
		return nil, err
	}
	source := listed(b.sources)
	if b.origin != "" {
		source += " (made from " + b.origin + ")"
	}
	t := &Trace{Source: source, Jobs: b.jobs, Repairs: merged(b.earlier, repairs)}
	if !b.ordered {
		t.Sort()
	}
	return t, nil
}

// listed names some of many.
func listed(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// add adds a job that stands at a line. It is one of a file in which jobs should
// stand in the order of their arrival, or of one where they do not.
func (b *builder) add(j Job, line int64, inOrder bool) {
	if n := len(b.jobs); n > 0 && j.Submit < b.jobs[n-1].Submit {
		b.ordered = false
		if inOrder && n > b.before {
			b.mend(outOfOrder, line, "", nil)
		}
	}
	if b.ids.seen(j.ID, j.Name) {
		b.scratch = j.appendLabel(b.scratch[:0])
		b.mend(idReused, line, "job", b.scratch)
	}
	if len(b.jobs) == cap(b.jobs) {
		b.grow()
	}
	b.jobs = append(b.jobs, j)
}

// grow makes room for as many jobs as the rest of the file will have, going by
// what was read of it: to double what are many would take too much memory.
func (b *builder) grow() {
	more := len(b.jobs)
	if more > 1<<18 {
		more /= 4
	}
	if b.left != nil {
		more = max(more, min(int(float64(len(b.jobs)-b.before)*b.left()*1.02), 100_000_000))
	}
	b.jobs = slices.Grow(b.jobs, max(more, 1024))
}

// appendLabel appends what the job's own system calls it.
func (j *Job) appendLabel(text []byte) []byte {
	if j.Name != "" {
		return append(text, j.Name...)
	}
	return strconv.AppendInt(text, j.ID, 10)
}

// Processors answers how many processors the jobs of a shape take.
func (s *Shape) Processors() int64 { return max(s.Nodes, 1) * s.CPUs }

// merged answers the repairs of two readings together, in the order of the rules.
func merged(earlier, now []Repair) []Repair {
	if len(earlier) == 0 {
		return now
	}
	all := slices.Concat(earlier, now)
	slices.SortStableFunc(all, func(a, b Repair) int { return place(a.Rule) - place(b.Rule) })
	out := all[:1]
	for _, r := range all[1:] {
		last := &out[len(out)-1]
		if last.Rule != r.Rule {
			out = append(out, r)
			continue
		}
		last.Count += r.Count
		places := slices.Concat(last.Places, r.Places)
		last.Places = places[:min(len(places), mostPlaces)]
	}
	return out
}

// place answers where a rule stands among the others.
func place(name string) int {
	return slices.IndexFunc(rules[:], func(r Rule) bool { return r.Name == name })
}
