package workflows

import (
	"fmt"
	"slices"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// keep waits while the host is in the cluster: for its idleness, for the last job
// of a drain, for a deadline, and does what is due. Where the ledger has gone on
// without the story, the story goes on from the row.
func (h *Host) keep(env HostEnv) {
	if !h.Row.State.Here() {
		*h = ResumeHost(h.Row)
		return
	}
	if !h.AskNow {
		waitsFor, until := h.next()
		h.show(env, waitsFor, until)
		if m, ok := env.Receive(until); ok {
			h.hear(env, m)
			return
		}
	}
	h.AskNow = false
	h.act(env)
}

// next answers what the host waits for, and until when; 0 is for ever.
func (h *Host) next() (waitsFor string, until cluster.Time) {
	r := h.Row
	switch {
	case r.Health == cluster.Lost:
		return "word of a host that does not answer", h.Next
	case r.Drain != nil:
		if d := r.Drain.Deadline; d > 0 && r.Drain.Action == cluster.DrainRequeue && r.Drain.Requeued == 0 && (h.Next == 0 || d <= h.Next) {
			return "the last job, which is stopped then", d
		}
		return "the last job", h.Next
	case r.Keep != nil:
		return "its release by an operator", h.Next
	}
	if end := h.Row.LifeEnd(); end > 0 && end <= h.Next {
		return "the end of its lifetime", end
	}
	if h.Next <= r.HoldUntil {
		return "the end of the minimum hold", h.Next
	}
	return "idleness", h.Next
}

// NextFence answers when the host in the cluster asks next whether it may go, where it waits for nothing else; 0 where
// it is not so.
func (h *Host) NextFence() cluster.Time {
	r := &h.Row
	if h.Chapter != Keeping || h.AskNow || h.Absent > 0 || r.State != cluster.HostJoined || r.Health != cluster.Well || r.Drain != nil || r.Keep != nil {
		return 0
	}
	if end := r.LifeEnd(); end > 0 && end <= h.Next {
		return 0
	}
	return h.Next
}

// InVain takes it that the host has asked whether it may go, and was answered the row: not before that says so.
func (h *Host) InVain(row cluster.ElasticHost) {
	h.Step, h.Row, h.Tries, h.Next = row.Step, row, 0, row.AskAgain
}

// oldAge is who drains a host that has lived long enough.
const oldAge = "lifetime"

// act does what is due.
func (h *Host) act(env HostEnv) {
	now := env.Now()
	switch r := h.Row; {
	case r.Health == cluster.Lost:
		h.search(env)
	case r.Drain != nil && r.Drain.Action == cluster.DrainRequeue && r.Drain.Deadline > 0 && now >= r.Drain.Deadline && r.Drain.Requeued == 0:
		h.write(env, api.WriteHost{StopJobs: &api.By{By: r.Drain.By, Why: r.Drain.Why}})
		h.Next, h.AskNow = 0, true // an empty host need not be told of
	case r.Drain == nil && r.Keep == nil && h.Row.LifeEnd() > 0 && now >= h.Row.LifeEnd():
		h.drain(env, cluster.Drain{By: oldAge, Why: fmt.Sprintf("it has lived for %s", r.MaxLifetime), Action: cluster.DrainWait})
	default:
		h.fence(env)
	}
}

// fence asks the ledger to take the host out of the cluster, which it does only
// if it is empty. Otherwise the ledger says when it is worth asking again.
func (h *Host) fence(env HostEnv) {
	w, ok := h.write(env, api.WriteHost{Fence: true})
	if !ok {
		return
	}
	if h.Row.State == cluster.HostLeaving {
		h.turn(GivingBack)
		return
	}
	now := env.Now()
	h.Tries++
	switch {
	case h.Row.State == cluster.HostJoined && h.Row.Keep != nil:
		h.Next = now.Add(keptLook)
	case w.Refusal == nil && h.Row.Drain == nil && h.Row.AskAgain > now:
		h.Tries, h.Next = 0, h.Row.AskAgain
	default:
		h.Next = now.Add(backoff(5*cluster.Second, drainLook, h.Tries))
	}
}

// drain closes the host to new jobs, and has it leave once it is empty.
func (h *Host) drain(env HostEnv, d cluster.Drain) (refused string) {
	w, ok := h.write(env, api.WriteHost{Drain: &d})
	if !ok {
		return "the ledger has another host under this id"
	}
	if w.Refusal != nil {
		return w.Refusal.Text
	}
	h.AskNow, h.Next = true, 0
	return ""
}

// search does what can be done with a host that does not answer. It leaves if it
// has no jobs; with jobs on it, it is given back only where the cluster wants that,
// since they may still run. Should its provider not have the machine any more, the
// provider's story says so, which knows whether its list can be believed.
func (h *Host) search(env HostEnv) {
	if h.Row.Drain == nil {
		h.drain(env, cluster.Drain{By: silence, Why: "it does not answer", Action: cluster.DrainWait})
	}
	if h.AskNow = false; h.Chapter != Keeping {
		return
	}
	if h.Row.Health != cluster.Lost { // by the ledger: the word was an old one
		h.answers(env)
		h.AskNow = true
		return
	}
	if h.fence(env); h.Chapter != Keeping {
		return
	}
	if h.Row.Health == cluster.Lost && h.Row.ReturnLost {
		h.turn(GivingBack)
	}
}

// answers opens a host that was drained for its silence and answers again.
func (h *Host) answers(env HostEnv) {
	if h.Row.Drain != nil && h.Row.Drain.By == silence {
		h.Absent = 0
		h.write(env, api.WriteHost{Undrain: &api.By{By: "the host, which answers again"}})
		h.AskNow = true
	}
}

// silence is who drains a host that does not answer; it is opened again when it does.
const silence = "silence"

// look asks the provider whether it still has the machine. One that it does not
// list, looked at again and again, is gone.
func (h *Host) look(env HostEnv) {
	held := env.Holding(h.ask())
	h.note(held.Outcome)
	switch {
	case held.Outcome.Status != providers.StatusOK:
		h.Absent = 0
	case h.isAmong(held.Instances):
		h.Absent = 0
		h.giveMore(env, held.Instances)
	case h.Row.State.Here() && h.Row.Health == cluster.Well:
		h.Absent, h.Trouble = 0, h.Request.Provider+" does not list "+h.Row.Instance+", which answers"
	default:
		if h.Absent++; h.Absent >= absences {
			h.gone(env, api.By{By: h.Request.Provider, Why: fmt.Sprintf("%s does not have %s any more", h.Request.Provider, h.Row.Instance)})
		} else {
			h.pause(env, "a second look, since the machine is not listed", h.pollInterval())
			if h.Chapter == Keeping || h.Chapter == Joining {
				h.look(env)
			}
		}
	}
}

// giveMore gives back what else is listed under the host's id: it has one machine.
func (h *Host) giveMore(env HostEnv, listed []providers.Instance) {
	more := slices.DeleteFunc(slices.Clone(listed), func(i providers.Instance) bool { return i.ID == h.Row.Instance })
	if len(more) > 0 {
		h.note(env.Return(activities.GiveBack{Ask: h.ask(), Remaining: 1, Instances: more}).Outcome)
	}
}

// isAmong tells whether the machine is one of those that are listed. Another in
// its place is not it.
func (h *Host) isAmong(listed []providers.Instance) bool {
	return slices.ContainsFunc(listed, func(i providers.Instance) bool { return i.ID == h.Row.Instance })
}

// gone closes the host: its machine is no more, and its jobs wait again.
func (h *Host) gone(env HostEnv, by api.By) (refused string) {
	w, ok := h.write(env, api.WriteHost{Gone: &by})
	if w.Refusal != nil {
		return w.Refusal.Text
	}
	if ok {
		h.turn(Closed)
	}
	return ""
}
