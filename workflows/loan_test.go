package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/mishap"
	"xce.internal/elastic/workflows"
)

// reader keeps what people are shown, where it changes.
type reader struct {
	*plain
	lines []string
}

func (r *reader) Show(words func() workflows.Summary) {
	s := words()
	line := fmt.Sprintf("%s %s %d: %s", r.now.Std().Format("15:04"), s.State, s.Units, s.Waits)
	if len(r.lines) == 0 || r.lines[len(r.lines)-1] != line {
		r.lines = append(r.lines, line)
	}
	r.plain.Show(words)
}

func TestPeopleReadWhatALoanWaitsFor(t *testing.T) {
	r := &reader{plain: newPlain()}
	r.demand = 3
	r.lender.PendingFor = 5 * time.Minute
	r.lender.Mishap = func(c mishap.Call) mishap.Mishap {
		if c.Verb == providers.VerbReturn && c.Number == 1 {
			return mishap.Mishap{Kind: mishap.Refusal}
		}
		return mishap.Mishap{}
	}
	r.at(8*cluster.Minute, func() { r.use(7) })
	r.at(2*cluster.Hour, func() {
		r.inbox = append(r.inbox, workflows.Message{Recalled: &workflows.Recalled{Units: 1, At: r.now}})
	})
	r.at(2*cluster.Hour+10*cluster.Minute, func() { r.use(4) })
	l := workflows.Loan{Request: cluster.LoanRequest{
		ID: loanID, Provider: provider, Resource: "vcs", Units: 3, Reason: "job 7 waits for 3 more vcs, and nothing else",
		Terms: cluster.Terms{MinimumHold: cluster.Hour, PartialReturn: true, PollInterval: cluster.Minute, UnitWeight: 1},
	}}
	if !l.Live(r) {
		t.Fatal("it was cut")
	}
	want := []string{
		"00:00 requested 0: the ledger",
		"00:00 requested 0: an answer of pool",
		"00:00 requested 0: a decision of pool",
		"00:01 requested 0: a decision of pool",
		"00:03 requested 0: a decision of pool",
		"00:07 borrowed 3: the end of the minimum hold",
		"01:07 borrowed 3: idle units",
		"01:37 borrowed 3: idle units",
		"02:00 recalled 3: jobs to give recalled units back",
		"02:01 recalled 3: jobs to give recalled units back",
		"02:03 recalled 3: jobs to give recalled units back",
		"02:07 recalled 3: jobs to give recalled units back",
		"02:12 returning 3: pool to take 1 units back",
		"02:12 returning 3: the next try: pool refused to take 1 units back",
		"02:13 returning 3: pool to take 1 units back",
		"02:13 borrowed 2: idle units",
		"02:40 returning 2: pool to take 2 units back",
		"02:40 returned 0: nothing",
	}
	if !slices.Equal(r.lines, want) {
		t.Errorf("%s\nwant:\n%s", strings.Join(r.lines, "\n"), strings.Join(want, "\n"))
	}
	text := strings.Join(r.shown.Details, "\n")
	for _, part := range []string{"**loan/vcs/pool-1: 0 vcs from pool, returned**", "| 3 | 0 | 0 | 0 | 3 |", "Taken because job 7 waits", "Last: pool has 3 of 3 units back."} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func TestAWishIsRefusedAtAGlanceWhereTheLedgerNeedNotBeAsked(t *testing.T) {
	now := began
	loan := func(chapter workflows.Chapter, row cluster.Loan) *workflows.Loan {
		row.ID, row.Provider = loanID, provider
		return &workflows.Loan{Request: row.LoanRequest, Row: row, Dealing: workflows.Dealing{Chapter: chapter}}
	}
	free := cluster.Loan{Borrowed: 3}
	held := cluster.Loan{Borrowed: 3, HoldUntil: now + 1}
	for _, test := range []struct {
		name  string
		loan  *workflows.Loan
		units int64
		want  string // "" for accepted
	}{
		{"all", loan(workflows.Keeping, free), 0, ""},
		{"some", loan(workflows.Keeping, free), 2, ""},
		{"fewer than none", loan(workflows.Keeping, free), -1, "-1 units cannot be returned"},
		{"more than there are", loan(workflows.Keeping, free), 4, "has 3 units, not 4"},
		{"held", loan(workflows.Keeping, held), 1, "is held until"},
		{"held, but recalled", loan(workflows.Keeping, cluster.Loan{Borrowed: 2, Recalled: 1, HoldUntil: now + 1}), 1, ""},
		{"requested", loan(workflows.Polling, cluster.Loan{}), 0, "is requested: there is nothing to return"},
		{"on its way back", loan(workflows.Verifying, cluster.Loan{Borrowed: 1, Fenced: 2}), 1, "2 units of loan/vcs/pool-1 are on their way back already"},
		{"returned", loan(workflows.Closed, cluster.Loan{Returned: 3}), 0, "is returned: there is nothing to return"},
		{"refused", loan(workflows.Closed, cluster.Loan{}), 0, "is refused: there is nothing to return"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.loan.MayReturn(now, workflows.ReturnUnits{Units: test.units})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
