package controller_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/controllertest"
)

// scheduler is a backend that keeps to what is said of backends, in memory: it starts
// waiting jobs in their order as far as hosts and tokens let it.
type scheduler struct {
	mu     sync.Mutex // held by its calls: fences and sessions come at once
	clock  *controllertest.Clock
	jobs   []cluster.Job
	hosts  map[string]*backend.Host
	tokens map[string]*backend.Resource
	held   map[string]backend.Host
	// broken makes each call fail so; late has a change happen all the same.
	broken error
	late   bool
	// before is called before tokens are withheld or a host is removed: what jobs do at the last moment.
	before func()
	steps  []string // changes that were made
	// warnings are what each reading warns of.
	warnings []string
	// hangs has it keep whoever withholds waiting.
	hangs bool
	// lasting is how long it may forget a change.
	lasting time.Duration
}

var _ controller.Backend = (*scheduler)(nil)

func (s *scheduler) Name() string { return "Slurm" }

func (s *scheduler) Look(context.Context) (backend.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return backend.View{}, s.broken
	}
	v := backend.View{At: s.clock.Now(), Jobs: slices.Clone(s.jobs), Resources: map[string]backend.Resource{}, Placeholders: map[string]backend.Host{}, Warnings: s.warnings}
	for name, r := range s.tokens {
		v.Resources[name] = *r
	}
	for name, h := range s.held {
		v.Placeholders[name] = h
	}
	for _, h := range s.hosts {
		h.Busy = s.busy(h.Name)
		v.Hosts = append(v.Hosts, *h)
	}
	slices.SortFunc(v.Hosts, func(a, b backend.Host) int { return cmp.Compare(a.Name, b.Name) })
	return v, nil
}

// change is one change from outside, which may fail with an outcome that no one knows.
func (s *scheduler) change(step string, do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil || s.late {
		s.steps = append(s.steps, step)
		do()
	}
	if s.broken != nil {
		return &backend.Unknown{What: step, Why: s.broken}
	}
	return nil
}

func (s *scheduler) Withhold(ctx context.Context, resource string, usable int64) (backend.Resource, error) {
	if s.hangs {
		<-ctx.Done()
		return backend.Resource{}, &backend.Unknown{What: "withhold " + resource, Why: context.Cause(ctx)}
	}
	if s.before != nil {
		s.before()
	}
	r := s.tokens[resource]
	if r == nil {
		return backend.Resource{}, fmt.Errorf("licence %s is not in Slurm", resource)
	}
	want := min(max(r.Ceiling-usable, 0), r.Ceiling)
	before := r.Withheld
	var err error
	if before != want || s.broken != nil {
		err = s.change(fmt.Sprintf("withhold %d %s", want, resource), func() { r.Withheld = want })
	}
	counted := *r
	counted.Before = before
	return counted, err
}

func (s *scheduler) Declare(_ context.Context, m backend.Machine) error {
	return s.change("declare "+m.Name, func() {
		s.hosts[m.Name] = &backend.Host{Name: m.Name, Capacity: m.Capacity, State: backend.HostAwaited, Why: "it is not here yet", Removable: true}
		s.hosts[m.Name].Features = append(slices.Clone(m.Features), "partition:main")
	})
}

func (s *scheduler) Drain(_ context.Context, host, why string) error {
	if s.before != nil {
		s.before()
	}
	return s.change("drain "+host, func() {
		if h := s.hosts[host]; h != nil {
			h.Drained, h.State, h.Why = true, backend.HostClosed, "drained: "+why
		}
	})
}

func (s *scheduler) Open(_ context.Context, host string) error {
	return s.change("open "+host, func() {
		if h := s.hosts[host]; h != nil {
			h.Drained, h.State, h.Why = false, backend.HostReady, ""
		}
	})
}

func (s *scheduler) Remove(ctx context.Context, host string) (busy bool, err error) {
	if s.hosts[host] == nil {
		return false, nil
	}
	if err := s.Drain(ctx, host, "removed"); err != nil {
		return false, err
	}
	if s.busy(host) > 0 {
		return true, nil
	}
	return false, s.change("remove "+host, func() { delete(s.hosts, host) })
}

