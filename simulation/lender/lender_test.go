package lender_test

import (
	"context"
	"testing"
	"time"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/lender"
	"xce.internal/elastic/simulation/mishap"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
)

// at answers a lender of 8 vcs whose clock is set by hand.
func at(now *time.Time) *lender.Lender {
	*now = start
	return &lender.Lender{Now: func() time.Time { return *now }, Offers: []lender.Offer{{Resource: "vcs", Capacity: 8}}}
}

func request(l *lender.Lender, units int64) (providers.RequestOut, providers.Status) {
	out, outcome := l.Request(ctx, providers.RequestIn{RequestID: "a", Resource: "vcs", Units: units})
	return out, outcome.Status
}

func giveBack(l *lender.Lender, remaining int64) providers.Status {
	_, outcome := l.Return(ctx, providers.ReturnIn{RequestID: "a", Remaining: remaining})
	return outcome.Status
}

func TestARequestIsGrantedOnce(t *testing.T) {
	var now time.Time
	l := at(&now)
	for range 3 {
		if out, status := request(l, 3); out.Granted != 3 || status != providers.StatusOK {
			t.Errorf("%+v, %s", out, status)
		}
	}
	if l.Lent("vcs") != 3 || len(l.Moves) != 1 {
		t.Error(l)
	}
}

func TestARepeatedReturnChangesNothingAndTheIDIsUsedUp(t *testing.T) {
	var now time.Time
	l := at(&now)
	request(l, 3)
	for _, remaining := range []int64{1, 1, 2, 0, 0} {
		if status := giveBack(l, remaining); status != providers.StatusOK {
			t.Errorf("remaining %d: %s", remaining, status)
		}
	}
	if _, status := request(l, 3); status != providers.StatusRefused || l.Lent("vcs") != 0 {
		t.Errorf("%s\n%s", status, l)
	}
}

func TestWhatIsCancelledIsNeverGrantedLate(t *testing.T) {
	var now time.Time
	for name, prepare := range map[string]func(*lender.Lender){
		"never heard of": func(*lender.Lender) {},
		"pending":        func(l *lender.Lender) { l.PendingFor = time.Hour; request(l, 3) },
		"on its way": func(l *lender.Lender) {
			l.Mishap = func(c mishap.Call) mishap.Mishap {
				if c.Verb == providers.VerbRequest && c.Number == 1 {
					return mishap.Mishap{Kind: mishap.Late, After: time.Hour}
				}
				return mishap.Mishap{}
			}
			request(l, 3)
		},
	} {
		l := at(&now)
		prepare(l)
		if status := giveBack(l, 0); status != providers.StatusOK {
			t.Errorf("%s: %s", name, status)
		}
		now = start.Add(2 * time.Hour)
		if _, status := request(l, 3); status != providers.StatusRefused || l.Lent("vcs") != 0 {
			t.Errorf("%s: %s, lent %d", name, status, l.Lent("vcs"))
		}
	}
}

func TestWhatBecomesDueIsDatedWhenItWas(t *testing.T) {
	var now time.Time
	for name, prepare := range map[string]func(*lender.Lender){
		"pending": func(l *lender.Lender) { l.PendingFor = time.Hour },
		"late": func(l *lender.Lender) {
			l.Mishap = func(mishap.Call) mishap.Mishap { return mishap.Mishap{Kind: mishap.Late, After: time.Hour} }
		},
	} {
		l := at(&now)
		prepare(l)
		request(l, 3)
		now = start.Add(5 * time.Hour)
		if l.LentTo("a") != 3 || !l.Moves[0].At.Equal(start.Add(time.Hour)) {
			t.Errorf("%s: %s", name, l)
		}
	}
}

var _ activities.Script = (*lender.Lender)(nil)
