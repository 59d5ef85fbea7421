package policy

import (
	"slices"
	"testing"

	"xce.internal/elastic/cluster"
)

const (
	start = cluster.Time(1_767_261_600_000)
	mins  = cluster.Time(cluster.Minute)
)

func TestHoldUntilIsTheLongerOfTheLendersAndOurOwn(t *testing.T) {
	tests := []struct {
		name                string
		lenders, own, until cluster.Duration
	}{
		{"the lender's", cluster.Hour, cluster.Minute, cluster.Hour},
		{"our own", cluster.Minute, cluster.Hour, cluster.Hour},
		{"none", 0, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := HoldUntil(cluster.Terms{MinimumHold: test.lenders}, test.own, start)
			if got != start.Add(test.until) {
				t.Errorf("held for %s, want %s", got.Sub(start), test.until)
			}
		})
	}
}

func TestReturnable(t *testing.T) {
	tests := []struct {
		name       string
		hold, step cluster.Duration
		now, want  cluster.Time // since the grant
	}{
		{name: "no terms", now: 3 * mins, want: 3 * mins},
		{name: "before the hold is over", hold: 30 * cluster.Minute, now: 3 * mins, want: 30 * mins},
		{name: "at its end", hold: 30 * cluster.Minute, now: 30 * mins, want: 30 * mins},
		{name: "after it", hold: 30 * cluster.Minute, now: 31 * mins, want: 31 * mins},

		{name: "early in a step, five minutes before the next", step: cluster.Hour, now: 3 * mins, want: 55 * mins},
		{name: "just before the window", step: cluster.Hour, now: 55*mins - 1, want: 55 * mins},
		{name: "as the window opens", step: cluster.Hour, now: 55 * mins, want: 55 * mins},
		{name: "inside the window", step: cluster.Hour, now: 59 * mins, want: 59 * mins},
		{name: "at its last instant", step: cluster.Hour, now: 60*mins - 1, want: 60*mins - 1},
		{name: "just after a step began", step: cluster.Hour, now: 60 * mins, want: 115 * mins},
		{name: "in a later step", step: cluster.Hour, now: 200 * mins, want: 235 * mins},
		{name: "of a short step, a tenth before its end", step: 10 * cluster.Minute, now: 1 * mins, want: 9 * mins},

		{name: "the hold ends inside a window", hold: 58 * cluster.Minute, step: cluster.Hour, now: 3 * mins, want: 58 * mins},
		{name: "the hold ends as a step begins", hold: cluster.Hour, step: cluster.Hour, now: 3 * mins, want: 115 * mins},
		{name: "the hold ends early in a step", hold: 70 * cluster.Minute, step: cluster.Hour, now: 3 * mins, want: 115 * mins},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			loan := cluster.Loan{Committed: start, HoldUntil: start.Add(test.hold)}
			loan.BillingStep = test.step
			if got := Returnable(loan, start+test.now) - start; got != test.want {
				t.Errorf("after %s, want %s", cluster.Duration(got), cluster.Duration(test.want))
			}
		})
	}
}

func loan(id string, borrowed int64, price cluster.Price, committed cluster.Time, change ...func(*cluster.Loan)) cluster.Loan {
	l := cluster.Loan{State: cluster.LoanBorrowed, Borrowed: borrowed, Committed: start + committed, HoldUntil: start + committed}
	l.ID, l.Price, l.PartialReturn = id, price, true
	for _, c := range change {
		c(&l)
	}
	return l
}

func whole(l *cluster.Loan) { l.PartialReturn = false }

func heldUntil(at cluster.Time) func(*cluster.Loan) {
	return func(l *cluster.Loan) { l.HoldUntil = start + at }
}

func billed(step cluster.Duration) func(*cluster.Loan) {
	return func(l *cluster.Loan) { l.BillingStep = step }
}

