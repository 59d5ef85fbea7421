package trace

import (
	"bytes"
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// The fields of Grid Engine's accounting file that are read, from 0. Univa's has
// more of them than Sun's 45, behind the last.
const (
	geQueue    = 0
	geGroup    = 2
	geOwner    = 3
	geName     = 4
	geJob      = 5
	geSubmit   = 8
	geStart    = 9
	geEnd      = 10
	geProject  = 31
	geSlots    = 34
	geTask     = 35
	geCategory = 39
	geFields   = 45
)

// geMillis is the time from which on a number counts milliseconds, as Univa's does.
const geMillis = 100_000_000_000

// geReader reads one accounting file of Grid Engine.
type geReader struct {
	*builder
	line   int64
	fields [][]byte
	// more is how many colons the job's name has.
	more int
}

func (b *builder) readGridEngine(text *lines) error {
	r := &geReader{builder: b}
	for {
		line, more := text.next()
		if !more {
			return nil
		}
		r.line = text.number
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		r.record(line)
	}
}

// get answers a field by its number in a record without colons in the job's name.
func (r *geReader) get(field int) []byte {
	switch {
	case field == geName:
		return bytes.Join(r.fields[geName:geName+1+r.more], []byte(":"))
	case field > geName:
		field += r.more
	}
	return r.fields[field]
}

func (r *geReader) record(line []byte) {
	r.fields = r.fields[:0]
	for f := range bytes.SplitSeq(line, []byte(":")) {
		r.fields = append(r.fields, f)
	}
	if len(r.fields) < geFields {
		r.breakRow(r.line, "", fmt.Sprintf("there are %d fields of at least %d", len(r.fields), geFields), rules[brokenRow].Remedy)
		return
	}
	if !r.align() {
		r.more = 0
		r.breakRow(r.line, "field 6 (job number)", fmt.Sprintf("%.60q, or what is behind it, is no number", r.get(geJob)), rules[brokenRow].Remedy)
		return
	}
	if r.more > 0 {
		r.mend(joinedRow, r.line, "job name", r.get(geName))
	}
	if pe := r.peTask(); pe != "" {
		r.mend(steps, r.line, "PE task", []byte(pe))
		return
	}
	r.job()
}

// align finds out how many colons the job's name has.
func (r *geReader) align() bool {
	for r.more = 0; r.more <= len(r.fields)-geFields; r.more++ {
		if r.numbers(geJob, geSubmit, geStart, geEnd, geSlots, geTask) {
			return true
		}
	}
	return false
}

func (r *geReader) numbers(fields ...int) bool {
	for _, f := range fields {
		if n, _, ok := whole(r.get(f)); !ok || n < 0 {
			return false
		}
	}
	return true
}

// peTask answers the name of the part of a parallel job that has a record of its
// own, or nothing. It stands behind the category and a number.
func (r *geReader) peTask() string {
	_, behind := r.category()
	return r.textAt(behind + 1)
}

func (r *geReader) number(field int) int64 {
	n, _, _ := whole(r.get(field))
	return n
}

// time answers a time in seconds or milliseconds as one of ours.
func (r *geReader) time(field int) cluster.Time {
	n := r.number(field)
	if n < geMillis {
		n *= 1000
	}
	return cluster.Time(n)
}

func (r *geReader) textAt(field int) string {
	if text := string(r.get(field)); text != "NONE" {
		return text
	}
	return ""
}

func (r *geReader) job() {
	submit, start, end := r.time(geSubmit), r.time(geStart), r.time(geEnd)
	switch {
	case submit <= 0 || max(submit, start, end) > mostTime:
		r.breakRow(r.line, "field 9 (submission time)", fmt.Sprintf("%s is no time", r.get(geSubmit)), rules[brokenRow].Remedy)
		return
	case start <= 0:
		r.mend(neverStarted, r.line, "start time", r.get(geStart))
		return
	}
	rec := &record{line: r.line}
	rec.ID, rec.Submit, rec.Waited = r.number(geJob), submit, max(start.Sub(submit), 0)
	if task := r.number(geTask); task > 0 {
		rec.Name = fmt.Sprintf("%d.%d", rec.ID, task)
	}
	category, _ := r.category()
	wishes := geWishes(string(category))
	r.length(rec, "run time", end.Sub(start), wishes.limit)
	rec.procs = min(r.number(geSlots), mostProcs)
	r.processors(rec, "slots")
	s := &rec.ask
	s.User, s.Group, s.Queue, s.Name = r.textAt(geOwner), r.textAt(geProject), r.textAt(geQueue), r.textAt(geName)
	if s.Group == "" {
		s.Group = r.textAt(geGroup)
	}
	rec.memoryMB = min(wishes.memoryMB, mostMB/rec.procs) * rec.procs
	s.Exclusive = wishes.exclusive
	if wishes.gpus > 0 {
		s.Countables = map[string]int64{"gpu": wishes.gpus}
	}
	rec.resources = wishes.others
	if wishes.odd != "" {
		r.mend(badText, r.line, "category", []byte(wishes.odd))
	}
	r.addRecord(rec, false)
}

// category answers what the job asked for, and the field behind it. It may have
// colons in it. Behind it are a number, the name of a part or NONE, and a number.
func (r *geReader) category() (text []byte, behind int) {
	most := len(r.fields) - r.more - (geFields - geCategory - 1)
	for behind = geCategory + 1; behind < most; behind++ {
		if r.numbers(behind, behind+2) && !r.numbers(behind+1) {
			break
		}
	}
	return bytes.Join(r.fields[geCategory+r.more:behind+r.more], []byte(":")), behind
}

// geAsked is what the requests of a job say, for each of its slots.
type geAsked struct {
	limit     cluster.Duration
	memoryMB  int64
	gpus      int64
	exclusive bool
	others    map[string]int64
	odd       string // that is not understood
}

// geMemory are the requests that mean memory, the ones first that mean it best.
var geMemory = []string{"m_mem_free", "mem_free", "h_vmem", "s_vmem", "virtual_free"}

// geWishes reads requests such as "-l h_rt=36000,mem_free=1.000T -pe mype 1".
func geWishes(category string) (a geAsked) {
	best := len(geMemory)
	words := strings.Fields(category)
	for i, word := range words {
		if word != "-l" || i+1 == len(words) {
			continue
		}
		for item := range strings.SplitSeq(words[i+1], ",") {
			name, value, _ := strings.Cut(item, "=")
			a.take(name, value, &best)
		}
	}
	return a
}

func (a *geAsked) take(name, value string, best *int) {
	for rank, known := range geMemory {
		if name != known {
			continue
		}
		mb, ok := memory(value, 1)
		switch {
		case strings.EqualFold(value, "INFINITY"):
		case !ok:
			a.odd = name + "=" + value
		case rank < *best:
			a.memoryMB, *best = mb, rank
		}
		return
	}
	switch name {
	case "h_rt":
		if d, ok := clock(value, cluster.Second); ok {
			a.limit = d
		} else if !strings.EqualFold(value, "INFINITY") {
			a.odd = name + "=" + value
		}
	case "gpu", "gpus", "ngpus":
		a.gpus = min(leadingNumber(value), mostProcs)
	case "exclusive", "excl", "exclusive_host":
		a.exclusive = value == "1" || strings.EqualFold(value, "true")
	default:
		if n := leadingNumber(value); n > 0 && n <= mostProcs && fmt.Sprint(n) == value {
			setCount(&a.others, name, n)
		}
	}
}
