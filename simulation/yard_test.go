package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/maker"
	"xce.internal/elastic/workflows"
)

// yard is the part of a world that has to do with hosts that providers make.
type yard struct {
	makers    map[string]*maker.Maker
	agents    map[string]*agent // by machine
	authority *pki.Authority
	// boots says how a machine boots: as newBoot unless given.
	boots func(maker.Machine) boot
	// down is a controller that cannot be reached, deaf a provisioner that does not
	// carry on what changes; missed tells that some of it was not carried on.
	down, deaf, missed bool
	// forgiven tells that an operator gave up a machine on which jobs may still run.
	forgiven bool

	rowsOfHosts []cluster.ElasticHost // when all is over
}

func newYard() yard {
	return yard{makers: map[string]*maker.Maker{}, agents: map[string]*agent{}}
}

const (
	cloud  = "cloud"
	cloudB = "cloud-b"
	hostA  = "host/c16-1"
	hostB  = "host/c16-2"
)

// newHostScene is a cluster without a host of its own, that may have hosts of one
// maker; what is idle for 10 minutes goes back, and what has not joined after 15.
func newHostScene(lasts time.Duration) scene {
	s := newScene(lasts)
	s.resources, s.lenders, s.makers, s.bare = nil, nil, []string{cloud}, true
	s.sessions, s.surveys, s.ensured, s.orphanGrace = time.Minute, 5*time.Minute, 30*time.Minute, 10*time.Minute
	s.hosts = cluster.DefaultHostRules()
	return s
}

// c16 is a template of hosts with 16 cpus.
func c16() maker.Template {
	return maker.Template{Capacity: 10, Template: providers.Template{Template: "c16", CPUs: 16, MemoryMB: 65536, Price: 800_000, Latency: 120}}
}

// named answers a template under another name, at another price.
func named(t maker.Template, name string, price int64) maker.Template {
	t.Template.Template, t.Price = name, price
	return t
}

func (w *world) buildMakers() {
	for _, name := range w.scene.makers {
		m := &maker.Maker{Now: w.h.Now, Templates: []maker.Template{c16()}}
		m.Wake = func(d time.Duration) { w.h.After(d, m.Advance) }
		m.Made, m.Ended, m.BeforeReturn = w.boot, w.ended, w.judgeMachine
		w.makers[name] = m
		w.must(w.h.Start(workflows.ProviderID(name), workflows.ProviderName, workflows.Provider{
			Name: name, SurveyEvery: cluster.DurationOf(w.scene.surveys),
			Hosts: workflows.ProviderHosts{OrphanGrace: cluster.DurationOf(w.scene.orphanGrace)},
		}))
	}
}

// gate is the controller as the activities of a provider of hosts reach it.
type gate struct{ w *world }

func (g gate) Join(ctx context.Context, host string) (providers.Join, error) {
	token, err := g.w.service.JoinToken(ctx, host)
	return providers.Join{Host: host, Token: token.Token, Deadline: token.Deadline.Std()}, overHTTP(err)
}

func (g gate) Machines(ctx context.Context, provider string) ([]api.HostMachine, error) {
	if g.w.down {
		return nil, errDown
	}
	machines, err := g.w.service.Machines(ctx, provider)
	return machines, overHTTP(err)
}

// boot is how a machine boots.
type boot struct {
	after time.Duration
	never bool
	has   api.JoinHost
	// token has it join with its token, and not by a certificate that it has.
	token bool
	// own has it join under its machine's name, with a certificate of the cluster that
	// does not say which host it is.
	own bool
}

func newBoot() boot {
	return boot{after: 2 * time.Minute, has: api.JoinHost{CPUs: 16, MemoryMB: 65536}}
}

// agent is what runs on one machine.
type agent struct {
	machine maker.Machine
	boot    boot
	peer    pki.Peer
	// joined tells that it has joined once, here that it is in the cluster, dead that its machine is no more, silent that it
	// does not reach the controller, while its jobs run on.
	joined, here, dead, silent bool
	// turnedAway is what it was told where it could not join.
	turnedAway string
	jobs       map[int64]bool
}

