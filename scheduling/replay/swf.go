package replay

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// The fields of the Standard Workload Format that a replay needs; the format
// counts from 1.
const (
	swfID        = 0
	swfSubmit    = 1
	swfRun       = 3
	swfAllocated = 4
	swfRequested = 8 // time
	swfFields    = 9 // at least; the format has 18
)

// mostSeconds is about 30,000 years: more is no time.
const mostSeconds = 1_000_000_000_000

// ReadSWF reads a trace in the Standard Workload Format for a machine of so many
// processors, and cleans it: a job that never ran, got no processors or came
// before the log began becomes one of a second; no job takes more than the
// machine has, nor runs longer than its estimate; one without an estimate gets
// its run time as such. Decimals are cut off. What cannot be read is refused
// with its line.
func ReadSWF(r io.Reader, procs int64) (Trace, error) {
	var trace Trace
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == ';' {
			continue
		}
		record, err := readSWFRecord(line)
		if err != nil {
			return Trace{}, fmt.Errorf("line %d: %w", n, err)
		}
		trace.Jobs = append(trace.Jobs, record.clean(procs))
	}
	if err := lines.Err(); err != nil {
		return Trace{}, fmt.Errorf("after %d jobs: %w", len(trace.Jobs), err)
	}
	return trace, nil
}

// swfRecord is a line of the format, in seconds; -1 means not known.
type swfRecord struct{ id, submit, run, allocated, requested int64 }

func readSWFRecord(line string) (record swfRecord, err error) {
	fields := strings.Fields(line)
	if len(fields) < swfFields {
		return record, fmt.Errorf("there are %d fields; write the 18 of the Standard Workload Format", len(fields))
	}
	for _, f := range []struct {
		to *int64
		at int
	}{
		{&record.id, swfID},
		{&record.submit, swfSubmit},
		{&record.run, swfRun},
		{&record.allocated, swfAllocated},
		{&record.requested, swfRequested},
	} {
		if *f.to, err = wholeNumber(fields[f.at]); err != nil {
			return record, fmt.Errorf("field %d: %w", f.at+1, err)
		}
	}
	return record, nil
}

// wholeNumber reads a number, and cuts off its decimals.
func wholeNumber(text string) (int64, error) {
	whole, decimals, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(decimals, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a number; write one, or -1 where it is not known", text)
	}
	if n > mostSeconds || n < -mostSeconds {
		return 0, fmt.Errorf("%s is too large to count with; write at most %d", text, int64(mostSeconds))
	}
	return n, nil
}

func (r swfRecord) clean(procs int64) Job {
	j := Job{ID: r.id, Procs: min(max(r.allocated, 1), procs)}
	if r.run <= 0 || r.allocated <= 0 || r.submit < 0 {
		j.Submit = cluster.Time(max(r.submit, 1)) * cluster.Time(cluster.Second)
		j.Run, j.Estimate = cluster.Second, cluster.Second
		return j
	}
	if r.requested <= 0 {
		r.requested = r.run
	}
	j.Submit = cluster.Time(r.submit) * cluster.Time(cluster.Second)
	j.Run = cluster.Duration(max(min(r.run, r.requested), 1)) * cluster.Second
	j.Estimate = cluster.Duration(max(r.requested, r.run, 1)) * cluster.Second
	return j
}
