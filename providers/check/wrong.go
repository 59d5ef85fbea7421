package check

import (
	"bytes"
	"context"
	"fmt"

	"xce.internal/elastic/providers"
)

// wrongQuestions are asked first: they must change nothing.
var wrongQuestions = []step{
	{"a verb that does not exist", (*session).unknownVerb},
	{"input cut short", (*session).cutShort},
	{"a name that does not exist", (*session).unknownName},
	{"a request for 0 units", func(s *session, ctx context.Context) Row { return s.wrongUnits(ctx, 0) }},
	{"a request for -1 units", func(s *session, ctx context.Context) Row { return s.wrongUnits(ctx, -1) }},
	{"a request beyond the contract's limit", func(s *session, ctx context.Context) Row {
		return s.wrongUnits(ctx, providers.MostUnits+1)
	}},
	{"status of an unknown request", (*session).unknownStatus},
	{"return of an unknown request", (*session).unknownReturn},
	{"cancel, then a late request", (*session).cancelFirst},
}

const mendRefusal = `answer {"status":"refused","reason":"invalid","message":"..."} and change nothing`

func (s *session) unknownVerb(ctx context.Context) Row {
	run := s.send(ctx, "no-such-verb", []byte("{}\n"))
	_, outcome := providers.ClassifyList(run)
	return judgeRefusal(answered(run, outcome))
}

func (s *session) cutShort(ctx context.Context) Row {
	in := s.requestOf(1)
	_, reply := s.requestAs(ctx, in, bytes.TrimRight(marshal(in), "}"))
	return s.judgeWrongRequest(ctx, in, reply)
}

func (s *session) unknownName(ctx context.Context) Row {
	want := s.want
	want.name = s.noSuchName()
	return s.wrongRequest(ctx, want.request(s.newID(), 1))
}

func (s *session) wrongUnits(ctx context.Context, units int64) Row {
	if nothing := s.nothing(); nothing != nil {
		return *nothing
	}
	return s.wrongRequest(ctx, s.requestOf(units))
}

func (s *session) wrongRequest(ctx context.Context, in providers.RequestIn) Row {
	_, reply := s.request(ctx, in)
	return s.judgeWrongRequest(ctx, in, reply)
}

func (s *session) judgeWrongRequest(ctx context.Context, in providers.RequestIn, asked reply) Row {
	row := judgeRefusal(asked)
	if listed := s.listShows(ctx, in.RequestID, 0); listed.Verdict != OK {
		row = listed.mend(mendRefusal)
	}
	if asked.outcome.Status != providers.StatusRefused {
		s.giveAllBack(ctx, in.RequestID, in.Units)
	}
	return row
}

func judgeRefusal(r reply) Row {
	const expected = "refused, with the reason invalid"
	switch {
	case r.outcome.Status == providers.StatusRefused && r.outcome.Reason == providers.ReasonInvalid:
		return good()
	case r.outcome.Status == providers.StatusRefused:
		return r.says(Warning, expected, "refused, but with the reason "+string(r.outcome.Reason)).
			mend("with invalid the caller knows that asking again is useless")
	case r.outcome.Status == providers.StatusUnknown:
		return r.says(Warning, expected, "no clear answer").mend(mendRefusal)
	}
	return r.says(Wrong, expected, string(r.outcome.Status)).mend(mendRefusal)
}

func (s *session) unknownStatus(ctx context.Context) Row {
	const expected = "the request with status unknown"
	state, reply := s.status(ctx, s.newID())
	switch {
	case reply.outcome.Status == providers.StatusOK && state.Status == providers.StateUnknown:
		return good()
	case reply.outcome.Status == providers.StatusOK && state.Status == providers.StateRefused:
		return reply.says(Warning, expected, "refused").mend("refused is for requests that you know and turned down")
	}
	return reply.says(Wrong, expected, string(state.Status)).mend("answer every id that was asked; unknown if there is no such request")
}

func (s *session) unknownReturn(ctx context.Context) Row {
	const expected = "refused, or ok with remaining 0"
	in := providers.ReturnIn{RequestID: s.newID(), Units: 1, Remaining: 1}
	out, reply := s.giveBack(ctx, in)
	switch {
	case reply.outcome.Status == providers.StatusRefused, reply.outcome.Status == providers.StatusOK && out.Remaining == 0:
		return s.listShows(ctx, in.RequestID, 0)
	case reply.outcome.Status == providers.StatusUnknown:
		return reply.says(Warning, expected, "no clear answer").mend(mendRefusal)
	}
	return reply.says(Wrong, expected, fmt.Sprintf("%s with %d remaining of nothing", reply.outcome.Status, out.Remaining)).mend(mendRefusal)
}

// cancelFirst is what happens when the answer to a request was lost and the caller gave it up: the
// request may arrive after all.
func (s *session) cancelFirst(ctx context.Context) Row {
	if nothing := s.nothing(); nothing != nil {
		return *nothing
	}
	in := s.requestOf(1)
	reply := s.giveAllBack(ctx, in.RequestID, 0)
	if reply.outcome.Status != providers.StatusOK {
		return reply.says(Wrong, "ok with remaining 0 for a request that never came", string(reply.outcome.Status)).
			mend("a return with remaining 0 cancels a request that you never granted: note the id and answer ok, remaining 0")
	}
	row := s.wrongRequest(ctx, in)
	if row.Verdict != OK {
		row = row.mend("remember cancelled ids, and refuse a request that comes for one of them later")
	}
	return row
}
