// Package starter is the typed client of the workflows: it starts them, tells
// them things and asks them how they stand. It hides Temporal from its callers.
package starter

import (
	"context"
	"errors"
	"fmt"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/workflows"
)

// Client starts and reaches workflows.
type Client struct{ temporal client.Client }

// New answers a client over a connection to Temporal.
func New(c client.Client) *Client { return &Client{temporal: c} }

// StartProvider makes sure that a provider's story runs, and has it survey the
// provider as often as is configured now.
func (c *Client) StartProvider(ctx context.Context, p workflows.Provider) error {
	name, id := p.Name, workflows.ProviderID(p.Name)
	options := client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueWorkflows,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "provider " + name,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.AttributeKind.ValueSet(workflows.ProviderName), workflows.AttributeProvider.ValueSet(name)),
	}
	_, err := c.temporal.SignalWithStartWorkflow(ctx, id, workflows.SignalCatalogChanged,
		workflows.Changed{SurveyEvery: p.SurveyEvery, OrphanGrace: p.Hosts.OrphanGrace}, options, workflows.ProviderName, p)
	if err != nil {
		return fmt.Errorf("start workflow %s: %w", id, err)
	}
	return nil
}

// TellChanged tells a provider's story that what it can give changed.
func (c *Client) TellChanged(ctx context.Context, provider string) error {
	return c.signal(ctx, workflows.ProviderID(provider), workflows.SignalCatalogChanged, workflows.Changed{})
}

func (c *Client) signal(ctx context.Context, id, signal string, arg any) error {
	if err := c.temporal.SignalWorkflow(ctx, id, "", signal, arg); err != nil {
		return fmt.Errorf("signal workflow %s: %w", id, err)
	}
	return nil
}

// TellDemand tells a provider's story that its demand changed.
func (c *Client) TellDemand(ctx context.Context, provider string) error {
	return c.signal(ctx, workflows.ProviderID(provider), workflows.SignalDemand, struct{}{})
}

// StartLoan starts a loan's story. An id is used once: where it was before,
// this changes nothing.
func (c *Client) StartLoan(ctx context.Context, request cluster.LoanRequest) error {
	return c.startLoan(ctx, workflows.Loan{Request: request}, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
}

// ResumeLoan makes sure that the story of an open loan runs. One that is gone,
// terminated by hand or lost with Temporal's database, is taken up from the
// ledger's row.
func (c *Client) ResumeLoan(ctx context.Context, row cluster.Loan) error {
	return c.startLoan(ctx, workflows.ResumeLoan(row), enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE)
}

func (c *Client) startLoan(ctx context.Context, loan workflows.Loan, reuse enums.WorkflowIdReusePolicy) error {
	r := loan.Request
	return c.startOnce(ctx, workflows.LoanName, loan, client.StartWorkflowOptions{
		ID: r.ID, WorkflowIDReusePolicy: reuse, StaticSummary: fmt.Sprintf("%d %s from %s", r.Units, r.Resource, r.Provider),
	}, r.Provider, r.Resource)
}

// StartHost starts a host's story. An id is used once: where it was before, this
// changes nothing.
func (c *Client) StartHost(ctx context.Context, request cluster.HostRequest) error {
	return c.startHost(ctx, workflows.Host{Request: request}, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
}

// ResumeHost makes sure that the story of an open host runs. One that is gone is
// taken up from the ledger's row.
func (c *Client) ResumeHost(ctx context.Context, row cluster.ElasticHost) error {
	return c.startHost(ctx, workflows.ResumeHost(row), enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE)
}

func (c *Client) startHost(ctx context.Context, host workflows.Host, reuse enums.WorkflowIdReusePolicy) error {
	r := host.Request
	return c.startOnce(ctx, workflows.HostName, host, client.StartWorkflowOptions{
		ID: r.ID, WorkflowIDReusePolicy: reuse, StaticSummary: fmt.Sprintf("a host of %s from %s", r.Template, r.Provider),
	}, r.Provider, r.Template)
}

// startOnce starts the story of a loan or host, unless it runs or, as the reuse
// policy says, has run.
func (c *Client) startOnce(ctx context.Context, kind string, story any, options client.StartWorkflowOptions, provider, what string) error {
	options.TaskQueue = workflows.QueueWorkflows
	options.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	options.TypedSearchAttributes = temporal.NewSearchAttributes(
		workflows.AttributeKind.ValueSet(kind), workflows.AttributeProvider.ValueSet(provider),
		workflows.AttributeResource.ValueSet(what), workflows.AttributeState.ValueSet("requested"), workflows.AttributeUnits.ValueSet(0))
	_, err := c.temporal.ExecuteWorkflow(ctx, options, kind, story)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &started) {
		return fmt.Errorf("start workflow %s: %w", options.ID, err)
	}
	return nil
}

// TellHost tells a host's story what the cluster saw of it. One whose story is
// over needs no telling.
func (c *Client) TellHost(ctx context.Context, host string, m workflows.Message) error {
	var err error
	switch {
	case m.Joined != nil:
		err = c.signal(ctx, host, workflows.SignalJoined, *m.Joined)
	case m.Emptied:
		err = c.signal(ctx, host, workflows.SignalEmptied, struct{}{})
	case m.Health != nil:
		err = c.signal(ctx, host, workflows.SignalHealth, *m.Health)
	}
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil
	}
	return err
}

