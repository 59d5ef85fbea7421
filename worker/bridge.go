package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/starter"
)

const (
	// watchFor is how long one call waits for changes of the controller.
	watchFor = 20 * time.Second
	// gather is how long changes are gathered before workflows are told: one
	// signal then stands for all of them.
	gather = 100 * time.Millisecond
	// ensureEvery is how often all stories are made sure of.
	ensureEvery = time.Minute
	// retryAfter is the pause after a failed call.
	retryAfter = time.Second
)

// bridge carries what happens in the controller to the workflows. It keeps
// nothing: after a restart it makes sure of every story and wakes it.
type bridge struct {
	controller *api.Client
	starter    *starter.Client
	providers  []Provider
	log        *slog.Logger

	cancel context.CancelFunc
	done   chan struct{}
}

func newBridge(options Options, s *starter.Client) *bridge {
	return &bridge{
		controller: options.Controller, starter: s, providers: options.Providers,
		log: options.Log, done: make(chan struct{}),
	}
}

func (b *bridge) start(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go b.run(ctx)
	return nil
}

func (b *bridge) stop(context.Context) error {
	b.cancel()
	<-b.done
	return nil
}

func (b *bridge) run(ctx context.Context) {
	defer close(b.done)
	for ctx.Err() == nil {
		err := b.watch(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		b.log.Warn("demand is not watched; trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// watch makes sure of every story and then tells providers of changed demand,
// until it is time to make sure again or a call fails.
func (b *bridge) watch(ctx context.Context) error {
	status, err := b.controller.Status(ctx)
	if err != nil {
		return err
	}
	if err := b.ensure(ctx); err != nil {
		return err
	}
	revision := status.Revision
	for again := time.Now().Add(ensureEvery); time.Now().Before(again); {
		changes, err := b.controller.Changes(ctx, revision, watchFor)
		if err != nil {
			return err
		}
		revision = changes.Revision
		if err := b.tell(ctx, changes.Changes); err != nil {
			return err
		}
	}
	return nil
}

// ensure makes sure that the story of every provider and of every open loan runs.
func (b *bridge) ensure(ctx context.Context) error {
	loans, err := b.controller.Loans(ctx, false)
	if err != nil {
		return err
	}
	for _, p := range b.providers {
		if err := b.starter.StartProvider(ctx, p.Name, p.SurveyEvery); err != nil {
			return err
		}
	}
	for _, l := range loans {
		if b.owns(l.Provider) {
			if err := b.starter.ResumeLoan(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bridge) owns(provider string) bool {
	return slices.ContainsFunc(b.providers, func(p Provider) bool { return p.Name == provider })
}

// tell wakes the providers of whom other tokens are wanted than before, once each.
func (b *bridge) tell(ctx context.Context, changes []api.Change) error {
	var told []string
	for _, c := range changes {
		if c.Kind != api.KindDemand || !b.owns(c.Subject) || !ofTokens(c) || slices.Contains(told, c.Subject) {
			continue
		}
		told = append(told, c.Subject)
		if err := b.starter.TellDemand(ctx, c.Subject); err != nil {
			return fmt.Errorf("tell %s of its demand: %w", c.Subject, err)
		}
	}
	if len(told) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(gather):
	}
	return nil
}

// ofTokens tells whether a change of demand is one of tokens; no story takes
// demand for hosts.
func ofTokens(c api.Change) bool {
	var d cluster.Demand
	return json.Unmarshal(c.After, &d) != nil || d.Resource != ""
}
