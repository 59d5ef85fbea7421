package simulation

import (
	"context"
	"slices"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/workflows"
)

// anyTime is the context of calls that end at once.
var anyTime = context.Background()

// script lets a call of a provider take the time that its model says.
func script[I, O any](st *story, env *providerEnv, verb providers.Verb, id string, in I, do func(context.Context, I) (O, error)) (out O) {
	st.step(env.model.Latency(verb, id), func() { out, _ = do(anyTime, in) }, nil)
	return out
}

// controller lets a write to the controller take its time.
func controller[I, O any](st *story, in I, do func(I) O) (out O) {
	st.step(st.s.farm.Steps.Controller, func() { out = do(in) }, nil)
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
	d.env.asked(g)
	return d.env.heard(ask.Request, g)
}

// Status implements workflows.DealEnv.
func (d deal) Status(ask activities.Ask) activities.Grant {
	g := script(d.story, d.env, providers.VerbStatus, ask.Request, ask, d.env.script.Status)
	return d.env.heard(ask.Request, g)
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

func (e loanEnv) write(w judge.LoanWrite) api.Written { return controller(e.story, w, e.s.writeLoan) }

// Intend implements workflows.LoanEnv, as do the next ones.
func (e loanEnv) Intend(in api.IntendLoan) api.Written { return e.write(judge.LoanWrite{Intend: &in}) }

func (e loanEnv) Commit(in api.CommitLoan) api.Written { return e.write(judge.LoanWrite{Commit: &in}) }

func (e loanEnv) Refuse(in api.RefuseLoan) api.Written { return e.write(judge.LoanWrite{Refuse: &in}) }

func (e loanEnv) Fence(in api.FenceLoan) api.Written { return e.write(judge.LoanWrite{Fence: &in}) }

func (e loanEnv) Recall(in api.RecallLoan) api.Written { return e.write(judge.LoanWrite{Recall: &in}) }

func (e loanEnv) Confirm(in api.ConfirmLoan) api.Written {
	return e.write(judge.LoanWrite{Confirm: &in})
}

// TellProvider implements workflows.LoanEnv.
func (e loanEnv) TellProvider(provider string, m workflows.Message) {
	e.s.tellStory(workflows.ProviderID(provider), m)
}

// providerEnv is workflows.ProviderEnv on the virtual clock.
type providerEnv struct {
	*story
	provider *workflows.Provider
	model    *model.Model
	script   *activities.Dealer
	result   *ProviderResult
	reasons  map[string]string // why requests were refused whose rows are still open

	// version counts what surveys could find changed, and seen is what the last survey saw of it.
	version, seen uint64
	asleep        bool
	// found and viewed are what the last steps of these kinds answered.
	found  activities.Survey
	viewed api.ProviderView
}

// changed is told that the next survey may find something new.
func (e *providerEnv) changed() {
	e.version++
	if e.asleep {
		e.awake(e.s.now)
		if e.waits {
			e.wakeAt(e.provider.NextSurvey)
		}
	}
}

// awake ends the story's sleep as of a time. The surveys that it slept through count as made; where one of them would
// be under way, the story takes it up there.
func (e *providerEnv) awake(now cluster.Time) {
	if !e.asleep {
		return
	}
	e.s.unsettled = e.s.unsettled || e.published()
	e.asleep = false
	p := e.provider
	for lasts := e.surveyLasts(); p.NextSurvey <= now; {
		missed := now.Sub(p.NextSurvey) / e.interval()
		began := p.NextSurvey.Add(missed * e.interval())
		if now < began.Add(lasts) {
			p.NextSurvey, e.asOf = began, began
			e.run()
			return
		}
		p.LastSurvey, p.NextSurvey = began, began.Add(e.interval())
	}
}

// interval is that of surveys, which a story never makes more often.
func (e *providerEnv) interval() cluster.Duration {
	return max(e.provider.SurveyEvery, 2*cluster.Second)
}

// surveyLasts is how long it takes to survey the provider, to publish what it offers and to read the books.
func (e *providerEnv) surveyLasts() cluster.Duration {
	return e.model.Latency(providers.VerbDescribe, "") + 2*e.s.farm.Steps.Controller
}

// publishes answers when a story that sleeps would publish what it offers next, after a time.
func (e *providerEnv) publishes(after cluster.Time) cluster.Time {
	first := e.provider.NextSurvey.Add(e.model.Latency(providers.VerbDescribe, "") + e.s.farm.Steps.Controller/2)
	if after < first {
		return first
	}
	return first.Add((after.Sub(first)/e.interval() + 1) * e.interval())
}

// published tells whether a story that sleeps would have published anything since the last session.
func (e *providerEnv) published() bool { return e.asleep && e.publishes(e.s.sessionAt) <= e.s.now }

// maySleep tells that no survey can find anything new, or do anything about what was found, until
// something changes.
func (e *providerEnv) maySleep() bool {
	p := e.provider
	quiet := e.seen == e.version && !e.model.Restless() && len(p.Starting) == 0 && len(p.Strays) == 0 && p.Silent == 0 && p.Trouble == "" &&
		!p.Hosts.Believe && len(p.Hosts.Orphans) == 0 && e.agrees()
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

// agrees tells that the last survey found what the books have: nobody is told to look for himself, again and again.
func (e *providerEnv) agrees() bool {
	found := &e.found
	if len(found.Recalls)+len(found.Reclaims)+len(found.Hosts.MissingHosts)+len(found.Hosts.Swapped)+len(found.Hosts.OrphanHosts) > 0 {
		return false
	}
	listed := map[string]int64{}
	for _, h := range found.Holdings {
		listed[h.Request] += h.Units
	}
	for i := range e.viewed.Open {
		if l := &e.viewed.Open[i]; listed[l.ID] != l.Held() {
			return false
		}
	}
	return true
}

// Receive implements workflows.Env. Surveys that would find nothing are slept through.
func (e *providerEnv) Receive(until cluster.Time) (workflows.Message, bool) {
	if until > e.s.now && len(e.inbox) == 0 && len(e.mail) == 0 && e.maySleep() {
		e.asleep = true
		until = 0
		e.s.planUnsettled(e.publishes(e.s.now))
	}
	return e.story.Receive(until)
}

// Survey implements workflows.ProviderEnv.
func (e *providerEnv) Survey(in activities.SurveyIn) (found activities.Survey) {
	e.step(e.model.Latency(providers.VerbDescribe, ""), func() {
		e.seen = e.version
		found, _ = e.script.Survey(anyTime, in)
		e.found = found
		e.found.Holdings = slices.Clone(found.Holdings) // the story sorts out its own
	}, func() { found = e.found })
	return found
}

// Return implements workflows.ProviderEnv.
func (e *providerEnv) Return(in activities.GiveBack) activities.Grant {
	return script(e.story, e, providers.VerbReturn, in.Request, in, e.script.Return)
}

// Publish implements workflows.ProviderEnv.
func (e *providerEnv) Publish(c api.Catalog) {
	e.step(e.s.farm.Steps.Controller, func() { e.s.publish(e.provider.Name, c) }, func() {})
}

// View implements workflows.ProviderEnv.
func (e *providerEnv) View(ask []string) (view api.ProviderView) {
	e.step(e.s.farm.Steps.Controller, func() {
		used := e.viewed
		if ask != nil {
			used = api.ProviderView{} // the story has not done with the last one
		}
		view = e.s.view(emptied(used), e.provider.Name, ask)
		e.viewed = view
	}, func() { view = e.viewed })
	return view
}

// ReportStray implements workflows.ProviderEnv.
func (e *providerEnv) ReportStray(api.Stray) {
	e.step(e.s.farm.Steps.Controller, func() {
		e.s.unsettle()
		e.s.wantSession() // as after everything that is recorded
	}, nil)
}

// StartLoan implements workflows.ProviderEnv.
func (e *providerEnv) StartLoan(r cluster.LoanRequest) {
	controller(e.story, r, func(r cluster.LoanRequest) bool {
		l := &workflows.Loan{Request: r}
		e.s.begin(r.ID, func(st *story) {
			st.refuses = func(m workflows.Message) error { return l.MayReturn(st.s.now, m.Return.ReturnUnits) }
			l.Live(loanEnv{deal{st, e}})
		})
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
			e.s.begin(r.ID, func(st *story) {
				env := &hostEnv{deal: deal{st, e}, host: h}
				st.refuses = func(m workflows.Message) error { return h.May(m.Wish.Kind, m.Wish.HostOrder) }
				st.told = func() { st.s.wake(st.s.elastic[r.ID]) }
				h.Live(env)
			})
		}
		return true
	})
}

// TellHost implements workflows.ProviderEnv.
func (e *providerEnv) TellHost(host string, m workflows.Message) { e.s.tellStory(host, m) }

var (
	_ workflows.LoanEnv     = loanEnv{}
	_ workflows.HostEnv     = (*hostEnv)(nil)
	_ workflows.ProviderEnv = (*providerEnv)(nil)
)
