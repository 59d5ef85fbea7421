package model

import (
	"context"
	"slices"

	"xce.internal/elastic/providers"
)

var ok = providers.Outcome{Status: providers.StatusOK}

func refused(reason providers.Reason, message string) providers.Outcome {
	return providers.Outcome{Status: providers.StatusRefused, Reason: reason, Message: message}
}

// Describe implements the verb.
func (m *Model) Describe(context.Context) (providers.Description, providers.Outcome) {
	return answer(m, providers.VerbDescribe, "", func() (providers.Description, providers.Outcome) {
		d := providers.Description{
			Contract: providers.ContractVersion, Idempotent: true, PartialReturn: !m.WholeReturn, PollInterval: m.pollInterval(),
		}
		if len(m.Templates) > 0 {
			d.Kinds = append(d.Kinds, providers.KindHosts)
		}
		if len(m.Offers) > 0 {
			d.Kinds = append(d.Kinds, providers.KindTokens)
		}
		d.Templates = slices.Grow(d.Templates, len(m.Templates))
		for i := range m.Templates {
			d.Templates = append(d.Templates, m.describeTemplate(i))
		}
		d.Offers = slices.Grow(d.Offers, len(m.Offers))
		for i := range m.Offers {
			d.Offers = append(d.Offers, m.describeOffer(i))
		}
		d.Recalls = m.wanted()
		return d, ok
	})
}

func (m *Model) describeTemplate(i int) providers.Template {
	t, s := &m.Templates[i], m.templates[i]
	latency := t.Latency
	if latency == 0 {
		latency = t.Boot.Typical() + m.Decide.Typical()
	}
	return providers.Template{
		Template: t.Template, CPUs: s.has.CPUs, MemoryMB: s.has.MemoryMB, Countables: s.has.Countables, Features: s.has.Features, Attributes: s.has.Attributes,
		Headroom: m.headroom(s), Price: s.price, MinimumHold: seconds(t.MinimumHold), BillingStep: seconds(t.BillingStep),
		Latency: seconds(latency), Preference: t.Preference,
	}
}

func (m *Model) describeOffer(i int) providers.Offer {
	o, s := &m.Offers[i], m.offers[i]
	return providers.Offer{
		Resource: o.Resource, Headroom: m.headroom(s), Price: s.price, MinimumHold: seconds(o.MinimumHold), BillingStep: seconds(o.BillingStep),
		MaxRequest: o.MaxRequest, MaxOpen: o.MaxOpen,
	}
}

func (m *Model) headroom(s *shelf) int64 {
	if m.out {
		return 0
	}
	return s.free()
}

// wanted is what the provider wants back.
func (m *Model) wanted() (recalls []providers.Recall) {
	for _, r := range m.given {
		switch {
		case r.recalled:
			recalls = append(recalls, providers.Recall{RequestID: r.RequestID, Units: r.held})
		case r.reclaimed > 0:
			recalls = append(recalls, providers.Recall{RequestID: r.RequestID, Units: 1, Grace: seconds(max(r.reclaimed.Sub(m.world.Now()), 0))})
		}
	}
	return recalls
}

// Request implements the verb.
func (m *Model) Request(_ context.Context, in providers.RequestIn) (providers.RequestOut, providers.Outcome) {
	return answer(m, providers.VerbRequest, in.RequestID, func() (providers.RequestOut, providers.Outcome) {
		r := m.requests[in.RequestID]
		if r == nil {
			r = m.decide(in)
			m.requests[in.RequestID] = r
			m.changed()
		}
		outcome := m.standing(r)
		if outcome.Status != providers.StatusOK {
			return providers.RequestOut{}, outcome
		}
		if r.granted < in.Units {
			outcome.Status = providers.StatusPartial
		}
		return providers.RequestOut{RequestID: in.RequestID, Granted: r.granted, Instances: r.instances}, outcome
	})
}

// standing says how a request stands.
func (m *Model) standing(r *request) providers.Outcome {
	switch {
	case r.state == providers.StatePending:
		return providers.Outcome{Status: providers.StatusPending}
	case r.state == providers.StateGranted && r.held > 0:
		return ok
	case r.state == providers.StateGranted:
		return refused(providers.ReasonInvalid, "it was returned")
	}
	outcome := refused(r.reason, "")
	outcome.RetryAfter = seconds(m.RetryAfter)
	return outcome
}

