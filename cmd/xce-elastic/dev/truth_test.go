//go:build e2e

package dev

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/workflows"
)

// journal is what the pool itself wrote down, line by line: the outside truth.
type journal []struct {
	Sequence int64  `json:"sequence"`
	Cluster  string `json:"cluster"`
	Request  string `json:"request"`
	Change   string `json:"change"`
	Units    int64  `json:"units"`
	Free     int64  `json:"free"`
}

func (f *farm) journal(tb testing.TB) (j journal) {
	tb.Helper()
	data, err := os.ReadFile(f.path("pool.json.log"))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		entry := journal{{}}
		if err := json.Unmarshal(line, &entry[0]); err != nil {
			tb.Fatalf("journal line %q: %v", line, err)
		}
		j = append(j, entry[0])
	}
	return j
}

// account is what the pool gave and got back under one request.
type account struct{ granted, returned int64 }

// accounts sums the journal by request of our cluster, and checks the pool's own sums.
func (j journal) accounts(tb testing.TB) map[string]account {
	tb.Helper()
	sums := map[string]account{}
	for i, e := range j {
		if e.Sequence != int64(i+1) {
			tb.Errorf("journal: line %d has sequence %d", i+1, e.Sequence)
		}
		if e.Free < 0 {
			tb.Errorf("journal: sequence %d: %d units lent twice", e.Sequence, -e.Free)
		}
		if e.Cluster != "east" {
			continue
		}
		a := sums[e.Request]
		switch e.Change {
		case "granted":
			if a.granted > 0 {
				tb.Errorf("journal: request %s was granted twice", e.Request)
			}
			a.granted = e.Units
		case "returned":
			a.returned += e.Units
		}
		sums[e.Request] = a
	}
	return sums
}

// settled tells whether nothing is going on any more: no job, no loan, no workflow.
func (f *farm) settled(ctx context.Context) error {
	st, err := f.controller.Status(ctx)
	if err != nil {
		return err
	}
	if st.Jobs.Waiting+st.Jobs.Running > 0 {
		return fmt.Errorf("jobs: %d waiting, %d running", st.Jobs.Waiting, st.Jobs.Running)
	}
	loans, err := f.controller.Loans(ctx, false)
	if err != nil {
		return err
	}
	if len(loans) > 0 {
		return fmt.Errorf("%d loans are open: %+v", len(loans), loans[0])
	}
	return nil
}

// checkTruth checks that pool, ledger, workflows and jobs agree once all is over.
func (f *farm) checkTruth(tb testing.TB, jobs int) {
	tb.Helper()
	loans, err := f.controller.Loans(tb.Context(), true)
	if err != nil {
		tb.Fatal(err)
	}
	pool := f.journal(tb).accounts(tb)
	for id, a := range pool {
		if a.granted != a.returned {
			tb.Errorf("pool: of %s %d were granted and %d returned", id, a.granted, a.returned)
		}
	}
	for _, l := range loans {
		if l.State == cluster.LoanReturned && (l.Granted() != pool[l.ID].granted || l.Returned != l.Granted()) {
			tb.Errorf("ledger: %s granted %d and returned %d, the pool granted %d", l.ID, l.Granted(), l.Returned, pool[l.ID].granted)
		}
	}
	f.checkStories(tb, workflows.LoanName)
	f.checkAudit(tb)
	f.checkJobs(tb, jobs)
}

// checkStories checks that no story of a kind is left open.
func (f *farm) checkStories(tb testing.TB, kind string) {
	tb.Helper()
	c := f.connect(tb)
	query := fmt.Sprintf(`XceKind=%q AND ExecutionStatus!="Completed"`, kind)
	eventually(tb, time.Minute, func() error {
		open, err := c.ListWorkflow(tb.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err != nil {
			return err
		}
		for _, e := range open.GetExecutions() {
			if e.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
				return fmt.Errorf("workflow %s is %s", e.GetExecution().GetWorkflowId(), e.GetStatus())
			}
		}
		return nil
	})
	if _, err := c.DescribeWorkflow(tb.Context(), workflows.ProviderID(poolName), ""); err != nil {
		tb.Errorf("the provider's story: %v", err)
	}
}

