//go:build e2e

package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

type story = evidence.Story

// outside reads what lenders, makers and jobs wrote down themselves.
func (f *farm) outside() (e evidence.Evidence, err error) {
	for _, p := range f.providers {
		if p.pool {
			l, err := evidence.ReadLender(p.Name, p.place)
			if err != nil {
				return e, err
			}
			e.Lenders = append(e.Lenders, l)
			continue
		}
		m, err := evidence.ReadMaker(p.Name, filepath.Join(p.place, "local.json"))
		if err != nil {
			return e, err
		}
		for pid, command := range processesOf(p.place) {
			m.Left = append(m.Left, fmt.Sprintf("%d %s", pid, command))
		}
		e.Makers = append(e.Makers, m)
	}
	e.Marks, err = evidence.ReadMarks(f.marks())
	return e, err
}

// collect collects all evidence of the run.
func (f *farm) collect(ctx context.Context, began time.Time, submitted []evidence.Submission) (evidence.Evidence, error) {
	e, err := f.outside()
	if err != nil {
		return e, err
	}
	e.Seed, e.Began, e.Ended, e.Submitted = f.seed, cluster.TimeOf(began), cluster.TimeOf(time.Now()), submitted
	f.mu.Lock()
	e.Faults = slices.SortedFunc(slices.Values(f.faults), func(a, b evidence.Fault) int { return cmp.Compare(a.At, b.At) })
	f.mu.Unlock()
	c := f.admin()
	loans, err1 := c.Loans(ctx, true)
	hosts, err2 := c.ElasticHosts(ctx, true)
	jobs, err3 := c.Jobs(ctx, "")
	stories, err4 := f.listStories(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return e, err
	}
	e.Stories = stories
	e.Loans, err1 = evidence.Rows[evidence.Loan](loans)
	e.Hosts, err2 = evidence.Rows[evidence.Host](hosts)
	e.Jobs, err3 = evidence.Rows[evidence.Job](jobs)
	for after := int64(0); ; {
		page, err := c.Changes(ctx, after, 0)
		if err != nil {
			return e, err
		}
		if len(page.Changes) == 0 {
			return e, errors.Join(err1, err2, err3)
		}
		after = page.Revision
		for _, change := range page.Changes {
			r, err := evidence.ReadRecord(change)
			if err != nil {
				return e, err
			}
			e.Records = append(e.Records, r)
		}
	}
}
