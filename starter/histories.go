package starter

import (
	"context"
	"errors"
	"fmt"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"xce.internal/elastic/workflows"
)

// Run is one run of a workflow: a story that is continued has several.
type Run struct{ ID, Run string }

// Runs answers all runs of the stories of providers, loans and hosts that Temporal still has, as far as it lists
// them already.
func (c *Client) Runs(ctx context.Context) (runs []Run, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: 1000,
		Query:    fmt.Sprintf("WorkflowType IN ('%s', '%s', '%s')", workflows.ProviderName, workflows.LoanName, workflows.HostName),
	}
	for {
		page, err := c.temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			runs = append(runs, Run{e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()})
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return runs, nil
		}
	}
}

// History downloads the history of a run; there is none where Temporal has forgotten it meanwhile.
func (c *Client) History(ctx context.Context, r Run) (*history.History, error) {
	h := &history.History{}
	for events := c.temporal.GetWorkflowHistory(ctx, r.ID, r.Run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		var gone *serviceerror.NotFound
		switch {
		case errors.As(err, &gone):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("download the history of %s: %w", r.ID, err)
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}