// books follows the audit records, one by one.
type books struct {
	owned  int64
	loans  map[string]cluster.Loan
	jobs   map[string]cluster.Job
	faults []error
}

func (b *books) sum(of func(cluster.Loan) int64) (n int64) {
	for _, l := range b.loans {
		n += of(l)
	}
	return n
}

func (b *books) total() int64 {
	return b.owned + b.sum(func(l cluster.Loan) int64 { return l.Borrowed })
}

func (b *books) inUse() (n int64) {
	for _, j := range b.jobs {
		if j.State == cluster.JobRunning {
			n += j.Tokens[resource]
		}
	}
	return n
}

func (b *books) fault(c api.Change, format string, args ...any) {
	b.faults = append(b.faults, fmt.Errorf("revision %d, %s %s: %s", c.Revision, c.Kind, c.Subject, fmt.Sprintf(format, args...)))
}

// follow takes one record over, and checks what must hold after it.
func (b *books) follow(c api.Change) {
	before := b.total()
	switch {
	case c.Kind == api.KindResource:
		var r cluster.SharedResource
		b.read(c, &r)
		b.owned = r.Owned
	case c.Kind == api.KindJob:
		var j cluster.Job
		b.read(c, &j)
		b.jobs[c.Subject] = j
		if j.State == cluster.JobRunning && b.inUse() > b.total() {
			b.fault(c, "a start brings in use to %d of %d", b.inUse(), b.total())
		}
	case strings.HasPrefix(c.Kind, api.KindLoanWrite):
		var l cluster.Loan
		b.read(c, &l)
		b.loans[c.Subject] = l
		here := b.total() + b.sum(func(l cluster.Loan) int64 { return l.Recalled })
		if c.Kind == api.KindLoanWrite+"fence" && b.inUse() > here {
			b.fault(c, "an in-use token was fenced: %d in use, %d here", b.inUse(), here)
		}
	}
	if c.Resource == "" {
		return
	}
	if c.TotalBefore != before || c.TotalAfter != b.total() {
		b.fault(c, "total %d -> %d is recorded, the rows say %d -> %d", c.TotalBefore, c.TotalAfter, before, b.total())
	}
}

func (b *books) read(c api.Change, into any) {
	if err := json.Unmarshal(c.After, into); err != nil {
		b.fault(c, "%v", err)
	}
}

// checkAudit follows all audit records: totals are sums at every moment, and no
// in-use token was ever fenced.
func (f *farm) checkAudit(tb testing.TB) {
	tb.Helper()
	b := &books{loans: map[string]cluster.Loan{}, jobs: map[string]cluster.Job{}}
	for after := int64(0); ; {
		page, err := f.controller.Changes(tb.Context(), after, 0)
		if err != nil {
			tb.Fatal(err)
		}
		if len(page.Changes) == 0 {
			break
		}
		after = page.Revision
		for _, c := range page.Changes {
			b.follow(c)
		}
	}
	if err := errors.Join(b.faults...); err != nil {
		tb.Error(err)
	}
}

// checkJobs checks that every job ran exactly once: each wrote its number to a file.
func (f *farm) checkJobs(tb testing.TB, jobs int) {
	tb.Helper()
	file, err := os.Open(f.path("jobs.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	runs := map[int64]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		id, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			tb.Errorf("line %q of the jobs: %v", lines.Text(), err)
		}
		runs[id]++
	}
	if len(runs) != jobs {
		tb.Errorf("%d jobs ran, %d were submitted", len(runs), jobs)
	}
	for id, n := range runs {
		if n != 1 {
			tb.Errorf("job %d ran %d times", id, n)
		}
	}
}
