package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
)

func jobChange(job cluster.Job, why string) api.Change {
	return api.Change{Kind: api.KindJob, Subject: fmt.Sprintf("%d", job.ID), Why: why}
}

// Submit queues a job. One that can never run is refused, naming the limit.
func (s *Service) Submit(ctx context.Context, actor string, spec cluster.JobSpec) (cluster.Job, error) {
	var job cluster.Job
	if err := s.scheduledElsewhere("submit the job there"); err != nil {
		return job, err
	}
	err := s.add(ctx, actor, func(w *work) error {
		stored, err := w.Resources()
		if err != nil {
			return err
		}
		resources := make([]cluster.SharedResource, len(stored))
		for i, r := range stored {
			resources[i] = r.Resource
		}
		joined, err := w.Hosts()
		if err != nil {
			return err
		}
		hosts := make([]cluster.Host, len(joined))
		for i, h := range joined {
			hosts[i] = h.Host
		}
		templates, err := w.Templates()
		if err != nil {
			return err
		}
		for _, t := range templates {
			hosts = append(hosts, cluster.Host{Name: t.Name, Capacity: t.Believed()})
		}
		problems := append(spec.Validate(resources, hosts), unsupported(spec)...)
		if err := w.awaited(spec, &problems); err != nil {
			return err
		}
		if err := problems.Err(); err != nil {
			return err
		}
		_, user, _ := strings.Cut(actor, "/")
		job = cluster.Job{JobSpec: spec, User: user, State: cluster.JobWaiting, Submitted: w.now, Why: "waits for the next session"}
		if err := w.AddJob(&job); err != nil {
			return err
		}
		return w.record(jobChange(job, "submitted"), nil, job)
	})
	return job, err
}

// unsupported finds what the builtin backend cannot do.
func unsupported(spec cluster.JobSpec) (ps cluster.Problems) {
	if spec.Nodes > 1 {
		ps = append(ps, cluster.Problem{
			Path: "nodes", What: fmt.Sprintf("the builtin backend runs a job on one host, not on %d", spec.Nodes),
			Remedy: "submit one job for each host, or ask for what one host has",
		})
	}
	if spec.Array > 0 {
		ps = append(ps, cluster.Problem{Path: "array", What: "the builtin backend takes no arrays", Remedy: "submit one job for each element"})
	}
	return ps
}

// awaited finds jobs to come after that there are not.
func (w *work) awaited(spec cluster.JobSpec, ps *cluster.Problems) error {
	if len(*ps) > 0 {
		return nil
	}
	for i, id := range spec.After {
		_, found, err := w.Job(id)
		if err != nil {
			return err
		}
		if !found {
			*ps = append(*ps, cluster.Problem{Path: fmt.Sprintf("after[%d]", i), What: fmt.Sprintf("there is no job %d", id), Remedy: "name one that `xce-elastic jobs` lists"})
		}
	}
	return nil
}

// Jobs lists jobs: all, or those in one state.
func (s *Service) Jobs(ctx context.Context, state cluster.JobState) (jobs []cluster.Job, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		w := s.work(tx, "")
		if state == "" {
			jobs, err = w.Jobs()
		} else {
			jobs, err = w.Jobs(state)
		}
		return err
	})
	return jobs, err
}

// EndJob takes a host's report of a job's end, and frees its tokens. The same
// report again changes nothing. A job that was stopped to wait again does so.
func (s *Service) EndJob(ctx context.Context, peer pki.Peer, id int64, end api.JobEnd) error {
	if !end.State.Ended() && end.State != cluster.JobWaiting {
		return refuse(http.StatusUnprocessableEntity, "job %d cannot end as %q", id, end.State)
	}
	return s.update(ctx, peer.String(), func(w *work) error {
		job, found, err := w.Job(id)
		if err != nil {
			return err
		}
		host, joined, err := w.Host(peer.Name)
		if err != nil {
			return err
		}
		if !found || job.Host != peer.Name || joined && peer.ID != "" && host.Host.ID != peer.ID {
			return refuse(http.StatusNotFound, "job %d is not on host %s", id, peer.Name)
		}
		if job.State.Ended() {
			return nil
		}
		if end.State == cluster.JobWaiting && !job.Stopping {
			return refuse(http.StatusUnprocessableEntity, "job %d was not stopped and cannot wait again", id)
		}
		if end.State == cluster.JobWaiting {
			err = w.requeue(job, end.Why)
		} else {
			err = w.endJob(job, end)
		}
		if err != nil {
			return err
		}
		return errors.Join(w.loaded(peer.Name), w.assign(peer.Name))
	})
}

func (w *work) endJob(job cluster.Job, end api.JobEnd) error {
	before := job
	job.State, job.ExitCode, job.Ended, job.Why, job.Stopping = end.State, end.ExitCode, w.now, end.Why, false
	if err := w.SaveJob(job); err != nil {
		return err
	}
	return w.record(jobChange(job, end.Why), before, job)
}
