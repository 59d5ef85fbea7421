package simulation_test

import (
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/mishap"
)

const hour = time.Hour

func TestALoanIsKeptForTheLendersMinimumHold(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(8*hour), func(w *world) {
		w.lenders[pool].Offers[0].MinimumHold = 4 * hour
		w.submit(10*time.Minute, 7, 20*time.Minute)
	})
	w.same("totals", w.totals("vcs"), "00:10 4>7", "04:10 7>4")
	w.same("lent", w.lent(pool), "00:10 #1 +3", "04:10 #1 -3")
	w.settled()
}

func TestWhatLiesIdleFor30MinutesGoesBack(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(6*hour), func(w *world) {
		w.submit(10*time.Minute, 7, 2*hour)
		w.submit(2*hour+30*time.Minute, 6, hour) // within the 30 minutes, for two of the three
	})
	w.same("totals", w.totals("vcs"), "00:10 4>7", "02:40 7>6", "04:00 6>4")
	w.same("lent", w.lent(pool), "00:10 #1 +3", "02:40 #1 -1", "04:00 #1 -2")
	w.settled()
}

func TestALoanGoesBackShortlyBeforeItsBillingStepEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		runs  time.Duration
		total string
	}{
		{"idle in good time", 5 * time.Minute, "01:05 7>4"},
		{"idle just after a step began", 40 * time.Minute, "02:05 7>4"},
		{"idle within the last minutes of a step", 26 * time.Minute, "01:06 7>4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newScene(4*hour), func(w *world) {
				w.lenders[pool].Offers[0].BillingStep = hour
				w.submit(10*time.Minute, 7, test.runs)
			})
			w.same("totals", w.totals("vcs"), "00:10 4>7", test.total)
			w.settled()
		})
	}
}

func TestALenderMayDecideTwoHoursLater(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(8*hour), func(w *world) {
		w.lenders[pool].PendingFor = 2 * hour
		w.submit(10*time.Minute, 7, hour)
		w.h.At(2*hour, func() {
			if l := w.ask(first); l.Chapter != "polling" || !strings.Contains(l.WaitsFor, "decision") {
				w.t.Errorf("%s, waits for %s", l.Chapter, l.WaitsFor)
			}
		})
	})
	w.same("totals", w.totals("vcs"), "02:12 4>7", "03:42 7>4")
	w.settled()
}

func TestAFailedLookAtAPendingRequestDoesNotCancelIt(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(8*hour), func(w *world) {
		w.lenders[pool].PendingFor = 2 * hour
		w.lenders[pool].Mishap = func(c mishap.Call) mishap.Mishap {
			if c.Verb == providers.VerbStatus && (c.Number == 3 || c.Number == 7) {
				return mishap.Mishap{Kind: mishap.NotHeard}
			}
			return mishap.Mishap{}
		}
		w.submit(10*time.Minute, 7, hour)
	})
	w.same("lent", w.lent(pool)[:1], "02:10 #1 +3")
	w.settled()
}

// once makes the n-th call of a verb go wrong.
func once(verb providers.Verb, n int, m mishap.Mishap) func(mishap.Call) mishap.Mishap {
	return func(c mishap.Call) mishap.Mishap {
		if c.Verb == verb && c.Number == n {
			return m
		}
		return mishap.Mishap{}
	}
}

// between makes all calls of a verb go wrong for a while.
func (w *world) between(verb providers.Verb, from, to time.Duration, m mishap.Mishap) func(mishap.Call) mishap.Mishap {
	return func(c mishap.Call) mishap.Mishap {
		if at := w.since(cluster.TimeOf(c.At)); c.Verb == verb && at >= from && at < to {
			return m
		}
		return mishap.Mishap{}
	}
}

func twoLenders(lasts time.Duration) scene {
	s := newScene(lasts)
	s.resources[0].Elastic.Lenders = []string{pool, other}
	s.lenders = []string{pool, other}
	return s
}

func TestALenderThatRefusesIsLeftAloneAndTheNextIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	w := play(t, twoLenders(4*hour), func(w *world) {
		w.lenders[pool].Mishap = once(providers.VerbRequest, 1, mishap.Mishap{Kind: mishap.Refusal, RetryAfter: hour})
		w.submit(10*time.Minute, 7, 10*time.Minute)
		w.submit(hour, 7, 10*time.Minute)                  // pool-a backs off still
		w.submit(2*hour+10*time.Minute, 7, 10*time.Minute) // not any more
	})
	w.same("totals", w.totals("vcs"), "00:10 4>7", "00:50 7>4", "01:00 4>7", "01:40 7>4", "02:10 4>7", "02:50 7>4")
	w.same("lent by the first", w.lent(pool), "02:10 #2 +3", "02:50 #2 -3")
	w.same("lent by the second", w.lent(other), "00:10 #1 +3", "00:50 #1 -3", "01:00 #2 +3", "01:40 #2 -3")
	w.settled()
}

