package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/scheduling"
)

// Backend is a scheduler of another make, which schedules the jobs in the
// controller's place. Each call can be repeated; one of which nobody knows what
// became is a [*backend.Unknown].
type Backend interface {
	// Name is what people call it.
	Name() string
	// Look reads what it has. A reading that must not be acted upon is a [*backend.NotYet].
	Look(ctx context.Context) (backend.View, error)
	// Withhold lets jobs use at most so many units of a resource, and answers how it
	// counts the resource afterwards: what it then has in use is so for certain, and
	// what is more than that of `usable` cannot come into use.
	Withhold(ctx context.Context, resource string, usable int64) (backend.Resource, error)
	// Lasting is how long after a change the backend cannot forget it any more, even if it is killed.
	Lasting() time.Duration
	// Declare has it know a host that is about to come.
	Declare(ctx context.Context, m backend.Machine) error
	// Drain has a host get no new jobs, and Open ends that, if we began it.
	Drain(ctx context.Context, host, why string) error
	Open(ctx context.Context, host string) error
	// Remove takes a host out for good, unless jobs are on it.
	Remove(ctx context.Context, host string) (busy bool, err error)
	// Requeue stops the jobs that are on a host, so that they wait again.
	Requeue(ctx context.Context, host string) error
	// Placeholder has it take jobs that only hosts of the template can run, before there
	// is one; DropPlaceholder ends that.
	Placeholder(ctx context.Context, template string, m backend.Machine) error
	DropPlaceholder(ctx context.Context, template string) error
}

// reading is what the backend has, as it was read last.
type reading struct {
	backend.View
	listed map[string]int64 // units of each resource that running jobs have
	byID   map[int64]int    // jobs
	byHost map[string][]int // running jobs
	hosts  map[string]int
	// found is what a session that came to an end found of it; nil where there was none.
	found *found
}

// found is a session's input and result.
type found struct {
	in     scheduling.Input
	result scheduling.Result
}

func newReading(v backend.View) *reading {
	r := &reading{View: v, listed: backend.Listed(v.Jobs), byID: make(map[int64]int, len(v.Jobs)), byHost: map[string][]int{}, hosts: make(map[string]int, len(v.Hosts))}
	for i := range v.Jobs {
		job := &v.Jobs[i]
		r.byID[job.ID] = i
		if job.State == cluster.JobRunning {
			for _, host := range job.Hosts {
				r.byHost[host] = append(r.byHost[host], i)
			}
		}
	}
	for i := range v.Hosts {
		r.hosts[v.Hosts[i].Name] = i
	}
	return r
}

// host answers a host of the backend, or nil where it knows none of that name.
func (r *reading) host(name string) *backend.Host {
	if i, known := r.hosts[name]; known {
		return &r.View.Hosts[i]
	}
	return nil
}

// named finds the job that the backend calls so, as in 12_7, which a row of waiting elements
// may stand for; its id where it has no such name.
func (r *reading) named(name string) (id int64, found bool) {
	array, _, isElement := strings.Cut(name, "_")
	for i := range r.View.Jobs {
		job := &r.View.Jobs[i]
		switch told := job.Told; {
		case told == nil || told.Name == "":
		case told.Name == name:
			return job.ID, true
		case isElement && strings.HasPrefix(told.Name, array+"_["):
			id, found = job.ID, true
		}
	}
	return id, found
}

// inUse answers how many units of a resource jobs have, and how many others keep back for
// theirs. Where the count is less than what the running jobs ask for, it was lost and begun anew.
func (r *reading) inUse(resource string) (used, reserved int64) {
	counted := r.Resources[resource]
	return max(r.listed[resource], counted.Used), counted.Reserved
}

// inUseAsListed answers how many units of a resource jobs had when those were listed that wait.
func (r *reading) inUseAsListed(resource string) int64 {
	return r.listed[resource] + r.Resources[resource].Unlisted
}

// work begins a change, or a look at the state, on behalf of the actor.
func (s *Service) work(tx *store.Tx, actor string) *work {
	return &work{Tx: tx, actor: actor, now: s.at(tx), reading: s.reading.Load()}
}

// The jobs are the backend's where there is one: what the work is told of them
// here comes from its last reading, and not from the store.

// Jobs lists the jobs in one of the states, or all for none, ordered by id.
func (w *work) Jobs(states ...cluster.JobState) ([]cluster.Job, error) {
	if w.reading == nil {
		return w.Tx.Jobs(states...)
	}
	of := func(job *cluster.Job) bool { return len(states) == 0 || slices.Contains(states, job.State) }
	count := 0
	for i := range w.reading.View.Jobs {
		if of(&w.reading.View.Jobs[i]) {
			count++
		}
	}
	jobs := make([]cluster.Job, 0, count) // in a long queue, growing it would take most of a session's memory
	for i := range w.reading.View.Jobs {
		if job := &w.reading.View.Jobs[i]; of(job) {
			jobs = append(jobs, *job)
		}
	}
	return jobs, nil
}

