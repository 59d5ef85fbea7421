package trace

import (
	"bytes"
	"fmt"
	"regexp"
)

// sacctKind is what a column has; where a job name has the separator in it, the
// kinds of the others tell where they are.
type sacctKind uint8

const (
	anyText  sacctKind = iota // without the separator
	freeText                  // from users: may have separators and newlines
	jobID
	exitCode
	timeOfDay
	length
	number
	stateWord
	tresText
)

type sacctColumn struct {
	name string
	kind sacctKind
}

// sacctKinds are the kinds of columns, by their names in lower case.
var sacctKinds = map[string]sacctKind{
	"jobname": freeText, "submitline": freeText, "comment": freeText, "admincomment": freeText, "systemcomment": freeText,
	"workdir": freeText, "constraints": freeText, "wckey": freeText, "stdin": freeText, "stdout": freeText, "stderr": freeText,
	"jobid": jobID, "jobidraw": jobID, "state": stateWord,
	"submit": timeOfDay, "eligible": timeOfDay, "start": timeOfDay, "end": timeOfDay,
	"elapsed": length, "timelimit": length, "suspended": length,
	"elapsedraw": number, "ncpus": number, "alloccpus": number, "reqcpus": number, "nnodes": number, "allocnodes": number,
	"uid": number, "gid": number, "cputimeraw": number, "associd": number, "qosraw": number, "timelimitraw": number,
	"exitcode": exitCode, "derivedexitcode": exitCode, "alloctres": tresText, "reqtres": tresText,
}

var (
	jobIDPattern = regexp.MustCompile(`^\d+(_(\d+|\[[^\]]*\]?))?(\+\d+)?(\.[^\s|]+)?$`)
	exitPattern  = regexp.MustCompile(`^\d+:\d+$`)
	statePattern = regexp.MustCompile(`^[A-Z_]+(\+| by .*)?$`)
)

// valid tells whether a text can be of the kind.
func (k sacctKind) valid(text []byte) bool {
	switch k {
	case jobID:
		return jobIDPattern.Match(text)
	case timeOfDay:
		_, _, ok := localTime(string(text), nil)
		return ok
	case length:
		if _, ok := clock(string(text), 1); ok {
			return true
		}
		return len(text) == 0 || unlimited[string(text)]
	case number:
		_, ok := integer(text)
		return ok || len(text) == 0 || unlimited[string(text)]
	case exitCode:
		return len(text) == 0 || exitPattern.Match(text)
	case tresText:
		return len(text) == 0 || bytes.IndexByte(text, '=') > 0
	case stateWord:
		return statePattern.Match(text)
	}
	return true
}

// unlimited are the words for no limit, or none that is known.
var unlimited = map[string]bool{"UNLIMITED": true, "Unlimited": true, "Partition_Limit": true, "INVALID": true, "None": true, "Unknown": true}

// rowFault is why a row cannot be read.
type rowFault struct{ column, why, remedy string }

// align divides a text into the fields of the columns, and answers how many were
// found in it. Where there are too many, a free text has the separator in it: the
// one with which all other fields are what they should be.
func (r *sacctReader) align(text []byte) (fields [][]byte, found int, fault *rowFault) {
	r.fields = r.fields[:0]
	for f := range bytes.SplitSeq(text, []byte("|")) {
		r.fields = append(r.fields, f)
	}
	found = len(r.fields)
	more := found - len(r.columns)
	if more < 0 {
		return nil, found, &rowFault{"", fmt.Sprintf("there are %d fields of %d", found, len(r.columns)), rules[brokenRow].Remedy}
	}
	if more == 0 {
		return r.fields, found, r.check(r.fields)
	}
	fault = &rowFault{"", fmt.Sprintf("there are %d fields, more than %d", found, len(r.columns)), rules[joinedRow].Remedy}
	if more > mostSeparators {
		return nil, found, fault
	}
	a := &alignment{columns: r.columns, in: r.fields, out: make([][]byte, len(r.columns)), hopeless: map[[2]int]bool{}}
	if a.from(0, 0) {
		return a.out, found, nil
	}
	return nil, found, fault
}

// mostSeparators is how many a row can have within its texts.
const mostSeparators = 300

// alignment divides more fields than there are columns among them.
type alignment struct {
	columns []sacctColumn
	in, out [][]byte
	// hopeless are the columns and fields from which there is no way to the end.
	hopeless map[[2]int]bool
}

// from gives the fields from one on to the columns from one on, and tells whether
// that can be.
func (a *alignment) from(column, field int) bool {
	spare := (len(a.in) - field) - (len(a.columns) - column)
	if column == len(a.columns) || spare < 0 {
		return spare == 0
	}
	if a.hopeless[[2]int{column, field}] {
		return false
	}
	c := a.columns[column]
	if c.kind != freeText {
		spare = 0
	}
	for more := range spare + 1 {
		if c.kind.valid(a.in[field]) && a.from(column+1, field+more+1) {
			a.out[column] = bytes.Join(a.in[field:field+more+1], []byte("|"))
			return true
		}
	}
	a.hopeless[[2]int{column, field}] = true
	return false
}

// check tells which field is not what it should be.
func (r *sacctReader) check(fields [][]byte) *rowFault {
	for i, c := range r.columns {
		if c.kind > freeText && !c.kind.valid(fields[i]) {
			text := fields[i][:min(len(fields[i]), mostQuoted)]
			return &rowFault{c.name, fmt.Sprintf("%q cannot be", text), "write it as sacct does, or list the column without it"}
		}
	}
	return nil
}
