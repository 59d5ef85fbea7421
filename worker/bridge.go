package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
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
// nothing on disk: after a restart it makes sure of every story and wakes it.
type bridge struct {
	controller *api.Client
	starter    *starter.Client
	providers  []Provider
	leases     *tender
	log        *slog.Logger

	// revision is that of the last change that was told, and missed tells that
	// there may be some before it that were not.
	revision int64
	missed   bool
	// got is told of new leases: their providers' stories are made sure of.
	got chan struct{}
}

func newBridge(options Options, s *starter.Client) *bridge {
	return &bridge{
		controller: options.Controller, starter: s, providers: options.Providers,
		log: options.Log, got: make(chan struct{}, 1),
	}
}

// gotLease has the stories of a provider made sure of, for which another may have acted.
func (b *bridge) gotLease() {
	select {
	case b.got <- struct{}{}:
	default:
	}
}

// run watches until ctx ends.
func (b *bridge) run(ctx context.Context) {
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

// watch makes sure of every story and then tells stories of what changes, until
// it is time to make sure again or a call fails. After a failure it goes on where
// it was.
func (b *bridge) watch(ctx context.Context) error {
	if b.revision == 0 {
		status, err := b.controller.Status(ctx)
		if err != nil {
			return err
		}
		b.revision = status.Revision
		b.missed = true
	}
	if err := b.ensure(ctx); err != nil {
		return err
	}
	for again := time.Now().Add(ensureEvery); time.Now().Before(again); {
		changes, got, err := b.await(ctx)
		if got {
			b.missed = true
			return nil
		}
		if err != nil {
			return err
		}
		if err := b.tell(ctx, changes.Changes); err != nil {
			return err
		}
		b.revision = changes.Revision
	}
	return nil
}

// await waits for changes, or for a lease that was got meanwhile.
func (b *bridge) await(ctx context.Context) (changes api.Changes, got bool, err error) {
	wait, stop := context.WithCancel(ctx)
	defer stop()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		changes, err = b.controller.Changes(wait, b.revision, watchFor)
	}()
	select {
	case <-b.got:
		stop()
		<-answered
		return changes, true, nil
	case <-answered:
		return changes, false, err
	}
}

// ensure makes sure that the story of every provider acted for, and of every open loan and
// host, runs.
func (b *bridge) ensure(ctx context.Context) error {
	for _, p := range b.providers {
		if !b.owns(p.Name) {
			continue
		}
		story := workflows.Provider{Name: p.Name, SurveyEvery: p.SurveyEvery, Hosts: workflows.ProviderHosts{OrphanGrace: p.OrphanGrace}}
		if err := b.starter.StartProvider(ctx, story); err != nil {
			return err
		}
	}
	if err := errors.Join(b.ensureLoans(ctx), b.ensureHosts(ctx)); err != nil {
		return err
	}
	b.missed = false
	return nil
}

func (b *bridge) ensureLoans(ctx context.Context) error {
	loans, err := b.controller.Loans(ctx, false)
	if err != nil {
		return err
	}
	running, err := b.starter.Running(ctx, workflows.LoanName)
	if err != nil {
		return err
	}
	for _, l := range loans {
		if b.owns(l.Provider) && !running[l.ID] {
			if err := b.starter.ResumeLoan(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensureHosts also tells the stories how their hosts are, where they may not have
// been told.
func (b *bridge) ensureHosts(ctx context.Context) error {
	hosts, err := b.controller.ElasticHosts(ctx, false)
	if err != nil {
		return err
	}
	running, err := b.starter.Running(ctx, workflows.HostName)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		switch {
		case !b.owns(h.Provider):
		case !running[h.ID]:
			err = b.starter.ResumeHost(ctx, h)
		case b.missed && h.State.Here():
			err = errors.Join(
				b.starter.TellHost(ctx, h.ID, workflows.Message{Joined: &workflows.HostJoined{At: h.Joined}}),
				b.starter.TellHost(ctx, h.ID, workflows.Message{Health: &workflows.HostHealth{Health: h.Health}}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// owns tells whether the stories of a provider are this provisioner's to tell.
func (b *bridge) owns(provider string) bool { return b.leases.Holds(provider) }

// tell tells hosts what the cluster saw of them, and wakes the providers of whom
// other tokens or hosts are wanted than before, or who have more to give, once each.
func (b *bridge) tell(ctx context.Context, changes []api.Change) error {
	news := map[string]bool{} // by provider: whether what it can give changed
	for _, c := range changes {
		switch {
		case c.Kind == api.KindLease:
			b.leases.Kick()
		case c.Kind == api.KindDemand:
			if _, more := news[c.Subject]; !more {
				news[c.Subject] = false
			}
		case strings.HasPrefix(c.Kind, api.KindHostWrite):
			if err := b.tellHost(ctx, c, news); err != nil {
				return err
			}
		}
	}
	told := false
	for _, p := range b.providers {
		changed, some := news[p.Name]
		if !some || !b.owns(p.Name) {
			continue
		}
		tell := b.starter.TellDemand
		if changed {
			tell = b.starter.TellChanged
		}
		if err := tell(ctx, p.Name); err != nil {
			return fmt.Errorf("tell %s of what changed: %w", p.Name, err)
		}
		told = true
	}
	if told {
		select {
		case <-ctx.Done():
		case <-time.After(gather):
		}
	}
	return nil
}

// tellHost tells a host's story of a change that it has not made itself, and
// notes whether its provider has more or less to give.
func (b *bridge) tellHost(ctx context.Context, c api.Change, news map[string]bool) error {
	var row cluster.ElasticHost
	if err := json.Unmarshal(c.After, &row); err != nil {
		return fmt.Errorf("read change %d of %s: %w", c.Revision, c.Subject, err)
	}
	if !b.owns(row.Provider) {
		return nil
	}
	m, seen := seenOfHost(c, row)
	if !seen {
		if !row.State.Open() {
			news[row.Provider] = true
		}
		return nil
	}
	if err := b.starter.TellHost(ctx, row.ID, m); err != nil {
		return fmt.Errorf("tell %s what was seen of it: %w", row.ID, err)
	}
	return nil
}

// seenOfHost answers what a host's story is told of a change, if it is one of what
// the cluster saw.
func seenOfHost(c api.Change, row cluster.ElasticHost) (workflows.Message, bool) {
	switch c.Kind {
	case api.KindJoined:
		return workflows.Message{Joined: &workflows.HostJoined{At: row.Joined}}, true
	case api.KindEmptied:
		return workflows.Message{Emptied: true}, true
	case api.KindSuspect, api.KindLost, api.KindWell:
		return workflows.Message{Health: &workflows.HostHealth{Health: row.Health}}, true
	}
	return workflows.Message{}, false
}