// Job finds one job.
func (w *work) Job(id int64) (cluster.Job, bool, error) {
	if w.reading == nil {
		return w.Tx.Job(id)
	}
	i, found := w.reading.byID[id]
	if !found {
		return cluster.Job{}, false, nil
	}
	return w.reading.View.Jobs[i], true, nil
}

// HostJobs lists the jobs that are on a host.
func (w *work) HostJobs(host string) ([]cluster.Job, error) {
	if w.reading == nil {
		return w.Tx.HostJobs(host)
	}
	var jobs []cluster.Job
	for _, i := range w.reading.byHost[host] {
		jobs = append(jobs, w.reading.View.Jobs[i])
	}
	return jobs, nil
}

// CountJobs counts jobs by state.
func (w *work) CountJobs() (map[cluster.JobState]int64, error) {
	if w.reading == nil {
		return w.Tx.CountJobs()
	}
	counts := map[cluster.JobState]int64{}
	for i := range w.reading.View.Jobs {
		job := &w.reading.View.Jobs[i]
		counts[job.State] += max(job.Array-job.Begun, 1)
	}
	return counts, nil
}

// InUse answers how many units of a resource jobs have.
func (w *work) InUse(resource string) (int64, error) {
	if w.reading == nil {
		return w.Tx.InUse(resource)
	}
	if counted, asked := w.counted[resource]; asked {
		return counted, nil
	}
	used, _ := w.reading.inUse(resource)
	return used, nil
}

// unread is why the backend was not read, or must not be acted upon.
type unread struct{ why error }

func (u *unread) Error() string { return u.why.Error() }
func (u *unread) Unwrap() error { return u.why }

// look reads the backend. That it cannot be read is told once, until it can again.
func (s *Service) look(ctx context.Context) (*reading, error) {
	view, err := s.config.Backend.Look(ctx)
	if err != nil {
		s.away(ctx, err)
		return nil, &unread{err}
	}
	now := s.now()
	if trouble := s.trouble.Swap(nil); trouble != nil {
		s.log.Info("the backend is read again", "backend", s.config.Backend.Name(), "after", now.Sub(trouble.Since).String())
	}
	if now.Sub(s.reading.Load().At) > s.silence()/2 {
		s.hearAnew() // it was our own silence, or the backend's, and not the hosts'
	}
	return newReading(view), nil
}

// backendSession reads the backend, runs a session on that, and then has the backend's
// tokens and hosts be as the books say.
func (s *Service) backendSession(ctx context.Context) error {
	read, err := s.look(ctx)
	if err != nil {
		var notYet *backend.NotYet
		if errors.As(err, &notYet) {
			// What the books say needs no reading: a backend that has just started may have
			// forgotten what is withheld, and must not wait for one.
			if err := s.settleAllTokens(ctx); err != nil {
				s.log.Debug("the backend's tokens are settled after the next session", "error", err)
			}
		}
		return err
	}
	if !s.leads.Load() && s.store.Shared() {
		s.guesses.Forget()
	}
	s.guesses.Check(read.View, guessGrace)
	began := time.Now()
	if err := s.session(ctx, &began, read); err != nil {
		return err
	}
	found := read.found
	if read.found = nil; found == nil { // another controller runs the sessions
		s.reading.Store(read)
		return nil
	}
	s.tell(read, *found)
	s.reading.Store(read)
	s.settle(ctx)
	return nil
}

// guessGrace is how long a job may take to start that could, before the guess counts as wrong.
const guessGrace = 15 * cluster.Second

// onlyLook keeps what the backend has, at a controller that runs no sessions.
func (s *Service) onlyLook(ctx context.Context) {
	if s.config.Backend == nil {
		return
	}
	if read, err := s.look(ctx); err == nil {
		s.reading.Store(read)
	}
}

// settle has the backend's tokens and hosts be as the books say. What does not come
// about is told once, and tried again after the next session.
func (s *Service) settle(ctx context.Context) {
	err := s.settleTokens(ctx)
	if !isUnknown(err) { // else it is away, and each call would wait for it
		err = errors.Join(err, s.settleHosts(ctx))
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		if s.unsettled.Swap(nil) != nil {
			s.log.Info("the backend has taken all changes", "backend", s.config.Backend.Name())
		}
	case s.unsettled.note(err.Error(), s.now()):
		s.log.Warn("the backend has not taken all changes; they are tried again", "backend", s.config.Backend.Name(), "error", err)
	}
}

// trouble is what does not work, and since when; nil while all does.
type trouble struct{ atomic.Pointer[api.Trouble] }

// note keeps why something does not work, and tells whether that is news.
func (t *trouble) note(why string, now cluster.Time) (news bool) {
	is, before := api.Trouble{Since: now, Why: why}, t.Load()
	if before != nil {
		is.Since = before.Since
	}
	t.Store(&is)
	return before == nil || before.Why != why
}

