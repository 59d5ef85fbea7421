package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation/model"
	"xce.internal/elastic/simulation/trace"
	"xce.internal/elastic/workflows"
)

// Options are how a simulation is run.
type Options struct {
	// Label is kept in the result.
	Label string
	// Progress, where set, is told now and then how far the simulation is.
	Progress func(Progress)
	// OneByOne has a session after every single event, arrivals first, as many other simulators do, in
	// place of one after all events of an instant, as clusters do. It is for comparison with them.
	OneByOne bool
	// Awake has providers surveyed and sessions held even where nothing can have changed, and hosts ask whether they may
	// go even where jobs run on them.
	Awake bool
}

// Progress is how far a simulation is.
type Progress struct {
	// Now is the simulated time, and First and Last the first and last arrival.
	Now, First, Last cluster.Time
	// Arrived and Ended count jobs, of Jobs in all.
	Arrived, Ended, Jobs int64
}

// Run simulates a farm with the jobs of a trace, until all is over or ctx is. It is an error if the farm's
// settings cannot be used; jobs that cannot run are an outcome.
func Run(ctx context.Context, farm Farm, jobs *trace.Trace, options Options) (*Result, error) {
	s, err := newSimulator(farm, jobs, options)
	if err != nil {
		return nil, err
	}
	s.play(ctx)
	return s.finish(), nil
}

// simulator is a simulation under way. One thing happens in it at a time.
type simulator struct {
	farm    *Farm
	options Options
	zone    *time.Location
	jobs    []trace.Job

	now     cluster.Time
	began   cluster.Time
	agenda  agenda
	stories map[string]*story
	tellers []*teller // that have nothing to tell
	books
	models    map[string]*model.Model
	providers map[string]*providerEnv
	inOrder   []*providerEnv // as they are configured
	hosts     map[string]*host
	silent    []*elasticHost

	engine *scheduling.Engine
	// elasticFarm tells that anything can be borrowed or made.
	elasticFarm bool
	wanted      bool // a session, at this instant
	// unsettled tells that something may have become free since the last session, which was at sessionAt: as
	// in a controller, any write counts, whatever it changed.
	unsettled bool
	sessionAt cluster.Time
	// tick is when a session is held though nobody wants one; vain tells that it would find what the last one did,
	// which promised what is in promised.
	tick     cluster.Time
	vain     bool
	promised []scheduling.Reservation
	// What sessions do not know yet.
	catalogChanged, comingChanged bool
	firstComing                   cluster.Time // when the first host is expected that is coming; 0 for none
	idleChanges                   uint64
	asleep                        []*elasticHost // of which the stories are

	newsDue        bool
	unheard, heard []news // the latter is used again

	arrived  int
	alive    int64 // jobs that run
	hopeless int64 // those of them that have had to start again too often
	spare    []*running
	stranded int64 // those of them of which a host is no more
	progress cluster.Time
	shapes   map[*trace.Shape]*shape
	kinds    []cluster.Host           // one of each
	shared   []cluster.SharedResource // reused
	record
}

func newSimulator(farm Farm, jobs *trace.Trace, options Options) (*simulator, error) {
	farm.complete()
	zone, err := farm.zone()
	if err != nil {
		return nil, fmt.Errorf("simulation.zone: %w", err)
	}
	s := &simulator{
		farm: &farm, options: options, zone: zone, jobs: jobs.Jobs, stories: map[string]*story{}, books: newBooks(&farm),
		models: map[string]*model.Model{}, providers: map[string]*providerEnv{}, hosts: map[string]*host{}, shapes: map[*trace.Shape]*shape{}, kinds: farm.kinds(),
	}
	if len(s.jobs) > 0 {
		s.began = s.jobs[0].Submit
	}
	s.now, s.progress = s.began, s.began
	s.unsettled = true
	s.newRecord(jobs)
	s.build()
	return s, nil
}

