package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/workflows"
)

// market is the world of a provider's story: jobs that want units, the books,
// and loans that do no more than to be intended, settled and given back, each
// when its time has come.
type market struct {
	*plain
	offer  cluster.Offer
	wanted int64 // by jobs, and not there
	// fates say what becomes of the loans, by the order of their start.
	fates   []fate
	started []cluster.LoanRequest
	// open is what every started loan asks for until it has ended or is in the total.
	open      map[string]int64
	published bool
	surveys   int
	// failing are surveys of which no answer comes, by number.
	failing []bool
	// deaf loses one in so many words of changed demand; 0 none.
	deaf int
	// slow tells that loans may come into the books later than the story waits for them.
	slow bool
}

// fate is what becomes of a loan: when it is intended after its start, when the
// lender settles it after that, and how, and when it is given back.
type fate struct {
	intended, settled, kept cluster.Duration
	refused                 bool
}

// drawMarket draws a market in which a loan is in the books within a minute of
// its start, as the story counts on, or, where it is slow, perhaps later.
func drawMarket(t *rapid.T, slow bool) func() *market {
	seconds := func(name string, most int64) cluster.Duration {
		return cluster.Duration(rapid.Int64Range(0, most*1000).Draw(t, name))
	}
	offer := cluster.Offer{
		Provider: provider, Resource: "vcs", Headroom: 20, PollInterval: cluster.Second, PartialReturn: true,
		MaxRequest: rapid.Int64Range(0, 4).Draw(t, "max request"), MaxOpen: rapid.Int64Range(1, 3).Draw(t, "max open"),
	}
	fates := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fate {
		return fate{seconds("intended", map[bool]int64{false: 20, true: 200}[slow]), seconds("settled", 300), seconds("kept", 3600), rapid.Bool().Draw(t, "refused")}
	}), 1, 6).Draw(t, "fates")
	fates[len(fates)-1].refused = false
	rises := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) use {
		return use{seconds("at", 7200), rapid.Int64Range(1, 6).Draw(t, "units")}
	}), 1, 5).Draw(t, "rises")
	steps := []cluster.Duration{10, 300, 4 * cluster.Second, 30 * cluster.Second}
	if !slow {
		steps = steps[:3]
	}
	took := rapid.SliceOfN(rapid.SampledFrom(steps), 1, 5).Draw(t, "took")
	failing := rapid.SliceOfN(rapid.Bool(), 0, 4).Draw(t, "failing")
	deaf := rapid.IntRange(0, 2).Draw(t, "deaf")
	return func() *market {
		m := &market{plain: newPlain(), offer: offer, fates: fates, open: map[string]int64{}, failing: failing, deaf: deaf, slow: slow}
		m.account.MaxBorrowed = 40
		m.took = func(n int) cluster.Duration { return took[n%len(took)] }
		for _, r := range rises {
			m.at(r.after, func() { m.wanted += r.units; m.session() })
		}
		m.at(6*cluster.Hour, func() { panic(over{}) })
		return m
	}
}

// over ends the play, since a provider's story has no end.
type over struct{}

// session replaces the demand, and tells of it where it changed.
func (m *market) session() {
	demand := max(m.wanted-m.account.Borrowed()-m.account.Requested(), 0)
	if m.now < m.offer.BackoffUntil {
		demand = 0
	}
	if demand == m.demand {
		return
	}
	m.demand = demand
	if n := len(m.events); m.deaf == 0 || n%m.deaf > 0 {
		m.at(100, func() { m.inbox = append(m.inbox, workflows.Message{Demand: true}) })
	}
}

func (m *market) book(id string, step int64, change ledger.Change) bool {
	_, event, err := m.account.Write(id, step, change, m.now)
	if err != nil {
		m.complain("%v", err)
	}
	m.events = append(m.events, event)
	requested := 0
	for _, l := range m.account.Loans {
		if l.State == cluster.LoanRequested {
			requested++
		}
	}
	if int64(requested) > m.offer.MaxOpen && !m.slow {
		m.complain("%d requests are open, %d may be", requested, m.offer.MaxOpen)
	}
	return event.After.State.Open()
}

