package simulation

import (
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/workflows"
)

// hostEnv is workflows.HostEnv on the virtual clock.
//
// To ask whether a host may go on which jobs run changes nothing but when to ask again. A story sleeps through that
// until the last of the jobs ends, the host's lifetime is over, or the story is told something.
type hostEnv struct {
	deal
	host   *workflows.Host
	asleep bool
	// turn is that of its next timer, were it awake, among all that happens at one instant.
	turn uint64
}

// WriteHost implements workflows.HostEnv.
func (e *hostEnv) WriteHost(in api.WriteHost) (out api.HostWritten) {
	at := e.written(e.Now())
	write := func() { out = e.s.writeHost(in, at) }
	e.step(e.s.farm.Steps.Controller, write, write)
	return out
}

// written answers when a write to the controller that begins at a time has its effect.
func (e *hostEnv) written(began cluster.Time) cluster.Time {
	return began.Add(e.s.farm.Steps.Controller / 2)
}

// Receive implements workflows.Env.
func (e *hostEnv) Receive(until cluster.Time) (workflows.Message, bool) {
	h := e.s.elastic[e.id]
	if h == nil || !e.maySleep(h, until) {
		return e.deal.Receive(until)
	}
	e.asleep, e.turn, h.story = true, e.s.agenda.turn(), e
	e.s.asleep = append(e.s.asleep, h)
	m, ok := e.deal.Receive(h.row.LifeEnd())
	e.getUp(h)
	return m, ok
}

// maySleep tells that a host's story that waits until a time would ask in vain then. Sessions of the conservative
// order depend on what is written, whatever it is; and where nobody may wait for the jobs that are left, the end depends
// on what happens when.
func (e *hostEnv) maySleep(h *elasticHost, until cluster.Time) bool {
	s := e.s
	if s.options.Awake || s.options.OneByOne || s.farm.Policy.Order == scheduling.Conservative || s.stranded+s.hopeless > 0 {
		return false
	}
	return until > s.now && until == e.host.NextFence() && len(e.inbox)+len(e.mail) == 0 && s.farm.Steps.Controller < cluster.Second &&
		h.row.Health == cluster.Well && h.host != nil && len(h.host.jobs) > 0
}

// getUp ends a story's sleep. It has asked as often as it would have been answered by now; where it would be asking
// now, it begins to as of then.
func (e *hostEnv) getUp(h *elasticHost) {
	if !e.asleep {
		return
	}
	e.asleep = false
	e.s.asleep = slices.DeleteFunc(e.s.asleep, func(other *elasticHost) bool { return other == h })
	for e.host.Next.Add(e.s.farm.Steps.Controller) < e.s.now {
		_, again := policy.ReturnHost(h.row, 0, e.written(e.host.Next))
		h.row.Step, h.row.AskAgain = h.row.Step+1, again
		e.host.InVain(h.row)
	}
	if e.host.Next < e.s.now {
		e.asOf = e.host.Next
	}
}

// wake has the story of a host go on that is asleep.
func (s *simulator) wake(h *elasticHost) {
	if h == nil || h.story == nil || !h.story.asleep {
		return
	}
	e := h.story
	if e.getUp(h); e.asOf > 0 {
		e.run()
		return
	}
	e.wakeInTurn(e.host.Next, e.turn)
}

// wakeAll has all stories of hosts go on that are asleep.
func (s *simulator) wakeAll() {
	for len(s.asleep) > 0 {
		s.wake(s.asleep[0])
	}
}
