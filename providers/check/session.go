package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"xce.internal/elastic/providers"
)

// patience is how long something may stay pending before the check goes on without it.
const patience = 2 * time.Minute

// longestPause keeps the check brisk with providers that like to be polled rarely.
const longestPause = 5 * time.Second

// session is one run of all the checks: the script, and the book of what was got from it.
type session struct {
	runner      *providers.Runner
	out         io.Writer
	report      Report
	description providers.Description
	want        goods         // what the lending checks ask for
	prefix      string        // of every request id, so that nothing else is ever touched
	given       int           // ids so far
	longest     time.Duration // of a pause between two looks
	leaking     bool          // a grant did not come back, so nothing more is borrowed

	mu      sync.Mutex
	open    map[string]bool // requests that may have given us something, until a return is confirmed
	slowest time.Duration   // call of the check that runs

	hosts      map[string]string // whose each instance is, that of any request
	identified []string          // requests whose instances are known
}

// reply is one call and what it means.
type reply struct {
	outcome providers.Outcome
	text    string
}

// says makes a row of a reply.
func (r reply) says(verdict Verdict, expected, found string) Row {
	if r.outcome.Status == providers.StatusUnknown {
		found = strings.TrimPrefix(found+"; "+r.outcome.Message, "; ")
	}
	return Row{Verdict: verdict, Expected: expected, Found: found, Answer: r.text}
}

func (s *session) newID() string {
	s.given++
	return fmt.Sprintf("%s%d", s.prefix, s.given)
}

// call sends what it is told to send, right or wrong.
func (s *session) call(ctx context.Context, verb providers.Verb, in any) providers.Execution {
	return s.send(ctx, verb, marshal(in))
}

func marshal(in any) []byte {
	text, err := json.Marshal(in)
	if err != nil {
		panic(err) // only messages of the contract are sent
	}
	return text
}

func (s *session) send(ctx context.Context, verb providers.Verb, text []byte) providers.Execution {
	run := s.runner.Raw(ctx, verb, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowest = max(s.slowest, run.Elapsed)
	return run
}

func answered(run providers.Execution, outcome providers.Outcome) reply {
	const longest = 4 << 10
	text := string(run.Stdout)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "")
	}
	return reply{outcome: outcome, text: text}
}

func (s *session) request(ctx context.Context, in providers.RequestIn) (providers.RequestOut, reply) {
	return s.requestAs(ctx, in, marshal(in))
}

// requestAs puts a request in these very words.
func (s *session) requestAs(ctx context.Context, in providers.RequestIn, text []byte) (providers.RequestOut, reply) {
	first := s.mayHold(in.RequestID)
	run := s.send(ctx, providers.VerbRequest, text)
	out, outcome := providers.ClassifyRequest(in, run)
	if first && outcome.Status == providers.StatusRefused {
		s.holdsNone(in.RequestID)
	}
	return out, answered(run, outcome)
}

func (s *session) status(ctx context.Context, id string) (providers.RequestState, reply) {
	in := providers.StatusIn{RequestIDs: []string{id}}
	run := s.call(ctx, providers.VerbStatus, in)
	out, outcome := providers.ClassifyStatus(in, run)
	if outcome.Status != providers.StatusOK {
		return providers.RequestState{}, answered(run, outcome)
	}
	return out.Requests[0], answered(run, outcome)
}

func (s *session) giveBack(ctx context.Context, in providers.ReturnIn) (providers.ReturnOut, reply) {
	run := s.call(ctx, providers.VerbReturn, in)
	out, outcome := providers.ClassifyReturn(in, run)
	if outcome.Status == providers.StatusOK && out.Remaining == 0 {
		s.holdsNone(in.RequestID)
	}
	return out, answered(run, outcome)
}

// mayHold notes that a request may give us something, and says whether that is new.
func (s *session) mayHold(id string) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.open[id]
	s.open[id] = true
	return first
}