// Status implements the verb.
func (m *Model) Status(_ context.Context, in providers.StatusIn) (providers.StatusOut, providers.Outcome) {
	id := in.RequestIDs[0]
	return answer(m, providers.VerbStatus, id, func() (providers.StatusOut, providers.Outcome) {
		state := providers.RequestState{RequestID: id, Status: providers.StateUnknown}
		if r := m.requests[id]; r != nil {
			outcome := m.standing(r)
			state = providers.RequestState{RequestID: id, Status: r.state, Granted: r.granted, Instances: r.instances}
			if outcome.Status == providers.StatusRefused {
				state = providers.RequestState{RequestID: id, Status: providers.StateRefused, Reason: outcome.Reason, Message: outcome.Message, RetryAfter: outcome.RetryAfter}
			}
		}
		return providers.StatusOut{Requests: []providers.RequestState{state}}, ok
	})
}

// Return implements the verb.
func (m *Model) Return(_ context.Context, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	return answer(m, providers.VerbReturn, in.RequestID, func() (providers.ReturnOut, providers.Outcome) {
		r := m.requests[in.RequestID]
		switch {
		case r == nil || r.state != providers.StateGranted:
			return m.cancel(r, in)
		case r.held > in.Remaining && m.WholeReturn && in.Remaining > 0 && !r.recalled && r.Template == "":
			return providers.ReturnOut{}, refused(providers.ReasonInvalid, "a loan goes back whole")
		case r.held > in.Remaining:
			return m.giveBack(r, in)
		}
		return providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK, Remaining: r.held}, ok
	})
}

// giveBack takes units back: at once, or for a return that takes its time, when it is through.
func (m *Model) giveBack(r *request, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	wait := m.Returning.drawn(m.chance, m.Name, "returning", r.RequestID)
	if r.Template == "" || wait == 0 {
		m.take(r, r.held-in.Remaining)
		m.changed()
		return providers.ReturnOut{RequestID: r.RequestID, Status: providers.StatusOK, Remaining: r.held}, ok
	}
	if !r.returning {
		r.returning = true
		m.world.At(m.world.Now().Add(wait), func() { m.end(r) })
	}
	return providers.ReturnOut{}, providers.Outcome{Status: providers.StatusPending}
}

// cancel takes a request that was not granted out of the world for good.
func (m *Model) cancel(r *request, in providers.ReturnIn) (providers.ReturnOut, providers.Outcome) {
	if in.Remaining > 0 {
		return providers.ReturnOut{}, refused(providers.ReasonInvalid, "nothing was granted to it")
	}
	if r == nil {
		r = &request{RequestIn: providers.RequestIn{RequestID: in.RequestID}}
		m.requests[in.RequestID] = r
	}
	if r.state == providers.StatePending {
		r.shelf.taken -= r.granted
		m.changed()
	}
	r.state, r.reason, r.granted = providers.StateRefused, providers.ReasonInvalid, 0
	return providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK}, ok
}

// List implements the verb.
func (m *Model) List(context.Context) (providers.ListOut, providers.Outcome) {
	return answer(m, providers.VerbList, "", func() (providers.ListOut, providers.Outcome) {
		out := providers.ListOut{Grants: make([]providers.Grant, 0, len(m.given))}
		for _, r := range m.given {
			out.Grants = append(out.Grants, providers.Grant{
				RequestID: r.RequestID, Resource: r.Resource, Template: r.Template, Units: r.held, Instances: r.instances,
			})
		}
		return out, ok
	})
}

// Observe implements the verb, which models do not offer.
func (m *Model) Observe(context.Context) (providers.ObserveOut, providers.Outcome) {
	return providers.ObserveOut{}, refused(providers.ReasonInvalid, "not offered")
}

// Held is what is given under a request now.
func (m *Model) Held(id string) int64 {
	if r := m.requests[id]; r != nil {
		return r.held
	}
	return 0
}

// Given is all that is given now, in units of offers and in machines.
func (m *Model) Given() (units int64) {
	for _, r := range m.given {
		units += r.held
	}
	return units
}
