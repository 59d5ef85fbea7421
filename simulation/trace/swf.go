package trace

import (
	"bytes"
	"fmt"
	"strconv"

	"xce.internal/elastic/cluster"
)

// The fields of the Standard Workload Format that are read, from 0; the format
// counts from 1.
const (
	swfID        = 0
	swfSubmit    = 1
	swfWait      = 2
	swfRun       = 3
	swfAllocated = 4
	swfRequested = 8 // time
	swfMemory    = 9 // KB per processor
	swfUser      = 11
	swfGroup     = 12
	swfProgram   = 13
	swfQueue     = 14
	swfFields    = 18
	swfLeast     = 9 // that there must be
)

// swfNames are the fields' names, for places; those of fields that are not read
// are empty.
var swfNames = [swfFields]string{
	swfID: "job number", swfSubmit: "submit time", swfWait: "wait time", swfRun: "run time", swfAllocated: "processors",
	swfRequested: "requested time", swfMemory: "requested memory", swfUser: "user", swfGroup: "group", swfProgram: "program", swfQueue: "queue",
}

// swfRead tells which fields are read.
var swfRead = func() (read [swfFields]bool) {
	for i, name := range swfNames {
		read[i] = name != ""
	}
	return read
}()

// swfReader reads one file in the Standard Workload Format.
type swfReader struct {
	*builder
	line int64
	// n are the numbers of the record that is read now, and text how they are written.
	n    [swfFields]int64
	text [swfFields][]byte
	// began is when the log began, where that is wanted.
	began  cluster.Time
	shapes map[swfKey]*finished
	// last is the shape of the last job: the next is often like it.
	last    swfKey
	lastOne *finished
}

// swfKey is all that tells the shapes of jobs apart.
type swfKey struct{ procs, memory, user, group, program, queue int64 }

// readSWF reads a trace in the Standard Workload Format and cleans it as most
// simulators do, so that schedules can be compared: a job that never ran, got no
// processors or came before the log began becomes one of a second; no job runs
// longer than its estimate; one without an estimate gets its run time as such.
func (b *builder) readSWF(text *lines) error {
	r := &swfReader{builder: b, shapes: map[swfKey]*finished{}}
	for {
		line, more := text.next()
		if !more {
			return nil
		}
		r.line = text.number
		line = bytes.TrimLeft(line, " \t")
		switch {
		case len(line) == 0:
		case line[0] == ';':
			r.header(line)
		case r.fields(line):
			r.job()
		}
	}
}

// header reads when the log began.
func (r *swfReader) header(line []byte) {
	key, value, _ := bytes.Cut(bytes.TrimSpace(line[1:]), []byte(":"))
	if !r.o.Calendar || string(key) != "UnixStartTime" {
		return
	}
	if n, ok := integer(bytes.TrimSpace(value)); ok && n >= 0 && n <= mostSeconds/2 {
		r.began = cluster.Time(n * 1000)
	}
}

// fields reads a record's fields, and tells whether they could be read.
func (r *swfReader) fields(line []byte) bool {
	count := 0
	for at := 0; ; count++ {
		for at < len(line) && blank(line[at]) {
			at++
		}
		begin := at
		for at < len(line) && !blank(line[at]) {
			at++
		}
		if begin == at {
			break
		}
		if count < swfFields && swfRead[count] && !r.number(count, line[begin:at]) {
			return false
		}
	}
	if count < swfLeast {
		r.breakRow(r.line, "", fmt.Sprintf("there are %d fields", count), "write the 18 of the Standard Workload Format")
		return false
	}
	for i := count; i < swfFields; i++ {
		r.n[i] = -1
	}
	if count > swfFields {
		r.mend(extraFields, r.line, "", nil)
	}
	return true
}

// blank tells whether c stands between fields.
func blank(c byte) bool { return c <= ' ' && (c == ' ' || c == '\t' || c == '\r') }

