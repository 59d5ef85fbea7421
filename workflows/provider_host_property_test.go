package workflows_test

import (
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

// works is the world of the story of a provider of hosts: jobs that want hosts,
// the books, and hosts that do no more than to be intended, made and given back.
type works struct {
	*plain
	workflows.ProviderEnv // of loans, which are not its matter
	template              cluster.Template
	wanted, done          int64 // by jobs, and hosts of which the job is done
	fates                 []fate
	rows                  map[string]ledger.Host
	asked                 []cluster.HostRequest
	// starting are the hosts that were started and are not in the books yet.
	starting  map[string]bool
	published bool
	surveys   int
	failing   []bool
	// slow tells that hosts may come into the books later than the story waits for them.
	slow bool
}

// drawWorks draws a world in which a host is in the books within a minute of its
// start, as the story counts on, or, where it is slow, perhaps later.
func drawWorks(t *rapid.T, slow bool) func() *works {
	seconds := func(name string, most int64) cluster.Duration {
		return cluster.Duration(rapid.Int64Range(0, most*1000).Draw(t, name))
	}
	fates := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fate {
		return fate{seconds("intended", map[bool]int64{false: 20, true: 200}[slow]), seconds("settled", 300), seconds("kept", 3600), rapid.Bool().Draw(t, "refused")}
	}), 1, 6).Draw(t, "fates")
	fates[len(fates)-1].refused = false
	rises := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) use {
		return use{seconds("at", 7200), rapid.SampledFrom([]int64{1, 2, 5}).Draw(t, "hosts")}
	}), 1, 5).Draw(t, "rises")
	took := rapid.SliceOfN(rapid.SampledFrom([]cluster.Duration{10, 300, 4 * cluster.Second}), 1, 5).Draw(t, "took")
	failing := rapid.SliceOfN(rapid.Bool(), 0, 4).Draw(t, "failing")
	headroom := rapid.SampledFrom([]int64{1, 3, 50}).Draw(t, "headroom")
	return func() *works {
		w := &works{plain: newPlain(), fates: fates, rows: map[string]ledger.Host{}, starting: map[string]bool{}, failing: failing, slow: slow}
		w.template = cluster.Template{Name: template, Provider: provider, Headroom: headroom, PollInterval: cluster.Second}
		w.took = func(n int) cluster.Duration { return took[n%len(took)] }
		for _, r := range rises {
			w.at(r.after, func() { w.wanted += r.units; w.look() })
		}
		w.at(60*cluster.Hour, func() { panic(over{}) })
		return w
	}
}

// open counts the hosts that stand for something.
func (w *works) open() (n int64) {
	for _, h := range w.rows {
		if h.Row.State.Open() {
			n++
		}
	}
	return n
}

// look is a session: it keeps to the template's headroom, as all sessions do.
func (w *works) look() {
	demand := min(max(w.wanted-w.done-w.open(), 0), max(w.template.Headroom-w.open(), 0))
	if w.now < w.template.BackoffUntil {
		demand = 0
	}
	if demand == w.demand {
		return
	}
	w.demand = demand
	w.at(100, func() { w.inbox = append(w.inbox, workflows.Message{Demand: true}) })
}

// StartHosts implements ProviderEnv.
func (w *works) StartHosts(rs []cluster.HostRequest) {
	w.step(func() {
		for _, r := range rs {
			if slices.ContainsFunc(w.asked, func(a cluster.HostRequest) bool { return a.ID == r.ID }) {
				w.complain("%s is started twice", r.ID)
			}
			f := w.fates[min(len(w.asked), len(w.fates)-1)]
			w.asked = append(w.asked, r)
			w.starting[r.ID] = true
			w.at(f.intended, func() { w.live(r, f) })
		}
		if n := int64(len(w.starting)) + w.open(); n > w.wanted-w.done && !w.slow {
			w.complain("%d hosts are bought, %d are wanted", n, w.wanted-w.done)
		}
	})
}

func (w *works) change(id string, step int64, change ledger.HostChange) cluster.ElasticHost {
	h := w.rows[id]
	h.Demanded = w.demand
	row, _, err := h.Write(id, step, change, w.now)
	if err != nil {
		w.complain("%v", err)
	}
	w.rows[id] = ledger.Host{Row: row}
	return row
}

// live is the life of a host once it is intended.
func (w *works) live(r cluster.HostRequest, f fate) {
	delete(w.starting, r.ID)
	row := w.change(r.ID, 1, ledger.IntendHost{HostRequest: r, Terms: cluster.HostTerms{JoinWithin: cluster.Hour}})
	if !row.State.Open() {
		w.changed()
		return
	}
	w.demand--
	w.at(f.settled, func() {
		if f.refused {
			w.change(r.ID, 2, ledger.RefuseHost{Why: "no"})
			w.refuse()
			return
		}
		w.change(r.ID, 2, ledger.ExpectHost{Instance: "i", Name: "n"})
		w.template.Refusals = 0
		w.look()
		w.at(f.kept, func() {
			w.change(r.ID, 3, ledger.LoseHost{Why: "its job is done"})
			w.done++
			w.look()
			w.changed()
		})
	})
}

