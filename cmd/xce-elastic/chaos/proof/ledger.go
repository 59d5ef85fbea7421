package proof

import (
	"fmt"
	"strings"

	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

// subject names a job.
func subject(job int64) string { return fmt.Sprintf("job %d", job) }

// books are what the records come to, one by one.
type books struct {
	owned map[string]int64
	loans map[string]evidence.Loan
	jobs  map[int64]evidence.Job
}

func (b *books) sum(resource string, of func(evidence.Loan) int64) (n int64) {
	for _, l := range b.loans {
		if l.Resource == resource {
			n += of(l)
		}
	}
	return n
}

func (b *books) total(resource string) int64 {
	return b.owned[resource] + b.sum(resource, func(l evidence.Loan) int64 { return l.Borrowed })
}

func (b *books) inUse(resource string) (n int64) {
	for _, j := range b.jobs {
		if j.State == "running" {
			n += j.Tokens[resource]
		}
	}
	return n
}

// replay follows the audit records: totals are sums at every moment, no start uses more than there is, and no
// fence takes what is in use.
func (c *court) replay() {
	b := &books{owned: map[string]int64{}, loans: map[string]evidence.Loan{}, jobs: map[int64]evidence.Job{}}
	var last int64
	for _, r := range c.Records {
		if r.Revision <= last {
			c.violated(Totals, r.At, r.Subject, "revision %d follows %d", r.Revision, last)
		}
		last = r.Revision
		before := b.total(r.Resource)
		b.take(r)
		c.starts(b, r)
		if r.Kind == "loan-fence" && r.Loan != nil {
			here := b.total(r.Resource) + b.sum(r.Resource, func(l evidence.Loan) int64 { return l.Recalled })
			if used := b.inUse(r.Resource); used > here {
				c.violated(Fence, r.At, r.Subject, "it was fenced to %d %s here, of which jobs use %d", here, r.Resource, used)
			}
		}
		if r.Resource != "" && (r.TotalBefore != before || r.TotalAfter != b.total(r.Resource)) {
			c.violated(Totals, r.At, r.Subject, "revision %d: the total of %s is recorded as %d and then %d, the rows come to %d and then %d",
				r.Revision, r.Resource, r.TotalBefore, r.TotalAfter, before, b.total(r.Resource))
		}
	}
}

func (b *books) take(r evidence.Record) {
	switch {
	case r.Shared != nil:
		b.owned[r.Subject] = r.Shared.Owned
	case r.Loan != nil:
		b.loans[r.Subject] = *r.Loan
	case r.Job != nil:
		b.jobs[r.Job.ID] = *r.Job
	}
}

// starts checks a job's start against what is there.
func (c *court) starts(b *books, r evidence.Record) {
	if r.Job == nil || r.Job.State != "running" {
		return
	}
	for resource := range r.Job.Tokens {
		if used, total := b.inUse(resource), b.total(resource); used > total {
			c.violated(Twice, r.At, subject(r.Job.ID), "it was started, and jobs use %d of %d %s", used, total, resource)
		}
	}
}

// leases checks that the epoch of each provider's lease rises with every new holder, and that who changes
// something for a provider holds its lease then. Records are in the order of their transactions.
func (c *court) leases() {
	held := map[string]evidence.Lease{}
	for _, r := range c.Records {
		if l := r.Lease; l != nil {
			before := held[l.Provider]
			anew := l.Holder != "" && (l.Holder != before.Holder || l.Instance != before.Instance)
			if l.Epoch < before.Epoch || anew && l.Epoch == before.Epoch {
				c.violated(Epochs, r.At, l.Provider, "its lease goes from %s with epoch %d to %s with epoch %d", name(before), before.Epoch, name(*l), l.Epoch)
			}
			held[l.Provider] = *l
			continue
		}
		who, isProvisioner := strings.CutPrefix(r.Actor, "provisioner/")
		if !isProvisioner || r.Provider == "" || len(held) == 0 {
			continue
		}
		if lease := held[r.Provider]; lease.Holder != who {
			c.violated(Epochs, r.At, r.Subject, "%s wrote %s, revision %d, and the lease of %s is held by %s", who, r.Kind, r.Revision, r.Provider, name(lease))
		}
	}
}

// name names the holder of a lease.
func name(l evidence.Lease) string {
	if l.Holder == "" {
		return "no one"
	}
	return l.Holder
}

// stories checks that the workflow of every loan and host has ended well, and that each row had one.
func (c *court) stories() {
	ended := map[string]bool{}
	for _, s := range c.Stories {
		switch s.Status {
		case "Completed":
			ended[s.ID] = true
		case "ContinuedAsNew":
		default:
			c.violated(Stories, c.lastOf(s.ID), s.ID, "its workflow is %s", s.Status)
		}
	}
	for _, l := range c.Loans {
		if !ended[l.ID] {
			c.violated(Stories, c.lastOf(l.ID), l.ID, "no workflow of it has ended, and its row is %s", l.State)
		}
	}
	for _, h := range c.Hosts {
		if !ended[h.ID] {
			c.violated(Stories, c.lastOf(h.ID), h.ID, "no workflow of it has ended, and its row is %s", h.State)
		}
	}
}
