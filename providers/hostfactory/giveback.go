package hostfactory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

const (
	// enoughAbsent is in how many answers in a row a machine must be missing, where the plug-in did not say
	// in so many words that its return is done.
	enoughAbsent = 2
	// enoughDone is after how many returns, each said to be done, a machine is taken for gone although the
	// plug-in still shows it: some never forget what a request got.
	enoughDone = 3
	// enoughUnshown is the same for a request that the plug-in no longer answers for.
	enoughUnshown = 3
)

// Return gives machines back, or gives a request up. It is ok once the plug-in no longer shows a machine.
func (a *Adapter) Return(ctx context.Context, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	remaining, outcome := a.giveBack(ctx, in)
	return providers.ReturnOut{
		RequestID: in.RequestID, Status: outcome.Status, Remaining: remaining,
		Reason: outcome.Reason, Message: outcome.Message, RetryAfter: outcome.RetryAfter,
	}, outcome
}

func (a *Adapter) giveBack(ctx context.Context, in providers.ReturnIn) (remaining int64, outcome providers.Outcome) {
	if in.RequestID == "" || in.Remaining < 0 {
		return 0, refused(providers.ReasonInvalid, 0, "not done: give a request id, and 0 or more to remain")
	}
	t, leave, err := a.enter(ctx)
	if err != nil {
		return 0, doubt(err)
	}
	defer leave()
	r := t.Requests[in.RequestID]
	if r == nil {
		return t.cancel(in)
	}
	t.release(r, in)
	if err := t.keep(); err != nil {
		return 0, doubt(err)
	}
	t.look(ctx, []string{in.RequestID}, t.now())
	t.sendBack(ctx, r)
	outcome = t.returned(r, in.Remaining)
	remaining = r.lent()
	if outcome.Status == providers.StatusOK && in.Remaining == 0 && t.over(r) {
		t.close(in.RequestID, t.now())
	}
	if err := t.keep(); err != nil {
		return 0, doubt(err)
	}
	return remaining, outcome
}

// cancel notes an id that was never asked for, so that a late request for it is refused.
func (t *turn) cancel(in providers.ReturnIn) (int64, providers.Outcome) {
	if _, over := t.Closed[in.RequestID]; !over {
		if in.Remaining > 0 {
			return 0, refused(providers.ReasonInvalid, 0, "nothing was asked for under this id")
		}
		t.close(in.RequestID, t.now())
		if err := t.keep(); err != nil {
			return 0, doubt(err)
		}
	}
	return 0, providers.Outcome{Status: providers.StatusOK}
}

// release marks what goes back: the machines that are named, and of the others the last until no more than
// the target remains. With a target of 0 nothing that comes later is wanted either.
func (t *turn) release(r *request, in providers.ReturnIn) {
	if in.Remaining == 0 {
		r.GivenUp = true
		t.believeCaller(r, in.Instances)
	}
	named := func(m *machine) bool {
		return slices.ContainsFunc(in.Instances, func(i providers.Instance) bool { return i.ID == m.Instance && m.granted() })
	}
	for _, prefer := range []func(*machine) bool{named, (*machine).exists} {
		for _, m := range slices.Backward(r.Machines) {
			if (m.State == held || m.State == coming && r.GivenUp) && prefer(m) && r.staying() > in.Remaining {
				m.State = leaving
			}
		}
	}
}

// staying counts the machines that do not go back.
func (r *request) staying() int64 {
	return r.count(func(m *machine) bool { return m.State == held || m.State == coming })
}

// believeCaller takes machines that a caller knows of a request of unknown outcome: a host may have joined
// and told where it is.
func (t *turn) believeCaller(r *request, instances []providers.Instance) {
	if !r.unknown() {
		return
	}
	for _, instance := range instances {
		entry := machineEntry{id: identity(instance.ID), name: identity(instance.Name)}
		if entry.id == "" || t.live(entry, nil) {
			continue
		}
		r.Machines = append(r.Machines, &machine{ID: entry.id, Name: entry.name, Instance: entry.id, State: held, Seen: t.now()})
	}
}

// lent counts what the caller still has of a request.
func (r *request) lent() int64 {
	return r.count(func(m *machine) bool { return m.granted() && m.exists() })
}

// returned answers how a return stands.
func (t *turn) returned(r *request, target int64) providers.Outcome {
	pending := func(message string) providers.Outcome {
		return providers.Outcome{Status: providers.StatusPending, RetryAfter: seconds(t.poll()), Message: clip(message)}
	}
	for _, m := range r.Machines {
		if m.State == leaving {
			return pending(fmt.Sprintf("the plug-in has not confirmed yet that %s is gone%s", m.label(), m.Back.said()))
		}
	}
	switch {
	case target > 0 || r.Decided != 0 || r.ended() || t.overdue(r) || t.late(r):
		return providers.Outcome{Status: providers.StatusOK}
	case r.unknown() && len(r.Machines) > 0:
		return providers.Outcome{Status: providers.StatusOK} // what the caller knew of it is gone
	case r.unknown():
		return pending(inDoubt)
	}
	return pending("the plug-in has not ended the request yet: a machine that comes of it goes back at once")
}

func (m *machine) label() string {
	switch {
	case m.Name == "":
		return m.ID
	case m.ID == "" || m.ID == m.Name:
		return m.Name
	}
	return m.ID + " (" + m.Name + ")"
}