// refuse lets the template be for a while; of many refusals at once the first counts.
func (w *works) refuse() {
	if w.now >= w.template.BackoffUntil {
		w.template.Refusals++
		backoff := policy.Backoff(w.template.Refusals, 0)
		w.template.BackoffUntil = w.now.Add(backoff)
		w.at(backoff, w.look)
	}
	w.look()
	w.changed()
}

// changed tells the provider's story that it has more to give.
func (w *works) changed() {
	w.at(200, func() { w.inbox = append(w.inbox, workflows.Message{Changed: &workflows.Changed{}}) })
}

// View implements ProviderEnv.
func (w *works) View([]string) (v api.ProviderView) {
	w.step(func() {
		v.Provider, v.Weights = provider, map[string]int64{}
		v.Hosts = policy.HostView{Demand: []cluster.Demand{}, Made: map[string]int64{template: int64(len(w.rows))}}
		if w.demand > 0 {
			v.Hosts.Demand = []cluster.Demand{{Template: template, Provider: provider, Units: w.demand}}
		}
		if w.published {
			v.Hosts.Templates = []cluster.Template{w.template}
		}
	})
	return throughJSON(v)
}

// Survey implements ProviderEnv.
func (w *works) Survey(activities.SurveyIn) (s activities.Survey) {
	w.step(func() {
		w.surveys++
		status := providers.StatusOK
		if w.surveys <= len(w.failing) && w.failing[w.surveys-1] {
			status = providers.StatusUnknown
		}
		s.Describe.Status, s.List.Status = status, status
		if status == providers.StatusOK {
			s.Templates = []cluster.Template{w.template}
		}
	})
	return s
}

func (w *works) Publish(api.Catalog)     { w.step(func() { w.published = true }) }
func (w *works) ReportStray(s api.Stray) { w.step(func() { w.complain("stray %+v", s) }) }

// Now and the next two are those of plain.
func (w *works) Now() cluster.Time { return w.plain.Now() }

func (w *works) Receive(until cluster.Time) (workflows.Message, bool) { return w.plain.Receive(until) }

func (w *works) Full() bool { return w.plain.Full() }

func (w *works) Show(words func() workflows.Summary) { w.plain.Show(words) }

func (w *works) Return(in activities.GiveBack) activities.Grant { return w.plain.Return(in) }

// play tells the story until the play is over.
func (w *works) play(t *rapid.T, from func(workflows.Provider) workflows.Provider) {
	p := workflows.Provider{Name: provider, SurveyEvery: cluster.Hour}
	defer func() {
		switch why := recover().(type) {
		case over:
		case errStuck:
			t.Fatalf("stuck at %s: %s\n%+v", w.now, why.why, p)
		default:
			panic(why)
		}
	}()
	for !p.Live(w) {
		p = from(throughJSON(p))
	}
}

func (w *works) judge(t *rapid.T) {
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	if w.demand > 0 || w.done != w.wanted || w.open() > 0 {
		t.Errorf("%d hosts were wanted, %d have done their job, %d are open, %d demanded", w.wanted, w.done, w.open(), w.demand)
	}
}

func (w *works) ids() string {
	var ids []string
	for _, r := range w.asked {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, ", ")
}

func TestAProviderAsksForAllHostsThatAreDemandedOnce(t *testing.T) {
	for name, slow := range map[string]bool{"soon in the books": false, "late in the books": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorks(t, slow)()
				w.play(t, same)
				w.judge(t)
			})
		})
	}
}

func TestAProvidersStoryOfHostsCutAnywhereDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := drawWorks(t, true)
		whole, cut := draw(), draw()
		every := rapid.IntRange(1, 3).Draw(t, "cut every")
		cut.cut = func(n int) bool { return n%(every+1) == 0 }
		whole.play(t, same)
		cut.play(t, same)
		if a, b := whole.ids(), cut.ids(); a != b {
			t.Errorf("uncut: %s\ncut: %s", a, b)
		}
	})
}

func TestAProvidersStoryOfHostsThatBeginsAnewUsesNoIDTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorks(t, true)()
		for i := range w.fates {
			w.fates[i].intended = 0 // what is not in the books when all is forgotten cannot be known
		}
		lost := rapid.IntRange(2, 30).Draw(t, "forgotten before look")
		w.cut = func(n int) bool { return n == lost }
		w.play(t, func(p workflows.Provider) workflows.Provider {
			return workflows.Provider{Name: p.Name, SurveyEvery: p.SurveyEvery}
		})
		w.judge(t)
	})
}

var _ workflows.ProviderEnv = (*works)(nil)