func TestAJobIsServedAfterTheBackoffOfItsOnlyLender(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(4*hour), func(w *world) {
		w.lenders[pool].Mishap = once(providers.VerbRequest, 1, mishap.Mishap{Kind: mishap.Refusal, RetryAfter: hour})
		w.submit(10*time.Minute, 7, 10*time.Minute)
	})
	w.same("totals", w.totals("vcs"), "01:10 4>7", "01:50 7>4")
	w.settled()
}

func TestAReturnThatFailsForADayIsVisibleAndTriedUntilItIsThrough(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		kind mishap.Kind
		fail time.Duration
	}{
		{"refused", mishap.Refusal, 24 * hour},
		{"unheard", mishap.NotHeard, 5 * hour},
		{"unsettled", mishap.Unsettled, 5 * hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newScene(test.fail+2*hour), func(w *world) {
				w.lenders[pool].Mishap = w.between(providers.VerbReturn, 0, test.fail, mishap.Mishap{Kind: test.kind})
				w.submit(10*time.Minute, 7, 20*time.Minute)
				w.h.At(test.fail-time.Minute, func() {
					l := w.ask(first)
					if l.Row.State != "returning" || l.Row.Fenced != 3 || l.Tries < 8 || !strings.Contains(l.WaitsFor, "3 units") {
						w.t.Errorf("%+v", l)
					}
					if test.kind == mishap.Refusal && !strings.Contains(l.Trouble, "not now") {
						w.t.Errorf("trouble %q", l.Trouble)
					}
				})
			})
			w.same("totals", w.totals("vcs"), "00:10 4>7", "01:00 7>4")
			moves := w.lent(pool)
			if back := w.since(cluster.TimeOf(w.lenders[pool].Moves[1].At)); len(moves) != 2 || back > test.fail+21*time.Minute {
				t.Errorf("lent %v", moves)
			}
			w.settled()
		})
	}
}

func TestAnOperatorGetsUnitsBackThatNoJobUses(t *testing.T) {
	t.Parallel()
	var early, used, late, whileReturning, again *wish
	w := play(t, newScene(6*hour), func(w *world) {
		w.lenders[pool].Offers[0].MinimumHold = hour
		w.lenders[pool].Mishap = once(providers.VerbReturn, 1, mishap.Mishap{Kind: mishap.NotHeard})
		w.submit(10*time.Minute, 2, hour)
		w.submit(10*time.Minute, 7, 3*hour) // 9 in all: 5 are borrowed
		early = w.giveBack(30*time.Minute, first, 1)
		used = w.giveBack(80*time.Minute, first, 0)
		late = w.giveBack(81*time.Minute, first, 1)
		whileReturning = w.giveBack(81*time.Minute+20*time.Second, first, 1)
		again = w.giveBack(85*time.Minute, first, 6)
	})
	want := []string{
		"refused: loan loan/vcs/pool-a-1 is held until 2026-01-05T01:10:",
		"refused: 3 of 5 units are in use",
		"1 go back",
		"refused: 1 units of loan/vcs/pool-a-1 are on their way back already",
		"refused: loan loan/vcs/pool-a-1 has 4 units, not 6",
	}
	for i, a := range []*wish{early, used, late, whileReturning, again} {
		if !strings.HasPrefix(a.answer(), want[i]) {
			t.Errorf("wish %d: %s, want %s", i, a.answer(), want[i])
		}
	}
	w.same("totals", w.totals("vcs"), "00:10 4>9", "01:21 9>8", "01:40 8>7", "03:40 7>4")
	w.settled()
}

func TestUnitsRecalledWhileInUseGoBackWhenTheirJobEnds(t *testing.T) {
	t.Parallel()
	var long, blocked *job
	w := play(t, newScene(5*hour), func(w *world) {
		long = w.submit(10*time.Minute, 7, 2*hour)
		w.h.At(hour-time.Minute, func() {
			w.lenders[pool].Recall(first, 2)
			w.lenders[pool].Offers[0].Capacity = 1
		})
		blocked = w.submit(80*time.Minute, 1, hour)
		w.h.At(2*hour, func() {
			st, err := w.service.Status(w.t.Context())
			w.must(err)
			if r := st.Resources[0]; r.Overdraft != 2 || r.InUse != 7 || st.Jobs.Running != 1 {
				w.t.Errorf("%+v", r)
			}
			if l := w.ask(first); l.WaitsFor != "jobs to give recalled units back" {
				w.t.Errorf("it waits for %s", l.WaitsFor)
			}
		})
	})
	if long.started > 11*time.Minute || blocked.started < long.started+2*hour {
		t.Errorf("started at %s and %s", long.started, blocked.started)
	}
	w.same("totals", w.totals("vcs"), "00:10 4>7", "01:00 7>5", "02:40 5>4")
	w.same("lent", w.lent(pool), "00:10 #1 +3", "02:12 #1 -2", "02:40 #1 -1")
	w.settled()
}

