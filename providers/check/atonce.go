package check

import (
	"context"
	"fmt"
	"sync"

	"xce.internal/elastic/providers"
)

// atOnce calls side by side. The runner lets such calls take turns when describe says concurrent: false.
var atOnce = []step{
	{"two requests at once", (*session).twoAtOnce},
	{"the same request twice at once", (*session).sameAtOnce},
	{"the same return twice at once", (*session).returnAtOnce},
}

func bothAtOnce(do func(i int)) {
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() { do(i) })
	}
	both.Wait()
}

// ask puts two requests at once and waits for both to be decided.
func (s *session) ask(ctx context.Context, in [2]providers.RequestIn) (granted [2]int64, rows [2]Row) {
	bothAtOnce(func(i int) {
		out, reply := s.request(ctx, in[i])
		granted[i], rows[i] = s.decided(ctx, in[i], out, reply)
	})
	return granted, rows
}

func (s *session) twoAtOnce(ctx context.Context) Row {
	if impossible := s.noLending(2); impossible != nil {
		return *impossible
	}
	if s.want.maxOpen < 2 {
		return skip("describe's max_open allows one open request at a time")
	}
	in := [2]providers.RequestIn{s.requestOf(1), s.requestOf(1)}
	granted, rows := s.ask(ctx, in)
	row := worst(rows[0], rows[1])
	for i := range in {
		if row.Verdict == OK {
			row = s.listShows(ctx, in[i].RequestID, granted[i])
		}
	}
	for i := range in {
		row = worst(row, s.returned(ctx, in[i].RequestID, granted[i]))
	}
	return row
}

func (s *session) sameAtOnce(ctx context.Context) Row {
	if !s.description.Idempotent {
		return notIdempotent()
	}
	if impossible := s.noLending(1); impossible != nil {
		return *impossible
	}
	in := s.requestOf(1)
	granted, rows := s.ask(ctx, [2]providers.RequestIn{in, in})
	s.mayHold(in.RequestID) // whichever of the two was refused
	row := worst(rows[0], rows[1])
	if row.Verdict == OK {
		row = s.listShows(ctx, in.RequestID, granted[0])
	}
	if granted[0] != granted[1] {
		row = Row{
			Verdict: Wrong, Expected: "the same answer to both", Found: fmt.Sprintf("granted %d and %d", granted[0], granted[1]),
			Mend: "lock from looking the id up until its record is written, or describe concurrent: false",
		}
	}
	return worst(row, s.returned(ctx, in.RequestID, max(granted[0], granted[1])))
}

func (s *session) returnAtOnce(ctx context.Context) Row {
	return s.loan(ctx, 1, func(id string, granted int64) Row {
		var replies [2]reply
		bothAtOnce(func(i int) { replies[i] = s.giveAllBack(ctx, id, granted) })
		for _, reply := range replies {
			if reply.outcome.Status != providers.StatusOK {
				return reply.says(Wrong, "ok with remaining 0, both times", string(reply.outcome.Status)).
					mend("lock while you change a record; a return that finds nothing left to do is ok")
			}
		}
		return s.listShows(ctx, id, 0)
	})
}

func worst(a, b Row) Row {
	severity := map[Verdict]int{Skipped: 0, OK: 1, Warning: 2, Wrong: 3}
	if severity[b.Verdict] > severity[a.Verdict] {
		return b
	}
	return a
}
