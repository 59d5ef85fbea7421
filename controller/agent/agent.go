// Package agent is a host of the builtin backend: it joins the controller, runs
// the jobs it is assigned, each as its own process group, and reports their ends.
//
// What an agent knows of a job is in the job's folder, written before and by
// the job itself. So jobs outlive the agent: one that starts again finds the
// jobs that run and those that ended meanwhile, and starts none twice.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/controller/api"
)

// Config is what a host says of itself.
type Config struct {
	Host string
	cluster.Capacity
	// Folder keeps a folder per job.
	Folder string
}

const (
	// askFor is how long one call waits for new jobs; it is also the host's sign of life.
	askFor = 15 * time.Second
	// retryAfter is the pause after a call that failed.
	retryAfter = time.Second
)

// Agent runs jobs on this machine.
type Agent struct {
	config     Config
	controller *api.Client
	log        *slog.Logger
	instance   string

	mu   sync.Mutex
	seen map[string]chan struct{} // jobs in hand, by folder; closed where one is to stop
	jobs sync.WaitGroup
}

// New answers an agent; its folder is made where there is none.
func New(config Config, controller *api.Client, log *slog.Logger) (*Agent, error) {
	folder, err := filepath.Abs(config.Folder) // jobs run elsewhere
	if err == nil {
		err = private.Folder(folder)
	}
	if err != nil {
		return nil, fmt.Errorf("make the agent's folder: %w", err)
	}
	config.Folder = folder
	instance, err := instanceOf(folder)
	if err != nil {
		return nil, err
	}
	return &Agent{config: config, controller: controller, log: log, instance: instance, seen: map[string]chan struct{}{}}, nil
}

// instanceOf answers the name that the folder, and so what is known of jobs,
// goes by. It is made with the folder.
func instanceOf(folder string) (string, error) {
	path := filepath.Join(folder, "instance")
	data, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(data)), nil
	}
	instance := uuid.NewString()
	if errors.Is(err, fs.ErrNotExist) {
		err = private.Write(path, []byte(instance+"\n"))
	}
	if err != nil {
		return "", fmt.Errorf("name the agent's folder: %w", err)
	}
	return instance, nil
}

// Run joins and works until ctx ends, or the controller will not have it. Jobs
// that run then run on; but where the host has been given up, they are stopped:
// they may run elsewhere by then.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer a.jobs.Wait()
	defer cancel()
	for {
		err := a.serve(ctx)
		var no *api.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &no) && no.Status == http.StatusNotFound:
			a.log.Warn("the controller does not know this host any more; joining again", "host", a.config.Host)
		case errors.As(err, &no) && no.Status == http.StatusGone:
			a.stopAll()
			return err
		default:
			return err
		}
	}
}

// serve joins and takes jobs until ctx ends or the controller says no.
func (a *Agent) serve(ctx context.Context) error {
	err := a.untilDone(ctx, "join", func() error {
		return a.controller.Join(ctx, a.config.Host, api.JoinHost{
			CPUs: a.config.CPUs, MemoryMB: a.config.MemoryMB, Countables: a.config.Countables,
			Features: a.config.Features, Attributes: a.config.Attributes, Instance: a.instance,
		})
	})
	var next api.Assignments
	for wait := time.Duration(0); err == nil; wait = askFor {
		err = a.untilDone(ctx, "ask for jobs", func() (err error) {
			next, err = a.controller.Assignments(ctx, a.config.Host, next.Revision, wait)
			return err
		})
		for _, job := range next.Jobs {
			a.take(ctx, job)
		}
	}
	return err
}

// untilDone repeats a call of the controller until it succeeds or ctx ends. A
// controller that says no for good ends it too.
func (a *Agent) untilDone(ctx context.Context, what string, call func() error) error {
	failed := false
	for {
		err := call()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case api.Permanent(err):
			return fmt.Errorf("%s: %w", what, err)
		case !failed:
			a.log.Warn("the controller cannot be reached; trying again", "call", what, "error", err)
			failed = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryAfter):
		}
	}
}

// take takes a job in hand, once. A controller that lost its state numbers jobs
// anew, so a job's folder is named by its start too.
func (a *Agent) take(ctx context.Context, job cluster.Job) {
	r := run{job: job}
	r.folder = filepath.Join(a.config.Folder, fmt.Sprintf("%d-%s", job.ID, job.Started.Std().Format("20060102T150405.000")))
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, seen := a.seen[r.folder]; !seen {
		a.begin(ctx, r)
	}
	if job.Stopping {
		a.stop(r.folder)
	}
}

// stop has a job in hand stop.
func (a *Agent) stop(folder string) {
	select {
	case <-a.seen[folder]:
	default:
		close(a.seen[folder])
	}
}

// stopAll stops all jobs, and waits until none is left.
func (a *Agent) stopAll() {
	a.mu.Lock()
	for folder := range a.seen {
		a.stop(folder)
	}
	a.mu.Unlock()
	a.jobs.Wait()
}

// begin carries a job to its end beside others, and reports it.
func (a *Agent) begin(ctx context.Context, r run) {
	stop, job := make(chan struct{}), r.job
	a.seen[r.folder] = stop
	a.jobs.Go(func() {
		end, known := a.carry(ctx, r, stop)
		if !known {
			return // the agent stops; the job runs on
		}
		err := a.untilDone(ctx, fmt.Sprintf("report the end of job %d", job.ID), func() error {
			return a.controller.EndJob(ctx, a.config.Host, job.ID, end)
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			a.log.Error("the end of a job was not taken", "job", job.ID, "error", err)
		}
	})
}

// carry starts the job, or finds it as an earlier agent left it, and waits for its end.
func (a *Agent) carry(ctx context.Context, r run, stop <-chan struct{}) (api.JobEnd, bool) {
	if err := r.start(); err != nil {
		a.log.Warn("job not started", "job", r.job.ID, "error", err)
		return api.JobEnd{State: cluster.JobFailed, ExitCode: 127, Why: err.Error()}, true
	}
	return r.wait(ctx, stop)
}
