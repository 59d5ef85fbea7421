package check

import (
	"context"
	"fmt"

	"xce.internal/elastic/providers"
)

// lending borrows and returns as a loan would.
var lending = []step{
	{"request, list, status, repeat, return", (*session).wholeLoan},
	{"a repeated request grants nothing new", (*session).repeatedRequest},
	{"the same id with other units", (*session).otherUnits},
	{"part of a grant goes back", (*session).partialReturn},
	{"a repeated return changes nothing", (*session).repeatedReturn},
	{"a late return raises nothing", (*session).lateReturn},
	{"a late request after the return", (*session).lateRequest},
}

var (
	beyond = []step{{"a request for more than the headroom", (*session).beyondHeadroom}}
	rest   = []step{{"observe", (*session).observe}}
)

// loan borrows, runs a check on what was got, and returns it.
func (s *session) loan(ctx context.Context, units int64, on func(id string, granted int64) Row) Row {
	if impossible := s.notInOne(units); impossible != nil {
		return *impossible
	}
	id, granted, row := s.obtain(ctx, units)
	if row.Verdict != OK || granted == 0 {
		s.giveAllBack(ctx, id, granted)
		return row
	}
	row = on(id, granted)
	if back := s.returned(ctx, id, granted); row.Verdict == OK {
		return back
	}
	return row
}

// returned gives all of a grant back, and checks that list agrees.
func (s *session) returned(ctx context.Context, id string, granted int64) Row {
	reply := s.giveAllBack(ctx, id, granted)
	row := reply.says(Wrong, "ok with remaining 0", string(reply.outcome.Status)).
		mend("a return with remaining 0 must end with ok and remaining 0, at once or after pending")
	if reply.outcome.Status == providers.StatusOK {
		row = s.listShows(ctx, id, 0)
	}
	s.leaking = s.leaking || row.Verdict != OK
	return row
}

func (s *session) wholeLoan(ctx context.Context) Row {
	return s.loan(ctx, 1, func(id string, granted int64) Row {
		if row := s.listShows(ctx, id, granted); row.Verdict != OK {
			return row
		}
		held, listed := s.held(ctx)
		if !s.want.has(held[id]) {
			return listed.says(Wrong, "list names what was granted: "+s.want.name, held[id].Resource+held[id].Template).
				mend("keep with the grant what it is of")
		}
		state, reply := s.status(ctx, id)
		if reply.outcome.Status != providers.StatusOK || state.Status != providers.StateGranted || state.Granted != granted {
			return reply.says(Wrong, fmt.Sprintf("status granted with %d", granted), fmt.Sprintf("%s with %d", state.Status, state.Granted)).
				mend("status must say the same as request and list")
		}
		return s.identify(reply, id, granted, state.Instances)
	})
}

func (s *session) repeatedRequest(ctx context.Context) Row {
	if !s.description.Idempotent {
		return notIdempotent()
	}
	return s.loan(ctx, 1, func(id string, granted int64) Row {
		out, reply := s.request(ctx, s.want.request(id, 1))
		if row := s.identify(reply, id, out.Granted, out.Instances); row.Verdict != OK {
			return row
		}
		if out.Granted != granted {
			return reply.says(Wrong, fmt.Sprintf("the same answer again, granted %d", granted), string(out.Status)).
				mend("look the id up first, and repeat what you answered then")
		}
		return s.listShows(ctx, id, granted)
	})
}

func notIdempotent() Row {
	row := skip("describe says that a repeated request may grant twice (idempotent: false)")
	row.Mend = "keep a record per request id; then a lost answer can be asked for again"
	return row
}

func (s *session) otherUnits(ctx context.Context) Row {
	if !s.description.Idempotent {
		return notIdempotent()
	}
	return s.loan(ctx, 1, func(id string, granted int64) Row {
		_, reply := s.request(ctx, s.want.request(id, 2))
		if row := s.listShows(ctx, id, granted); row.Verdict != OK {
			return row
		}
		if reply.outcome.Status != providers.StatusRefused {
			return reply.says(Warning, "refused, with the reason invalid", string(reply.outcome.Status)).
				mend("the same id with other units is a fault of the caller: say so")
		}
		return good()
	})
}

