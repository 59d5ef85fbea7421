package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/scenario"
)

// A scenario is what is known at one or several moments, and what is decided.
func TestEveryScenarioEndsAsWritten(t *testing.T) {
	scenario.Play(t, "testdata", answer)
}

// question is what one step of a scenario asks: one or more of borrowing, a
// grant, a refusal and giving back.
type question struct {
	Now      cluster.Time `json:"now"`
	Borrow   *View        `json:"borrow"`
	Grant    *grant       `json:"grant"`
	Refusal  *refusal     `json:"refusal"`
	GiveBack *giveBack    `json:"give_back"`
}

// grant is a loan that is granted now.
type grant struct {
	cluster.Terms
	Own cluster.Duration `json:"own_minimum_hold"`
}

// refusal is the n-th refusal in a row.
type refusal struct {
	Number     int64            `json:"number"`
	RetryAfter cluster.Duration `json:"retry_after"`
}

// giveBack is what all loans of one resource ask again and again.
type giveBack struct {
	IdleTime cluster.Duration  `json:"idle_time"`
	Idle     cluster.IdleClock `json:"idle"`
	Loans    []cluster.Loan    `json:"loans"`
}

// answer says all that is decided, a line each.
func answer(q question) string {
	var b strings.Builder
	if q.Borrow != nil {
		borrowed(&b, *q.Borrow, q.Now)
	}
	if q.Grant != nil {
		fmt.Fprintf(&b, "held until %s\n", HoldUntil(q.Grant.Terms, q.Grant.Own, q.Now).Clock())
	}
	if q.Refusal != nil {
		wait := Backoff(q.Refusal.Number, q.Refusal.RetryAfter)
		fmt.Fprintf(&b, "left alone for %s, until %s\n", wait, q.Now.Add(wait).Clock())
	}
	if q.GiveBack != nil {
		givenBack(&b, *q.GiveBack, q.Now)
	}
	return b.String()
}

func borrowed(b *strings.Builder, view View, now cluster.Time) {
	plans := Borrow(view, now)
	for _, p := range plans {
		jobs := "job " + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Demand.Jobs), " ", ", job "), "[]")
		fmt.Fprintf(b, "borrow %d %s from %s for %s\n", p.Units, p.Demand.Resource, view.Provider, jobs)
	}
	if len(plans) == 0 {
		fmt.Fprintln(b, "borrow nothing")
	}
}

// givenBack asks for every loan, those first that go back first.
func givenBack(b *strings.Builder, g giveBack, now cluster.Time) {
	loans := ReturnOrder(g.Loans)
	for _, l := range g.Loans {
		if !slices.ContainsFunc(loans, func(held cluster.Loan) bool { return held.ID == l.ID }) {
			loans = append(loans, l)
		}
	}
	for _, l := range loans {
		units, again := Share(g.Loans, g.Idle, g.IdleTime, l.ID, now)
		fmt.Fprintf(b, "%s gives %d of %d back, and asks again at %s\n", l.ID, units, l.Borrowed, again.Clock())
	}
}
