package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// lsfFields goes through a record's fields. The first fault stays.
type lsfFields struct {
	rest      []byte
	at, fault string
	// parted tells that a number was divided.
	parted bool
}

func (f *lsfFields) fail(at, why string) {
	if f.fault == "" {
		f.at, f.fault = at, why
	}
}

// next answers the next field as it is written, without the quotes around it.
func (f *lsfFields) next(name string) []byte {
	f.rest = bytes.TrimLeft(f.rest, " \t")
	if f.fault != "" || len(f.rest) == 0 {
		f.fail(name, "the record ends before it")
		return nil
	}
	if f.rest[0] != '"' {
		end := bytes.IndexAny(f.rest, " \t")
		if end < 0 {
			end = len(f.rest)
		}
		field := f.rest[:end]
		f.rest = f.rest[end:]
		return field
	}
	for at := 1; ; at++ {
		quote := bytes.IndexByte(f.rest[at:], '"')
		if quote < 0 {
			f.fail(name, "its quotes do not end")
			return nil
		}
		at += quote
		if at+1 < len(f.rest) && f.rest[at+1] == '"' { // a quote in the text
			at++
			continue
		}
		field := f.rest[1:at]
		f.rest = f.rest[at+1:]
		return field
	}
}

func (f *lsfFields) text(name string) string {
	return strings.ReplaceAll(string(f.next(name)), `""`, `"`)
}

func (f *lsfFields) number(name string) int64 {
	text := f.next(name)
	if f.fault != "" {
		return 0
	}
	n, _, ok := whole(text)
	if !ok || n > 1<<53 || n < -1<<53 {
		f.fail(name, fmt.Sprintf("%q is not a number", text[:min(len(text), mostQuoted)]))
	}
	return n
}

// skip goes over n fields.
func (f *lsfFields) skip(n int, name string) {
	for range n {
		f.next(name)
	}
}

// part divides a number that begins with 0, as in 02: some versions write no blank
// after no asked hosts.
func (f *lsfFields) part() {
	rest := bytes.TrimLeft(f.rest, " \t")
	if len(rest) > 1 && rest[0] == '0' && rest[1] >= '0' && rest[1] <= '9' {
		f.rest = append([]byte("0 "), rest[1:]...)
		f.parted = true
	}
}

// counted answers how many fields of a variable section follow.
func (f *lsfFields) counted(name string) int {
	n := f.number(name)
	if n < 0 || n > int64(len(f.rest)) {
		f.fail(name, fmt.Sprintf("%d cannot be", n))
		return 0
	}
	return int(n)
}

// lsfJob is what is read of a JOB_FINISH record. Times are in seconds.
type lsfJob struct {
	id, end, options, least, most, submit, start, index int64
	limit, memoryKB, ran, pending                       int64
	user, queue, wish, effective, name, command         string
	project, application                                string
	hosts                                               []string
}

// read reads the fields up to the application. What follows was added by and by,
// so older records end sooner.
func (j *lsfJob) read(f *lsfFields) {
	f.skip(1, "version")
	j.end, j.id = f.number("event time"), f.number("job id")
	f.skip(1, "user id")
	j.options, j.least, j.submit = f.number("options"), f.number("processors"), f.number("submit time")
	f.skip(2, "begin and termination time")
	j.start, j.user, j.queue, j.wish = f.number("start time"), f.text("user"), f.text("queue"), f.text("resource requirement")
	f.skip(8, "files")
	f.part()
	f.skip(f.counted("asked hosts"), "asked hosts")
	for range f.counted("hosts") {
		j.hosts = append(j.hosts, f.text("hosts"))
	}
	f.skip(2, "status and host factor")
	j.name, j.command = f.text("job name"), f.text("command")
	f.skip(19, "resource usage")
	f.skip(1, "mail user")
	j.project = f.text("project")
	f.skip(1, "exit status")
	j.most = f.number("maximal processors")
	f.skip(2, "login shell and time event")
	j.index, j.memoryKB = f.number("index"), f.number("maximal memory")
	f.skip(11, "exit information")
	f.skip(1, "licence project")
	j.application = f.text("application")
	if f.fault == "" {
		j.readLater(&lsfFields{rest: f.rest})
	}
}

// readLater reads what newer records have: where they end, the rest is not known.
func (j *lsfJob) readLater(f *lsfFields) {
	f.skip(9, "post-execution")
	f.skip(2*f.counted("further options"), "further options")
	f.skip(6*f.counted("host usage"), "host usage")
	if limit := f.number("run limit"); f.fault == "" {
		j.limit = limit
	}
	f.skip(2, "options and average memory")
	if effective := f.text("effective resource requirement"); f.fault == "" {
		j.effective = effective
	}
	f.skip(9, "forwarding")
	if ran := f.number("run time"); f.fault == "" {
		j.ran = ran
	}
	f.skip(1, "folder")
	f.skip(2*f.counted("networks"), "networks")
	f.skip(1+5, "affinity and energy")
	f.skip(f.counted("slots"), "slots")
	f.skip(1, "ineligible time")
	for range f.counted("index ranges") {
		first, last, step := f.number("first index"), f.number("last index"), f.number("index step")
		if f.fault == "" && step > 0 && last >= first && last-first < mostProcs {
			j.pending += (last-first)/step + 1
		}
	}
}

// demand is the resource requirement that was in force.
func (j *lsfJob) demand() string {
	if strings.TrimSpace(j.effective) != "" {
		return j.effective
	}
	return j.wish
}

// processors answers how many slots the job had, on how many hosts. The list of
// hosts names one once per slot, or as "16*host".
func (j *lsfJob) processors() (slots, hosts int64) {
	var names []string
	for _, h := range j.hosts {
		n := int64(1)
		if many, name, found := strings.Cut(h, "*"); found && leadingNumber(many) > 0 {
			n, h = min(leadingNumber(many), mostProcs), name
		}
		slots += n
		names = append(names, h)
	}
	slices.Sort(names)
	hosts = int64(len(slices.Compact(names)))
	if slots == 0 {
		return min(max(j.most, j.least, 0), mostProcs), hosts
	}
	return min(max(slots, j.least), mostProcs), hosts
}
