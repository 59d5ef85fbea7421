package record

import (
	"bytes"
	"encoding/json"
	"fmt"

	"xce.internal/elastic/cluster"
)

// line is an entry as it is written.
type line struct {
	At      cluster.Time    `json:"at,omitempty"`
	Session *sessionLine    `json:"session,omitempty"`
	Loan    json.RawMessage `json:"loan,omitempty"`
	Host    json.RawMessage `json:"host,omitempty"`
	Fact    json.RawMessage `json:"fact,omitempty"`
	Lend    json.RawMessage `json:"lend,omitempty"`
	Missed  int64           `json:"missed,omitempty"`
}

// sessionLine is what changed since the last session in the file.
type sessionLine struct {
	State  map[string]json.RawMessage `json:"state,omitempty"`
	Limits map[string]json.RawMessage `json:"limits,omitempty"`
	Result map[string]json.RawMessage `json:"result,omitempty"`
}

// sessions is how the last session in a file stands.
type sessions struct{ state, limits, result document }

func newSessions() sessions { return sessions{document{}, document{}, document{}} }

// write answers a session as what changed, and the session as it stands then.
func (s sessions) write(e SessionEntry, result document) (*sessionLine, sessions, error) {
	state, err := documentOf(e.Input)
	if err != nil {
		return nil, s, fmt.Errorf("encode a session's state: %w", err)
	}
	limits, err := documentOf(e.Limits)
	if err != nil {
		return nil, s, fmt.Errorf("encode a session's limits: %w", err)
	}
	now := sessions{state, limits, result}
	return &sessionLine{State: state.since(s.state), Limits: limits.since(s.limits), Result: result.since(s.result)}, now, nil
}

// read answers the session that a line stands for.
func (s sessions) read(l *sessionLine) (*SessionEntry, error) {
	e := &SessionEntry{}
	for _, part := range []struct {
		document
		changes map[string]json.RawMessage
		into    any
	}{{s.state, l.State, &e.Input}, {s.limits, l.Limits, &e.Limits}, {s.result, l.Result, &e.Result}} {
		if err := part.apply(part.changes); err != nil {
			return nil, err
		}
		if err := part.document.into(part.into); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// entry answers the entry that a line stands for.
func (l line) entry(s sessions) (e Entry, err error) {
	e.At, e.Missed = l.At, l.Missed
	switch {
	case l.Session != nil:
		e.Session, err = s.read(l.Session)
	case l.Loan != nil:
		e.Loan = &LoanEntry{}
		err = strictly(l.Loan, e.Loan)
	case l.Host != nil:
		e.Host = &HostEntry{}
		err = strictly(l.Host, e.Host)
	case l.Fact != nil:
		e.Fact = &FactEntry{}
		err = strictly(l.Fact, e.Fact)
	case l.Lend != nil:
		e.Lend = &LendEntry{}
		err = strictly(l.Lend, e.Lend)
	}
	return e, err
}

// strictly fills a value with JSON, and refuses keys that it does not know: what was decided on them cannot be
// judged here.
func strictly(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(value)
}
