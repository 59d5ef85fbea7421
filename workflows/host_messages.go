package workflows

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// listLag is for how many poll intervals a new machine may be missing in its
// provider's list.
const listLag = 6

// hear takes a message.
func (h *Host) hear(env HostEnv, m Message) {
	switch {
	case m.Wish != nil:
		m.Wish.Answer(h.grantWish(env, m.Wish.Kind, m.Wish.HostOrder))
	case m.Joined != nil && h.Chapter == Joining:
		h.joined(m.Joined.At)
	case m.Emptied && h.Chapter == Keeping:
		h.AskNow = true
	case m.Health != nil && h.Chapter == Keeping:
		h.hearHealth(env, *m.Health)
	case m.Health != nil && h.Row.State.Here() && m.Health.Health == cluster.Well && (h.Chapter == GivingBack || h.Chapter == Verifying) && h.Surrender == "" && !h.Taken:
		h.turn(Keeping)
		h.hearHealth(env, *m.Health)
	case m.Reclaimed != nil:
		h.reclaim(env, m.Reclaimed.By)
	case m.Check && (h.Chapter == Keeping || h.Chapter == Joining) && h.Absent == 0 && env.Now() >= h.Row.Made.Add(listLag*h.pollInterval()):
		h.look(env)
	}
}

// hearHealth notes how the host answers. One that was drained for its silence and
// answers again is opened.
func (h *Host) hearHealth(env HostEnv, health HostHealth) {
	h.Row.Health = health.Health
	switch {
	case health.Health == cluster.Lost:
		h.AskNow = true
	case health.Health == cluster.Well:
		h.answers(env)
	}
}

// reclaimLead is how long before its provider takes a machine its jobs are told
// to stop, so that they have stopped by then.
const reclaimLead = cluster.Minute

// reclaim gets the host empty before its provider takes it.
func (h *Host) reclaim(env HostEnv, by cluster.Time) {
	why := h.Request.Provider + " takes the machine back"
	if h.Chapter == Joining {
		h.lapse(env, api.LapseHost{Why: why})
	}
	if h.Chapter == Keeping && (h.Row.Drain == nil || !h.Row.Drain.Forced) {
		stop := max(by.Add(-reclaimLead), env.Now())
		h.drain(env, cluster.Drain{By: h.Request.Provider, Why: why, Deadline: stop, Action: cluster.DrainRequeue, Forced: true})
	}
}

// May tells whether an operator's wish can be taken up at all, or why not: what
// needs no look at the ledger.
func (h *Host) May(kind HostUpdate, order HostOrder) error {
	awaited, here, leaving := h.Chapter == Joining, h.Chapter == Keeping, h.Chapter == GivingBack || h.Chapter == Verifying
	switch {
	case order.Within < 0:
		return fmt.Errorf("a drain within %s makes no sense; write a length of time such as 10m", order.Within)
	case leaving && kind == UpdateGone:
		return nil // whatever its provider says
	case leaving || h.Chapter == Closed:
		return fmt.Errorf("host %s is %s: it is too late for that", h.Request.ID, h.state())
	case !awaited && !here:
		return fmt.Errorf("host %s is %s: there is no machine yet; ask again when there is", h.Request.ID, h.state())
	case kind == UpdateHold && order.Why == "":
		return fmt.Errorf("say why host %s is to be kept, so that others know", h.Request.ID)
	case awaited && kind != UpdateDrain && kind != UpdateGone:
		return fmt.Errorf("host %s has not joined yet", h.Request.ID)
	case kind == UpdateGone && here && h.Row.Health == cluster.Well:
		return fmt.Errorf("host %s answers: its jobs would run twice; drain it, or stop its machine and ask again when it is silent", h.Request.ID)
	case kind == UpdateUndrain && h.Row.Drain == nil:
		return fmt.Errorf("host %s does not drain", h.Request.ID)
	case kind == UpdateUndrain && h.Row.Drain.By == oldAge:
		return fmt.Errorf("host %s drains since it has lived for %s, which cannot be undone", h.Request.ID, h.Row.MaxLifetime)
	case kind == UpdateRelease && h.Row.Keep == nil:
		return fmt.Errorf("host %s is not kept", h.Request.ID)
	}
	return nil
}

// grantWish carries an operator's wish out.
func (h *Host) grantWish(env HostEnv, kind HostUpdate, order HostOrder) HostAnswer {
	if err := h.May(kind, order); err != nil {
		return HostAnswer{State: h.state(), Refused: err.Error()}
	}
	refused := ""
	switch kind {
	case UpdateDrain:
		refused = h.operatorDrain(env, order)
	case UpdateUndrain:
		refused = h.operatorWrite(env, api.WriteHost{Undrain: &api.By{By: order.By}})
	case UpdateHold:
		refused = h.operatorWrite(env, api.WriteHost{Keep: &cluster.Keep{By: order.By, Why: order.Why}})
	case UpdateRelease:
		refused = h.operatorWrite(env, api.WriteHost{Release: &api.By{By: order.By}})
	case UpdateGone:
		refused = h.gone(env, api.By{By: order.By, Why: fmt.Sprintf("%s says that the machine is no more", order.By)})
	}
	return HostAnswer{State: h.state(), Refused: refused}
}

// operatorWrite writes a change and looks anew at what is due.
func (h *Host) operatorWrite(env HostEnv, in api.WriteHost) (refused string) {
	w, ok := h.write(env, in)
	if !ok || w.Refusal != nil {
		return w.Refusal.Text
	}
	h.AskNow = true
	return ""
}

func (h *Host) operatorDrain(env HostEnv, order HostOrder) (refused string) {
	why := order.Why
	if why == "" {
		why = order.By + " wants it"
	}
	if h.Chapter == Joining {
		h.lapse(env, api.LapseHost{Why: why})
	}
	if h.Chapter != Keeping { // it has not joined meanwhile
		return ""
	}
	d := cluster.Drain{By: order.By, Why: why, Action: cluster.DrainWait}
	if order.Requeue {
		d.Action = cluster.DrainRequeue
	}
	if order.Within > 0 || order.Requeue {
		d.Deadline = env.Now().Add(order.Within)
	}
	return h.drain(env, d)
}
