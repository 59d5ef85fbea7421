package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/mishap"
	"xce.internal/elastic/workflows"
)

var ctx = context.Background()

// tale is all that happens to one loan from outside, as plain data, so that it
// can be told more than once.
type tale struct {
	request  cluster.LoanRequest
	demand   int64
	capacity int64 // of the lender, in its units
	surplus  int64
	whole    bool
	pending  time.Duration
	// mishaps go wrong by verb and number of the call, until the lender is honest.
	mishaps map[providers.Verb][]mishap.Mishap
	honest  cluster.Duration
	uses    []use
	wishes  []wish
	recalls []recall
	limits  []use // of what may be borrowed
	took    []cluster.Duration
	again   []int
}

// use is how many units jobs use from an instant on.
type use struct {
	after cluster.Duration
	units int64
}

type wish struct {
	after cluster.Duration
	units int64
}

// recall is how many units the lender wants back, or loses.
type recall struct {
	after cluster.Duration
	units int64
	lost  bool
}

// wild is how long anything may happen; then jobs end, and the lender is honest.
const wild = 24 * cluster.Hour

var verbs = []providers.Verb{providers.VerbRequest, providers.VerbStatus, providers.VerbReturn, providers.VerbList}

func drawTale(t *rapid.T) tale {
	after := rapid.Custom(func(t *rapid.T) cluster.Duration {
		return cluster.Duration(rapid.Int64Range(0, int64(wild)).Draw(t, "after"))
	})
	duration := func(name string, of ...cluster.Duration) cluster.Duration { return rapid.SampledFrom(of).Draw(t, name) }
	weight := rapid.SampledFrom([]int64{1, 1, 10}).Draw(t, "weight")
	tl := tale{
		request: cluster.LoanRequest{
			ID: loanID, Provider: provider, Resource: "vcs", Units: rapid.Int64Range(1, 5).Draw(t, "units"), Reason: "jobs wait",
			Terms: cluster.Terms{
				MinimumHold: duration("hold", 0, cluster.Hour, 4*cluster.Hour), BillingStep: duration("step", 0, 0, cluster.Hour),
				PartialReturn: rapid.Bool().Draw(t, "partial"), PollInterval: duration("poll", cluster.Second, cluster.Minute), UnitWeight: weight,
			},
		},
		demand: rapid.Int64Range(0, 6).Draw(t, "demand"), capacity: rapid.Int64Range(1, 8*weight).Draw(t, "capacity"),
		surplus: rapid.SampledFrom([]int64{0, 0, 1, 12}).Draw(t, "surplus"),
		pending: duration("pending", 0, 0, 10*cluster.Second, 2*cluster.Hour).Std(),
		honest:  after.Draw(t, "honest"), mishaps: map[providers.Verb][]mishap.Mishap{},
	}
	tl.whole = !tl.request.PartialReturn
	mishap := rapid.Custom(func(t *rapid.T) mishap.Mishap {
		return mishap.Mishap{
			Kind: rapid.SampledFrom([]mishap.Kind{
				mishap.None, mishap.None, mishap.NotHeard, mishap.NoAnswer, mishap.Late, mishap.Refusal, mishap.Unsettled,
			}).Draw(t, "kind"),
			After:      rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "late"),
			RetryAfter: rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "retry"),
		}
	})
	for _, verb := range verbs {
		tl.mishaps[verb] = rapid.SliceOfN(mishap, 0, 8).Draw(t, string(verb))
	}
	uses := rapid.Custom(func(t *rapid.T) use { return use{after.Draw(t, "at"), rapid.Int64Range(0, 12).Draw(t, "use")} })
	tl.uses = rapid.SliceOfN(uses, 0, 6).Draw(t, "uses")
	tl.limits = rapid.SliceOfN(uses, 0, 1).Draw(t, "limits")
	tl.wishes = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wish {
		return wish{after.Draw(t, "at"), rapid.Int64Range(-1, 6).Draw(t, "wish")}
	}), 0, 4).Draw(t, "wishes")
	tl.recalls = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) recall {
		return recall{after.Draw(t, "at"), rapid.Int64Range(1, 6*weight).Draw(t, "recall"), rapid.Bool().Draw(t, "lost")}
	}), 0, 3).Draw(t, "recalls")
	tl.took = rapid.SliceOfN(rapid.SampledFrom([]cluster.Duration{10, 400, 5 * cluster.Second, cluster.Minute}), 1, 5).Draw(t, "took")
	tl.again = rapid.SliceOfN(rapid.IntRange(0, 3), 1, 7).Draw(t, "again")
	return tl
}

