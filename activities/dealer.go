package activities

import (
	"context"
	"time"

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

// Dealer puts what stories ask to a provider's script, in the cluster's units.
type Dealer struct {
	Script Script
	Hosts  Hosts
}

// Request asks the provider for units.
func (d *Dealer) Request(ctx context.Context, ask Ask) (Grant, error) {
	in := providers.RequestIn{RequestID: ask.Request, Resource: ask.Resource, Template: ask.Template, Units: ask.Units * ask.Weight}
	if ask.Template != "" {
		join, err := d.joinFor(ctx, ask.Request)
		if api.LeaseLost(err) || ctx.Err() != nil {
			return Grant{}, err // who acts next looks whether anything was asked
		}
		if err != nil {
			return Grant{Outcome: providers.Outcome{Status: providers.StatusRefused, Reason: providers.ReasonInvalid, Message: "not asked: " + err.Error()}}, nil
		}
		in.Join = &join
	}
	out, outcome := d.Script.Request(ctx, in)
	return grant(outcome, out.Granted, ask.Weight, out.Instances), nil
}

// joinFor makes the token of a host. The provider has not been asked yet, so that
// it may be tried again: a controller that starts anew is waited for.
func (d *Dealer) joinFor(ctx context.Context, host string) (join providers.Join, err error) {
	for end := time.Now().Add(tokenWithin); ; {
		join, err = d.Hosts.Join(ctx, host)
		if err == nil || api.Permanent(err) || api.LeaseLost(err) || time.Now().After(end) {
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
func (d *Dealer) Status(ctx context.Context, ask Ask) (Grant, error) {
	out, outcome := d.Script.Status(ctx, providers.StatusIn{RequestIDs: []string{ask.Request}})
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
func (d *Dealer) Holding(ctx context.Context, ask Ask) (Grant, error) {
	out, outcome := d.Script.List(ctx)
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
func (d *Dealer) Return(ctx context.Context, back GiveBack) (Grant, error) {
	out, outcome := d.Script.Return(ctx, providers.ReturnIn{
		RequestID: back.Request, Units: back.Units * back.Weight, Remaining: back.Remaining * back.Weight, Instances: back.Instances,
	})
	return grant(outcome, out.Remaining, back.Weight, nil), nil
}

func grant(outcome providers.Outcome, raw, weight int64, instances []providers.Instance) Grant {
	weight = max(weight, 1)
	return Grant{Outcome: outcome, Units: raw / weight, Rest: raw%weight > 0, Instances: instances}
}

// Survey asks what the provider offers, wants back and believes we have.
func (d *Dealer) Survey(ctx context.Context, in SurveyIn) (Survey, error) {
	weight := func(resource string) int64 { return max(in.Weights[resource], 1) }
	description, described := d.Script.Describe(ctx)
	s := Survey{Describe: described}
	if described.Status != providers.StatusOK {
		s.List = described
		return s, nil
	}
	for _, o := range description.Offers {
		s.Offers = append(s.Offers, offer(in.Provider, o, description, weight(o.Resource)))
	}
	s.Templates, s.Quotas = templates(in.Provider, description)
	books, err := d.books(ctx, in.Provider, description)
	if err != nil {
		return s, err
	}
	list, listed := d.Script.List(ctx)
	s.List = listed
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
		s.Observations = d.observe(ctx, in.Provider, weight)
	}
	return s, nil
}

// observe reads the licence server's own count; a failure leaves the last one
// to age.
func (d *Dealer) observe(ctx context.Context, provider string, weight func(string) int64) []cluster.Observation {
	out, outcome := d.Script.Observe(ctx)
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