// tell tells the provider of a loan, as the loan's story does.
func (m *market) tell(id string) {
	m.at(200, func() {
		m.inbox = append(m.inbox, workflows.Message{Changed: &workflows.Changed{Loan: id}})
	})
}

// StartLoan implements ProviderEnv.
func (m *market) StartLoan(r cluster.LoanRequest) {
	m.step(func() {
		if slices.ContainsFunc(m.started, func(s cluster.LoanRequest) bool { return s.ID == r.ID }) {
			m.complain("%s is started twice", r.ID)
		}
		bought := m.account.Borrowed() + r.Units
		for _, units := range m.open {
			bought += units
		}
		if bought > m.wanted && !m.slow {
			m.complain("%d units are bought with %s, %d are wanted", bought, r.ID, m.wanted)
		}
		f := m.fates[min(len(m.started), len(m.fates)-1)]
		m.started = append(m.started, r)
		m.open[r.ID] = r.Units
		m.at(f.intended, func() { m.live(r, f) })
	})
}

// live is the life of a loan once it is intended.
func (m *market) live(r cluster.LoanRequest, f fate) {
	open := m.book(r.ID, 1, ledger.Intend{LoanRequest: r, Demanded: m.demand})
	if !open {
		delete(m.open, r.ID)
		m.tell(r.ID)
		return
	}
	row, _ := m.account.Loan(r.ID)
	m.demand -= row.Units
	if bought := m.account.Borrowed() + m.account.Requested(); bought > m.wanted {
		m.complain("%d units are bought with %s, %d are wanted", bought, r.ID, m.wanted)
	}
	m.at(f.settled, func() {
		delete(m.open, r.ID)
		if f.refused {
			m.book(r.ID, 2, ledger.Refuse{Why: "no"})
			m.offer.Refusals++
			backoff := policy.Backoff(m.offer.Refusals, 0)
			m.offer.BackoffUntil = m.now.Add(backoff)
			m.session()
			m.at(backoff, m.session)
			m.tell(r.ID)
			return
		}
		m.book(r.ID, 2, ledger.Commit{Granted: row.Units, HoldUntil: m.now})
		m.offer.Refusals, m.offer.BackoffUntil = 0, 0
		m.session()
		m.at(100, func() { m.inbox = append(m.inbox, workflows.Message{Demand: true}) })
		m.at(f.kept, func() {
			m.wanted -= row.Units // their jobs are done
			m.book(r.ID, 3, ledger.Fence{Units: row.Units, Exact: true, AskAgain: m.now})
			m.book(r.ID, 4, ledger.Confirm{Units: row.Units})
			m.session()
			m.tell(r.ID)
		})
	})
}

// View implements ProviderEnv.
func (m *market) View([]string) (v api.ProviderView) {
	m.step(func() {
		v.View = policy.View{
			Provider: provider, Loans: map[string]int64{"vcs": int64(len(m.account.Loans))}, Weights: map[string]int64{"vcs": 1},
			Room: map[string]int64{"vcs": m.account.MaxBorrowed - m.account.Borrowed() - m.account.Requested()},
		}
		if m.demand > 0 {
			v.Demand = []cluster.Demand{{Resource: "vcs", Provider: provider, Units: m.demand}}
		}
		if m.published {
			v.Offers = []cluster.Offer{m.offer}
		}
		for _, l := range m.account.Loans {
			if l.State.Open() {
				v.Open = append(v.Open, l)
			}
		}
	})
	return throughJSON(v)
}

