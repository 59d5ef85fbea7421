package trace

import (
	"bytes"
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// lsfReader reads one lsb.acct of LSF.
type lsfReader struct {
	*builder
	line int64
	// open is the beginning of a record that goes on in the next line.
	open []byte
	// finish counts the ends of jobs, and others the records of other kinds.
	finish, others int64
}

// lsfOthers are the records of lsb.acct, and of lsb.events, that are not the end
// of a job.
var lsfOthers = map[string]bool{
	"EVENT_ADRSV_FINISH": true, "JOB_RESIZE": true, "JOB_STARTLIMIT": true, "UNFULFILL": true, "LOAD_INDEX": true, "MBD_START": true, "MBD_DIE": true,
	"JOB_NEW": true, "JOB_START": true, "JOB_STATUS": true, "JOB_SWITCH": true, "JOB_MOVE": true, "QUEUE_CTRL": true, "HOST_CTRL": true,
	"JOB_START_ACCEPT": true, "JOB_EXECUTE": true, "JOB_CLEAN": true, "JOB_EXCEPTION": true, "JOB_SIGNAL": true, "JOB_FORCE": true, "JOB_REQUEUE": true,
	"JOB_MODIFY": true, "JOB_MODIFY2": true, "JOB_MSG": true, "JOB_EXT_MSG": true, "JOB_ATTA_DATA": true, "JOB_CHUNK": true, "SBD_UNREPORTED_STATUS": true,
	"CHKPNT": true, "MIG": true, "JOB_SIGACT": true, "JOB_ATTR_SET": true, "JOB_FORWARD": true, "JOB_ACCEPT": true, "MASTER": true, "PRE_EXEC_START": true,
	"EVENT_ADRSV_START": true, "JOB_PROV_HOST": true, "JOB_PROV_FINISH": true, "HOST_PROV_START": true, "HOST_PROV_FINISH": true, "HOST_CLOSURE_LOCK_ID_CTRL": true,
	"LOG_SWITCH": true, "JOB_RESIZE_NOTIFY_START": true, "JOB_RESIZE_NOTIFY_ACCEPT": true, "JOB_RESIZE_NOTIFY_DONE": true, "JOB_RESIZE_RELEASE": true, "JOB_RESIZE_CANCEL": true,
}

const jobFinish = "JOB_FINISH"

func (b *builder) readLSF(text *lines) error {
	r := &lsfReader{builder: b}
	for {
		line, more := text.next()
		if !more {
			break
		}
		r.take(bytes.TrimSpace(line), text.number)
	}
	r.closeOpen()
	if r.finish == 0 && r.others > 0 {
		return fmt.Errorf("%s: none of its %d records is %s; name an lsb.acct, in which LSF writes the ends of jobs", b.file, r.others, jobFinish)
	}
	return nil
}

// take takes a line: a record, or a part of one whose quotes have not ended.
func (r *lsfReader) take(line []byte, number int64) {
	if len(r.open) > 0 && (lsfLine.Match(line) || len(r.open) > longestLine) {
		r.closeOpen() // another begins, so that one has no end
	}
	switch {
	case len(r.open) > 0:
		r.open = append(append(r.open, '\n'), line...)
		if !openQuote(r.open) {
			r.mend(joinedRow, r.line, "", nil)
			r.closeOpen()
		}
	case len(line) == 0 || line[0] == '#':
	case openQuote(line):
		r.line, r.open = number, append(r.open, line...)
	default:
		r.line = number
		r.record(line)
	}
}

// closeOpen reads what there is of a record that goes over several lines.
func (r *lsfReader) closeOpen() {
	if len(r.open) > 0 {
		r.record(r.open)
		r.open = r.open[:0]
	}
}

// openQuote tells whether a text ends within quotes.
func openQuote(text []byte) bool { return bytes.Count(text, []byte(`"`))%2 == 1 }

// record reads a record.
func (r *lsfReader) record(line []byte) {
	f := &lsfFields{rest: line}
	switch kind := f.text("event type"); {
	case kind == jobFinish:
		r.finish++
	case lsfOthers[kind]:
		r.others++
		return
	default:
		r.breakRow(r.line, "event type", fmt.Sprintf("%.60q is no record of LSF", kind), rules[brokenRow].Remedy)
		return
	}
	var j lsfJob
	j.read(f)
	if f.fault != "" {
		r.breakRow(r.line, f.at, f.fault, rules[brokenRow].Remedy)
		return
	}
	if f.parted {
		r.mend(joinedFields, r.line, "asked hosts", nil)
	}
	r.job(&j)
}

// job adds the job of a record.
func (r *lsfReader) job(j *lsfJob) {
	if j.submit <= 0 || j.end < max(j.submit, j.start) || j.end > mostSeconds {
		r.breakRow(r.line, "submit time", fmt.Sprintf("it is submitted at %d, starts at %d and ends at %d", j.submit, j.start, j.end), rules[brokenRow].Remedy)
		return
	}
	if j.start <= 0 && j.ran > 0 && j.ran <= j.end-j.submit && len(j.hosts) > 0 {
		r.mend(noStart, r.line, "start time", nil)
		j.start = j.end - j.ran
	}
	if j.start <= 0 {
		r.mendMany(neverStarted, max(j.pending, 1), r.line, "start time", []byte(fmt.Sprint(j.start)))
		return
	}
	rec := &record{line: r.line}
	rec.ID, rec.Submit, rec.Waited = j.id, cluster.Time(j.submit*1000), max(seconds(j.start-j.submit), 0)
	if j.index > 0 {
		rec.Name = fmt.Sprintf("%d[%d]", j.id, j.index)
	}
	r.length(rec, "run time", seconds(j.end-j.start), seconds(min(max(j.limit, 0), mostSeconds)))
	rec.procs, rec.hosts = j.processors()
	r.processors(rec, "processors")
	r.asks(rec, j)
	r.addRecord(rec, false)
}

const exclusive = 0x40 // of a job's options

func (r *lsfReader) asks(rec *record, j *lsfJob) {
	s := &rec.ask
	s.User, s.Queue, s.Group, s.Name, s.Application = j.user, j.queue, j.project, j.name, j.application
	s.Exclusive = j.options&exclusive != 0
	rec.command = j.command
	usage, ok := rusageOf(j.demand(), r.o.lsfMemory())
	if !ok {
		r.mend(badText, rec.line, "resource requirement", []byte(j.demand()))
	}
	if s.Application == "" {
		s.Application = program(j.command)
	}
	rec.memoryMB = usage.memoryMB * max(rec.hosts, 1)
	if rec.memoryMB == 0 && j.memoryKB > 0 { // it asked for none: what it used, then
		rec.memoryMB = ceil(min(j.memoryKB, mostMB), 1024)
	}
	r.tokens(rec, usage)
}

// tokens fills in the tokens of the job, and how long it keeps them.
func (r *lsfReader) tokens(rec *record, usage rusage) {
	s := &rec.ask
	for i, choice := range usage.choices {
		var tokens map[string]int64
		for _, t := range choice {
			setCount(&tokens, r.name(rec.line, "rusage", t.name), t.n)
		}
		switch {
		case len(usage.choices) == 1:
			s.Tokens = tokens
		case len(tokens) > 0:
			s.Alternatives = append(s.Alternatives, tokens)
		default:
			r.mend(badText, rec.line, "rusage", []byte(fmt.Sprintf("choice %d has no tokens", i+1)))
		}
	}
	if !r.o.TokensForDuration {
		return
	}
	longest, differ := usage.duration()
	if differ {
		r.mend(durationsDiffer, rec.line, "rusage", nil)
	}
	if longest > 0 && longest < rec.Run {
		rec.TokensFor = longest
	}
}

// program answers the name of the program in a command line: the part after the
// last slash of its first word.
func program(command string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	first = first[strings.LastIndexByte(first, '/')+1:]
	if cluster.ValidName(first) {
		return first
	}
	return ""
}
