package farm

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/process"
)

// paper is a machine on which hosts are only written down.
type paper struct {
	named  bool
	agents map[string]process.Process // that live, by instance
	stuck  map[string]bool            // instances that cannot be killed now
	tokens map[string]string          // tokens, by instance
	number int
}

func newPaper() *paper {
	return &paper{agents: map[string]process.Process{}, stuck: map[string]bool{}, tokens: map[string]string{}}
}

func (p *paper) joins() bool { return true }

// place gives names that are used again, where hosts are named.
func (p *paper) place(h *Host, others []Host) error {
	for n := 1; p.named && h.Name == ""; n++ {
		name := fmt.Sprintf("node-%d", n)
		if !slices.ContainsFunc(others, func(h Host) bool { return h.Name == name }) {
			h.Name = name
		}
	}
	return nil
}

func (p *paper) failed(string) bool { return false }

func (p *paper) newInstance(number int64) (string, error) { return fmt.Sprintf("i-%d", number), nil }

func (p *paper) prepare(instance string, join *providers.Join) error {
	p.tokens[instance] = join.Token
	return nil
}

func (p *paper) start(h *Host, _ time.Duration) (process.Process, error) {
	if _, lives := p.agents[h.Instance]; lives {
		panic("a second agent for " + h.Instance)
	}
	if p.tokens[h.Instance] == "" {
		panic("no join message for " + h.Instance)
	}
	p.number++
	p.agents[h.Instance] = process.Process{PID: p.number}
	return p.agents[h.Instance], nil
}

func (p *paper) lives(agent process.Process) bool {
	return agent.PID != 0 && slices.Contains(slices.Collect(maps.Values(p.agents)), agent)
}

func (p *paper) jobs(string, process.Process) int64 { return 0 }

func (p *paper) end(instance string, _ process.Process) bool {
	if p.stuck[instance] {
		return false
	}
	delete(p.agents, instance)
	return true
}

func (p *paper) clear(instances []string) {
	maps.DeleteFunc(p.tokens, func(instance, _ string) bool { return !slices.Contains(instances, instance) })
}

func (p *paper) complain(h *Host, err error) { panic(fmt.Sprint(h.Instance, err)) }

// model checks the rules of hosts against what was asked.
type model struct {
	f     *farm
	p     *paper
	now   time.Time
	delay time.Duration
	over  map[string]bool   // requests that must never get a host again
	ids   map[string]string // instance to request
}

func TestRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			f: &farm{Version: farmVersion, Templates: []template{{Name: "small", CPUs: 2, Capacity: 3}, {Name: "large", CPUs: 8, Capacity: 1}}},
			p: newPaper(), now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC),
			delay: time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second,
			over:  map[string]bool{}, ids: map[string]string{},
		}
		m.p.named = rapid.Bool().Draw(t, "named")
		t.Repeat(map[string]func(*rapid.T){
			"": m.check, "request": m.request, "return": m.giveBack, "kill": m.kill, "stick": m.stick,
			"take": m.take, "wait": m.wait, "capacity": m.capacity,
		})
	})
}

func drawID(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "id")
}

func (m *model) request(t *rapid.T) {
	in := providers.RequestIn{RequestID: drawID(t), Template: rapid.SampledFrom([]string{"small", "large"}).Draw(t, "template"), Units: 1, Join: &providers.Join{Token: "token"}}
	m.f.tend(m.now, m.p)
	known := m.f.find("east", in.RequestID) != nil
	room := m.f.headroom(m.f.template(in.Template))
	out, err := m.f.request("east", in, m.now, m.delay, m.p)
	again, errAgain := m.f.request("east", in, m.now, m.delay, m.p)
	if fmt.Sprint(out, err) != fmt.Sprint(again, errAgain) {
		t.Fatalf("%v, %v and then %v, %v", out, err, again, errAgain)
	}
	if m.over[in.RequestID] && err == nil && out.Status != providers.StatusRefused {
		t.Fatalf("%s is over and got %+v", in.RequestID, out)
	}
	if !known && (err != nil || (out.Status == providers.StatusRefused) != (room == 0)) {
		t.Fatalf("room for %d, and %+v, %v", room, out, err)
	}
}

