package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/plain"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// report prints every change of the total and the balance, and answers an error
// where the books of cluster and lender do not agree, or a job failed.
func (f *farm) report(ctx context.Context, after int64, ids []int64) error {
	if err := f.totals(ctx, after); err != nil {
		return err
	}
	loans, err := f.controller.Loans(ctx, true)
	if err != nil {
		return err
	}
	jobs, err := f.controller.Jobs(ctx, "")
	if err != nil {
		return err
	}
	pool, err := f.poolAs("east")
	if err != nil {
		return err
	}
	listed, outcome := pool.List(ctx)
	if outcome.Status != providers.StatusOK {
		return fmt.Errorf("the pool could not be asked what it still lends: %s %s", outcome.Status, outcome.Message)
	}
	b := balanceOf(loans, listed.Grants, jobs, ids)
	hosts, err := f.hostBalance(ctx)
	if err != nil {
		return err
	}
	b.print(f.Out)
	hosts.print(f.Out)
	return errors.Join(b.check(len(ids)), hosts.check())
}

// totals prints every change of a total since a revision.
func (f *farm) totals(ctx context.Context, after int64) error {
	w := tabwriter.NewWriter(f.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nEvery change of the total:\nWHEN\tRESOURCE\tFROM\tTO\tWHAT\tWHY")
	for {
		page, err := f.controller.Changes(ctx, after, 0)
		if err != nil {
			return err
		}
		if len(page.Changes) == 0 {
			return w.Flush()
		}
		after = page.Revision
		for _, c := range page.Changes {
			if c.TotalBefore != c.TotalAfter {
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", c.At.Clock(), c.Resource, c.TotalBefore, c.TotalAfter, c.Subject, plain.Line(why(c)))
			}
		}
	}
}

func why(c api.Change) string {
	if c.Why == "" {
		return c.Kind
	}
	return c.Why
}

// balance is what came, what went, and what is missing.
type balance struct {
	borrowed, returned, held, lent int64
	loans, done, failed            int
}

func balanceOf(loans []cluster.Loan, listed []providers.Grant, jobs []cluster.Job, ids []int64) balance {
	b := balance{}
	for _, l := range loans {
		if l.Granted() > 0 {
			b.loans++
		}
		b.borrowed += l.Granted()
		b.returned += l.Returned
		b.held += l.Held()
	}
	for _, g := range listed {
		b.lent += g.Units
	}
	for _, j := range jobs {
		switch {
		case j.ID < ids[0] || j.ID > ids[len(ids)-1]:
		case j.State == cluster.JobDone:
			b.done++
		case j.State.Ended():
			b.failed++
		}
	}
	return b
}

// lost is what the lender believes we have beyond what our books hold.
func (b balance) lost() int64 { return b.lent - b.held }

func (b balance) print(out io.Writer) {
	fmt.Fprintf(out, "\nBalance: %d tokens borrowed in %d loans, %d returned, %d held, %d lost; %d jobs done, %d failed.\n",
		b.borrowed, b.loans, b.returned, b.held, b.lost(), b.done, b.failed)
}

func (b balance) check(jobs int) error {
	switch {
	case b.lost() != 0:
		return fmt.Errorf("the pool lists %d tokens lent to us, our books hold %d", b.lent, b.held)
	case b.borrowed != b.returned+b.held:
		return fmt.Errorf("%d tokens were borrowed, but %d returned and %d held", b.borrowed, b.returned, b.held)
	case b.borrowed == 0:
		return fmt.Errorf("nothing was borrowed: the story was not told")
	case b.done != jobs:
		return fmt.Errorf("%d of %d jobs are done", b.done, jobs)
	}
	return nil
}
