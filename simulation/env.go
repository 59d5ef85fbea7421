package simulation

import (
	"context"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/workflows"
)

// anyTime is the context of calls that end at once.
var anyTime = context.Background()

// script lets a call of a provider take the time that its model says.
func script[I, O any](st *story, env *providerEnv, verb providers.Verb, id string, in I, do func(context.Context, I) (O, error)) (out O) {
	st.step(env.model.Latency(verb, id), func() { out, _ = do(anyTime, in) })
	return out
}

// controller lets a write to the controller take its time.
func controller[I, O any](st *story, in I, do func(I) O) (out O) {
	st.step(st.s.farm.Steps.Controller, func() { out = do(in) })
	return out
}

// deal is workflows.DealEnv on the virtual clock.
type deal struct {
	*story
	env *providerEnv
}

// Request implements workflows.DealEnv.
func (d deal) Request(ask activities.Ask) activities.Grant {
	g := script(d.story, d.env, providers.VerbRequest, ask.Request, ask, d.env.script.Request)
	d.env.counted(ask, g)
	return g
}

// Status implements workflows.DealEnv.
func (d deal) Status(ask activities.Ask) activities.Grant {
	g := script(d.story, d.env, providers.VerbStatus, ask.Request, ask, d.env.script.Status)
	d.env.settled(ask, g)
	return g
}

// Holding implements workflows.DealEnv.
func (d deal) Holding(ask activities.Ask) activities.Grant {
	return script(d.story, d.env, providers.VerbList, ask.Request, ask, d.env.script.Holding)
}

// Return implements workflows.DealEnv.
func (d deal) Return(in activities.GiveBack) activities.Grant {
	return script(d.story, d.env, providers.VerbReturn, in.Request, in, d.env.script.Return)
}

// loanEnv is workflows.LoanEnv on the virtual clock.
type loanEnv struct{ deal }

func (e loanEnv) Intend(in api.IntendLoan) api.Written {
	return controller(e.story, in, e.s.intendLoan)
}

func (e loanEnv) Commit(in api.CommitLoan) api.Written {
	return controller(e.story, in, e.s.commitLoan)
}

func (e loanEnv) Refuse(in api.RefuseLoan) api.Written {
	return controller(e.story, in, e.s.refuseLoan)
}

func (e loanEnv) Fence(in api.FenceLoan) api.Written { return controller(e.story, in, e.s.fenceLoan) }

func (e loanEnv) Recall(in api.RecallLoan) api.Written {
	return controller(e.story, in, e.s.recallLoan)
}

func (e loanEnv) Confirm(in api.ConfirmLoan) api.Written {
	return controller(e.story, in, e.s.confirmLoan)
}

// TellProvider implements workflows.LoanEnv.
func (e loanEnv) TellProvider(provider string, m workflows.Message) {
	e.s.tellStory(workflows.ProviderID(provider), m)
}

// hostEnv is workflows.HostEnv on the virtual clock.
type hostEnv struct{ deal }

// WriteHost implements workflows.HostEnv.
func (e hostEnv) WriteHost(in api.WriteHost) api.HostWritten {
	return controller(e.story, in, e.s.writeHost)
}

// providerEnv is workflows.ProviderEnv on the virtual clock.
type providerEnv struct {
	*story
	provider *workflows.Provider
	model    *model.Model
	script   *activities.Dealer
	result   *ProviderResult

	// version counts what surveys could find changed, and seen is what the last survey saw of it.
	version, seen uint64
	asleep        bool
}

// changed is told that the next survey may find something new.
func (e *providerEnv) changed() {
	e.version++
	if e.asleep {
		e.catchUp()
		e.wakeAt(e.provider.NextSurvey)
	}
}

// told is told that the story is about to be.
func (e *providerEnv) told() {
	if e.asleep {
		e.catchUp()
	}
}

