package activities_test

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// script answers what it is given, and remembers what it was asked.
type script struct {
	description providers.Description
	requested   providers.RequestOut
	standing    providers.StatusOut
	returned    providers.ReturnOut
	listed      providers.ListOut
	observed    providers.ObserveOut
	outcome     map[providers.Verb]providers.Outcome // ok unless given
	takes       time.Duration
	asked       []any
}

func (s *script) answer(verb providers.Verb, in any) providers.Outcome {
	s.asked = append(s.asked, in)
	time.Sleep(s.takes)
	if o, given := s.outcome[verb]; given {
		return o
	}
	return providers.Outcome{Status: providers.StatusOK}
}

func (s *script) Describe(context.Context) (providers.Description, providers.Outcome) {
	return s.description, s.answer(providers.VerbDescribe, "describe")
}

func (s *script) Request(_ context.Context, in providers.RequestIn) (providers.RequestOut, providers.Outcome) {
	return s.requested, s.answer(providers.VerbRequest, in)
}

func (s *script) Status(_ context.Context, in providers.StatusIn) (providers.StatusOut, providers.Outcome) {
	return s.standing, s.answer(providers.VerbStatus, in)
}

func (s *script) Return(_ context.Context, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	return s.returned, s.answer(providers.VerbReturn, in)
}

func (s *script) List(context.Context) (providers.ListOut, providers.Outcome) {
	return s.listed, s.answer(providers.VerbList, "list")
}

func (s *script) Observe(context.Context) (providers.ObserveOut, providers.Outcome) {
	return s.observed, s.answer(providers.VerbObserve, "observe")
}

const request = "loan/vcs/pool-7"

func ask(units, weight int64) activities.Ask {
	return activities.Ask{Provider: "pool", Request: request, Resource: "vcs", Units: units, Weight: weight}
}

var (
	ok       = providers.Outcome{Status: providers.StatusOK}
	unknown  = providers.Outcome{Status: providers.StatusUnknown, Message: "time limit"}
	capacity = providers.Outcome{Status: providers.StatusRefused, Reason: providers.ReasonCapacity, RetryAfter: 60}
)

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n  %+v\nwant:\n  %+v", what, got, want)
	}
}

func TestUnitsAreConvertedByTheResourcesWeight(t *testing.T) {
	for _, test := range []struct {
		name          string
		weight        int64
		granted, left int64 // the lender's
		asked         []any
		want, remains activities.Grant
	}{
		{
			"no weight", 0, 3, 1,
			[]any{providers.RequestIn{RequestID: request, Resource: "vcs", Units: 0}, providers.ReturnIn{RequestID: request}},
			activities.Grant{Outcome: ok, Units: 3},
			activities.Grant{Outcome: ok, Units: 1},
		},
		{
			"one to one", 1, 3, 1,
			[]any{providers.RequestIn{RequestID: request, Resource: "vcs", Units: 3}, providers.ReturnIn{RequestID: request, Units: 3, Remaining: 1}},
			activities.Grant{Outcome: ok, Units: 3},
			activities.Grant{Outcome: ok, Units: 1},
		},
		{
			"thousandths, whole", 1000, 3000, 1000,
			[]any{providers.RequestIn{RequestID: request, Resource: "vcs", Units: 3000}, providers.ReturnIn{RequestID: request, Units: 3000, Remaining: 1000}},
			activities.Grant{Outcome: ok, Units: 3},
			activities.Grant{Outcome: ok, Units: 1},
		},
		{
			"thousandths, with a rest", 1000, 2001, 999,
			[]any{providers.RequestIn{RequestID: request, Resource: "vcs", Units: 3000}, providers.ReturnIn{RequestID: request, Units: 3000, Remaining: 1000}},
			activities.Grant{Outcome: ok, Units: 2, Rest: true},
			activities.Grant{Outcome: ok, Units: 0, Rest: true},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &script{requested: providers.RequestOut{Granted: test.granted}, returned: providers.ReturnOut{Remaining: test.left}}
			p := &activities.Provider{Script: s}
			got, err := p.Request(t.Context(), ask(3, test.weight))
			left, err2 := p.Return(t.Context(), activities.GiveBack{Ask: ask(3, test.weight), Remaining: 1})
			if err != nil || err2 != nil {
				t.Error(err, err2)
			}
			same(t, "asked", s.asked, test.asked)
			same(t, "granted", got, test.want)
			same(t, "remaining", left, test.remains)
		})
	}
}

func TestARestCountsAsAWholeUnitWhereUnitsAreToGoBack(t *testing.T) {
	for _, test := range []struct {
		grant activities.Grant
		want  int64
	}{{activities.Grant{}, 0}, {activities.Grant{Units: 2}, 2}, {activities.Grant{Units: 2, Rest: true}, 3}, {activities.Grant{Rest: true}, 1}} {
		if got := test.grant.Ceil(); got != test.want {
			t.Errorf("%+v: %d, want %d", test.grant, got, test.want)
		}
	}
}