// quiet tells that a session could do nothing: all jobs are done, and there is
// no machine, nor anyone who lends.
func (w *world) quiet() bool {
	for _, m := range w.makers {
		if len(m.Machines("")) > 0 {
			return false
		}
	}
	for _, j := range w.jobs {
		if !j.ended {
			return false
		}
	}
	return w.scene.bare && len(w.lenders) == 0
}

func (w *world) boot(m maker.Machine) {
	b := newBoot()
	if w.boots != nil {
		b = w.boots(m)
	}
	a := &agent{machine: m, boot: b, jobs: map[int64]bool{}}
	a.boot.has.Instance = m.ID
	w.agents[m.ID] = a
	if !b.never {
		w.h.After(b.after, func() { w.join(a) })
	}
}

func (w *world) ended(m maker.Machine) { w.agents[m.ID].dead = true }

// join has a machine join, and try again where the controller is not to be reached.
func (w *world) join(a *agent) {
	if a.dead {
		return
	}
	if w.down || a.silent {
		w.h.After(10*time.Second, func() { w.join(a) })
		return
	}
	if err := w.knock(a); err != nil {
		a.turnedAway = err.Error()
		if api.Permanent(overHTTP(err)) {
			a.jobs = map[int64]bool{} // they may run elsewhere
		} else {
			w.h.After(5*time.Second, func() { w.join(a) })
		}
		return
	}
	a.joined, a.boot.token = true, false // it has its certificate now
	a.here = true
	w.kick()
}

// knock asks to be let in.
func (w *world) knock(a *agent) error {
	if a.boot.token {
		_, request, err := pki.NewRequest()
		w.must(err)
		joined, err := w.service.JoinWithToken(w.t.Context(), api.JoinRequest{
			Host: a.machine.Request, Token: a.machine.Join.Token, Request: string(request), JoinHost: a.boot.has,
		})
		a.peer = pki.Peer{Role: string(api.HostRole), Name: joined.Name, ID: a.machine.Request}
		return err
	}
	a.peer = pki.Peer{Role: string(api.HostRole), Name: w.rowOf(a.machine.Request).Name, ID: a.machine.Request}
	if a.boot.own {
		a.peer = pki.Peer{Role: string(api.HostRole), Name: a.machine.Name}
	}
	return w.service.Join(w.t.Context(), a.peer, a.boot.has)
}

// rowOf reads the row of a host.
func (w *world) rowOf(id string) cluster.ElasticHost {
	rows, err := w.service.ElasticHosts(w.t.Context(), true)
	w.must(err)
	if i := slices.IndexFunc(rows, func(r cluster.ElasticHost) bool { return r.ID == id }); i >= 0 {
		return rows[i]
	}
	return cluster.ElasticHost{}
}

// askForJobs has all machines give a sign of life, and do what they should.
func (w *world) askForJobs() {
	for _, id := range slices.Sorted(maps.Keys(w.agents)) {
		a := w.agents[id]
		if !a.here || a.dead || a.silent {
			continue
		}
		assigned, err := w.service.Assignments(w.t.Context(), ended(), a.peer, -1)
		if err != nil {
			a.here = false // it has been given up
			w.join(a)
			continue
		}
		for _, j := range assigned.Jobs {
			w.run(a, j)
		}
	}
}

// run runs a job on a machine, or stops it where it is to stop.
func (w *world) run(a *agent, j cluster.Job) {
	known := w.jobs[j.ID]
	switch {
	case !a.jobs[j.ID] && !j.Stopping:
		a.jobs[j.ID] = true
		known.starts++
		known.started = w.since(j.Started)
		w.judgeStart(a, j.ID)
		if known.runs > 0 {
			w.h.After(known.runs, func() { w.done(a, j.ID, cluster.JobDone) })
		}
	case j.Stopping:
		w.h.After(2*time.Second, func() { w.done(a, j.ID, cluster.JobWaiting) })
	}
}

