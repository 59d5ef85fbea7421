package timeskip

import (
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
)

const (
	hostType = "timeskip-host"
	// wakeSignal makes a workflow look around; it is never delivered, except to the host. The
	// environment has no other way to resume a child after the answer to its activity.
	wakeSignal = "timeskip-wake"
	// cancelSignal asks a workflow to cancel. The environment's own request ends it on the spot.
	cancelSignal = "timeskip-cancel"
)

type startRequest struct {
	workflowType string
	options      workflow.ChildWorkflowOptions
	args         []any
}

// host is the root of the environment, which has but one. It starts all other workflows.
func (h *Harness) host(ctx workflow.Context) error {
	h.hostInfo = workflow.GetInfo(ctx)
	h.phase = running
	h.arm()
	wake := workflow.GetSignalChannel(ctx, wakeSignal)
	for h.phase != stopped {
		wake.Receive(ctx, nil)
		for len(h.requests) > 0 {
			request := h.requests[0]
			h.requests = h.requests[1:]
			h.startChild(ctx, request)
		}
	}
	return h.closeOpen(ctx)
}

func (h *Harness) wakeHost() { h.env.SignalWorkflow(wakeSignal, nil) }

// startChild waits until the child runs: the environment starts children on goroutines, and
// two at once would run in any order.
func (h *Harness) startChild(ctx workflow.Context, request startRequest) {
	ctx = workflow.WithChildOptions(ctx, request.options)
	child := workflow.ExecuteChildWorkflow(ctx, request.workflowType, request.args...)
	if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		h.t.Errorf("timeskip: start of workflow %s: %v", request.options.WorkflowID, err)
	}
}

// closeOpen ends what is still open, the youngest first, so that children go before parents, and one
// at a time: all at once would fill the environment's queue.
func (h *Harness) closeOpen(ctx workflow.Context) error {
	for _, id := range slices.Backward(h.started) {
		if h.workflows[id].Open() {
			err := workflow.RequestCancelExternalWorkflow(ctx, id, "").Get(ctx, nil)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func childOptions(id string, given workflow.ChildWorkflowOptions) workflow.ChildWorkflowOptions {
	given.WorkflowID = id
	given.ParentClosePolicy = enumspb.PARENT_CLOSE_POLICY_ABANDON
	return given
}