func TestOutcomesAreAnswersAndNeverErrors(t *testing.T) {
	for _, outcome := range []providers.Outcome{ok, unknown, capacity, {Status: providers.StatusPending}, {Status: providers.StatusPartial}} {
		all := map[providers.Verb]providers.Outcome{}
		for _, verb := range []providers.Verb{providers.VerbRequest, providers.VerbReturn, providers.VerbList} {
			all[verb] = outcome
		}
		p := &activities.Provider{Script: &script{outcome: all}}
		requested, err := p.Request(t.Context(), ask(1, 1))
		returned, err2 := p.Return(t.Context(), activities.GiveBack{Ask: ask(1, 1)})
		held, err3 := p.Holding(t.Context(), ask(1, 1))
		if err != nil || err2 != nil || err3 != nil {
			t.Error(err, err2, err3)
		}
		same(t, "request", requested.Outcome, outcome)
		same(t, "return", returned.Outcome, outcome)
		same(t, "list", held.Outcome, outcome)
	}
}

func TestHowARequestStandsIsItsOutcome(t *testing.T) {
	state := func(r providers.RequestState) providers.StatusOut {
		r.RequestID = request
		return providers.StatusOut{Requests: []providers.RequestState{r}}
	}
	for _, test := range []struct {
		name string
		call providers.Outcome
		out  providers.StatusOut
		want activities.Grant
	}{
		{"granted", ok, state(providers.RequestState{Status: providers.StateGranted, Granted: 2500}), activities.Grant{Outcome: ok, Units: 2, Rest: true}},
		{"pending", ok, state(providers.RequestState{Status: providers.StatePending, RetryAfter: 5}), activities.Grant{Outcome: providers.Outcome{Status: providers.StatusPending, RetryAfter: 5}}},
		{
			"refused", ok, state(providers.RequestState{Status: providers.StateRefused, Reason: providers.ReasonQuota, Message: "no", RetryAfter: 9}),
			activities.Grant{Outcome: providers.Outcome{Status: providers.StatusRefused, Reason: providers.ReasonQuota, Message: "no", RetryAfter: 9}},
		},
		{"not known to the lender", ok, state(providers.RequestState{Status: providers.StateUnknown}), activities.Grant{Outcome: providers.Outcome{Status: providers.StatusUnknown}}},
		{"a call without answer", unknown, providers.StatusOut{}, activities.Grant{Outcome: unknown}},
		{
			"a refused call says nothing of the request", capacity,
			providers.StatusOut{},
			activities.Grant{Outcome: providers.Outcome{Status: providers.StatusUnknown, Reason: providers.ReasonCapacity, RetryAfter: 60}},
		},
		{"an empty answer", ok, providers.StatusOut{}, activities.Grant{Outcome: providers.Outcome{Status: providers.StatusUnknown}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &activities.Provider{Script: &script{standing: test.out, outcome: map[providers.Verb]providers.Outcome{providers.VerbStatus: test.call}}}
			got, err := p.Status(t.Context(), ask(3, 1000))
			if err != nil {
				t.Error(err)
			}
			same(t, "status", got, test.want)
		})
	}
}

func TestOnlyWhatIsListedUnderARequestIsHeldForIt(t *testing.T) {
	s := &script{listed: providers.ListOut{Grants: []providers.Grant{
		{RequestID: "loan/vcs/pool-1", Units: 9000}, {RequestID: request, Units: 1500}, {RequestID: request, Units: 1000},
	}}}
	p := &activities.Provider{Script: s}
	got, err := p.Holding(t.Context(), ask(3, 1000))
	if err != nil {
		t.Error(err)
	}
	same(t, "held", got, activities.Grant{Outcome: ok, Units: 2, Rest: true})
	s.listed = providers.ListOut{}
	if got, _ = p.Holding(t.Context(), ask(3, 1000)); got.Ceil() != 0 || got.Outcome.Status != providers.StatusOK {
		t.Errorf("nothing listed: %+v", got)
	}
}

// lends is a lender that counts vcs in thousandths and spice one by one.
func lends() *script {
	at := time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)
	return &script{
		description: providers.Description{
			PartialReturn: true, PollInterval: 30, Observe: true,
			Offers: []providers.Offer{
				{Resource: "vcs", Headroom: 5900, Price: 250, MinimumHold: 3600, BillingStep: 60, MaxRequest: 2500, MaxOpen: 4},
				{Resource: "spice", Headroom: 7, Price: 1000},
			},
			Recalls: []providers.Recall{{RequestID: request, Units: 1001}, {RequestID: "loan/vcs/pool-9", Units: 1000}},
		},
		listed: providers.ListOut{Grants: []providers.Grant{
			{RequestID: request, Resource: "vcs", Units: 2001}, {RequestID: "loan/spice/pool-1", Resource: "spice", Units: 3},
		}},
		observed: providers.ObserveOut{Observations: []providers.Observation{{Resource: "vcs", InUse: 1500, At: at}}},
	}
}

