package starter_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
)

// server stands for Temporal: it keeps what it is asked, and answers as it is told.
type server struct {
	client.Client
	err     error // of the call
	failure error // of an update that was heard
	result  any

	options client.StartWorkflowOptions
	update  client.UpdateWorkflowOptions
	asked   []any
}

func (s *server) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error) {
	s.options, s.asked = o, append([]any{workflow}, args...)
	return nil, s.err
}

func (s *server) SignalWithStartWorkflow(_ context.Context, id, signal string, arg any, o client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error) {
	s.options, s.asked = o, append([]any{id, signal, arg, workflow}, args...)
	return nil, s.err
}

func (s *server) SignalWorkflow(_ context.Context, id, run, signal string, arg any) error {
	s.asked = []any{id, run, signal, arg}
	return s.err
}

func (s *server) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	s.update = o
	return handle{server: s}, s.err
}

func (s *server) QueryWorkflow(_ context.Context, id, run, query string, _ ...any) (converter.EncodedValue, error) {
	s.asked = []any{id, run, query}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(s.result)
	if err != nil {
		return nil, err
	}
	return client.NewValue(payloads), s.err
}

// handle is that of an update.
type handle struct {
	client.WorkflowUpdateHandle
	server *server
}

func (h handle) Get(_ context.Context, into any) error {
	if h.server.failure == nil {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(h.server.result))
	}
	return h.server.failure
}

const loan = "loan/vcs/pool-1"

var (
	errDown    = errors.New("connection refused")
	errStarted = serviceerror.NewWorkflowExecutionAlreadyStarted("already started", "", "run")
)

func TestALoanIsStartedOnceForItsID(t *testing.T) {
	request := cluster.LoanRequest{ID: loan, Provider: "pool", Resource: "vcs", Units: 3}
	s := &server{}
	if err := starter.New(s).StartLoan(t.Context(), request); err != nil {
		t.Error(err)
	}
	o := s.options
	if o.ID != loan || o.TaskQueue != workflows.QueueWorkflows || !o.WorkflowExecutionErrorWhenAlreadyStarted ||
		o.WorkflowIDReusePolicy != enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE ||
		o.WorkflowIDConflictPolicy != enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL {
		t.Errorf("options %+v", o)
	}
	if want := []any{workflows.LoanName, workflows.Loan{Request: request}}; !reflect.DeepEqual(s.asked, want) {
		t.Errorf("started %+v", s.asked)
	}
	if kind, _ := o.TypedSearchAttributes.GetKeyword(workflows.AttributeResource); kind != "vcs" {
		t.Errorf("search attributes %+v", o.TypedSearchAttributes)
	}
}

func TestStartedAlreadyIsAsGoodAsStarted(t *testing.T) {
	for err, fails := range map[error]bool{errStarted: false, errDown: true} {
		c := starter.New(&server{err: err})
		for name, got := range map[string]error{
			"start": c.StartLoan(t.Context(), cluster.LoanRequest{ID: loan}), "resume": c.ResumeLoan(t.Context(), cluster.Loan{}),
		} {
			if (got != nil) != fails || fails && !errors.Is(got, err) {
				t.Errorf("%s with %v: %v", name, err, got)
			}
		}
	}
}

func TestAnOpenLoanWhoseStoryIsGoneGetsItBack(t *testing.T) {
	row := cluster.Loan{LoanRequest: cluster.LoanRequest{ID: loan}, State: cluster.LoanReturning, Fenced: 2, Step: 7}
	s := &server{}
	if err := starter.New(s).ResumeLoan(t.Context(), row); err != nil {
		t.Error(err)
	}
	if s.options.WorkflowIDReusePolicy != enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE {
		t.Errorf("options %+v", s.options)
	}
	if want := []any{workflows.LoanName, workflows.ResumeLoan(row)}; !reflect.DeepEqual(s.asked, want) {
		t.Errorf("started %+v", s.asked)
	}
}

