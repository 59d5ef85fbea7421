package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/mishap"
	"xce.internal/elastic/simulation/timeskip"
	"xce.internal/elastic/workflows"
)

// busy is half a day of many jobs and of everything that may happen to a loan.
func busy(w *world) {
	a := w.lenders[pool]
	a.Offers[0].MinimumHold = hour
	for i := range 6 {
		at := time.Duration(i) * 80 * time.Minute
		w.submit(at+20*time.Minute, int64(3+i*5%8), time.Duration(20+i*37%110)*time.Minute)
		w.submit(at+50*time.Minute, int64(1+i*3%5), time.Duration(10+i*53%70)*time.Minute)
	}
	w.h.At(3*hour, func() {
		for _, g := range a.Grants() {
			a.Recall(g.RequestID, 1)
		}
	})
	w.h.At(5*hour, func() {
		for _, g := range a.Grants() {
			a.Lose(g.RequestID, 1)
		}
	})
	for i := range 6 {
		w.giveBack(time.Duration(i)*80*time.Minute+95*time.Minute, fmt.Sprintf("loan/vcs/pool-a-%d", i+1), 1)
	}
}

func TestStoriesThatAreContinuedAsNewTellTheSame(t *testing.T) {
	t.Parallel()
	run := func(suggest int) *world {
		s := newScene(14 * hour)
		s.SuggestContinueAsNew = suggest
		w := play(t, s, busy)
		w.settled()
		return w
	}
	whole, cut := run(0), run(30)
	for _, of := range []struct {
		what string
		of   func(*world) []string
	}{
		{"totals", func(w *world) []string { return w.totals("vcs") }},
		{"lent", func(w *world) []string { return w.lent(pool) }},
		{"rows", (*world).rows},
	} {
		cut.same(of.what, of.of(cut), of.of(whole)...)
	}
	for _, story := range cut.report.Workflows {
		if story.Type == workflows.ProviderName && story.Runs < 10 {
			t.Errorf("%s ran %d times", story.ID, story.Runs)
		}
	}
	if !slices.ContainsFunc(cut.report.Workflows, func(s timeskip.Workflow) bool { return s.Type == workflows.LoanName && s.Runs > 2 }) {
		t.Error("no loan was continued as new")
	}
	if len(whole.totals("vcs")) < 15 {
		t.Errorf("the story is thin: %v", whole.totals("vcs"))
	}
}

// slowly lets a fence take ten seconds, so that things can be said meanwhile.
func slowly(activity string) (low, high time.Duration) {
	if activity == activities.LedgerFence {
		return 10 * time.Second, 10 * time.Second
	}
	return 20 * time.Millisecond, 500 * time.Millisecond
}

func TestWhatIsSaidWhileAStoryIsContinuedAsNewIsHeard(t *testing.T) {
	t.Parallel()
	s := newScene(4 * hour)
	s.SuggestContinueAsNew, s.Latency = 1, slowly
	var asked *wish
	w := play(t, s, func(w *world) {
		w.submit(10*time.Minute, 7, 2*hour)
		w.h.At(10*time.Minute+6*time.Second, func() { // the first fence is under way
			w.must(w.h.Signal(first, workflows.SignalRecalled, workflows.Recalled{Units: 1, At: w.now()}))
		})
		asked = w.giveBack(10*time.Minute+16*time.Second, first, 1) // and here the next
	})
	if got := asked.answer(); !strings.Contains(got, "1 of 1 units are in use") {
		t.Error(got)
	}
	w.same("totals", w.totals("vcs"), "00:10 4>7", "00:10 7>6", "02:40 6>4")
	w.settled()
}

func TestAWishThatComesAsTheLastUnitsGoIsAnswered(t *testing.T) {
	t.Parallel()
	s := newScene(2 * hour)
	s.Latency = slowly
	var late *wish
	w := play(t, s, func(w *world) {
		w.submit(10*time.Minute, 7, 20*time.Minute)
		late = w.giveBack(time.Hour+6*time.Second, first, 1) // the last fence is under way
	})
	if got := late.answer(); !strings.Contains(got, "is returned: there is nothing to return") {
		t.Error(got)
	}
	w.same("totals", w.totals("vcs"), "00:10 4>7", "01:00 7>4")
	w.settled()
}

func TestTheSameSeedTellsTheSameStory(t *testing.T) {
	t.Parallel()
	one, two := twice(t, newScene(14*hour), busy)
	two.same("totals", two.totals("vcs"), one.totals("vcs")...)
}

// twice plays a scene two times, with faults by its seed: the traces are to be the same.
func twice(t *testing.T, s scene, script func(*world)) (one, two *world) {
	t.Helper()
	s.Seed, s.Faults = 11, faulty
	one, two = play(t, s, script), play(t, s, script)
	if diff := one.report.Trace.Diff(two.report.Trace); diff != "" {
		t.Error(diff)
	}
	return one, two
}

// faulty lets a tenth of all attempts of activities go wrong.
func faulty(a timeskip.Attempt) timeskip.Fault {
	switch {
	case a.Chance(0.03):
		return timeskip.LostAnswer
	case a.Chance(0.06):
		return timeskip.NotRun
	case a.Chance(0.10):
		return timeskip.RunTwice
	}
	return timeskip.None
}

