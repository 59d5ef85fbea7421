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
// grant, a refusal and giving back; and of hosts, which to ask for, within which
// limits, which go back, and whether a list of them is believed.
type question struct {
	Now        cluster.Time `json:"now"`
	Borrow     *View        `json:"borrow"`
	Grant      *grant       `json:"grant"`
	Refusal    *refusal     `json:"refusal"`
	GiveBack   *giveBack    `json:"give_back"`
	Provision  *HostView    `json:"provision"`
	Limit      *limit       `json:"limit"`
	ReturnHost []idleHost   `json:"return_host"`
	Inventory  *Inventory   `json:"inventory"`
	Believed   Inventory    `json:"believed"` // the last one that was
}

// limit is what the cluster's own limits on hosts are about.
type limit struct {
	Rules     cluster.HostRules  `json:"rules"`
	Counts    HostCounts         `json:"counts"`
	Templates []cluster.Template `json:"templates"`
}

// idleHost is a host that asks whether it goes back.
type idleHost struct {
	cluster.ElasticHost
	IdleSince cluster.Time `json:"idle_since"`
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
	answerOfHosts(&b, q)
	return b.String()
}

func answerOfHosts(b *strings.Builder, q question) {
	if q.Provision != nil {
		provisioned(b, *q.Provision, q.Now)
	}
	if q.Limit != nil {
		limited(b, *q.Limit, q.Now)
	}
	for _, h := range q.ReturnHost {
		if back, again := ReturnHost(h.ElasticHost, h.IdleSince, q.Now); back {
			fmt.Fprintf(b, "%s goes back\n", h.ID)
		} else {
			fmt.Fprintf(b, "%s stays, and asks again at %s\n", h.ID, again.Clock())
		}
	}
	if q.Inventory != nil {
		if doubt := q.Inventory.Doubt(q.Believed); doubt != "" {
			fmt.Fprintf(b, "the list is not believed: %s\n", doubt)
		} else {
			fmt.Fprintln(b, "the list is believed")
		}
	}
}

func provisioned(b *strings.Builder, view HostView, now cluster.Time) {
	plans := Provision(view, now)
	for _, p := range plans {
		fmt.Fprintf(b, "ask %s for %d hosts of %s for %s\n", p.Template.Provider, p.Hosts, p.Template.Name, jobs(p.Demand))
	}
	if len(plans) == 0 {
		fmt.Fprintln(b, "ask for no host")
	}
}

// limited says how far the limits are used up, and how many hosts of each template
// they let be asked for.
func limited(b *strings.Builder, l limit, now cluster.Time) {
	templates, limits, halt := Limits(l.Rules, l.Counts, l.Templates, now)
	for _, q := range limits {
		fmt.Fprintf(b, "%s allows %d: %d used\n", q.Name, q.Limit, q.Used)
	}
	for _, t := range templates {
		fmt.Fprintf(b, "%s may have %d more\n", t.Name, most(limits, t))
	}
	if halt != "" {
		fmt.Fprintf(b, "no more are asked for: %s\n", halt)
	}
}

func jobs(d cluster.Demand) string {
	return "job " + strings.Trim(strings.ReplaceAll(fmt.Sprint(d.Jobs), " ", ", job "), "[]")
}

func borrowed(b *strings.Builder, view View, now cluster.Time) {
	plans := Borrow(view, now)
	for _, p := range plans {
		fmt.Fprintf(b, "borrow %d %s from %s for %s\n", p.Units, p.Demand.Resource, view.Provider, jobs(p.Demand))
	}
	if len(plans) == 0 {
		fmt.Fprintln(b, "borrow nothing")
	}
}

// givenBack asks for every loan, those first that go back first.
func givenBack(b *strings.Builder, g giveBack, now cluster.Time) {
	loans := ReturnOrder(g.Loans)
	for i := range g.Loans {
		l := &g.Loans[i]
		if !slices.Contains(loans, l) {
			loans = append(loans, l)
		}
	}
	for _, l := range loans {
		units, again := Share(g.Loans, g.Idle, g.IdleTime, l.ID, now)
		fmt.Fprintf(b, "%s gives %d of %d back, and asks again at %s\n", l.ID, units, l.Borrowed, again.Clock())
	}
}
