package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

const (
	// LongestScript is the longest time limit that a provider script may have.
	LongestScript = 10 * time.Minute
	// mostEvents is how long a history may grow before the story is continued
	// in a new one.
	mostEvents = 2000
)

// binding is Env over a Temporal workflow. One coroutine, the story's, owns the
// signal channels, so that none is lost when the workflow continues as new.
type binding struct {
	ctx workflow.Context
	// provider is for whom the story acts.
	provider string
	inbox    []Message
	// sources take one message each out of a signal channel, if there is one.
	sources []func() (Message, bool)
	shown   Summary
}

// uncancelled answers a context that a request to cancel the workflow does not
// touch: what is lent must go back, whoever loses interest.
func uncancelled(ctx workflow.Context) workflow.Context {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return ctx
}

// source adds a signal channel to those that a story listens to.
func source[T any](b *binding, signal string, message func(T) Message) {
	channel := workflow.GetSignalChannel(b.ctx, signal)
	b.sources = append(b.sources, func() (Message, bool) {
		var arg T
		if !channel.ReceiveAsync(&arg) {
			return Message{}, false
		}
		return message(arg), true
	})
}

// fill moves what has arrived into the inbox.
func (b *binding) fill() bool {
	for _, next := range b.sources {
		for m, ok := next(); ok; m, ok = next() {
			b.inbox = append(b.inbox, m)
		}
	}
	return len(b.inbox) > 0
}

// Now is the time of the workflow.
func (b *binding) Now() cluster.Time { return cluster.TimeOf(workflow.Now(b.ctx)) }

// Receive implements Env with a durable timer.
func (b *binding) Receive(until cluster.Time) (Message, bool) {
	if !b.fill() && !b.await(until) {
		return Message{}, false
	}
	m := b.inbox[0]
	b.inbox = b.inbox[1:]
	return m, true
}

// await waits until there is a message, or until the time has come.
func (b *binding) await(until cluster.Time) bool {
	if until == 0 {
		return workflow.Await(b.ctx, b.fill) == nil
	}
	left := until.Sub(b.Now())
	if left <= 0 {
		return false
	}
	ctx, cancel := workflow.WithCancel(b.ctx)
	ok, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: left.Std(), TimerOptions: workflow.TimerOptions{Summary: "waits for " + b.shown.Waits},
	}, b.fill)
	cancel() // the timer, if a message came first; deferred it would also run when a worker forgets the workflow
	return ok && err == nil
}

// Full implements Env.
func (b *binding) Full() bool {
	info := workflow.GetInfo(b.ctx)
	long := info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > mostEvents
	return long && !b.fill() && workflow.AllHandlersFinished(b.ctx)
}

// Show implements Env: current details for the reader of one workflow, search
// attributes for who looks for it.
func (b *binding) Show(words func() Summary) {
	s := words()
	workflow.SetCurrentDetails(b.ctx, strings.Join(s.Details, "\n"))
	if s.State != b.shown.State || s.Units != b.shown.Units {
		err := workflow.UpsertTypedSearchAttributes(b.ctx, AttributeState.ValueSet(s.State), AttributeUnits.ValueSet(s.Units))
		if err != nil {
			workflow.GetLogger(b.ctx).Warn("search attributes not kept", "error", err)
		}
	}
	b.shown = s
}

// controllerOptions: what asks the controller is repeated until it is answered.
// The controller's "no" is an answer, so every error is a fault that passes, or
// that an operator mends.
func controllerOptions(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: QueueController, Summary: summary, StartToCloseTimeout: 20 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
	}
}

// change are the options of a change of what is the provider's: it is made by
// whoever holds the provider's lease.
func (b *binding) change(summary string) workflow.ActivityOptions {
	options := controllerOptions(summary)
	options.TaskQueue = QueueUpdates(b.provider)
	return options
}

// providerOptions: a script is run once. A run of which no answer came has the
// outcome unknown, and what to do then is the story's business.
func providerOptions(provider, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: QueueProvider(provider), Summary: summary,
		StartToCloseTimeout: LongestScript + time.Minute, HeartbeatTimeout: 6 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}
}

// mustRun runs an activity that is repeated until it succeeds. It can only
// fail where the workflow itself is cancelled or the code is wrong; then the
// workflow stops where it is, visibly, and loses nothing.
func mustRun[O any](ctx workflow.Context, options workflow.ActivityOptions, name string, args ...any) O {
	var out O
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, args...).Get(ctx, &out)
	if err != nil {
		panic(fmt.Sprintf("activity %s must not fail: %v", name, err))
	}
	return out
}

// script runs an activity that calls a provider script, and turns a fault of
// the call into the outcome unknown.
func script[O any](ctx workflow.Context, provider, name, summary string, in any, unknown func(providers.Outcome) O) O {
	var out O
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, providerOptions(provider, summary)), name, in).Get(ctx, &out)
	if err != nil {
		return unknown(providers.Outcome{Status: providers.StatusUnknown, Message: "no answer came: " + err.Error()})
	}
	return out
}