func (s *session) holdsNone(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// held lists what the provider believes this check holds.
func (s *session) held(ctx context.Context) (map[string]providers.Grant, reply) {
	run := s.call(ctx, providers.VerbList, struct{}{})
	out, outcome := providers.ClassifyList(run)
	held := map[string]providers.Grant{}
	for _, grant := range out.Grants {
		if strings.HasPrefix(grant.RequestID, s.prefix) {
			held[grant.RequestID] = grant
		}
	}
	return held, answered(run, outcome)
}

// listShows checks that list has these units of a request; 0 means that it must not be there.
func (s *session) listShows(ctx context.Context, id string, units int64) Row {
	held, reply := s.held(ctx)
	expected := fmt.Sprintf("list shows %d units of %s", units, id)
	if reply.outcome.Status != providers.StatusOK {
		return reply.says(Wrong, expected, "no usable list").mend("list must always answer {\"grants\":[...]}")
	}
	if held[id].Units != units {
		return reply.says(Wrong, expected, fmt.Sprintf("it shows %d", held[id].Units)).
			mend("keep one record per request id, change it in one step, and answer list from that record")
	}
	return s.identify(reply, id, units, held[id].Instances)
}

// obtain asks for units and waits until the provider has decided.
func (s *session) obtain(ctx context.Context, units int64) (id string, granted int64, row Row) {
	in := s.requestOf(units)
	out, reply := s.request(ctx, in)
	granted, row = s.decided(ctx, in, out, reply)
	return in.RequestID, granted, row
}

// decided waits for the end of a request, and judges it.
func (s *session) decided(ctx context.Context, in providers.RequestIn, out providers.RequestOut, last reply) (int64, Row) {
	state := providers.RequestState{Granted: out.Granted, Instances: out.Instances}
	if out.Status == providers.StatusPending {
		state, last = s.await(ctx, in.RequestID, out.RetryAfter, last)
	}
	if row := s.identify(last, in.RequestID, state.Granted, state.Instances); row.Verdict != OK {
		return state.Granted, row
	}
	return state.Granted, s.judgeGrant(last, in, state.Granted)
}

// await polls a pending request; it answers what came of it, and the last reply.
func (s *session) await(ctx context.Context, id string, retry int64, last reply) (providers.RequestState, reply) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if s.pause(ctx, retry) != nil {
			break
		}
		var state providers.RequestState
		state, last = s.status(ctx, id)
		retry = state.RetryAfter
		switch {
		case last.outcome.Status != providers.StatusOK, state.Status == providers.StateUnknown:
			last.outcome.Status = providers.StatusUnknown
			return providers.RequestState{}, last
		case state.Status == providers.StateRefused:
			last.outcome.Status, last.outcome.Reason = providers.StatusRefused, state.Reason
			s.holdsNone(id)
			return providers.RequestState{}, last
		case state.Status == providers.StateGranted:
			return state, last
		}
		last.outcome.Status = providers.StatusPending
	}
	return providers.RequestState{}, last
}

func (s *session) judgeGrant(last reply, in providers.RequestIn, granted int64) Row {
	expected := fmt.Sprintf("ok, or pending and then granted, for %d %s within a headroom of %d", in.Units, s.want.name, s.want.headroom)
	switch last.outcome.Status {
	case providers.StatusOK:
		if granted > in.Units {
			return last.says(Warning, expected, fmt.Sprintf("granted %d", granted)).mend("grant what was asked; the surplus comes back at once")
		}
		return good()
	case providers.StatusPending:
		return last.says(Warning, expected, "still pending after "+patience.String()).mend("see what the lender waits for")
	case providers.StatusRefused, providers.StatusPartial:
		return last.says(Warning, expected, "less than describe offers").mend("let describe's headroom say what a request would get; others may have been faster")
	}
	return last.says(Wrong, expected, "").mend("print exactly one JSON object of the contract, and repeat request_id")
}

func (s *session) pause(ctx context.Context, seconds int64) error {
	if seconds == 0 {
		seconds = s.description.PollInterval
	}
	select {
	case <-time.After(min(time.Duration(seconds)*time.Second, s.longest)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// giveAllBack returns the whole of a request, however often it must be said.
func (s *session) giveAllBack(ctx context.Context, id string, units int64) (last reply) {
	in := providers.ReturnIn{RequestID: id, Units: units}
	for deadline := time.Now().Add(patience); ; {
		out, reply := s.giveBack(ctx, in)
		waiting := out.Status == providers.StatusPending || out.Status == providers.StatusPartial
		if !waiting || time.Now().After(deadline) || s.pause(ctx, out.RetryAfter) != nil {
			return reply
		}
	}
}