// OrderHost has a host carry out an operator's wish, and answers what it is
// then. The caller's request id makes a repeated call the same call.
func (c *Client) OrderHost(ctx context.Context, host, requestID string, kind workflows.HostUpdate, order workflows.HostOrder) (string, error) {
	var answer workflows.HostAnswer
	err := c.update(ctx, host, requestID, string(kind), order, &answer)
	return answer.State, wished(err, host, workflows.HostRefused, fmt.Sprintf("there is no open host %q; `xce-elastic hosts` lists them", host))
}

// wished answers the error of an operator's wish: a refusal as one, in the
// story's words, or as absent says where there is no story.
func wished(err error, id, refusedType, absent string) error {
	var refused *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Type() == refusedType:
		return &Refused{Text: refused.Message()}
	case errors.As(err, &gone):
		return &Refused{Text: absent}
	}
	return fmt.Errorf("update workflow %s: %w", id, err)
}

func (c *Client) update(ctx context.Context, id, requestID, name string, arg, answer any) error {
	handle, err := c.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateID: requestID, UpdateName: name, Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, answer)
}

// Believe has a provider's story take the next list of its hosts at its word.
func (c *Client) Believe(ctx context.Context, provider string) error {
	return c.signal(ctx, workflows.ProviderID(provider), workflows.SignalBelieve, struct{}{})
}

// Running answers the ids of the stories of one kind that run, as far as Temporal
// lists them already.
func (c *Client) Running(ctx context.Context, kind string) (map[string]bool, error) {
	running := map[string]bool{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: 1000, Query: fmt.Sprintf("%s = '%s' AND ExecutionStatus = 'Running'", workflows.AttributeKind.GetName(), kind),
	}
	for {
		page, err := c.temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the workflows of kind %s: %w", kind, err)
		}
		for _, e := range page.GetExecutions() {
			running[e.GetExecution().GetWorkflowId()] = true
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return running, nil
		}
	}
}

// Refused is a wish that was not accepted; nothing was done.
type Refused struct{ Text string }

// Error implements error.
func (r *Refused) Error() string { return r.Text }

// Return asks a loan to give units back now, all of them or none; 0 units are
// all that it has. It answers how many go back. The caller's request id makes a
// repeated call the same call.
func (c *Client) Return(ctx context.Context, loan, requestID string, wish workflows.ReturnUnits) (int64, error) {
	var answer workflows.ReturnAnswer
	err := c.update(ctx, loan, requestID, workflows.UpdateReturn, wish, &answer)
	return answer.Units, wished(err, loan, workflows.ReturnRefused, fmt.Sprintf("there is no open loan %q; `xce-elastic loans` lists them", loan))
}

// Loan asks a loan's story how it stands.
func (c *Client) Loan(ctx context.Context, id string) (workflows.Loan, error) {
	var loan workflows.Loan
	return loan, c.query(ctx, id, workflows.QueryLoan, &loan)
}

// Host asks a host's story how it stands.
func (c *Client) Host(ctx context.Context, id string) (workflows.Host, error) {
	var host workflows.Host
	return host, c.query(ctx, id, workflows.QueryHost, &host)
}

// Provider asks a provider's story how it stands.
func (c *Client) Provider(ctx context.Context, name string) (workflows.Provider, error) {
	var provider workflows.Provider
	return provider, c.query(ctx, workflows.ProviderID(name), workflows.QueryState, &provider)
}

func (c *Client) query(ctx context.Context, id, query string, into any) error {
	value, err := c.temporal.QueryWorkflow(ctx, id, "", query)
	if err != nil {
		return fmt.Errorf("query workflow %s: %w", id, err)
	}
	if err := value.Get(into); err != nil {
		return fmt.Errorf("query workflow %s: %w", id, err)
	}
	return nil
}
