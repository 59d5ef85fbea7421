package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/controller/api"
)

// hostBinding is HostEnv over a Temporal workflow.
type hostBinding struct{ deal }

// HostWorkflow runs a host's story.
func HostWorkflow(ctx workflow.Context, h Host) error {
	ctx = uncancelled(ctx)
	b := &hostBinding{deal{binding{ctx: ctx}}}
	source(&b.binding, SignalJoined, func(j HostJoined) Message { return Message{Joined: &j} })
	source(&b.binding, SignalEmptied, func(struct{}) Message { return Message{Emptied: true} })
	source(&b.binding, SignalHealth, func(health HostHealth) Message { return Message{Health: &health} })
	source(&b.binding, SignalReclaimed, func(r Reclaimed) Message { return Message{Reclaimed: &r} })
	source(&b.binding, SignalCheck, func(struct{}) Message { return Message{Check: true} })
	if err := workflow.SetQueryHandler(ctx, QueryHost, func() (Host, error) { return h, nil }); err != nil {
		return fmt.Errorf("answer query %s: %w", QueryHost, err)
	}
	for _, kind := range HostUpdates {
		if err := b.accept(&h, kind); err != nil {
			return err
		}
	}
	if !h.Live(b) {
		return workflow.NewContinueAsNewError(ctx, HostName, h)
	}
	b.refuseRest(&h)
	return nil
}

// HostRefused is the type of the error that answers a refused wish for a host.
const HostRefused = "HostRefused"

// accept takes operators' wishes of one kind: what can be refused at a glance is
// refused before it enters the history, the rest is the story's to answer.
func (b *hostBinding) accept(h *Host, kind HostUpdate) error {
	handler := func(ctx workflow.Context, order HostOrder) (HostAnswer, error) {
		var answer *HostAnswer
		b.inbox = append(b.inbox, Message{Wish: &HostWish{Kind: kind, HostOrder: order, Answer: func(a HostAnswer) { answer = &a }}})
		if err := workflow.Await(ctx, func() bool { return answer != nil }); err != nil {
			return HostAnswer{}, err
		}
		if answer.Refused != "" {
			return *answer, temporal.NewNonRetryableApplicationError(answer.Refused, HostRefused, nil)
		}
		return *answer, nil
	}
	validator := func(_ workflow.Context, order HostOrder) error {
		if err := h.May(kind, order); err != nil {
			return temporal.NewNonRetryableApplicationError(err.Error(), HostRefused, nil)
		}
		return nil
	}
	err := workflow.SetUpdateHandlerWithOptions(b.ctx, string(kind), handler, workflow.UpdateHandlerOptions{
		Validator: validator, Description: "An operator's wish: " + string(kind) + " the host.",
	})
	if err != nil {
		return fmt.Errorf("accept update %s: %w", kind, err)
	}
	return nil
}

// refuseRest answers what came too late.
func (b *hostBinding) refuseRest(h *Host) {
	for b.fill() {
		if wish := b.inbox[0].Wish; wish != nil {
			wish.Answer(HostAnswer{State: h.state(), Refused: fmt.Sprintf("host %s is %s: it is too late for that", h.Request.ID, h.state())})
		}
		b.inbox = b.inbox[1:]
	}
	_ = workflow.Await(b.ctx, func() bool { return workflow.AllHandlersFinished(b.ctx) })
}

func (b *hostBinding) WriteHost(in api.WriteHost) api.HostWritten {
	return mustRun[api.HostWritten](b.ctx, controllerOptions(writeWords(in)), activities.LedgerHost, in)
}

// writeWords says in a line what a write is.
func writeWords(in api.WriteHost) string {
	switch {
	case in.Intend != nil:
		return "intend a host of " + in.Intend.Template
	case in.Expect != nil:
		return "expect " + in.Expect.Instance
	case in.Refuse != nil:
		return fmt.Sprintf("close: %.200s", in.Refuse.Why)
	case in.Lapse != nil:
		return fmt.Sprintf("give it up: %.200s", in.Lapse.Why)
	case in.Drain != nil:
		return fmt.Sprintf("no new jobs: %.200s", in.Drain.Why)
	case in.Undrain != nil:
		return "open it again"
	case in.Keep != nil:
		return fmt.Sprintf("keep it: %.200s", in.Keep.Why)
	case in.Release != nil:
		return "release it"
	case in.StopJobs != nil:
		return "stop the jobs that still run"
	case in.Fence:
		return "take it out of the cluster if it is empty"
	case in.Confirm:
		return "it is back"
	}
	return "it is gone, and its jobs wait again"
}

var _ HostEnv = (*hostBinding)(nil)
