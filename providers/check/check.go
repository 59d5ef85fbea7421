// Package check exercises a provider script: every verb, also wrongly and concurrently, and prints what a
// provider's author must mend.
//
// It asks a real lender for real tokens: 1 or 2 units at a time, of the resource with the most headroom,
// under request ids that begin with check/. Everything it got goes back at the end, also when it is
// cancelled. One check asks for more units than the contract allows, and gives them back at once if they
// are granted.
package check

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"xce.internal/elastic/providers"
)

// slow is when a call is long enough that operators will feel it.
const slow = 10 * time.Second

type step struct {
	name  string
	check func(*session, context.Context) Row
}

// Run checks the script and prints one line per check as it goes. The error says that the script could
// not be checked to the end; what was found until then is in the report.
func Run(ctx context.Context, spec providers.Spec, out io.Writer) (Report, error) {
	return run(ctx, spec, out, longestPause)
}

func run(ctx context.Context, spec providers.Spec, out io.Writer, longest time.Duration) (Report, error) {
	report := Report{Provider: spec.Name, Script: spec.Script, Rows: []Row{}}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: onlyWords}))
	runner, err := providers.NewRunner(spec, log)
	if err != nil {
		return report, err
	}
	s := &session{
		runner: runner, out: out, report: report, longest: longest,
		prefix: "check/" + rand.Text()[:12] + "/", open: map[string]bool{},
	}
	s.walk(ctx)
	return s.report, context.Cause(ctx)
}

// onlyWords leaves of a log line what the script wrote and to which verb.
func onlyWords(_ []string, attribute slog.Attr) slog.Attr {
	switch attribute.Key {
	case slog.TimeKey, slog.LevelKey, slog.MessageKey, "provider":
		return slog.Attr{}
	}
	return attribute
}

func (s *session) walk(ctx context.Context) {
	if s.do(ctx, step{"describe", (*session).describe}); s.description.Contract == 0 {
		return
	}
	defer s.finish(context.WithoutCancel(ctx))
	for _, next := range slices.Concat(wrongQuestions, lending, atOnce, rest) {
		if ctx.Err() != nil {
			return
		}
		s.do(ctx, next)
	}
}

func (s *session) do(ctx context.Context, next step) {
	s.slowest = 0
	row := next.check(s, ctx)
	if ctx.Err() != nil {
		row = skip("cancelled")
	}
	row.Check, row.Elapsed = next.name, s.slowest.Milliseconds()
	if row.Verdict == OK && s.slowest > slow {
		row.Verdict, row.Expected = Warning, "an answer within "+slow.String()
		row.Mend = "answer pending at once and let status tell the end; a slow call delays every other"
	}
	s.report.Rows = append(s.report.Rows, row)
	row.print(s.out)
}

func (s *session) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	s.do(ctx, step{"everything is given back", (*session).everythingBack})
}

func (s *session) everythingBack(ctx context.Context) Row {
	var last reply
	for _, id := range slices.Sorted(maps.Keys(s.open)) {
		last = s.giveAllBack(ctx, id, 0)
	}
	held, reply := s.held(ctx)
	if left := slices.Sorted(maps.Keys(s.open)); len(left) > 0 {
		return last.says(Wrong, "ok and remaining 0 for every request", "not confirmed: "+strings.Join(left, ", ")).
			mend("give these back by hand; a return with remaining 0 must always end with ok and remaining 0")
	}
	if reply.outcome.Status != providers.StatusOK || len(held) > 0 {
		left := strings.Join(slices.Sorted(maps.Keys(held)), ", ")
		return reply.says(Wrong, "list without a request of this check", "still there: "+left).
			mend("give these back by hand; list must stop showing what was returned")
	}
	return good()
}

func (s *session) describe(ctx context.Context) Row {
	run := s.call(ctx, providers.VerbDescribe, struct{}{})
	description, outcome := providers.ClassifyDescribe(run)
	if outcome.Status != providers.StatusOK {
		return answered(run, outcome).says(Wrong, "one JSON object that describes the provider", "").
			mend("see the field that is named; nothing else can be checked before this is right")
	}
	s.description = description
	if _, again := s.runner.Describe(ctx); again.Status != providers.StatusOK {
		return reply{again, again.Text}.says(Wrong, "the same kind of answer the second time", "")
	}
	for _, offer := range description.Offers {
		if s.offer.Resource == "" || offer.Headroom > s.offer.Headroom {
			s.offer = offer
		}
	}
	return good()
}

// noLending says why a lending check cannot run; nil when it can.
func (s *session) noLending(units int64) *Row {
	var row Row
	switch {
	case s.offer.Resource == "":
		row = skip("describe offers no tokens")
	case s.leaking:
		row = skip("a grant did not come back, so nothing more is borrowed: mend that first")
	case s.offer.Headroom < units:
		row = skip(fmt.Sprintf("describe's headroom is %d and this needs %d: free some and check again", s.offer.Headroom, units))
		row.Verdict = Warning
	case s.offer.MaxRequest > 0 && s.offer.MaxRequest < units:
		row = skip(fmt.Sprintf("describe's max_request is %d and this needs %d", s.offer.MaxRequest, units))
	default:
		return nil
	}
	return &row
}
