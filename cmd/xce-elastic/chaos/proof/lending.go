package proof

import (
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

// account is what one request got of a lender.
type account struct{ granted, returned int64 }

// given answers by how many units a line of a pool changes what may be used of a request. What is reserved counts
// already: it is granted without a line, and the line follows with the next change.
func given(l evidence.LoanLine, reserved map[string]bool) int64 {
	switch l.Change {
	case "reserved":
		reserved[l.Request] = true
		return l.Units
	case "granted":
		if reserved[l.Request] {
			return 0
		}
		return l.Units
	case "returned", "cancelled":
		return -l.Units
	}
	return 0
}

// accounts sums the lines of all lenders by request.
func (c *court) accounts() map[string]account {
	sums := map[string]account{}
	for _, lender := range c.Lenders {
		for _, l := range lender.Lines {
			a := sums[l.Request]
			switch l.Change {
			case "granted":
				a.granted += l.Units
			case "returned":
				a.returned += l.Units
			}
			sums[l.Request] = a
		}
	}
	return sums
}

// lenders holds each pool against its own journal.
func (c *court) lenders() {
	for _, lender := range c.Lenders {
		capacity, out, granted, reserved := map[string]int64{}, map[string]int64{}, map[string]bool{}, map[string]bool{}
		var last cluster.Time
		for i, l := range lender.Lines {
			last = l.At
			if l.Sequence != int64(i+1) {
				c.violated(Conservation, l.At, lender.Name, "line %d of the journal has number %d", i+1, l.Sequence)
			}
			if l.Change == "capacity" {
				capacity[l.Resource] = l.Units
				continue
			}
			out[l.Resource] += given(l, reserved)
			if l.Change == "granted" && granted[l.Request] {
				c.violated(Twice, l.At, l.Request, "%s granted it twice", lender.Name)
			}
			granted[l.Request] = granted[l.Request] || l.Change == "granted"
			if (l.Change == "granted" || l.Change == "reserved") && l.Units > 0 && out[l.Resource] > capacity[l.Resource] && !reserved[l.Request] {
				c.violated(Twice, l.At, l.Request, "%s lends %d %s of %d", lender.Name, out[l.Resource], l.Resource, capacity[l.Resource])
			}
		}
		for _, open := range lender.Open {
			c.violated(Forgotten, last, open.Request, "%s still lends %d units under it", lender.Name, open.Units)
		}
	}
	for request, a := range c.accounts() {
		if a.granted != a.returned {
			c.violated(Forgotten, c.lastOf(request), request, "%d units were lent and %d are back", a.granted, a.returned)
		}
	}
}

// lastOf answers when something was last written about a request.
func (c *court) lastOf(request string) (last cluster.Time) {
	for _, lender := range c.Lenders {
		for _, l := range lender.Lines {
			if l.Request == request {
				last = max(last, l.At)
			}
		}
	}
	for _, m := range c.Makers {
		for _, l := range m.Lines {
			if l.Request == request {
				last = max(last, l.At)
			}
		}
	}
	for _, r := range c.Records {
		if r.Subject == request {
			last = max(last, r.At)
		}
	}
	return last
}

// rows holds the ledger's rows, as they are at the end, against lenders and makers.
func (c *court) rows() {
	sums, known := c.accounts(), map[string]bool{}
	for _, l := range c.Loans {
		known[l.ID] = true
		switch a := sums[l.ID]; {
		case l.Open():
			c.violated(Forgotten, c.lastOf(l.ID), l.ID, "its row is %s at the end", l.State)
		case l.State == "returned" && (l.Granted() != a.granted || l.Returned != a.returned):
			c.violated(Conservation, c.lastOf(l.ID), l.ID, "the ledger says %d granted and %d returned, the lender %d and %d", l.Granted(), l.Returned, a.granted, a.returned)
		}
	}
	for request, a := range sums {
		if a.granted > 0 && !known[request] && strings.HasPrefix(request, "loan/") {
			c.violated(Conservation, c.lastOf(request), request, "%d units were lent, and the ledger has no row", a.granted)
		}
	}
	for _, h := range c.Hosts {
		if h.Open() {
			c.violated(Forgotten, c.lastOf(h.ID), h.ID, "its row is %s at the end", h.State)
		}
	}
}

// intents holds the first word that lenders and makers heard of a request against the row's beginning.
func (c *court) intents() {
	intended := map[string]cluster.Time{}
	for _, r := range c.Records {
		if r.Kind == "loan-intend" || r.Kind == "host-intend" {
			intended[r.Subject] = r.At
		}
	}
	seen := map[string]bool{}
	first := func(by, request string, at cluster.Time) {
		if seen[request] || request == "" {
			return
		}
		seen[request] = true
		switch begun, known := intended[request]; {
		case !known:
			c.violated(Intent, at, request, "%s was asked, and no row was ever begun", by)
		case begun > at:
			c.violated(Intent, at, request, "%s was asked %d ms before the row was begun", by, begun.Sub(at))
		}
	}
	for _, lender := range c.Lenders {
		for _, l := range lender.Lines {
			if l.Change == "granted" || l.Change == "reserved" || l.Change == "refused" {
				first(lender.Name, l.Request, l.At)
			}
		}
	}
	for _, m := range c.Makers {
		for _, l := range m.Lines {
			if l.Change == "requested" || l.Change == "refused" {
				first(m.Name, l.Request, l.At)
			}
		}
	}
}

// counted holds what counts for jobs, as the records say, against what the lender lends, at every moment: the
// total rises after the grant, and falls before the return.
func (c *court) counted() {
	var events []event
	lent, counts, reserved := map[string]int64{}, map[string]int64{}, map[string]bool{}
	check := func(at cluster.Time, request, after string) {
		if counts[request] > lent[request] {
			c.violated(Fence, at, request, "%d units count or are in use and %d are lent, after %s", counts[request], lent[request], after)
		}
	}
	for _, lender := range c.Lenders {
		for _, l := range lender.Lines {
			units := given(l, reserved)
			rank := 0
			if units < 0 {
				rank = 2
			}
			events = append(events, event{l.At, rank, func() {
				lent[l.Request] += units
				check(l.At, l.Request, lender.Name+" noted "+l.Change)
			}})
		}
	}
	for _, r := range c.Records {
		if r.Loan != nil {
			events = append(events, event{r.At, 1, func() {
				counts[r.Subject] = r.Loan.Borrowed + r.Loan.Recalled
				check(r.At, r.Subject, r.Kind)
			}})
		}
	}
	follow(events)
}