func (s *scheduler) Requeue(_ context.Context, host string) error {
	return s.change("requeue "+host, func() {
		for i := range s.jobs {
			if j := &s.jobs[i]; j.Host == host {
				j.State, j.Hosts, j.Host, j.Started = cluster.JobWaiting, nil, "", 0
			}
		}
	})
}

func (s *scheduler) Lasting() time.Duration { return s.lasting }

func (s *scheduler) Placeholder(_ context.Context, template string, m backend.Machine) error {
	return s.change("placeholder "+template, func() {
		held := backend.Host{Name: "xce-" + m.Template, Capacity: m.Capacity, State: backend.HostAwaited}
		held.Features = append(slices.Clone(m.Features), "partition:main")
		s.held[template] = held
	})
}

func (s *scheduler) DropPlaceholder(_ context.Context, template string) error {
	return s.change("drop placeholder "+template, func() { delete(s.held, template) })
}

func (s *scheduler) job(id int64) *cluster.Job {
	i := slices.IndexFunc(s.jobs, func(j cluster.Job) bool { return j.ID == id })
	return &s.jobs[i]
}

// end ends a job: it is seen no more.
func (s *scheduler) end(id int64) {
	for name, n := range s.job(id).Tokens {
		s.tokens[name].Used -= n
	}
	s.jobs = slices.DeleteFunc(s.jobs, func(j cluster.Job) bool { return j.ID == id })
}

func (s *scheduler) busy(host string) (n int64) {
	for _, j := range s.jobs {
		if slices.Contains(j.Hosts, host) {
			n++
		}
	}
	return n
}

// submit queues a job of one cpu in the partition main.
func (s *scheduler) submit(tokens int64, told cluster.Told) int64 {
	id := int64(len(s.jobs) + 101)
	for slices.ContainsFunc(s.jobs, func(j cluster.Job) bool { return j.ID == id }) {
		id++
	}
	job := cluster.Job{
		ID: id, User: "ann", State: cluster.JobWaiting, Submitted: s.clock.Now(), Told: &told,
		JobSpec: cluster.JobSpec{CPUs: 1, Constraint: "partition:main"},
	}
	if tokens > 0 {
		job.Tokens = map[string]int64{"vcs": tokens}
	}
	s.jobs = append(s.jobs, job)
	return id
}

// cycle starts the waiting jobs that fit, as the scheduler does by itself.
func (s *scheduler) cycle() {
	for i := range s.jobs {
		if job := &s.jobs[i]; job.State == cluster.JobWaiting && job.Told.Barred == "" {
			s.start(job)
		}
	}
}

func (s *scheduler) start(job *cluster.Job) {
	for name, n := range job.Tokens {
		r := s.tokens[name]
		if r.Ceiling-r.Used-r.Withheld-r.Reserved-r.Elsewhere < n {
			return
		}
	}
	names := []string{}
	for name := range s.hosts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h := s.hosts[name]
		if h.State != backend.HostReady || s.busy(name) >= h.CPUs || !h.Has("partition:main") {
			continue
		}
		for token, n := range job.Tokens {
			s.tokens[token].Used += n
		}
		job.State, job.Host, job.Hosts, job.Started = cluster.JobRunning, name, []string{name}, s.clock.Now()
		return
	}
}

var errAway = errors.New("no answer within 5s")

// onSlurm is a world behind another's scheduler: 2 of at most 12 vcs owned, and two
// hosts of 4 cpus.
func onSlurm(t testing.TB) (*world, *scheduler) {
	t.Helper()
	s := &scheduler{
		hosts: map[string]*backend.Host{}, held: map[string]backend.Host{},
		tokens: map[string]*backend.Resource{"vcs": {Ceiling: 12, Withheld: 10}},
	}
	for _, name := range []string{"n1", "n2"} {
		capacity := cluster.Capacity{CPUs: 4, MemoryMB: 4000, Features: []string{"partition:main"}}
		s.hosts[name] = &backend.Host{Name: name, Capacity: capacity, State: backend.HostReady}
	}
	config := controllertest.Vcs(2, 10)
	config.Backend = s
	config.Hosts = cluster.DefaultHostRules()
	s.clock = controllertest.NewClock()
	w := newWorld(t, config)
	s.clock = w.Clock
	return w, s
}