func TestWhatALenderLostLeavesTheTotalOnce(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(5*hour), func(w *world) {
		w.submit(10*time.Minute, 7, 2*hour)
		w.h.At(hour+time.Minute, func() { w.lenders[pool].Lose(first, 2) })
	})
	w.same("totals", w.totals("vcs"), "00:10 4>7", "01:15 7>5", "02:40 5>4")
	w.same("lent", w.lent(pool), "00:10 #1 +3", "01:01 #1 -2", "02:40 #1 -1")
	w.settled()
}

func TestAGrantThatTheLedgerDoesNotKnowGoesBackWhole(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(4*hour), func(w *world) {
		w.commitFails = &api.Error{Status: 404, Detail: "there is no shared resource"}
		w.submit(10*time.Minute, 7, 20*time.Minute)
		w.h.At(11*time.Minute, func() { w.commitFails = nil })
	})
	w.same("totals", w.totals("vcs"), "00:20 4>7", "01:10 7>4")
	w.same("lent", w.lent(pool)[:2], "00:10 #1 +3", "00:10 #1 -3")
	w.settled()
}

func TestAGrantForWhichTheRoomIsGoneGoesBack(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(6*hour), func(w *world) {
		w.lenders[pool].PendingFor = 2 * hour
		w.submit(10*time.Minute, 7, hour)
		w.h.At(hour, func() { w.configure(vcs(4, 2)) })
	})
	w.same("totals", w.totals("vcs"), "02:12 4>6", "02:42 6>4")
	w.same("lent", w.lent(pool), "02:10 #1 +3", "02:12 #1 -1", "02:42 #1 -2")
	w.settled()
}

func TestMoreUnitsThanAskedForGoBackAtOnce(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(4*hour), func(w *world) {
		w.lenders[pool].Surplus = 2
		w.submit(10*time.Minute, 7, 20*time.Minute)
	})
	w.same("totals", w.totals("vcs"), "00:10 4>7", "01:00 7>4")
	w.same("lent", w.lent(pool), "00:10 #1 +5", "00:10 #1 -2", "01:00 #1 -3")
	w.settled()
}

func TestALenderThatTakesLoansBackWholeOnlyGetsItsSurplusWithTheRest(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(6*hour), func(w *world) {
		w.lenders[pool].Whole, w.lenders[pool].Surplus = true, 2
		w.submit(10*time.Minute, 7, 20*time.Minute)
	})
	w.same("totals", w.totals("vcs"), "00:10 4>7", "01:00 7>4")
	w.settled()
}

func TestAnOperatorCannotPartALoanThatGoesBackWhole(t *testing.T) {
	t.Parallel()
	var part, whole *wish
	w := play(t, newScene(6*hour), func(w *world) {
		w.lenders[pool].Whole = true
		w.submit(10*time.Minute, 7, 20*time.Minute)
		part = w.giveBack(40*time.Minute, first, 1)
		whole = w.giveBack(50*time.Minute, first, 3)
	})
	if got := part.answer(); !strings.Contains(got, "takes no part of loan") {
		t.Error(got)
	}
	if got := whole.answer(); got != "3 go back" {
		t.Error(got)
	}
	w.same("totals", w.totals("vcs"), "00:10 4>7", "00:50 7>4")
	w.settled()
}

func TestAPartialGrantIsTakenAndTheRestIsAskedElsewhere(t *testing.T) {
	t.Parallel()
	w := play(t, twoLenders(4*hour), func(w *world) {
		w.h.At(9*time.Minute, func() { w.lenders[pool].Offers[0].Capacity = 2 }) // and its offer says 8
		w.submit(10*time.Minute, 7, 20*time.Minute)
	})
	w.same("totals", w.totals("vcs"), "00:10 4>6", "00:10 6>7", "01:00 7>6", "01:00 6>4")
	w.same("lent by the first", w.lent(pool), "00:10 #1 +2", "01:00 #1 -2")
	w.same("lent by the second", w.lent(other), "00:10 #1 +1", "01:00 #1 -1")
	w.settled()
}