// Survey implements ProviderEnv.
func (m *market) Survey(activities.SurveyIn) (s activities.Survey) {
	m.step(func() {
		m.surveys++
		status := providers.StatusOK
		if m.surveys <= len(m.failing) && m.failing[m.surveys-1] {
			status = providers.StatusUnknown
		}
		s.Describe.Status, s.List.Status = status, status
		if status != providers.StatusOK {
			return
		}
		s.Offers = []cluster.Offer{m.offer}
		for _, l := range m.account.Loans {
			if l.Held() > 0 {
				s.Holdings = append(s.Holdings, activities.Holding{Request: l.ID, Resource: "vcs", Units: l.Held()})
			}
		}
	})
	return s
}

func (m *market) Publish(api.Catalog)              { m.step(func() { m.published = true }) }
func (m *market) ReportStray(s api.Stray)          { m.step(func() { m.complain("stray %+v", s) }) }
func (m *market) StartHosts([]cluster.HostRequest) {}

func (m *market) TellHost(string, workflows.Message) {}

func (m *market) TellLoan(string, workflows.Message) { m.step(func() {}) }

func (m *market) Return(in activities.GiveBack) activities.Grant {
	m.step(func() { m.complain("the provider's story gives %+v back", in) })
	return activities.Grant{Outcome: providers.Outcome{Status: providers.StatusOK}}
}

// play tells the story until the play is over. Where it is cut it goes on from
// what `from` makes of its state.
func (m *market) play(t *rapid.T, from func(workflows.Provider) workflows.Provider) {
	p := workflows.Provider{Name: provider, SurveyEvery: 10 * cluster.Minute}
	defer func() {
		switch why := recover().(type) {
		case over:
		case errStuck:
			t.Fatalf("stuck at %s: %s\n%+v", m.now, why.why, p)
		default:
			panic(why)
		}
	}()
	for !p.Live(m) {
		p = from(throughJSON(p))
	}
}

func same(p workflows.Provider) workflows.Provider { return p }

func (m *market) judge(t *rapid.T) {
	for _, wrong := range m.wrong {
		t.Error(wrong)
	}
	if m.demand > 0 || len(m.open) > 0 {
		t.Errorf("demand for %d units is not served, %d loans are open", m.demand, len(m.open))
	}
	if hours := int(m.now.Sub(began) / cluster.Hour); m.surveys < hours*5 || m.surveys > hours*6+4*len(m.started)+len(m.failing)+2 {
		t.Errorf("%d surveys in %d hours, for %d loans", m.surveys, hours, len(m.started))
	}
}

func TestAProviderBuysAllDemandOnceAndOpensNoMoreRequestsThanAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMarket(t, false)()
		m.play(t, same)
		m.judge(t)
	})
}

func TestDemandIsNotBoughtTwiceHoweverLateLoansAreInTheBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMarket(t, true)()
		m.play(t, same)
		m.judge(t)
	})
}

func TestAProvidersStoryCutAnywhereDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := drawMarket(t, true)
		whole, cut := draw(), draw()
		every := rapid.IntRange(1, 3).Draw(t, "cut every")
		cut.cut = func(n int) bool { return n%(every+1) == 0 }
		whole.play(t, same)
		cut.play(t, same)
		if a, b := ids(whole.started), ids(cut.started); a != b {
			t.Errorf("uncut: %s\ncut: %s", a, b)
		}
	})
}

func ids(requests []cluster.LoanRequest) string {
	var lines []string
	for _, r := range requests {
		lines = append(lines, fmt.Sprintf("%s %d", r.ID, r.Units))
	}
	return strings.Join(lines, ", ")
}

func TestAProvidersStoryThatBeginsAnewUsesNoIDTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMarket(t, true)()
		for i := range m.fates {
			m.fates[i].intended = 0 // what is not in the books when all is forgotten cannot be known
		}
		lost := rapid.IntRange(2, 30).Draw(t, "forgotten before look")
		m.cut = func(n int) bool { return n == lost }
		m.play(t, func(p workflows.Provider) workflows.Provider {
			return workflows.Provider{Name: p.Name, SurveyEvery: p.SurveyEvery}
		})
		m.judge(t)
	})
}

var _ workflows.ProviderEnv = (*market)(nil)