// without takes one kind of mishap out of a tale.
func (tl tale) without(verb providers.Verb, kind mishap.Kind) {
	for i, m := range tl.mishaps[verb] {
		if m.Kind == kind {
			tl.mishaps[verb][i].Kind = mishap.NotHeard
		}
	}
}

// told is what came of a tale.
type told struct {
	*plain
	loan    workflows.Loan
	wishes  int                              // that have come
	answers map[int][]workflows.ReturnAnswer // by wish
}

// world sets a tale up.
func (tl tale) world() *told {
	p := newPlain()
	w := &told{plain: p, loan: workflows.Loan{Request: tl.request}, answers: map[int][]workflows.ReturnAnswer{}}
	p.demand = tl.demand
	p.took = func(n int) cluster.Duration { return tl.took[n%len(tl.took)] }
	p.again = func(n int) int { return tl.again[n%len(tl.again)] }
	l := p.lender
	l.Offers[0].Capacity, l.Surplus, l.Whole, l.PendingFor = tl.capacity, tl.surplus, tl.whole, tl.pending
	l.Mishap = func(c mishap.Call) mishap.Mishap {
		if of := tl.mishaps[c.Verb]; c.Number <= len(of) && cluster.TimeOf(c.At) < began.Add(tl.honest) {
			return of[c.Number-1]
		}
		return mishap.Mishap{}
	}
	for _, u := range tl.uses {
		p.at(u.after, func() { p.use(u.units) })
	}
	for _, u := range tl.limits {
		p.at(u.after, func() { p.account.MaxBorrowed = u.units })
	}
	for i, u := range tl.wishes {
		p.at(u.after, func() {
			w.wishes++
			p.inbox = append(p.inbox, workflows.Message{Return: &workflows.ReturnWish{
				ReturnUnits: workflows.ReturnUnits{Units: u.units, By: "admin/eve"},
				Answer:      func(a workflows.ReturnAnswer) { w.answers[i] = append(w.answers[i], a) },
			}})
		})
	}
	for _, r := range tl.recalls {
		p.at(r.after, func() {
			if lent := l.LentTo(loanID); r.lost {
				l.Lose(loanID, min(r.units, lent))
			} else {
				l.Recall(loanID, r.units)
			}
		})
	}
	for at := cluster.Duration(0); at < wild+cluster.Hour; at += 10 * cluster.Minute {
		p.at(at, w.survey)
	}
	p.at(wild, func() { p.use(0) })
	return w
}

// survey tells the loan what a provider's story would, some time later.
func (w *told) survey() {
	weight := max(w.loan.Request.UnitWeight, 1)
	at := w.now
	var recalled, listed int64
	mishap := w.lender.Mishap
	w.lender.Mishap = nil
	description, _ := w.lender.Describe(ctx)
	for _, r := range description.Recalls {
		recalled = (r.Units + weight - 1) / weight
	}
	listed = (w.lender.LentTo(loanID) + weight - 1) / weight
	w.lender.Mishap = mishap
	row := w.row()
	w.at(cluster.Duration(w.steps%90)*cluster.Second, func() {
		if recalled > row.Recalled+row.Fenced {
			w.inbox = append(w.inbox, workflows.Message{Recalled: &workflows.Recalled{Units: recalled, At: at}})
		}
		if row.State != cluster.LoanRequested && row.Held() > 0 && listed != row.Held() {
			w.inbox = append(w.inbox, workflows.Message{Check: true})
		}
	})
}

// live tells the story to its end, from chapter to chapter.
func (w *told) live(t *rapid.T) {
	w.relive(t, func() (workflows.Loan, bool) { return w.loan, true })
}

// rescue reports a story that is stuck.
func (w *told) rescue(t *rapid.T) {
	switch stuck := recover().(type) {
	case nil:
	case errStuck:
		t.Fatalf("stuck after %s and %d steps: %s\n%+v\nrow %+v\n%s", w.now.Sub(began), w.steps, stuck.why, w.loan, w.row(), w.lender)
	default:
		panic(stuck)
	}
}

// ledger is what the story wrote, a line for each write.
func (w *told) ledger() []string {
	var lines []string
	for _, e := range w.events {
		lines = append(lines, fmt.Sprintf("%s %d>%d %+v", e.Kind, e.TotalBefore, e.TotalAfter, e.After))
	}
	return lines
}