func (s *session) partialReturn(ctx context.Context) Row {
	if !s.description.PartialReturn {
		return skip("describe says that a grant goes back as a whole (partial_return: false)")
	}
	return s.loan(ctx, 2, func(id string, granted int64) Row {
		in := providers.ReturnIn{RequestID: id, Units: granted - 1, Remaining: 1}
		for range 2 {
			out, reply := s.giveBack(ctx, in)
			if reply.outcome.Status != providers.StatusOK || out.Remaining != 1 {
				return reply.says(Wrong, "ok with remaining 1, also the second time", fmt.Sprintf("%s with %d", reply.outcome.Status, out.Remaining)).
					mend("remaining is the target: take back until that many are lent, and do nothing if no more are")
			}
			if row := s.listShows(ctx, id, 1); row.Verdict != OK {
				return row
			}
		}
		return good()
	})
}

func (s *session) repeatedReturn(ctx context.Context) Row {
	return s.loan(ctx, 1, func(id string, granted int64) Row {
		if row := s.returned(ctx, id, granted); row.Verdict != OK {
			return row
		}
		return s.returned(ctx, id, granted)
	})
}

func (s *session) lateReturn(ctx context.Context) Row {
	return s.loan(ctx, 1, func(id string, granted int64) Row {
		if row := s.returned(ctx, id, granted); row.Verdict != OK {
			return row
		}
		out, reply := s.giveBack(ctx, providers.ReturnIn{RequestID: id, Units: 1, Remaining: 1})
		if reply.outcome.Status != providers.StatusRefused && out.Remaining != 0 {
			return reply.says(Wrong, "remaining 0, or refused: all of it is back already", fmt.Sprintf("remaining %d", out.Remaining)).
				mend("a return never lends: answer what is really lent")
		}
		return s.listShows(ctx, id, 0)
	})
}

func (s *session) lateRequest(ctx context.Context) Row {
	return s.loan(ctx, 1, func(id string, granted int64) Row {
		if row := s.returned(ctx, id, granted); row.Verdict != OK {
			return row
		}
		row := s.wrongRequest(ctx, s.want.request(id, 1))
		if row.Verdict != OK {
			row = row.mend("keep the record of a returned grant for some weeks, and refuse its id")
		}
		return row
	})
}

// beyondHeadroom would empty a real lender, so it runs only where that takes 2 units at most.
func (s *session) beyondHeadroom(ctx context.Context) Row {
	for _, offered := range s.offered(s.want.kind) {
		if offered.headroom > 1 || offered.maxRequest > 0 && offered.headroom >= offered.maxRequest {
			continue
		}
		in := offered.request(s.newID(), offered.headroom+1)
		out, reply := s.request(ctx, in)
		if out.Status == providers.StatusPending {
			var state providers.RequestState
			state, reply = s.await(ctx, in.RequestID, out.RetryAfter, reply)
			out.Granted = state.Granted
		}
		s.giveAllBack(ctx, in.RequestID, out.Granted)
		return judgeBeyond(reply, in, out.Granted)
	}
	return skip("it would take everything: check where the headroom of one is 0 (or 1, of a resource) to see this too")
}

func judgeBeyond(r reply, in providers.RequestIn, granted int64) Row {
	expected := fmt.Sprintf("refused, or partial, for %d with a headroom of %d", in.Units, in.Units-1)
	switch {
	case r.outcome.Status == providers.StatusUnknown:
		return r.says(Wrong, expected, "").mend("refuse with the reason capacity, or grant what there is")
	case granted >= in.Units:
		return r.says(Warning, expected, fmt.Sprintf("granted %d", granted)).
			mend("let describe say what a request would get; it is right only if something became free meanwhile")
	}
	return good()
}

func (s *session) observe(ctx context.Context) Row {
	if !s.description.Observe {
		return skip("describe does not offer it (observe: true)")
	}
	run := s.call(ctx, providers.VerbObserve, struct{}{})
	_, outcome := providers.ClassifyObserve(run)
	if outcome.Status != providers.StatusOK {
		return answered(run, outcome).says(Wrong, "the licence server's count, with its time", string(outcome.Status)).
			mend("answer {\"observations\":[...]}; leave out a resource whose count is not known")
	}
	return good()
}