// build makes the engine, the hosts that the cluster owns, the models and the stories of their providers.
func (s *simulator) build() {
	in := scheduling.Input{Now: s.now, Policy: s.farm.Policy, Thresholds: s.farm.Thresholds}
	for _, r := range s.resources {
		in.Resources = append(in.Resources, scheduling.Resource{SharedResource: r.SharedResource, Total: r.account.Total()})
		s.elasticFarm = s.elasticFarm || r.Elastic != nil
	}
	for _, owned := range s.farm.Hosts {
		for _, h := range owned.hosts() {
			in.Hosts = append(in.Hosts, h)
			s.hosts[h.Name] = &host{name: h.Name, counted: -1}
		}
	}
	s.engine = scheduling.New(in)
	for _, name := range slices.Sorted(maps.Keys(s.hosts)) {
		s.count(s.hosts[name], 1)
	}
	for _, p := range s.farm.Providers {
		s.buildProvider(p)
	}
	for _, o := range s.farm.Operator {
		s.at(s.began.Add(o.After), func() { s.order(o) })
	}
}

func (s *simulator) buildProvider(p Provider) {
	i := slices.IndexFunc(s.farm.Settings.Providers, func(m model.Provider) bool { return m.Name == p.Name })
	if i < 0 {
		return
	}
	spec := s.farm.Settings.Providers[i]
	s.elasticFarm = s.elasticFarm || len(spec.Templates) > 0
	env := &providerEnv{result: &ProviderResult{Name: p.Name}, reasons: map[string]string{}}
	s.providers[p.Name], s.inOrder = env, append(s.inOrder, env)
	m := model.New(spec, uint64(s.farm.Seed), model.World{
		Now: func() cluster.Time { return s.now }, At: s.at, Began: s.began, Zone: s.zone,
		Made: s.madeMachine, Dead: s.deadMachine, Changed: env.changed,
	})
	s.models[p.Name] = m
	env.model, env.script = m, &activities.Dealer{Script: m, Hosts: joins{s}}
	env.provider = &workflows.Provider{
		Name: p.Name, SurveyEvery: p.SurveyEvery, Hosts: workflows.ProviderHosts{OrphanGrace: p.OrphanGrace},
	}
	s.at(s.now, func() {
		s.begin(workflows.ProviderID(p.Name), func(st *story) {
			env.story, st.told = st, func() { env.awake(s.now) }
			env.provider.Live(env)
		})
	})
}

// joins is the controller as the providers of hosts need it.
type joins struct{ s *simulator }

// Join implements activities.Hosts: nobody can be fooled here, so that no token is needed.
func (b joins) Join(_ context.Context, host string) (providers.Join, error) {
	return providers.Join{Host: host}, nil
}

// Machines implements activities.Hosts.
func (b joins) Machines(_ context.Context, provider string) ([]api.HostMachine, error) {
	return b.s.machines(provider), nil
}

// at has something done at a time.
func (s *simulator) at(t cluster.Time, do func()) {
	s.agenda.add(event{at: max(t, s.now), rank: happening, do: do})
}

// play lets time pass until all is over, or ctx is.
func (s *simulator) play(ctx context.Context) {
	for n := 0; ; n++ {
		if n%1024 == 0 {
			s.report()
		}
		if n%16 == 0 && ctx.Err() != nil {
			s.result.Stopped = true
			return
		}
		now, more := s.next()
		if !more {
			return
		}
		s.now = now
		if s.options.OneByOne {
			s.oneByOne()
		} else {
			s.instant()
		}
	}
}

func (s *simulator) report() {
	if s.options.Progress == nil || len(s.jobs) == 0 {
		return
	}
	s.options.Progress(Progress{
		Now: s.now, First: s.began, Last: s.jobs[len(s.jobs)-1].Submit, Arrived: int64(s.arrived), Ended: s.ended, Jobs: int64(len(s.jobs)),
	})
}

// next answers the next instant at which something happens, and whether there is one worth going to.
func (s *simulator) next() (at cluster.Time, more bool) {
	if s.arrived < len(s.jobs) {
		at, more = s.jobs[s.arrived].Submit, true
	} else if s.over() {
		return 0, false
	}
	if e := s.agenda.next(); e != nil && (!more || e.at < at) {
		at, more = e.at, true
	}
	if s.tick > 0 && (!more || s.tick < at) {
		at, more = s.tick, true
	}
	return max(at, s.now), more
}