// done has a machine report the end of a job, once it is heard.
func (w *world) done(a *agent, id int64, state cluster.JobState) {
	if a.dead || !a.jobs[id] {
		return
	}
	if a.silent || w.down {
		w.h.After(10*time.Second, func() { w.done(a, id, state) })
		return
	}
	delete(a.jobs, id)
	if err := w.service.EndJob(w.t.Context(), a.peer, id, api.JobEnd{State: state, Why: "stopped"}); err != nil {
		return // it runs elsewhere by now
	}
	if state == cluster.JobDone {
		w.judgeEnd(id)
	}
	w.kick()
}

// judgeStart complains of a job that runs on two machines at once.
func (w *world) judgeStart(on *agent, id int64) {
	if w.forgiven {
		return
	}
	for _, a := range w.agents {
		if a != on && !a.dead && a.jobs[id] {
			w.t.Errorf("%s: job %d starts on %s and runs on %s", w.since(w.now()), id, on.machine.ID, a.machine.ID)
		}
	}
}

func (w *world) judgeEnd(id int64) {
	if w.jobs[id].ended {
		w.t.Errorf("%s: job %d is done twice", w.since(w.now()), id)
	}
	w.jobs[id].ended = true
}

// judgeMachine sees every machine that a return ends: no job may be on it, unless
// it is a lost one, which the cluster gives up.
func (w *world) judgeMachine(m maker.Machine) {
	row := w.rowOf(m.Request)
	if row.Instance != m.ID || row.State != cluster.HostLeaving && row.Health != cluster.Lost && row.State.Open() {
		if row.State != cluster.HostRequested && row.Instance == m.ID {
			w.t.Errorf("%s: %s goes back while its host %s is %s", w.since(w.now()), m.ID, row.ID, row.State)
		}
	}
	if a := w.agents[m.ID]; len(a.jobs) > 0 && row.Health != cluster.Lost && row.State.Open() {
		w.t.Errorf("%s: %s goes back while %d jobs run on it", w.since(w.now()), m.ID, len(a.jobs))
	}
}

// tellHost tells a host's story of a change, as the bridge does.
func (w *world) tellHost(c api.Change) {
	if !strings.HasPrefix(c.Kind, api.KindHostWrite) {
		return
	}
	var row cluster.ElasticHost
	w.must(json.Unmarshal(c.After, &row))
	switch c.Kind {
	case api.KindJoined:
		w.signal(row.ID, workflows.SignalJoined, workflows.HostJoined{At: row.Joined})
	case api.KindEmptied:
		w.signal(row.ID, workflows.SignalEmptied, struct{}{})
	case api.KindSuspect, api.KindLost, api.KindWell:
		w.signal(row.ID, workflows.SignalHealth, workflows.HostHealth{Health: row.Health})
	default:
		if !row.State.Open() {
			w.signal(workflows.ProviderID(row.Provider), workflows.SignalCatalogChanged, workflows.Changed{})
		}
	}
}

// signal tells a story, which may be over.
func (w *world) signal(id, name string, arg any) {
	err := w.h.Signal(id, name, arg)
	var gone *serviceerror.NotFound
	if !errors.As(err, &gone) {
		w.must(err)
	}
}

// ensureHosts makes sure of the stories of hosts, as the bridge does.
func (w *world) ensureHosts() {
	for _, name := range w.scene.makers {
		w.signal(workflows.ProviderID(name), workflows.SignalCatalogChanged, workflows.Changed{
			SurveyEvery: cluster.DurationOf(w.scene.surveys), OrphanGrace: cluster.DurationOf(w.scene.orphanGrace),
		})
	}
	rows, err := w.service.ElasticHosts(w.t.Context(), false)
	w.must(err)
	for _, r := range rows {
		w.must(starts{w}.startHost(workflows.ResumeHost(r), allowDuplicate))
		if w.missed && r.State.Here() {
			w.signal(r.ID, workflows.SignalJoined, workflows.HostJoined{At: r.Joined})
			w.signal(r.ID, workflows.SignalHealth, workflows.HostHealth{Health: r.Health})
		}
	}
	w.missed = false
}