func (m *model) giveBack(t *rapid.T) {
	in := providers.ReturnIn{RequestID: drawID(t), Units: 1}
	m.f.tend(m.now, m.p)
	out, err := m.f.giveBack("east", in, m.now, m.p)
	if err == nil && out.Status == providers.StatusPending {
		m.f.tend(m.now, m.p)
		out, err = m.f.giveBack("east", in, m.now, m.p)
	}
	if err != nil || out.Status != providers.StatusOK && out.Status != providers.StatusPending {
		t.Fatalf("%+v, %v", out, err)
	}
	if (out.Status == providers.StatusOK) != (out.Remaining == 0) {
		t.Fatalf("%+v", out)
	}
	m.over[in.RequestID] = true
}

func (m *model) any(t *rapid.T) string {
	instances := slices.Sorted(maps.Keys(m.p.agents))
	if len(instances) == 0 {
		t.Skip("nothing runs")
	}
	return rapid.SampledFrom(instances).Draw(t, "instance")
}

func (m *model) kill(t *rapid.T) { delete(m.p.agents, m.any(t)) }

func (m *model) stick(t *rapid.T) {
	instance := m.any(t)
	m.p.stuck[instance] = !m.p.stuck[instance]
}

func (m *model) take(t *rapid.T) {
	h, err := m.f.existing(m.any(t))
	if err != nil {
		t.Skip("it is ending")
	}
	if rapid.Bool().Draw(t, "crash") {
		h.begin(crashed, m.p)
		m.over[h.RequestID] = true
		return
	}
	h.Reclaim = m.now.Add(2 * time.Second)
}

func (m *model) wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
}

func (m *model) capacity(t *rapid.T) {
	m.f.Templates[0].Capacity = rapid.Int64Range(0, 4).Draw(t, "capacity")
}

// check: after any tending every granted host runs, except one that was started just now; nothing runs that
// no record has; an instance belongs to one request.
func (m *model) check(t *rapid.T) {
	m.f.tend(m.now, m.p)
	if err := m.f.Check(); err != nil {
		t.Fatal(err)
	}
	recorded, names := map[string]bool{}, map[string]bool{}
	for i := range m.f.Hosts {
		h := &m.f.Hosts[i]
		if !h.exists() {
			continue
		}
		recorded[h.Instance] = true
		if h.Name != "" && names[h.Name] {
			t.Fatalf("two hosts are named %s", h.Name)
		}
		names[h.Name] = true
		if owner := m.ids[h.Instance]; owner != "" && owner != h.RequestID {
			t.Fatalf("%s is of %s and of %s", h.Instance, owner, h.RequestID)
		}
		m.ids[h.Instance] = h.RequestID
		if _, lives := m.p.agents[h.Instance]; !lives && h.State == granted && m.now.Sub(h.Started) >= startPause {
			t.Fatalf("%s is down", h.Instance)
		}
	}
	for instance := range m.p.agents {
		if !recorded[instance] {
			t.Fatalf("%s runs and no record has it", instance)
		}
	}
	for _, grant := range m.f.list("east").Grants {
		if !recorded[grant.Instances[0].ID] {
			t.Fatalf("%+v is listed", grant)
		}
	}
}

func TestEndedHostsAreForgottenInTheEnd(t *testing.T) {
	f, p, now := &farm{Version: farmVersion, Templates: []template{{Name: "small", Capacity: 1}}}, newPaper(), time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for _, id := range []string{"a", "b"} {
		if _, err := f.request("east", providers.RequestIn{RequestID: id, Template: "small", Units: 1, Join: &providers.Join{Token: "x"}}, now, 0, p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.giveBack("east", providers.ReturnIn{RequestID: "a"}, now, p); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		left  int
	}{{time.Hour, 2}, {25 * time.Hour, 1}, {29 * 24 * time.Hour, 1}, {31 * 24 * time.Hour, 0}} {
		f.tend(now.Add(step.after), p)
		if len(f.Hosts) != step.left {
			t.Errorf("after %s %d are remembered, want %d", step.after, len(f.Hosts), step.left)
		}
	}
}
