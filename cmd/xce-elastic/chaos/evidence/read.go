package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// ReadLender reads a pool: its file and the journal beside it.
func ReadLender(name, file string) (Lender, error) {
	l := Lender{Name: name}
	var state struct {
		Grants []struct {
			RequestID string `json:"request_id"`
			Units     int64  `json:"units"`
		} `json:"grants"`
		// Unlogged are the latest changes, which the journal may not have yet.
		Unlogged []json.RawMessage `json:"unlogged"`
	}
	lines, err := readState(file, &state, func() []json.RawMessage { return state.Unlogged })
	if err != nil {
		return l, err
	}
	for _, g := range state.Grants {
		if g.Units > 0 {
			l.Open = append(l.Open, OpenGrant{g.RequestID, g.Units})
		}
	}
	for _, text := range lines {
		var line struct {
			LoanLine
			Time time.Time `json:"time"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return l, fmt.Errorf("journal of %s: %q: %w", file, text, err)
		}
		line.At = cluster.TimeOf(line.Time)
		if int64(len(l.Lines)) < line.Sequence {
			l.Lines = append(l.Lines, line.LoanLine)
		}
	}
	return l, nil
}

// ReadMaker reads a provider of hosts: its file and the journal beside it.
func ReadMaker(name, file string) (Maker, error) {
	m := Maker{Name: name}
	var state struct {
		Hosts []struct {
			Instance string `json:"instance"`
			State    string `json:"state"`
		} `json:"hosts"`
		Unlogged []json.RawMessage `json:"unlogged"`
	}
	lines, err := readState(file, &state, func() []json.RawMessage { return state.Unlogged })
	if err != nil {
		return m, err
	}
	for _, h := range state.Hosts {
		if h.State == "pending" || h.State == "granted" || h.State == "ending" {
			m.Open = append(m.Open, h.Instance)
		}
	}
	for _, text := range lines {
		var line struct {
			HostLine
			Milliseconds int64 `json:"at_ms"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return m, fmt.Errorf("journal of %s: %q: %w", file, text, err)
		}
		line.At = cluster.Time(line.Milliseconds)
		if int64(len(m.Lines)) < line.Sequence {
			m.Lines = append(m.Lines, line.HostLine)
		}
	}
	return m, nil
}

// readState reads a state file, and answers the lines of its journal with those that the file still carries.
func readState(file string, state any, unlogged func() []json.RawMessage) (lines []json.RawMessage, err error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, state)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	journal, err := os.ReadFile(file + ".log")
	if err != nil {
		return nil, fmt.Errorf("read the journal of %s: %w", file, err)
	}
	for line := range bytes.Lines(journal) {
		lines = append(lines, bytes.TrimSpace(line))
	}
	return append(lines, unlogged()...), nil
}

// Script is the command of a job that writes a line when it begins and another when it ends: what, job,
// requeues, name, machine, nanoseconds and tokens. The lines of jobs that write at once do not mix: each is one
// write to the end of the file.
func Script(file, name, seconds string, tokens map[string]int64) []string {
	words := []string{}
	for resource, units := range tokens {
		words = append(words, fmt.Sprintf("%s=%d", resource, units))
	}
	mark := func(what string) string {
		return fmt.Sprintf(`echo "%s $XCE_JOB_ID $XCE_JOB_REQUEUES %s ${LOCAL_HOST##*/} $(date +%%s%%N) %s" >>'%s'`, what, name, strings.Join(words, " "), file)
	}
	return []string{"sh", "-c", mark("begin") + "; sleep " + seconds + "; " + mark("end")}
}

// ReadMarks reads the lines of jobs.
func ReadMarks(file string) (marks []Mark, err error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lines of jobs: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		m, err := readMark(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("line %q of %s: %w", strings.TrimSpace(line), file, err)
		}
		marks = append(marks, m)
	}
	return marks, nil
}

func readMark(fields []string) (m Mark, err error) {
	if len(fields) < 6 {
		return m, fmt.Errorf("%d words are too few", len(fields))
	}
	m = Mark{What: fields[0], Name: fields[3], Machine: fields[4]}
	var nanoseconds int64
	for i, number := range []*int64{&m.Job, &m.Requeues} {
		if *number, err = strconv.ParseInt(fields[1+i], 10, 64); err != nil {
			return m, err
		}
	}
	if nanoseconds, err = strconv.ParseInt(fields[5], 10, 64); err != nil {
		return m, err
	}
	m.At = cluster.Time(nanoseconds / int64(time.Millisecond))
	for _, word := range fields[6:] {
		resource, units, _ := strings.Cut(word, "=")
		if m.Tokens == nil {
			m.Tokens = map[string]int64{}
		}
		if m.Tokens[resource], err = strconv.ParseInt(units, 10, 64); err != nil {
			return m, err
		}
	}
	return m, nil
}

// Kinds of records that are not a write to a row of a loan or host.
const (
	kindLease = "lease"
	loanWrite = "loan-"
	hostWrite = "host-"
)

// ReadRecord reads an audit record as the API has it.
func ReadRecord(c api.Change) (Record, error) {
	r := Record{
		Revision: c.Revision, At: c.At, Actor: c.Actor, Kind: c.Kind, Subject: c.Subject, Why: c.Why,
		Resource: c.Resource, TotalBefore: c.TotalBefore, TotalAfter: c.TotalAfter,
	}
	if len(c.After) == 0 || string(c.After) == "null" {
		return r, nil
	}
	var whose struct {
		Provider string `json:"provider"`
	}
	if err := json.Unmarshal(c.After, &whose); err == nil {
		r.Provider = whose.Provider
	}
	var into any
	switch {
	case c.Kind == "resource":
		into = &r.Shared
	case c.Kind == "job":
		into = &r.Job
	case c.Kind == kindLease:
		into = &r.Lease
	case strings.HasPrefix(c.Kind, loanWrite):
		into = &r.Loan
	case strings.HasPrefix(c.Kind, hostWrite):
		into = &r.Host
	default:
		return r, nil
	}
	if err := json.Unmarshal(c.After, into); err != nil {
		return r, fmt.Errorf("read record %d, %s of %s: %w", c.Revision, c.Kind, c.Subject, err)
	}
	return r, nil
}

// Rows reads rows as the API has them into those of this package.
func Rows[T any](rows any) (read []T, err error) {
	data, err := json.Marshal(rows)
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return read, nil
}
