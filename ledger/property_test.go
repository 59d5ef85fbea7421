package ledger

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "1000") // the command line may say otherwise
	os.Exit(m.Run())
}

// write is one write of a loan's story, and what is in use when it comes.
type write struct {
	loan   string
	step   int64
	change Change
	now    cluster.Time
	inUse  int64
}

func (w write) to(a *Account) (cluster.Loan, Event, error) {
	return a.Write(w.loan, w.step, w.change, w.now)
}

// drawWrites draws the stories of three loans, interleaved: most of the changes
// make sense where they stand, and some are refused.
func drawWrites(t *rapid.T) []write {
	steps := map[string]int64{}
	var writes []write
	for i := range rapid.IntRange(1, 30).Draw(t, "writes") {
		loan := fmt.Sprintf("loan%d", rapid.IntRange(0, 2).Draw(t, "loan"))
		steps[loan]++
		change := drawChange(t)
		if steps[loan] < 3 && rapid.IntRange(0, 9).Draw(t, "in order") > 0 {
			change = drawStart(t)[steps[loan]-1]
		}
		writes = append(writes, write{
			loan: loan, step: steps[loan], change: change,
			now: now.Add(cluster.Duration(i) * cluster.Minute), inUse: rapid.Int64Range(0, 12).Draw(t, "in use"),
		})
	}
	return writes
}

// drawStart draws how most loans begin.
func drawStart(t *rapid.T) []Change {
	return []Change{
		Intend{LoanRequest: cluster.LoanRequest{
			Provider: "pool", Units: drawUnits(t), Terms: cluster.Terms{PartialReturn: rapid.Bool().Draw(t, "partial return")},
		}, Demanded: drawUnits(t) + 2},
		Commit{Granted: drawUnits(t), HoldUntil: now.Add(cluster.Duration(rapid.IntRange(0, 20).Draw(t, "hold")) * cluster.Minute)},
	}
}

func drawChange(t *rapid.T) Change {
	start := drawStart(t)
	units := rapid.Int64Range(-1, 5).Draw(t, "units")
	return rapid.SampledFrom([]Change{
		start[0], start[1],
		Refuse{Why: "quota"},
		Fence{Units: units},
		Fence{Units: units},
		Fence{Units: units, Exact: true},
		Recall{Units: units},
		Confirm{Units: units},
		Confirm{Units: 1},
	}).Draw(t, "change")
}

func drawUnits(t *rapid.T) int64 { return rapid.Int64Range(1, 5).Draw(t, "units") }

func drawAccount(t *rapid.T) Account {
	a := Account{Resource: "vcs", Owned: rapid.Int64Range(0, 6).Draw(t, "owned"), MaxBorrowed: rapid.Int64Range(0, 9).Draw(t, "max borrowed")}
	if lent := rapid.Int64Range(0, a.Owned).Draw(t, "lent"); lent > 0 {
		a.Lendings = []cluster.Lending{{ID: "west-1", Resource: "vcs", Units: lent}}
	}
	return a
}

// Activities are repeated, late ones too. Whatever is written again, and
// whenever, the books end as if it had been written once.
func TestRepetitionsAnywhereEndInTheSameBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := drawAccount(t)
		again := clone(once)
		var written []write
		for _, w := range drawWrites(t) {
			once.InUse, again.InUse = w.inUse, w.inUse
			row, _, err := w.to(&once)
			repeated, _, _ := w.to(&again)
			if !reflect.DeepEqual(row, repeated) {
				t.Fatalf("%+v answers %+v, and %+v after repetitions", w, row, repeated)
			}
			if err != nil {
				continue
			}
			written = append(written, w)
			for range rapid.IntRange(0, 3).Draw(t, "repetitions") {
				late := rapid.SampledFrom(written).Draw(t, "again")
				late.now = w.now + 1
				_, event, _ := late.to(&again)
				if event.Kind != "" {
					t.Fatalf("%+v was written twice: %+v", late, event)
				}
			}
		}
		if !reflect.DeepEqual(once, again) {
			t.Fatalf("%+v\nbecomes\n%+v", once, again)
		}
	})
}

func TestTheRulesHoldAfterEveryWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAccount(t)
		granted := map[string]int64{}
		for _, w := range drawWrites(t) {
			a.InUse = w.inUse
			earlier, before := a, clone(a)
			row, event, err := w.to(&a)
			if !reflect.DeepEqual(earlier, before) {
				t.Fatalf("%+v wrote into an earlier copy: %+v", w, earlier)
			}
			if err != nil {
				if !reflect.DeepEqual(a, before) || event.Kind != "" {
					t.Fatalf("refused %+v changed the books: %+v", w, event)
				}
				continue
			}
			if commit, ok := w.change.(Commit); ok {
				granted[w.loan] = commit.Granted
			}
			checkSums(t, a, granted)
			checkLimit(t, a, before)
			checkClosed(t, a, before)
			if w.change.kind() == "fence" {
				checkFence(t, w, a, before)
			}
			if kept, _ := a.Loan(w.loan); !reflect.DeepEqual(kept, row) || !reflect.DeepEqual(event.After, row) {
				t.Fatalf("%+v answers %+v, the event says %+v, kept is %+v", w, row, event.After, kept)
			}
		}
	})
}

// checkSums: the total is the sum of its parts, and each granted unit is in one column.
func checkSums(t *rapid.T, a Account, granted map[string]int64) {
	total := a.Owned
	for _, l := range a.Loans {
		total += l.Borrowed
		if min(l.Borrowed, l.Recalled, l.Fenced, l.Returned) < 0 || l.Granted() != granted[l.ID] {
			t.Fatalf("%d were granted: %+v", granted[l.ID], l)
		}
	}
	for _, l := range a.Lendings {
		total -= l.Units
	}
	if a.Total() != total {
		t.Fatalf("total %d, the rows sum up to %d", a.Total(), total)
	}
}

// checkLimit: what is requested and borrowed stays within the limit.
func checkLimit(t *rapid.T, a, before Account) {
	if a.Requested()+a.Borrowed() > a.MaxBorrowed {
		t.Fatalf("%d requested, %d borrowed, the limit is %d; before: %+v", a.Requested(), a.Borrowed(), a.MaxBorrowed, before)
	}
}

// checkClosed: a closed row never changes.
func checkClosed(t *rapid.T, a, before Account) {
	for _, old := range before.Loans {
		if row, found := a.Loan(old.ID); !old.State.Open() && (!found || !reflect.DeepEqual(row, old)) {
			t.Fatalf("%+v was closed and is %+v", old, row)
		}
	}
}

// checkFence: nothing in use is fenced, no overdraft comes of it, holds are
// kept, and a lender that takes no part back gets none.
func checkFence(t *rapid.T, w write, a, before Account) {
	row, _ := a.Loan(w.loan)
	old, _ := before.Loan(w.loan)
	borrowed := old.Borrowed - row.Borrowed
	switch fenced := row.Fenced - old.Fenced; {
	case fenced > 0 && a.Unused() < 0:
		t.Fatalf("%d fenced of %d unused: %+v", fenced, before.Unused(), w)
	case borrowed > 0 && a.Overdraft() > 0:
		t.Fatalf("%d fenced out of a total of %d, %d in use: %+v", borrowed, before.Total(), a.InUse, w)
	case borrowed > 0 && w.now < old.HoldUntil:
		t.Fatalf("%d fenced before %s: %+v", borrowed, old.HoldUntil, w)
	case borrowed > 0 && row.Borrowed > 0 && !old.PartialReturn:
		t.Fatalf("%d of %d fenced of a loan that goes back whole: %+v", borrowed, old.Borrowed, w)
	}
}
