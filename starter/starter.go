// Package starter is the typed client of the workflows: it starts them, tells
// them things and asks them how they stand. It hides Temporal from its callers.
package starter

import (
	"context"
	"errors"
	"fmt"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
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
func (c *Client) StartProvider(ctx context.Context, name string, surveyEvery cluster.Duration) error {
	id := workflows.ProviderID(name)
	options := client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueWorkflows,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "provider " + name,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.AttributeKind.ValueSet(workflows.ProviderName), workflows.AttributeProvider.ValueSet(name)),
	}
	_, err := c.temporal.SignalWithStartWorkflow(ctx, id, workflows.SignalCatalogChanged,
		workflows.Changed{SurveyEvery: surveyEvery}, options, workflows.ProviderName,
		workflows.Provider{Name: name, SurveyEvery: surveyEvery})
	if err != nil {
		return fmt.Errorf("start workflow %s: %w", id, err)
	}
	return nil
}

// TellDemand tells a provider's story that its demand changed.
func (c *Client) TellDemand(ctx context.Context, provider string) error {
	id := workflows.ProviderID(provider)
	if err := c.temporal.SignalWorkflow(ctx, id, "", workflows.SignalDemand, struct{}{}); err != nil {
		return fmt.Errorf("signal workflow %s: %w", id, err)
	}
	return nil
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
	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: r.ID, TaskQueue: workflows.QueueWorkflows,
		WorkflowIDReusePolicy: reuse, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            fmt.Sprintf("%d %s from %s", r.Units, r.Resource, r.Provider),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.AttributeKind.ValueSet(workflows.LoanName), workflows.AttributeProvider.ValueSet(r.Provider),
			workflows.AttributeResource.ValueSet(r.Resource), workflows.AttributeState.ValueSet("requested"),
			workflows.AttributeUnits.ValueSet(0)),
	}, workflows.LoanName, loan)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &started) {
		return fmt.Errorf("start workflow %s: %w", r.ID, err)
	}
	return nil
}

// Refused is a return that was not accepted; nothing was given back.
type Refused struct{ Text string }

// Error implements error.
func (r *Refused) Error() string { return r.Text }

// Return asks a loan to give units back now, all of them or none; 0 units are
// all that it has. It answers how many go back. The caller's request id makes a
// repeated call the same call.
func (c *Client) Return(ctx context.Context, loan, requestID string, wish workflows.ReturnUnits) (int64, error) {
	handle, err := c.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: loan, UpdateID: requestID, UpdateName: workflows.UpdateReturn, Args: []any{wish},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	var answer workflows.ReturnAnswer
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	var refused *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &refused) && refused.Type() == workflows.ReturnRefused:
		return 0, &Refused{Text: refused.Message()}
	case errors.As(err, &gone):
		return 0, &Refused{Text: fmt.Sprintf("there is no open loan %q; `xce-elastic loans` lists them", loan)}
	case err != nil:
		return 0, fmt.Errorf("update workflow %s: %w", loan, err)
	}
	return answer.Units, nil
}

// Loan asks a loan's story how it stands.
func (c *Client) Loan(ctx context.Context, id string) (workflows.Loan, error) {
	var loan workflows.Loan
	return loan, c.query(ctx, id, workflows.QueryLoan, &loan)
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