// isUnknown tells whether an outcome is not known: the backend is away.
func isUnknown(err error) bool {
	var unknown *backend.Unknown
	return errors.As(err, &unknown)
}

// away keeps since when, and why, the backend is not read, which is told once. Until it is
// read again it is asked nothing more.
func (s *Service) away(ctx context.Context, err error) {
	if ctx.Err() != nil || !s.trouble.note(err.Error(), s.now()) {
		return
	}
	var notYet *backend.NotYet
	if errors.As(err, &notYet) {
		s.log.Info("the backend's state is not acted upon yet", "backend", s.config.Backend.Name(), "why", notYet.Why)
		return
	}
	s.log.Warn("the backend cannot be read; nothing is decided until it can", "backend", s.config.Backend.Name(), "error", err)
}

// mustAnswer refuses what would wait for a backend that does not answer.
func (s *Service) mustAnswer() error {
	if trouble := s.trouble.Load(); trouble != nil {
		return refuse(http.StatusServiceUnavailable, "%s does not answer, and nothing is decided until it does: %s", s.config.Backend.Name(), trouble.Why)
	}
	return nil
}

// hearAnew gives each host the time that it has after a start.
func (s *Service) hearAnew() {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	clear(s.seen)
	clear(s.heard)
}

// mustLead refuses what only the controller does that runs the sessions: it alone knows which
// fences are under way.
func (s *Service) mustLead() error {
	if s.store.Shared() && !s.leads.Load() {
		return refuse(http.StatusServiceUnavailable, "another controller runs the sessions, and fences; ask that one")
	}
	return nil
}

// mayFence refuses a fence that cannot come about here and now.
func (s *Service) mayFence() error {
	if err := s.mustLead(); err != nil {
		return err
	}
	return s.mustAnswer()
}

// scheduledElsewhere refuses what only the builtin backend does.
func (s *Service) scheduledElsewhere(what string) error {
	if s.config.Backend == nil {
		return nil
	}
	return refuse(http.StatusConflict, "%s schedules the jobs of this cluster: %s", s.config.Backend.Name(), what)
}

// backendStatus tells how the backend stands.
func (s *Service) backendStatus(w *work) *api.BackendStatus {
	if s.config.Backend == nil {
		return nil
	}
	return &api.BackendStatus{
		Name: s.config.Backend.Name(), Read: w.reading.At, Trouble: s.trouble.Load(), Unsettled: s.unsettled.Load(),
		Warnings: w.reading.Warnings, Guesses: s.guesses.Tally(),
	}
}

// unknownOutcome answers a call that the backend did not settle: nothing is decided on it.
func (s *Service) unknownOutcome(what string, err error) error {
	return refuse(http.StatusServiceUnavailable, "%s: %s did not settle it, and nothing was decided: %v", what, s.config.Backend.Name(), err)
}

// counts answers how the backend counts a resource, where jobs are told by that how many they can have.
func (s *Service) counts(w *work, resource string) []string {
	if w.reading == nil {
		return nil
	}
	name := s.config.Backend.Name()
	r, found := w.reading.Resources[resource]
	if !found {
		return []string{fmt.Sprintf("%s does not count it.", name)}
	}
	sentence := fmt.Sprintf("%s counts %d, of which %d are used and %d are kept from jobs since they are not had", name, r.Ceiling, r.Used, r.Withheld)
	if r.Reserved > 0 {
		sentence += fmt.Sprintf("; others keep back %d", r.Reserved)
	}
	free := max(r.Ceiling-r.Used-r.Withheld-r.Reserved, 0)
	return []string{fmt.Sprintf("%s: jobs can take %d more. That was read at %s.", sentence, free, w.reading.At.Stamp())}
}

// unreadSince says that what is known of the backend is old, where it is.
func (s *Service) unreadSince() []string {
	trouble := s.trouble.Load()
	if trouble == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s has not been read since %s, so this is how it was before that.", s.config.Backend.Name(), trouble.Since.Stamp())}
}

// pastJobs says where jobs are found that have ended.
func (s *Service) pastJobs() string {
	if s.config.Backend == nil {
		return ""
	}
	return ", those that wait or run; " + s.config.Backend.Name() + " knows of those that have ended"
}

// saysOf answers what the backend says of a waiting job, beside what we say.
func (s *Service) saysOf(job cluster.Job) []string {
	if job.Told == nil || s.config.Backend == nil {
		return nil
	}
	name := s.config.Backend.Name()
	sentences := []string{}
	if job.Told.Reason != "" {
		sentences = append(sentences, fmt.Sprintf("%s says: %s.", name, job.Told.Reason))
	}
	if job.Told.Expected > 0 {
		sentences = append(sentences, fmt.Sprintf("%s expects to start it at %s.", name, job.Told.Expected.Stamp()))
	}
	if job.Told.Barred != "" {
		sentences = append(sentences, "Nothing is asked for on its behalf: more hosts or tokens would not let it start.")
	}
	return sentences
}
