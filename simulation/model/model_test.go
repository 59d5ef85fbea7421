package model

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// world is one of which the time passes by hand.
type world struct {
	now   cluster.Time
	later []later
}

type later struct {
	at cluster.Time
	do func()
}

// pass lets time pass.
func (w *world) pass(d cluster.Duration) {
	until := w.now.Add(d)
	for {
		i := -1
		for n, l := range w.later {
			if l.at <= until && (i < 0 || l.at < w.later[i].at) {
				i = n
			}
		}
		if i < 0 {
			w.now = until
			return
		}
		next := w.later[i]
		w.later = slices.Delete(w.later, i, i+1)
		w.now = max(w.now, next.at)
		next.do()
	}
}

const began = cluster.Time(1_767_571_200_000)

func newModel(p Provider) (*world, *Model) {
	w := &world{now: began}
	m := New(p, 1, World{
		Now: func() cluster.Time { return w.now }, At: func(t cluster.Time, do func()) { w.later = append(w.later, later{t, do}) },
		Began: began, Zone: time.UTC,
	})
	return w, m
}

func ask(m *Model, id string, units int64) (providers.RequestOut, providers.Outcome) {
	return m.Request(context.Background(), providers.RequestIn{RequestID: id, Resource: "vcs", Units: units})
}

func pool(capacity int64) Provider {
	return Provider{Name: "pool", Offers: []Offer{{Resource: "vcs", Supply: Supply{Capacity: capacity}}}}
}

func TestARequestThatIsRepeatedIsGrantedOnce(t *testing.T) {
	_, m := newModel(pool(5))
	first, _ := ask(m, "a", 3)
	again, _ := ask(m, "a", 3)
	if first.Granted != 3 || again.Granted != 3 || m.Given() != 3 {
		t.Errorf("granted %d and %d, given %d", first.Granted, again.Granted, m.Given())
	}
	rest, outcome := ask(m, "b", 3)
	if rest.Granted != 2 || outcome.Status != providers.StatusPartial {
		t.Errorf("of what is left, %d are granted: %s", rest.Granted, outcome.Status)
	}
	if _, outcome := ask(m, "c", 1); outcome.Status != providers.StatusRefused || outcome.Reason != providers.ReasonCapacity {
		t.Errorf("of nothing, the outcome is %+v", outcome)
	}
}

func TestAPendingRequestThatIsCancelledIsNeverGranted(t *testing.T) {
	p := pool(5)
	p.Decide = Delay{Fixed: cluster.Hour}
	w, m := newModel(p)
	if _, outcome := ask(m, "a", 3); outcome.Status != providers.StatusPending {
		t.Fatalf("the outcome is %+v", outcome)
	}
	if _, outcome := m.Return(context.Background(), providers.ReturnIn{RequestID: "a"}); outcome.Status != providers.StatusOK {
		t.Fatalf("the cancellation is %+v", outcome)
	}
	w.pass(2 * cluster.Hour)
	if m.Given() != 0 || m.offers[0].taken != 0 {
		t.Errorf("%d are given, %d taken", m.Given(), m.offers[0].taken)
	}
}

func TestLostCallsAreHeardOrNotAndTheListSaysWhich(t *testing.T) {
	p := pool(1000)
	p.Unknown = 100
	_, m := newModel(p)
	heard := 0
	for i := range 200 {
		id := fmt.Sprint(i)
		if _, outcome := ask(m, id, 1); outcome.Status != providers.StatusUnknown {
			t.Fatalf("the outcome is %+v", outcome)
		}
		if m.Held(id) > 0 {
			heard++
		}
	}
	list, _ := m.List(context.Background())
	if len(list.Grants) != heard || heard < 60 || heard > 140 {
		t.Errorf("%d of 200 were heard, %d are listed", heard, len(list.Grants))
	}
}

func TestChanceDependsOnTheRequestAndNotOnTheOrder(t *testing.T) {
	p := pool(1000)
	p.Refused, p.Partial = 40, 40
	outcomes := func(ids []string) map[string]string {
		_, m := newModel(p)
		of := map[string]string{}
		for _, id := range ids {
			out, outcome := ask(m, id, 4)
			of[id] = fmt.Sprint(out.Granted, outcome.Status)
		}
		return of
	}
	ids := strings.Split("a b c d e f g h i j k l m n o p", " ")
	forward := outcomes(ids)
	slices.Reverse(ids)
	backward := outcomes(ids)
	kinds := map[string]bool{}
	for id, what := range forward {
		kinds[what] = true
		if backward[id] != what {
			t.Errorf("%s was %s, and %s in another order", id, what, backward[id])
		}
	}
	if len(kinds) < 3 {
		t.Errorf("there are only %v", kinds)
	}
}

