package main

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/dialogue"
)

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func newPool() *pool {
	return &pool{Version: poolVersion, Resources: []resource{
		{Name: "vcs", Capacity: 8, Shares: map[string]int64{"west": 3}}, {Name: "xcelium", Capacity: 2},
	}}
}

func ask(t *testing.T, p *pool, cluster, id string, units int64) providers.RequestOut {
	t.Helper()
	out, err := p.request(cluster, providers.RequestIn{RequestID: id, Resource: "vcs", Units: units}, start, 0)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func give(t *testing.T, p *pool, cluster, id string, remaining int64) providers.ReturnOut {
	t.Helper()
	out, err := p.giveBack(cluster, providers.ReturnIn{RequestID: id, Remaining: remaining}, start)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantRefusal(t *testing.T, err error) {
	t.Helper()
	var refusal dialogue.Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestLendsWhatItCan(t *testing.T) {
	p := newPool()
	tests := []struct {
		cluster, id string
		units       int64
		status      providers.Status
		granted     int64
		reason      providers.Reason
	}{
		{"west", "1", 2, providers.StatusOK, 2, ""},
		{"west", "2", 2, providers.StatusPartial, 1, ""}, // the rest of the share
		{"west", "3", 1, providers.StatusRefused, 0, providers.ReasonQuota},
		{"east", "1", 9, providers.StatusPartial, 5, ""}, // the same id in another cluster is another request
		{"east", "2", 1, providers.StatusRefused, 0, providers.ReasonCapacity},
		{"west", "1", 2, providers.StatusOK, 2, ""}, // repeated
		{"west", "2", 2, providers.StatusPartial, 1, ""},
		{"east", "2", 1, providers.StatusRefused, 0, providers.ReasonCapacity},
	}
	for _, test := range tests {
		out := ask(t, p, test.cluster, test.id, test.units)
		if out.Status != test.status || out.Granted != test.granted || out.Reason != test.reason {
			t.Errorf("%+v got %+v", test, out)
		}
		if (out.Status == providers.StatusRefused) != (out.RetryAfter > 0) {
			t.Errorf("%+v: retry after %d s", test, out.RetryAfter)
		}
	}
	if p.free(&p.Resources[0]) != 0 {
		t.Errorf("%d free", p.free(&p.Resources[0]))
	}
	give(t, p, "east", "1", 3)
	if out := ask(t, p, "east", "2", 1); out.Status != providers.StatusRefused {
		t.Errorf("a refused request was granted later under the same id: %+v", out)
	}
}

func TestRefusesWhatIsWrong(t *testing.T) {
	p := newPool()
	ask(t, p, "east", "1", 2)
	_, err := p.request("east", providers.RequestIn{RequestID: "1", Resource: "vcs", Units: 3}, start, 0)
	wantRefusal(t, err)
	_, err = p.request("east", providers.RequestIn{RequestID: "1", Resource: "xcelium", Units: 2}, start, 0)
	wantRefusal(t, err)
	_, err = p.request("east", providers.RequestIn{RequestID: "2", Resource: "nope", Units: 2}, start, 0)
	wantRefusal(t, err)
	_, err = p.giveBack("east", providers.ReturnIn{RequestID: "3", Units: 1, Remaining: 1}, start)
	wantRefusal(t, err)
}

func TestReturns(t *testing.T) {
	p := newPool()
	ask(t, p, "east", "1", 4)
	for _, step := range []struct{ target, remaining int64 }{{3, 3}, {3, 3}, {1, 1}, {3, 1}, {0, 0}, {0, 0}, {1, 0}} {
		if out := give(t, p, "east", "1", step.target); out.Status != providers.StatusOK || out.Remaining != step.remaining {
			t.Errorf("target %d: got %+v, want %d remaining", step.target, out, step.remaining)
		}
	}
	_, err := p.request("east", providers.RequestIn{RequestID: "1", Resource: "vcs", Units: 4}, start, 0)
	wantRefusal(t, err)
	if state := p.status("east", providers.StatusIn{RequestIDs: []string{"1"}}).Requests[0]; state.Status != providers.StateRefused {
		t.Errorf("status of a returned request: %+v", state)
	}
}

func TestCancelBeforeRequest(t *testing.T) {
	p := newPool()
	give(t, p, "east", "1", 0)
	_, err := p.request("east", providers.RequestIn{RequestID: "1", Resource: "vcs", Units: 4}, start, 0)
	wantRefusal(t, err)
	if out := ask(t, p, "west", "1", 1); out.Granted != 1 {
		t.Errorf("a cluster's cancel reached another cluster: %+v", out)
	}
}

func TestPending(t *testing.T) {
	p := newPool()
	in := providers.RequestIn{RequestID: "1", Resource: "vcs", Units: 9}
	out, err := p.request("east", in, start, time.Second)
	if err != nil || out.Status != providers.StatusPending || len(p.list("east").Grants) != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := ask(t, p, "west", "1", 1); got.Status != providers.StatusRefused {
		t.Errorf("what is reserved was lent again: %+v", got)
	}
	p.advance(start.Add(time.Second - 1))
	if p.find("east", "1").State != pending {
		t.Error("granted too early")
	}
	p.advance(start.Add(time.Second))
	if out, _ := p.request("east", in, start, time.Second); out.Status != providers.StatusPartial || out.Granted != 8 {
		t.Errorf("after the delay: %+v", out)
	}
	if grants := p.list("east").Grants; len(grants) != 1 || !grants[0].Since.Equal(start.Add(time.Second)) {
		t.Errorf("list: %+v", grants)
	}
}

func TestPendingCancelled(t *testing.T) {
	p := newPool()
	in := providers.RequestIn{RequestID: "1", Resource: "vcs", Units: 8}
	if _, err := p.request("east", in, start, time.Second); err != nil {
		t.Fatal(err)
	}
	_, err := p.giveBack("east", providers.ReturnIn{RequestID: "1", Units: 7, Remaining: 1}, start)
	wantRefusal(t, err)
	give(t, p, "east", "1", 0)
	p.advance(start.Add(time.Hour))
	if p.free(&p.Resources[0]) != 8 || len(p.list("east").Grants) != 0 {
		t.Errorf("still reserved: %+v", p.Grants)
	}
}

func TestRecall(t *testing.T) {
	p := newPool()
	ask(t, p, "east", "1", 4)
	for _, bad := range []struct {
		cluster, id string
		units       int64
	}{{"west", "1", 1}, {"east", "2", 1}, {"east", "1", 5}, {"east", "1", 0}} {
		if err := p.recall(bad.cluster, bad.id, bad.units, start); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if err := p.recall("east", "1", 3, start); err != nil {
		t.Fatal(err)
	}
	give(t, p, "east", "1", 3)
	if got := p.describe("east").Recalls; len(got) != 1 || got[0].Units != 2 {
		t.Errorf("after 1 of 3 came back: %+v", got)
	}
	if got := p.describe("west").Recalls; len(got) != 0 {
		t.Errorf("told to another cluster: %+v", got)
	}
	give(t, p, "east", "1", 0)
	if got := p.describe("east").Recalls; len(got) != 0 {
		t.Errorf("after all came back: %+v", got)
	}
}

func TestShrunkenPoolIsOverLent(t *testing.T) {
	p := newPool()
	ask(t, p, "east", "1", 6)
	if err := p.setCapacity("vcs", 4, start); err != nil {
		t.Fatal(err)
	}
	view := p.overview().Resources[0]
	if view.OverLent != 2 || view.Free != 0 || view.Lent != 6 {
		t.Errorf("%+v", view)
	}
	if offer := p.describe("east").Offers[0]; offer.Headroom != 0 {
		t.Errorf("headroom %d", offer.Headroom)
	}
	give(t, p, "east", "1", 4)
	if out := ask(t, p, "east", "2", 1); out.Status != providers.StatusRefused {
		t.Errorf("lent more than there is: %+v", out)
	}
}

func TestForgetsInTheEnd(t *testing.T) {
	p := newPool()
	ask(t, p, "east", "lent", 7)
	ask(t, p, "east", "returned", 1)
	ask(t, p, "east", "refused", 1)
	give(t, p, "east", "returned", 0)
	give(t, p, "east", "cancelled", 0)
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{rememberRefused, []string{"lent", "returned", "refused", "cancelled"}},
		{rememberRefused + 1, []string{"lent", "returned", "cancelled"}},
		{rememberClosed, []string{"lent", "returned", "cancelled"}},
		{rememberClosed + 1, []string{"lent"}},
		{100 * rememberClosed, []string{"lent"}},
	} {
		p.advance(start.Add(step.after))
		var got []string
		for _, g := range p.Grants {
			got = append(got, g.RequestID)
		}
		if !reflect.DeepEqual(got, step.want) {
			t.Errorf("after %s: %v, want %v", step.after, got, step.want)
		}
	}
}

// TestRules: whatever clusters ask and operators set, in any order, no request lends more than there is,
// repeating changes nothing, the journal tells the same story, and the file could be read back.
func TestRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{p: newPool(), now: start, journal: map[string]int64{}}
		t.Repeat(map[string]func(*rapid.T){
			"request":  m.request,
			"return":   m.giveBack,
			"recall":   m.recall,
			"capacity": m.capacity,
			"wait":     m.wait,
			"":         m.check,
		})
	})
}