func TestTheDearestAndThenTheOldestGoesFirst(t *testing.T) {
	loans := []cluster.Loan{
		loan("c", 1, 5, 2*mins), loan("old", 1, 5, 1*mins), loan("dear", 1, 9, 3*mins), loan("cheap", 1, 1, 0),
		loan("returned", 0, 99, 0), loan("b", 1, 5, 2*mins),
	}
	var got []string
	for _, l := range ReturnOrder(loans) {
		got = append(got, l.ID)
	}
	if want := []string{"dear", "old", "b", "c", "cheap"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if loans[0].ID != "c" {
		t.Error("the loans themselves were put in order")
	}
}

func TestShare(t *testing.T) {
	const now = 100 * mins // since start
	idleTime := 10 * cluster.Minute
	ripe := func(units int64) cluster.IdleClock { return cluster.IdleClock{{Units: units, Since: start + 85*mins}} }
	tests := []struct {
		name  string
		loans []cluster.Loan
		idle  cluster.IdleClock
		give  int64
		again cluster.Time // since start
	}{
		{"nothing idle", []cluster.Loan{loan("own", 4, 1, 0)}, nil, 0, 110 * mins},
		{"idle for too short a time", []cluster.Loan{loan("own", 4, 1, 0)}, cluster.IdleClock{{Units: 4, Since: start + 95*mins}}, 0, 105 * mins},
		{"ripe", []cluster.Loan{loan("own", 4, 1, 0)}, ripe(3), 3, 110 * mins},
		{"ripe at this instant", []cluster.Loan{loan("own", 4, 1, 0)}, cluster.IdleClock{{Units: 4, Since: start + 90*mins}}, 4, 110 * mins},
		{"more ripe than borrowed", []cluster.Loan{loan("own", 4, 1, 0)}, ripe(9), 4, 110 * mins},
		{"more to come", []cluster.Loan{loan("own", 4, 1, 0)}, append(ripe(1), cluster.IdleLot{Units: 2, Since: start + 99*mins}), 1, 109 * mins},

		{"a dearer one takes all", []cluster.Loan{loan("own", 4, 1, 0), loan("dear", 4, 9, 50*mins)}, ripe(3), 0, 110 * mins},
		{"a dearer one leaves some", []cluster.Loan{loan("own", 4, 1, 0), loan("dear", 2, 9, 50*mins)}, ripe(3), 1, 110 * mins},
		{"an older one goes first", []cluster.Loan{loan("own", 4, 1, 1), loan("old", 2, 1, 0)}, ripe(3), 1, 110 * mins},
		{"a cheaper one comes after", []cluster.Loan{loan("own", 4, 5, 50*mins), loan("cheap", 2, 1, 0)}, ripe(3), 3, 110 * mins},
		{"a dearer one is held", []cluster.Loan{loan("own", 4, 1, 0), loan("dear", 4, 9, 50*mins, heldUntil(120*mins))}, ripe(3), 3, 110 * mins},
		{"a dearer one has a step to use up", []cluster.Loan{loan("own", 4, 1, 0), loan("dear", 4, 9, 95*mins, billed(cluster.Hour))}, ripe(3), 3, 110 * mins},

		{"whole, enough", []cluster.Loan{loan("own", 4, 1, 0, whole)}, ripe(5), 4, 110 * mins},
		{"whole, not enough", []cluster.Loan{loan("own", 4, 1, 0, whole)}, ripe(3), 0, 110 * mins},
		{"a dearer one is whole and leaves all", []cluster.Loan{loan("own", 4, 1, 0), loan("dear", 4, 9, 0, whole)}, ripe(3), 3, 110 * mins},

		{"held", []cluster.Loan{loan("own", 4, 1, 0, heldUntil(130*mins))}, ripe(4), 0, 130 * mins},
		{"held, and nothing idle", []cluster.Loan{loan("own", 4, 1, 0, heldUntil(130*mins))}, nil, 0, 130 * mins},
		{"a step to use up, ripe already: as the window opens", []cluster.Loan{loan("own", 4, 1, 47*mins, billed(cluster.Hour))}, ripe(4), 0, 102 * mins},
		{"a step to use up, ripe before its window", []cluster.Loan{loan("own", 4, 1, 60*mins, billed(cluster.Hour))}, cluster.IdleClock{{Units: 4, Since: start + 95*mins}}, 0, 115 * mins},
		{"a step to use up, ripe inside its window", []cluster.Loan{loan("own", 4, 1, 47*mins, billed(cluster.Hour))}, cluster.IdleClock{{Units: 4, Since: start + 95*mins}}, 0, 105 * mins},
		{"a step to use up, ripe after its window", []cluster.Loan{loan("own", 4, 1, 47*mins, billed(cluster.Hour))}, nil, 0, 162 * mins},
		{"inside the window", []cluster.Loan{loan("own", 4, 1, 44*mins, billed(cluster.Hour))}, ripe(4), 4, 159 * mins},

		{"no such loan", []cluster.Loan{loan("other", 4, 1, 0)}, ripe(4), 0, 110 * mins},
		{"nothing left of it", []cluster.Loan{loan("own", 0, 1, 0)}, ripe(4), 0, 110 * mins},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			give, again := Share(test.loans, test.idle, idleTime, "own", start+now)
			if give != test.give || again != start+test.again {
				t.Errorf("gives %d and asks again after %s, want %d after %s",
					give, again.Sub(start), test.give, cluster.Duration(test.again))
			}
		})
	}
}

func TestWithoutIdleTimeUnitsGoBackAtOnce(t *testing.T) {
	give, again := Share([]cluster.Loan{loan("own", 4, 1, 0)}, cluster.IdleClock{{Units: 1, Since: start}}, 0, "own", start)
	if give != 1 || again != start.Add(cluster.Second) {
		t.Errorf("gives %d and asks again after %s", give, again.Sub(start))
	}
}
