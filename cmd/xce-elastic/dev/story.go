package dev

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// workload is a dozen jobs of 2 cpus: how many tokens each takes, and for how long.
var workload = []struct {
	tokens  int64
	seconds int
}{{1, 8}, {2, 10}, {3, 9}, {1, 7}, {2, 8}, {3, 11}, {1, 9}, {2, 7}, {2, 9}, {3, 8}, {1, 10}, {2, 8}}

const (
	// neighbourUnits are what the second cluster takes of the pool, and for how long.
	neighbourUnits = 2
	neighbourFor   = 15 * time.Second
	refresh        = 300 * time.Millisecond
	jobCPUs        = 2
)

// tell runs the workload to its end: until every job has ended, every loan is
// closed and the total is what the cluster owns.
func (f *farm) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storyLimit)
	defer cancel()
	began, err := f.controller.Status(ctx)
	if err != nil {
		return err
	}
	giveBack, err := f.neighbourTakes(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	ids, err := f.submit(ctx)
	if err != nil {
		return err
	}
	show := f.newScreen(ctx)
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	returnAt := time.Now().Add(neighbourFor)
	for {
		s, err := f.look(ctx)
		if err != nil {
			return errors.Join(err, show.close())
		}
		show.draw(s)
		if s.over(ids) {
			break
		}
		if time.Now().After(returnAt) {
			giveBack()
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the story did not end: %w", context.Cause(ctx)), show.close())
		case <-tick.C:
		}
		if err := f.healthy(); err != nil {
			return errors.Join(err, show.close())
		}
	}
	if err := show.close(); err != nil {
		return err
	}
	return f.report(ctx, began.Revision, ids)
}

// neighbourTakes lets the second cluster draw on the pool, where it has
// something to give; the answered function gives it back. What an earlier run
// left with the second cluster goes back first.
func (f *farm) neighbourTakes(ctx context.Context) (giveBack func(), err error) {
	pool, err := f.poolAs(neighbour)
	if err != nil {
		return nil, err
	}
	giveBack = func() {
		ctx := context.WithoutCancel(ctx)
		left, _ := pool.List(ctx)
		for _, g := range left.Grants {
			pool.Return(ctx, providers.ReturnIn{RequestID: g.RequestID, Units: g.Units, Remaining: 0})
		}
	}
	giveBack()
	id := fmt.Sprintf("%s-%d", neighbour, time.Now().UnixNano())
	_, outcome := pool.Request(ctx, providers.RequestIn{RequestID: id, Resource: resource, Units: neighbourUnits})
	if outcome.Status == providers.StatusUnknown {
		return nil, fmt.Errorf("the second cluster got no answer of the pool: %s", outcome.Message)
	}
	return sync.OnceFunc(giveBack), nil
}

func (f *farm) submit(ctx context.Context) (ids []int64, err error) {
	for i, w := range workload {
		job, err := f.controller.Submit(ctx, cluster.JobSpec{
			Name: fmt.Sprintf("regression-%d", i+1), CPUs: jobCPUs, Tokens: map[string]int64{resource: w.tokens},
			Command: []string{"sleep", fmt.Sprint(w.seconds)},
		})
		if err != nil {
			return nil, fmt.Errorf("submit job %d of the workload: %w", i+1, err)
		}
		ids = append(ids, job.ID)
	}
	return ids, nil
}

// snapshot is the cluster at one moment, as the view shows it.
type snapshot struct {
	status api.Status
	loans  []cluster.Loan
	hosts  []cluster.ElasticHost
	jobs   []cluster.Job
}

func (f *farm) look(ctx context.Context) (s snapshot, err error) {
	if s.status, err = f.controller.Status(ctx); err != nil {
		return s, err
	}
	if s.loans, err = f.controller.Loans(ctx, false); err != nil {
		return s, err
	}
	if s.hosts, err = f.controller.ElasticHosts(ctx, false); err != nil {
		return s, err
	}
	s.jobs, err = f.controller.Jobs(ctx, "")
	return s, err
}

// over tells whether the jobs have ended and the cluster is as it was.
func (s snapshot) over(ids []int64) bool {
	if len(s.loans)+len(s.hosts) > 0 {
		return false
	}
	ended := 0
	for _, j := range s.jobs {
		if j.ID >= ids[0] && j.ID <= ids[len(ids)-1] && j.State.Ended() {
			ended++
		}
	}
	return ended == len(ids)
}
