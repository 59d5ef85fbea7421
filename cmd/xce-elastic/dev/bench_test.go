//go:build e2e

package dev

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
)

//go:embed testdata/bench.yaml
var benchCluster string

var benchFarm = example{Cluster: benchCluster, Units: 1000, Hold: 0}

// loansAtOnce is how many loans one round of the benchmark has.
const loansAtOnce = 60

// BenchmarkLoans measures loans from waiting job to closed loan, end to end,
// beside a workflow that does nothing with as many activities, on the same
// server in the same run. The ratio is the cost of a loan in units of that.
func BenchmarkLoans(b *testing.B) {
	f := startFarm(b, benchFarm)
	c := f.connect(b)
	steps := 0
	var loans, idle time.Duration
	for b.Loop() {
		loans += f.timeLoans(b)
		if steps == 0 {
			steps = f.activitiesOfALoan(b, c)
		}
		idle += timeNothing(b, c, steps, loansAtOnce)
	}
	all := float64(b.N * loansAtOnce)
	b.ReportMetric(all/loans.Seconds(), "loans/s")
	b.ReportMetric(all/idle.Seconds(), "no-ops/s")
	b.ReportMetric(loans.Seconds()/idle.Seconds(), "loan/no-op")
	b.ReportMetric(float64(steps), "activities/loan")
	b.ReportMetric(0, "ns/op")
}

func (f *farm) timeLoans(b *testing.B) time.Duration {
	before, err := f.controller.Loans(b.Context(), true)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for range loansAtOnce {
		f.submitOne(b)
	}
	eventually(b, 2*time.Minute, func() error {
		if err := f.settled(b.Context()); err != nil {
			return err
		}
		now, err := f.controller.Loans(b.Context(), true)
		if err == nil && len(now) == len(before) {
			err = fmt.Errorf("no loan yet")
		}
		return err
	})
	return time.Since(began)
}

func (f *farm) submitOne(b *testing.B) cluster.Job {
	job, err := f.controller.Submit(b.Context(), cluster.JobSpec{CPUs: 1, Tokens: map[string]int64{resource: 1}, Command: []string{"true"}})
	if err != nil {
		b.Fatal(err)
	}
	return job
}

// activitiesOfALoan counts the activities of the first loan, and its start.
func (f *farm) activitiesOfALoan(b *testing.B, c client.Client) int {
	loans, err := f.controller.Loans(b.Context(), true)
	if err != nil || len(loans) == 0 {
		b.Fatal("no loans", err)
	}
	return f.activitiesOf(b, c, loans[0].ID)
}

// activitiesOf counts the activities of a loan or host, and its start.
func (f *farm) activitiesOf(b *testing.B, c client.Client, id string) int {
	n := 1 // the activity that started it
	for history := c.GetWorkflowHistory(b.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
		event, err := history.Next()
		if err != nil {
			b.Fatal(err)
		}
		if event.GetEventType() == enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			n++
		}
	}
	return n
}

// timeNothing runs so many workflows at once that do nothing, in `steps` activities each.
func timeNothing(b *testing.B, c client.Client, steps, atOnce int) time.Duration {
	const queue = "nothing"
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		for range steps {
			if err := workflow.ExecuteActivity(ctx, "nothing").Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	}, workflow.RegisterOptions{Name: "nothing"})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "nothing"})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	began := time.Now()
	var runs []client.WorkflowRun
	for range atOnce {
		run, err := c.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{TaskQueue: queue}, "nothing")
		if err != nil {
			b.Fatal(err)
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		if err := run.Get(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// BenchmarkBorrow measures the time from a job's submission to the raised
// total, without the time that the provider's script takes, one job at a time.
func BenchmarkBorrow(b *testing.B) {
	f := startFarm(b, benchFarm)
	c := f.connect(b)
	var ours []time.Duration
	for b.Loop() {
		job := f.submitOne(b)
		eventually(b, time.Minute, func() error { return f.settled(b.Context()) })
		ours = append(ours, f.raisedAfter(b, c, job))
	}
	slices.Sort(ours)
	b.ReportMetric(float64(ours[len(ours)/2].Milliseconds()), "ms-median")
	b.ReportMetric(float64(ours[len(ours)-1].Milliseconds()), "ms-max")
	b.ReportMetric(0, "ns/op")
}

// raisedAfter answers how long after a job's submission its loan was in the
// total, less the run time of the provider's script.
func (f *farm) raisedAfter(b *testing.B, c client.Client, job cluster.Job) time.Duration {
	loans, err := f.controller.Loans(b.Context(), true)
	if err != nil {
		b.Fatal(err)
	}
	i := slices.IndexFunc(loans, func(l cluster.Loan) bool { return slices.Contains(l.Jobs, job.ID) && l.Committed > 0 })
	if i < 0 {
		b.Fatalf("job %d had no loan", job.ID)
	}
	return loans[i].Committed.Sub(job.Submitted).Std() - scriptTime(b, c, loans[i].ID)
}

// scriptTime answers how long the request's activity ran.
func scriptTime(b *testing.B, c client.Client, loan string) time.Duration {
	var scheduled, started int64
	var began time.Time
	for history := c.GetWorkflowHistory(b.Context(), loan, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
		event, err := history.Next()
		if err != nil {
			b.Fatal(err)
		}
		switch event.GetEventType() {
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			if event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == activities.ProviderRequest {
				scheduled = event.GetEventId()
			}
		case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			if scheduled > 0 && event.GetActivityTaskStartedEventAttributes().GetScheduledEventId() == scheduled {
				started, began = event.GetEventId(), event.GetEventTime().AsTime()
			}
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			if started > 0 && event.GetActivityTaskCompletedEventAttributes().GetStartedEventId() == started {
				return event.GetEventTime().AsTime().Sub(began)
			}
		}
	}
	b.Fatalf("%s: the request's activity is not in the history", loan)
	return 0
}