// need submits a job that takes so many cpus, at an instant.
func (w *world) need(at time.Duration, cpus int64, runs time.Duration) *job {
	return w.needWith(at, cluster.JobSpec{CPUs: cpus}, runs)
}

func (w *world) needWith(at time.Duration, spec cluster.JobSpec, runs time.Duration) *job {
	j := &job{runs: runs}
	spec.Command = []string{"work"}
	w.h.At(at, func() {
		kept, err := w.service.Submit(w.t.Context(), "submitter/ada", spec)
		w.must(err)
		j.id = kept.ID
		w.jobs[j.id] = j
		w.kick()
	})
	return j
}

// order is an operator's wish for a host, at an instant.
func (w *world) order(at time.Duration, host string, kind workflows.HostUpdate, o workflows.HostOrder) *orderSent {
	sent := &orderSent{}
	o.By = "admin/eve"
	w.h.At(at, func() { sent.update = w.h.Update(host, fmt.Sprintf("%s at %s", kind, at), string(kind), o) })
	return sent
}

// orderSent is an operator's wish and its answer.
type orderSent struct {
	update interface{ Result(any) error }
}

// answer is what the host was then, or why the wish was refused.
func (o *orderSent) answer() string {
	var a workflows.HostAnswer
	if err := o.update.Result(&a); err != nil {
		return "refused: " + err.Error()
	}
	return a.State
}

// story asks a host's story how it stands.
func (w *world) story(host string) (h workflows.Host) {
	w.must(w.h.Query(host, workflows.QueryHost, &h))
	return h
}

// storyOf asks a provider's story how it stands.
func (w *world) storyOf(provider string) (p workflows.Provider) {
	w.must(w.h.Query(workflows.ProviderID(provider), workflows.QueryState, &p))
	return p
}

// life is all that came of a host: the changes of its row's state, to the second.
func (w *world) life(id string) (lines []string) {
	state := ""
	for _, c := range w.changes {
		if c.Subject != id || !strings.HasPrefix(c.Kind, api.KindHostWrite) || c.Kind == api.KindEmptied {
			continue
		}
		var row cluster.ElasticHost
		w.must(json.Unmarshal(c.After, &row))
		next := string(row.State)
		if row.Health != cluster.Well && row.State.Here() {
			next += " " + string(row.Health)
		}
		if next != state {
			lines = append(lines, fmt.Sprintf("%s %s", seconds(w.since(c.At)), next))
		}
		state = next
	}
	return lines
}

// seconds writes an instant of the play to the second.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

// machines are the moves of a maker's machines.
func (w *world) machines(name string) (lines []string) {
	for _, m := range w.makers[name].Moves {
		what := map[bool]string{true: "made", false: "ended"}[m.Made]
		lines = append(lines, fmt.Sprintf("%s %s %s %s", seconds(w.since(cluster.TimeOf(m.At))), strings.TrimPrefix(m.Request, "host/"), m.Instance, what))
	}
	return lines
}

// turnedAway are the hosts that were not let in, but for those that were leaving.
func (w *world) turnedAway() []string {
	return without(w.kinds(api.KindRefused), "is leaving and cannot join")
}

// hostsSettled checks that no host is left, and no machine.
func (w *world) hostsSettled() {
	w.t.Helper()
	for _, r := range w.rowsOfHosts {
		if r.State.Open() {
			w.t.Errorf("%s is %s: %s", r.ID, r.State, r.Why)
		}
		if story := w.report.Workflow(r.ID); story.Open() || story.Err != nil {
			w.t.Errorf("the story of %s is open: %v, error: %v", r.ID, story.Open(), story.Err)
		}
	}
	for name, m := range w.makers {
		if left := m.Machines(""); len(left) > 0 {
			w.t.Errorf("%s still has %d machines:\n%s", name, len(left), m)
		}
	}
}

// allDone checks that all jobs are done.
func (w *world) allDone() {
	w.t.Helper()
	for _, j := range w.jobs {
		if !j.ended {
			w.t.Errorf("job %d is not done", j.id)
		}
	}
}