func TestAProviderIsStartedOrToldHowOftenItIsSurveyed(t *testing.T) {
	s := &server{}
	if err := starter.New(s).StartProvider(t.Context(), workflows.Provider{Name: "pool", SurveyEvery: cluster.Minute}); err != nil {
		t.Error(err)
	}
	want := []any{
		"provider/pool", workflows.SignalCatalogChanged,
		workflows.Changed{SurveyEvery: cluster.Minute},
		workflows.ProviderName,
		workflows.Provider{Name: "pool", SurveyEvery: cluster.Minute},
	}
	if !reflect.DeepEqual(s.asked, want) || s.options.ID != "provider/pool" {
		t.Errorf("asked %+v with %+v", s.asked, s.options)
	}
	s.err = errDown
	if err := starter.New(s).StartProvider(t.Context(), workflows.Provider{Name: "pool", SurveyEvery: cluster.Minute}); !errors.Is(err, errDown) {
		t.Error(err)
	}
}

func TestDemandIsToldToTheProvidersStory(t *testing.T) {
	s := &server{}
	if err := starter.New(s).TellDemand(t.Context(), "pool"); err != nil {
		t.Error(err)
	}
	if want := []any{"provider/pool", "", workflows.SignalDemand, struct{}{}}; !reflect.DeepEqual(s.asked, want) {
		t.Errorf("asked %+v", s.asked)
	}
}

func TestAReturnIsAnsweredRefusedOrFails(t *testing.T) {
	for _, test := range []struct {
		name    string
		server  server
		units   int64
		refused string // "" for no refusal
		fails   bool
	}{
		{"accepted", server{result: workflows.ReturnAnswer{Units: 2}}, 2, "", false},
		{"refused by the story", server{failure: temporal.NewNonRetryableApplicationError("3 of 5 units are in use", workflows.ReturnRefused, nil)}, 0, "3 of 5 units are in use", true},
		{"refused at a glance", server{err: temporal.NewNonRetryableApplicationError("loan is held", workflows.ReturnRefused, nil)}, 0, "loan is held", true},
		{"no such loan", server{err: serviceerror.NewNotFound("workflow not found")}, 0, "there is no open loan \"loan/vcs/pool-1\"; `xce-elastic loans` lists them", true},
		{"ended meanwhile", server{failure: serviceerror.NewNotFound("workflow completed")}, 0, "there is no open loan \"loan/vcs/pool-1\"; `xce-elastic loans` lists them", true},
		{"another failure of the story", server{failure: temporal.NewApplicationError("a bug", "Other")}, 0, "", true},
		{"no connection", server{err: errDown}, 0, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			wish := workflows.ReturnUnits{Units: 2, By: "admin/eve"}
			units, err := starter.New(&test.server).Return(t.Context(), loan, "request-9", wish)
			var refused *starter.Refused
			switch is := errors.As(err, &refused); {
			case units != test.units, (err != nil) != test.fails, is != (test.refused != ""):
				t.Errorf("%d units, error %v", units, err)
			case is && refused.Text != test.refused:
				t.Errorf("refused: %s", refused.Text)
			}
			u := test.server.update
			if u.WorkflowID != loan || u.UpdateID != "request-9" || u.UpdateName != workflows.UpdateReturn || !reflect.DeepEqual(u.Args, []any{wish}) {
				t.Errorf("asked %+v", u)
			}
		})
	}
}

func TestStoriesAreAskedHowTheyStand(t *testing.T) {
	s := &server{result: workflows.Loan{Dealing: workflows.Dealing{Chapter: workflows.Keeping}}}
	if l, err := starter.New(s).Loan(t.Context(), loan); err != nil || l.Chapter != workflows.Keeping {
		t.Errorf("%+v, error %v", l, err)
	}
	if want := []any{loan, "", workflows.QueryLoan}; !reflect.DeepEqual(s.asked, want) {
		t.Errorf("asked %+v", s.asked)
	}
	s.result = workflows.Provider{Open: 3}
	if p, err := starter.New(s).Provider(t.Context(), "pool"); err != nil || p.Open != 3 {
		t.Errorf("%+v, error %v", p, err)
	}
	s.err = errDown
	if _, err := starter.New(s).Provider(t.Context(), "pool"); !errors.Is(err, errDown) {
		t.Error(err)
	}
}