type model struct {
	p       *pool
	now     time.Time
	journal map[string]int64 // what the journal says is out, by cluster and request
}

var (
	clusters = rapid.SampledFrom([]string{"east", "west"})
	ids      = rapid.SampledFrom([]string{"1", "2", "3", "4", "5", "6"})
)

// twice does the same thing two times: the second must answer the same and change nothing.
func (m *model) twice(t *rapid.T, act func() (any, error)) {
	first, firstErr := act()
	m.readJournal()
	before, err := json.Marshal(m.p)
	if err != nil {
		t.Fatal(err)
	}
	second, secondErr := act()
	after, err := json.Marshal(m.p)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, second) || (firstErr == nil) != (secondErr == nil) {
		t.Fatalf("first %+v (%v), then %+v (%v)", first, firstErr, second, secondErr)
	}
	if string(before) != string(after) {
		t.Fatalf("repeating changed the pool:\n%s\n%s", before, after)
	}
}

func (m *model) request(t *rapid.T) {
	cluster, delay := clusters.Draw(t, "cluster"), time.Duration(rapid.IntRange(0, 1).Draw(t, "delay"))*time.Minute
	in := providers.RequestIn{
		RequestID: ids.Draw(t, "id"), Units: rapid.Int64Range(1, 9).Draw(t, "units"),
		Resource: rapid.SampledFrom([]string{"vcs", "xcelium"}).Draw(t, "resource"),
	}
	r := m.p.resource(in.Resource)
	total, ours := m.p.out(in.Resource, ""), m.p.out(in.Resource, cluster)
	m.twice(t, func() (any, error) { return m.p.request(cluster, in, m.now, delay) })
	if got := m.p.out(in.Resource, ""); got > max(total, r.Capacity) {
		t.Fatalf("%d of %s out, capacity %d", got, in.Resource, r.Capacity)
	}
	if share, limited := r.Shares[cluster]; limited && m.p.out(in.Resource, cluster) > max(ours, share) {
		t.Fatalf("%s has more than its share of %d", cluster, share)
	}
}