func (b *back) said() string {
	if b == nil || b.Message == "" {
		return ""
	}
	return ": " + b.Message
}

// over tells whether nothing of a request is there, and nothing will come.
func (t *turn) over(r *request) bool {
	if r.count((*machine).exists) > 0 || r.Decided == 0 && !r.GivenUp && !r.unknown() {
		return false
	}
	if r.Phase == declined || t.overdue(r) || r.unknown() && len(r.Machines) > 0 {
		return true
	}
	return !slices.ContainsFunc(r.Theirs, func(a *asked) bool { return t.watches(r, a) }) && !r.unknown()
}

// sendBack gives back the machines of a request that leave and are due, one with each call: asked to
// return several of which it does not know one, a plug-in may say that all are returned and return none.
func (t *turn) sendBack(ctx context.Context, r *request) {
	for _, m := range r.Machines {
		if m.State == leaving && t.sendable(m) && ctx.Err() == nil {
			t.sendOne(ctx, r, m)
		}
	}
}

// sendable tells whether the plug-in must be asked (again) to take a machine back: once a return has ended
// and the machine is still shown, or nothing is said of it at all.
func (t *turn) sendable(m *machine) bool {
	b := m.Back
	if b == nil {
		return true
	}
	lasts := b.Shown > 0 || b.Unshown >= enoughUnshown || m.From == ""
	return b.Ended && lasts && t.now().Sub(b.Asked) >= min(t.poll()<<min(b.Tries, 5), max(cluster.Hour, t.poll()))
}

func (t *turn) sendOne(ctx context.Context, r *request, m *machine) {
	if m.Back == nil {
		m.Back = &back{}
	}
	b := m.Back
	b.Asked, b.Tries, b.ID, b.Ended, b.Absent, b.Shown, b.Unshown = t.now(), b.Tries+1, "", false, 0, 0, 0
	_ = t.keep() // if this fails, the worst is that the machine is returned once more
	answer := t.call(ctx, returnMachines, machinesInput{[]machineInput{inputOf(m)}})
	b.Message = clip(answer.why(returnMachines))
	if b.Message == "" {
		b.Message = clip(messages(answer.docs))
	}
	for _, id := range requestIDs(answer.docs) {
		if !t.acquires(id) {
			b.ID = id
			t.Polled[id] = t.now()
		}
	}
	b.Ended = b.ID == ""
	if m.From == "" && b.Ended && answer.run.Err == nil && answer.run.Exit == 0 {
		m.State = gone // nothing else can ever tell
	}
	_ = t.keep() // likewise
	t.log.Info("machine goes back", "template", r.Template, "machine", m.ID, "name", m.Name, "try", b.Tries, "request", b.ID)
}

// acquires tells whether an id of theirs is of a request for machines: ids are weak, and an answer to such
// a one says nothing of a return.
func (t *turn) acquires(id string) bool {
	for _, r := range t.Requests {
		if slices.ContainsFunc(r.Theirs, func(a *asked) bool { return a.ID == id }) {
			return true
		}
	}
	return false
}

// takeUpReturns takes what an answer says of returns.
func (t *turn) takeUpReturns(r *request, e requestEntry) {
	for _, m := range r.Machines {
		b := m.Back
		if m.State != leaving || b == nil || b.ID != e.id || b.Ended {
			continue
		}
		entry, found := e.find(m)
		switch {
		case found && entry.result == succeed:
			b.Ended = true
			b.Done++
		case found && entry.result == fail:
			b.Ended = true
		case e.terminal() && !found:
			b.Ended = true
			if m.From == "" {
				b.Done++ // nothing else can ever tell
			}
		}
		if found && entry.message != "" {
			b.Message = clip(entry.message)
		}
		m.conclude()
	}
}

// verify takes up what an answer on the request that got a machine says of the machine, once its return
// has ended.
func (m *machine) verify(e requestEntry) {
	if m.State != leaving || m.Back == nil || !m.Back.Ended {
		return
	}
	m.Back.Unshown = 0
	entry, found := e.find(m)
	if found && entry.result != fail {
		m.Back.Absent, m.Back.Shown = 0, m.Back.Shown+1
	} else {
		m.Back.Absent++
	}
	m.conclude()
}

// conclude takes a machine for gone if that is certain enough.
func (m *machine) conclude() {
	b := m.Back
	done := b.Done > 0 || m.Recall != nil
	if b.Ended && (b.Absent >= enoughAbsent || done && b.Absent > 0 || b.Done >= enoughDone ||
		b.Done > 0 && (b.Unshown >= enoughUnshown || m.From == "")) {
		m.State = gone
	}
}

// tidy lets requests go that are over.
func (t *turn) tidy() {
	now := t.now()
	t.each(func(id string, r *request) {
		told := r.GivenUp || now.Sub(r.Decided) > cluster.DurationOf(t.spec.Watch)
		if told && t.over(r) {
			t.close(id, now)
		}
	})
	t.forget(now)
	maps.DeleteFunc(t.alone, func(id string, _ bool) bool { return t.Polled[id] == 0 })
}

// endReturns ends returns of which the plug-in says nothing.
func (t *turn) endReturns(_ string, r *request) {
	for _, m := range r.Machines {
		if b := m.Back; m.State == leaving && b != nil {
			b.Ended = b.Ended || t.now().Sub(b.Asked) >= t.settleTime()
			m.conclude()
		}
	}
}
