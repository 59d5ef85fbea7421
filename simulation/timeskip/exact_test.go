package timeskip_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/simulation/timeskip"
)

const (
	early = iota
	middle
	late
)

func TestAnExactRunOrdersWhatSharesAMillisecond(t *testing.T) {
	var seen []string
	start := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	options := timeskip.Options{Start: start, Exact: &timeskip.Exact{
		Order: []int{early, middle, late, early}, Steps: middle,
		Takes: func(_ string, args []any) time.Duration { return time.Duration(args[0].(int)) * time.Millisecond },
	}}
	timeskip.Run(t, options, func(t *testing.T, h *timeskip.Harness) {
		note := func(what string) {
			seen = append(seen, fmt.Sprintf("%s %s", h.Now().Sub(start).Truncate(time.Millisecond), what))
		}
		h.RegisterActivity(func(_ context.Context, takes int) error {
			note(fmt.Sprintf("activity of %d", takes))
			return nil
		}, "act")
		h.RegisterWorkflow(func(ctx workflow.Context) error {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
			if err := workflow.Sleep(ctx, time.Second); err != nil {
				return err
			}
			note("timer")
			err := workflow.ExecuteActivity(ctx, "act", 30).Get(ctx, nil)
			note("answer")
			return err
		}, "wait")
		if err := h.Start("wait", "wait"); err != nil {
			t.Fatal(err)
		}
		at := func(d time.Duration, rank int, what string, then func()) {
			h.AtRank(start.Add(d), rank, func() {
				note(what)
				if then != nil {
					then()
				}
			})
		}
		at(time.Second, late, "late", func() {
			at(time.Second, early, "early once more", nil)
			at(time.Second, middle, "middle in the next round", nil)
		})
		at(time.Second, middle, "middle", nil)
		at(time.Second, early, "early", nil)
		at(time.Second, early, "early, second", nil)
		at(1030*time.Millisecond, early, "as the answer comes", nil)
	})
	want := []string{
		"1s early", "1s early, second", "1s middle", "1s timer", "1s late", "1s early once more", "1s middle in the next round",
		"1.015s activity of 30", "1.03s as the answer comes", "1.03s answer",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen\n%q\nwant\n%q", seen, want)
	}
}