func TestARequestOfUnknownOutcomeIsSettledByTheList(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		m     mishap.Mishap
		total []string
		lent  []string
	}{
		{"acted", mishap.Mishap{Kind: mishap.NoAnswer}, []string{"00:11 4>7", "01:01 7>4"}, []string{"00:10 #1 +3", "01:01 #1 -3"}},
		{"not acted", mishap.Mishap{Kind: mishap.NotHeard}, []string{"00:20 4>7", "01:10 7>4"}, []string{"00:20 #2 +3", "01:10 #2 -3"}},
		{
			"acted before the cancel",
			mishap.Mishap{Kind: mishap.Late, After: 30 * time.Second},
			[]string{"00:11 4>7", "01:01 7>4"},
			[]string{"00:10 #1 +3", "01:01 #1 -3"},
		},
		{
			"acted after the cancel",
			mishap.Mishap{Kind: mishap.Late, After: 2 * hour},
			[]string{"00:20 4>7", "01:10 7>4"},
			[]string{"00:20 #2 +3", "01:10 #2 -3"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newScene(6*hour), func(w *world) {
				w.lenders[pool].Mishap = once(providers.VerbRequest, 1, test.m)
				w.submit(10*time.Minute, 7, 20*time.Minute)
			})
			w.same("totals", w.totals("vcs"), test.total...)
			w.same("lent", w.lent(pool), test.lent...)
			w.settled()
		})
	}
}

func TestARequestIsNotGivenUpBeforeItsCancelIsHeard(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(8*hour), func(w *world) {
		w.lenders[pool].Mishap = func(c mishap.Call) mishap.Mishap {
			switch {
			case c.Verb == providers.VerbRequest && c.Number == 1:
				return mishap.Mishap{Kind: mishap.Late, After: 20 * time.Minute}
			case c.Verb == providers.VerbReturn && c.Number <= 2:
				return mishap.Mishap{Kind: mishap.NotHeard}
			}
			return mishap.Mishap{}
		}
		w.submit(10*time.Minute, 7, 20*time.Minute)
	})
	w.settled()
	for _, m := range w.lenders[pool].Moves {
		if m.Request == first && w.loans[0].State == cluster.LoanRefused {
			t.Errorf("%s was given up and granted late:\n%s", first, w.lenders[pool])
		}
	}
}

// lateCancel is a request of which no answer came, a cancel of it that is carried
// out half an hour late, and another that is not heard at all.
func lateCancel(c mishap.Call) mishap.Mishap {
	switch {
	case c.Verb == providers.VerbRequest && c.Number == 1:
		return mishap.Mishap{Kind: mishap.NoAnswer}
	case c.Verb == providers.VerbReturn && c.Number == 1:
		return mishap.Mishap{Kind: mishap.Late, After: 30 * time.Minute}
	case c.Verb == providers.VerbReturn && c.Number == 2:
		return mishap.Mishap{Kind: mishap.NotHeard}
	}
	return mishap.Mishap{}
}

func TestUnitsOfACancelledRequestAreNotUsedEvenIfTheyAreListed(t *testing.T) {
	t.Parallel()
	for name, mortal := range map[string]bool{"told through": false, "taken up from its row": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(4 * hour)
			s.mortal, s.ensured = mortal, 5*time.Minute
			w := play(t, s, func(w *world) {
				w.lenders[pool].PendingFor = 5 * time.Minute
				w.lenders[pool].Mishap = lateCancel
				w.submit(11*time.Minute, 7, hour)
				if mortal {
					w.h.At(15*time.Minute+30*time.Second, func() { w.must(w.h.Signal(first, "terminate", nil)) })
				}
			})
			if l := w.loans[0]; l.State != cluster.LoanRefused {
				t.Errorf("%s is %s: %s", l.ID, l.State, l.Why)
			}
			if moves := w.lent(pool); moves[0] != "00:16 #1 +3" {
				t.Errorf("lent %v", moves)
			}
			w.settled()
		})
	}
}

func TestUnitsOfAThousandPartsComeAndGoWhole(t *testing.T) {
	t.Parallel()
	s := newScene(6 * hour)
	s.resources[0].UnitWeight = 1000
	w := play(t, s, func(w *world) {
		w.lenders[pool].Offers[0].Capacity = 2500 // 2 of ours, and a rest
		w.lenders[pool].Surplus = 500
		w.submit(10*time.Minute, 6, 2*hour)
		w.h.At(hour, func() { w.lenders[pool].Recall(first, 700) }) // a part of a unit takes one with it
	})
	w.same("totals", w.totals("vcs"), "00:10 4>6", "01:00 6>5", "02:40 5>4")
	w.same("lent", w.lent(pool), "00:10 #1 +2500", "00:10 #1 -500", "02:12 #1 -1000", "02:40 #1 -1000")
	w.settled()
}

func TestACancelledWorkflowGivesBackWhatItHasAllTheSame(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(4*hour), func(w *world) {
		w.submit(10*time.Minute, 7, 20*time.Minute)
		w.h.At(20*time.Minute, func() {
			w.must(w.h.Cancel(first))
			w.must(w.h.Cancel("provider/" + pool))
		})
		w.submit(90*time.Minute, 6, 20*time.Minute)
	})
	w.same("totals", w.totals("vcs"), "00:10 4>7", "01:00 7>4", "01:30 4>6", "02:20 6>4")
	w.settled()
}
