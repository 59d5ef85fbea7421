package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// headerless is how many columns a listing without header line must have at
// least: it is then taken for one that XDMoD makes.
const headerless = 26

// headerlessColumns are the columns of such a listing.
const headerlessColumns = "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|GID|User|UID|Submit|Eligible|Start|End|Elapsed|ExitCode|State|" +
	"NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|Timelimit|NodeList|JobName"

// sacctReader reads one listing of Slurm's sacct.
type sacctReader struct {
	*builder
	columns []sacctColumn
	// at answers where a column is, by its name in lower case.
	at map[string]int
	// row are the fields of the record that is read now, at a line.
	row  [][]byte
	line int64
	// open is the beginning of a record that goes on in the next line.
	open      []byte
	openLines int
	fields    [][]byte
}

// mostJoined is over how many lines one record can go, and longestRow over how many bytes.
const (
	mostJoined = 500
	longestRow = 1 << 18
)

// isSacctHeader tells whether a line names columns.
func isSacctHeader(line []byte) bool {
	if bytes.IndexByte(line, '|') < 0 {
		return false
	}
	for name := range bytes.SplitSeq(line, []byte("|")) {
		if bytes.EqualFold(name, []byte("JobID")) || bytes.EqualFold(name, []byte("JobIDRaw")) {
			return true
		}
	}
	return false
}

func (b *builder) readSacct(text *lines) error {
	r := &sacctReader{builder: b}
	for {
		line, more := text.next()
		if !more {
			r.closeBroken()
			return nil
		}
		switch {
		case r.columns == nil && len(bytes.TrimSpace(line)) == 0:
		case isSacctHeader(line):
			r.closeBroken()
			r.head(string(line))
			if missing := r.missing(); missing != "" {
				return fmt.Errorf("%s:%d: there is no column %s; list the jobs with `sacct -P --format=%s`", b.file, text.number, missing, strings.ReplaceAll(headerlessColumns, "|", ","))
			}
		case r.columns == nil && bytes.Count(line, []byte("|")) < headerless-1:
			return fmt.Errorf("%s:%d: there is no header line that names the columns; list the jobs with `sacct -P` without --noheader", b.file, text.number)
		default:
			if r.columns == nil {
				r.head(headerlessColumns)
			}
			r.take(line, text.number)
		}
	}
}

// head notes the columns.
func (r *sacctReader) head(line string) {
	r.columns, r.at = nil, map[string]int{}
	for i, name := range strings.Split(strings.TrimSuffix(line, "|"), "|") {
		name = strings.TrimSpace(name)
		r.columns = append(r.columns, sacctColumn{name, sacctKinds[strings.ToLower(name)]})
		if _, twice := r.at[strings.ToLower(name)]; !twice {
			r.at[strings.ToLower(name)] = i
		}
	}
	if strings.HasSuffix(line, "|") { // sacct -p ends each line with one
		r.columns = append(r.columns, sacctColumn{"", anyText})
	}
}

// missing answers a column without which jobs are not known, or nothing.
func (r *sacctReader) missing() string {
	switch {
	case !r.has("submit"):
		return "Submit"
	case !r.has("elapsed", "elapsedraw") && !(r.has("start") && r.has("end")):
		return "Elapsed"
	case !r.has("ncpus", "alloccpus", "reqcpus", "alloctres", "reqtres"):
		return "NCPUS"
	}
	return ""
}

