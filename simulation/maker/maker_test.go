package maker_test

import (
	"context"
	"testing"
	"time"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/maker"
	"xce.internal/elastic/simulation/mishap"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
)

const id = "host/c16-1"

// at answers a maker of two c16 whose clock is set by hand.
func at(now *time.Time) *maker.Maker {
	*now = start
	return &maker.Maker{Now: func() time.Time { return *now }, Templates: []maker.Template{{Template: providers.Template{Template: "c16", CPUs: 16}, Capacity: 2}}}
}

func request(m *maker.Maker) (providers.RequestOut, providers.Status) {
	out, outcome := m.Request(ctx, providers.RequestIn{RequestID: id, Template: "c16", Units: 1})
	return out, outcome.Status
}

func giveBack(m *maker.Maker, remaining int64, machines ...providers.Instance) (int64, providers.Status) {
	out, outcome := m.Return(ctx, providers.ReturnIn{RequestID: id, Remaining: remaining, Instances: machines})
	return out.Remaining, outcome.Status
}

func headroom(m *maker.Maker) int64 {
	d, _ := m.Describe(ctx)
	return d.Templates[0].Headroom
}

func TestAMachineIsMadeOncePerRequestAndItsIDIsUsedUp(t *testing.T) {
	var now time.Time
	m := at(&now)
	for range 3 {
		if out, status := request(m); out.Granted != 1 || out.Instances[0].ID != "i-1" || status != providers.StatusOK {
			t.Errorf("%+v, %s", out, status)
		}
	}
	if headroom(m) != 1 {
		t.Errorf("headroom %d", headroom(m))
	}
	for range 2 {
		if left, status := giveBack(m, 0); left != 0 || status != providers.StatusOK {
			t.Errorf("%d left, %s", left, status)
		}
	}
	if _, status := request(m); status != providers.StatusRefused || len(m.Moves) != 2 || headroom(m) != 2 {
		t.Errorf("%s\n%s", status, m)
	}
}

func TestOnlyTheMachinesThatAreNamedGoBack(t *testing.T) {
	var now time.Time
	m := at(&now)
	m.Surplus = 1
	out, _ := request(m)
	if left, status := giveBack(m, 1, out.Instances[1]); left != 1 || status != providers.StatusOK {
		t.Errorf("%d left, %s", left, status)
	}
	if left := m.Machines(id); len(left) != 1 || left[0].ID != "i-1" {
		t.Errorf("%+v", left)
	}
}

func TestWhatIsCancelledIsNeverMadeLate(t *testing.T) {
	var now time.Time
	for name, prepare := range map[string]func(*maker.Maker){
		"never heard of": func(*maker.Maker) {},
		"pending":        func(m *maker.Maker) { m.PendingFor = time.Hour; request(m) },
		"on its way": func(m *maker.Maker) {
			m.Mishap = func(c mishap.Call) mishap.Mishap {
				if c.Verb == providers.VerbRequest && c.Number == 1 {
					return mishap.Mishap{Kind: mishap.Late, After: time.Hour}
				}
				return mishap.Mishap{}
			}
			request(m)
		},
	} {
		m := at(&now)
		prepare(m)
		if _, status := giveBack(m, 0); status != providers.StatusOK {
			t.Errorf("%s: %s", name, status)
		}
		now = start.Add(2 * time.Hour)
		if _, status := request(m); status != providers.StatusRefused || len(m.Moves) > 0 {
			t.Errorf("%s: %s\n%s", name, status, m)
		}
	}
}

func TestAPendingMachineIsMadeWhenItIsTimeAndHoldsHeadroomUntilThen(t *testing.T) {
	var now time.Time
	m := at(&now)
	m.PendingFor = time.Minute
	if _, status := request(m); status != providers.StatusPending || headroom(m) != 1 {
		t.Errorf("%s, headroom %d", status, headroom(m))
	}
	now = start.Add(time.Minute)
	if there := m.Machines(id); len(there) != 1 || headroom(m) != 1 {
		t.Errorf("%+v, headroom %d", there, headroom(m))
	}
}

func TestAReturnMayTakeItsTime(t *testing.T) {
	var now time.Time
	m := at(&now)
	m.ReturnFor = time.Minute
	request(m)
	if _, status := giveBack(m, 0); status != providers.StatusPending || len(m.Machines(id)) != 1 {
		t.Errorf("%s\n%s", status, m)
	}
	now = start.Add(time.Minute)
	if _, status := giveBack(m, 0); status != providers.StatusOK || len(m.Machines(id)) != 0 {
		t.Errorf("%s\n%s", status, m)
	}
}

func TestAReclaimedMachineIsNamedUntilItIsTaken(t *testing.T) {
	var now time.Time
	m := at(&now)
	request(m)
	m.Reclaim(id, time.Minute)
	now = start.Add(20 * time.Second)
	if d, _ := m.Describe(ctx); len(d.Recalls) != 1 || d.Recalls[0].Grace != 40 {
		t.Errorf("%+v", d.Recalls)
	}
	now = start.Add(time.Minute)
	if d, _ := m.Describe(ctx); len(d.Recalls) != 0 || len(m.Machines(id)) != 0 {
		t.Errorf("%+v\n%s", d.Recalls, m)
	}
}

func TestTheListShowsWhatIsThereOrWhatItIsToldTo(t *testing.T) {
	var now time.Time
	m := at(&now)
	request(m)
	m.Plant("host/c16-7", "c16")
	m.Swap(id)
	list, _ := m.List(ctx)
	if len(list.Grants) != 2 || list.Grants[0].RequestID != "host/c16-7" || list.Grants[1].Instances[0].ID != "i-3" {
		t.Errorf("%+v", list)
	}
	m.Lists = func([]providers.Grant) []providers.Grant { return nil }
	if list, _ := m.List(ctx); len(list.Grants) != 0 {
		t.Errorf("%+v", list)
	}
}

var _ activities.Script = (*maker.Maker)(nil)
