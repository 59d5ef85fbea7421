package simulation_test

import (
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/lender"
	"xce.internal/elastic/simulation/mishap"
	"xce.internal/elastic/workflows"
)

func TestUnitsOfAClosedLoanAreGivenBackWhenSeenTwice(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(4*hour), func(w *world) {
		w.submit(10*time.Minute, 7, 10*time.Minute)
		w.h.At(2*hour+time.Minute, func() { w.lenders[pool].Plant(first, "vcs", 2) })
	})
	w.same("lent", w.lent(pool), "00:10 #1 +3", "00:50 #1 -3", "02:01 #1 +2", "02:20 #1 -2")
	w.same("strays", w.kinds(api.KindStray), "02:20 "+first+": pool-a listed 2 vcs of a closed loan; given back: ok")
	w.settled()
}

func TestUnitsUnderAnIDThatIsNotOursAreReportedOnceAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(4*hour), func(w *world) {
		w.h.At(hour+time.Minute, func() { w.lenders[pool].Plant("loan/vcs/west-1", "vcs", 2) })
	})
	w.same("lent", w.lent(pool), "01:01 #1 +2")
	if strays := w.kinds(api.KindStray); len(strays) != 1 || !strings.Contains(strays[0], "the ledger does not have") {
		t.Error(strays)
	}
}

func TestTwoResourcesAreBorrowedFromTwoLendersAtTheirOwnPace(t *testing.T) {
	t.Parallel()
	s := twoLenders(8 * hour)
	spice := cluster.SharedResource{Name: "spice", Elastic: &cluster.Elastic{Lenders: []string{other}, MaxBorrowed: 4, IdleTime: 10 * cluster.Minute}}
	s.resources = append(s.resources, spice)
	w := play(t, s, func(w *world) {
		w.lenders[other].Offers = append(w.lenders[other].Offers, lender.Offer{Resource: "spice", Capacity: 4, MinimumHold: 3 * hour})
		w.submitFor(10*time.Minute, map[string]int64{"vcs": 7, "spice": 2}, hour)
		w.submitFor(2*hour, map[string]int64{"spice": 3}, hour)
	})
	w.same("vcs", w.totals("vcs"), "00:10 4>7", "01:40 7>4")
	w.same("spice", w.totals("spice"), "00:10 0>2", "02:00 2>3", "03:10 3>1", "05:00 1>0")
	w.settled()
}

func TestDemandThatOneRequestMayNotCarryIsBorrowedInSeveral(t *testing.T) {
	t.Parallel()
	s := newScene(4 * hour)
	s.surveys = hour
	w := play(t, s, func(w *world) {
		w.lenders[pool].Offers[0].MaxRequest = 2
		w.submit(10*time.Minute, 10, hour)
	})
	if totals := w.totals("vcs"); len(totals) < 3 || totals[2] != "00:10 8>10" {
		t.Errorf("totals %v", totals)
	}
	w.settled()
}

func TestAProviderIsSurveyedAsOftenAsIsConfiguredAndNotMore(t *testing.T) {
	t.Parallel()
	s := newScene(24 * hour)
	s.surveys, s.ensured = 6*hour, time.Hour
	w := play(t, s, func(w *world) {
		w.h.At(12*hour+time.Minute, func() { w.scene.surveys = 2 * hour })
	})
	var at []string
	for _, e := range w.report.Trace {
		if e.Name == "provider.survey" {
			at = append(at, clock(e.At))
		}
	}
	w.same("surveys", at, "00:00", "06:00", "12:00", "13:00", "15:00", "17:00", "19:00", "21:00", "23:00")
}

func TestALenderThatListsMoreThanItLendsIsNotAskedAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := newScene(3 * hour)
	var calls int
	w := play(t, s, func(w *world) {
		l := w.lenders[pool]
		w.submit(10*time.Minute, 7, 2*hour)
		l.Mishap = func(c mishap.Call) mishap.Mishap {
			calls++
			return mishap.Mishap{}
		}
		w.h.At(hour, func() { l.Miscount = 1 })
		w.h.At(2*hour, func() { l.Miscount = 0 })
	})
	w.settled()
	if calls > 60 {
		t.Errorf("%d calls", calls)
	}
}

func TestARecallThatWasAnsweredMeanwhileIsNotAnsweredTwice(t *testing.T) {
	t.Parallel()
	w := play(t, newScene(4*hour), func(w *world) {
		w.submit(20*time.Minute, 5, 2*hour)
		w.submit(20*time.Minute, 2, 20*time.Minute) // its end frees what is recalled
		w.h.At(29*time.Minute, func() { w.lenders[pool].Recall(first, 2) })
		w.h.At(50*time.Minute, func() {
			// A survey of before the units went back comes late.
			asOf := w.now().Add(-11 * cluster.Minute)
			w.must(w.h.Signal(first, workflows.SignalRecalled, workflows.Recalled{Units: 2, At: asOf}))
		})
	})
	w.same("totals", w.totals("vcs"), "00:20 4>7", "00:30 7>5", "02:50 5>4")
	w.same("lent", w.lent(pool), "00:20 #1 +3", "00:42 #1 -2", "02:50 #1 -1")
	w.settled()
}

func TestARecallIsHeardThoughTheListFails(t *testing.T) {
	t.Parallel()
	s := newScene(6 * hour)
	s.resources[0].UnitWeight = 1000
	w := play(t, s, func(w *world) {
		l := w.lenders[pool]
		l.Offers[0].Capacity = 8000
		w.submit(10*time.Minute, 7, 3*hour)
		w.h.At(50*time.Minute, func() { l.Recall(first, 1000) })
		l.Mishap = w.between(providers.VerbList, 50*time.Minute, 2*hour, mishap.Mishap{Kind: mishap.NotHeard})
	})
	w.same("totals", w.totals("vcs"), "00:10 4>7", "02:00 7>6", "03:40 6>4")
	w.settled()
}