// over tells that nothing of interest can happen any more: every job has ended, and all is given back; or
// nothing has happened to any job for longer than the farm has patience for.
func (s *simulator) over() bool {
	if s.alive <= s.stranded+s.hopeless && s.now.Sub(s.progress) > s.farm.Patience {
		return true
	}
	if s.alive > 0 || s.engine.Waiting() > 0 || len(s.open) > 0 || len(s.unheard) > 0 {
		return false
	}
	return !slices.ContainsFunc(s.resources, func(r *resource) bool { return len(r.account.Loans) > 0 })
}

// instant does all that happens at one instant.
func (s *simulator) instant() {
	for {
		s.happen(ending)
		s.arrive()
		s.happen(happening)
		if s.wanted || s.tick > 0 && s.tick <= s.now {
			s.session()
		}
		s.happen(hearing)
		if e := s.agenda.next(); !s.wanted && (e == nil || e.at > s.now) {
			break
		}
	}
	s.note()
}

// happen does what is on the agenda now, up to a rank.
func (s *simulator) happen(upTo rank) {
	for e := s.agenda.next(); e != nil && e.at <= s.now && e.rank <= upTo; e = s.agenda.next() {
		s.do(s.agenda.pop())
	}
}

func (s *simulator) do(e event) {
	switch {
	case e.job != nil:
		s.end(e.job)
	case e.story != nil:
		e.story.goOn(e.pause)
	default:
		e.do()
	}
}

// oneByOne does what happens at one instant one by one, with a session after each: arrivals first. A running job
// whose time limit is over gives its capacity back before the first of them.
func (s *simulator) oneByOne() {
	for i := range s.agenda.events {
		if r := s.agenda.events[i].job; r != nil && r.limit > 0 && r.limit <= s.now {
			s.release(r)
		}
	}
	for s.arrived < len(s.jobs) && s.jobs[s.arrived].Submit <= s.now {
		s.submit()
		s.session()
	}
	for e := s.agenda.next(); e != nil && e.at <= s.now; e = s.agenda.next() {
		s.do(s.agenda.pop())
		s.session()
	}
	if s.tick > 0 && s.tick <= s.now {
		s.session()
	}
	s.note()
}

// news is something that a story is to be told: a host what was seen of it, or a provider (where the host is empty)
// that its demand changed, or what it can give.
type news struct {
	host, provider string
	message        workflows.Message
}

// news has a host's story told what the cluster saw.
func (s *simulator) news(id string, m workflows.Message) {
	s.spread(news{host: id, message: m})
}

func (s *simulator) tellDemand(provider string) {
	if env := s.providers[provider]; env != nil {
		env.changed() // a survey under way may see it before it is told
	}
	if !slices.ContainsFunc(s.unheard, func(n news) bool { return n.provider == provider }) {
		s.spread(news{provider: provider, message: workflows.Message{Demand: true}})
	}
}

// tellChanged tells a provider's story that there is something else to be had than before.
func (s *simulator) tellChanged(provider string) {
	s.unheard = slices.DeleteFunc(s.unheard, func(n news) bool { return n.provider == provider })
	s.spread(news{provider: provider, message: workflows.Message{Changed: &workflows.Changed{}}})
}

func (s *simulator) spread(n news) {
	s.unheard = append(s.unheard, n)
	if !s.newsDue {
		s.newsDue = true
		s.agenda.add(event{at: s.now.Add(s.farm.Steps.News), rank: hearing, do: s.hear})
	}
}

// hear tells stories what is new: hosts first, then providers as they are configured.
func (s *simulator) hear() {
	s.newsDue = false
	heard := s.unheard
	s.unheard, s.heard = s.heard[:0], heard
	for _, n := range heard {
		if n.host != "" {
			s.tellStory(n.host, n.message)
		}
	}
	for _, p := range s.farm.Providers {
		for _, n := range heard {
			if n.provider == p.Name {
				s.tellStory(workflows.ProviderID(n.provider), n.message)
			}
		}
	}
}

// tellStory tells a story something; one that is over needs no telling.
func (s *simulator) tellStory(id string, m workflows.Message) {
	if st := s.stories[id]; st != nil {
		st.tell(m)
	}
}

// finish stops the stories and answers the result.
func (s *simulator) finish() *Result {
	s.report()
	for _, id := range slices.Sorted(maps.Keys(s.stories)) {
		s.stories[id].teller.stop()
	}
	for _, t := range s.tellers {
		t.stop()
	}
	return s.close()
}
