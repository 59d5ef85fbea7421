package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// hostBinding is HostEnv over a Temporal workflow.
type hostBinding struct{ deal }

// HostWorkflow runs a host's story.
func HostWorkflow(ctx workflow.Context, h Host) error {
	ctx = uncancelled(ctx)
	b := &hostBinding{deal{binding{ctx: ctx, provider: h.Request.Provider}}}
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
	b.refuseRest(h.tooLate)
	return nil
}

// HostRefused is the type of the error that answers a refused wish for a host.
const HostRefused = "HostRefused"

// accept takes operators' wishes of one kind.
func (b *hostBinding) accept(h *Host, kind HostUpdate) error {
	may := func(_ cluster.Time, order HostOrder) error { return h.May(kind, order) }
	return accept(&b.binding, string(kind), "An operator's wish: "+string(kind)+" the host.", HostRefused, may,
		func(order HostOrder, answer func(HostAnswer)) Message {
			return Message{Wish: &HostWish{Kind: kind, HostOrder: order, Answer: answer}}
		})
}

// tooLate answers a wish that no story is there for any more.
func (h *Host) tooLate(m Message) {
	if m.Wish != nil {
		m.Wish.Answer(HostAnswer{State: h.state(), Refused: fmt.Sprintf("host %s is %s: it is too late for that", h.Request.ID, h.state())})
	}
}

func (b *hostBinding) WriteHost(in api.WriteHost) api.HostWritten {
	return mustRun[api.HostWritten](b.ctx, b.change(writeWords(in)), activities.LedgerHost, in)
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