// hostile lets a sixth of a lender's calls go wrong for a while.
func (w *world) hostile(seed uint64, lasts time.Duration) func(mishap.Call) mishap.Mishap {
	kinds := []mishap.Kind{mishap.NotHeard, mishap.NoAnswer, mishap.Late, mishap.Refusal, mishap.Unsettled}
	return func(c mishap.Call) mishap.Mishap {
		chance := rand.New(rand.NewPCG(seed, uint64(c.Number)<<8|uint64(len(c.Verb))))
		if w.since(cluster.TimeOf(c.At)) > lasts || chance.IntN(6) > 0 {
			return mishap.Mishap{}
		}
		return mishap.Mishap{Kind: kinds[chance.IntN(len(kinds))], After: time.Duration(chance.IntN(90)) * time.Minute}
	}
}

func TestNothingIsLostWhenActivitiesAndLendersFail(t *testing.T) {
	t.Parallel()
	seeds := uint64(8)
	if racing {
		seeds = 2 // ten times as slow, and all in one goroutine
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := twoLenders(14 * hour)
			s.Seed, s.Faults = seed, faulty
			if seed%3 == 2 {
				s.SuggestContinueAsNew = 60
			}
			w := play(t, s, func(w *world) {
				for _, l := range w.lenders {
					l.Mishap = w.hostile(seed, 7*hour)
				}
				w.lenders[pool].PendingFor = 10 * time.Minute
				w.lenders[other].Offers[0].MinimumHold = hour
				w.lenders[other].Whole = seed%2 == 1
				for i := range 5 {
					at := time.Duration(i) * 70 * time.Minute
					w.submit(at+20*time.Minute, 4+(int64(seed)+int64(i)*3)%7, 40*time.Minute)
					w.submit(at+50*time.Minute, 1+(int64(seed)+int64(i))%4, 25*time.Minute)
				}
				w.h.At(2*hour, func() {
					for _, g := range w.lenders[pool].Grants() {
						w.lenders[pool].Recall(g.RequestID, 1)
					}
				})
			})
			w.settled()
			for _, j := range w.jobs {
				if !j.ended {
					t.Errorf("job %d did not end", j.id)
				}
			}
			if len(w.totals("vcs")) < 4 {
				t.Errorf("the story is thin: %v", w.totals("vcs"))
			}
		})
	}
}

func TestALoanWhoseWorkflowWasTerminatedIsTakenUpFromItsRow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		at   time.Duration
		set  func(w *world)
	}{
		{"while the lender decides", 30 * time.Minute, func(w *world) { w.lenders[pool].PendingFor = 2 * hour }},
		{"within its minimum hold", 30 * time.Minute, func(w *world) { w.lenders[pool].Offers[0].MinimumHold = hour }},
		{"while jobs use it", 80 * time.Minute, func(*world) {}},
		{"while it goes back", 4 * hour, func(w *world) {
			w.lenders[pool].Mishap = w.between(providers.VerbReturn, 0, 6*hour, mishap.Mishap{Kind: mishap.Refusal})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(12 * hour)
			s.mortal = true
			w := play(t, s, func(w *world) {
				test.set(w)
				w.submit(10*time.Minute, 7, 2*hour)
				w.h.At(test.at, func() { w.must(w.h.Signal(first, "terminate", nil)) })
			})
			w.settled()
			if story := w.report.Workflow(first); story.Started.Sub(w.scene.Start) < test.at-time.Minute {
				t.Errorf("the story was not begun anew: %+v", story)
			}
		})
	}
}

func TestAStoryFromAnOldBackupGoesOnFromTheLedgersRow(t *testing.T) {
	t.Parallel()
	// Temporal forgets an hour: the story does again what it did, under steps that
	// the ledger has seen. Jobs use the units all the while.
	s := newScene(12 * hour)
	s.mortal = true
	w := play(t, s, func(w *world) {
		w.submit(10*time.Minute, 9, 6*hour)
		w.submit(10*time.Minute, 2, 20*time.Minute)
		var old workflows.Loan
		w.h.At(15*time.Minute, func() { old = w.ask(first) })
		w.h.At(3*hour+30*time.Second, func() {
			w.must(w.h.Signal(first, "terminate", nil))
		})
		w.h.At(3*hour+31*time.Second, func() {
			w.must(w.h.StartWith(allowDuplicate, first, workflows.LoanName, old))
		})
	})
	w.settled()
	for _, m := range w.lenders[pool].Moves {
		if at := w.since(cluster.TimeOf(m.At)); m.Units < 0 && at > 2*hour && at < 6*hour {
			t.Errorf("units in use went back at %s", at)
		}
	}
}

func TestALoanThatARestoredLedgerDoesNotKnowGoesBack(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(6*hour), func(w *world) {
		w.lenders[pool].Offers[0].MinimumHold = 4 * hour
		w.submit(10*time.Minute, 7, 20*time.Minute)
		w.h.At(hour, w.open) // as it was before anything was borrowed
		w.submit(90*time.Minute, 6, 20*time.Minute)
	})
	w.same("lent", w.lent(pool), "00:10 #1 +3", "01:30 #2 +2", "04:10 #1 -3", "05:30 #2 -2")
	w.same("totals", w.totals("vcs"), "01:30 4>6", "05:30 6>4")
	w.settled()
}
