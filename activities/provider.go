package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// Script is a provider as its script answers.
type Script interface {
	Describe(context.Context) (providers.Description, providers.Outcome)
	Request(context.Context, providers.RequestIn) (providers.RequestOut, providers.Outcome)
	Status(context.Context, providers.StatusIn) (providers.StatusOut, providers.Outcome)
	Return(context.Context, providers.ReturnIn) (providers.ReturnOut, providers.Outcome)
	List(context.Context) (providers.ListOut, providers.Outcome)
	Observe(context.Context) (providers.ObserveOut, providers.Outcome)
}

// Hosts is the part of the controller that a provider of hosts needs.
type Hosts interface {
	// Join makes what a host needs to join, its one-time token in it.
	Join(ctx context.Context, host string) (providers.Join, error)
	// Machines answers what the inventory of a provider is compared with.
	Machines(ctx context.Context, provider string) ([]api.HostMachine, error)
}

// Provider holds the activities of one provider.
type Provider struct {
	Script Script
	Hosts  Hosts
}

// heartbeatEvery is how often a running script is reported alive, so that a
// worker's death is noticed long before the script's own time limit.
const heartbeatEvery = 2 * time.Second

// beat reports the activity alive until the answered function is called.
func beat(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// Request asks the provider for units.
func (p *Provider) Request(ctx context.Context, ask Ask) (Grant, error) {
	defer beat(ctx)()
	in := providers.RequestIn{RequestID: ask.Request, Resource: ask.Resource, Template: ask.Template, Units: ask.Units * ask.Weight}
	if ask.Template != "" {
		join, err := p.joinFor(ctx, ask.Request)
		if err != nil {
			return Grant{Outcome: providers.Outcome{Status: providers.StatusRefused, Reason: providers.ReasonInvalid, Message: "not asked: " + err.Error()}}, nil
		}
		in.Join = &join
	}
	out, outcome := p.Script.Request(ctx, in)
	return grant(outcome, out.Granted, ask.Weight, out.Instances), nil
}

// joinFor makes the token of a host. The provider has not been asked yet, so that
// it may be tried again: a controller that starts anew is waited for.
func (p *Provider) joinFor(ctx context.Context, host string) (join providers.Join, err error) {
	for end := time.Now().Add(tokenWithin); ; {
		join, err = p.Hosts.Join(ctx, host)
		if err == nil || api.Permanent(err) || time.Now().After(end) {
			return join, err
		}
		select {
		case <-ctx.Done():
			return join, ctx.Err()
		case <-time.After(tokenRetry):
		}
	}
}

const (
	tokenWithin = time.Minute
	tokenRetry  = 500 * time.Millisecond
)

// Status asks how a pending request stands. A provider that does not know the
// request any more leaves its outcome unknown.
func (p *Provider) Status(ctx context.Context, ask Ask) (Grant, error) {
	defer beat(ctx)()
	out, outcome := p.Script.Status(ctx, providers.StatusIn{RequestIDs: []string{ask.Request}})
	if outcome.Status != providers.StatusOK || len(out.Requests) != 1 {
		outcome.Status = providers.StatusUnknown
		return Grant{Outcome: outcome}, nil
	}
	r := out.Requests[0]
	outcome = providers.Outcome{Reason: r.Reason, Message: r.Message, RetryAfter: r.RetryAfter}
	switch r.Status {
	case providers.StateGranted:
		outcome.Status = providers.StatusOK
	case providers.StatePending:
		outcome.Status = providers.StatusPending
	case providers.StateRefused:
		outcome.Status = providers.StatusRefused
	default:
		outcome.Status = providers.StatusUnknown
	}
	return grant(outcome, r.Granted, ask.Weight, r.Instances), nil
}

// Holding answers what the provider lists under a request; nothing listed is
// an ok answer of 0 units.
func (p *Provider) Holding(ctx context.Context, ask Ask) (Grant, error) {
	defer beat(ctx)()
	out, outcome := p.Script.List(ctx)
	var raw int64
	var instances []providers.Instance
	for _, g := range out.Grants {
		if g.RequestID == ask.Request {
			raw += g.Units
			instances = append(instances, g.Instances...)
		}
	}
	return grant(outcome, raw, ask.Weight, instances), nil
}

// Return gives units back; the target is absolute, so that a repeated return
// changes nothing. The answer is what is still lent.
func (p *Provider) Return(ctx context.Context, back GiveBack) (Grant, error) {
	defer beat(ctx)()
	out, outcome := p.Script.Return(ctx, providers.ReturnIn{
		RequestID: back.Request, Units: back.Units * back.Weight, Remaining: back.Remaining * back.Weight, Instances: back.Instances,
	})
	return grant(outcome, out.Remaining, back.Weight, nil), nil
}

func grant(outcome providers.Outcome, raw, weight int64, instances []providers.Instance) Grant {
	weight = max(weight, 1)
	return Grant{Outcome: outcome, Units: raw / weight, Rest: raw%weight > 0, Instances: instances}
}

// Survey asks what the provider offers, wants back and believes we have.
func (p *Provider) Survey(ctx context.Context, in SurveyIn) (Survey, error) {
	defer beat(ctx)()
	weight := func(resource string) int64 { return max(in.Weights[resource], 1) }
	description, described := p.Script.Describe(ctx)
	s := Survey{Describe: described}
	if described.Status != providers.StatusOK {
		warn(ctx, in.Provider, "describe", described)
		s.List = described
		return s, nil
	}
	for _, o := range description.Offers {
		s.Offers = append(s.Offers, offer(in.Provider, o, description, weight(o.Resource)))
	}
	s.Templates, s.Quotas = templates(in.Provider, description)
	books, err := p.books(ctx, in.Provider, description)
	if err != nil {
		return s, err
	}
	list, listed := p.Script.List(ctx)
	s.List = listed
	if listed.Status != providers.StatusOK {
		warn(ctx, in.Provider, "list", listed)
	}
	if listed.Status == providers.StatusOK {
		s.Hosts = Compare(books, list.Grants)
	}
	resources := map[string]string{}
	for _, g := range list.Grants {
		if g.Template != "" {
			continue
		}
		resources[g.RequestID] = g.Resource
		s.Holdings = append(s.Holdings, Holding{Request: g.RequestID, Resource: g.Resource, Units: ceil(g.Units, weight(g.Resource))})
	}
	s.Reclaims = reclaims(books, description.Recalls)
	for _, r := range description.Recalls {
		resource, known := resources[r.RequestID]
		if !known {
			continue // of what, the list will say next time
		}
		s.Recalls = append(s.Recalls, Holding{Request: r.RequestID, Resource: resource, Units: ceil(r.Units, weight(resource))})
	}
	if description.Observe {
		s.Observations = p.observe(ctx, in.Provider, weight)
	}
	return s, nil
}

// warn tells the log that a script did not answer as it should. What a loan's
// calls come to is in its story.
func warn(ctx context.Context, provider, verb string, o providers.Outcome) {
	activity.GetLogger(ctx).Warn("provider script", "provider", provider, "verb", verb, "status", o.Status, "message", o.Message)
}

// observe reads the licence server's own count; a failure leaves the last one
// to age.
func (p *Provider) observe(ctx context.Context, provider string, weight func(string) int64) []cluster.Observation {
	out, outcome := p.Script.Observe(ctx)
	if outcome.Status != providers.StatusOK {
		return nil
	}
	var observations []cluster.Observation
	for _, o := range out.Observations {
		observations = append(observations, cluster.Observation{
			Provider: provider, Resource: o.Resource, InUse: ceil(o.InUse, weight(o.Resource)), At: cluster.TimeOf(o.At),
		})
	}
	return observations
}

func offer(provider string, o providers.Offer, d providers.Description, weight int64) cluster.Offer {
	if o.MaxRequest > 0 && o.MaxRequest < weight {
		o.Headroom = 0 // no request may ask for one of our units
	}
	return cluster.Offer{
		Provider: provider, Resource: o.Resource, Headroom: o.Headroom / weight, Price: cluster.Price(o.Price * weight),
		MinimumHold: cluster.Duration(o.MinimumHold) * cluster.Second, BillingStep: cluster.Duration(o.BillingStep) * cluster.Second,
		PartialReturn: d.PartialReturn, PollInterval: cluster.Duration(d.PollInterval) * cluster.Second,
		MaxRequest: o.MaxRequest / weight, MaxOpen: max(o.MaxOpen, 1),
	}
}

func ceil(raw, weight int64) int64 { return (raw + weight - 1) / weight }