// take takes a line: a record, or a part of one.
func (r *sacctReader) take(line []byte, number int64) {
	if r.open != nil {
		r.join(line, number)
		return
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	r.line = number
	fields, found, fault := r.align(line)
	switch {
	case fault == nil:
		if found != len(r.columns) {
			r.mend(joinedRow, number, "", nil)
		}
		r.row = fields
		r.job()
	case found == len(r.columns):
		r.breakRow(number, fault.column, fault.why, fault.remedy)
	case bytes.IndexByte(line, '|') < 0 && len(r.jobs) > 0 && r.columns[len(r.columns)-1].kind == freeText:
		r.mend(joinedRow, number, "", line) // the end of the text of the job before
	default:
		r.open, r.openLines = append([]byte{}, line...), 1
	}
}

// join adds a line to the record that has begun.
func (r *sacctReader) join(line []byte, number int64) {
	if _, _, fault := r.align(line); fault == nil { // what was open had no end
		r.closeBroken()
		r.take(line, number)
		return
	}
	r.open = append(append(r.open, '\n'), line...)
	r.openLines++
	fields, _, fault := r.align(r.open)
	switch {
	case fault == nil:
		r.mend(joinedRow, r.line, "", nil)
		r.row = fields
		r.job()
		r.open = nil
	case r.openLines == mostJoined || len(r.open) > longestRow:
		r.closeBroken()
	}
}

// closeBroken gives up on a record that has begun.
func (r *sacctReader) closeBroken() {
	if r.open == nil {
		return
	}
	_, _, fault := r.align(r.open)
	if fault != nil {
		r.breakRow(r.line, fault.column, fault.why, fault.remedy)
	}
	r.open = nil
}

// has tells whether there is one of these columns.
func (r *sacctReader) has(columns ...string) bool {
	return slices.ContainsFunc(columns, func(c string) bool { _, found := r.at[c]; return found })
}

// get answers the field of a column, or of the first of several that says something.
func (r *sacctReader) get(columns ...string) string {
	for _, c := range columns {
		if i, found := r.at[c]; found && len(r.row[i]) > 0 {
			return string(r.row[i])
		}
	}
	return ""
}

// job adds the job of the record that was read.
func (r *sacctReader) job() {
	id, raw := r.get("jobid", "jobidraw"), r.get("jobidraw", "jobid")
	base, element, _ := strings.Cut(id, "_")
	state, _, _ := strings.Cut(strings.TrimSuffix(r.get("state"), "+"), " ")
	switch {
	case strings.ContainsRune(id, '.'):
		r.mend(steps, r.line, "JobID", []byte(id))
		return
	case strings.HasPrefix(element, "["):
		r.mendMany(neverStarted, elements(element), r.line, "JobID", []byte(id))
		return
	case strings.ContainsRune(id, '+'):
		r.mend(hetero, r.line, "JobID", []byte(id))
	}
	rec := &record{line: r.line}
	rec.ID, rec.Name = leadingNumber(raw), id
	if id == strconv.FormatInt(rec.ID, 10) {
		rec.Name = ""
	}
	if rec.ID == 0 {
		rec.ID = leadingNumber(base)
	}
	if r.times(rec, state) {
		r.asks(rec)
		r.addRecord(rec, false)
	}
}

// times fills in the times, and tells whether the job is one that ran.
func (r *sacctReader) times(rec *record, state string) bool {
	rec.Submit, _ = r.time("submit")
	start, started := r.time("start")
	end, ended := r.time("end")
	run, known := r.elapsed()
	if !known && started && ended {
		run, known = end.Sub(start), true
	}
	nowhere := strings.HasPrefix(strings.ToLower(r.get("nodelist")), "none assigned")
	switch {
	case rec.Submit <= 0:
		r.breakRow(r.line, "Submit", fmt.Sprintf("%q is not known", r.get("submit")), "list the column Submit")
		return false
	case !started && r.has("start"), sacctWaits(state), run == 0 && (nowhere || state == "CANCELLED"):
		r.mend(neverStarted, r.line, "State", []byte(r.get("state")))
		return false
	case !known || run < 0:
		r.breakRow(r.line, "Elapsed", "it is not known how long the job ran", "list the column Elapsed, or Start and End")
		return false
	case sacctRuns(state):
		r.mend(notEnded, r.line, "State", []byte(r.get("state")))
	case !sacctEnds(state) && r.has("state"):
		r.mend(unknownState, r.line, "State", []byte(r.get("state")))
	}
	rec.Waited = -1
	if started && start >= rec.Submit {
		rec.Waited = start.Sub(rec.Submit)
	}
	limit, _ := r.limit()
	r.length(rec, "Elapsed", run, limit)
	return true
}

// length fills in how long the job runs at most.
func (b *builder) length(rec *record, field string, run, limit cluster.Duration) {
	if run <= 0 {
		b.mend(zeroRun, rec.line, field, nil)
		run = cluster.Second
	}
	if limit > 0 && run > limit {
		b.mend(runOverLimit, rec.line, field, []byte(run.String()))
		limit = run
	}
	if max(run, limit) > longestRun {
		b.mend(tooLong, rec.line, field, []byte(max(run, limit).String()))
		run, limit = min(run, longestRun), min(limit, longestRun)
	}
	rec.Run, rec.Limit = run, limit
}

// time answers a time, and false where it is not known.
func (r *sacctReader) time(column string) (cluster.Time, bool) {
	at, known, _ := localTime(r.get(column), r.zone)
	return at, known
}

func (r *sacctReader) elapsed() (cluster.Duration, bool) {
	if n, ok := integer([]byte(r.get("elapsedraw"))); ok {
		return seconds(min(n, mostSeconds)), true
	}
	return clock(r.get("elapsed"), cluster.Minute)
}

// limit answers the time limit; 0 means none.
func (r *sacctReader) limit() (cluster.Duration, bool) {
	if n, ok := integer([]byte(r.get("timelimitraw"))); ok && n >= 0 {
		return cluster.Duration(min(n, mostSeconds/60)) * cluster.Minute, true
	}
	return clock(r.get("timelimit"), cluster.Minute)
}

// asks fills in what the job asked for.
func (r *sacctReader) asks(rec *record) {
	s := &rec.ask
	s.User, s.Queue, s.Name = r.get("user", "uid"), r.get("partition"), r.get("jobname")
	s.Group, s.Application = r.get("account", "group"), r.get("wckey")
	rec.command = r.get("submitline")
	resources := tresOf(r.get("alloctres", "reqtres"))
	rec.procs = firstPositive(r.get("ncpus"), r.get("alloccpus"), resources.cpus, r.get("reqcpus"))
	rec.hosts = firstPositive(r.get("nnodes"), r.get("allocnodes"), resources.nodes, r.get("reqnodes"))
	r.processors(rec, "NCPUS")
	r.memory(rec, resources.memory)
	r.licences(rec, resources)
	for _, c := range resources.gres {
		setCount(&s.Countables, r.name(rec.line, "AllocTRES", c.name), ceil(c.n, max(rec.hosts, 1)))
	}
}

// processors mends how many processors and hosts the job has.
func (b *builder) processors(rec *record, field string) {
	if rec.procs <= 0 {
		b.mend(oneProcessor, rec.line, field, nil)
		rec.procs = 1
	}
	if b.o.Procs > 0 && rec.procs > b.o.Procs {
		b.mend(tooLarge, rec.line, field, strconv.AppendInt(nil, rec.procs, 10))
		rec.procs = b.o.Procs
	}
	rec.hosts = min(rec.hosts, rec.procs)
}

// memory fills in the job's memory: that of the TRES is the whole job's.
func (r *sacctReader) memory(rec *record, tres string) {
	text, times := tres, int64(1)
	if text == "" {
		text = r.get("reqmem")
		switch {
		case strings.HasSuffix(text, "c"):
			text, times = text[:len(text)-1], rec.procs
		case strings.HasSuffix(text, "n"):
			text, times = text[:len(text)-1], max(rec.hosts, 1)
		}
	}
	if text == "" || text == "0" {
		return
	}
	mb, ok := memory(text, 1<<20)
	if !ok {
		r.mend(badText, rec.line, "ReqMem", []byte(text))
		return
	}
	rec.memoryMB = min(mb, mostMB/times) * times
}

// licences fills in the tokens: those of the TRES, or of the column Licenses.
func (r *sacctReader) licences(rec *record, resources tres) {
	asked := resources.licences
	if len(asked) == 0 {
		asked = licencesOf(r.get("licenses"))
	}
	for _, l := range asked {
		if l.n < 1 {
			r.mend(badText, rec.line, "Licenses", []byte(l.name))
			continue
		}
		setCount(&rec.ask.Tokens, r.name(rec.line, "license", l.name), l.n)
	}
}

// setCount adds to a count.
func setCount(counts *map[string]int64, name string, n int64) {
	if *counts == nil {
		*counts = map[string]int64{}
	}
	(*counts)[name] = min((*counts)[name]+n, mostProcs)
}

// firstPositive answers the first number that is more than 0.
func firstPositive(texts ...string) int64 {
	for _, text := range texts {
		if n, ok := integer([]byte(text)); ok && n > 0 && n <= mostProcs {
			return n
		}
	}
	return 0
}

// States of Slurm, by what they mean for the length of a job.
var (
	waitingStates = []string{"PENDING", "REQUEUE_HOLD", "SIGNALING", "RESV_DEL_HOLD"}
	runningStates = []string{"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STOPPED", "STAGE_OUT", "POWER_UP_NODE"}
	endedStates   = []string{
		"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED",
		"SPECIAL_EXIT", "REQUEUED", "REQUEUE_FED", "LAUNCH_FAILED", "RECONFIG_FAIL",
	}
)

func sacctWaits(state string) bool { return slices.Contains(waitingStates, state) }
func sacctRuns(state string) bool  { return slices.Contains(runningStates, state) }
func sacctEnds(state string) bool  { return slices.Contains(endedStates, state) }