func TestDelaysAreAsTheyAreDescribed(t *testing.T) {
	const n = 4000
	c := Chance(7)
	var sum cluster.Duration
	for i := range n {
		sum += c.exponential(cluster.Hour, fmt.Sprint(i))
	}
	if mean := sum / n; mean < 57*cluster.Minute || mean > 63*cluster.Minute {
		t.Errorf("the mean of an hour is %s", mean)
	}
	d := Delay{Median: 10 * cluster.Second, P95: 40 * cluster.Second}
	var below, beyond int
	for i := range n {
		switch l := d.drawn(c, fmt.Sprint(i)); {
		case l < d.Median:
			below++
		case l > d.P95:
			beyond++
		}
	}
	if math.Abs(float64(below)/n-0.5) > 0.03 || math.Abs(float64(beyond)/n-0.05) > 0.015 {
		t.Errorf("of %d, %d are below the median and %d beyond the 95th percentile", n, below, beyond)
	}
	even := Delay{Min: 5, Max: 8}
	seen := map[cluster.Duration]bool{}
	for i := range 100 {
		seen[even.drawn(c, fmt.Sprint(i))] = true
	}
	if len(seen) != 4 || !seen[5] || !seen[8] {
		t.Errorf("5 to 8 are %v", seen)
	}
}

func TestWindowsAreAsLongAsClocksMakeThem(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	h, err := Window{From: "01:30", To: "03:30"}.parse()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		month, day int
		long       time.Duration
	}{{3, 28, 2 * time.Hour}, {3, 29, time.Hour}, {10, 24, 2 * time.Hour}, {10, 25, 3 * time.Hour}} {
		from, to := h.span(time.Date(2026, time.Month(c.month), c.day, 12, 0, 0, 0, berlin))
		if to.Sub(from) != c.long {
			t.Errorf("on %d-%d the window is %s long, want %s", c.month, c.day, to.Sub(from), c.long)
		}
		for _, edge := range []struct {
			at   time.Time
			open bool
		}{{from.Add(-time.Second), false}, {from, true}, {to.Add(-time.Second), true}, {to, false}} {
			if open, change := h.look(edge.at); open != edge.open || !change.After(edge.at) {
				t.Errorf("at %s the window is open: %v, until %s", edge.at, open, change)
			}
		}
	}
}

func TestSpellsComeAgainAndAgainAndAtTheirTimes(t *testing.T) {
	p := pool(5)
	p.StockOut = Spell{Times: []Period{{After: cluster.Hour, Lasts: 10 * cluster.Minute}}}
	p.Outage = Spell{Every: cluster.Hour, Lasts: 10 * cluster.Minute}
	w, m := newModel(p)
	var out, mute int
	for range 24 * 60 {
		if m.out {
			out++
		}
		if m.mute {
			mute++
		}
		w.pass(cluster.Minute)
	}
	if out != 10 || mute < 60 || mute > 400 {
		t.Errorf("it was out of stock for %d minutes, and mute for %d", out, mute)
	}
}

func TestWhatIsWrongInAModelIsNamedWithItsPlace(t *testing.T) {
	p := Provider{
		Name: "pool", Unknown: 120, Outage: Spell{Every: cluster.Hour}, Decide: Delay{Fixed: 1, Max: 2},
		Offers: []Offer{{Resource: "vcs", Supply: Supply{
			Capacity: -1, Windows: []Window{{From: "25:00", To: "26:00"}}, Steps: []Step{{After: 2}, {After: 1}},
		}}},
	}
	var paths []string
	for _, problem := range p.Validate("providers[0]") {
		if problem.What == "" || problem.Remedy == "" {
			t.Errorf("%+v", problem)
		}
		paths = append(paths, strings.TrimPrefix(problem.Path, "providers[0]."))
	}
	for _, want := range []string{"unknown_percent", "outage", "decide.fixed", "offers[0].capacity", "offers[0].windows[0]", "offers[0].steps[1].after"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not among %v", want, paths)
		}
	}
}
