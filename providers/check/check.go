// Package check exercises a provider script: every verb, also wrongly and concurrently, and prints what a
// provider's author must mend.
//
// It asks a real provider for real tokens, 1 or 2 units at a time, of the resource with the most headroom,
// and for real hosts, one with each request, of the cheapest template that has headroom for two; under
// request ids that begin with check/. Everything it got goes back at the end, also when it is cancelled.
// One check asks for more units than the contract allows, and gives them back at once if they are granted.
// The hosts find nobody at the address that they are told to join.
package check

import (
	"context"
	"crypto/rand"
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
		prefix: "check/" + rand.Text()[:12] + "/", open: map[string]bool{}, hosts: map[string]string{},
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
	for _, kind := range s.description.Kinds {
		s.want = s.wanted(kind)
		s.walkThrough(ctx, slices.Concat(wrongQuestions, lending, atOnce, beyond))
	}
	s.want = goods{}
	s.walkThrough(ctx, rest)
}

func (s *session) walkThrough(ctx context.Context, steps []step) {
	for _, next := range steps {
		if ctx.Err() != nil {
			return
		}
		if s.want.kind == providers.KindHosts {
			next.name = "hosts: " + next.name
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
	row.Print(s.out)
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
	return good()
}