func unknownGrant(o providers.Outcome) activities.Grant { return activities.Grant{Outcome: o} }

// giveBack is a step of both stories.
func (b *binding) giveBack(in activities.GiveBack) activities.Grant {
	return script(b.ctx, in.Provider, activities.ProviderReturn, "give "+in.What()+" back", in, unknownGrant)
}

// tell signals another workflow; one that is closed needs no telling.
func (b *binding) tell(id, signal string, arg any) {
	err := workflow.SignalExternalWorkflow(b.ctx, id, "", signal, arg).Get(b.ctx, nil)
	if err != nil {
		workflow.GetLogger(b.ctx).Debug("not told", "workflow", id, "signal", signal, "error", err)
	}
}

// answer is what a story answers to an operator's wish.
type answer interface {
	// refusal says why the wish is not carried out; empty where it is.
	refusal() string
}

// accept takes operators' wishes under the name of an update: what may refuse at a
// glance is refused before it enters the history, the rest is the story's to answer.
func accept[W any, A answer](b *binding, name, description, refused string, may func(cluster.Time, W) error, message func(W, func(A)) Message) error {
	handler := func(ctx workflow.Context, wish W) (A, error) {
		var answer *A
		b.inbox = append(b.inbox, message(wish, func(a A) { answer = &a }))
		if err := workflow.Await(ctx, func() bool { return answer != nil }); err != nil {
			var none A
			return none, err
		}
		if text := (*answer).refusal(); text != "" {
			return *answer, temporal.NewNonRetryableApplicationError(text, refused, nil)
		}
		return *answer, nil
	}
	validator := func(ctx workflow.Context, wish W) error {
		if err := may(cluster.TimeOf(workflow.Now(ctx)), wish); err != nil {
			return temporal.NewNonRetryableApplicationError(err.Error(), refused, nil)
		}
		return nil
	}
	err := workflow.SetUpdateHandlerWithOptions(b.ctx, name, handler, workflow.UpdateHandlerOptions{Validator: validator, Description: description})
	if err != nil {
		return fmt.Errorf("accept update %s: %w", name, err)
	}
	return nil
}

// refuseRest answers what came after the story's end.
func (b *binding) refuseRest(tooLate func(Message)) {
	for b.fill() {
		tooLate(b.inbox[0])
		b.inbox = b.inbox[1:]
	}
	_ = workflow.Await(b.ctx, func() bool { return workflow.AllHandlersFinished(b.ctx) })
}

// deal is DealEnv over a Temporal workflow.
type deal struct{ binding }

func (b *deal) Request(ask activities.Ask) activities.Grant {
	return script(b.ctx, ask.Provider, activities.ProviderRequest, "ask for "+ask.What(), ask, unknownGrant)
}

func (b *deal) Status(ask activities.Ask) activities.Grant {
	return script(b.ctx, ask.Provider, activities.ProviderStatus, "ask how the request stands", ask, unknownGrant)
}

func (b *deal) Holding(ask activities.Ask) activities.Grant {
	return script(b.ctx, ask.Provider, activities.ProviderHolding, "look at the provider's list", ask, unknownGrant)
}

func (b *deal) Return(in activities.GiveBack) activities.Grant { return b.giveBack(in) }

// loanBinding is LoanEnv over a Temporal workflow.
type loanBinding struct{ deal }

// LoanWorkflow runs a loan's story.
func LoanWorkflow(ctx workflow.Context, l Loan) error {
	ctx = uncancelled(ctx)
	b := &loanBinding{deal{binding{ctx: ctx, provider: l.Request.Provider}}}
	source(&b.binding, SignalRecalled, func(r Recalled) Message { return Message{Recalled: &r} })
	source(&b.binding, SignalCheck, func(struct{}) Message { return Message{Check: true} })
	if err := workflow.SetQueryHandler(ctx, QueryLoan, func() (Loan, error) { return l, nil }); err != nil {
		return fmt.Errorf("answer query %s: %w", QueryLoan, err)
	}
	if err := b.acceptReturns(&l); err != nil {
		return err
	}
	if !l.Live(b) {
		return workflow.NewContinueAsNewError(ctx, LoanName, l)
	}
	b.refuseRest(l.tooLate)
	return nil
}

// ReturnRefused is the type of the error that answers a refused return.
const ReturnRefused = "ReturnRefused"

// acceptReturns takes operators' wishes to give units back.
func (b *loanBinding) acceptReturns(l *Loan) error {
	return accept(&b.binding, UpdateReturn, "Give units of the loan back now; all or none.", ReturnRefused, l.MayReturn,
		func(wish ReturnUnits, answer func(ReturnAnswer)) Message {
			return Message{Return: &ReturnWish{ReturnUnits: wish, Answer: answer}}
		})
}

// tooLate answers a wish that no story is there for any more.
func (l *Loan) tooLate(m Message) {
	if m.Return != nil {
		m.Return.Answer(ReturnAnswer{Refused: fmt.Sprintf("loan %s is %s: there is nothing to return", l.Request.ID, l.state())})
	}
}