func (m *model) giveBack(t *rapid.T) {
	cluster := clusters.Draw(t, "cluster")
	in := providers.ReturnIn{RequestID: ids.Draw(t, "id"), Remaining: rapid.Int64Range(0, 5).Draw(t, "remaining")}
	before := m.out(cluster, in.RequestID)
	m.twice(t, func() (any, error) { return m.p.giveBack(cluster, in, m.now) })
	if after := m.out(cluster, in.RequestID); after > before || after < min(before, in.Remaining) {
		t.Fatalf("target %d: %d before, %d after", in.Remaining, before, after)
	}
}

func (m *model) out(cluster, id string) int64 {
	if g := m.p.find(cluster, id); g != nil {
		return g.Units
	}
	return 0
}

func (m *model) recall(t *rapid.T) {
	_ = m.p.recall(clusters.Draw(t, "cluster"), ids.Draw(t, "id"), rapid.Int64Range(1, 3).Draw(t, "units"), m.now)
}

func (m *model) capacity(t *rapid.T) {
	if err := m.p.setCapacity("vcs", rapid.Int64Range(0, 12).Draw(t, "capacity"), m.now); err != nil {
		t.Fatal(err)
	}
}

func (m *model) wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.Int64Range(1, 40*24*3600).Draw(t, "seconds")) * time.Second)
	m.p.advance(m.now)
}

func (m *model) check(t *rapid.T) {
	m.readJournal()
	if err := m.p.Check(); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, g := range m.p.Grants {
		if g.Units > 0 {
			sums[g.Cluster+" "+g.RequestID] = g.Units
		}
	}
	if !reflect.DeepEqual(sums, m.journal) {
		t.Fatalf("the pool says %v, its journal %v", sums, m.journal)
	}
}

func (m *model) readJournal() {
	for _, entry := range m.p.Unlogged {
		replay(m.journal, entry)
	}
	m.p.Unlogged = nil
}

// replay is what an independent reader of the journal does.
func replay(out map[string]int64, entry change) {
	key := entry.Cluster + " " + entry.Request
	switch entry.Change {
	case "reserved", "granted":
		out[key] = entry.Units
	case "returned":
		out[key] -= entry.Units
	case "cancelled":
		out[key] = 0
	}
	if out[key] == 0 {
		delete(out, key)
	}
}

func TestPoolFileThatCannotBe(t *testing.T) {
	tests := map[string]func(*pool){
		"version":             func(p *pool) { p.Version = 2 },
		"resource twice":      func(p *pool) { p.Resources = append(p.Resources, p.Resources[0]) },
		"resource unnamed":    func(p *pool) { p.Resources[0].Name = "" },
		"negative capacity":   func(p *pool) { p.Resources[0].Capacity = -1 },
		"negative share":      func(p *pool) { p.Resources[0].Shares["west"] = -1 },
		"request twice":       func(p *pool) { p.Grants = append(p.Grants, p.Grants[0]) },
		"state":               func(p *pool) { p.Grants[0].State = "borrowed" },
		"negative units":      func(p *pool) { p.Grants[0].Units = -1 },
		"more than granted":   func(p *pool) { p.Grants[0].Units = 3 },
		"granted nothing":     func(p *pool) { p.Grants[0].Units = 0 },
		"returned, yet there": func(p *pool) { p.Grants[0].State = returned },
		"unknown resource":    func(p *pool) { p.Grants[0].Resource = "nope" },
		"recalled too much":   func(p *pool) { p.Grants[0].Recalled = 3 },
	}
	for name, spoil := range tests {
		p := newPool()
		ask(t, p, "east", "1", 2)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if spoil(p); p.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