var weights = activities.SurveyIn{Provider: "pool", Weights: map[string]int64{"vcs": 1000}}

func survey(t *testing.T, s *script) activities.Survey {
	t.Helper()
	env := environment()
	p := &activities.Provider{Script: s}
	env.RegisterActivity(p.Survey)
	value, err := env.ExecuteActivity(p.Survey, weights)
	var got activities.Survey
	if err == nil {
		err = value.Get(&got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// environment runs activities as Temporal does, and says nothing.
func environment() *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return suite.NewTestActivityEnvironment()
}

func TestASurveyCountsInOurUnits(t *testing.T) {
	got := survey(t, lends())
	same(t, "offers", got.Offers, []cluster.Offer{
		{
			Provider: "pool", Resource: "vcs", Headroom: 5, Price: 250_000, MinimumHold: cluster.Hour, BillingStep: cluster.Minute,
			PartialReturn: true, PollInterval: 30 * cluster.Second, MaxRequest: 2, MaxOpen: 4,
		},
		{Provider: "pool", Resource: "spice", Headroom: 7, Price: 1000, PartialReturn: true, PollInterval: 30 * cluster.Second, MaxOpen: 1},
	})
	same(t, "holdings", got.Holdings, []activities.Holding{{Request: request, Resource: "vcs", Units: 3}, {Request: "loan/spice/pool-1", Resource: "spice", Units: 3}})
	same(t, "recalls", got.Recalls, []activities.Holding{{Request: request, Resource: "vcs", Units: 2}}) // of the other it is not known what it is
	same(t, "observations", got.Observations, []cluster.Observation{{Provider: "pool", Resource: "vcs", InUse: 2, At: cluster.TimeOf(time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC))}})
}

func TestWhatFailsOfASurveyIsEmptyAndSaysHow(t *testing.T) {
	for _, test := range []struct {
		verb                                    providers.Verb
		offers, holdings, recalls, observations int
		describe, list                          providers.Status
		asked                                   []any
	}{
		{"", 2, 2, 1, 1, providers.StatusOK, providers.StatusOK, []any{"describe", "list", "observe"}},
		{providers.VerbDescribe, 0, 0, 0, 0, providers.StatusUnknown, providers.StatusUnknown, []any{"describe"}},
		{providers.VerbList, 2, 0, 0, 1, providers.StatusOK, providers.StatusUnknown, []any{"describe", "list", "observe"}},
		{providers.VerbObserve, 2, 2, 1, 0, providers.StatusOK, providers.StatusOK, []any{"describe", "list", "observe"}},
	} {
		s := lends()
		s.outcome = map[providers.Verb]providers.Outcome{test.verb: unknown}
		if test.verb == providers.VerbList {
			s.listed = providers.ListOut{}
		}
		got := survey(t, s)
		if len(got.Offers) != test.offers || len(got.Holdings) != test.holdings || len(got.Recalls) != test.recalls || len(got.Observations) != test.observations {
			t.Errorf("%s failed: %+v", test.verb, got)
		}
		if got.Describe.Status != test.describe || got.List.Status != test.list {
			t.Errorf("%s failed: describe %s, list %s", test.verb, got.Describe.Status, got.List.Status)
		}
		same(t, "asked", s.asked, test.asked)
	}
}

func TestALenderThatLendsNoWholeUnitAtATimeHasNoHeadroom(t *testing.T) {
	s := lends()
	s.description.Offers[0].MaxRequest = 999
	if got := survey(t, s).Offers[0]; got.Headroom != 0 {
		t.Errorf("%+v", got)
	}
}

func TestALongScriptIsReportedAliveAndItsAnswerIsUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := environment()
		beats := 0
		env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { beats++ })
		p := &activities.Provider{Script: &script{requested: providers.RequestOut{Granted: 3}, takes: time.Minute}}
		env.RegisterActivity(p.Request)
		value, err := env.ExecuteActivity(p.Request, ask(3, 1))
		var got activities.Grant
		if err == nil {
			err = value.Get(&got)
		}
		if err != nil || got.Units != 3 {
			t.Errorf("%+v, error %v", got, err)
		}
		if beats < 2 { // the SDK passes on one in 30 seconds, where there is no timeout
			t.Errorf("%d heartbeats in a minute", beats)
		}
	})
}