func (b *loanBinding) ledger(name, summary string, in any) api.Written {
	return mustRun[api.Written](b.ctx, b.change(summary), name, in)
}

func (b *loanBinding) Intend(in api.IntendLoan) api.Written {
	return b.ledger(activities.LedgerIntend, fmt.Sprintf("intend %d %s", in.Request.Units, in.Resource), in)
}

func (b *loanBinding) Commit(in api.CommitLoan) api.Written {
	return b.ledger(activities.LedgerCommit, fmt.Sprintf("take %d %s into the total", in.Granted, in.Resource), in)
}

func (b *loanBinding) Refuse(in api.RefuseLoan) api.Written {
	return b.ledger(activities.LedgerRefuse, fmt.Sprintf("close: %.200s", in.Why), in)
}

func (b *loanBinding) Fence(in api.FenceLoan) api.Written {
	return b.ledger(activities.LedgerFence, "take unused units out of the total", in)
}

func (b *loanBinding) Recall(in api.RecallLoan) api.Written {
	return b.ledger(activities.LedgerRecall, fmt.Sprintf("%d %s recalled", in.Units, in.Resource), in)
}

func (b *loanBinding) Confirm(in api.ConfirmLoan) api.Written {
	return b.ledger(activities.LedgerConfirm, fmt.Sprintf("%d %s are back", in.Units, in.Resource), in)
}

func (b *loanBinding) TellProvider(provider string, m Message) {
	if m.Changed != nil {
		b.tell(ProviderID(provider), SignalCatalogChanged, *m.Changed)
		return
	}
	b.tell(ProviderID(provider), SignalDemand, struct{}{})
}

// providerBinding is ProviderEnv over a Temporal workflow.
type providerBinding struct{ binding }

// ProviderWorkflow runs a provider's story. It never ends.
func ProviderWorkflow(ctx workflow.Context, p Provider) error {
	ctx = uncancelled(ctx)
	b := &providerBinding{binding{ctx: ctx, provider: p.Name}}
	source(&b.binding, SignalDemand, func(struct{}) Message { return Message{Demand: true} })
	source(&b.binding, SignalBelieve, func(struct{}) Message { return Message{Believe: true} })
	source(&b.binding, SignalCatalogChanged, func(c Changed) Message { return Message{Changed: &c} })
	if err := workflow.SetQueryHandler(ctx, QueryState, func() (Provider, error) { return p, nil }); err != nil {
		return fmt.Errorf("answer query %s: %w", QueryState, err)
	}
	p.Live(b)
	return workflow.NewContinueAsNewError(ctx, ProviderName, p)
}

func (b *providerBinding) Survey(in activities.SurveyIn) activities.Survey {
	return script(b.ctx, b.provider, activities.ProviderSurvey, "what it offers and lends", in, func(o providers.Outcome) activities.Survey {
		return activities.Survey{Describe: o, List: o}
	})
}

func (b *providerBinding) Return(in activities.GiveBack) activities.Grant { return b.giveBack(in) }

func (b *providerBinding) Publish(c api.Catalog) {
	mustRun[struct{}](b.ctx, b.change("publish the catalog"), activities.ControllerPublish, b.provider, c)
}

func (b *providerBinding) View(ask []string) api.ProviderView {
	return mustRun[api.ProviderView](b.ctx, controllerOptions("read demand and loans"), activities.ControllerView, activities.View{Provider: b.provider, Ask: ask})
}

func (b *providerBinding) ReportStray(s api.Stray) {
	mustRun[struct{}](b.ctx, b.change("report a stray"), activities.ControllerStray, s)
}

func (b *providerBinding) StartHosts(rs []cluster.HostRequest) {
	options := controllerOptions(fmt.Sprintf("start %d hosts of %s", len(rs), rs[0].Template))
	options.StartToCloseTimeout = startHostsWithin
	mustRun[struct{}](b.ctx, options, activities.StarterHosts, rs)
}

// startHostsWithin is how long the start of one step's hosts may take.
const startHostsWithin = 2 * time.Minute

func (b *providerBinding) TellHost(host string, m Message) {
	if m.Reclaimed != nil {
		b.tell(host, SignalReclaimed, *m.Reclaimed)
		return
	}
	b.tell(host, SignalCheck, struct{}{})
}

func (b *providerBinding) StartLoan(r cluster.LoanRequest) {
	mustRun[struct{}](b.ctx, controllerOptions("start "+r.ID), activities.StarterLoan, r)
}

func (b *providerBinding) TellLoan(loan string, m Message) {
	if m.Recalled != nil {
		b.tell(loan, SignalRecalled, *m.Recalled)
		return
	}
	b.tell(loan, SignalCheck, struct{}{})
}

var (
	_ LoanEnv     = (*loanBinding)(nil)
	_ ProviderEnv = (*providerBinding)(nil)
)