// catchUp counts the surveys as made that were slept through, and ends the sleep.
func (e *providerEnv) catchUp() {
	e.asleep = false
	p := e.provider
	if missed := (e.s.now.Sub(p.NextSurvey) + p.SurveyEvery) / p.SurveyEvery; missed > 0 && e.s.now >= p.NextSurvey {
		p.LastSurvey = p.NextSurvey.Add((missed - 1) * p.SurveyEvery)
		p.NextSurvey = p.LastSurvey.Add(p.SurveyEvery)
	}
}

func (e *providerEnv) wakeAt(t cluster.Time) {
	if e.waits {
		e.wake(t)
	}
}

// maySleep tells that no survey can find anything new, or do anything about what was found, until
// something changes.
func (e *providerEnv) maySleep() bool {
	p := e.provider
	quiet := e.seen == e.version && !e.model.Restless() && len(p.Starting) == 0 && len(p.Strays) == 0 && p.Silent == 0 && p.Trouble == "" &&
		!p.Hosts.Believe && len(p.Hosts.Orphans) == 0
	if !quiet || e.s.options.Awake {
		return false
	}
	for i := range e.s.demand {
		if d := &e.s.demand[i]; d.Provider == p.Name && d.Units > 0 {
			return false
		}
	}
	return true
}

// Receive implements workflows.Env. Surveys that would find nothing are slept through.
func (e *providerEnv) Receive(until cluster.Time) (workflows.Message, bool) {
	if until <= e.s.now || len(e.inbox) > 0 || !e.maySleep() {
		return e.story.Receive(until)
	}
	e.asleep = true
	m, ok := e.story.Receive(0)
	e.asleep = false
	return m, ok
}

// Survey implements workflows.ProviderEnv.
func (e *providerEnv) Survey(in activities.SurveyIn) (found activities.Survey) {
	e.step(e.model.Latency(providers.VerbDescribe, ""), func() {
		e.seen = e.version
		found, _ = e.script.Survey(anyTime, in)
	})
	return found
}

// Return implements workflows.ProviderEnv.
func (e *providerEnv) Return(in activities.GiveBack) activities.Grant {
	return script(e.story, e, providers.VerbReturn, in.Request, in, e.script.Return)
}

// Publish implements workflows.ProviderEnv.
func (e *providerEnv) Publish(c api.Catalog) {
	controller(e.story, c, func(c api.Catalog) bool { e.s.publish(e.provider.Name, c); return true })
}

// View implements workflows.ProviderEnv.
func (e *providerEnv) View(ask []string) api.ProviderView {
	return controller(e.story, ask, func(ask []string) api.ProviderView { return e.s.view(e.provider.Name, ask) })
}

// ReportStray implements workflows.ProviderEnv.
func (e *providerEnv) ReportStray(api.Stray) {
	controller(e.story, 0, func(int) bool { return true })
}

// StartLoan implements workflows.ProviderEnv.
func (e *providerEnv) StartLoan(r cluster.LoanRequest) {
	controller(e.story, r, func(r cluster.LoanRequest) bool {
		l := &workflows.Loan{Request: r}
		e.s.begin(r.ID, func(st *story) { l.Live(loanEnv{deal{st, e}}) })
		return true
	})
}

// TellLoan implements workflows.ProviderEnv.
func (e *providerEnv) TellLoan(loan string, m workflows.Message) { e.s.tellStory(loan, m) }

// StartHosts implements workflows.ProviderEnv.
func (e *providerEnv) StartHosts(rs []cluster.HostRequest) {
	controller(e.story, rs, func(rs []cluster.HostRequest) bool {
		for _, r := range rs {
			h := &workflows.Host{Request: r}
			e.s.begin(r.ID, func(st *story) { h.Live(hostEnv{deal{st, e}}) })
		}
		return true
	})
}

// TellHost implements workflows.ProviderEnv.
func (e *providerEnv) TellHost(host string, m workflows.Message) { e.s.tellStory(host, m) }

var (
	_ workflows.LoanEnv     = loanEnv{}
	_ workflows.HostEnv     = hostEnv{}
	_ workflows.ProviderEnv = (*providerEnv)(nil)
)
