package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"xce.internal/elastic/providers"
)

// Provider holds the activities of one provider: what its dealer does, with a sign of life meanwhile.
type Provider Dealer

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
	return (*Dealer)(p).Request(ctx, ask)
}

// Status asks how a pending request stands.
func (p *Provider) Status(ctx context.Context, ask Ask) (Grant, error) {
	defer beat(ctx)()
	return (*Dealer)(p).Status(ctx, ask)
}

// Holding answers what the provider lists under a request.
func (p *Provider) Holding(ctx context.Context, ask Ask) (Grant, error) {
	defer beat(ctx)()
	return (*Dealer)(p).Holding(ctx, ask)
}

// Return gives units back.
func (p *Provider) Return(ctx context.Context, back GiveBack) (Grant, error) {
	defer beat(ctx)()
	return (*Dealer)(p).Return(ctx, back)
}

// Survey asks what the provider offers, wants back and believes we have.
func (p *Provider) Survey(ctx context.Context, in SurveyIn) (Survey, error) {
	defer beat(ctx)()
	s, err := (*Dealer)(p).Survey(ctx, in)
	switch {
	case err != nil:
	case s.Describe.Status != providers.StatusOK:
		warn(ctx, in.Provider, "describe", s.Describe)
	case s.List.Status != providers.StatusOK:
		warn(ctx, in.Provider, "list", s.List)
	}
	return s, err
}

// warn tells the log that a script did not answer as it should. What a loan's
// calls come to is in its story.
func warn(ctx context.Context, provider, verb string, o providers.Outcome) {
	activity.GetLogger(ctx).Warn("provider script", "provider", provider, "verb", verb, "status", o.Status, "message", o.Message)
}