// judge checks what must be true of every story that has ended.
func (w *told) judge(t *rapid.T) {
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	row, found := w.account.Loan(loanID)
	if !found || row.State.Open() || row.Held() != 0 || w.loan.Chapter != workflows.Closed {
		t.Errorf("the row is %+v, the story %s", row, w.loan.Chapter)
	}
	if lent := w.lender.LentTo(loanID); lent != 0 {
		t.Errorf("the lender still lends %d", lent)
	}
	total := int64(4)
	for _, e := range w.events {
		sum := int64(4)
		if e.Loan == loanID {
			sum += e.After.Borrowed
		}
		if e.TotalBefore != total || e.TotalAfter != sum {
			t.Errorf("total %d, then %d to %d, which should be %d: %+v", total, e.TotalBefore, e.TotalAfter, sum, e)
		}
		total = e.TotalAfter
	}
	if total != 4 {
		t.Errorf("the total is %d at the end", total)
	}
	for i, answers := range w.answers {
		if len(answers) != 1 || (answers[0].Refused == "") != (answers[0].Units > 0) {
			t.Errorf("wish %d was answered %+v", i, answers)
		}
	}
	waiting := 0 // they came after the end, for the binding to answer
	for _, m := range w.inbox {
		if m.Return != nil {
			waiting++
		}
	}
	if len(w.answers) != w.wishes-waiting {
		t.Errorf("%d wishes came, %d of them after the end, %d are answered", w.wishes, waiting, len(w.answers))
	}
}

func TestEveryStoryOfALoanEndsWithAllItsUnitsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := drawTale(t)
		w := tl.world()
		w.live(t)
		w.judge(t)
		w.judgeBooks(t, slices.ContainsFunc(tl.recalls, func(r recall) bool { return r.lost }))
	})
}

// judgeBooks checks that the row and the lender count the same units, each in
// its own measure. What the lender lost by itself the row may never have had.
func (w *told) judgeBooks(t *rapid.T, lost bool) {
	var gave int64
	for _, m := range w.lender.Moves {
		gave += max(m.Units, 0)
	}
	weight, row := w.loan.Request.UnitWeight, w.row()
	if whole := gave / weight; row.State == cluster.LoanReturned && row.Returned != whole && (!lost || row.Returned > whole) {
		t.Errorf("the lender gave %d, the row has %d returned:\n%s", whole, row.Returned, w.lender)
	}
}

func TestAStoryCutAtAnyChapterWritesTheSameLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := drawTale(t)
		whole := tl.world()
		whole.live(t)
		cut := tl.world()
		cut.cut = everyFew(t)
		cut.live(t)
		if a, b := whole.ledger(), cut.ledger(); !slices.Equal(a, b) {
			t.Errorf("uncut:\n%s\ncut:\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		if a, b := whole.lender.String(), cut.lender.String(); a != b {
			t.Errorf("uncut:\n%s\ncut:\n%s", a, b)
		}
	})
}

// everyFew draws after how many chapters a story is cut, again and again.
func everyFew(t *rapid.T) func(chapter int) bool {
	every, last := rapid.IntRange(1, 3).Draw(t, "cut every"), 0
	return func(chapter int) bool {
		if chapter-last <= every {
			return false
		}
		last = chapter
		return true
	}
}

func TestAStoryTakenUpFromItsRowEndsAsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTale(t).world()
		read := rapid.IntRange(2, 20).Draw(t, "the row is read before chapter")
		gone := read + rapid.IntRange(0, 3).Draw(t, "chapters until the workflow is terminated")
		var row cluster.Loan
		w.cut = func(n int) bool {
			if n == read {
				row = w.row()
			}
			return n == gone
		}
		w.relive(t, func() (workflows.Loan, bool) { return workflows.ResumeLoan(row), row.State != "" && row.State.Open() })
		w.judge(t)
	})
}

func TestAStoryFromAnOldBackupGoesOnFromTheLedgersRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := drawTale(t)
		// A call that is forgotten and carried out late cannot be undone, nor can a
		// lender be helped that refuses what it has granted.
		tl.without(providers.VerbReturn, mishap.Late)
		tl.without(providers.VerbRequest, mishap.Refusal)
		w := tl.world()
		saved := rapid.IntRange(1, 20).Draw(t, "backup before chapter")
		lost := saved + rapid.IntRange(1, 10).Draw(t, "chapters that are lost")
		var backup workflows.Loan
		w.cut = func(n int) bool {
			if n == saved {
				backup = throughJSON(w.loan)
			}
			return n == lost
		}
		w.relive(t, func() (workflows.Loan, bool) { return backup, true })
		w.judge(t)
	})
}

// relive tells the story to its end; where it is cut it goes on from another
// state, if there is one.
func (w *told) relive(t *rapid.T, from func() (workflows.Loan, bool)) {
	defer w.rescue(t)
	for !w.loan.Live(w) {
		if l, ok := from(); ok {
			w.loan = throughJSON(l)
		}
	}
}