// number reads a field that is needed.
func (r *swfReader) number(field int, text []byte) bool {
	if n, short := few(text); short {
		r.n[field], r.text[field] = n, text
		return true
	}
	n, lost, ok := whole(text)
	if !ok {
		r.refuseField(field, fmt.Sprintf("%q is not a number", text[:min(len(text), mostQuoted)]), "write one, or -1 where it is not known")
		return false
	}
	if n > swfMost(field) || n < -mostSeconds && field < swfUser {
		r.refuseField(field, fmt.Sprintf("%d is too large to count with", n), fmt.Sprintf("write at most %d", swfMost(field)))
		return false
	}
	if lost {
		r.mend(decimals, r.line, swfNames[field], text)
	}
	r.n[field], r.text[field] = n, text
	return true
}

func swfMost(field int) int64 {
	switch field {
	case swfSubmit, swfWait, swfRun, swfRequested:
		return mostSeconds / 2
	case swfAllocated:
		return mostProcs
	case swfMemory:
		return mostMB
	}
	return 1e18
}

func (r *swfReader) refuseField(field int, why, remedy string) {
	r.breakRow(r.line, fmt.Sprintf("field %d (%s)", field+1, swfNames[field]), why, remedy)
}

func (r *swfReader) mendField(rule rule, field int) {
	r.mend(rule, r.line, swfNames[field], r.text[field])
}

// job adds the job of the record that was read.
func (r *swfReader) job() {
	j := Job{ID: r.n[swfID], Waited: -1}
	if r.n[swfWait] >= 0 {
		j.Waited = seconds(r.n[swfWait])
	}
	procs := max(r.n[swfAllocated], 1)
	if r.o.Procs > 0 && procs > r.o.Procs {
		r.mendField(tooLarge, swfAllocated)
		procs = r.o.Procs
	}
	submit := r.n[swfSubmit]
	if r.odd() {
		submit = max(submit, 1)
		j.Run, j.Limit = cluster.Second, cluster.Second
	} else {
		j.Run, j.Limit = r.times()
	}
	j.Submit = r.began + cluster.Time(submit*1000)
	r.addFinished(j, *r.shape(procs), r.line, true)
}

func seconds(n int64) cluster.Duration { return cluster.Duration(n) * cluster.Second }

// odd tells whether the job is one that never ran, got nothing, or came too early.
func (r *swfReader) odd() bool {
	before, zero, none := r.n[swfSubmit] < 0, r.n[swfRun] <= 0, r.n[swfAllocated] <= 0
	if before {
		r.mendField(beforeStart, swfSubmit)
	}
	if zero {
		r.mendField(zeroRun, swfRun)
	}
	if none {
		r.mendField(noProcessors, swfAllocated)
	}
	return before || zero || none
}

// times answers how long the job runs, and for how long it is planned.
func (r *swfReader) times() (run, limit cluster.Duration) {
	run, limit = seconds(r.n[swfRun]), seconds(r.n[swfRequested])
	switch {
	case limit <= 0:
		r.mendField(noEstimate, swfRequested)
		limit = run
	case run > limit:
		r.mendField(runOverEstimate, swfRun)
		run, limit = limit, run
	}
	return r.atMostTenYears(swfRun, run), r.atMostTenYears(swfRequested, limit)
}

func (r *swfReader) atMostTenYears(field int, d cluster.Duration) cluster.Duration {
	if d > longestRun {
		r.mendField(tooLong, field)
	}
	return min(d, longestRun)
}

// shape answers the shape of the record that was read.
func (r *swfReader) shape(procs int64) *finished {
	key := swfKey{procs, r.n[swfMemory], r.n[swfUser], r.n[swfGroup], r.n[swfProgram], r.n[swfQueue]}
	if r.lastOne != nil && key == r.last {
		return r.lastOne
	}
	one, found := r.shapes[key]
	if !found {
		one = r.newShape(key)
		r.shapes[key] = one
	}
	r.last, r.lastOne = key, one
	return one
}

func (r *swfReader) newShape(key swfKey) *finished {
	rec := &record{line: r.line, procs: key.procs}
	rec.ask.User, rec.ask.Group = numbered(key.user), numbered(key.group)
	rec.ask.Application, rec.ask.Queue = numbered(key.program), numbered(key.queue)
	if key.memory > 0 {
		// A processor's share of more than that is nobody's.
		rec.memoryMB = min(ceil(min(key.memory, mostMB/key.procs)*key.procs, 1024), mostMB)
	}
	f := r.finish(rec)
	return &f
}

// numbered is the name of what has only a number.
func numbered(n int64) string {
	if n < 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
